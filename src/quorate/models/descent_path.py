"""What a descent leaves behind at each of its steps, and whether its way is more than noise.

Noise alone carries a descent away from where it began. How far is known from the sizes of the
noise, the lengths of the steps and the curvature that released gradients show
(:mod:`quorate.models.coefficient_error`): the squared way has the trace of that covariance as its
mean. A way that is no longer shows nothing, and noise would cost what the way seems to gain. All of
it follows from released numbers, so that the choice is free.

The covariance is a cautious one: ways that noise alone made are mostly shorter than it says, and
those of few people who agree begin a little below it, too (see ``_SHOWN``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from quorate.models.gradients import ReleasedGradient
    from quorate.models.minimization import Minimum

__all__ = [
    "LEAST_CURVED",
    "DescentStep",
    "Gain",
    "are_doubtful",
    "are_drowned",
    "are_only_noise",
    "evidence_of",
    "point_so_far",
    "shown_of",
    "way_over_noise",
]

Vector = NDArray[np.float64]

LEAST_CURVED = 0.5
"""Part of the largest curvature that a loss is taken to have along the way of a descent."""
# Squared ways shorter than this, in those that noise makes, are taken for noise.
_SHOWN = 0.75
# Halfway, where less is known and a constant could still be bought, only shorter ones.
_HALFWAY = 0.83
# Where a last look follows, only still shorter ones.
_LOOKED = 0.5
# Regressions of few users: the covariance is the more cautious the more they tell together.
_LEAST_SHOWN, _TELLING = 0.2, 2.5
# Where the covariance is not known: gains below this, in standard deviations, are no gains.
_DOUBT = -1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class DescentStep:
    """Where one released gradient was asked for, what it was, and how the step was taken.

    ``curvature`` is what the length of the step was divided by, ``shrinkage`` the penalty that
    noise called for. All of it was released or follows from what was.

    >>> DescentStep(
    ...     theta=np.zeros(1), gradient=np.ones(1), noise=0.1, curvature=1.0, shrinkage=0.0
    ... ).curvature
    1.0
    """

    theta: Vector
    gradient: Vector
    noise: float
    curvature: float
    shrinkage: float


class Gain:
    """By how much the loss is lower at the point that is returned than at the start.

    Along the way back the loss rises by at least minus the gradient at the end times the way, plus
    half the curvature times its square. The gradient at the end is the mean over the later half of
    the steps, whose points are averaged. Noise alone makes a way, too, and what that would seem to
    gain is taken off. Only coordinates that a penalty may shrink are looked at, so that an
    intercept alone is no gain.
    """

    def __init__(self, places: NDArray[np.bool_], initial: Vector, *, steps: int) -> None:
        self._places, self._initial, self._half = places, initial, steps // 2
        self._total, self._weight, self._whole = np.zeros(places.size), 0.0, 0.0

    def after(self, noisy: ReleasedGradient, step: int) -> None:
        """Take in one more released gradient."""
        if step >= self._half:
            weight = 1.0 / noisy.noise**2
            self._total = self._total + weight * noisy.value
            self._weight += weight
            self._whole = noisy.whole

    def until(self, theta: Vector, *, curvature: float) -> tuple[float, float]:
        """Return the gain at ``theta`` and its standard deviation."""
        back = np.where(self._places, self._initial - theta, 0.0)
        gain = float(back @ self._total) / self._weight
        gain += 0.5 * LEAST_CURVED * curvature * float(back @ back)
        gain -= np.count_nonzero(self._places) * self._whole**2 / (LEAST_CURVED * curvature)
        return gain, float(np.linalg.norm(back)) / math.sqrt(self._weight)


def point_so_far(path: Sequence[DescentStep], last: Vector) -> Vector:
    """Return the average that a descent would return if it ended at ``last``, after this path.

    >>> steps = [
    ...     DescentStep(
    ...         theta=np.full(1, place), gradient=np.ones(1), noise=1.0, curvature=1.0, shrinkage=0
    ...     )
    ...     for place in (0.0, 1.0, 2.0, 3.0)
    ... ]
    >>> point_so_far(steps, np.full(1, 4.0))
    array([3.5])
    """
    half = (len(path) + 1) // 2
    points = np.array([*(step.theta for step in path[half + 1 :]), last])
    weights = np.array([step.noise**-2 for step in path[half:]])
    return np.asarray(weights @ points / weights.sum())


def are_drowned(noise: float, dimension: int, *, largest: float | None) -> bool:
    """Tell from the first released gradient whether all of them drowned in noise.

    In coordinates of unit spread a mean gradient is at most as long as the ``largest`` slope of the
    loss, by Cauchy and Schwarz. Noise of twice that length comes from a radius search that went
    wrong; steps along it would lead anywhere.

    >>> are_drowned(0.74, 21, largest=1.0), are_drowned(0.24, 21, largest=1.0)
    (True, False)
    """
    return largest is not None and noise * math.sqrt(dimension) > 2.0 * largest


def are_only_noise(
    minimum: Minimum,
    noise: Vector | str,
    *,
    penalized: NDArray[np.bool_],
    signal: float | None = None,
    halfway: bool = False,
    looked: bool = False,
) -> bool:
    """Tell whether the coefficients that a descent ended at may as well be noise.

    ``noise`` is the covariance of the parameters, or why it cannot be told; ``penalized`` marks the
    coefficients among them. An intercept is no reason to prefer either. ``signal`` is told of
    regressions of few users: their number times the root of their records over the dimension, in
    standard deviations of the noise. ``halfway`` tells that the descent may still go on, ``looked``
    that a last look follows (:mod:`quorate.models.last_look`), which may find out, too.

    >>> from quorate.accounting.events import Gaussian
    >>> from quorate.models.minimization import Minimum
    >>> path = (
    ...     DescentStep(
    ...         theta=np.zeros(2), gradient=np.ones(2), noise=0.1, curvature=1.0, shrinkage=0.0
    ...     ),
    ... )
    >>> ended = Minimum(theta=np.array([0.5, 3.0]), event=Gaussian(4.0), trace=(), path=path)
    >>> where = dict(penalized=np.array([True, False]))
    >>> are_only_noise(ended, 0.01 * np.eye(2), **where), are_only_noise(ended, np.eye(2), **where)
    (False, True)
    """
    if minimum.gain < _DOUBT * minimum.gain_error:
        return True
    if isinstance(noise, str):
        return False
    shown = shown_of(signal) * (_HALFWAY if halfway else 1.0) * (_LOOKED if looked else 1.0)
    return way_over_noise(minimum, noise, penalized=penalized) < shown


def shown_of(signal: float | None) -> float:
    """Return how long a squared way has to be, in those that noise makes, to show something.

    >>> [round(shown_of(signal), 3) for signal in (None, 3.0, 9.0, 35.0)]
    [0.75, 0.75, 0.278, 0.2]
    """
    return _SHOWN if signal is None else min(_SHOWN, max(_LEAST_SHOWN, _TELLING / signal))


def are_doubtful(
    so_far: Minimum,
    noise_of: Callable[[Minimum], Vector | str],
    *,
    penalized: NDArray[np.bool_],
    largest: float | None,
    signal: float | None = None,
    looked: bool = False,
) -> bool:
    """Tell on the way whether the rest of the budget had better buy a constant.

    After the first step this is so if it drowned (:func:`are_drowned`), later if the way may as
    well be noise (:func:`are_only_noise`), whose covariance ``noise_of`` tells.
    """
    if len(so_far.path) == 1:
        return are_drowned(so_far.path[0].noise, penalized.size, largest=largest)
    return are_only_noise(
        so_far,
        noise_of(so_far),
        penalized=penalized,
        signal=signal,
        halfway=True,
        looked=looked,
    )


def evidence_of(
    minimum: Minimum, noise: Vector | str, *, penalized: NDArray[np.bool_], signal: float | None
) -> float:
    """Return the squared way over one that shows something by itself; 1 if nobody can tell."""
    if isinstance(noise, str):
        return 1.0
    return way_over_noise(minimum, noise, penalized=penalized) / shown_of(signal)


def way_over_noise(minimum: Minimum, noise: Vector, *, penalized: NDArray[np.bool_]) -> float:
    """Return the squared way of the coefficients over what noise makes of it."""
    way = (minimum.theta - minimum.path[0].theta)[penalized]
    expected = float(np.trace(noise[np.ix_(penalized, penalized)]))
    return float(way @ way) / max(expected, 1e-300)
