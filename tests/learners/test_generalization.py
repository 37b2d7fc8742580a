"""The bounds of the papers (L7): their formulas, their order, and that they are valid."""

import math

import numpy as np
import pytest

from quorate.exceptions import ParameterError
from quorate.learners.generalization import (
    agnostic_records,
    agnostic_users,
    realizable_records,
    realizable_users,
    relative_deviation,
)

KNOWN = {"vc_dimension": 2, "alpha": 0.1, "beta": 0.05}


@pytest.mark.claim("L7: Lemma 3.1", "L7: Lemma 3.2", "L7: Lemma 4.3", "L7: Lemma 4.4")
def test_the_formulas_are_those_of_the_lemmas():
    log = math.log
    assert agnostic_records(**KNOWN) == math.ceil(57600 * (8 + log(160)))
    assert realizable_records(**KNOWN) == math.ceil(960 * (4 * log(3840) + log(80)))
    assert agnostic_users(records=9, **KNOWN) == math.ceil(6400 * (2 * log(115200) + log(160)))
    assert realizable_users(records=9, **KNOWN) == math.ceil(960 * (4 * log(34560) + log(80)))


def test_one_record_a_user_gives_the_realizable_bound_for_records():
    assert realizable_users(records=1, **KNOWN) == realizable_records(**KNOWN)


@pytest.mark.claim("L7: Lemma 3.1")
@pytest.mark.theory
def test_errors_of_thresholds_are_within_alpha_at_the_published_number():
    # A much smaller sample already suffices: the bound is valid and loose.
    n = agnostic_records(vc_dimension=1, alpha=0.1, beta=0.05) // 500
    rng = np.random.default_rng(0)
    misses = 0
    for _ in range(200):
        x = np.sort(rng.random(n))
        misses += np.abs(np.arange(n) / n - x).max() > 0.1
    assert misses == 0


@pytest.mark.claim("L7: Lemma 4.2")
def test_the_relative_bound_is_a_probability_that_falls_with_n():
    values = [relative_deviation(labelings=50, n=n, gamma=0.5, xi=0.05) for n in (1, 1000, 4000)]
    assert values[0] == 1.0
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("bad", [{"alpha": 0.0}, {"beta": 1.0}, {"vc_dimension": 0}])
def test_parameters_out_of_range_are_refused(bad):
    with pytest.raises(ParameterError):
        agnostic_records(**{**KNOWN, **bad})
    with pytest.raises(ParameterError):
        realizable_users(records=0, **KNOWN)
