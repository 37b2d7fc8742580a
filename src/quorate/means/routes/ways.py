"""What each way to a mean is expected to cost, from public and released numbers only.

A way is asked for the length of the error that its noise leaves (root mean square, in half-widths
of the public range), after what it pays for looks and searches. The way with the least is taken,
and a search is begun when what it is expected to gain exceeds its price: anyone can recompute it.
Numbers of users are public under replacement and released before they are used here under add or
remove. The planner of means asks the same functions as the estimator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist

from quorate.means.routes import drifting_ball
from quorate.means.routes.ends import varying
from quorate.mechanisms.laplace import cube_deviation

__all__ = [
    "ALIKE",
    "FEWEST_ALIKE",
    "IN_WINDOW",
    "NEAR",
    "POINT",
    "WIDEST",
    "WINDOW",
    "Known",
    "widths",
]

# A window holds this share of those who do not hold the most frequent number in it.
IN_WINDOW = 0.6
# The widest window that is asked for, in half-widths of the range; each is half of the one before;
# and the cell that stands for a single number.
WIDEST, _FINER, POINT = 0.5, 2.0, 2.0**-17
# Who holds the same number counts as this share of the users at least: with fewer it is chance.
FEWEST_ALIKE = 1 / 16
# If so many hold the same number, hardly any search would see the others.
ALIKE = 1.0 - (1.0 - IN_WINDOW) / 2.0
# So many pairs of users have to be near each other for a ball to look for them.
NEAR = Fraction(1, 2)
# A step of a search goes wrong once in 3,000 runs: so many nats, e^-8.
_NATS = 8.0
# Shares of epsilon: at most for the number of users and for a question; and for ends.
_COUNT, _MOST_ASKED, _ENDS = 1 / 32, 1 / 8, 1 / 4
# Before anything is known people are taken to spread over this share of the range.
_GUESS = 1 / 64
# A window of normal users in their standard deviations; and their absolute value: mean, deviation.
WINDOW = 2.0 * NormalDist().inv_cdf(0.5 + IN_WINDOW / 2.0)
_AWAY, _VARIES = math.sqrt(2.0 / math.pi), math.sqrt(1.0 - 2.0 / math.pi)


def widths() -> tuple[float, ...]:
    """Return widths of ever smaller windows, in half-widths of the range.

    >>> [round(width, 3) for width in widths()[:3]], len(widths())
    ([0.5, 0.25, 0.125], 16)
    """
    count = math.floor(math.log(WIDEST / POINT) / math.log(_FINER))
    return tuple(WIDEST * _FINER**-i for i in range(count))


def _far(told: float) -> float:
    """Return how far normal users reach, by users x epsilon of a choice that finds it."""
    return NormalDist().inv_cdf(1.0 - 1.0 / max(4.0, told))


@dataclass(frozen=True, kw_only=True)
class Known:
    """The public and released numbers of one mean.

    Parameters
    ----------
    users : float
    dimension : int
    epsilon : float
        What is left of it.
    mu : float
        Of Gaussian differential privacy; 0 under pure.
    reach : float or None, default=None
        Radius of the range; by default that of a box of half-widths 1.
    diameter : float, default=2.0
        Change of a clipped sum by one user, in radii: 2 for replacement, 1 for add or remove.
    """

    users: float
    dimension: int
    epsilon: float
    mu: float
    reach: float | None = None
    diameter: float = 2.0

    @property
    def radius(self) -> float:
        """Radius of the range."""
        return math.sqrt(self.dimension) if self.reach is None else self.reach

    def after(self, cost: float) -> Known:
        """Return what is known once so much of epsilon is spent."""
        left = max(0.0, 1.0 - cost / self.epsilon) if self.epsilon else 0.0
        return replace(self, epsilon=left * self.epsilon, mu=left * self.mu)

    @property
    def range_error(self) -> float:
        """Expected error of clipping to the range, with the better noise."""
        return min(self._cube(1.0), self.gaussian_error)

    @property
    def gaussian_error(self) -> float:
        """Expected error of clipping to the range with Gaussian noise."""
        if not self.mu:
            return math.inf
        return self.diameter * self.radius * math.sqrt(self.dimension) / (self.users * self.mu)

    def _cube(self, side: float) -> float:
        """Return the error of noise of the largest coordinate, by the root mean square side."""
        if not self.epsilon:
            return math.inf
        length = math.sqrt(self.dimension) * cube_deviation(self.dimension)
        return self.diameter * side * length / (self.users * self.epsilon)

    def box_error(self, found: Sequence[float | None]) -> float:
        """Return the expected error of intervals around windows of these widths.

        The noise of a box grows with the root mean square of its sides; a feature without a window
        keeps its range.
        """
        far = _far(self.users * self.ends(len(found))) / WINDOW
        sides = [1.0 if width is None else min(1.0, far * width) for width in found]
        paid = sum(0.0 if width is None else self.place(width) for width in found)
        rest = self.after(paid + _ENDS * self.epsilon)
        return varying(1) * rest._cube(math.hypot(*sides) / math.sqrt(len(sides)))

    def diamond_error(self, spread: float) -> float:
        """Return the expected error of an L1 ball around users of this spread in each feature."""
        d = self.dimension
        radius = spread * (_AWAY * d + _far(self.users * self.last) * _VARIES * math.sqrt(d))
        rest = self.after(d * self.place(WINDOW * spread) + self.last)
        if not rest.epsilon:
            return math.inf
        noise = self.diameter * radius * math.sqrt(2.0 * d) / (self.users * rest.epsilon)
        return varying(d) * noise

    def ball_error(self, spread: float) -> float:
        """Return the expected error of a ball that drifts to users of this spread a coordinate."""
        told = {"users": self.users, "mu": self.mu, "diameter": self.diameter}
        if not (self.mu and drifting_ball.can_drift(dimension=self.dimension, **told)):
            return math.inf
        return drifting_ball.expected_error(
            users=self.users,
            dimension=self.dimension,
            mu=self.mu,
            reach=self.radius,
            spread=spread * math.sqrt(self.dimension),
            diameter=self.diameter,
        )

    @property
    def presence(self) -> float:
        """What it costs to see whether people are there at all."""
        return min(4.0 * _NATS / self.users, _COUNT * self.epsilon)

    @property
    def nearness(self) -> float:
        """What it costs to ask whether pairs of people are near each other.

        Half as many pairs as people are a quarter of them off the limit.
        """
        return min(8.0 * _NATS / self.users, _MOST_ASKED * self.epsilon)

    @property
    def is_certain(self) -> bool:
        """Whether people are enough for the answer to how near they are."""
        return 8.0 * _NATS / self.users <= _MOST_ASKED * self.epsilon

    @property
    def spacing(self) -> float:
        """What it costs to ask how far apart pairs of people are: one of many answers."""
        return 16.0 * _NATS / self.users

    @property
    def narrowness(self) -> float:
        """What it costs to ask in how small a window of one feature people are.

        Answers that are wrong by more than a step lie 40 % of the users below.
        """
        return 2.0 * (_NATS + math.log(len(widths()))) / ((1.0 - IN_WINDOW) * self.users)

    def place(self, width: float) -> float:
        """Return what it costs to find a window of this width, in whose place others are empty."""
        return 2.0 * (math.log(8.0 / width) + _NATS) / (IN_WINDOW * self.users)

    def ends(self, count: int) -> float:
        """Return what the ends of one of so many intervals cost."""
        return _ENDS * self.epsilon / count

    @property
    def last(self) -> float:
        """What the radius of an L1 ball costs.

        Its noise is that of one feature times the root of the dimension, what clipping pulls is
        not: a share s of epsilon costs d / (1 - s)^2 + c / s^2, least about where s^3 is c / d.
        """
        return _ENDS * self.epsilon / math.cbrt(self.dimension)

    @property
    def looked(self) -> Known:
        """What is left after the widths of all features."""
        return self.after(self.dimension * self.narrowness)

    @property
    def search(self) -> str:
        """The way to begin with: the least error for people in a small part of the range."""
        pure = self.after(self.presence)
        errors = {
            "clip": self.range_error,
            "interval": min(
                pure.looked.box_error([WINDOW * _GUESS] * self.dimension),
                pure.after(self.spacing).diamond_error(_GUESS),
            ),
            "ball": self.ball_error(_GUESS),
        }
        return min(errors, key=errors.__getitem__)

    @property
    def looks_at_all(self) -> bool:
        """Whether the widths of all features cost a small part of epsilon."""
        cost = self.dimension * self.narrowness
        return self.dimension == 1 or cost <= _MOST_ASKED * self.epsilon

    @property
    def can_look(self) -> bool:
        """Whether the first look leaves half of epsilon."""
        look = self.narrowness if self.dimension == 1 else self.spacing
        return look <= self.epsilon / 2.0

    @property
    def widest_ball(self) -> float:
        """The largest spread at which a ball is expected to err less than clipping to the range."""
        low, high = 0.0, 1.0
        for _ in range(20):
            middle = (low + high) / 2.0
            better = self.ball_error(middle) < self.range_error
            low, high = (middle, high) if better else (low, middle)
        return low

    @property
    def is_asked(self) -> bool:
        """Whether asking how near people are is worth its price before a ball drifts.

        If half of all people fill their range, a ball costs them so much more than clipping to it;
        asking costs everybody a share of epsilon.
        """
        lost = self.ball_error(1.0) / self.range_error - 1.0
        return lost / 2.0 > self.nearness / self.epsilon

    def expected(self, spread: float) -> tuple[str, float]:
        """Return the way that normal users of this spread a feature are taken, and its error."""
        search = self.search
        if search == "ball":
            known = self.after(self.nearness) if self.is_asked else self
            if known is not self and spread > known.widest_ball:
                return "clip", known.range_error
            return "ball", known.ball_error(spread)
        if search == "clip":
            return "clip", self.range_error
        known = self.after(self.presence)
        if self.looks_at_all:
            known = known.looked
            box = known.box_error([min(1.0, WINDOW * spread)] * self.dimension)
            found = min(box, known.diamond_error(spread))
        else:
            known = known.after(self.spacing)
            found = known.diamond_error(spread)
        return ("clip", known.range_error) if found >= known.range_error else ("interval", found)
