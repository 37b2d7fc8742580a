"""Certificates: right by brute force, moved by one by one user, and what they owe to the proof."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from quorate.mechanisms.wrappers.stable_release import BaseKind
from quorate.papers.conversion.alike import certify_by_cover, certify_by_sorting, differences

every_kind = pytest.mark.parametrize("kind", list(BaseKind), ids=lambda k: k.name)


def norm(difference, kind):
    match kind:
        case BaseKind.EXPONENTIAL:
            return float(np.ptp(difference))
        case BaseKind.LAPLACE:
            return float(np.abs(difference).sum())
        case BaseKind.GAUSSIAN:
            return math.sqrt((difference**2).sum())


@every_kind
@pytest.mark.parametrize("bound", [3, 90, 2000, 6000, 20_000, 10**6, 6 * 10**8])
def test_differences_are_those_of_the_plain_formula(kind, bound):
    rng = np.random.default_rng(0)
    scores = rng.integers(-bound, bound, (12, 4), endpoint=True)
    table = differences(scores, kind)
    for i, j in combinations(range(12), 2):
        expected = norm(scores[i] - scores[j], kind)
        found = math.sqrt(table[i, j]) if kind is BaseKind.GAUSSIAN else float(table[i, j])
        assert found == pytest.approx(expected)
        assert table[i, j] == table[j, i]


def fewest_by_brute_force(values, tolerance, reach):
    n, size = len(values), len(values) - 4 * reach
    for gone in range(2 * reach + 1):
        for left_out in combinations(range(n), gone):
            rest = np.sort(np.delete(values, left_out))
            if rest[-size:].sum() - rest[:size].sum() <= tolerance:
                return gone
    return 2 * reach + 1


@pytest.mark.parametrize(("n", "reach"), [(5, 1), (7, 1), (9, 1), (9, 2), (11, 2)])
def test_sorting_finds_the_fewest_users(n, reach):
    rng = np.random.default_rng(n)
    for _ in range(25):
        values = rng.integers(-3, 4, n) ** 3
        tolerance = int(rng.integers(0, 30))
        alike = certify_by_sorting(values, closeness_squared=Fraction(tolerance**2), reach=reach)
        assert alike.distance == fewest_by_brute_force(values, tolerance, reach)
        assert alike.chosen.sum() == (n - 4 * reach if alike.distance <= 2 * reach else 0)


def certificates(kind, reach, squared):
    def by_cover(scores):
        return certify_by_cover(scores, kind=kind, closeness_squared=squared, reach=reach)

    def by_sorting(scores):
        return certify_by_sorting(scores[:, 0], closeness_squared=squared, reach=reach)

    return by_cover, by_sorting


def neighbours(rng, n, width):
    scores = np.where(rng.random((n, 1)) < 0.15, rng.integers(-9, 10, (n, width)), 0)
    other = scores.copy()
    other[rng.integers(n)] = rng.integers(-9, 10, width)
    return scores, other


def owed(certify, kind, squared, *, n, width, reach, rounds=400):
    """Return the largest move of the distance, and of the totals where it matters."""
    rng = np.random.default_rng(3)
    moves, shifts, released = [], [], 0
    for _ in range(rounds):
        scores, other = neighbours(rng, n, width)
        one, two = certify(scores), certify(other)
        moves.append(abs(one.distance - two.distance))
        if max(one.distance, two.distance) <= 2 * reach and one.distance + two.distance < 4 * reach:
            released += 1
            totals = scores[one.chosen].sum(axis=0) - other[two.chosen].sum(axis=0)
            shifts.append(norm(totals, kind))
    assert released > rounds / 10
    return max(moves), max(shifts) / math.sqrt(squared)


@every_kind
@pytest.mark.parametrize("reach", [1, 2])
def test_a_cover_gives_what_the_proof_needs(kind, reach):
    squared = Fraction((8 * reach * 2) ** 2)
    certify, _ = certificates(kind, reach, squared)
    move, shift = owed(certify, kind, squared, n=8 * reach + 3, width=3, reach=reach)
    assert move == 1
    assert shift <= 2


@pytest.mark.parametrize("reach", [1, 2])
def test_sorting_gives_what_the_proof_needs(reach):
    squared = Fraction(5**2)
    _, certify = certificates(BaseKind.LAPLACE, reach, squared)
    move, shift = owed(certify, BaseKind.LAPLACE, squared, n=4 * reach + 3, width=1, reach=reach)
    assert move == 1
    assert shift <= 2


def test_the_same_test_catches_a_certificate_that_keeps_everybody():
    squared = Fraction(5**2)
    _, certify = certificates(BaseKind.LAPLACE, 1, squared)

    def keep_the_last(scores):
        alike = certify(scores)
        chosen = np.zeros(len(scores), dtype=bool)
        chosen[-3:] = alike.distance <= 2
        return type(alike)(alike.distance, chosen)

    _, shift = owed(keep_the_last, BaseKind.LAPLACE, squared, n=7, width=1, reach=1)
    assert shift > 2


@every_kind
@pytest.mark.parametrize("outliers", [0, 1, 2, 3])
def test_as_many_users_are_chosen_as_the_proof_leaves(kind, outliers):
    """Eight times the reach, four times for one number: fewer would not reach common users."""
    reach, squared = 1, Fraction(100)
    scores = np.zeros((14, 3), dtype=np.int64)
    scores[:outliers, 0] = 10**4 * np.arange(1, outliers + 1)
    by_cover, by_sorting = certificates(kind, reach, squared)
    passes = outliers <= 2 * reach
    assert by_cover(scores).chosen.sum() == (14 - 8 * reach if passes else 0)
    assert by_sorting(scores).chosen.sum() == (14 - 4 * reach if passes else 0)
    assert not by_cover(scores).chosen[:outliers].any()


def test_a_gap_that_a_root_would_blur_is_decided_in_integers():
    scores = np.zeros((9, 1), dtype=np.int64)
    scores[0] = 10**8
    just = Fraction((8 * 10**8) ** 2)
    near = certify_by_cover(scores, kind=BaseKind.LAPLACE, closeness_squared=just, reach=1)
    far = certify_by_cover(
        scores, kind=BaseKind.LAPLACE, closeness_squared=just - Fraction(1, 10**9), reach=1
    )
    assert (near.distance, far.distance) == (0, 1)
