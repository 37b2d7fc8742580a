"""What lifts of all rounds say about users outside of the last ball, without noise and with it."""

import numpy as np
import pytest

from quorate.core.bounds.lifted_ball import lift
from quorate.means.pull_belief import Look, likely_pull

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


def pull(looks, *, dimension=1, radius=LAST):
    return likely_pull(looks, centre=np.zeros(dimension), radius=radius, reach=1.0)


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
        assert pull(looks_at(users, noise=0.5)) > 2.0 * pull(looks_at(users))

    def test_a_ball_that_was_elsewhere_saw_users_far_from_its_own_centre(self):
        """Low lifts of a ball beside the users say nothing about users far from the mean."""
        beside, around = (
            [*looks_at(np.zeros(100)), Look(np.array([off]), 2.0 * LAST, 0.0, 0.02)]
            for off in (2.0 * LAST, 0.0)
        )
        assert pull(beside) < 0.5 * pull(around)


def test_directions_of_many_dimensions_differ():
    users = np.where(np.arange(100) < 30, 20.0 * LAST, LAST / 4.0)
    one, many = (pull(looks_at(users, dimension=d), dimension=d) for d in (2, 3))
    assert 0.2 < many / one < 0.4


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("radius", [1.0, 1e-9, 1e-250])
@pytest.mark.parametrize("noise", [1e-6, 1.0, 1e9])
@pytest.mark.parametrize("height", [-1e12, -3.0, 0.0, 1.7, 1e12])
def test_whatever_noise_says_a_length_within_reach_is_stated(height, noise, radius):
    looks = [Look(np.zeros(1), 1.0, height, noise), Look(np.ones(1), radius, -height, noise)]
    assert 0.0 <= pull(looks, radius=radius) <= 1.0
