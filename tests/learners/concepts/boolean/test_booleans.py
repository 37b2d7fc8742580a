"""Boolean features and their transforms against sums written out."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from quorate.learners.concepts.boolean.booleans import (
    all_patterns,
    patterns,
    read_booleans,
    subcube_sums,
    walsh,
)


def test_true_means_greater_than_one_half():
    values = [[0.5, 0.51, -3.0, math.inf, -math.inf, math.nan]]
    assert read_booleans(values, n_features=6).tolist() == [
        [False, True, False, True, False, False]
    ]


@pytest.mark.parametrize("n_features", range(1, 6))
def test_patterns_number_their_own_list(n_features):
    assert patterns(all_patterns(n_features)).tolist() == list(range(2**n_features))


@pytest.mark.parametrize("n_features", range(1, 6))
def test_subcube_sums_equal_sums_over_subcubes(n_features):
    votes = np.random.default_rng(0).integers(-9, 9, (3, 2**n_features))
    truth = all_patterns(n_features)
    for place, digits in enumerate(itertools.product([0, 1, 2], repeat=n_features)):
        wanted = digits[::-1]  # the first feature is the last digit to be written
        inside = [
            all(w == 0 or x == (w == 1) for w, x in zip(wanted, row, strict=True)) for row in truth
        ]
        np.testing.assert_array_equal(subcube_sums(votes)[:, place], votes[:, inside].sum(axis=1))


@pytest.mark.parametrize("n_features", [1, 2, 3, 5, 6, 7, 10])
def test_the_walsh_transform_equals_its_definition(n_features):
    votes = np.random.default_rng(0).integers(-9, 9, (3, 2**n_features))
    truth = all_patterns(n_features).astype(int)
    signs = (-1) ** (truth @ truth.T)
    before = votes.copy()
    np.testing.assert_array_equal(walsh(votes), votes @ signs)
    np.testing.assert_array_equal(votes, before)
