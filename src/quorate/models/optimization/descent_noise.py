r"""What the noise of its steps made of a descent: how far it carried it, and whether more is shown.

A descent is linear in the noise of its gradients: near its end the noise :math:`\xi_t` of step t
moves the parameters by :math:`-r_t\xi_t`, and each later step pulls them back by
:math:`1 - r_t(H + \lambda_t)`. Step lengths :math:`r_t`, shrinkage :math:`\lambda_t` and the sizes
of the noise are known; the curvature H of the clipped loss is not. Two things tell of it, both free
of cost. In released coordinates features have about unit spread, which gives the curvature that
they would have if nobody were clipped and they were normal
(:meth:`~quorate.models.losses.LinearLoss.expected_curvature`). And between two points a released
gradient changes by H times their distance, plus noise of known size.
So H is read off the later two thirds of the descent (:func:`released_curvature`), beginning with
what is expected, and its uncertainty is taken off. Nothing but released numbers enters, so that all
of this is free: the error of coefficients, and the choice of a constant in their place. The squared
way of a descent that noise alone made has the trace of the covariance as its mean. A way that is no
longer shows nothing, and noise would cost what the way seems to gain. The covariance is
conservative: coefficients that consist of noise alone are mostly shorter than it says, and those of
few users who agree may be slightly below it too (see ``SHOWN``).

A regression on a path that its own noise made sees too much curvature, by about
:math:`(4 - 3rh)/(rT)` [1]_; this is taken off, too.

References
----------
.. [1] Kendall. Note on bias in the estimation of autocorrelation. Biometrika 41, 1954; for paths
   whose mean is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate.models.coefficients import NORMAL, CoefficientError
from quorate.models.coordinates.geometry import Geometry
from quorate.models.losses import LinearLoss, in_one_thread
from quorate.models.optimization.descent import AveragedDescent, Minimum
from quorate.models.optimization.gradients import DescentStep
from quorate.models.public_inputs import FeatureRange

__all__ = [
    "SCALED",
    "SHOWN",
    "WHITENED",
    "CurvatureBelief",
    "are_doubtful",
    "are_drowned",
    "are_only_noise",
    "coefficient_error",
    "distance_over_noise",
    "error_of_covariance",
    "noise_covariance",
    "parameter_noise",
    "point_so_far",
    "released_curvature",
]

Vector = NDArray[np.float64]

# Steps before this part are on the way, with other clips and another curvature.
_ON_THE_WAY = 1.0 / 3.0
# Where it may lie, in parts of what is expected.
_FLATTEST, _STEEPEST = 0.05, 1.5
# Where the part of it may lie that is left in all directions.
_LEAST_LEFT, _MOST_LEFT = 0.05, 1.0
# Several classes share directions in which nothing but shrinkage pulls: standard errors that were
# right for normal features were too small by up to so much (benchmarks/coefficients.py).
_SEVERAL_CLASSES = 1.5
# Squares of what is smaller than this, and than its inverse, are finite.
_HUGE = 1e60
# A model that is sure of nearly every label: gradients no longer tell how steep the loss is.
_SURE = 1e-3
SHOWN = 0.75
"""Squared ways shorter than this, in those that noise makes, are taken for noise."""
# Halfway, where less is known and a constant could still be bought, only shorter ones.
_HALFWAY = 0.83
# Where a last look follows, only still shorter ones.
_LOOKED = 0.5
# Where the covariance is not known: gains below this, in standard deviations, are no gains.
_DOUBT = -1.0
FEWEST_STEPS = 8
"""With fewer steps a descent tells too little about its curvature."""
MOST_PARAMETERS = 300
"""Beyond so many parameters no error is stated: matrices of them would take longer than the fit."""


@dataclass(frozen=True, kw_only=True)
class CurvatureBelief:
    """What is believed about the curvature before a gradient was seen.

    Parameters
    ----------
    part : float
        Which part of the expected curvature clipping leaves.
    sure : float
        Standard deviation of that.
    unlike : float
        How unlike directions are, in parts of what is expected.
    bias : float
        How much of the bias of a path made by its own noise is taken off: less where the path
        begins far away, whose way to the end has none.
    caution : float
        The curvature is taken for this many standard deviations less than it looks.

    Examples
    --------
    >>> WHITENED.unlike < SCALED.unlike
    True
    """

    part: float
    sure: float
    unlike: float
    bias: float
    caution: float


WHITENED = CurvatureBelief(part=0.8, sure=0.25, unlike=0.15, bias=0.5, caution=1.0)
"""Where the second moment of the features was released in rounds."""

SCALED = CurvatureBelief(part=0.5, sure=0.3, unlike=0.3, bias=1.0, caution=0.7)
"""Where only their scale was, or a second moment with much noise."""


def coefficient_error(
    noise: Vector | str,
    loss: LinearLoss,
    geometry: Geometry,
    limits: FeatureRange | None,
    *,
    unit: float,
) -> CoefficientError:
    """Return the error of the coefficients that a descent ended at, from what it released.

    ``noise`` is the covariance of its parameters, or why it cannot be told
    (:func:`parameter_noise`); ``limits`` are those to which the features were scaled, ``unit`` is
    how many units of the target are one of the descent.
    """
    if isinstance(noise, str):
        return CoefficientError.unknown(
            noise,
            outputs=loss.outputs,
            features=geometry.centre.size,
            intercept=loss.intercept,
        )
    outward = np.kron(np.eye(loss.outputs), _outward(geometry, loss, limits))
    outward *= unit
    return error_of_covariance(
        outward @ noise @ outward.T, outputs=loss.outputs, intercept=loss.intercept
    )


def error_of_covariance(covariance: Vector, *, outputs: int, intercept: bool) -> CoefficientError:
    """Return the error of noise with this covariance, the parameters of each output in turn.

    >>> error = error_of_covariance(np.diag([0.04, 0.01]), outputs=1, intercept=True)
    >>> error.standard_errors, [round(each, 3) for each in error.coordinates]
    (array([[0.2, 0.1]]), [0.392, 0.196])
    """
    size = len(covariance) // outputs
    blocks = np.zeros((outputs, size + (not intercept), size + (not intercept)))
    for place in range(outputs):
        own = slice(place * size, (place + 1) * size)
        blocks[place, :size, :size] = covariance[own, own]
    each = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    spread = float(np.trace(covariance))
    # The squared length has this mean and twice the trace of the square as its variance.
    upper = spread + 1.645 * math.sqrt(2.0 * float(np.sum(covariance**2)))
    return CoefficientError(
        standard_errors=np.sqrt(np.maximum(np.diagonal(blocks, axis1=1, axis2=2), 0.0)),
        covariance=blocks,
        bound=max(math.sqrt(upper), NORMAL * float(each.max())),
        coordinates=tuple(float(NORMAL * size) for size in each),
    )


def parameter_noise(
    minimum: Minimum, loss: LinearLoss, geometry: Geometry, *, whitened: bool, sampled: bool
) -> Vector | str:
    """Return the covariance of the final parameters of a descent, or why it is unknown.

    ``whitened`` tells that users were enough for a second moment that can be relied on, ``sampled``
    that steps saw samples of the users, whose own scatter nobody released.
    """
    features, descent = geometry.centre.size, minimum.optimizer
    reason = _unknown(minimum, parameters=loss.dimension(features), sampled=sampled)
    expected = loss.expected_curvature(minimum.theta) if reason is None else np.zeros((1, 1))
    if reason is None and not float(np.diagonal(expected).mean()) > _SURE * loss.curvature:
        reason = "The model is so sure of every label that its curvature is not known."
    if reason is not None or not isinstance(descent, AveragedDescent):
        return reason or "These steps are not those of a plain descent."
    curvature = released_curvature(
        minimum.path,
        expected=expected,
        step_size=descent.step_size,
        belief=WHITENED if whitened else SCALED,
    )
    found = noise_covariance(
        minimum.path,
        curvature + _pull(geometry, loss, minimum.penalty),
        descent=descent,
        shrunk=np.asarray(~loss.unpenalized(features), dtype=np.float64),
    )
    return found if loss.outputs == 1 else found * _SEVERAL_CLASSES**2


def _unknown(minimum: Minimum, *, parameters: int, sampled: bool) -> str | None:
    """Return why nothing can be stated, if so; it follows from public and released numbers."""
    if sampled:
        return "How much samples of users differ from all of them was not released."
    if parameters > MOST_PARAMETERS:
        return f"For more than {MOST_PARAMETERS} coefficients the error is not computed."
    if len(minimum.path) < FEWEST_STEPS:
        return f"Fewer than {FEWEST_STEPS} steps tell too little about the curvature."
    largest = np.abs([(step.theta, step.gradient) for step in minimum.path]).max()
    noises = [step.noise for step in minimum.path]
    if not (largest < _HUGE and 1.0 / _HUGE < min(noises) <= max(noises) < _HUGE):
        return "Gradients are too large or too small for the arithmetic of errors."
    return None


def released_curvature(
    path: Sequence[DescentStep],
    *,
    expected: Vector,
    step_size: float,
    belief: CurvatureBelief = WHITENED,
) -> Vector:
    """Return the curvature that released gradients show, on the cautious side.

    A ridge regression of gradients on the points where they were taken, weighted by their
    precision. It is pulled towards a part of the ``expected`` curvature, the same in all
    directions, for which all of them speak together.

    Parameters
    ----------
    path : sequence of DescentStep
    expected : array
        The curvature if nobody were clipped and features were as they look.
    step_size : float
    belief : CurvatureBelief, default=WHITENED

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> theta, path = np.zeros(6), []
    >>> for _ in range(40):
    ...     gradient = 0.6 * (theta - 1.0) + 0.1 * rng.normal(size=6)
    ...     path.append(
    ...         DescentStep(theta=theta, gradient=gradient, noise=0.1, curvature=1.0, shrinkage=0.0)
    ...     )
    ...     theta = theta - gradient
    >>> curvature = released_curvature(path, expected=np.eye(6), step_size=1.0)
    >>> bool(0.3 < np.diagonal(curvature).mean() < 0.7)
    True
    """
    later = path[int(_ON_THE_WAY * len(path)) :]
    weights = np.array([1.0 / step.noise**2 for step in later])
    sizes, axes = np.linalg.eigh(expected)
    # Directions in which nothing is expected (of several classes, a shift of all) get a little.
    sizes = np.maximum(sizes, _FLATTEST * float(sizes.mean()))
    roots = np.sqrt(sizes)
    # In coordinates in which the expected curvature is the identity; the noise is not, then.
    points = np.array([step.theta for step in later]) @ axes * roots
    gradients = np.array([step.gradient for step in later]) @ axes / roots
    points = points - (weights @ points) / weights.sum()
    gradients = gradients - (weights @ gradients) / weights.sum()
    seen = (points * weights[:, None]).T @ points
    shown = (gradients * weights[:, None]).T @ points
    rate = step_size / float(np.mean([step.curvature for step in later]))
    # Without the bias of a regression on a path that its own noise made.
    bias = belief.bias * 4.0 / (rate * len(later)) * seen / sizes[:, None]
    shown = (shown - bias) / (1.0 - belief.bias * 3.0 / len(later))
    known = float(sizes @ np.diagonal(seen)) + belief.sure**-2
    left = (float(sizes @ np.diagonal(shown)) + belief.part * belief.sure**-2) / known
    left = min(max(left - belief.caution / math.sqrt(known), _LEAST_LEFT), _MOST_LEFT)
    pull = belief.unlike**-2
    spreads, turned = np.linalg.eigh(seen)
    precision = sizes[:, None] * np.maximum(spreads, 0.0) + pull
    pulled = sizes[:, None] * shown + left * pull * np.eye(len(sizes))
    found = (pulled @ turned / precision) @ turned.T
    found = found - belief.caution * (turned / np.sqrt(precision)) @ turned.T
    parts, directions = np.linalg.eigh((found + found.T) / 2.0)
    outward = (axes * roots) @ directions
    return np.asarray((outward * np.clip(parts, _FLATTEST, _STEEPEST)) @ outward.T)


def noise_covariance(
    path: Sequence[DescentStep], curvature: Vector, *, descent: AveragedDescent, shrunk: Vector
) -> Vector:
    """Return the covariance that the noise of all steps gives to the average of the later points.

    ``shrunk`` is 1 for parameters that shrinkage pulls on, else 0.

    >>> step = DescentStep(
    ...     theta=np.zeros(1), gradient=np.zeros(1), noise=0.5, curvature=1.0, shrinkage=0.0
    ... )
    >>> noise_covariance([step] * 9, np.eye(1), descent=AveragedDescent(step_size=1.0),
    ...                  shrunk=np.ones(1))
    array([[0.0625]])
    """
    size = len(curvature)
    rates = descent.step_size / np.array([step.curvature for step in path])
    kept = 1.0 - np.outer(rates * [step.shrinkage for step in path], shrunk)
    noises = np.array([step.noise for step in path])
    weights = (noises[-1] / noises) ** 2
    weights[np.arange(len(path)) < (1.0 - descent.tail) * len(path)] = 0.0
    found, left = np.zeros((2, size, size))
    # Backwards: the noise of a step moves the weighted sum of points by the weight of the next one,
    # and by what later steps leave of it. So one product a step will do.
    for some in reversed(list(in_one_thread(len(path), size**3))):
        pulls = np.multiply.outer(-rates[some], curvature)
        moved = np.zeros_like(pulls)
        pulls.reshape(len(pulls), -1)[:, :: size + 1] += kept[some]
        moved.reshape(len(moved), -1)[:, :: size + 1] = weights[some, None]
        for pull, own in zip(pulls[::-1], moved[::-1], strict=True):
            own += left
            np.matmul(pull, own, out=left)
        moved *= (rates * noises)[some, None, None]
        flat = moved.reshape(-1, size)
        found += flat.T @ flat
    return np.asarray(found / weights.sum() ** 2)


def _pull(geometry: Geometry, loss: LinearLoss, strength: float) -> Vector:
    """Return the curvature of a penalty of strength / 2 x squared coefficients."""
    size = geometry.centre.size
    if strength == 0.0:
        return np.zeros((loss.dimension(size), loss.dimension(size)))
    block = np.zeros((size + loss.intercept, size + loss.intercept))
    whitening = _matrix(geometry)
    block[:size, :size] = strength * whitening @ whitening
    return np.asarray(np.kron(np.eye(loss.outputs), block), dtype=np.float64)


def _outward(geometry: Geometry, loss: LinearLoss, limits: FeatureRange | None) -> Vector:
    """Return the matrix from the parameters of one output to what acts on features as they come."""
    size = geometry.centre.size
    whitening = _matrix(geometry)
    outer = whitening if limits is None else whitening / limits.half_width
    turned = np.zeros((size + loss.intercept, size + loss.intercept))
    turned[:size, :size] = outer.T
    if loss.intercept:
        turned[size, :size] = -(whitening @ geometry.centre)
        if limits is not None:
            turned[size, :size] -= outer @ limits.centre
        turned[size, size] = 1.0
    return turned


def _matrix(geometry: Geometry) -> Vector:
    found: Vector = geometry.whitening
    return found if found.ndim else np.eye(geometry.centre.size) * float(found)


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
    halfway: bool = False,
    looked: bool = False,
) -> bool:
    """Tell whether the coefficients that a descent ended at may as well be noise.

    ``noise`` is the covariance of the parameters, or why it cannot be told; ``penalized`` marks the
    coefficients among them. An intercept is no reason to prefer either. ``halfway`` tells that the
    descent may still go on, ``looked`` that a last look follows (:mod:`quorate.models.last_look`),
    which may find out, too.

    >>> from quorate.guarantees import Gaussian
    >>> from quorate.models.optimization.descent import Minimum
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
    shown = SHOWN * (_HALFWAY if halfway else 1.0) * (_LOOKED if looked else 1.0)
    return distance_over_noise(minimum, noise, penalized=penalized) < shown


def are_doubtful(
    so_far: Minimum,
    noise_of: Callable[[Minimum], Vector | str] | None,
    *,
    penalized: NDArray[np.bool_],
    largest: float | None,
    looked: bool = False,
) -> bool:
    """Tell on the way whether the rest of the budget had better buy a constant.

    After the first step this is so if it drowned (:func:`are_drowned`), later if the way may as
    well be noise (:func:`are_only_noise`), whose covariance ``noise_of`` tells; nobody asks later
    if there is none.
    """
    if len(so_far.path) == 1:
        return are_drowned(so_far.path[0].noise, penalized.size, largest=largest)
    if noise_of is None:
        return False
    so_far = replace(so_far, theta=point_so_far(so_far.path, so_far.theta))
    return are_only_noise(
        so_far, noise_of(so_far), penalized=penalized, halfway=True, looked=looked
    )


def distance_over_noise(minimum: Minimum, noise: Vector, *, penalized: NDArray[np.bool_]) -> float:
    """Return the squared way of the coefficients over what noise makes of it."""
    way = (minimum.theta - minimum.path[0].theta)[penalized]
    expected = float(np.trace(noise[np.ix_(penalized, penalized)]))
    return float(way @ way) / max(expected, 1e-300)
