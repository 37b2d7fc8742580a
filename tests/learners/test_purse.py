"""The budget of a fit: what it buys is subtracted, and never more than there was is spent."""

from fractions import Fraction

import numpy as np
import pytest

from quorate.accounting.compose import price
from quorate.accounting.events import Pure
from quorate.guarantees import Relation
from quorate.learners import LossSelector
from quorate.learners.purse import Purse
from quorate.mechanisms.rough_records import RecordRange
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData

PEOPLE = UserData(np.zeros((900, 1)), offsets=np.arange(0, 901, 3))


class TestPurse:
    def test_what_is_stated_costs_nothing(self):
        purse = Purse.of(LossSelector(0.7, records=5))
        assert purse.records == RecordRange.exactly(5)
        assert purse.typical_records(PEOPLE) == 5
        assert purse.left == purse.epsilon == 0.7
        assert purse.events == []

    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1 / 3, 7.7, 1e4])
    def test_what_is_left_and_what_was_spent_is_never_more_than_there_was(self, epsilon, relation):
        purse = Purse.of(LossSelector(epsilon, relation=relation))
        with use_noise(SeededNoise(0)):
            purse.buy_records(PEOPLE, (4, 8))
        spent = Fraction(price(purse.event, delta=0.0, relation=relation))
        assert 0 < spent + Fraction(purse.left) <= Fraction(epsilon)
        purse.events.append(Pure(purse.left))
        assert price(purse.event, delta=0.0, relation=relation) <= epsilon
