"""The last number of a classifier: by how much its predictions miss the labels, on average.

People who hold a rare label in most of their records have the longest gradients of all, and a clip
near the middle of the lengths takes most from them: a rare label is predicted too rarely, and no
number of users takes that away. The mean of (prediction minus label) needs no such clip: of each
user it lies between two public limits. Where the share of labels that was released before the
descent shows that classes are uneven, a part of the account is kept for this mean, and the
intercept is moved until it would be zero. Where classes are not shown to be uneven clipping takes
as much from either side, and nothing is kept. Of more than two classes nobody asks: their shares
are released with so much noise that hardly any would be seen to be rare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate.core.people import People
from quorate.grid import Interval
from quorate.models.coordinates.geometry import WhitenedLoss
from quorate.models.losses import LinearLoss
from quorate.models.optimization.gradients import gradients_at, signal_of
from quorate.releases.user_releases import BoundedVectors, ReleasedMean, UserReleases, bounded_mean
from quorate.users import UserData

__all__ = ["Calibration", "calibration_share", "moved_intercept"]

Vector = NDArray[np.float64]

# The rarest class is rare if it is below its share by so many standard deviations of the noise.
_UNEVEN = 2.5
# Noise of the mean in shares of the rarest class, and what it may cost of the whole.
_PRECISE, _DEAREST, _CHEAPEST = 0.05, 0.08, 0.0005
# A mean this near to zero, in standard deviations of its noise, moves nothing; beyond the second it
# is believed as it is.
_NOTHING, _SHOWN = 1.0, 2.0
# Who holds the common label is rarely predicted to hold the rare one by more than this.
_ROOM = 0.25
# The way of the intercept is gone in so many paces, each as far as the curvature there says; none
# is longer than the last.
_PACES, _LONGEST_PACE = 16, 0.25
# No curvature is taken for flatter than this part of the largest one.
_FLATTEST = 1e-3


def calibration_share(*, signal: float, shares: Vector, noise: float) -> float:
    """Return which part of the account is kept, by n mu and released ``shares`` of two classes.

    >>> even, rare = np.array([0.45, 0.55]), np.array([0.9, 0.1])
    >>> calibration_share(signal=473.0, shares=even, noise=0.06)
    0.0
    >>> [round(calibration_share(signal=n, shares=rare, noise=0.06), 4) for n in (473.0, 4730.0)]
    [0.08, 0.0028]
    """
    rarest = float(shares.min())
    if shares.size > 2 or rarest > 0.5 - _UNEVEN * noise:
        return 0.0
    width = _limits(shares).l2_diameter
    return min(_DEAREST, max(_CHEAPEST, (width / (_PRECISE * rarest * max(signal, 1e-9))) ** 2))


@dataclass(frozen=True)
class Calibration:
    """What is kept for the last number: ``share`` of the account of ``run``, which has the whole.

    ``shares`` are those of the classes, as far as they were released.
    """

    run: UserReleases
    shares: Vector
    share: float

    @classmethod
    def planned(cls, run: UserReleases, shares: Vector, *, noise: float) -> Calibration | None:
        """Return the reserved budget, if ``shares`` released with this ``noise`` need it."""
        account = run.account
        signal = signal_of(n_users=run.n_users, mu=account.mu, relation=account.relation)
        share = calibration_share(signal=signal, shares=shares, noise=noise)
        return cls(run, shares, share) if share > 0.0 else None

    def before(self, run: UserReleases) -> UserReleases:
        """Return a run about the same account that leaves enough for the last number.

        >>> from quorate.accounting.account import Account
        >>> people = UserData(np.zeros((2000, 1)), offsets=np.arange(2001))
        >>> account = Account.open(epsilon=1.0, delta=1e-6)
        >>> run = UserReleases.start(People(people, account.relation), account)
        >>> left = Calibration(run, np.array([0.9, 0.1]), 0.05).before(run).account.square
        >>> round(float(left / run.account.square), 6)
        0.95
        """
        left = float(run.account.square_left) - self.share * float(self.run.account.square)
        return replace(run, account=run.account.part_of(square=left))

    def misses(self, loss: WhitenedLoss, data: People, theta: Vector) -> ReleasedMean:
        """Release the mean slope by the intercept at ``theta``, for all that is left.

        ``data`` are the users of the run as ``loss`` sees them.

        Examples
        --------
        >>> from quorate.accounting.account import Account
        >>> from quorate.models.coordinates.geometry import Geometry
        >>> from quorate.models.coordinates.preconditioned import PreconditionedLoss
        >>> from quorate.models.losses import LogisticLoss
        >>> people = UserData(np.zeros((2000, 1)), np.ones(2000), offsets=np.arange(2001))
        >>> account = Account.open(epsilon=4.0, delta=1e-6)
        >>> run = UserReleases.start(People(people, account.relation), account)
        >>> loss = PreconditionedLoss(LogisticLoss(), Geometry(np.zeros(1), np.ones(())))
        >>> kept = Calibration(run, np.array([0.9, 0.1]), 0.05)
        >>> bool(abs(kept.misses(loss, run.data, np.zeros(2)).value[0] + 0.5) < 0.1)
        True
        """
        return bounded_mean(
            data,
            BoundedVectors(_Misses(loss, theta), _limits(self.shares)),
            multiplier=self.run.account.multiplier(float(self.run.account.square_left)),
            account=self.run.account,
            n_users=self.run.n_users,
        )


def moved_intercept(loss: LinearLoss, theta: Vector, misses: ReleasedMean) -> tuple[float, float]:
    """Return the intercept at which nothing would be missed, and the error that noise gives to it.

    What noise alone may miss moves nothing. How far the intercept has to move follows from the
    curvature that normal features would have, pace by pace.

    >>> from quorate.models.losses import LogisticLoss
    >>> missed = ReleasedMean(np.array([0.5 - 0.1]), noise=1e-6)
    >>> intercept, error = moved_intercept(LogisticLoss(), np.zeros(2), missed)
    >>> round(intercept, 1), round(float(np.log(0.1 / 0.9)), 1), error < 1e-4
    (-2.1, -2.2, True)
    >>> moved_intercept(LogisticLoss(), np.zeros(2), ReleasedMean(np.array([0.1]), noise=0.2))
    (0.0, 0.0)
    """
    missed, intercept = float(misses.value[0]), float(theta[-1])
    length = abs(missed) / misses.noise
    part = (length - _NOTHING) / (_SHOWN - _NOTHING) * _SHOWN / max(length, _NOTHING)
    kept, flattest = min(1.0, max(0.0, part)), loss.curvature
    # Normal features tell no more about scores than their length does.
    size = float(np.linalg.norm(theta[:-1]))
    for _ in range(_PACES):
        curvature = float(loss.expected_curvature(np.array([size, intercept]))[1, 1])
        curvature = max(curvature, _FLATTEST * loss.curvature)
        flattest = min(flattest, curvature)
        pace = kept * missed / (_PACES * curvature)
        intercept -= min(_LONGEST_PACE, max(-_LONGEST_PACE, pace))
    return intercept, kept * misses.noise / flattest if kept else 0.0


def _limits(shares: Vector) -> Interval:
    """Return between what the mean slope of a user is: public limits, by the rarer class."""
    lower, upper = (-1.0, _ROOM) if shares[1] < shares[0] else (-_ROOM, 1.0)
    return Interval(lower, upper, centre=0.0)


@dataclass(frozen=True)
class _Misses:
    """Each user's mean slope by the intercept: that of predictions minus labels."""

    loss: WhitenedLoss
    theta: Vector

    def __call__(self, users: UserData) -> Vector:
        """Return one number per user, from the user's own gradient."""
        return gradients_at(self.loss, self.theta)(users)[:, -1:]
