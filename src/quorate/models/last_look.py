"""Shrink the model towards the intercept, using one private line-search statistic.

Noise makes coefficients too long, and with little signal they may be worse than none at all. What
the steps released cannot tell, because the same noise is in the coefficients. So a small part of
the account is kept for a fresh question about one line, from the constant to where the descent
ended. Along it a convex loss has a slope that rises. Each user gives the slope at the end and by
how much it rises on the way; both are numbers, whose noise is small beside that of a gradient. The
loss is least where a slope that rises evenly is zero.

The slope at the end is what is asked for, and not that at the constant: where the descent ended
well its mean is near zero, and cutting it biases little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate.core.people import People
from quorate.grid import Box
from quorate.models.coordinates.geometry import WhitenedLoss
from quorate.models.optimization.descent import Minimum
from quorate.models.optimization.descent_noise import SHOWN, distance_over_noise
from quorate.models.optimization.gradients import gradients_at, signal_of
from quorate.releases.user_releases import BoundedVectors, UserReleases, bounded_mean
from quorate.users import UserData
from quorate.users.store import row_products

__all__ = [
    "LastLook",
    "Reach",
    "evidence_of",
    "look_share",
    "reach_of",
    "shortened_noise",
    "shown_of",
]

Vector = NDArray[np.float64]

# Noise of the look, in widths of its answers; and what it may cost of the whole.
_NOISE, _DEAREST, _CHEAPEST = 1.0 / 22.0, 0.06, 0.005
# Records of a user from which on it costs less.
_USUAL = 10.0
# Slopes are cut at so many times the part of a clipped gradient that lies along a line; rises at so
# many times what predictions of the expected spread have.
_WIDE, _HIGH = 2.0, 2.0
_SMALLEST = 1e-60
# A mean slope beyond this part of its limit, by so many standard deviations, says that most users
# are beyond.
_EDGE, _BEYOND = 0.65, 1.0
# Rises before anything is asked, and how much they differ, in their limit; none is below the last.
_RISE, _RISES, _LEAST_RISE = 0.35, 0.2, 0.05
# By how much coefficients are too long before anything is asked, where released gradients show
# nothing and where they show all; those of classifiers are so the longer, as clipping takes
# most from the records that pull back. Halfway at this evidence, falling this fast.
_TOO_LONG, _CLIPPED, _HALF, _FALL = 0.8, 0.1, 0.4, 2.0
# How much that differs from one model to another: at least, and where nothing is shown.
_ALIKE, _DIFFER, _HALF_DIFFER, _FALL_DIFFER = 0.05, 0.25, 1.4, 1.6
# So many standard deviations less are gone: at least, and where nothing is shown.
_BOLD, _WARY, _HALF_WARY, _FALL_WARY = 0.25, 1.25, 0.6, 4.0
# What gradients show so clearly, of numbers or of labels, goes all the way, if the look is so many
# standard deviations near to saying so, or asks for so little less.
_CLEAR, _CLEAR_LABELS, _NEARLY, _LITTLE = 1.0, 1.5, 2.0, 0.15
# A shorter part is not worth its noise.
_SHORTEST = 0.05
# Regressions of few users: the covariance is the more cautious the more they tell together.
_LEAST_OF_FEW, _TELLING = 0.2, 2.5
# What released gradients can show against a constant.
_LEAST_SHOWN = 0.05


def look_share(*, signal: float, records: float = 10.0) -> float:
    """Return the share of the budget reserved for the line search.

    With many of them users' slopes differ little, and are cut early.

    >>> look_share(signal=71.0), look_share(signal=71.0, records=40.0), look_share(signal=1e4)
    (0.06, 0.015, 0.005)
    """
    dearest = _DEAREST * min(1.0, _USUAL / max(records, 1.0))
    return max(_CHEAPEST, min(dearest, (1.0 / (_NOISE * max(signal, 1e-9))) ** 2))


@dataclass(frozen=True)
class Reach:
    """A step length from the intercept (0) to the model (1), and the standard error of it."""

    part: float
    error: float


@dataclass(frozen=True)
class LastLook:
    """The budget reserved for the line search; ``run`` holds the whole account.

    ``records`` are those of a typical user, as far as they are known.
    """

    run: UserReleases
    records: float = _USUAL

    @property
    def share(self) -> float:
        """Which part of the account is kept."""
        account = self.run.account
        signal = signal_of(n_users=self.run.n_users, mu=account.mu, relation=account.relation)
        return look_share(signal=signal, records=self.records)

    def descent(self) -> UserReleases:
        """Return the run that leaves enough budget for the last query.

        >>> from quorate.accounting.account import Account
        >>> people = UserData(np.zeros((300, 1)), offsets=np.arange(301))
        >>> account = Account.open(epsilon=1.0, delta=1e-6)
        >>> run = UserReleases.start(People(people, account.relation), account)
        >>> left = LastLook(run).descent().account.square / run.account.square
        >>> round(float(left), 6)
        0.94
        """
        account = self.run.account
        left = float(account.square_left) - self.share * float(account.square)
        return replace(self.run, account=account.part_of(square=left))

    def reach(
        self,
        loss: WhitenedLoss,
        data: People,
        *,
        constant: Vector,
        model: Vector,
        radius: float,
        steepest: float | None,
        shown: float,
    ) -> Reach:
        """Release the slopes and return the step length.

        ``data`` are the users of the run as ``loss`` sees them. ``constant`` and ``model`` are its
        parameters, ``radius`` the last clip of its gradients, ``steepest`` the slope of a record at
        zero, if it is public, and ``shown`` what released gradients show (:func:`reach_of`).

        Examples
        --------
        >>> from quorate.accounting.account import Account
        >>> from quorate.models.coordinates.geometry import Geometry
        >>> from quorate.models.coordinates.preconditioned import PreconditionedLoss
        >>> from quorate.models.regression_losses import SquaredLoss
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(5000, 1))
        >>> people = UserData(X, 0.5 * X[:, 0], offsets=np.arange(0, 5001, 5))
        >>> account = Account.open(epsilon=4.0, delta=1e-6)
        >>> run = UserReleases.start(People(people, account.relation), account)
        >>> as_they_are = Geometry(centre=np.zeros(1), whitening=np.ones(()))
        >>> reach = LastLook(run).reach(
        ...     PreconditionedLoss(SquaredLoss(), as_they_are),
        ...     run.data,
        ...     constant=np.zeros(2),
        ...     model=np.array([1.0, 0.0]),
        ...     radius=0.5,
        ...     steepest=None,
        ...     shown=1.0,
        ... )
        >>> 0.3 < reach.part < 0.7
        True
        """
        run = self.run
        length = float(np.linalg.norm(model - constant))
        rise = loss.inner.curvature * length**2
        if steepest is not None:
            # What a normal prediction meets where slopes have turned to their limits.
            rise = min(rise, math.sqrt(2.0 / math.pi) * steepest * length)
        cut = max(_WIDE * radius * length / math.sqrt(model.size), _SMALLEST)
        top = max(_HIGH * rise, _SMALLEST)
        noisy = bounded_mean(
            data,
            BoundedVectors(
                _SlopesAlong(loss, constant, model, cut=cut, top=top), Box([-1, -1], [1, 1])
            ),
            multiplier=run.account.multiplier(float(run.account.square_left)),
            account=run.account,
            n_users=run.n_users,
        )
        # Slopes are within their limits, and so is their mean, whatever noise makes of it.
        end, rise = map(float, np.clip(noisy.value, -1.0, 1.0))
        return reach_of(
            end,
            0.5 * (rise + 1.0),
            noise=noisy.noise,
            top=top / cut,
            shown=shown,
            clipped=steepest is not None,
        )


def reach_of(
    end: float, risen: float, *, noise: float, top: float, shown: float, clipped: bool
) -> Reach:
    """Return the step length from the noisy slope at the ``end`` and its increase ``risen``.

    The slope is in units of its limit and has standard deviation ``noise``; the rise is in units of
    its own, ``top`` times the other, with half the noise. Both are weighed against what is known
    before: ``shown`` is the squared way of the coefficients over what would show something by
    itself, and the longer it is, the less they are too long; ``clipped`` marks classifiers.

    >>> known = dict(noise=0.05, top=2.0, clipped=False)
    >>> [round(reach_of(0.0, 0.4, shown=shown, **known).part, 2) for shown in (0.5, 2.0, 20.0)]
    [0.89, 0.94, 1.0]
    >>> [round(reach_of(end, 0.4, shown=1.0, **known).part, 2) for end in (0.0, 0.4, 0.71)]
    [0.9, 0.43, 0.0]
    """
    evidence = math.log(max(shown, _LEAST_SHOWN))
    clear = evidence > (_CLEAR_LABELS if clipped else _CLEAR)
    if end > _EDGE + _BEYOND * noise and not clear:
        return Reach(0.0, 0.0)
    before = _TOO_LONG * _fallen(evidence, _HALF, _FALL)
    before += _CLIPPED * clipped * _fallen(evidence, _CLEAR_LABELS, _FALL)
    differ = _ALIKE + _DIFFER * _fallen(evidence, _HALF_DIFFER, _FALL_DIFFER)
    wary = _BOLD + (_WARY - _BOLD) * _fallen(evidence, _HALF_WARY, _FALL_WARY)
    rise, _ = _weighed(risen, 0.5 * noise, before=_RISE, differ=_RISES)
    rise = top * max(rise, _LEAST_RISE)
    longer, error = _weighed(end / rise, noise / rise, before=before, differ=differ)
    part = min(1.0, 1.0 - longer - wary * error)
    if clear and part + max(_NEARLY * error, _LITTLE) >= 1.0:
        return Reach(1.0, 0.0)
    return Reach(part, error) if part > _SHORTEST else Reach(0.0, 0.0)


def _fallen(evidence: float, half: float, speed: float) -> float:
    """Return what is left of one where ``half`` of the evidence leaves a half."""
    return 1.0 / (1.0 + math.exp(min(speed * (evidence - half), 500.0)))


def _weighed(value: float, noise: float, *, before: float, differ: float) -> tuple[float, float]:
    """Return the posterior mean and standard deviation of a noisy number with a normal prior."""
    weight = differ**2 / (differ**2 + noise**2)
    return weight * value + (1.0 - weight) * before, math.sqrt(weight) * noise


def shortened_noise(noise: Vector | str, way: Vector, reach: Reach) -> Vector | str:
    """Return the covariance of parameters that are shrunk by the step length ``way``.

    >>> shortened_noise(np.eye(1), np.array([2.0]), Reach(0.5, 0.1))
    array([[0.29]])
    """
    if isinstance(noise, str):
        return noise
    return np.asarray(reach.part**2 * noise + reach.error**2 * np.outer(way, way))


def shown_of(signal: float | None) -> float:
    """Return how long a squared way has to be, in those that noise makes, to show something.

    ``signal`` is told of regressions of few users: their number times the root of their records
    over the dimension, in standard deviations of the noise.

    >>> [round(shown_of(signal), 3) for signal in (None, 3.0, 9.0, 35.0)]
    [0.75, 0.75, 0.278, 0.2]
    """
    return SHOWN if signal is None else min(SHOWN, max(_LEAST_OF_FEW, _TELLING / signal))


def evidence_of(
    minimum: Minimum, noise: Vector | str, *, penalized: NDArray[np.bool_], signal: float | None
) -> float:
    """Return the squared way over one that shows something by itself; 1 if nobody can tell."""
    if isinstance(noise, str):
        return 1.0
    return distance_over_noise(minimum, noise, penalized=penalized) / shown_of(signal)


@dataclass(frozen=True)
class _SlopesAlong:
    """Each user's slope at the end of the line and its increase, both within [-1, 1]."""

    loss: WhitenedLoss
    constant: Vector
    model: Vector
    cut: float
    top: float

    def __call__(self, users: UserData) -> Vector:
        """Return two numbers per user, each from the user's own gradients."""
        way = (self.model - self.constant)[np.newaxis]
        last, first = (gradients_at(self.loss, at)(users) for at in (self.model, self.constant))
        with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
            end, risen = row_products(last, way), row_products(last - first, way)
            return np.column_stack([end / self.cut, 2.0 * risen / self.top - 1.0])
