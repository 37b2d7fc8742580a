"""The starting point of a regression: the private mean target, which saves the first steps.

A target whose public range is much wider than people's targets makes the first gradients long:
all of them point to the mean. A clip that leaves room for them costs noise in every coefficient,
and directions in which features hardly spread forget early noise slowly. A few rounds about one
number are cheap: each clips the users' mean targets to an interval around the last one, and a free
lift shows how narrow the next interval may be (:mod:`quorate.core.bounds.lifted_ball`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.lifted_ball import LiftedBall
from quorate.guarantees import Relation
from quorate.means.spread_belief import SpreadBelief
from quorate.models.optimization.gradients import signal_of
from quorate.releases.user_releases import BoundedVectors, ReleasedMean, UserReleases, bounded_mean
from quorate.users import UserData

__all__ = [
    "FirstConstant",
    "as_far_as_shown",
    "first_share",
    "mean_of_both",
    "mean_of_present",
    "release_constant",
    "release_first_constant",
]

Vector = NDArray[np.float64]

_ROUNDS = 4
# Noise of a round in lengths of its interval, and what it may cost of the whole: more where no
# clips are searched for later, and intervals of few users would never shrink.
_NOISE, _DEAREST, _DEAREST_OF_FEW, _CHEAPEST = 0.15, 0.015, 0.05, 0.0005
# The next interval, in spreads of the users and in standard errors of its middle.
_SPREADS, _ERRORS = 1.5, 2.5
# A mean this near to the end of its interval says that people are beyond.
_EDGE = 0.6
# A share of absent people is believed from so many standard deviations on, and at most so large.
_SEEN, _MOST_ABSENT = 3.0, 0.95
# Classes are even within a standard deviation of the noise (in several dimensions its usual length)
# and as uneven as they look from so many more on: nothing is moved by more than noise moves it.
_MORE = 2.0
# Noise of a share of labels that a constant needs, and what it may cost.
_SHARE_NOISE, _DEAREST_SHARE = 1.0 / 16.0, 0.03
# A later constant farther away, in standard errors of the first one, is not believed.
_FARTHEST = 3.5


@dataclass(frozen=True)
class FirstConstant:
    """A released mean target and the standard deviation of its noise.

    Examples
    --------
    >>> first = FirstConstant(2.0, 0.1)
    >>> first.or_later(2.3, error=0.05), first.or_later(9.0, error=0.05)
    (2.3, 2.35)
    >>> first.or_later(2.3, error=0.2)
    2.0
    """

    value: float
    error: float
    radius: float = 1.0
    belief: SpreadBelief | None = None

    @property
    def spread(self) -> float:
        """Half-width of the interval to which users' mean targets were clipped last."""
        return self.radius / _SPREADS

    def or_later(self, value: float, *, error: float) -> float:
        """Return the released constant with the smaller standard error.

        That of a descent had coefficients beside it, which are dropped: however sure it looks, it
        is not believed farther away than the first one allows.
        """
        if self.error <= error:
            return self.value
        reach = _FARTHEST * self.error
        return min(max(value, self.value - reach), self.value + reach)

    def again(self, run: UserReleases, *, rounds: int, square: float) -> FirstConstant:
        """Refine the mean: each round pays ``square`` and clips around the previous mean."""
        cone, n = run.relation is not Relation.REPLACE, run.n_users
        centre, error, radius = self.value, self.error, self.radius
        belief = self.belief or SpreadBelief.at_most(radius, cone=cone)
        for _ in range(rounds):
            noisy = bounded_mean(
                run.data,
                BoundedVectors(_placed, LiftedBall(radius, centre=[centre], cone=cone)),
                multiplier=run.account.multiplier(square),
                account=run.account,
                n_users=n,
            )
            moved, height = noisy.value / radius
            belief = belief.after(
                float(height), radius=radius, around=error, noise=noisy.noise / radius, users=n
            )
            centre, error = centre + radius * float(np.clip(moved, -1.0, 1.0)), noisy.noise
            if abs(moved) <= _EDGE:
                narrow = math.hypot(_SPREADS * belief.spread[0], _ERRORS * error)
                radius = min(radius, max(radius / 8.0, narrow))
        return FirstConstant(centre, error, radius, belief)

    def last(self, run: UserReleases) -> float:
        """Spend what is left of the account on the constant: nothing else will be asked."""
        square = float(run.account.square_left)
        found = self.again(run, rounds=_ROUNDS, square=0.5 * square / _ROUNDS)
        return found.again(run, rounds=1, square=float(run.account.square_left)).value


def release_first_constant(
    run: UserReleases, *, reach: float | None, few: bool = False
) -> FirstConstant:
    """Release about the mean over users of their mean targets.

    ``reach`` is how far a target can be from zero, if that is public; else it is searched for.
    ``few`` says that the plan for few users is used (:mod:`quorate.models.optimization.few_users`).

    Examples
    --------
    >>> from quorate.accounting.account import Account
    >>> from quorate.core.people import People
    >>> rng = np.random.default_rng(0)
    >>> people = UserData(np.zeros((4000, 1)), rng.normal(0.4, 0.1, 4000), offsets=np.arange(4001))
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> found = release_first_constant(run, reach=1.0)
    >>> abs(found.value - 0.4) < 0.1, found.error < 0.1
    (True, True)
    """
    whole, mu, n = float(run.account.square), run.account.mu, run.n_users
    wanted = max(_CHEAPEST, (2.0 / (_NOISE * n * mu)) ** 2)
    if reach is None:
        look = min(_DEAREST, wanted) * whole
        reach = run.widen(_mean_targets, guess=1.0, dimension=1, square=look)
    square = min(_DEAREST_OF_FEW if few else _DEAREST, wanted) * whole
    return FirstConstant(0.0, 0.0, reach).again(run, rounds=_ROUNDS, square=square)


def release_constant(
    run: UserReleases,
    record_targets: Callable[[Vector], Vector],
    *,
    reach: float,
    share: float | None = None,
) -> ReleasedMean:
    """Spend a share of the account, or what is left, on the mean over users of mean targets.

    ``record_targets`` turns targets into rows of length at most ``reach``. Who has no record votes
    for that in a column of its own, which is free: with zeros in all others the vote is no farther
    from anybody's targets than these may be from one another, and no longer than they may be.

    >>> from quorate.accounting.account import Account
    >>> from quorate.core.people import People
    >>> held = np.repeat(np.arange(901), 2)[1:]
    >>> people = UserData(np.zeros((900, 1)), np.ones(900), offsets=held)
    >>> account = Account.open(epsilon=2.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> found = release_constant(run, lambda targets: targets[:, None], reach=1.0)
    >>> people.n_users, bool(abs(found.value[0] - 1.0) < 0.1)
    (1800, True)
    """

    def targets(users: UserData) -> Vector:
        held = np.zeros(users.n_records) if users.y is None else users.y
        counts = users.record_counts()[:, None]
        means = users.user_sums(record_targets(held)) / np.maximum(counts, 1)
        return np.concatenate([means, np.where(counts > 0, 0.0, reach)], axis=1)

    size = record_targets(np.zeros(0)).shape[1]
    left = float(run.account.square_left)
    square = left if share is None else share * float(run.account.square)
    noisy = run.mean(targets, dimension=size + 1, radius=reach, square=square)
    return mean_of_present(noisy, reach=reach)


def first_share(run: UserReleases) -> float:
    """Return the share of the account for a constant that may take the place of a classifier.

    That of a descent is the offset at its centre, which is not known well where users are few.

    >>> from quorate.accounting.account import Account
    >>> from quorate.core.people import People
    >>> people = UserData(np.zeros((1000, 1)), offsets=np.arange(1001))
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> round(first_share(run), 4)
    0.0046
    """
    signal = signal_of(n_users=run.n_users, mu=run.account.mu, relation=run.relation)
    return min(_DEAREST_SHARE, max(_CHEAPEST, (1.0 / (_SHARE_NOISE * signal)) ** 2))


def mean_of_present(noisy: ReleasedMean, *, reach: float) -> ReleasedMean:
    """Divide a mean by the fraction of users with records; its last column counts the others.

    >>> mean_of_present(ReleasedMean(np.array([0.3, 0.4]), noise=0.03), reach=1.0)
    ReleasedMean(value=array([0.5]), noise=0.05)
    >>> mean_of_present(ReleasedMean(np.array([0.3, 0.02]), noise=0.01), reach=1.0)
    ReleasedMean(value=array([0.3]), noise=0.01)
    """
    absent = float(noisy.value[-1])
    share = absent / reach if absent > _SEEN * noisy.noise else 0.0
    present = 1.0 - min(share, _MOST_ABSENT)
    return ReleasedMean(np.asarray(noisy.value[:-1] / present), noisy.noise / present)


def mean_of_both(first: ReleasedMean, again: ReleasedMean) -> ReleasedMean:
    """Return the best guess from two releases of one mean, and its noise.

    >>> first, again = ReleasedMean(np.zeros(1), noise=3.0), ReleasedMean(np.ones(1), noise=4.0)
    >>> both = mean_of_both(first, again)
    >>> both.value.round(2), both.noise
    (array([0.36]), 2.4)
    """
    whole = math.hypot(first.noise, again.noise)
    weight = (first.noise / whole) ** 2
    value = weight * again.value + (1.0 - weight) * first.value
    return ReleasedMean(np.asarray(value), first.noise * again.noise / whole)


def as_far_as_shown(noisy: ReleasedMean, *, usual: float | Vector) -> Vector:
    """Shrink a mean to ``usual`` in each coordinate where the difference is within the noise.

    What lies beyond the noise is kept as it is; between both the difference grows evenly. So the
    mean is moved by no more than the noise has, wherever it is.

    >>> found = [ReleasedMean(np.array([value]), noise=0.1) for value in (0.05, 0.1, -0.2, 0.3)]
    >>> [round(float(as_far_as_shown(each, usual=0.0)[0]), 2) for each in found]
    [0.0, 0.0, -0.15, 0.3]
    """
    away = noisy.value - usual
    length, root = math.sqrt(float(away @ away)) / noisy.noise, math.sqrt(away.size)
    kept = min(1.0, max(0.0, (root + _MORE) / max(length, root) * (length - root) / _MORE))
    return np.asarray(usual + kept * away)


def _mean_targets(users: UserData) -> Vector:
    """Return each user's mean target; NaN, which is taken for the middle, without records."""
    targets = np.zeros(users.n_records) if users.y is None else users.y
    counts = users.record_counts()
    sums = users.user_sums(targets[:, None])
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], np.nan)


def _placed(users: UserData) -> Vector:
    """Return mean targets with an extra coordinate for the lift."""
    means = _mean_targets(users)
    return np.concatenate([means, np.zeros_like(means)], axis=1)
