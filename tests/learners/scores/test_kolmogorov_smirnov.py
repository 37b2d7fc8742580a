"""The Kolmogorov-Smirnov score: the best hypothesis has no shortfall at any level."""

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.learners.scores import KolmogorovSmirnov
from rule_worlds import losses_of


def test_a_hypothesis_that_is_best_for_every_user_has_loss_zero():
    rng = np.random.default_rng(0)
    mistakes = rng.integers(1, 6, (30, 5))
    mistakes[:, 2] = 0
    score = KolmogorovSmirnov()
    losses = losses_of(score, mistakes, np.full(30, 8))
    assert losses[2] == 0
    assert losses.min() == 0


def test_the_loss_sees_differences_that_one_level_misses():
    mistakes = np.array([[1, 4]] * 10)
    held = np.full(10, 10)
    one = KolmogorovSmirnov(rates=(0.0,))
    all_levels = KolmogorovSmirnov()
    assert losses_of(one, mistakes, held).tolist() == [0, 0]
    assert losses_of(all_levels, mistakes, held).tolist() == [0, 10]


def test_sensitivities_are_the_proved_ones():
    assert KolmogorovSmirnov().sensitivity(Relation.REPLACE) == 2
    assert KolmogorovSmirnov().sensitivity(Relation.ADD_REMOVE) == 1


def test_levels_out_of_order_are_refused():
    with pytest.raises(ParameterError, match="increasing"):
        KolmogorovSmirnov(rates=(0.3, 0.1))
