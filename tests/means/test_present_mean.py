"""The mean of those who are there: votes of absent users are free, and no pair of users moves a
sum by more than is claimed, and clipping keeps its claim.
"""

import itertools
import math

import numpy as np
import pytest

from drawing import gaussian_account
from moves import loss_of
from quorate.auditing import Cells, SmallWorld, audit_exactly, enumerate_runs
from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.bounds.grid import Ball, Box, Grid, Interval
from quorate.core.bounds.or_absent import OrAbsent
from quorate.core.guarantees import Gaussian, Guarantee, Numerics, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError
from quorate.means.present_mean import (
    PureRun,
    gaussian_vote,
    hardly_anybody,
    laplace_vote,
    marked,
    present_users,
)
from quorate.means.routes.gaussian_routes import GaussianRun
from quorate.mechanisms.sums import choose_grid
from sealing import vectors_of

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
            rows = np.array(records)[:, None]
            users = vectors_of(rows)

            def run(_):
                there = float(max(1, np.count_nonzero(~np.isnan(rows))))
                account = gaussian_account(1.0 / multiplier)
                clip = GaussianRun(users=users, reach=1.0, account=account)
                return clip.clip("test.").mean * (1.0 if effective else 2.0 / there)

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


RELATIONS = pytest.mark.parametrize("relation", list(Relation))


def pure(vectors, *, epsilon=1.0, half=1000.0, relation=Relation.REPLACE):
    vectors = np.asarray(vectors, dtype=float)
    return PureRun(
        users=vectors_of(vectors, relation=relation),
        half_widths=np.full(vectors.shape[1], half),
        account=Account.open(epsilon=epsilon, relation=relation),
    )


class TestAuditOfClipping:
    world = SmallWorld(records=(-1.0, 0.25, 1.0, math.nan), n_users=2)

    @staticmethod
    def law(relation, epsilon):
        def of(records):
            def run(_):
                values = np.array(records, dtype=float).reshape(len(records), 1)
                return pure(values, epsilon=epsilon, half=1.0, relation=relation).clip("audit").mean

            return enumerate_runs(run, cells=Cells(width=1.0, reach=3.0))

        return of

    @RELATIONS
    def test_clipping_keeps_its_claim(self, relation):
        claim = Guarantee(epsilon=1.0, relation=relation, numerics=Numerics.VOID)
        audit = audit_exactly(self.law(relation, 1.0), self.world, claim)
        assert audit.holds, str(audit)
        assert not audit_exactly(self.law(relation, 2.5), self.world, claim, thorough=False).holds


class TestBox:
    @RELATIONS
    def test_no_user_moves_a_box_farther_than_is_paid_for(self, relation):
        rng = np.random.default_rng(3)
        people = rng.normal(size=(20, 3))
        for other in (np.full(3, np.nan), np.full(3, 1e308), np.array([-9.0, 9.0, 9.0])):
            neighbour = people.copy()
            neighbour[0] = other
            if relation is Relation.ADD_REMOVE:
                neighbour = people[1:]

            def run(vectors):
                return pure(vectors, half=1.0, relation=relation).clip("test").mean.tolist()

            _, loss, _ = loss_of(run, people, neighbour)
            assert 0.0 < loss <= 1.0 + 1e-9

    @pytest.mark.parametrize("broken", [False, True])
    def test_a_side_that_is_paid_for_by_half_is_caught(self, broken, monkeypatch):
        honest = Box.joint_in_steps

        def half(self, step, relation):
            law, inside, change = honest(self, step, relation)
            return law, inside, change // 2

        if broken:
            monkeypatch.setattr(Box, "joint_in_steps", half)
        people = np.zeros((20, 3))
        corner, opposite = people.copy(), people.copy()
        corner[0], opposite[0] = 1.0, -1.0
        _, loss, _ = loss_of(lambda rows: pure(rows, half=1.0).clip("test"), corner, opposite)
        # An absent user who votes is still paid for: half a side and a vote, three quarters of it.
        assert (loss > 1.3) if broken else loss == pytest.approx(1.0, abs=1e-6)

    @RELATIONS
    def test_a_box_gives_each_coordinate_noise_in_its_own_width(self, relation):
        halves = np.array([1.0, 100.0])
        people = np.tile(0.5 * halves, (400, 1))
        errors = []
        for seed in range(300):
            with use_noise(SeededNoise(seed)):
                run = PureRun(
                    users=vectors_of(people, relation=relation),
                    half_widths=halves,
                    account=Account.open(epsilon=1.0, relation=relation),
                )
                release = run.clip("test")
            errors.append((release.mean - people[0]) / halves)
        stated = release.parts.noise / halves
        assert stated[0] == pytest.approx(stated[1])
        if relation is Relation.REPLACE:
            # Twice a half side, times 2 for two coordinates, over 400 users; Laplace noise has 2.8.
            assert stated[0] == pytest.approx(2.0 * 2.0 / 400, rel=0.02)
            assert np.std(errors, axis=0) == pytest.approx(stated, rel=0.15)
