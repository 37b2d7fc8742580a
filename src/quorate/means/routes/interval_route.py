"""A mean clipped to an interval in each feature: a window that holds most users, and its ends.

Numbers are in half-widths of the public range. All steps use pure differential privacy and are paid
from one account. These steps are taken in each feature:

* *width*: the smallest window that holds most users (:mod:`quorate.means.routes.windows`);
* *window*: its position. One user changes the count of each window by at most 1, and windows far
  from all users are empty, so the choice costs half of what a private median costs;
* *ends*: the clipping bound on each side, unless it is the end of the range
  (:mod:`quorate.means.routes.ends`).

Then everybody is clipped to the box of these intervals. Each step after the first is taken only if
its expected gain exceeds its cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Ball, Bound, Box
from quorate.core.guarantees import Relation
from quorate.estimators import Route
from quorate.means.present_mean import ErrorParts, MeanRelease, PureRun, Size
from quorate.means.routes.ends import End, choose_end
from quorate.means.routes.expected_errors import WINDOW, ExpectedErrors
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
    """The likely clipping bias at an end, and the share of users who may be clipped there."""

    pull: float
    share: float

    @classmethod
    def at(cls, end: End, *, width: float, evidence: float, users: Size) -> _Cut:
        """Return the likely cut for a window of this width; ``evidence`` is users times epsilon."""
        steep = _STEEP / math.log(max(evidence, math.e)) ** 3
        heavy = _HEAVY * min(end.distance / width, _LONGEST)
        pull = (steep + heavy) * end.distance / evidence
        return cls(pull, min(1.0, end.most / users.number))


@dataclass(frozen=True, kw_only=True)
class PureSearch:
    """One mean of vectors between -1 and 1, clipped to a bound that is found privately.

    Parameters
    ----------
    users : PeopleVectors
        In half-widths of the public range.
    account : Account
        The account of all draws; only pure draws so far. All of its epsilon is spent.
    size : Size
        The number of present users, public or estimated.
    """

    users: PeopleVectors
    account: Account
    size: Size

    def middles(self, widths: Sequence[float | None], known: ExpectedErrors) -> list[float]:
        """Release the middle of each feature's window.

        A feature without a window gets the middle of its range.

        Few users lie in the other windows, so the cost does not grow with the number of distant
        ones.
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

    def diamond(
        self, middles: Sequence[float], spread: float, known: ExpectedErrors
    ) -> MeanRelease:
        """Release the mean, clipped to an L1 ball, for users with this spread."""
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
        evidence = self.size.number * known.last
        cut = _Cut.at(end, width=d * WINDOW * spread, evidence=evidence, users=self.size)
        return self.clipped(
            Ball(_rounded(end.distance), centre=centre, norm=1),
            pulls=np.full(d, cut.pull / math.sqrt(d)),
            worst=cut.share * (farthest - end.distance),
            share=cut.share,
            spread=spread,
        )

    def clipped(
        self, bound: Bound, *, pulls: NDArray[np.float64], worst: float, share: float, spread: float
    ) -> MeanRelease:
        """Clip everybody to ``bound`` and release the mean with the rest of the budget."""
        ones, size = np.ones(self.users.dimension), self.size
        run = PureRun(users=self.users, half_widths=ones, account=self.account)
        epsilon = float_down(self.account.left)
        if self.account.relation is not Relation.REPLACE:
            # The mean may lie far from the middle of a skewed interval, where the noise of the
            # number of users counts.
            better, epsilon = run.count_users(epsilon, _SIZE_SHARE)
            size = size.combined(better)
        found = run.noisy_mean(slice(None), bound, epsilon, size)
        # A search among far fewer people than assumed may have ended anywhere.
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
        reason = "most users are in a small part of the range, which was found privately."
        route = Route(name="interval", reason=reason, spread=spread)
        return MeanRelease(mean=found.mean, parts=parts, route=route)


@dataclass(frozen=True, kw_only=True)
class IntervalRun(PureSearch):
    """One mean of vectors between -1 and 1, clipped to an interval in each feature."""

    def adapt(self, known: ExpectedErrors, clip: Callable[[str], MeanRelease]) -> MeanRelease:
        """Find intervals and release the mean; ``clip`` is the fallback, with its reason."""
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
            return clip("most users have the same value; a small interval would clip all others.")
        spread = math.hypot(*found) / math.sqrt(len(found)) / WINDOW
        box, diamond = known.box_error(widths), known.diamond_error(spread)
        if min(box, diamond) >= known.range_error:
            return clip("users fill most of the public range.")
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
        """Return the clipping interval of a feature; it need not be symmetric around the window."""
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
        evidence = n * outer / max(1, len(far))
        cuts = [
            _Cut.at(end, width=width, evidence=evidence, users=self.size) for end in ends.values()
        ]
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
    """Distance of each user above (sign 1) or below (sign -1) a value of one feature."""

    column: int
    middle: float
    sign: float

    def __call__(self, users: WeightedUsers) -> NDArray[np.float64]:
        return np.asarray(self.sign * (users.vectors[:, self.column] - self.middle))


@dataclass(frozen=True)
class _Interval:
    """An interval, its possible clipping bias, and the share of users who may be clipped."""

    lower: float = -1.0
    upper: float = 1.0
    pull: float = 0.0
    worst: float = 0.0
    share: float = 0.0


def _rounded(radius: float) -> float:
    """Round a radius up to a few bits, so that it is a whole number of grid steps."""
    mantissa, power = math.frexp(radius)
    return math.ldexp(math.ceil(mantissa * 2.0**16), power - 16)


@dataclass(frozen=True)
class _Apart:
    """The L1 distance of each user from a centre; NaN if absent."""

    centre: NDArray[np.float64]

    def __call__(self, users: WeightedUsers) -> NDArray[np.float64]:
        away = np.abs(users.vectors - self.centre)
        return np.asarray(np.vecdot(away, np.ones(self.centre.size)))
