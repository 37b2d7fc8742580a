"""The expected error of each method for a mean, from public and released numbers only.

An expected error is the root mean square length of the noise, in half-widths of the public range.
The budget of searches and of other private statistics is subtracted first. The method with the
smallest one is used. A search is started if its expected gain exceeds its cost. Anybody can
recompute these decisions from public and released numbers. Under replacement the number of users is
public. Under add or remove it is released before it is used here. The planner of means calls the
same functions as the estimator.
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
    "OTHERS",
    "OTHERS_WINDOW",
    "POINT",
    "WIDEST",
    "WINDOW",
    "ExpectedErrors",
    "distances",
    "widths",
]

# A window holds this share of those who do not hold the most frequent number in it.
IN_WINDOW = 0.6
# A ball is moved if this many users are in a window without those who hold its most frequent
# number.
OTHERS = 1.0 - IN_WINDOW
# The widest window that is asked for, in half-widths of the range; each is half of the one before;
# and the cell that stands for a single number.
WIDEST, _FINER, POINT = 0.5, 2.0, 2.0**-17
# The smallest distance of a pair that is asked for.
_CLOSEST = 2.0**-20
# Who holds the same number counts as this share of the users at least: with fewer it is chance.
FEWEST_ALIKE = 1 / 16
# If this many hold the same number, hardly any search would see the others.
ALIKE = 1.0 - (1.0 - IN_WINDOW) / 2.0
# This many pairs of users have to be near each other for a ball to look for them.
NEAR = Fraction(1, 2)
# A step of a search goes wrong once in 3,000 runs: this many nats, e^-8.
_NATS = 8.0
# Shares of epsilon: at most for the number of users and for a question; and for ends.
_COUNT, _MOST_ASKED, _ENDS = 1 / 32, 1 / 8, 1 / 4
# Before anything is known people are taken to spread over this share of the range.
_GUESS = 1 / 64
# Windows of normal users in their standard deviations.
WINDOW, OTHERS_WINDOW = (
    2.0 * NormalDist().inv_cdf((1.0 + share) / 2.0) for share in (IN_WINDOW, OTHERS)
)
# derived: the mean and the deviation of the absolute value of a normal number.
_AWAY, _VARIES = math.sqrt(2.0 / math.pi), math.sqrt(1.0 - 2.0 / math.pi)


def widths() -> tuple[float, ...]:
    """Return the candidate window widths, in half-widths of the range, in decreasing order.

    >>> [round(width, 3) for width in widths()[:3]], len(widths())
    ([0.5, 0.25, 0.125], 16)
    """
    count = math.floor(math.log(WIDEST / POINT) / math.log(_FINER))
    return tuple(WIDEST * _FINER**-i for i in range(count))


def distances() -> tuple[float, ...]:
    """Return the candidate distances of pairs, in half-widths: each sqrt(2) times the next.

    >>> [round(distance, 3) for distance in distances()[-2:]], len(distances())
    ([1.0, 1.414], 41)
    """
    count = round(2.0 * math.log2(math.sqrt(2.0) / _CLOSEST))
    return tuple(math.sqrt(2.0) * 2.0 ** (-i / 2.0) for i in reversed(range(count)))


def _far(evidence: float) -> float:
    """Return the expected distance, in standard deviations, of the farthest of many normal users.

    ``evidence`` is the number of users times epsilon.
    """
    return NormalDist().inv_cdf(1.0 - 1.0 / max(4.0, evidence))


@dataclass(frozen=True, kw_only=True)
class ExpectedErrors:
    """Expected errors and costs of all methods for one mean, from public and released numbers.

    Parameters
    ----------
    users : float
    dimension : int
    epsilon : float
        The epsilon that is left.
    mu : float
        The parameter mu of Gaussian differential privacy; 0 for pure differential privacy.
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

    def after(self, cost: float) -> ExpectedErrors:
        """Return the same expected errors after this much epsilon was spent."""
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
        """Return the error of a cube with this ``side``, with noise for the largest coordinate."""
        if not self.epsilon:
            return math.inf
        length = math.sqrt(self.dimension) * cube_deviation(self.dimension)
        return self.diameter * side * length / (self.users * self.epsilon)

    def box_error(self, found: Sequence[float | None]) -> float:
        """Return the expected error of a box of intervals, given the widths of the windows.

        The noise of a box grows with the root mean square of its sides; a feature without a window
        keeps its range.
        """
        far = _far(self.users * self.ends(len(found))) / WINDOW
        sides = [1.0 if width is None else min(1.0, far * width) for width in found]
        paid = sum(0.0 if width is None else self.place(width) for width in found)
        rest = self.after(paid + _ENDS * self.epsilon)
        return varying(1) * rest._cube(math.hypot(*sides) / math.sqrt(len(sides)))

    def diamond_error(self, spread: float) -> float:
        """Return the expected error of an L1 ball, for users with this spread in each feature."""
        d = self.dimension
        radius = spread * (_AWAY * d + _far(self.users * self.last) * _VARIES * math.sqrt(d))
        rest = self.after(d * self.place(WINDOW * spread) + self.last)
        if not rest.epsilon:
            return math.inf
        noise = self.diameter * radius * math.sqrt(2.0 * d) / (self.users * rest.epsilon)
        return varying(d) * noise

    def ball_error(self, spread: float, *, steady: bool = False) -> float:
        """Return the expected error of the moving ball, for users of this spread.

        With ``steady`` it is the largest error over budgets up to twice as large, as plans need it.
        """
        public = {"users": self.users, "mu": self.mu, "diameter": self.diameter}
        if not (self.mu and drifting_ball.can_drift(dimension=self.dimension, **public)):
            return math.inf
        error = drifting_ball.steady_error if steady else drifting_ball.expected_error
        return error(
            users=self.users,
            dimension=self.dimension,
            mu=self.mu,
            reach=self.radius,
            spread=spread * math.sqrt(self.dimension),
            diameter=self.diameter,
        )

    @property
    def presence(self) -> float:
        """The epsilon for estimating the number of present users."""
        return min(4.0 * _NATS / self.users, _COUNT * self.epsilon)

    @property
    def nearness(self) -> float:
        """Cost of testing whether pairs of users are close to each other.

        There are half as many pairs as users. The result is wrong if the noise exceeds a quarter of
        the pairs.
        """
        return min(8.0 * _NATS / self.users, _MOST_ASKED * self.epsilon)

    @property
    def is_certain(self) -> bool:
        """Return whether there are enough users for a reliable test of nearness."""
        return 8.0 * _NATS / self.users <= _MOST_ASKED * self.epsilon

    @property
    def spacing(self) -> float:
        """Cost of choosing the typical distance of pairs from a list.

        The scores of wrong answers differ by a quarter of the pairs. Loss and sensitivity are both
        scaled by four.
        """
        return 16.0 * (_NATS + math.log(len(distances()) + 1)) / self.users

    @property
    def narrowness(self) -> float:
        """Cost of choosing the smallest window of one feature that holds most users.

        Windows that are wrong by more than one step score lower by at least 40 % of the users.
        """
        return 2.0 * (_NATS + math.log(len(widths()))) / ((1.0 - IN_WINDOW) * self.users)

    def place(self, width: float) -> float:
        """Return the epsilon for choosing a window of this width if all other windows are empty."""
        return 2.0 * (math.log(8.0 / width) + _NATS) / (IN_WINDOW * self.users)

    def ends(self, count: int) -> float:
        """Return the epsilon for both ends of one of ``count`` intervals."""
        return _ENDS * self.epsilon / count

    @property
    def last(self) -> float:
        """Cost of the radius of an L1 ball.

        The noise grows with the square root of the dimension d, the clipping bias does not. With a
        share s of epsilon for the radius the squared error is d / (1 - s)^2 + c / s^2, which is
        smallest near s^3 = c / d.
        """
        return _ENDS * self.epsilon / math.cbrt(self.dimension)

    @property
    def after_widths(self) -> ExpectedErrors:
        """The budget left after choosing the widths of all features."""
        return self.after(self.dimension * self.narrowness)

    @property
    def search(self) -> str:
        """The method with the smallest error if users fill a small part of the range."""
        pure = self.after(self.presence)
        errors = {
            "clip": self.range_error,
            "interval": min(
                pure.after_widths.box_error([WINDOW * _GUESS] * self.dimension),
                pure.after(self.spacing).diamond_error(_GUESS),
            ),
            "ball": self.ball_error(_GUESS),
        }
        return min(errors, key=errors.__getitem__)

    @property
    def can_afford_widths(self) -> bool:
        """Whether choosing the widths of all features costs a small part of epsilon."""
        cost = self.dimension * self.narrowness
        return self.dimension == 1 or cost <= _MOST_ASKED * self.epsilon

    @property
    def can_afford_search(self) -> bool:
        """Whether at least half of epsilon remains after the first private statistic."""
        cost = self.narrowness if self.dimension == 1 else self.spacing
        return cost <= self.epsilon / 2.0

    @property
    def widest_ball(self) -> float:
        """The largest spread at which the moving ball is expected to beat clipping."""
        low, high = 0.0, 1.0
        for _ in range(20):
            middle = (low + high) / 2.0
            better = self.ball_error(middle) < self.range_error
            low, high = (middle, high) if better else (low, middle)
        return low

    @property
    def is_asked(self) -> bool:
        """Return whether testing how close users are is worth its cost, before a ball is moved.

        Two cases have probability 1/2 each. Users may fill the range, where clipping is better, or
        be concentrated, where the ball is better. In each case errors are divided by that of the
        better method. The test costs a share of epsilon, and its result may be wrong.
        """
        asked = self.after(self.nearness)
        wrong = math.exp(-self.nearness * self.users / 8.0)
        wide, narrow = self.range_error, self.ball_error(_GUESS)
        told = (1.0 - wrong) * asked.range_error + wrong * asked.ball_error(1.0)
        found = (1.0 - wrong) * asked.ball_error(_GUESS) + wrong * asked.range_error
        return told / wide + found / narrow < self.ball_error(1.0) / wide + 1.0

    def expected(self, spread: float) -> tuple[str, float]:
        """Return the method, and its error, for normal users of this spread per feature."""
        search = self.search
        if search == "ball":
            # The test is counted even where it is not bought: with more epsilon it may be.
            known = self.after(self.nearness)
            if self.is_asked and spread > known.widest_ball:
                return "clip", known.range_error
            return "ball", known.ball_error(spread, steady=True)
        if search == "clip":
            return "clip", self.range_error
        known = self.after(self.presence)
        if self.can_afford_widths:
            known = known.after_widths
            box = known.box_error([min(1.0, WINDOW * spread)] * self.dimension)
            found = min(box, known.diamond_error(spread))
        else:
            known = known.after(self.spacing)
            found = known.diamond_error(spread)
        return ("clip", known.range_error) if found >= known.range_error else ("interval", found)
