"""What a draw costs each filter is never too small."""

from fractions import Fraction

import mpmath
import pytest

from quorate.core.account.costs import (
    UNITS,
    PricedChain,
    as_gaussian,
    costs_of,
    covers,
    elementary,
    rounded_square,
    settled,
)
from quorate.core.account.gaussian_dp import delta_bound
from quorate.core.guarantees import Approximate, Composed, Gaussian, Pure, Repeated, Subsampled
from quorate.exceptions import UnsupportedEventError


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 0.01, 0.3, 1.0, 5.0, 40.0, 300.0])
def test_the_gaussian_that_covers_a_pure_draw_is_rounded_up_and_tight(epsilon):
    with mpmath.workdps(400):
        q = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        mu = 2 * mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * q)
        ours = mpmath.sqrt(mpmath.mpf(as_gaussian(Fraction(epsilon)).numerator))
        ours /= mpmath.sqrt(mpmath.mpf(as_gaussian(Fraction(epsilon)).denominator))
        assert ours >= mu
        assert ours <= mu * (1 + mpmath.mpf(10) ** -10)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_that_gaussian_has_a_worse_profile_than_any_pure_draw(epsilon):
    """The profile of randomized response, the worst pure draw, lies below that of the Gaussian."""
    mu = float(as_gaussian(Fraction(epsilon))) ** 0.5
    with mpmath.workdps(50):
        p = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))
        for at in [0.0, epsilon / 3, 0.9 * epsilon]:
            response = p - mpmath.exp(at) * (1 - p)
            assert delta_bound(at, mu) >= response
    half = mu / 2
    assert delta_bound(0.0, half) < float(p - (1 - p))  # a Gaussian of half the size would not do


def test_chains_cost_what_their_links_cost():
    chain = Composed((Repeated(Pure(0.25), 2), Approximate(0.5, 1e-7)))
    pure, square, failures = costs_of(chain)
    assert pure == 1
    assert failures == Fraction(1e-7)
    assert square == 2 * as_gaussian(Fraction(1, 4)) + as_gaussian(Fraction(1, 2))
    assert costs_of(Composed((Pure(1.0), Gaussian(2.0))))[0] is None


def test_failures_add_up_over_links_and_repetitions():
    one = Approximate(0.5, 2.0**-20)
    assert costs_of(one)[2] == Fraction(1, 2**20)
    assert costs_of(Repeated(one, 3))[2] == Fraction(3, 2**20)
    assert costs_of(Composed((one, Repeated(one, 3), Pure(0.1))))[2] == Fraction(4, 2**20)


def test_a_huge_pure_draw_has_no_square():
    assert costs_of(Pure(1000.0))[1] is None


def test_a_sampled_event_needs_a_plan():
    with pytest.raises(UnsupportedEventError, match=r"Account\.reserve_chain"):
        costs_of(Subsampled(Gaussian(1.0), rate=0.5))


def test_a_plan_is_counted_link_by_link():
    step = Subsampled(Gaussian(1.0), rate=0.5)
    counts = elementary(Composed((Gaussian(3.0), Repeated(Composed((step, Pure(0.1))), 4))))
    assert counts == {Gaussian(3.0): 1, step: 4, Pure(0.1): 4}


@pytest.mark.parametrize(
    ("planned", "drawn", "fits"),
    [
        (Pure(0.2), Pure(0.1), True),
        (Pure(0.1), Pure(0.2), False),
        (Gaussian(2.0), Gaussian(3.0), True),
        (Gaussian(3.0), Gaussian(2.0), False),
        (Subsampled(Gaussian(2.0), 0.1), Subsampled(Gaussian(2.0), 0.05), True),
        (Subsampled(Gaussian(2.0), 0.1), Subsampled(Gaussian(2.0), 0.2), False),
        (Subsampled(Gaussian(2.0), 0.1), Subsampled(Gaussian(1.0), 0.1), False),
        (Pure(1.0), Gaussian(100.0), False),
    ],
)
def test_a_draw_takes_the_place_of_one_that_costs_as_much(planned, drawn, fits):
    assert covers(planned, drawn) is fits


def test_rounding_a_square_goes_up_by_next_to_nothing():
    third = Fraction(1, 3)
    assert third < rounded_square(third) < third + Fraction(1, 2**159)
    assert rounded_square(Fraction(1, 4)) == Fraction(1, 4)


@pytest.mark.parametrize("square", [Fraction(1, 3), Fraction(1, 7), Fraction(1, 10**40)])
def test_squares_that_are_added_up_are_rounded_up(square):
    _, units, _ = settled((None, square, Fraction(0)))
    assert square <= Fraction(units, UNITS) < square + Fraction(1, UNITS)


@pytest.mark.parametrize("part", [Fraction(1, 8), Fraction(1, 4), Fraction(1, 2)])
def test_what_a_plan_leaves_of_a_pure_step_is_spent_once(part):
    """Two planned losses of a half are one in all, in whatever parts they are drawn."""
    plan, _ = PricedChain.of(Composed((Pure(0.5), Pure(0.5))))
    drawn = 0
    while drawn < 20 and plan.take(Pure(float(part)), part):
        drawn += 1
    assert drawn * part == 1
    assert not plan.take(Pure(0.5), Fraction(1, 2))
