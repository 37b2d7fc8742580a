r"""How far the noise of privacy carried the coefficients of a linear model: what ``error_`` tells.

A descent is linear in the noise of its gradients: near its end the noise :math:`\xi_t` of step t
moves the parameters by :math:`-r_t\xi_t`, and each later step pulls them back by
:math:`1 - r_t(H + \lambda_t)`. Step lengths :math:`r_t`, shrinkage :math:`\lambda_t` and the sizes
of the noise are known; the curvature H of the clipped loss is not. Two things tell of it, both free
of cost. In released coordinates features have about unit spread, which gives the curvature that
they would have if nobody were clipped and they were normal (:func:`expected_curvature`). And
between two points a released gradient changes by H times their distance, plus noise of known size.
So H is read off the later two thirds of the descent (:func:`released_curvature`), beginning with
what is expected, and its uncertainty is taken off. Nothing but released numbers enters.

A regression on a path that its own noise made sees too much curvature, by about
:math:`(4 - 3rh)/(rT)` [1]_; this is taken off, too.

References
----------
.. [1] Kendall. Note on bias in the estimation of autocorrelation. Biometrika 41, 1954; for paths
   whose mean is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quorate.models.descent_path import DescentStep
from quorate.models.geometry import Geometry
from quorate.models.losses import LinearLoss, LogisticLoss, SmoothedHingeLoss, SoftmaxLoss, sigmoid
from quorate.models.minimization import Minimum
from quorate.models.optimizers import AveragedDescent
from quorate.models.told import ClassWeighted
from quorate.public_randomness import public_generator
from quorate.releases.stated_error import StatedError

__all__ = [
    "SCALED",
    "WHITENED",
    "CoefficientError",
    "CurvatureBelief",
    "coefficient_error",
    "error_of_constant",
    "expected_curvature",
    "noise_covariance",
    "parameter_noise",
    "released_curvature",
]

Vector = NDArray[np.float64]

_CONFIDENCE = 0.95
_NORMAL = 1.96
_COVERS = (
    "Privacy noise of the released gradients, as far as they tell how steep the loss is; not what "
    "clipping and shrinking did, and not the sampling of the people themselves."
)
# Steps before this part are on the way, with other clips and another curvature.
_ON_THE_WAY = 1.0 / 3.0
# Where it may lie, in parts of what is expected.
_FLATTEST, _STEEPEST = 0.05, 1.5
# Where the part of it may lie that is left in all directions.
_LEAST_LEFT, _MOST_LEFT = 0.05, 1.0
# Scores in standard deviations, at which curvatures of two classes are averaged.
_LINE = np.linspace(-6.0, 6.0, 601)
# Of a hinge: the share of labels on their side of it, and the least share of records at the bend.
_RIGHT, _BENT_AT_LEAST = 0.75, 0.05
# Points of a normal distribution at which probabilities of several classes are averaged.
_POINTS = 512
# Several classes share directions in which nothing but shrinkage pulls: standard errors that were
# right for normal features were too small by up to so much (benchmarks/coefficients.py).
_SEVERAL_CLASSES = 1.5
# Squares of what is smaller than this, and than its inverse, are finite.
_HUGE = 1e60
# A model that is sure of nearly every label: gradients no longer tell how steep the loss is.
_SURE = 1e-3
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


@dataclass(frozen=True, kw_only=True, eq=False)
class CoefficientError(StatedError):
    """How far noise carried coefficients from where the same descent ends without it.

    The same descent: from the same start, in the same released coordinates, with the same clips and
    the same shrinkage.

    Attributes
    ----------
    standard_errors : array of shape (outputs, features + 1)
        Of each coefficient, that of the constant last (0 if there is none); infinite where nothing
        can be stated.
    covariance : array of shape (outputs, features + 1, features + 1)
        Of the coefficients of each output; empty where nothing can be stated.
    confidence, bound, coordinates, worst, covers
        See :class:`~quorate.releases.stated_error.StatedError`. ``bound`` holds the length of the
        error of all coefficients together; ``worst`` is infinite, because nothing that was released
        limits what clipping did.

    Examples
    --------
    >>> error = CoefficientError.of_covariance(np.diag([0.04, 0.01]), outputs=1, intercept=True)
    >>> error.standard_errors, [round(each, 3) for each in error.coordinates]
    (array([[0.2, 0.1]]), [0.392, 0.196])
    >>> error.of_rows(np.array([[3.0]])).round(3)
    array([[0.608]])
    """

    standard_errors: Vector
    covariance: Vector = field(repr=False)
    bound: float
    coordinates: tuple[float, ...]
    confidence: float = _CONFIDENCE
    worst: float = math.inf
    covers: str = _COVERS

    @classmethod
    def of_covariance(
        cls, covariance: Vector, *, outputs: int, intercept: bool
    ) -> CoefficientError:
        """Return the error of noise with this covariance, the parameters of each output in turn."""
        size = len(covariance) // outputs
        blocks = np.zeros((outputs, size + (not intercept), size + (not intercept)))
        for place in range(outputs):
            own = slice(place * size, (place + 1) * size)
            blocks[place, :size, :size] = covariance[own, own]
        each = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        spread = float(np.trace(covariance))
        # The squared length has this mean and twice the trace of the square as its variance.
        upper = spread + 1.645 * math.sqrt(2.0 * float(np.sum(covariance**2)))
        return cls(
            standard_errors=np.sqrt(np.maximum(np.diagonal(blocks, axis1=1, axis2=2), 0.0)),
            covariance=blocks,
            bound=max(math.sqrt(upper), _NORMAL * float(each.max())),
            coordinates=tuple(float(_NORMAL * size) for size in each),
        )

    @classmethod
    def unknown(
        cls, reason: str, *, outputs: int, features: int, intercept: bool
    ) -> CoefficientError:
        """Return that nothing is stated, and why.

        >>> error = CoefficientError.unknown("Nobody knows.", outputs=1, features=2, intercept=True)
        >>> error.bound, error.covers
        (inf, 'No statement: nobody knows.')
        """
        return cls(
            standard_errors=np.full((outputs, features + 1), np.inf),
            covariance=np.zeros((0, 0, 0)),
            bound=math.inf,
            coordinates=(math.inf,) * (outputs * (features + intercept)),
            covers=f"No statement: {reason[0].lower()}{reason[1:]}",
        )

    @property
    def stated(self) -> bool:
        """Whether released numbers tell anything."""
        return math.isfinite(self.bound)

    def of_rows(self, rows: Vector) -> Vector:
        """Return the standard error of each output's prediction for rows of features."""
        if not self.stated:
            return np.full((len(rows), len(self.standard_errors)), np.inf)
        ones = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
        squares = np.einsum("ri,oij,rj->ro", ones, self.covariance, ones)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def __str__(self) -> str:
        if not self.stated:
            return self.covers
        return (
            f"all coefficients together within {self.bound:.3g} with probability "
            f"{self.confidence:.0%}. {self.covers}"
        )


def coefficient_error(
    noise: Vector | str,
    loss: LinearLoss,
    geometry: Geometry,
    *,
    centre: Vector,
    half_width: Vector,
    unit: float,
) -> CoefficientError:
    """Return the error of the coefficients that a descent ended at, from what it released.

    ``noise`` is the covariance of its parameters, or why it cannot be told
    (:func:`parameter_noise`); ``centre`` and ``half_width`` are those of the public limits of the
    features, ``unit`` is how many units of the target are one of the descent.
    """
    if isinstance(noise, str):
        return CoefficientError.unknown(
            noise,
            outputs=loss.outputs,
            features=geometry.centre.size,
            intercept=loss.intercept,
        )
    outward = np.kron(np.eye(loss.outputs), _outward(geometry, loss, centre, half_width))
    outward *= unit
    return CoefficientError.of_covariance(
        outward @ noise @ outward.T, outputs=loss.outputs, intercept=loss.intercept
    )


def error_of_constant(loss: LinearLoss, n_features: int) -> CoefficientError:
    """Return that nothing is stated of coefficients that a constant replaced."""
    return CoefficientError.unknown(
        "A constant took the place of coefficients, which are zero by choice.",
        outputs=loss.outputs,
        features=n_features,
        intercept=loss.intercept,
    )


def parameter_noise(
    minimum: Minimum, loss: LinearLoss, geometry: Geometry, *, whitened: bool, sampled: bool
) -> Vector | str:
    """Return the covariance of the parameters that a descent ended at, or why nobody can tell.

    ``whitened`` tells that users were enough for a second moment that can be relied on, ``sampled``
    that steps saw samples of the users, whose own scatter nobody released.
    """
    features, descent = geometry.centre.size, minimum.optimizer
    reason = _unknown(minimum, parameters=loss.dimension(features), sampled=sampled)
    expected = expected_curvature(loss, minimum.theta) if reason is None else np.zeros((1, 1))
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


def expected_curvature(loss: LinearLoss, theta: Vector) -> Vector:
    """Return the curvature at released parameters if features were normal, of unit spread.

    That of a squared or Huber loss is ``loss.curvature``: all residuals count as small ones.

    >>> from quorate.models.losses import LogisticLoss
    >>> expected_curvature(LogisticLoss(), np.array([0.0, 0.0])).round(3)
    array([[0.25, 0.  ],
           [0.  , 0.25]])
    >>> np.diagonal(expected_curvature(LogisticLoss(), np.array([3.0, 0.0]))).round(3)
    array([0.028, 0.115])
    """
    inner = loss.inner if isinstance(loss, ClassWeighted) else loss
    rows = theta.reshape(loss.outputs, -1)
    features = rows.shape[1] - loss.intercept
    offsets = rows[:, features] if loss.intercept else np.zeros(loss.outputs)
    if isinstance(inner, SoftmaxLoss):
        return _of_classes(rows[:, :features], offsets, size=rows.shape[1])
    if not isinstance(inner, LogisticLoss | SmoothedHingeLoss):
        return np.asarray(loss.curvature * np.eye(theta.size))
    length = float(np.linalg.norm(rows[0, :features]))
    along = np.append(rows[0, :features] / max(length, 1e-300), np.zeros(int(loss.intercept)))
    scores = offsets[0] + length * _LINE
    if isinstance(inner, LogisticLoss):
        chances = sigmoid(scores)
        slopes = chances * (1.0 - chances)
    else:
        margins = np.abs(scores)
        bent = (margins <= 1.0) & (margins >= 1.0 - inner.width)
        slopes = loss.curvature * np.where(bent, _RIGHT, _BENT_AT_LEAST)
    shares = slopes * np.exp(-0.5 * _LINE**2) / np.exp(-0.5 * _LINE**2).sum()
    plain, skewed, squared = (float(shares @ _LINE**power) for power in range(3))
    found = plain * np.eye(theta.size) + (squared - plain) * np.outer(along, along)
    if loss.intercept:
        found[features] += skewed * along
        found[:, features] += skewed * along
    return np.asarray(found)


def _of_classes(weights: Vector, offsets: Vector, *, size: int) -> Vector:
    """Return the curvature of several classes, the same in all directions of the features."""
    outputs = len(offsets)
    spread, axes = np.linalg.eigh(weights @ weights.T)
    normal = public_generator(0).normal(size=(_POINTS, outputs))
    scores = normal * np.sqrt(np.maximum(spread, 0.0)) @ axes.T + offsets
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    shared = np.diag(chances.mean(axis=0)) - chances.T @ chances / _POINTS
    return np.asarray(np.kron(shared, np.eye(size)), dtype=np.float64)


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
    points, both, average = (np.zeros((size, size)) for _ in range(3))
    total = 0.0
    for number, step in enumerate(path):
        rate = descent.step_size / step.curvature
        pull = -rate * curvature
        pull.flat[:: size + 1] += 1.0 - rate * step.shrinkage * shrunk
        points = pull @ points @ pull.T
        points.flat[:: size + 1] += (rate * step.noise) ** 2
        if number >= (1.0 - descent.tail) * len(path):
            both = pull @ both  # zeros before
            weight = 1.0 / step.noise**2
            total += weight
            share = weight / total
            average = (
                (1.0 - share) ** 2 * average
                + share * (1.0 - share) * (both + both.T)
                + share**2 * points
            )
            both = (1.0 - share) * both + share * points
    return average


def _pull(geometry: Geometry, loss: LinearLoss, strength: float) -> Vector:
    """Return the curvature of a penalty of strength / 2 x squared coefficients."""
    size = geometry.centre.size
    if strength == 0.0:
        return np.zeros((loss.dimension(size), loss.dimension(size)))
    block = np.zeros((size + loss.intercept, size + loss.intercept))
    whitening = _matrix(geometry)
    block[:size, :size] = strength * whitening @ whitening
    return np.asarray(np.kron(np.eye(loss.outputs), block), dtype=np.float64)


def _outward(geometry: Geometry, loss: LinearLoss, centre: Vector, half_width: Vector) -> Vector:
    """Return the matrix from the parameters of one output to what acts on features as they come."""
    size = geometry.centre.size
    whitening = _matrix(geometry)
    outer = whitening / half_width
    turned = np.zeros((size + loss.intercept, size + loss.intercept))
    turned[:size, :size] = outer.T
    if loss.intercept:
        turned[size, :size] = -(whitening @ geometry.centre) - outer @ centre
        turned[size, size] = 1.0
    return turned


def _matrix(geometry: Geometry) -> Vector:
    found: Vector = geometry.whitening
    return found if found.ndim else np.eye(geometry.centre.size) * float(found)
