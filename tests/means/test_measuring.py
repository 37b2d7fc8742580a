"""A ball that shrinks to measured radii: budget, replay, and where it ends."""

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.auditing import RecordedNoise, replay
from quorate.guarantees import Relation
from quorate.means.measuring import can_shrink, shrink_by_measuring
from quorate.noise import SeededNoise, use_noise
from sealing import vectors_of

RNG = np.random.default_rng(0)


def shrunk(vectors, *, mu=0.24, relation=Relation.ADD_REMOVE, account=None):
    return shrink_by_measuring(
        vectors_of(vectors, relation=relation),
        reach=1000.0,
        account=account or gaussian_account(mu, relation),
        n_users=3000.0,
        relation=relation,
    )


class TestBudget:
    @pytest.mark.parametrize("scale", [1e-6, 1.0, 400.0])
    def test_at_most_half_of_the_account_is_spent(self, scale):
        noise = RecordedNoise(0)
        with use_noise(noise):
            account = gaussian_account(0.24, Relation.ADD_REMOVE)
            shrunk(RNG.normal(size=(3000, 3)) * scale, account=account)
        assert account.square_left >= 0.49 * 0.24**2
        assert {draw.method for draw in noise.log} == {"discrete_gaussian"}


class TestUtility:
    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("scale", [1.0, 30.0])
    def test_the_ball_ends_around_the_users(self, relation, scale):
        vectors = RNG.normal(size=(3000, 3)) * scale + 300.0
        with use_noise(SeededNoise(0)):
            centre, radius = shrunk(vectors, relation=relation)
        inside = np.mean(np.linalg.norm(vectors - centre, axis=1) <= radius)
        # The search errs by less than twice the share it leaves out, except with 1e-6.
        assert inside > 0.6
        assert radius < 30 * scale + 20

    def test_users_all_over_the_range_leave_it_as_it_is(self):
        with use_noise(SeededNoise(0)):
            _, radius = shrunk(RNG.uniform(-577.0, 577.0, size=(3000, 3)))
        assert radius > 300.0

    def test_more_users_make_it_possible(self):
        possible = [
            can_shrink(n_users=n, dimension=20, square=0.05, diameter=1.0)
            for n in (100, 1000, 10_000)
        ]
        assert possible == sorted(possible)
        assert possible[-1]


class TestReplay:
    def test_neighbours_with_the_same_answers_look_the_same(self):
        vectors = RNG.normal(size=(3000, 2))
        for seed in range(3):
            report = replay(shrunk, vectors, vectors[1:], seed=seed)
            assert report.same, str(report)

    def test_a_twin_that_starts_at_the_data_is_caught(self):
        vectors = RNG.normal(size=(3000, 2))
        neighbour = np.concatenate([vectors, [[900.0, 0.0]]])

        def leaky(values):
            return shrink_by_measuring(
                vectors_of(values, relation=Relation.ADD_REMOVE),
                reach=float(np.abs(values).max()),
                account=gaussian_account(0.24, Relation.ADD_REMOVE),
                n_users=3000.0,
                relation=Relation.ADD_REMOVE,
            )

        assert not replay(leaky, vectors, neighbour).same
