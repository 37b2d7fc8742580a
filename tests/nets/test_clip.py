"""The clip follows from lifts and from public noise, and errs hardly more than the best one."""

import numpy as np
import pytest

from quorate.core.bounds.lifted_ball import lift
from quorate.means.spread_belief import SpreadBelief
from quorate.nets.clip import LengthBelief

RNG = np.random.default_rng(0)
USERS = 4000
LENGTHS = {
    "alike": 2.0 * np.exp(0.1 * RNG.normal(size=USERS)),
    "uneven": 0.3 * np.exp(0.8 * RNG.normal(size=USERS)),
    "seven of ten are predicted well": np.where(np.arange(USERS) % 10 < 7, 0.02, 2.0)
    * np.exp(0.2 * RNG.normal(size=USERS)),
}
FIRST = 3.0


def error(lengths, radius, noise):
    """Return the error of a step: of its noise, and at most of its clip."""
    return np.hypot(noise * radius, np.maximum(lengths - radius, 0.0).mean())


def followed(lengths, *, noise, cone, steps=60):
    """Return the radius after some steps on users with gradients of these lengths."""
    belief, radius = LengthBelief.at_most(20.0 * FIRST, cone=cone), FIRST
    for _ in range(steps):
        height = float(lift(lengths / radius, cone=cone).mean())
        belief = belief.after(height, radius=radius, noise=0.01, users=USERS)
        radius = min(2.0 * radius, max(radius / 2.0, belief.radius(noise=noise)))
    return radius


# A mean lift is one number: that of the cone does not tell two kinds of people from uneven ones.
CASES = [
    (name, noise, cone)
    for name in LENGTHS
    for noise in (0.03, 0.3, 3.0)
    for cone in (False, True)
    if not (cone and noise < 0.3 and name.startswith("seven"))
]


@pytest.mark.parametrize(("name", "noise", "cone"), CASES)
def test_a_step_errs_hardly_more_than_with_the_best_radius(name, noise, cone):
    lengths = LENGTHS[name]
    best = min(error(lengths, radius, noise) for radius in np.geomspace(1e-3, 50.0, 500))
    assert error(lengths, followed(lengths, noise=noise, cone=cone), noise) < 2.0 * best


def test_a_radius_at_the_spread_slides_below_nearly_everybody():
    """The rule before: where many are predicted well it clips all others to nothing."""
    lengths, radius = LENGTHS["seven of ten are predicted well"], FIRST
    belief = SpreadBelief.at_most(20.0 * FIRST)
    for _ in range(60):
        height = float(lift(lengths / radius).mean())
        belief = belief.after(height, radius=radius, around=0.0, noise=0.01, users=USERS)
        radius = min(2.0 * radius, max(radius / 2.0, belief.spread[0]))
    best = min(error(lengths, each, 0.03) for each in np.geomspace(1e-3, 50.0, 500))
    assert error(lengths, radius, 0.03) > 4.0 * best


@pytest.mark.parametrize("cone", [False, True])
def test_where_noise_is_longer_than_gradients_all_are_brought_to_one_length(cone):
    lengths = LENGTHS["alike"]
    assert followed(lengths, noise=3.0, cone=cone) < np.quantile(lengths, 0.01)
