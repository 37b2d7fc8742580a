"""Absent users: their votes are free, and no pair of users moves a sum by more than is claimed."""

import itertools

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.accounting.compose import price
from quorate.accounting.events import Gaussian
from quorate.auditing import Cells, SmallWorld, audit_exactly, enumerate_runs
from quorate.bounds import Ball, Box, Interval
from quorate.exceptions import ParameterError
from quorate.grid import Grid, choose_grid
from quorate.guarantees import Guarantee, Numerics, Relation
from quorate.means.absence import (
    OrAbsent,
    gaussian_vote,
    hardly_anybody,
    laplace_vote,
    marked,
    present_users,
)
from quorate.means.shrinking import clipped_mean
from quorate.means.weighted_users import WeightedUsers

BOUNDS = [
    Ball(3.0, dimension=2),
    Ball(0.7, centre=[1.0, -5.0, 2.0]),
    Interval(-2.0, 2.0),
    Box([0.0, -1.0], [5.0, 1.0]),
    Interval(0.0, 1.0, centre=0.0),
]
WILD = np.array([-1e300, -3.0, 0.0, 0.9, 4.0, 1e9, np.nan])


def rows_of(bound, rng):
    rows = rng.choice(WILD, size=(40, bound.dimension))
    rows[::5] = np.nan
    return marked(rows)


class TestSensitivity:
    @pytest.mark.parametrize("bound", BOUNDS, ids=str)
    @pytest.mark.parametrize("size", [0.1, 1.0, 7.0])
    def test_no_two_users_are_further_apart_than_claimed(self, bound, size):
        both = OrAbsent(bound, size * bound.l2_radius)
        grid = Grid(both, 2.0**-5)
        steps = grid.encode(rows_of(bound, np.random.default_rng(0)))
        for relation in Relation:
            others = steps if relation is Relation.REPLACE else np.zeros((1, steps.shape[1]))
            for a, b in itertools.product(steps, others):
                assert np.abs(a - b).sum() <= grid.l1_sensitivity(relation)
                assert ((a - b) ** 2).sum() <= grid.l2_sensitivity_squared(relation)

    def test_a_twin_that_forgets_the_votes_is_caught(self):
        bound = Ball(3.0, dimension=2)
        both = Grid(OrAbsent(bound, 7.0 * gaussian_vote(bound)), 2.0**-5)
        inner = Grid(bound, 2.0**-5)
        steps = both.encode(rows_of(bound, np.random.default_rng(0)))
        farthest = max(((a - b) ** 2).sum() for a, b in itertools.product(steps, steps))
        assert farthest > inner.l2_sensitivity_squared(Relation.REPLACE)

    @pytest.mark.parametrize("bound", BOUNDS, ids=str)
    def test_votes_are_free(self, bound):
        for vote, norm in ((laplace_vote, 0), (gaussian_vote, 1)):
            if vote(bound) <= 0:
                continue
            both = OrAbsent(bound, vote(bound))
            change = bound.change(Relation.REPLACE)[norm]
            assert both.change(Relation.REPLACE)[norm] == pytest.approx(change, rel=1e-9)
            grid = choose_grid(both, n_users=10)
            exact = bound.change_in_steps(grid.step, Relation.REPLACE)[norm]
            claimed = both.change_in_steps(grid.step, Relation.REPLACE)[norm]
            assert claimed == pytest.approx(exact, rel=1e-9)


class TestExactAudit:
    """A mean and the number of absent users, together, in a world where users may be absent."""

    world = SmallWorld(records=(-9.0, 1.5, np.nan), n_users=2)
    delta = 0.01

    @staticmethod
    def law(*, multiplier=1.0, effective=2.0):
        def of(records):
            users = WeightedUsers(np.array(records)[:, None])

            def run(_):
                size = effective or float(max(1, np.count_nonzero(users.present)))
                return clipped_mean(
                    users,
                    np.array([1.0]),
                    account=gaussian_account(1.0 / multiplier),
                    radius=1.0,
                    noise_multiplier=multiplier,
                    effective_users=size,
                    relation=Relation.REPLACE,
                ).mean

            return enumerate_runs(run, cells=Cells(width=1.0, reach=4.0))

        return of

    @property
    def claim(self):
        epsilon = price(Gaussian(1.0), delta=self.delta)
        return Guarantee(epsilon=epsilon, delta=self.delta, numerics=Numerics.VOID)

    def test_the_claim_holds(self):
        audit = audit_exactly(self.law(), self.world, self.claim)
        assert audit.holds, str(audit)

    def test_twins_are_caught(self):
        assert not audit_exactly(
            self.law(multiplier=0.6), self.world, self.claim, thorough=False
        ).holds
        # Dividing by the true number of present users.
        assert not audit_exactly(
            self.law(effective=None), self.world, self.claim, thorough=False
        ).holds


class TestNumbers:
    def test_few_absent_users_do_not_move_the_divisor(self):
        assert present_users(100.0, 3.0, 3.0) == (pytest.approx(100.0, abs=1.0), 3.0)
        assert present_users(100.0, -50.0, 3.0) == (100.0, 3.0)
        assert present_users(100.0, 30.0, 3.0) == (pytest.approx(70.0, abs=0.1), 3.0)

    @pytest.mark.parametrize("missing", range(0, 40, 2))
    def test_the_threshold_costs_little_wherever_it_lies(self, missing):
        """Against dividing by the noisy number itself, under Laplace noise of scale 2."""
        noisy = missing + 2.0 * np.random.default_rng(0).laplace(size=20_000)
        off = [200.0 - missing - present_users(200.0, float(a), 2.0)[0] for a in noisy]
        assert np.mean(np.square(off)) < (0.25 if missing == 0 else 1.5) * 2.0 * 2.0**2

    def test_hardly_anybody_is_never_taken_for_everybody(self):
        assert hardly_anybody(100.0, 99.0, 3.0)
        assert not hardly_anybody(100.0, 90.0, 3.0)
        assert present_users(100.0, 90.0, 3.0) == (pytest.approx(10.0), 3.0)

    def test_a_vote_has_a_size(self):
        with pytest.raises(ParameterError):
            OrAbsent(Ball(1.0, dimension=1), 0.0)

    def test_bounds_with_other_votes_differ(self):
        ball = Ball(1.0, dimension=1)
        assert OrAbsent(ball, 1.0) == OrAbsent(Ball(1.0, dimension=1), 1.0)
        assert OrAbsent(ball, 1.0) != OrAbsent(ball, 2.0)
