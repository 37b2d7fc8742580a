"""What lifts of all rounds say about users outside of the last ball, without noise and with it."""

import numpy as np
import pytest

from quorate.core.bounds.lifted_ball import lift
from quorate.means.users_belief import Look, UsersBelief, best_size

RADII = 0.5 ** np.arange(11.0)
LAST = RADII[-1]


def looks_at(distances, *, dimension=1, noise=0.02, seed=None, off=0.0):
    """Return the looks of balls that shrink around the origin of users at these distances."""
    rng = np.random.default_rng(seed)
    jitter = np.zeros(RADII.size) if seed is None else noise * rng.normal(size=RADII.size)
    centre = np.zeros(dimension)
    centre[0] = off
    return [
        Look(centre, radius, float(lift(distances / radius).mean()) + moved, noise)
        for radius, moved in zip(RADII, jitter, strict=True)
    ]


def belief_of(looks, *, dimension=1, **known):
    centre = np.zeros(dimension)
    return UsersBelief.of(looks, centre=centre, around=0.0, reach=1.0, **known)


def pull(looks, *, dimension=1, radius=LAST):
    return belief_of(looks, dimension=dimension).likely_pull(radius)


def true_pull(distances, radius=LAST):
    """Return how far the mean moves if all of the users outside are on one side."""
    return float(np.maximum(distances - radius, 0.0).mean())


class TestOneSide:
    @pytest.mark.parametrize("seed", [None, 1, 2])
    def test_users_around_the_centre_are_hardly_pulled(self, seed):
        users = np.abs(np.random.default_rng(0).normal(size=400)) * LAST / 3.0
        assert pull(looks_at(users, seed=seed)) < 0.3 * LAST

    @pytest.mark.parametrize("seed", [None, 1, 2])
    @pytest.mark.parametrize("far", [4.0, 30.0, 300.0])
    def test_three_in_ten_far_from_a_number_that_the_others_hold(self, far, seed):
        rng = np.random.default_rng(0)
        users = (rng.random(400) < 0.3) * rng.exponential(far * LAST, size=400)
        truth = true_pull(users)
        assert truth <= pull(looks_at(users, seed=seed)) <= 4.0 * truth

    def test_larger_balls_tell_how_far_the_others_are(self):
        """The last ball sees the same three in ten outside, wherever they are."""
        near, far = (np.where(np.arange(100) < 30, many * LAST, 0.0) for many in (8.0, 500.0))
        assert looks_at(near)[-1].lift == looks_at(far)[-1].lift
        assert pull(looks_at(near)) < 0.1 * pull(looks_at(far))

    def test_noise_leaves_more_possible(self):
        users = np.abs(np.random.default_rng(0).normal(size=400)) * LAST / 3.0
        assert pull(looks_at(users, noise=1.0)) > 2.0 * pull(looks_at(users))

    def test_a_ball_that_was_elsewhere_saw_users_far_from_its_own_centre(self):
        """Low lifts of a ball beside the users say nothing about users far from the mean."""
        beside, around = (
            [*looks_at(np.zeros(100)), Look(np.array([off]), 2.0 * LAST, 0.0, 0.02)]
            for off in (2.0 * LAST, 0.0)
        )
        assert pull(beside) < 0.5 * pull(around)


class TestManyDimensions:
    def test_users_farther_out_may_all_be_on_one_side(self):
        users = np.where(np.arange(100) < 25, 20.0 * LAST, LAST / 4.0)
        truth = true_pull(users)
        for d in (2, 3, 20):
            assert 0.5 * truth < pull(looks_at(users, dimension=d), dimension=d) < 2.0 * truth

    @pytest.mark.parametrize("d", [1, 4, 64])
    def test_directions_of_users_around_one_centre_differ(self, d):
        distances = np.random.default_rng(0).gamma(d, 1.0 / d, size=200_000)
        truth = np.maximum(distances - 1.2, 0.0).mean() / np.sqrt(d)
        belief = belief_of([], dimension=d, known=1.0)
        assert belief.likely_pull(1.2) == pytest.approx(truth, rel=0.05, abs=1e-4)
        assert belief.mean_pull(1.2) == belief.likely_pull(1.2)


class TestSize:
    def test_lifts_that_are_all_low_may_be_those_of_fewer_users(self):
        """A thirtieth of the users is missing, or far away: only looks at large balls tell."""
        few = [
            Look(look.centre, look.radius, look.lift * 0.94, 0.02) for look in looks_at(np.zeros(9))
        ]
        assert belief_of(few).mean_pull(LAST) > 4.0 * belief_of(few, size_error=0.1).mean_pull(LAST)

    def test_lifts_that_fall_are_not(self):
        users = np.where(np.arange(100) < 25, 30.0 * LAST, 0.0)
        found = belief_of(looks_at(users), size_error=0.1).likely_pull(LAST)
        assert true_pull(users) / 2.0 < found < 2.0 * true_pull(users)


class TestRadius:
    @pytest.mark.parametrize("d", [1, 5, 50])
    @pytest.mark.parametrize("noise", [0.003, 0.1])
    def test_no_other_radius_errs_less(self, d, noise):
        distances = np.random.default_rng(1).gamma(d, 1.0 / d, size=20_000)

        def error(radius):
            pulled = np.maximum(distances - radius, 0.0).mean() / np.sqrt(d)
            return np.hypot(noise * radius, pulled)

        size, least = best_size(d, noise)
        assert least == pytest.approx(error(size), rel=0.1)
        assert least < 1.1 * min(error(radius) for radius in np.geomspace(0.05, 20.0, 60))
        known = belief_of([], dimension=d, known=0.01)
        radius, expected = known.best_radius(noise, reach=1.0)
        assert (radius, expected) == pytest.approx((0.01 * size, 0.01 * least), rel=0.15)
        assert known.least_error(noise) == pytest.approx(0.01 * least)

    def test_users_farther_out_make_it_wider_unless_noise_is_worse(self):
        users = np.where(np.arange(100) < 25, 30.0 * LAST, LAST / 4.0)
        looks = looks_at(users)
        near = belief_of(looks, one_centre=True).best_radius(0.01, reach=1.0)[0]
        belief = belief_of(looks)
        assert belief.best_radius(0.01, reach=1.0)[0] > 10.0 * near
        assert belief.best_radius(10.0, reach=1.0)[0] < 2.0 * near

    def test_knowing_the_population_is_worth_something_until_looks_tell_it(self):
        users = np.full(400, LAST / 3.0)
        vague, sure = (belief_of(looks_at(users, noise=noise)) for noise in (1.0, 0.005))
        for belief, least in ((vague, 0.25), (sure, 0.0)):
            loss = belief.best_radius(0.05, reach=1.0)[1]
            assert loss - belief.least_error(0.05) >= least * loss
        assert sure.best_radius(0.05, reach=1.0)[1] < 1.2 * sure.least_error(0.05)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("radius", [1.0, 1e-9, 1e-250])
@pytest.mark.parametrize("noise", [1e-6, 1.0, 1e9])
@pytest.mark.parametrize("height", [-1e12, -3.0, 0.0, 1.7, 1e12])
def test_whatever_noise_says_a_length_within_reach_is_stated(height, noise, radius):
    looks = [Look(np.zeros(1), 1.0, height, noise), Look(np.ones(1), radius, -height, noise)]
    assert 0.0 <= pull(looks, radius=radius) <= 1.0
