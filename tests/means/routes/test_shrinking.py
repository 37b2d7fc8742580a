"""Clipped means and shrinking balls: priced noise, right centre, and a lost centre found again."""

import math

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.accounting.compose import price
from quorate.auditing import Cells, RecordedNoise, SmallWorld, audit_exactly, enumerate_runs, replay
from quorate.guarantees import Gaussian, Guarantee, Numerics, Relation
from quorate.means.routes.budget_split import Setting, plan_shrinking
from quorate.means.routes.shrinking import (
    clipped_mean,
    clipped_total,
    shrink,
    total_and_absent,
)
from quorate.noise import SeededNoise, use_noise
from sealing import vectors_of

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(2000, 4)) + np.array([30.0, -20.0, 5.0, 0.0])


def run_shrink(vectors, *, hostile=0.0, weights=None, effective=None):
    n = len(vectors)
    setting = Setting(
        effective_users=effective or n,
        dimension=4,
        reach=200.0,
        spread=2.0,
        drift=max(0.1, 1.25 * hostile),
    )
    account = gaussian_account(0.25)
    plan = plan_shrinking(setting, start=200.0, square=float(account.square_left))
    return shrink(
        vectors_of(vectors, weights),
        np.zeros(4),
        start=200.0,
        plan=plan,
        setting=setting,
        account=account,
        n_users=n,
        hostile=hostile,
        relation=Relation.REPLACE,
    )


class TestNoise:
    @pytest.mark.parametrize("relation", list(Relation))
    def test_a_clipped_mean_asks_for_the_noise_that_is_priced(self, relation):
        # A draw that sees nobody missing: the mean is divided by the public number of users.
        noise, users = RecordedNoise(1), vectors_of(VECTORS, relation=relation)
        with use_noise(noise):
            released = clipped_mean(
                users,
                np.zeros(4),
                account=gaussian_account(0.2, relation),
                radius=3.0,
                noise_multiplier=5.0,
                effective_users=2000.0,
                relation=relation,
            )
        grid, _ = clipped_total(users, np.zeros(4), 3.0)
        if relation is Relation.REPLACE:
            with_absent, _ = total_and_absent(users, np.zeros(4), 3.0)
            # The number of absent users is free.
            squared = grid.l2_sensitivity_squared(relation) * grid.step**2
            free = with_absent.l2_sensitivity_squared(relation) * with_absent.step**2
            assert free == pytest.approx(squared, rel=1e-9)
            grid = with_absent
        [draw] = noise.log
        sensitivity = math.sqrt(grid.l2_sensitivity_squared(relation))
        assert draw.shape == (grid.bound.dimension,)
        assert draw.parameters["scale"] >= 5.0 * sensitivity
        error = released.standard_error
        assert error == pytest.approx(draw.parameters["scale"] * grid.step / 2000.0, rel=1e-6)


class TestExactAudit:
    """The mean in a ball around a released centre, on users far outside of it, with weights."""

    world = SmallWorld(records=((-9.0, 1.0), (1.5, 0.5), (2.0, 1.0), (50.0, 1.0)), n_users=2)
    delta = 0.01

    @staticmethod
    def law(*, multiplier=1.0, radius=1.0, total=None):
        def of(records):
            values, weights = (np.array(part) for part in zip(*records, strict=True))
            users = vectors_of(values[:, None], weights)

            def run(_):
                size = 2.0 if total is None else total(weights)
                return clipped_mean(
                    users,
                    np.array([1.0]),
                    account=gaussian_account(1.0 / multiplier),
                    radius=radius,
                    noise_multiplier=multiplier,
                    effective_users=size,
                    relation=Relation.REPLACE,
                ).mean

            return enumerate_runs(run, cells=Cells(width=0.1, reach=5.0))

        return of

    @property
    def claim(self):
        epsilon = price(Gaussian(1.0), delta=self.delta)
        return Guarantee(epsilon=epsilon, delta=self.delta, numerics=Numerics.VOID)

    def test_the_claim_holds_and_is_nearly_reached(self):
        audit = audit_exactly(self.law(), self.world, self.claim)
        assert audit.holds, str(audit)
        assert audit.tightness > 0.9

    def test_a_twin_with_less_noise_is_caught(self):
        assert not audit_exactly(
            self.law(multiplier=0.8), self.world, self.claim, thorough=False
        ).holds

    def test_a_twin_that_divides_by_the_true_sum_of_weights_is_caught(self):
        leaky = self.law(total=lambda weights: float(weights.sum()))
        assert not audit_exactly(leaky, self.world, self.claim, thorough=False).holds


class TestAbsentUsers:
    @pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
    def test_the_ball_ends_at_the_mean_of_those_who_are_present(self, share):
        vectors = VECTORS.copy()
        vectors[: int(2000 * share)] = np.nan
        with use_noise(SeededNoise(1)):
            final = run_shrink(vectors)
        # Ten times the noise: the probability of a false alarm is below 1e-6.
        assert np.linalg.norm(final.mean - np.nanmean(vectors, axis=0)) < 10 * final.standard_error
        assert final.standard_error < 0.2

    def test_neighbours_with_the_same_answers_look_the_same(self):
        neighbour = VECTORS.copy()
        neighbour[0] = np.nan
        report = replay(run_shrink, VECTORS, neighbour)
        assert report.same, str(report)


class TestUtility:
    def test_the_ball_ends_at_the_mean(self):
        with use_noise(SeededNoise(1)):
            final = run_shrink(VECTORS)
        # Ten times the noise: the probability of a false alarm is below 1e-6.
        assert np.linalg.norm(final.mean - VECTORS.mean(axis=0)) < 10 * final.standard_error
        assert final.standard_error < 0.1

    def test_hostile_users_do_not_drag_it_away(self):
        vectors = VECTORS.copy()
        vectors[:200] = 100.0
        with use_noise(SeededNoise(1)):
            final = run_shrink(vectors, hostile=0.1)
        assert np.linalg.norm(final.mean - VECTORS.mean(axis=0)) < 0.6
        with use_noise(SeededNoise(1)):
            trusting = run_shrink(vectors)
        assert np.linalg.norm(trusting.mean - VECTORS.mean(axis=0)) > 2.0

    def test_weights_count(self):
        vectors = VECTORS.copy()
        vectors[1000:] += 3.0
        weights = np.where(np.arange(2000) < 1000, 1.0, 0.05)
        with use_noise(SeededNoise(1)):
            final = run_shrink(vectors, weights=weights, effective=float(weights.sum()))
        assert np.linalg.norm(final.mean - VECTORS[:1000].mean(axis=0)) < 0.8


class TestReplay:
    def test_neighbours_with_the_same_answers_look_the_same(self):
        neighbour = VECTORS.copy()
        neighbour[0] = -199.0
        for seed in range(3):
            report = replay(run_shrink, VECTORS, neighbour, seed=seed)
            assert report.same, str(report)

    def test_a_twin_whose_radius_comes_from_the_data_is_caught(self):
        def leaky(vectors):
            radius = float(np.linalg.norm(vectors, axis=1).max())
            return clipped_mean(
                vectors_of(vectors),
                np.zeros(4),
                account=gaussian_account(0.2),
                radius=radius,
                noise_multiplier=5.0,
                effective_users=2000.0,
                relation=Relation.REPLACE,
            )

        neighbour = VECTORS.copy()
        neighbour[0] = -199.0
        assert not replay(leaky, VECTORS, neighbour).same
