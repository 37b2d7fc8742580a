"""What lifts say about a spread."""

import numpy as np
import pytest

from quorate.core.bounds.lifted_ball import lift
from quorate.means.spread_belief import SpreadBelief


@pytest.mark.parametrize("cone", [False, True])
@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
def test_lifts_of_people_who_lie_around_a_centre_give_their_spread(spread, cone):
    distances = spread * np.exp(0.3 * np.random.default_rng(0).normal(size=4000))
    belief = SpreadBelief.at_most(20.0, cone=cone)
    for radius in (4.0, 3.0, 2.0, *[1.5 * spread] * 4):
        height = float(lift(distances / radius, cone=cone).mean())
        belief = belief.after(height, radius=radius, around=0.0, noise=0.02, users=4000)
    found, unsure = belief.spread
    assert found == pytest.approx(spread, rel=0.3)
    assert unsure < 0.5


def test_a_centre_that_is_off_explains_low_lifts():
    far = SpreadBelief.at_most(20.0).after(0.6, radius=1.0, around=0.0, noise=0.01, users=1e4)
    near = SpreadBelief.at_most(20.0).after(0.6, radius=1.0, around=0.7, noise=0.01, users=1e4)
    assert near.spread[0] < far.spread[0]


def test_one_round_cannot_say_everything():
    """A wild lift moves the belief by a bounded amount, and is forgotten."""
    belief = SpreadBelief.at_most(20.0)
    for height in (1.2, 1.2, 1.2, 1.2, -50.0, 1.2, 1.2):
        belief = belief.after(height, radius=2.0, around=0.0, noise=0.02, users=1e4)
    assert belief.spread[0] == pytest.approx(0.9, rel=0.4)


@pytest.mark.parametrize("cone", [False, True])
def test_the_height_that_is_expected_is_the_one_that_was_seen(cone):
    belief = SpreadBelief.at_most(20.0, cone=cone)
    for _ in range(8):
        belief = belief.after(0.7, radius=2.0, around=0.0, noise=0.01, users=1e4)
    assert belief.height(radius=2.0, around=0.0) == pytest.approx(0.7, abs=0.1)
    # Nobody is expected near the centre of a ball that is much too small, or far off.
    assert belief.height(radius=0.05, around=0.0) < 0.05
    assert belief.height(radius=2.0, around=40.0) < 0.05
