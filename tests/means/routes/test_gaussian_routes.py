"""Routes under a Gaussian budget: the right one is taken, and every way costs the same."""

import math

import numpy as np
import pytest

from quorate.auditing import RecordedNoise, replay
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.means.routes.gaussian_routes import GaussianRun
from sealing import vectors_of

RNG = np.random.default_rng(0)


def crowd(n, d, *, centre=200.0, scale=1.0):
    return RNG.normal(size=(n, d)) * scale + centre


def run_on(vectors, *, epsilon=1.0, reach=1000.0, **changes):
    d = vectors.shape[1]
    relation = changes.pop("relation", Relation.REPLACE)
    parameters = {
        "users": vectors_of(vectors, counts=changes.pop("counts", None), relation=relation),
        "reach": reach * math.sqrt(d),
        "account": Account.open(epsilon=epsilon, delta=1e-6, relation=relation),
    }
    return GaussianRun(**(parameters | changes))


def adapted(vectors, *, seed=0, **changes):
    with use_noise(SeededNoise(seed)):
        return run_on(vectors, **changes).adapt()


class TestStated:
    def test_three_in_ten_users_who_lie_apart_from_the_others(self):
        """The radius may reach for them or not; what is left outside is all on one side."""
        rng = np.random.default_rng(4)
        kept = 0
        for seed in range(16):
            apart = (rng.random((500, 1)) < 0.3) * 2.0
            users = apart + 0.4 * rng.normal(size=(500, 20))
            release = adapted(users, seed=seed, reach=100.0)
            assert release.route.name == "ball"
            kept += np.linalg.norm(release.mean - users.mean(axis=0)) <= release.error.bound
        # 8 without the allowance.
        assert kept >= 13

    def test_users_around_one_centre_are_stated_little_more_than_the_noise(self):
        release = adapted(crowd(1000, 30, centre=0.0), reach=100.0)
        assert release.error.bound < 2.5 * release.error.standard_error


class TestRoutes:
    @pytest.mark.parametrize(("n", "d"), [(5000, 3), (1000, 150), (200, 20)])
    def test_a_ball_drifts_to_users_in_a_wide_range(self, n, d):
        release = adapted(crowd(n, d))
        assert release.route.name == "ball"
        assert release.error.standard_error < 60.0

    def test_hardly_any_users_are_clipped_and_told_so(self):
        release = adapted(crowd(5, 20))
        assert release.route.name == "clip"
        assert "too few users" in release.route.reason

    def test_a_public_spread_needs_no_more_rounds(self):
        near, known = (adapted(crowd(600, 3), spread=spread) for spread in (None, 1.8))
        assert known.error.standard_error < 1.2 * near.error.standard_error

    @pytest.mark.parametrize("spread", [None, 1.5])
    def test_add_or_remove_drifts_too(self, spread):
        ball = adapted(crowd(3000, 2), relation=Relation.ADD_REMOVE, spread=spread)
        assert ball.route.name == "ball"
        # The number of users is noisy, which counts for the distance to the last centre only.
        assert np.linalg.norm(ball.mean - 200.0) < 1.0

    def test_rare_values_are_not_cut_away(self):
        rare = (np.arange(2000) % 50 == 0).astype(float)[:, None]
        release = adapted(rare, reach=1.0)
        assert abs(release.mean[0] - 0.02) < 0.02
        assert abs(release.mean[0] - 0.02) <= release.error.bound


class TestCost:
    """The squared multipliers of all Gaussian draws never exceed the account."""

    @staticmethod
    def spent(run, noise):
        """What was taken; every draw was Gaussian, or the choice of a radius."""
        names = {"discrete_gaussian", "permute_and_flip", "gumbel_max", "uniform_below"}
        assert {draw.method for draw in noise.log} <= names
        return float(run.account.square - run.account.square_left)

    @pytest.mark.parametrize(
        ("n", "d", "changes"),
        [
            (100, 20, {}),
            (1000, 150, {}),
            (1000, 150, {"hostile": 0.1}),
            (5000, 3, {}),
            (3000, 3, {"counts": RNG.integers(1, 500, size=3000)}),
            (3000, 3, {"counts": RNG.integers(1, 500, size=3000), "records": 100.0}),
            (2000, 2, {"relation": Relation.ADD_REMOVE}),
            (150, 2, {"relation": Relation.ADD_REMOVE}),
        ],
    )
    def test_every_way_stays_inside_the_account_and_uses_it_up(self, n, d, changes):
        noise = RecordedNoise(1)
        with use_noise(noise):
            run = run_on(crowd(n, d), **changes)
            run.adapt()
        assert self.spent(run, noise) == pytest.approx(float(run.account.square), rel=1e-2)


class TestWeights:
    def test_users_with_many_records_count_more_and_the_error_falls(self):
        counts = np.exp(RNG.uniform(0.0, math.log(1000.0), size=3000)).astype(np.int64)
        vectors = 200.0 + RNG.normal(size=(3000, 10)) / np.sqrt(counts)[:, None]
        equal = [np.linalg.norm(adapted(vectors, seed=s).mean - 200.0) for s in range(5)]
        weighted = [
            np.linalg.norm(adapted(vectors, seed=s, counts=counts).mean - 200.0) for s in range(5)
        ]
        assert np.mean(weighted) < np.mean(equal) / 2
        assert adapted(vectors, counts=counts).route.records is not None

    def test_weights_nobody_has_are_dropped(self):
        counts = np.ones(2000, dtype=np.int64)
        release = adapted(crowd(2000, 3), counts=counts, records=1e9)
        assert release.route.records is None
        assert np.linalg.norm(release.mean - 200.0) < 1.0


class TestReplay:
    @pytest.mark.parametrize(
        ("n", "d", "changes"),
        [
            (150, 2, {"epsilon": 8.0}),
            (400, 30, {"epsilon": 4.0}),
            (200, 2, {"epsilon": 8.0, "hostile": 0.1}),
            (60, 5, {}),
        ],
        ids=["ball", "many", "robust", "few"],
    )
    def test_neighbours_with_the_same_answers_look_the_same(self, n, d, changes):
        vectors = crowd(n, d)
        for seed, other in enumerate((-1000.0, 1000.0, 200.0)):
            neighbour = vectors.copy()
            neighbour[seed] = other

            def run(values):
                return run_on(values, **changes).adapt()

            report = replay(run, vectors, neighbour, seed=seed)
            assert report.same, str(report)

    def test_a_user_who_appears_leaves_no_other_trace(self):
        vectors = crowd(2000, 2)
        for seed in range(3):
            report = replay(
                lambda v: run_on(v, relation=Relation.ADD_REMOVE, epsilon=3.0).adapt(),
                vectors,
                vectors[1:],
                seed=seed,
            )
            assert report.same, str(report)

    def test_records_of_one_user_leave_no_other_trace(self):
        vectors = crowd(400, 2)
        counts = RNG.integers(1, 50, size=400)
        more = counts.copy()
        more[0] = 10**9

        def run(held):
            return run_on(vectors, counts=held, epsilon=6.0).adapt()

        assert replay(run, counts, more).same

    def test_a_twin_that_takes_the_cap_from_the_data_is_caught(self):
        vectors = crowd(400, 2)
        counts = RNG.integers(1, 50, size=400)
        more = counts.copy()
        more[0] = 10**9

        def leaky(held):
            cap = float(held.max())
            return run_on(vectors, counts=held, records=cap, epsilon=6.0).adapt()

        assert not replay(leaky, counts, more).same
