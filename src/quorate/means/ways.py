"""Which way a mean takes, from public and released numbers only: anyone can recompute it.

Numbers of users are public under replacement and released before they are used here under add or
remove. Distances are in half-widths of the public range. The planner of means asks the same
functions as the estimator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from quorate.releases.route import Route

__all__ = [
    "SearchCosts",
    "first_way",
    "is_tested",
    "is_two_sided",
    "is_worth_searching",
    "laplace_is_better",
    "near_quantile",
    "outside_users",
    "present_cost",
    "search_costs",
    "test_cost",
]

# From so many dimensions on Gaussian noise in a ball costs less than Laplace noise in an L1 ball.
GAUSSIAN_DIMENSIONS = 10
# Users x epsilon from which on a search by quantiles leaves most of epsilon for the mean, in one
# or two dimensions; it grows with the number of medians to find.
SEARCH_USERS = 450.0
# Users x epsilon a coordinate below which a median is too often anywhere.
QUANTILE_USERS = 140.0
# Users x mu below which the spread is found on the way, not before; and below which not at all.
FEW_USERS, FEWEST_USERS = 110.0, 20.0
# Few users are asked first whether they are near each other, where clipping to a narrow range is
# better than a ball and the question can be afforded: users x epsilon by dimensions.
TESTED_USERS = {1: 180.0, 2: 280.0}
TEST_OF_MANY = 400.0
# People are near each other, for the test of few, if their typical distance is below this.
NEAR = 0.12
# A search must promise an error this much below that of clipping to the range before it begins, and
# when it has ended.
PROMISING, WORTHWHILE = 0.95, 0.9
# Users x epsilon from which on, and spread up to which, the two sides of one dimension are looked
# at apart: people are skewed, but two looks cost more than one.
TWO_SIDES, NARROW, MANY_USERS = 3000.0, 0.05, 10_000.0
# A search that costs no more than this share of epsilon is tried unless users fill the range.
_CHEAP, _FULL = 0.07, 0.45

# Users x epsilon of one step, so that it fails about once in a thousand runs.
_PRESENT, _SPREAD, _INNER, _OUTER = 40.0, 130.0, 60.0, 250.0
_TEST, _TEST_OF_MANY = 24.0, 40.0
_CENTRE, _CENTRE_CERTAINTY = 4.0, 7.0
# The outer quantile leaves so many users outside, times epsilon: fewer, and noise may send it to
# the far end.
_OUTSIDE = 26.0
# Radius of the L1 ball (or half an interval) that holds nearly all, in typical distances: of an
# average of light and heavy tails.
_RADIUS = 5.5


@dataclass(frozen=True, kw_only=True)
class SearchCosts:
    """What the steps of a search cost, in epsilon."""

    spread: float
    centre: float
    inner: float
    outer: float

    @property
    def after_spread(self) -> float:
        """What is still to be paid once the spread is known."""
        return self.centre + self.inner + self.outer


def first_way(*, users: float, dimension: int, epsilon: float, mu: float) -> Route:
    """Return the way to begin with; ``mu`` is 0 under pure differential privacy.

    >>> first_way(users=5000, dimension=3, epsilon=1.0, mu=0.24).name
    'interval'
    >>> first_way(users=5000, dimension=30, epsilon=1.0, mu=0.24).name
    'ball'
    >>> first_way(users=300, dimension=3, epsilon=1.0, mu=0.24).name
    'drift'
    >>> first_way(users=60, dimension=1, epsilon=1.0, mu=0.0).name
    'clip'
    """
    told = users * epsilon
    few_dimensions = mu == 0.0 or dimension < GAUSSIAN_DIMENSIONS
    # A ball that drifts needs no search, and is as good up to half as many users more.
    if few_dimensions and told >= SEARCH_USERS * max(1.0 if mu == 0.0 else 1.5, dimension / 2.0):
        return Route(name="interval", reason="an interval around the users is found by quantiles.")
    if mu == 0.0 and told >= QUANTILE_USERS * dimension:
        return Route(name="quantile", reason="a range is found in each coordinate.")
    if mu == 0.0 or users * mu < FEWEST_USERS:
        return Route(name="clip", reason="too few users to find a range privately.")
    if dimension < GAUSSIAN_DIMENSIONS or users * mu < FEW_USERS:
        return Route(name="drift", reason="a ball drifts to where the few users are.")
    return Route(name="ball", reason="a ball can shrink from the bound to the users' spread.")


def present_cost(*, users: float, epsilon: float) -> float:
    """Return what it costs to see whether people are there at all.

    >>> present_cost(users=8000, epsilon=1.0), present_cost(users=100, epsilon=1.0)
    (0.005, 0.02)
    """
    return min(max(_PRESENT / max(users, 1.0), 0.001 * epsilon), 0.02 * epsilon)


def test_cost(*, users: float, epsilon: float) -> float:
    """Return what it costs to ask few users whether they are near each other.

    >>> test_cost(users=300, epsilon=1.0), test_cost(users=800, epsilon=1.0)
    (0.08, 0.05)
    """
    asked = _TEST if users * epsilon < TEST_OF_MANY else _TEST_OF_MANY
    return min(max(asked / max(users, 1.0), 0.02 * epsilon), 0.1 * epsilon)


def near_quantile(*, users: float, epsilon: float) -> Fraction:
    """Return the share of pairs that must be near; more can be asked of more users.

    >>> near_quantile(users=300, epsilon=1.0)
    Fraction(3, 5)
    """
    return Fraction(3, 5) if users * epsilon < TEST_OF_MANY else Fraction(3, 4)


def is_tested(*, users: float, dimension: int, epsilon: float) -> bool:
    """Whether few users are asked if they are near each other before a ball drifts to them.

    >>> is_tested(users=300, dimension=1, epsilon=1.0), is_tested(users=300, dimension=5, epsilon=1)
    (True, False)
    """
    return users * epsilon >= TESTED_USERS.get(dimension, math.inf)


def search_costs(
    *, users: float, dimension: int, epsilon: float, spread: float = 1.0
) -> SearchCosts:
    """Return what a search costs; ``spread`` is the released typical distance of users.

    >>> costs = search_costs(users=10_000, dimension=1, epsilon=1.0, spread=0.01)
    >>> costs.after_spread < 0.2
    True
    """
    skewed = is_two_sided(users=users, dimension=dimension, epsilon=epsilon, spread=spread)
    sides = 2.0 if skewed else 1.0
    cells = math.log(4.0 / spread) + _CENTRE_CERTAINTY
    return SearchCosts(
        spread=min(max(_SPREAD / users, 0.012 * epsilon), 0.12 * epsilon),
        centre=max(_CENTRE * dimension * cells / users, 0.003 * epsilon),
        inner=0.0 if dimension == 1 else _INNER / users,
        outer=min(sides * max(_OUTER / users, 0.025 * epsilon), 0.25 * epsilon),
    )


def is_two_sided(*, users: float, dimension: int, epsilon: float, spread: float) -> bool:
    """Whether an interval may reach farther to one side than to the other.

    >>> is_two_sided(users=10_000, dimension=1, epsilon=1.0, spread=0.01)
    True
    """
    told = users * epsilon
    return dimension == 1 and told >= TWO_SIDES and (spread <= NARROW or told >= MANY_USERS)


def outside_users(*, users: float, epsilon: float) -> float:
    """Return how many users an outer quantile that costs ``epsilon`` leaves outside.

    >>> outside_users(users=10_000, epsilon=0.1), outside_users(users=1000, epsilon=0.05)
    (260.0, 350.0)
    """
    return min(_OUTSIDE / epsilon, 0.35 * users)


def is_worth_searching(
    *, users: float, dimension: int, epsilon: float, spread: float, costs: SearchCosts
) -> bool:
    """Whether an interval that fits the spread is worth what it costs to find, of ``epsilon``.

    >>> said = {"users": 10_000, "dimension": 1, "epsilon": 1.0}
    >>> costs = search_costs(**said, spread=0.3)
    >>> is_worth_searching(**said, spread=0.6, costs=costs)
    False
    >>> is_worth_searching(**said, spread=0.01, costs=costs)
    True
    """
    radius = _RADIUS * spread
    if dimension > 1:
        # Lengths of vectors vary less than single numbers.
        radius = 1.6 * spread * (0.8 + 2.2 / math.sqrt(dimension))
    left = 1.0 - costs.after_spread / epsilon
    if left >= 1.0 - _CHEAP and spread < _FULL:
        return True
    return left > 0.25 and min(1.0, radius) < PROMISING * left


def laplace_is_better(*, dimension: int, epsilon: float, mu: float) -> bool:
    """Whether clipping to a box costs less with Laplace noise than with Gaussian noise.

    >>> laplace_is_better(dimension=8, epsilon=1.0, mu=0.2367)
    True
    >>> laplace_is_better(dimension=10, epsilon=1.0, mu=0.2367)
    False
    """
    return math.sqrt(2.0) * dimension * mu <= math.sqrt(dimension) * epsilon
