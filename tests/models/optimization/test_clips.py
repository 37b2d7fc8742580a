"""What lifts say about lengths, and the radius that follows."""

import math

import numpy as np
import pytest

from quorate.core.bounds.lifted_ball import lift
from quorate.models.optimization.clips import Lengths


def learned(lengths, *, cone, noise=0.01, rounds=8):
    """Return the belief after rounds of lifts of these lengths, each at the radius it asks for."""
    belief, kept, radius = Lengths.around(0.0, error=2.0, cone=cone), 1.0, 1.0
    for _ in range(rounds):
        radius = belief.radius(0.1, 20)
        height = float(lift(lengths / radius, cone=cone).mean())
        belief, kept = belief.after(height, radius=radius, noise=noise, drift=0.2)
    return belief, kept, radius


@pytest.mark.parametrize("cone", [False, True])
@pytest.mark.parametrize("typical", [0.02, 1.0, 30.0])
def test_the_typical_length_is_found_within_a_factor_of_e(typical, cone):
    lengths = typical * np.exp(0.4 * np.random.default_rng(0).normal(size=5000))
    belief, _, _ = learned(lengths, cone=cone)
    assert abs(belief.typical - math.log(typical)) < 1.0


@pytest.mark.parametrize("cone", [False, True])
def test_what_clipping_leaves_is_told(cone):
    lengths = np.exp(0.6 * np.random.default_rng(0).normal(size=5000))
    _, kept, radius = learned(lengths, cone=cone)
    assert kept == pytest.approx(np.minimum(1.0, radius / lengths).mean(), abs=0.1)


def test_more_noise_asks_for_a_smaller_radius():
    belief = Lengths.around(0.0, error=0.3, cone=False)
    radii = [belief.radius(noise, 20) for noise in (0.001, 0.1, 1.0, 10.0)]
    assert radii == sorted(radii, reverse=True)
    assert radii[0] > 2.0 * radii[-1]


@pytest.mark.parametrize("height", [-1e300, -1.0, 5.0, 1e300])
def test_impossible_lifts_leave_a_radius(height):
    belief, kept = Lengths.around(0.0, error=1.0, cone=False).after(
        height, radius=1.0, noise=0.1, drift=0.2
    )
    assert 0.0 < belief.radius(0.1, 5) < 1e6
    assert 0.0 <= kept <= 1.0
