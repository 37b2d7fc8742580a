"""The private choice of t: its sensitivity, and that it finds the middle of the crowd."""

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.learners.scores import Crossing
from quorate.learners.selection import choose_by_crossing
from rule_worlds import (
    LABELINGS,
    RELATIONS,
    asked,
    audit,
    largest_move,
    losses_of,
    table_losses,
)

RATES = Crossing(rates=(0.0, 0.25, 0.5))


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda r: r.name)
class TestPrivacy:
    def test_one_user_moves_no_loss_further_than_the_sensitivity(self, relation):
        def losses(data):
            return table_losses(RATES, LABELINGS, data)

        assert largest_move(losses, relation) <= RATES.sensitivity(relation)

    def test_the_exact_audit_of_both_steps_holds(self, relation, record_property):
        def choose(data):
            account = Account.open(epsilon=1.0, relation=relation)
            return choose_by_crossing(LABELINGS, asked(data, relation), RATES, account=account)

        found = audit(choose, relation)
        record_property("tightness", found.tightness)
        assert found.holds, str(found)
        assert found.tightness > 0.3


class TestUtility:
    def test_the_best_rate_halves_the_crowd(self):
        rng = np.random.default_rng(0)
        mistakes = rng.binomial(64, [0.2, 0.4], (400, 2))
        score = Crossing()
        losses = losses_of(score, mistakes, np.full(400, 64))
        assert abs(score.rates[int(np.argmin(losses))] - 0.2) < 0.03

    def test_realizable_data_take_rate_zero(self):
        score = Crossing()
        mistakes = np.array([[0, 3]] * 50)
        losses = losses_of(score, mistakes, np.full(50, 8))
        assert int(np.argmin(losses)) == 0
        assert losses[0] < losses[1]


@pytest.mark.parametrize("rates", [(), (0.5, 0.5), (0.5, 0.2), (-0.1,), (0.1, 1.5)])
def test_rates_that_do_not_increase_are_refused(rates):
    with pytest.raises(ParameterError):
        Crossing(rates=rates)


def test_sensitivities_are_the_proved_ones():
    assert Crossing().sensitivity(Relation.REPLACE) == 2
    assert Crossing().sensitivity(Relation.ADD_REMOVE) == 1
