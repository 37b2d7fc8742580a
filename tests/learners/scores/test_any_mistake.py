"""Any mistake (F4): a user counts once, however many records are wrong."""

import numpy as np

from quorate.guarantees import Relation
from quorate.learners.scores import AnyMistake, MoreThan


def test_a_user_counts_once():
    assert AnyMistake().tally(np.array([[0, 1, 900]]), np.array([999])).tolist() == [0, 1, 1]


def test_it_is_more_than_zero_mistakes():
    rng = np.random.default_rng(0)
    mistakes, held = rng.integers(0, 4, (20, 7)), np.full(20, 5)
    same = MoreThan(rate=0.0).tally(mistakes, held)
    np.testing.assert_array_equal(AnyMistake().tally(mistakes, held), same)


def test_no_record_is_dropped():
    assert AnyMistake().record_cap is None
    assert AnyMistake().sensitivity(Relation.REPLACE) == 1
