r"""The mean of single features: a window that holds most users, and where to clip the others.

In half-widths of the public range, everything pure and paid from one account. In one dimension it
is known that most people are in a corner of the range (:mod:`quorate.means.routes.auto_route`); in
more, that no ball around them is worthwhile, as of people who are skewed. Then in each feature

1. *width*: in how small a window most of them are;
2. *window*: where it lies. How many people each window holds is a number that one of them moves by
   at most 1, and far windows hold none: that costs half of what a median does;
3. *ends*: how far out to clip, on each side unless the range ends there. A distance is the better
   the fewer people lie beyond it, and the worse the larger it is. One person who moves makes *all*
   numbers of people beyond grow, or none of them, or all fall: two of them differ by at most 1 more
   than before, so the choice costs half of what quantiles do;

and everybody is clipped to the box of these intervals.

The noise of the ends favours larger intervals by chance. A step that makes one wider by a factor
must therefore be the less likely by more than the square of that factor, or the rare runs would
make the error; which is why steps are paid for in people. Beyond some steps they are not, so that
many people far away are never mistaken for nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.accounting.account import Account
from quorate.estimators import Route
from quorate.grid import Box
from quorate.guarantees import Relation
from quorate.means.present_mean import ErrorParts, MeanRelease, PureRun, Size
from quorate.means.routes import ways
from quorate.means.weighted_users import OfUsers, PeopleVectors, WeightedUsers
from quorate.mechanisms.choices.choose import ChooseBest
from quorate.mechanisms.choices.full_windows import choose_window

__all__ = ["End", "FeaturesRun", "choose_end"]

# Distances per doubling; steps that are paid for; and how many steps farther each of the others is.
_PER_DOUBLING, _PAID, _COARSE = 4, 28, 12
# What a step costs, in people x epsilon: e to the power of this is more than two steps' widening.
_STEP = 0.6
# Scores are integers: so many to a person.
_FINE = 64
# The first distance, in windows; and no end is asked for that is hardly farther than this one.
_FIRST, _NEAR = 0.5, 1.5
# What users beyond an end are taken to lack by it, in its distance x people x epsilon: so much over
# the third power of the logarithm of users x epsilon, because tails are steeper where they end
# farther out; and so much times its distance in windows, up to a limit: long tails are heavy.
_STEEP, _HEAVY, _LONGEST = 170.0, 0.1, 20.0
# No more users are beyond an end than is stated, but in this share of runs.
_WRONG = 0.02
# What the number of users gets of the last step where it is private.
_SIZE_SHARE = 0.3


@dataclass(frozen=True)
class End:
    """A released distance, and how many users are beyond it at most, except for a few runs."""

    distance: float
    most: float


@dataclass(frozen=True)
class _Ends:
    """Distances to choose an end from, and what each of them costs, in people x epsilon."""

    distances: NDArray[np.float64]
    costs: NDArray[np.float64]

    @classmethod
    def between(cls, first: float, farthest: float) -> _Ends:
        steps = max(1, math.ceil(_PER_DOUBLING * math.log2(max(farthest / first, 1.0))))
        coarse = np.arange(_PAID + _COARSE, steps, _COARSE)
        places = np.concatenate([np.arange(min(_PAID, steps - 1) + 1), coarse, [steps]])
        distances = np.minimum(first * 2.0 ** (places / _PER_DOUBLING), farthest)
        distances[-1] = farthest
        return cls(distances, _STEP * np.arange(float(places.size)))

    def released(self, chosen: int, epsilon: float) -> End:
        """Return a chosen end, and how many are beyond it.

        With k users there its chance is at most e to the power of what the last end, which has
        nobody beyond, costs more, less k epsilon.
        """
        last = chosen == self.costs.size - 1
        doubt = float(self.costs[-1] - self.costs[chosen]) + math.log(self.costs.size / _WRONG)
        return End(
            distance=float(self.distances[chosen]),
            most=0.0 if last else doubt / epsilon,
        )


def choose_end(
    users: PeopleVectors,
    distance: OfUsers,
    *,
    first: float,
    farthest: float,
    epsilon: float,
    account: Account,
) -> End:
    r"""Release a distance beyond which there are few users; nobody is beyond ``farthest``.

    The score of a distance is minus the number of users beyond it, minus a public price. One user
    who is replaced, added or removed moves the numbers of users beyond all distances in the same
    direction, each by 0 or 1: two scores differ by at most 1 more than before. That is what a
    sensitivity of 1/2 stands for, because a choice depends on differences of scores only
    (:class:`~quorate.mechanisms.choices.choose.ChooseBest`).
    """
    ends = _Ends.between(first, farthest)
    # Who is beyond a distance is at most minus the next number after it; nobody beyond the last.
    limits = np.append(-np.nextafter(ends.distances[:-1], np.inf), -np.inf)
    beyond = users.counts(_Negative(distance), limits[::-1])[::-1]
    prices = np.round(_FINE * ends.costs / epsilon).astype(np.int64)
    mechanism = ChooseBest(
        candidates=prices.size,
        epsilon=epsilon,
        sensitivity=_FINE // 2,
        relation=account.relation,
    )
    chosen = mechanism.release(-_FINE * beyond - prices, account=account)
    return ends.released(chosen, epsilon)


@dataclass(frozen=True, kw_only=True)
class FeaturesRun:
    """One mean of vectors between -1 and 1, clipped to an interval in each feature.

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

    @property
    def _left(self) -> float:
        return float_down(self.account.left)

    def adapt(
        self, clip: Callable[[str], MeanRelease], *, widths: Sequence[float | None], epsilon: float
    ) -> MeanRelease:
        """Find intervals and release the mean; ``clip`` clips to the range and says why.

        Most users are in windows of these ``widths``, one in each feature, or hold the same number
        (none): nothing is searched there. Prices are parts of ``epsilon``.
        """
        found = [width for width in widths if width is not None]
        if not found:
            return clip("most users hold the same number; a small interval cuts all others.")
        if len(widths) > 1 and not ways.are_worth_cutting(widths, left=self._left, epsilon=epsilon):
            return clip("the range is not much wider than the users.")
        searches = [
            ways.window_costs(users=self.size.number, epsilon=epsilon, width=width)
            for width in found
        ]
        outer = searches[0].outer / len(found)
        if sum(costs.centre + outer for costs in searches) > ways.MOST_SEARCHED * self._left:
            return clip("too few users to find an interval.")
        cuts = [
            _Cut() if width is None else self._interval(column, width, epsilon=epsilon, outer=outer)
            for column, width in enumerate(widths)
        ]
        if _root_mean_square(cuts) > ways.WORTHWHILE:
            return clip("no interval is seen to hold nearly all users but the range.")
        return self._release(cuts, max(found))

    def _interval(self, column: int, width: float, *, epsilon: float, outer: float) -> _Cut:
        """Return an interval of a feature; it may reach farther to one side than to the other."""
        n = self.size.number
        middle = choose_window(
            self.users.column(column),
            width=width,
            epsilon=ways.window_costs(users=n, epsilon=epsilon, width=width).centre,
            account=self.account,
        )
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
        shares = [min(1.0, end.most / n) for end in ends.values()]
        return _Cut(
            lower=middle - low,
            upper=middle + high,
            pull=sum(_likely_pull(end.distance, width, told) for end in ends.values()),
            worst=sum(
                share * (reaches[sign] - ends[sign].distance)
                for share, sign in zip(shares, ends, strict=True)
            ),
            share=min(1.0, sum(shares)),
        )

    def _release(self, cuts: Sequence[_Cut], width: float) -> MeanRelease:
        ones = np.ones(len(cuts))
        run = PureRun(users=self.users, half_widths=ones, account=self.account)
        size, epsilon = self.size, self._left
        if self.account.relation is not Relation.REPLACE:
            # The mean may lie far from the middle of a skewed interval, where the noise of the
            # number of users counts.
            better, epsilon = run.count_users(epsilon, _SIZE_SHARE)
            size = size.combined(better)
        bound = Box([cut.lower for cut in cuts], [cut.upper for cut in cuts])
        found = run.noisy_mean(slice(None), bound, epsilon, size)
        # A search among far fewer people than it was told of may have ended anywhere.
        known = found.is_known and 2.0 * found.users > size.number
        pulls = np.array([cut.pull for cut in cuts]) if known else ones
        parts = ErrorParts(
            noise=found.noise,
            laplace=True,
            along=found.along,
            pull=float(np.linalg.norm(pulls)),
            pulls=pulls,
            worst_pull=float(np.linalg.norm([cut.worst for cut in cuts])),
            radius=bound.l1_radius,
            cut_share=min(1.0, sum(cut.share for cut in cuts)),
        )
        reason = "an interval around the users was found: a window, and how far they reach."
        route = Route(name="interval", reason=reason, spread=_FIRST * width)
        return MeanRelease(mean=found.mean, parts=parts, route=route)


def _root_mean_square(cuts: Sequence[_Cut]) -> float:
    """Return the root mean square of half sides: that is what the noise of a box grows with."""
    halves = [(cut.upper - cut.lower) / 2.0 for cut in cuts]
    return math.hypot(*halves) / math.sqrt(len(halves))


def _likely_pull(end: float, width: float, told: float) -> float:
    """Return how far clipping at an end is likely to pull the mean, by users x epsilon."""
    steep = _STEEP / math.log(max(told, math.e)) ** 3
    return (steep + _HEAVY * min(end / width, _LONGEST)) * end / told


@dataclass(frozen=True)
class _Negative:
    """Minus a distance of each user; NaN if absent."""

    distance: OfUsers

    def __call__(self, users: WeightedUsers) -> NDArray[np.float64]:
        return np.asarray(-self.distance(users))


@dataclass(frozen=True)
class _Beyond:
    """How far each user lies from a number of one feature, on one side: sign 1 or -1."""

    column: int
    middle: float
    sign: float

    def __call__(self, users: WeightedUsers) -> NDArray[np.float64]:
        return np.asarray(self.sign * (users.vectors[:, self.column] - self.middle))


@dataclass(frozen=True)
class _Cut:
    """An interval, how far clipping to it may move the mean, and how many may be outside."""

    lower: float = -1.0
    upper: float = 1.0
    pull: float = 0.0
    worst: float = 0.0
    share: float = 0.0
