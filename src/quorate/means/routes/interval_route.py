"""A mean clipped to an interval in each feature: a window that holds most users, and its ends.

In half-widths of the public range, everything pure and paid from one account. In each feature

1. *width*: in how small a window most people are (:mod:`quorate.means.routes.windows`);
2. *window*: where it lies. How many people each window holds is a number that one of them moves by
   at most 1, and far windows hold none: that costs half of what a median does;
3. *ends*: how far out to clip, on each side unless the range ends there
   (:mod:`quorate.means.routes.ends`);

and everybody is clipped to the box of these intervals. After the first step it is asked whether
the others are worth their price.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.accounting.account import Account
from quorate.core.bounds.diamond import Diamond
from quorate.estimators import Route
from quorate.grid import Bound, Box
from quorate.guarantees import Relation
from quorate.means.present_mean import ErrorParts, MeanRelease, PureRun, Size
from quorate.means.routes.ends import End, choose_end
from quorate.means.routes.ways import WINDOW, Known
from quorate.means.routes.windows import Windows
from quorate.means.weighted_users import PeopleVectors, WeightedUsers
from quorate.mechanisms.choices.full_windows import choose_window

__all__ = ["IntervalRun", "PureSearch"]

# The first distance, in windows; and no end is asked for that is hardly farther than this one.
_FIRST, _NEAR = 0.5, 1.5
# What users beyond an end are taken to lack by it, in its distance x people x epsilon: so much over
# the third power of the logarithm of users x epsilon, because tails are steeper where they end
# farther out; and so much times its distance in windows, up to a limit: long tails are heavy.
_STEEP, _HEAVY, _LONGEST = 170.0, 0.1, 20.0
# What the number of users gets of the last step where it is private.
_SIZE_SHARE = 0.25


@dataclass(frozen=True)
class _Cut:
    """How far clipping at an end is likely to pull the mean, and the share that may be outside."""

    pull: float
    share: float

    @classmethod
    def at(cls, end: End, *, width: float, told: float, users: Size) -> _Cut:
        """Return it for a window of this width, by users x epsilon of the choice of the end."""
        steep = _STEEP / math.log(max(told, math.e)) ** 3
        heavy = _HEAVY * min(end.distance / width, _LONGEST)
        pull = (steep + heavy) * end.distance / told
        return cls(pull, min(1.0, end.most / users.number))


@dataclass(frozen=True, kw_only=True)
class PureSearch:
    """One mean of vectors between -1 and 1, clipped to a bound that is found first.

    Parameters
    ----------
    users : PeopleVectors
        In half-widths of the public range.
    account : Account
        Nothing but pure draws so far; what is left of epsilon is spent.
    size : Size
        How many users are present, as far as is known.
    """

    users: PeopleVectors
    account: Account
    size: Size

    def middles(self, widths: Sequence[float | None], known: Known) -> list[float]:
        """Release where windows of these widths lie; the middle of the range where there is none.

        What is left of the users in other windows is next to none, so that far ones cost nothing.
        """
        return [
            0.0
            if width is None
            else choose_window(
                self.users.column(column),
                width=width,
                epsilon=known.place(width),
                account=self.account,
            )
            for column, width in enumerate(widths)
        ]

    def diamond(self, middles: Sequence[float], spread: float, known: Known) -> MeanRelease:
        """Release the mean of users of this spread, clipped to an L1 ball."""
        d, centre = self.users.dimension, np.array(middles)
        farthest = float(np.sum(1.0 + np.abs(centre)))
        end = choose_end(
            self.users,
            _Apart(centre),
            first=min(farthest, d * spread * _FIRST),
            farthest=farthest,
            epsilon=known.last,
            account=self.account,
            dimension=d,
        )
        told = self.size.number * known.last
        cut = _Cut.at(end, width=d * WINDOW * spread, told=told, users=self.size)
        return self.clipped(
            Diamond(_rounded(end.distance), centre=centre),
            pulls=np.full(d, cut.pull / math.sqrt(d)),
            worst=cut.share * (farthest - end.distance),
            share=cut.share,
            spread=spread,
        )

    def clipped(
        self, bound: Bound, *, pulls: NDArray[np.float64], worst: float, share: float, spread: float
    ) -> MeanRelease:
        """Clip everybody to ``bound`` and release the mean with all that is left."""
        ones, size = np.ones(self.users.dimension), self.size
        run = PureRun(users=self.users, half_widths=ones, account=self.account)
        epsilon = float_down(self.account.left)
        if self.account.relation is not Relation.REPLACE:
            # The mean may lie far from the middle of a skewed interval, where the noise of the
            # number of users counts.
            better, epsilon = run.count_users(epsilon, _SIZE_SHARE)
            size = size.combined(better)
        found = run.noisy_mean(slice(None), bound, epsilon, size)
        # A search among far fewer people than it was told of may have ended anywhere.
        if not found.is_known or 2.0 * found.users <= size.number:
            pulls = ones
        parts = ErrorParts(
            noise=found.noise,
            laplace=True,
            along=found.along,
            pull=float(np.linalg.norm(pulls)),
            pulls=pulls,
            worst_pull=worst,
            radius=bound.l1_radius,
            cut_share=share,
        )
        reason = "most users are in a small part of the range, and how far they reach was found."
        route = Route(name="interval", reason=reason, spread=spread)
        return MeanRelease(mean=found.mean, parts=parts, route=route)


@dataclass(frozen=True, kw_only=True)
class IntervalRun(PureSearch):
    """One mean of vectors between -1 and 1, clipped to an interval in each feature."""

    def adapt(self, known: Known, clip: Callable[[str], MeanRelease]) -> MeanRelease:
        """Find intervals and release the mean; ``clip`` clips to the range and says why."""
        cost, account = known.narrowness, self.account
        widths = [
            Windows.of(self.users.column(column), size=self.size.careful).how_narrow(
                epsilon=cost, account=account
            )
            for column in range(self.users.dimension)
        ]
        known = known.after(cost * len(widths))
        found = [width for width in widths if width is not None]
        if not found:
            return clip("most users hold the same number; a small interval cuts all others.")
        spread = math.hypot(*found) / math.sqrt(len(found)) / WINDOW
        box, diamond = known.box_error(widths), known.diamond_error(spread)
        if min(box, diamond) >= known.range_error:
            return clip("the range is not much wider than the users.")
        middles = self.middles(widths, known)
        # People who crowd at an end of their range are skewed, in several features at once: that
        # makes an L1 ball large.
        round_ = all(
            width is not None and 1.0 - abs(middle) > _NEAR * width
            for width, middle in zip(widths, middles, strict=True)
        )
        if round_ and diamond < box:
            return self.diamond(middles, spread, known)
        intervals = [
            _Interval()
            if width is None
            else self._interval(column, width, middle, known.ends(len(found)))
            for column, (width, middle) in enumerate(zip(widths, middles, strict=True))
        ]
        return self.clipped(
            Box([each.lower for each in intervals], [each.upper for each in intervals]),
            pulls=np.array([each.pull for each in intervals]),
            worst=float(np.linalg.norm([each.worst for each in intervals])),
            share=min(1.0, sum(each.share for each in intervals)),
            spread=_FIRST * max(found),
        )

    def _interval(self, column: int, width: float, middle: float, outer: float) -> _Interval:
        """Return an interval of a feature; it may reach farther to one side than to the other."""
        n = self.size.number
        reaches = {sign: 1.0 - sign * middle for sign in (-1.0, 1.0)}
        far = [sign for sign, reach in reaches.items() if reach > _NEAR * width]
        ends = {
            sign: choose_end(
                self.users,
                _Beyond(column, middle, sign),
                first=_FIRST * width,
                farthest=reaches[sign],
                epsilon=outer / len(far),
                account=self.account,
            )
            for sign in far
        }
        low, high = (ends[sign].distance if sign in ends else reaches[sign] for sign in (-1.0, 1.0))
        told = n * outer / max(1, len(far))
        cuts = [_Cut.at(end, width=width, told=told, users=self.size) for end in ends.values()]
        return _Interval(
            lower=middle - low,
            upper=middle + high,
            pull=sum(cut.pull for cut in cuts),
            worst=sum(
                cut.share * (reaches[sign] - ends[sign].distance)
                for cut, sign in zip(cuts, ends, strict=True)
            ),
            share=min(1.0, sum(cut.share for cut in cuts)),
        )


@dataclass(frozen=True)
class _Beyond:
    """How far each user lies from a number of one feature, on one side: sign 1 or -1."""

    column: int
    middle: float
    sign: float

    def __call__(self, users: WeightedUsers) -> NDArray[np.float64]:
        return np.asarray(self.sign * (users.vectors[:, self.column] - self.middle))


@dataclass(frozen=True)
class _Interval:
    """An interval, how far clipping to it may move the mean, and how many may be outside."""

    lower: float = -1.0
    upper: float = 1.0
    pull: float = 0.0
    worst: float = 0.0
    share: float = 0.0


def _rounded(radius: float) -> float:
    """Return a radius of few bits, a little larger: a whole number of steps of any grid."""
    mantissa, power = math.frexp(radius)
    return math.ldexp(math.ceil(mantissa * 2.0**16), power - 16)


@dataclass(frozen=True)
class _Apart:
    """The L1 distance of each user from a centre; NaN if absent."""

    centre: NDArray[np.float64]

    def __call__(self, users: WeightedUsers) -> NDArray[np.float64]:
        away = np.abs(users.vectors - self.centre)
        return np.asarray(np.vecdot(away, np.ones(self.centre.size)))
