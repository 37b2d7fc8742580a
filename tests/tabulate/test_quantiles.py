"""Quantiles of all groups at once, with intervals that hold."""

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.bounds.grid import Grid
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.data.by_group.person_cells import ValueColumn
from quorate.tabulate.quantiles import LOOKS, group_quantiles

COLUMN = ValueColumn(1, 0.0, 1000.0)
TRUE = np.array([50.0, 300.0, 7.0])


def cells(n=4000):
    """Return people who are in all three groups, with another median in each."""
    rng = np.random.default_rng(0)
    rows = np.empty((n * 3, 3))
    rows[:, 0], rows[:, 1] = np.tile(np.arange(3), n), 1.0
    rows[:, 2] = np.tile(TRUE, n) * rng.lognormal(0.0, 0.3, n * 3)
    return UserData(rows, offsets=np.arange(0, 3 * n + 1, 3))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", Relation)
def test_intervals_hold_and_are_narrow(delta, relation):
    crowd, norm = cells(), 2 if delta else 1
    truth = np.array([np.median(crowd.X[crowd.X[:, 0] == g, 2]) for g in range(3)])
    inside, wide = [], []
    for seed in range(10):
        purse = Account.open(epsilon=2.0, delta=delta, relation=relation, noise=SeededNoise(seed))
        found = group_quantiles(
            People(crowd, relation),
            COLUMN,
            2,
            groups=3,
            length=3.0 ** (1 / norm),
            norm=norm,
            account=purse,
        )
        inside.append(np.abs(found.values - truth) <= found.bounds + 1e-9)
        wide.append(found.bounds / TRUE)
        assert np.all(found.errors <= found.bounds)
    assert np.mean(inside) >= 0.9
    assert np.median(wide) < 0.5


def test_all_of_the_budget_is_drawn_in_so_many_looks():
    purse = Account.open(epsilon=1.0, delta=1e-6, noise=SeededNoise(0))
    people = People(cells(50), purse.relation)
    group_quantiles(people, COLUMN, 2, groups=3, length=1.0, norm=2, account=purse)
    assert purse.event.count == LOOKS
    assert purse.square_left < 1e-9


def test_somebody_in_all_groups_moves_no_more_than_somebody_in_one():
    """The votes of a person over the groups have the length that noise was made for."""
    from quorate.core.bounds.blocks import Blocks
    from quorate.core.bounds.grid import Ball
    from quorate.core.questions.cells import AddedCells
    from quorate.tabulate.quantiles import _Votes

    step, bound = 2.0**-30, Ball(0.5, dimension=3, norm=2, signed=True)
    votes = AddedCells(_Votes(2, (0.0, 0.0, 0.0), bound), Grid(Blocks((bound,)), step=step))
    everywhere = UserData([[0, 1, 9.0], [1, 1, 9.0], [2, 1, 9.0]], offsets=[0, 3])
    moved = np.sum(votes(everywhere).astype(object) ** 2)
    assert 0.99 < moved / bound.change_in_steps(step, Relation.ADD_REMOVE)[1] <= 1
    plain = np.array([0.5, 0.5, 0.5]) / step
    assert np.sum(plain**2) > bound.change_in_steps(step, Relation.ADD_REMOVE)[1]


def test_who_agrees_with_a_threshold_is_there_all_the_same():
    """In four groups, a vote against one threshold is as long as the length of presence says."""
    from quorate.core.bounds.grid import Ball
    from quorate.tabulate.quantiles import _Votes

    person = UserData([[g, 1.0, 9.0 if g == 0 else 0.0] for g in range(4)], offsets=[0, 4])
    found = _Votes(2, (0.0,) * 4, Ball(0.5, dimension=4, norm=1, signed=True))(person)[2][0]
    assert found.tolist() == [0.125, 0.0, 0.0, 0.0]


class TestFarQuantiles:
    def found(self, fraction, seed=0, epsilon=2.0, delta=1e-6, relation=Relation.ADD_REMOVE):
        crowd, norm = cells(), 2 if delta else 1
        purse = Account.open(
            epsilon=epsilon, delta=delta, relation=relation, noise=SeededNoise(seed)
        )
        return crowd, group_quantiles(
            People(crowd, relation),
            COLUMN,
            2,
            fraction=fraction,
            groups=3,
            length=3.0 ** (1 / norm),
            norm=norm,
            account=purse,
        )

    @pytest.mark.parametrize("delta", [0.0, 1e-6])
    def test_intervals_hold(self, delta):
        inside, wide = [], []
        for seed, fraction in enumerate((0.1, 0.25, 0.75, 0.9, 0.95) * 3):
            crowd, found = self.found(fraction, seed, delta=delta)
            truth = np.array(
                [np.quantile(crowd.X[crowd.X[:, 0] == g, 2], fraction) for g in range(3)]
            )
            inside.append(np.abs(found.values - truth) <= found.bounds + 1e-9)
            wide.append(found.bounds / TRUE)
        assert np.mean(inside) >= 0.9
        assert np.median(wide) < 0.5

    def test_much_budget_finds_the_quantiles_themselves(self):
        for fraction in (0.02, 0.1, 0.5, 0.9, 0.98):
            crowd, found = self.found(fraction, epsilon=200.0, delta=0.0)
            for group in range(3):
                own = crowd.X[crowd.X[:, 0] == group, 2]
                # A search ends at one part in 4096 of the range, and moves on a few people.
                step = 1000.0 / 4096
                assert np.mean(own < found.values[group] - step) <= fraction + 0.01
                assert np.mean(own <= found.values[group] + step) >= fraction - 0.01

    @pytest.mark.parametrize("norm", [1, 2])
    def test_both_sides_are_scaled_alike(self, norm):
        """Who is below in many groups votes a ninth of who is above, whatever the length."""
        from quorate.core.bounds.grid import Ball
        from quorate.tabulate.quantiles import _Votes

        votes = _Votes(2, (5.0,) * 4, Ball(0.9, dimension=4, norm=norm, signed=True), 0.9)
        above = votes(UserData([[g, 1.0, 9.0] for g in range(4)], offsets=[0, 4]))[2][0]
        below = votes(UserData([[g, 1.0, 0.0] for g in range(4)], offsets=[0, 4]))[2][0]
        np.testing.assert_allclose(above, -9 * below)
        assert np.sum(above**norm) ** (1 / norm) == pytest.approx(0.9)
