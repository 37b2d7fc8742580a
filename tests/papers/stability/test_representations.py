"""Small random classes hold a good hypothesis as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts import PointFunctions, Thresholds
from quorate.papers.stability.representations import (
    HashedPoints,
    ListedConcepts,
    Majorities,
    Union,
    WholeClass,
)
from quorate.papers.stability.shared_seed import SharedSeed

DOMAIN = np.arange(8.0)[:, None]


def laws(rng):
    """Point masses, the uniform distribution and random ones on eight points."""
    yield from np.eye(8)
    yield np.full(8, 1 / 8)
    yield from rng.dirichlet(np.ones(8), size=30)


def smallest_errors(representation, law, *, seeds):
    """For each draw and each target point: the error of the best hypothesis."""
    targets = np.eye(8)
    found = []
    for seed in seeds:
        table = representation.draw(SharedSeed(seed)).predictions(DOMAIN)  # points x hypotheses
        wrong = np.abs(table[:, None, :] - targets[:, :, None])  # points, targets, hypotheses
        found.append(np.einsum("p,pth->th", law, wrong).min(axis=1))
    return np.array(found)


@pytest.mark.claim("G2: Definition 9")
class TestPoints:
    @pytest.mark.parametrize(("alpha", "beta"), [(0.25, 0.25), (0.5, 0.125)])
    def test_few_draws_have_no_good_hypothesis(self, alpha, beta):
        representation = HashedPoints(8, alpha=alpha, beta=beta)
        seeds = range(150)
        for law in laws(np.random.default_rng(0)):
            fails = (smallest_errors(representation, law, seeds=seeds) > alpha).mean(axis=0)
            assert fails.max() <= beta + 3 * math.sqrt(beta * (1 - beta) / 150)

    def test_two_points_fall_into_all_pairs_of_cells_alike(self):
        pairs = np.zeros((4, 4))
        for seed in range(3000):
            cells = HashedPoints(2**40, alpha=0.5, beta=0.5).draw(SharedSeed(seed))
            first, second = cells.cell_of(np.array([5.0, 2.0**39 + 77]))
            pairs[first, second] += 1
        assert np.abs(pairs / 3000 - 1 / 16).max() < 0.025

    def test_the_size_does_not_grow_with_the_domain(self):
        assert {HashedPoints(points).size for points in (2, 1000, 2**32, 2**63)} == {16}
        assert HashedPoints(2**32).bits == 4.0
        assert HashedPoints(2**32).nats == pytest.approx(4 * math.log(2))

    def test_mistakes_are_those_of_the_predictions(self):
        rng = np.random.default_rng(1)
        x, y = rng.integers(0, 2**32, size=50), rng.integers(0, 2, size=50)
        data = UserData.from_arrays(x[:, None], y, users=rng.integers(0, 4, size=50))
        cells = HashedPoints(2**32).draw(SharedSeed(1))
        mistakes = cells.mistakes(data)
        for key in range(16):
            wrong = cells.concept(key).predict(data.X) != data.y
            assert (
                mistakes[:, key].tolist()
                == np.bincount(data.user_index()[wrong], minlength=4).tolist()
            )

    def test_a_tiny_error_is_refused(self):
        with pytest.raises(ParameterError):
            HashedPoints(8, alpha=1e-4, beta=1e-4)


@pytest.mark.claim("G2: Lemma 10")
class TestBoosting:
    def test_a_union_fails_only_if_all_of_its_draws_do(self):
        single = HashedPoints(8, alpha=0.25, beta=0.25)
        boosted = single.boosted(beta=0.01)
        assert isinstance(boosted, Union)
        assert boosted.draws == 4
        law = np.full(8, 1 / 8)
        alone = (smallest_errors(single, law, seeds=range(200)) > 0.25).mean()
        together = (smallest_errors(boosted, law, seeds=range(200)) > 0.25).mean()
        assert together <= max(0.01, alone / 2)

    def test_nothing_to_boost(self):
        whole = WholeClass(Thresholds(0, 6))
        assert whole.boosted(beta=0.1) is whole
        assert whole.sharpened(alpha=0.1, beta=0.1) is whole
        assert (whole.alpha, whole.beta, whole.bits) == (0.0, 0.0, 3.0)

    def test_the_sizes_of_majorities_are_those_of_the_lemma(self):
        boosted = HashedPoints(2**32).sharpened(alpha=0.1, beta=0.1)
        rounds = math.ceil(8 * math.log(10))
        draws = math.ceil(math.log(rounds / 0.1, 4))
        assert isinstance(boosted, Majorities)
        assert boosted.bits == pytest.approx(rounds * (4 + math.log2(draws)))
        assert boosted.alpha <= 0.1
        assert boosted.beta <= 0.1
        with pytest.raises(ParameterError, match="cannot be listed"):
            boosted.draw(SharedSeed(0))

    def test_a_weak_representation_cannot_be_sharpened(self):
        with pytest.raises(ParameterError, match="at most 1/4"):
            HashedPoints(8, alpha=0.3).sharpened(alpha=0.1, beta=0.1)

    def test_majorities_hold_what_boosting_finds(self):
        """AdaBoost over the draws, for every target and law: its majority is in the class."""
        representation = Majorities(HashedPoints(4, alpha=0.25, beta=0.25), rounds=3)
        points = np.arange(4.0)[:, None]
        rng = np.random.default_rng(2)
        for seed in range(4):
            drawn = representation.draw(SharedSeed(seed))
            tables = [part.predictions(points) for part in drawn.draws]
            listed = drawn.predictions(points)
            for target in np.eye(4):
                for law in (np.full(4, 0.25), rng.dirichlet(np.ones(4))):
                    weights, chosen = law.copy(), []
                    for table in tables:
                        wrong = table != target[:, None]
                        best = int(np.argmin(weights @ wrong))
                        chosen.append(table[:, best])
                        weights = weights * np.where(wrong[:, best], 3.0, 1.0)
                        weights /= weights.sum()
                    majority = 2 * np.sum(chosen, axis=0) > 3
                    assert (listed == majority[:, None]).all(axis=0).any()

    def test_majorities_count_the_mistakes_of_their_rules(self):
        drawn = Majorities(HashedPoints(8, alpha=0.5, beta=0.5), rounds=3).draw(SharedSeed(3))
        rng = np.random.default_rng(4)
        x, y = rng.integers(0, 8, size=30), rng.integers(0, 2, size=30)
        data = UserData.from_arrays(x[:, None], y, users=np.zeros(30, dtype=int))
        for key in (0, 5, 63):
            wrong = drawn.concept(key).predict(data.X) != data.y
            assert drawn.mistakes(data)[0, key] == wrong.sum()


def test_classes_in_a_row_are_one_class():
    row = ListedConcepts((Thresholds(0, 3), PointFunctions(4)))
    assert row.size == 9
    assert str(row.concept(6)) == str(PointFunctions(4).concept(1))
    with pytest.raises(ParameterError):
        row.concept(9)
