"""Which way a mean takes, from public and released numbers only: anyone can recompute it.

Numbers of users are public under replacement and released before they are used here under add or
remove. Distances are in half-widths of the public range. The planner of means asks the same
functions as the estimator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from quorate._validate import exact
from quorate.estimators import Route
from quorate.guarantees import Relation
from quorate.mechanisms.laplace import cube_deviation

__all__ = [
    "FEWEST_ALIKE",
    "Corner",
    "SearchCosts",
    "are_worth_cutting",
    "ball_is_worthwhile",
    "core_is_possible",
    "core_is_worthwhile",
    "core_reserve",
    "corners",
    "cube_gain",
    "cube_is_better",
    "first_way",
    "interval_radius",
    "is_boxed",
    "is_few",
    "is_paired",
    "is_tested",
    "is_worth_searching",
    "narrow",
    "outside_users",
    "present_cost",
    "question_cost",
    "search_costs",
    "spread_is_affordable",
    "users_to_search",
    "widening",
    "width_cost",
    "window_costs",
    "windows",
]


@dataclass(frozen=True)
class Corner:
    """A cell of the range, in half-widths, and the share of the users that it has to hold.

    Those who hold the same number count for less by the share ``alike`` of them: see
    :mod:`quorate.means.routes.windows`.
    """

    width: float
    share: float
    alike: float = 0.0


# From so many dimensions on Gaussian noise in a ball costs less than Laplace noise in an L1 ball.
GAUSSIAN_DIMENSIONS = 10
# Users x epsilon from which on a search leaves most of epsilon for the mean: in one dimension, and
# in more, where there is a median to find in each.
SEARCH_USERS, SEARCH_USERS_OF_MANY = 260.0, 450.0
# Without Gaussian noise no ball can drift, and a search pays earlier.
PURE_SEARCH_USERS = 225.0
# Users x epsilon a coordinate below which a median is too often anywhere.
QUANTILE_USERS = 140.0
# Shares of a coordinate's epsilon in a search by quantiles: median, distance, mean; and of epsilon
# for the number of users where it is private.
QUANTILE_SHARES, QUANTILE_SIZE_SHARE = (0.4, 0.25, 0.35), 0.1
# The core compares all pairs of users; more of them are too many.
CORE_USERS, _CORE_WORK = 5000, 1e11
# Share of delta that is set aside for core tests, whether or not they take place.
_CORE_DELTA_SHARE = Fraction(1, 10)
# In fewer dimensions users' distances vary too much for what the plan of a core assumes.
CORE_DIMENSIONS = 10
# The core costs time: it must promise this much less error than the ball. And a ball as much less
# than clipping to the range.
_CORE_WORTHWHILE, _BALL_WORTHWHILE = 0.9, 0.7
# A search for the spread that would eat more than this share of the budget is not worth starting.
_SPREAD_SHARE = 0.4
# The distance that holds 60 % of the users is widened until it holds nearly all: at least three
# times, and more where the noise stays below the sampling error of the mean.
_WIDEN, _WIDEN_RATE = 3.0, 0.3
# Users x mu below which the spread is found on the way, not before; and below which not at all.
FEW_USERS, FEWEST_USERS = 110.0, 17.0
# Users in one dimension, and few in two, are asked first whether nearly all of them are in a corner
# of the range, because clipping to it costs less than any search otherwise: up to so many users x
# epsilon in two. The corner has to hold this share of them; a smaller one does where it is small in
# two dimensions: many people hold the same single number and spread otherwise, but rarely in two
# coordinates at once.
TESTED_DIMENSIONS, TESTED_USERS = 2, 1000.0
_CROWDED = (0.8, 0.65)
# The width of the corner in two: where a ball drifts, for few and for more; and for quantiles.
_CELL_USERS, _DRIFT_CELLS, _SEARCH_CELL = (400.0, 675.0), (0.15, 0.3), 0.5
# In one dimension, up to so many users x epsilon: the widths of a large and a small corner; how
# many may be outside, over what the question costs: they reach far where it is large; and by how
# many fewer for each who holds the same number. A window of the last width does, too, if it holds
# half of those who do not hold the same number; where a ball drifts, only that one does.
_CORNERS = (
    (2000.0, ((0.4, 2.5, 0.1), (0.2, 7.0, 0.25)), 0.05),
    (math.inf, ((0.6, 2.0, 0.0), (0.25, 7.0, 0.0)), 0.02),
)
_HALF = 0.5
# Who holds the same number counts as this share of the users at least: with fewer it is chance.
FEWEST_ALIKE = 1 / 20
# How small a window they are in is asked then: each width is a third of the one before, and so many
# of those who do not hold the same number have to be in it. Who is in a point holds the same
# number; if so many do, no search would see the others.
_FINER, _IN_NARROW, POINT = 3.0, 0.6, Corner(6e-6, 0.82)
# In more dimensions intervals are searched, from windows of this width down, where no ball is worth
# it, from so many users x epsilon a feature on.
WIDEST, BOX_USERS = 0.6, 1000.0
# Half an interval around a window, in widths of the window.
_REACH = 2.5
# In more dimensions pairs of people are asked whether so many of them are so near each other: where
# quantiles are searched; and where a ball drifts, from so many users x epsilon on in fewer than so
# many dimensions: in more it is hardly worse than clipping to the range, wherever users are.
NEAR = {"quantile": Corner(0.12, 0.6), "drift": Corner(0.17, 0.6)}
_PAIRED_USERS, _UNPAIRED = 400.0, 5
# A search must promise this much less error than clipping to the range, before it and after it.
PROMISING, WORTHWHILE = 0.95, 0.9
MOST_SEARCHED = 0.75  # A search of one dimension that would cost more of what is left is not begun.
# In several dimensions, where one of them may be wider than all others: the noise of clipping to
# the range counts for this much more before a search has shown how far users are.
_HOPE = 1.25
# A search that costs no more than this share of epsilon is tried unless users fill the range.
_CHEAP, _FULL = 0.07, 0.45

# Users x epsilon of one step, so that it fails about once in a thousand runs.
_PRESENT, _SPREAD, _INNER, _OUTER = 40.0, 130.0, 60.0, 220.0
_TEST, _TEST_DRIFT, _MOST_ASKED = (36.0, 20.0), 60.0, 0.15
# In one dimension: the corner, and the width of the window, with their limits; the window's place;
# and how far users reach from it, in shares of epsilon.
_CORNER, _ASKED, _WIDTH, _MOST_WIDTH = 30.0, (0.02, 0.13), 100.0, 0.2
_PLACE_CERTAINTY, _PLACE_SHARE, _ENDS = 8.0, 0.6, 0.25
_CENTRE, _CENTRE_CERTAINTY = 4.0, 9.0
# The outer quantile leaves so many users outside, times epsilon: with fewer, noise would send it to
# the far end too often. That costs the noise of the range, so the second is multiplied by the
# logarithm of how much wider it is than the users.
_OUTSIDE, _OUTSIDE_WIDE = 7.0, 3.0
# At most this share of epsilon goes there, and at most this share of the users is outside.
_OUTER_SHARE, _MOST_OUTSIDE = 0.25, 0.35
# A window that most users are in, in their typical distances.
_IN_WINDOW = 4.5
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
    if few_dimensions and told >= users_to_search(dimension=dimension, mu=mu):
        return Route(name="interval", reason="an interval around the users is found by quantiles.")
    if mu == 0.0 and told >= QUANTILE_USERS * dimension:
        return Route(name="quantile", reason="a range is found in each coordinate.")
    if mu == 0.0 or users * mu < FEWEST_USERS:
        return Route(name="clip", reason="too few users to find a range privately.")
    if dimension < GAUSSIAN_DIMENSIONS or users * mu < FEW_USERS:
        return Route(name="drift", reason="a ball drifts to where the few users are.")
    return Route(name="ball", reason="a ball can shrink from the bound to the users' spread.")


def users_to_search(*, dimension: int, mu: float) -> float:
    """Return from how many users x epsilon on an interval or an L1 ball is searched by quantiles.

    >>> users_to_search(dimension=1, mu=0.24), users_to_search(dimension=2, mu=0.24)
    (260.0, 675.0)
    """
    if dimension == 1:
        return PURE_SEARCH_USERS if mu == 0.0 else SEARCH_USERS
    # A ball that drifts needs no search, and is as good up to half as many users more.
    return SEARCH_USERS_OF_MANY * max(1.0 if mu == 0.0 else 1.5, dimension / 2.0)


def present_cost(*, users: float, epsilon: float) -> float:
    """Return what it costs to see whether people are there at all.

    >>> present_cost(users=8000, epsilon=1.0), present_cost(users=100, epsilon=1.0)
    (0.005, 0.03)
    """
    return min(max(_PRESENT / max(users, 1.0), 0.001 * epsilon), 0.03 * epsilon)


def question_cost(*, users: float, dimension: int, epsilon: float, way: str = "") -> float:
    """Return what it costs to ask users whether they are in a corner of the range or near others.

    >>> [question_cost(users=n, dimension=d, epsilon=1.0) for n, d in ((500, 1), (320, 2))]
    [0.06, 0.0625]
    """
    if dimension == 1:
        least, most = _ASKED
        return min(max(_CORNER / max(users, 1.0), least * epsilon), most * epsilon)
    small = _is_small_corner(users=users, dimension=dimension, epsilon=epsilon)
    pairs = way == "drift" and dimension > TESTED_DIMENSIONS
    sure = _TEST_DRIFT if pairs else _TEST[small]
    return min(max(sure / max(users, 1.0), 0.005 * epsilon), _MOST_ASKED * epsilon)


def corners(*, users: float, dimension: int, epsilon: float, mu: float) -> tuple[Corner, ...]:
    """Return corners of the range; a search begins if users are in one of them.

    >>> corners(users=300, dimension=2, epsilon=1.0, mu=0.0)
    (Corner(width=0.15, share=0.65, alike=0.0),)
    >>> found = corners(users=500, dimension=1, epsilon=1.0, mu=0.24)
    >>> [(corner.width, round(corner.share, 3)) for corner in found]
    [(0.4, 0.912), (0.2, 0.754), (0.05, 0.5)]
    """
    some, many = _CELL_USERS
    told = users * epsilon
    if dimension > 1:
        width = _SEARCH_CELL if told >= many else _DRIFT_CELLS[told >= some]
        small = _is_small_corner(users=users, dimension=dimension, epsilon=epsilon)
        return (Corner(width, _CROWDED[small]),)
    if told < users_to_search(dimension=1, mu=mu):
        return (narrow(_CORNERS[0][2], share=_HALF),)
    missing = question_cost(users=users, dimension=1, epsilon=epsilon) * users
    wide, width = next((wide, width) for most, wide, width in _CORNERS if told < most)
    corners = (
        Corner(each, 1.0 - out / missing - alike * FEWEST_ALIKE, alike) for each, out, alike in wide
    )
    return (*corners, narrow(width, share=_HALF))


def narrow(width: float, *, share: float = _IN_NARROW) -> Corner:
    """Return a window that holds a share of those who do not hold the most frequent number in it.

    >>> narrow(0.01)
    Corner(width=0.01, share=0.6, alike=0.4)
    """
    return Corner(width, share, alike=1.0 - share)


def windows(first: float) -> tuple[float, ...]:
    """Return widths of ever smaller windows where most users are in a corner of width ``first``.

    >>> [round(width, 3) for width in windows(0.3)[:3]], len(windows(0.3))
    ([0.1, 0.033, 0.011], 9)
    """
    count = math.floor(math.log(first / POINT.width) / math.log(_FINER))
    return tuple(first * _FINER**-i for i in range(1, count + 1))


def width_cost(*, users: float, epsilon: float) -> float:
    """Return what it costs to ask how small a window most users of one feature are in.

    >>> width_cost(users=1000, epsilon=1.0), width_cost(users=60, epsilon=1.0)
    (0.1, 0.2)
    """
    return min(max(_WIDTH / max(users, 1.0), 0.005 * epsilon), _MOST_WIDTH * epsilon)


def window_costs(*, users: float, epsilon: float, width: float) -> SearchCosts:
    """Return what a search of one dimension costs, with the questions before it.

    >>> costs = window_costs(users=10_000, epsilon=1.0, width=0.05)
    >>> costs.after_spread < 0.26
    True
    """
    places = math.log(8.0 / width) + _PLACE_CERTAINTY
    centre = 2.0 * places / (_PLACE_SHARE * users)
    asked = question_cost(users=users, dimension=1, epsilon=epsilon)
    return SearchCosts(
        spread=asked + width_cost(users=users, epsilon=epsilon),
        centre=max(centre, 0.003 * epsilon),
        inner=0.0,
        outer=_ENDS * epsilon,
    )


def are_worth_cutting(widths: Sequence[float | None], *, left: float, epsilon: float) -> bool:
    """Whether intervals around windows of these widths are worth it to find their ends.

    The noise of a box grows with the root mean square of its sides; a feature without a window
    keeps its range.

    >>> [are_worth_cutting(widths, left=0.9, epsilon=1.0) for widths in ([0.1, 0.2], [0.1, 0.6])]
    [True, False]
    """
    sides = [1.0 if width is None else min(1.0, _REACH * width) for width in widths]
    likely = math.hypot(*sides) / math.sqrt(len(sides))
    return likely < WORTHWHILE * (1.0 - _ENDS * epsilon / left)


def _is_small_corner(*, users: float, dimension: int, epsilon: float) -> bool:
    return dimension == TESTED_DIMENSIONS and users * epsilon < _CELL_USERS[0]


def is_tested(*, users: float, dimension: int, epsilon: float) -> bool:
    """Whether users are asked if they are in a corner of the range, before anything is searched.

    >>> is_tested(users=300, dimension=2, epsilon=1.0), is_tested(users=300, dimension=5, epsilon=1)
    (True, False)
    """
    return dimension == 1 or is_few(users=users, dimension=dimension, epsilon=epsilon)


def is_paired(
    *, way: str, users: float, dimension: int, epsilon: float, relation: Relation
) -> bool:
    """Whether pairs of users are asked if they are near each other, before that way is taken.

    Before a ball drifts it has to be set aside, so that the number of users has to be public.

    >>> said = {"way": "drift", "dimension": 3, "epsilon": 1.0, "relation": Relation.REPLACE}
    >>> is_paired(users=300, **said), is_paired(users=600, **said)
    (False, True)
    """
    if way == "drift":
        some = TESTED_DIMENSIONS < dimension < _UNPAIRED and users * epsilon >= _PAIRED_USERS
        return some and relation is Relation.REPLACE
    return way == "quantile" and not is_tested(users=users, dimension=dimension, epsilon=epsilon)


def is_few(*, users: float, dimension: int, epsilon: float) -> bool:
    """Whether absent users are not counted before the mean: none of them is in a corner.

    >>> is_few(users=300, dimension=1, epsilon=1.0), is_few(users=3000, dimension=1, epsilon=1.0)
    (True, False)
    """
    return dimension <= TESTED_DIMENSIONS and users * epsilon < TESTED_USERS


def is_boxed(*, users: float, dimension: int, epsilon: float) -> bool:
    """Whether an interval is searched in each feature where no ball is worthwhile.

    >>> is_boxed(users=5000, dimension=3, epsilon=0.9), is_boxed(users=1000, dimension=3, epsilon=1)
    (True, False)
    """
    return users * epsilon >= BOX_USERS * dimension


def search_costs(
    *, users: float, dimension: int, epsilon: float, spread: float = 1.0
) -> SearchCosts:
    """Return what a search costs; ``spread`` is the typical distance of users.

    >>> costs = search_costs(users=10_000, dimension=1, epsilon=1.0, spread=0.01)
    >>> costs.after_spread < 0.3
    True
    """
    if dimension == 1:
        return window_costs(users=users, epsilon=epsilon, width=_IN_WINDOW * spread)
    cells = math.log(4.0 / spread) + _CENTRE_CERTAINTY
    return SearchCosts(
        spread=min(max(_SPREAD / users, 0.012 * epsilon), 0.12 * epsilon),
        centre=max(_CENTRE * dimension * cells / users, 0.003 * epsilon),
        inner=_INNER / users,
        outer=min(max(_OUTER / users, 0.025 * epsilon), _OUTER_SHARE * epsilon),
    )


def outside_users(*, users: float, epsilon: float, spread: float) -> float:
    """Return how many users an outer quantile that costs ``epsilon`` leaves outside.

    >>> round(outside_users(users=10_000, epsilon=0.1, spread=0.01))
    208
    """
    needed = _OUTSIDE + _OUTSIDE_WIDE * math.log(1.0 / min(spread, 1.0))
    return min(needed / epsilon, _MOST_OUTSIDE * users)


def interval_radius(spread: float, *, dimension: int) -> float:
    """Return how far nearly all users reach, in shares of the range: per coordinate, on average.

    >>> interval_radius(0.01, dimension=1)
    0.055
    """
    if dimension == 1:
        return _RADIUS * spread
    # Lengths of vectors vary less than single numbers.
    return 1.6 * spread * (0.8 + 2.2 / math.sqrt(dimension))


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
    radius = interval_radius(spread, dimension=dimension)
    left = 1.0 - costs.after_spread / epsilon
    if left >= 1.0 - _CHEAP and spread < _FULL:
        return True
    gain = min(1.0, _HOPE * cube_gain(dimension))
    return left > 0.25 and min(1.0, radius) < PROMISING * left * gain


def cube_is_better(*, dimension: int, epsilon: float, mu: float) -> bool:
    """Whether clipping to a box costs less with noise of the largest coordinate than Gaussian.

    >>> cube_is_better(dimension=50, epsilon=1.0, mu=0.2367)
    True
    >>> cube_is_better(dimension=52, epsilon=1.0, mu=0.2367)
    False
    """
    return cube_deviation(dimension) * mu <= math.sqrt(dimension) * epsilon


def cube_gain(dimension: int) -> float:
    """Return the noise of clipping to a box over that of Laplace noise in each coordinate.

    >>> cube_gain(1), round(cube_gain(2), 3), round(cube_gain(5), 3)
    (1.0, 0.707, 0.529)
    """
    return cube_deviation(dimension) / (math.sqrt(2.0) * dimension)


def spread_is_affordable(cost: float, *, whole: float) -> bool:
    """Whether searching for the spread leaves enough of the squared budget.

    >>> spread_is_affordable(0.3, whole=1.0), spread_is_affordable(0.5, whole=1.0)
    (True, False)
    """
    return cost <= _SPREAD_SHARE * whole


def core_reserve(delta: float, relation: Relation) -> Fraction:
    """Return the part of delta that is reserved for core tests, which pair users by replacement.

    >>> float(core_reserve(1e-6, Relation.REPLACE)), float(core_reserve(1e-6, Relation.ADD_REMOVE))
    (1e-07, 0.0)
    """
    return _CORE_DELTA_SHARE * exact(delta) if relation is Relation.REPLACE else Fraction(0)


def core_is_possible(*, users: int, dimension: int) -> bool:
    """Whether a friendly core of so many users can be searched for in reasonable time.

    >>> core_is_possible(users=1000, dimension=20), core_is_possible(users=6000, dimension=20)
    (True, False)
    """
    return users <= CORE_USERS and users**2 * dimension <= _CORE_WORK


def core_is_worthwhile(core: float, *, ball: float) -> bool:
    """Whether the error that a core promises is enough below that of a ball.

    >>> core_is_worthwhile(0.8, ball=1.0), core_is_worthwhile(0.95, ball=1.0)
    (True, False)
    """
    return core <= _CORE_WORTHWHILE * ball


def ball_is_worthwhile(ball: float, *, clipping: float) -> bool:
    """Whether the error that a ball promises is enough below that of clipping to the range.

    >>> ball_is_worthwhile(0.6, clipping=1.0), ball_is_worthwhile(0.8, clipping=1.0)
    (True, False)
    """
    return ball <= _BALL_WORTHWHILE * clipping


def widening(*, users: float, epsilon: float) -> float:
    """Return by how much a quantile of distances is widened before users are clipped to it.

    >>> widening(users=100, epsilon=0.1), widening(users=1e6, epsilon=0.1)
    (3.0, 30.0)
    """
    return max(_WIDEN, _WIDEN_RATE * epsilon * math.sqrt(users))
