"""A pure mechanism never claims less than its noise gives away, whatever type epsilon has."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.core.bounds.grid import Grid, Interval
from quorate.core.guarantees import Pure, Relation
from quorate.mechanisms import (
    ChooseBest,
    ChooseOrdered,
    FloatQuantile,
    LaplaceSum,
    NoisyCount,
    PrivateQuantile,
)
from quorate.mechanisms.pure import PureMechanism

GRID = Grid(Interval(-1.0, 1.0), 2.0**-30)
MAKERS = {
    "sum": lambda **given: LaplaceSum(grid=GRID, **given),
    "count": NoisyCount,
    "best": lambda **given: ChooseBest(candidates=3, **given),
    "ordered": ChooseOrdered,
    "quantile": lambda **given: PrivateQuantile(domain=(0, 9), **given),
    "float quantile": lambda **given: FloatQuantile(lower=0, upper=1, resolution=0.1, **given),
}
every_kind = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


class RoundsToNearest(PureMechanism):
    """A broken twin: the claim may end up below epsilon."""

    event = property(lambda self: Pure(float(self.epsilon)))


@every_kind
@given(epsilon=st.fractions(Fraction(1, 100), 50, max_denominator=10**20))
def test_a_claim_is_never_below_an_exact_epsilon(make, epsilon):
    promise = make(epsilon=epsilon).guarantee
    assert promise.epsilon >= epsilon
    assert promise.events == (Pure(promise.epsilon),)
    assert promise.epsilon <= epsilon * (1 + Fraction(1, 2**52))


def test_a_claim_rounded_to_nearest_would_be_below():
    broken = RoundsToNearest()
    broken.epsilon = Fraction(1, 3)
    assert broken.event.epsilon < Fraction(1, 3)


@every_kind
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8, np.uint64, int])
def test_numbers_of_other_types_are_read_by_value(make, kind):
    given_one, same = make(epsilon=kind(3)), make(epsilon=3.0)
    assert given_one.guarantee == same.guarantee
    for name in ("scale", "rate"):
        assert getattr(given_one, name, None) == getattr(same, name, None)


@every_kind
def test_the_promise_names_its_neighbours(make):
    for relation in Relation:
        assert make(epsilon=1.0, relation=relation).guarantee.relation is relation
