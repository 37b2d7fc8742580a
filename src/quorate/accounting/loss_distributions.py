r"""Privacy loss distributions: the cost of mixed chains of releases, numerically and from above.

The *profile* of an event is :math:`h(e^t)=\sup_S P(S)-e^tQ(S)` for its worst pair of
neighbours, over all real :math:`t`; it is convex in :math:`e^t`. Here every event gives an upper
bound on its profile; the bound is connected by straight lines between points of a grid ("connect
the dots", [1]_), which only raises it; and the result is composed by ``dp_accounting``. A pair that
dominates each step dominates the chain (Theorem 10 of [2]_), so nothing is ever understated.

Grids are nested (the step is a power of two) and get finer with more noise, so that more noise
never costs more, not even by discretization. Proofs: ``docs/proofs/composition.md``.

References
----------
.. [1] Doroshenko, Ghazi, Kamath, Kumar, Manurangsi. Connect the dots: tighter discrete
   approximations of privacy loss distributions. PoPETs 2022(4), arXiv:2207.04380v1.
.. [2] Zhu, Dong, Wang. Optimal accounting of differential privacy via characteristic function.
   AISTATS 2022, arXiv:2106.08567v3.
.. [3] Balle, Barthe, Gaboardi. Privacy amplification by subsampling: tight analyses via couplings
   and divergences. NeurIPS 2018, arXiv:1807.01647v2.
.. [4] Higham. Accuracy and stability of numerical algorithms, 2nd ed., Theorem 24.2. SIAM, 2002.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.events import Approximate, Event, Gaussian, Laplace, Pure, Subsampled
from quorate.exceptions import NumericalFailure, UnsupportedEventError
from quorate.guarantees import Relation

__all__ = ["LossDistribution", "loss_distribution", "profiles"]

Profile = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_UNIT_ROUNDOFF = 2.0**-53
_POINTS_PER_SCALE = 2**12
_POINTS_PER_EVENT = 2**18
_MOST_REPETITIONS = 10**7
_LARGEST_LOSS = 700.0
_GAUSSIAN_TAIL = 9.0
_TRUNCATED_MASS = 1e-15


@dataclass(frozen=True)
class LossDistribution:
    """The composed privacy loss and what floating point may have hidden.

    ``directions`` holds one distribution on the grid, or two if adding and removing a user differ.
    ``margin`` bounds how far rounding in the profiles, in the Fourier transforms and in the final
    sum can have lowered a delta.
    """

    directions: tuple[Any, ...]
    margin: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta at ``epsilon``."""
        raw = [float(direction.get_delta_for_epsilon(epsilon)) for direction in self.directions]
        if any(map(math.isnan, raw)):
            raise NumericalFailure(
                f"The privacy loss distribution has no delta at epsilon={epsilon!r}; no guarantee "
                "is claimed. Compose fewer or less extreme events."
            )
        return min(1.0, max(0.0, *raw) * (1 + 1e-9) + self.margin)


def loss_distribution(
    counts: Mapping[Event, int], *, relation: Relation
) -> LossDistribution | None:
    """Return the loss of all events, each as often as counted, or None if it is out of reach.

    >>> loss = loss_distribution({Pure(0.1): 100}, relation=Relation.REPLACE)
    >>> 0.9e-6 < loss.delta(4.77) < 1.1e-6
    True
    """
    largest = max(map(_largest_loss, counts))
    if not largest < _LARGEST_LOSS or max(counts.values()) > _MOST_REPETITIONS:
        return None
    step = _grid_step(counts, largest)
    pairs = {event: profiles(event, relation=relation) for event in counts}
    symmetric = all(forward is backward for forward, backward in pairs.values())
    directions, margin = [], 0.0
    for way in (0,) if symmetric else (0, 1):
        composed, rounding = None, 0.0
        for event, count in counts.items():
            reach = math.ceil(_largest_loss(event) / step) + 1
            single = _connect_the_dots(pairs[event][way], pairs[event][1 - way], step, reach)
            repeated, lost = _repeat(single, count)
            rounding += lost
            composed = repeated if composed is None else composed.compose(repeated, _TRUNCATED_MASS)
            rounding += _transform_error(composed.size, norm=1.0)
        directions.append(composed)
        margin = max(margin, rounding)
    return LossDistribution(tuple(directions), margin)


def profiles(event: Event, *, relation: Relation) -> tuple[Profile, Profile]:
    r"""Return bounds on the profile of ``event`` for t >= 0, in both directions.

    They are the same function if the event is symmetric. Under add/remove a subsampled event is
    not: a removed user has the profile :math:`q\,h(1+(\alpha-1)/q)`, an added one
    :math:`c\,h(\alpha q/c)` with :math:`c=1-(1-q)\alpha`, where :math:`\alpha=e^t`. Under
    replacement the larger of the two bounds both directions.

    >>> profile, _ = profiles(Laplace(1.0), relation=Relation.REPLACE)
    >>> profile(np.array([0.0, 0.5])).round(4)
    array([0.3935, 0.2212])
    """
    if not isinstance(event, Subsampled):
        plain = _plain_profile(event)
        return plain, plain
    inner, rate = _plain_profile(event.event), event.rate

    def removed(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return rate * inner(np.log1p(np.expm1(t) / rate))

    def added(t: NDArray[np.float64]) -> NDArray[np.float64]:
        kept = rate - (1 - rate) * np.expm1(t)
        inside = kept > 0
        kept = np.where(inside, kept, 1.0)
        return np.where(inside, kept * inner(np.maximum(t + np.log(rate / kept), 0.0)), 0.0)

    def either(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(removed(t), added(t))

    match relation:
        case Relation.ADD_REMOVE:
            return removed, added
        case Relation.REPLACE:
            return either, either


def _plain_profile(event: Event) -> Profile:
    match event:
        case Pure(epsilon=epsilon):
            return _response_profile(epsilon, 0.0)
        case Approximate(epsilon=epsilon, delta=delta):
            return _response_profile(epsilon, delta)
        case Laplace(noise_multiplier=multiplier):
            return _laplace_profile(1 / multiplier)
        case Gaussian():
            return _gaussian_profile(event.mu)
        case _:
            raise _unsupported(event)


def _response_profile(epsilon: float, delta: float) -> Profile:
    """Randomized response that fails openly with probability delta: the worst pair."""
    likely = (1 - delta) / (1 + math.exp(-epsilon))

    def profile(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return delta - likely * np.expm1(np.minimum(t - epsilon, 0.0))

    return profile


def _laplace_profile(epsilon: float) -> Profile:
    def profile(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.abs(np.expm1(np.minimum(t - epsilon, 0.0) / 2))

    return profile


def _gaussian_profile(mu: float) -> Profile:
    from scipy.special import log_ndtr, ndtr

    def profile(t: NDArray[np.float64]) -> NDArray[np.float64]:
        difference = ndtr(mu / 2 - t / mu) - np.exp(t + log_ndtr(-mu / 2 - t / mu))
        return np.asarray(np.maximum(difference, 0.0), dtype=np.float64)

    return profile


def _largest_loss(event: Event) -> float:
    """Return a loss that is exceeded with negligible probability in either direction."""
    match event:
        case Pure(epsilon=epsilon) | Approximate(epsilon=epsilon):
            return epsilon
        case Laplace(noise_multiplier=multiplier):
            return 1 / multiplier
        case Gaussian():
            return event.mu * (_GAUSSIAN_TAIL + event.mu / 2)
        case Subsampled(event=inner, rate=rate):
            return math.log1p(rate * math.expm1(min(_largest_loss(inner), _LARGEST_LOSS)))
        case _:
            raise _unsupported(event)


def _typical_loss(event: Event) -> float:
    """Return the order of the standard deviation of the loss; never larger for more noise."""
    match event:
        case Subsampled(event=Gaussian() as inner, rate=rate):
            return rate * math.sqrt(math.expm1(min(inner.mu, 2.0) ** 2))
        case Subsampled(event=inner, rate=rate):
            return rate * _typical_loss(inner)
        case Gaussian():
            return event.mu
        case _:
            return _largest_loss(event)


def _grid_step(counts: Mapping[Event, int], largest: float) -> float:
    scale = math.sqrt(math.fsum(count * _typical_loss(e) ** 2 for e, count in counts.items()))
    step = max(scale / _POINTS_PER_SCALE, largest / _POINTS_PER_EVENT)
    return 2.0 ** math.floor(math.log2(step))


def _connect_the_dots(forward: Profile, backward: Profile, step: float, reach: int) -> _Grid:
    r"""Return the loss whose profile joins the dots of ``forward`` by straight lines.

    Masses are second differences of the profile, which ignore constants and multiples of
    :math:`e^t`. Taking off :math:`(1-e^t)_+`, the profile of no loss at all, leaves a residue
    that is small when little is lost, and its rounding errors with it. For t < 0 the residue is
    :math:`e^t` times the profile of the other direction at -t.
    """
    from dp_accounting.pld import pld_pmf

    t = np.arange(reach + 1, dtype=np.float64) * step
    above, below = forward(t), np.exp(-t) * backward(t)
    residue = np.concatenate([below[:0:-1], above])
    residue[reach] = max(above[0], below[0])
    slopes = np.diff(residue)
    masses = np.empty_like(residue)
    masses[0] = slopes[0] / math.expm1(step) - residue[0]
    masses[1:-1] = (slopes[1:] - slopes[:-1] * math.exp(step)) / math.expm1(step)
    masses[-1] = slopes[-1] / math.expm1(-step)
    masses[reach] += 1.0
    masses = np.maximum(masses, 0.0)
    infinite = float(residue[-1])
    pmf = pld_pmf.DensePLDPmf(step, -reach, masses, infinite, pessimistic_estimate=True)
    return _Grid(
        pmf=pmf,
        norm=float(np.linalg.norm(masses)),
        rounding=_UNIT_ROUNDOFF * (64 + 8 * float(np.abs(slopes).sum()) / step),
    )


@dataclass(frozen=True)
class _Grid:
    """A loss on the grid, its Euclidean norm, and what rounding can have hidden in it."""

    pmf: Any
    norm: float
    rounding: float


def _repeat(single: _Grid, count: int) -> tuple[Any, float]:
    if count == 1:
        return single.pmf, single.rounding
    repeated = single.pmf.self_compose(count, _TRUNCATED_MASS)
    points = repeated.size + single.pmf.size
    return repeated, count * (single.rounding + _transform_error(points, norm=single.norm))


def _transform_error(points: int, *, norm: float) -> float:
    """Return how much a Fourier transform and its inverse can take from a sum over the grid.

    Their error is a fraction ``8u log2(points)`` in Euclidean norm [4]_, each way; a sum over the
    grid is at most the square root of ``points`` times as large.
    """
    return 16 * _UNIT_ROUNDOFF * math.log2(points + 1) * math.sqrt(points) * norm


def _unsupported(event: Event) -> UnsupportedEventError:
    return UnsupportedEventError(
        f"Expected Pure, Approximate, Laplace or Gaussian, got {event!r}. Describe the mechanism "
        "by its (epsilon, delta) instead."
    )
