"""What all with Gaussian noise promise: at a delta, and nothing without one."""

import pytest

from quorate.core.bounds.grid import Grid, Interval
from quorate.core.guarantees import Gaussian, Repeated
from quorate.mechanisms.sums import GaussianSum, NoisySearch

FINE = Grid(Interval(-1.0, 1.0), 2.0**-5)
ONE = GaussianSum(grid=FINE, noise_multiplier=1.0)
SEARCH = NoisySearch(thresholds=[1.0, 2.0, 3.0, 4.0], target=2.0, noise_multiplier=1.0)


@pytest.mark.parametrize(
    ("mechanism", "event"), [(ONE, Gaussian(1.0)), (SEARCH, Repeated(Gaussian(1.0), 2))]
)
def test_without_a_delta_nothing_is_promised(mechanism, event):
    assert not mechanism.guarantee.holds
    assert mechanism.guarantee_at(1e-6).holds
    assert mechanism.event == event


def test_more_looks_promise_less():
    assert SEARCH.guarantee_at(1e-6).epsilon > ONE.guarantee_at(1e-6).epsilon
