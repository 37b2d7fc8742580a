"""Capped regret: errors beyond a user's own fewest, cut at half of the records and one more."""

from fractions import Fraction

import numpy as np
import pytest

from quorate.core.guarantees import Relation
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts import Thresholds
from quorate.learners.scores import CappedRegret, OwnBest
from quorate.learners.scores.capped_regret import FULL_REGRET, capped
from rule_worlds import line_losses, losses_of, table_losses


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 2), Fraction(2, 3), Fraction(1)])
def test_the_terms_are_those_of_exact_fractions(share):
    for held in range(12):
        for regret in range(-1, held + 1):
            cap = min(held, share * held + 1)
            exact = min(1, max(0, Fraction(regret) / cap)) if held else 0
            found = capped(np.array(regret), np.array(held), share=share)
            assert found == int(FULL_REGRET * exact)


def test_all_of_the_records_count_whole_if_nothing_is_capped():
    mistakes, held = np.array([[0, 3, 8], [1, 1, 0]]), np.array([8, 2])
    whole = losses_of(CappedRegret(share=Fraction(1)), mistakes, held)
    assert whole.tolist() == [512, 384 + 512, 1024]


@pytest.mark.parametrize("share", [0.5, Fraction(-1, 2), Fraction(3, 2), Fraction(1, 101), None])
def test_a_share_is_a_plain_fraction(share):
    with pytest.raises(ParameterError, match="share"):
        CappedRegret(share=share)


@pytest.mark.parametrize("relation", list(Relation))
def test_a_giant_user_counts_no_more_than_anybody(relation):
    giant = UserData(np.full((500, 1), 3.0), np.ones(500), offsets=[0, 500])
    along = line_losses(CappedRegret(), Thresholds(0, 2**40), giant)[1]
    assert along.tolist() == [0, FULL_REGRET]
    assert CappedRegret().sensitivity(relation) == FULL_REGRET


def test_it_finds_what_errs_least_where_most_users_would_choose_otherwise():
    # Three of five users mind the cut-off 2 a little, two mind the cut-off 6 a lot.
    mistakes = np.array([[0, 1]] * 3 + [[4, 0]] * 2)
    held = np.full(5, 8)
    assert losses_of(CappedRegret(), mistakes, held).argmin() == 1
    assert losses_of(OwnBest(), mistakes, held).argmin() == 0


def test_a_user_without_records_minds_nothing():
    nobody = UserData(np.zeros((0, 1)), np.zeros(0), offsets=[0, 0, 0])
    assert line_losses(CappedRegret(), Thresholds(0, 5), nobody)[1].tolist() == [0]
    assert table_losses(CappedRegret(), Thresholds(0, 5), nobody).tolist() == [0] * 7
