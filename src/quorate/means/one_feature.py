r"""The mean of one feature: a window that most people are in, and how far the others reach from it.

In half-widths of the public range, everything pure and paid from one account. That most people are
in a corner of the range is known (:mod:`quorate.means.auto_route`). Then

1. *width*: in how small a window most of them are;
2. *window*: where it lies. How many people each window holds is a number that one of them moves by
   at most 1, and far windows hold none: that costs half of what a median does;
3. *ends*: how far out to clip, on both sides together or apart. A distance is the better the fewer
   people lie beyond it, and the worse the larger it is. One person who moves makes *all* numbers of
   people beyond grow, or none of them, or all fall: two of them differ by at most 1 more than
   before, so the choice costs half of what quantiles do;
4. *sum*: everybody is clipped to the interval, where noise and clipping are expected to cost least
   (:mod:`quorate.means.tails`).

The noise of the ends favours larger intervals by chance. A step that makes one wider by a factor
must therefore be the less likely by more than the square of that factor, or the rare runs would
make the error; which is why steps are paid for in people. Beyond some steps they are not, so that
many people far away are never mistaken for nobody.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.account import Account
from quorate.accounting.rounding import float_down
from quorate.bounds import Interval
from quorate.guarantees import Relation
from quorate.means import ways
from quorate.means.pure_routes import PureRun, Size
from quorate.means.released_mean import ErrorParts, MeanRelease
from quorate.means.tails import Tail
from quorate.means.weighted_users import VectorUsers, WeightedUsers
from quorate.mechanisms.choose import ChooseBest
from quorate.mechanisms.ordered import ChooseOrdered
from quorate.releases.route import Route
from quorate.users.crowd import counts_up_to

__all__ = ["OneFeatureRun", "choose_end", "choose_window", "window_pieces"]

# Windows begin at every quarter of their width.
_QUARTERS = 4
# Distances per doubling; steps that are paid for; and how many steps farther each of the others is.
_PER_DOUBLING, _PAID, _COARSE = 4, 20, 12
# What a step costs, in people x epsilon: e to the power of this is more than two steps' widening.
_STEP = 0.8
# Scores are integers: so many to a person.
_FINE = 64
# The first distance, in windows.
_FIRST = 0.25
# People x epsilon who lie beyond an end: on each side, and on both sides together, who are clipped
# a little farther in than the end that was chosen: noise moves that outwards.
_BEYOND, _BEYOND_BOTH, _INWARDS = 2.4, 4.0, 0.9
_MOST_BEYOND = 0.35
# The lightest tail that is believed: single numbers are often skewed.
_LIGHTEST = 1.1
# Who looks at both sides together does not see that all of the tail is on one of them: what is
# stated allows for it by the larger of these, the second one times the share of users beyond. Tails
# of two sides are allowed to be so many times as long as they are guessed.
_SKEWED, _LONGER = (2.5, 11.0), 3.5
# So many times as many users as are expected may be beyond an end, in 98 % of runs.
_OUTSIDE = 3.0
# What the number of users gets of the last step where it is private.
_SIZE_SHARE = 0.3


def window_pieces(
    values: NDArray[np.float64], width: float
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return how many windows in a row hold equally many users, and minus how many; not private.

    Window i begins at quarter i - 3 of a width, counted from the lower end of the range.

    >>> lengths, losses = window_pieces(np.array([-1.0, -0.9]), 0.5)
    >>> lengths.tolist(), losses.tolist()
    ([4, 16], [-2, 0])
    """
    last = _last_quarter(width)
    places = np.clip(np.floor((values + 1.0) * (_QUARTERS / width)), 0, last).astype(np.int64)
    # A user is in the windows that begin at the own quarter or at one of the three before it.
    held, counts = np.unique(places, return_counts=True)
    starts = np.concatenate([[0], held, held + _QUARTERS, [last + _QUARTERS]])
    changes = np.concatenate([[0], counts, -counts, [0]])
    order = np.argsort(starts, kind="stable")
    inside = np.cumsum(changes[order])[:-1]
    lengths = np.diff(starts[order])
    kept = lengths > 0
    return lengths[kept].astype(np.uint64), -inside[kept].astype(np.int64)


def _last_quarter(width: float) -> int:
    return math.ceil(2.0 * _QUARTERS / width)


def choose_window(
    values: NDArray[np.float64], *, width: float, epsilon: float, account: Account
) -> float:
    """Release the middle of a window that holds about as many users as any.

    One user who is replaced, added or removed moves the number in any window by at most 1.

    >>> people = np.full(300, 0.31)
    >>> found = choose_window(people, width=0.1, epsilon=1.0, account=Account.open(epsilon=1.0))
    >>> bool(abs(found - 0.31) <= 0.05)
    True
    """
    mechanism = ChooseOrdered(epsilon=epsilon, relation=account.relation)
    first = mechanism.release(*window_pieces(values, width), lower=1 - _QUARTERS, account=account)
    middle = (first + _QUARTERS / 2) * (width / _QUARTERS) - 1.0
    return min(max(middle, -1.0), 1.0)


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


def choose_end(
    users: VectorUsers,
    distance: Callable[[WeightedUsers], NDArray[np.float64]],
    *,
    first: float,
    farthest: float,
    epsilon: float,
    account: Account,
) -> float:
    r"""Release a distance beyond which there are few users; nobody is beyond ``farthest``.

    The score of a distance is minus the number of users beyond it, minus a public price. One user
    who is replaced, added or removed moves the numbers of users beyond all distances in the same
    direction, each by 0 or 1: two scores differ by at most 1 more than before. That is what a
    sensitivity of 1/2 stands for, because a choice depends on differences of scores only
    (:class:`~quorate.mechanisms.choose.ChooseBest`).
    """
    ends = _Ends.between(first, farthest)
    within = users.add_up(lambda part: counts_up_to(distance(part), ends.distances))
    total = users.add_up(lambda part: np.array([part.present.sum()], dtype=np.int64))
    beyond = int(total[0]) - within
    beyond[-1] = 0
    prices = np.round(_FINE * ends.costs / epsilon).astype(np.int64)
    mechanism = ChooseBest(
        candidates=prices.size,
        epsilon=epsilon,
        sensitivity=_FINE // 2,
        relation=account.relation,
    )
    chosen = mechanism.release(-_FINE * beyond - prices, account=account)
    return float(ends.distances[chosen])


@dataclass(frozen=True, kw_only=True)
class OneFeatureRun:
    """One mean of numbers between -1 and 1, most of which are in a corner.

    Parameters
    ----------
    users : VectorUsers
        Of one dimension, in half-widths of the public range.
    account : Account
        Nothing but pure draws so far; what is left of epsilon is spent.
    size : Size
        How many users are present, as far as is known.
    """

    users: VectorUsers
    account: Account
    size: Size

    @property
    def _left(self) -> float:
        return float_down(self.account.left)

    def adapt(
        self, clip: Callable[[str], MeanRelease], *, width: float, epsilon: float
    ) -> MeanRelease:
        """Find an interval and release the mean; ``clip`` clips to the range and says why.

        Most users are in a window of this ``width``; prices are parts of ``epsilon``.
        """
        n = self.size.number
        costs = ways.window_costs(users=n, epsilon=epsilon, width=width)
        if costs.centre + costs.outer > ways.MOST_SEARCHED * self._left:
            return clip("too few users to find an interval.")
        middle = choose_window(
            self.users.column(0), width=width, epsilon=costs.centre, account=self.account
        )
        if ways.is_two_sided(users=n, epsilon=epsilon):
            found = self._both_ends(middle, width, costs.outer / 2.0)
        else:
            found = self._one_end(middle, width, costs.outer)
        if found is None:
            return clip("no interval is seen to hold nearly all users but the range.")
        return self._release(found, width)

    def _end(self, middle: float, sign: float, width: float, epsilon: float) -> float:
        """Release how far users reach from ``middle``: to one side, or to both (sign 0)."""
        return choose_end(
            self.users,
            _Beyond(middle, sign),
            first=_FIRST * width,
            farthest=1.0 - sign * middle if sign else 1.0 + abs(middle),
            epsilon=epsilon,
            account=self.account,
        )

    def _one_end(self, middle: float, width: float, epsilon: float) -> _Cut | None:
        """Return an interval with ``middle`` in the middle, as far as it is inside the range."""
        n, found = self.size.number, self._end(middle, 0.0, width, epsilon)
        farthest = 1.0 + abs(middle)
        radius = found if found >= farthest else _INWARDS * found
        low, high = min(radius, 1.0 + middle), min(radius, 1.0 - middle)
        share = min(_BEYOND_BOTH / (epsilon * n), _MOST_BEYOND)
        tail = Tail(outer=radius, outer_share=share, farthest=farthest, users=n, lightest=_LIGHTEST)
        pull = float(tail.excess(cautious=True)[0])
        if not self._is_worthwhile(low + high, 0.0):
            return None
        skew = max(_SKEWED[0], _SKEWED[1] * share)
        return self._cut(middle - low, middle + high, skew * pull, share)

    def _both_ends(self, middle: float, width: float, epsilon: float) -> _Cut | None:
        """Return an interval that may reach farther to one side than to the other."""
        n = self.size.number
        share = min(_BEYOND / (epsilon * n), _MOST_BEYOND)
        ends = [self._end(middle, sign, width, epsilon) for sign in (-1.0, 1.0)]
        tails = [
            Tail(
                outer=end,
                outer_share=share,
                farthest=1.0 - sign * middle,
                users=n,
                whole=max(0.5, 1.2 * share),
                lightest=_LIGHTEST,
            )
            for sign, end in zip((-1.0, 1.0), ends, strict=True)
        ]
        (low, high), moved = zip(*((tail.candidates, tail.excess()) for tail in tails), strict=True)
        noise = self._noise_of_width(low[:, None] + high)
        losses = np.sqrt(noise**2 + moved[0][:, None] ** 2 + moved[1] ** 2)
        i, j = (int(k) for k in np.unravel_index(np.argmin(losses), losses.shape))
        if not self._is_worthwhile(float(low[i] + high[j]), math.hypot(moved[0][i], moved[1][j])):
            return None
        pull = _LONGER * sum(
            float(tail.excess(cautious=True)[k]) for tail, k in zip(tails, (i, j), strict=True)
        )
        return self._cut(middle - float(low[i]), middle + float(high[j]), pull, 2.0 * share)

    def _is_worthwhile(self, width: float, moved: float) -> bool:
        """Whether an interval is enough better than the range."""
        found = math.hypot(float(self._noise_of_width(width)), moved)
        return found <= ways.WORTHWHILE * float(self._noise_of_width(2.0))

    def _noise_of_width(self, width: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return the noise of a sum, in users, by how far one user moves it."""
        change = 1.0 if self.account.relation is Relation.REPLACE else 0.5
        return np.asarray(math.sqrt(2.0) * change / self._left * np.asarray(width))

    def _cut(self, lower: float, upper: float, pull: float, share: float) -> _Cut:
        outside = min(1.0, _OUTSIDE * share)
        farthest = max(1.0 - upper, lower + 1.0, 0.0)
        return _Cut(lower, upper, pull / self.size.number, outside * farthest, outside)

    def _release(self, cut: _Cut, width: float) -> MeanRelease:
        run = PureRun(users=self.users, half_widths=np.ones(1), account=self.account)
        size, epsilon = self.size, self._left
        if self.account.relation is not Relation.REPLACE:
            # The mean may lie far from the middle of a skewed interval, where the noise of the
            # number of users counts.
            better, epsilon = run.count_users(epsilon, _SIZE_SHARE)
            size = size.combined(better)
        bound = Interval(cut.lower, cut.upper)
        found = run.noisy_mean(slice(None), bound, epsilon, size)
        parts = ErrorParts(
            noise=found.noise,
            laplace=True,
            along=found.along,
            pull=cut.pull if found.is_known else 1.0,
            worst_pull=cut.worst,
            radius=bound.l1_radius,
            cut_share=cut.share,
        )
        reason = "an interval around the users was found: a window, and how far they reach."
        route = Route(name="interval", reason=reason, spread=_FIRST * width)
        return MeanRelease(mean=found.mean, parts=parts, route=route)


@dataclass(frozen=True)
class _Beyond:
    """How far each user lies from a number, on one side (sign 1 or -1) or on both (sign 0)."""

    middle: float
    sign: float = 0.0

    def __call__(self, users: WeightedUsers) -> NDArray[np.float64]:
        away = users.vectors[:, 0] - self.middle
        return np.asarray(self.sign * away if self.sign else np.abs(away))


@dataclass(frozen=True)
class _Cut:
    """An interval, how far clipping to it may move the mean, and how many may be outside."""

    lower: float
    upper: float
    pull: float
    worst: float
    share: float
