"""Packings: members add up to one, are as far apart as claimed, and as hard to tell apart."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from quorate.exceptions import ParameterError
from quorate.planning.packings import (
    agnostic_packing,
    covariance_packing,
    discrete_packing,
    finite_class_packing,
    log_code_words,
    normal_packing,
    packing_floor,
)


def code(length, distance):
    """Collect words greedily; return them as signs."""
    words = []
    for word in itertools.product((-1, 1), repeat=length):
        if all(
            sum(a != b for a, b in zip(word, other, strict=True)) >= distance for other in words
        ):
            words.append(word)
    return np.array(words)


@pytest.mark.parametrize(("length", "distance"), [(4, 1), (6, 2), (8, 3), (10, 3)])
def test_there_are_as_many_words_as_counted(length, distance):
    assert math.log(len(code(length, distance))) >= log_code_words(length, distance) - 1e-9


def members(categories, strength):
    """The packing of Theorem 43 with the factor 1/k."""
    words = code(categories // 2, math.ceil(categories / 8))
    tilted = np.stack([1 + strength * words, 1 - strength * words], axis=-1)
    return tilted.reshape(len(words), -1) / categories


@pytest.mark.claim("F8: Theorem 43")
class TestDiscrete:
    @pytest.mark.parametrize("categories", [8, 12, 16])
    def test_members_are_as_claimed(self, categories):
        error = 0.03
        found = discrete_packing(categories, error)
        pairs = categories // 2
        family = members(categories, 2 * error * pairs / math.ceil(pairs / 4))
        assert family.sum(axis=1) == pytest.approx(1.0)
        assert math.log(len(family)) >= found.log_alternatives - 1e-9
        apart, divergence = [], []
        for p, q in itertools.permutations(family, 2):
            apart.append(0.5 * np.abs(p - q).sum())
            divergence.append((p * np.log(p / q)).sum())
        assert min(apart) >= 2 * error - 1e-12
        assert max(divergence) <= found.divergence * (1 + 1e-6)

    def test_the_printed_factor_adds_up_to_a_half(self):
        assert (members(8, 0.2) / 2).sum(axis=1) == pytest.approx(0.5)

    def test_large_errors_and_one_category_have_no_packing(self):
        assert discrete_packing(10, 0.4) is None
        assert discrete_packing(1, 0.01) is None


@pytest.mark.claim("F6: Theorem 40")
def test_no_rule_is_good_for_two_noisy_labelings():
    error, points = 0.02, 8
    found = agnostic_packing(points, error)
    strength = 2 * (1 + 1e-9) * error * points / math.ceil(points / 4)
    words = code(points, math.ceil(points / 4))
    assert math.log(len(words)) >= found.log_alternatives - 1e-9
    best = (1 - strength) / 2
    for rule in itertools.product((-1, 1), repeat=points):
        mistakes = (1 - strength * words * np.array(rule)).mean(axis=1) / 2
        assert np.sum(mistakes - best <= error) <= 1


def test_normal_members_are_as_claimed():
    dimension, error = 8, 0.05
    found = normal_packing(dimension, error)
    distance = math.ceil(dimension / 4)
    nearest = 2 * norm.ppf(0.5 + error)
    words = code(dimension, distance) * nearest / (2 * math.sqrt(distance))
    gaps = [np.linalg.norm(a - b) for a, b in itertools.combinations(words, 2)]
    assert 2 * norm.cdf(min(gaps) / 2) - 1 >= 2 * error - 1e-9
    assert max(gaps) ** 2 / 2 <= found.divergence * (1 + 1e-6)


@pytest.mark.claim("F8: Theorem 46")
def test_covariances_are_within_reach_and_divergence():
    dimension, error = 6, 1e-4
    found = covariance_packing(dimension, error)
    entries = dimension * (dimension - 1) // 2
    distance = math.ceil(entries / 4)
    strength = 300 * error / (2 * math.sqrt(2 * distance))
    rng = np.random.default_rng(0)
    rows, columns = np.triu_indices(dimension, 1)

    def covariance(word):
        matrix = np.eye(dimension)
        matrix[rows, columns] = matrix[columns, rows] = strength * word
        return matrix

    for _ in range(50):
        one, other = (covariance(rng.choice([-1, 1], entries)) for _ in range(2))
        relative = np.linalg.solve(other, one)
        divergence = 0.5 * (np.trace(relative) - dimension - np.linalg.slogdet(relative)[1])
        assert divergence <= found.divergence
    assert covariance_packing(6, 0.1) is None


class TestFloor:
    def test_more_records_need_fewer_users_down_to_the_packing(self):
        packing = discrete_packing(400, 0.02)
        found = [
            packing_floor(packing, records=m, epsilon=1.0, beta=0.1) for m in (1, 16, 256, 10**6)
        ]
        assert found == sorted(found, reverse=True)
        assert found[-1] >= packing.log_alternatives - 3

    def test_wrong_numbers_are_refused(self):
        with pytest.raises(ParameterError):
            discrete_packing(10, -0.1)
        with pytest.raises(ParameterError):
            log_code_words(0, 1)


@pytest.mark.claim("U8: Theorem 8")
def test_no_candidate_is_good_for_two_worlds_of_theorem_8():
    width, error, places = 3.0, 0.09, 8
    found = finite_class_packing(2**places, error, width=width)
    strength = 2 * (1 + 1e-9) * error / width * places / math.ceil(places / 4)
    worlds = code(places, math.ceil(places / 4))
    assert math.log(len(worlds)) >= found.log_alternatives - 1e-9
    candidates = np.array(list(itertools.product((-1, 1), repeat=places)))
    # A record is a place and a sign; a candidate loses the width where its sign is the record's.
    excess = width * strength * (candidates[:, None, :] == worlds[None, :, :]).mean(axis=2)
    good = (excess <= error).sum(axis=1)
    assert good.max() <= 1
    chances = np.stack([1 + strength * worlds, 1 - strength * worlds], axis=-1) / (2 * places)
    flat = chances.reshape(len(worlds), -1)
    divergence = [(p * np.log(p / q)).sum() for p, q in itertools.permutations(flat[:12], 2)]
    assert max(divergence) <= found.divergence * (1 + 1e-9)
    assert finite_class_packing(1, error, width=width) is None
