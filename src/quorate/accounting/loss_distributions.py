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
_POINTS_PER_SCALE = 4096
_MOST_POINTS = 2**22
_GAUSSIAN_TAIL = 9.0
_TRUNCATED_MASS = 1e-15


@dataclass(frozen=True)
class LossDistribution:
    """The composed privacy loss and what floating point may have hidden.

    ``margin`` bounds how far rounding in the profiles, in the Fourier transforms and in the final
    sum can have lowered a delta.
    """

    composed: Any
    margin: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta at ``epsilon``."""
        raw = float(self.composed.get_delta_for_epsilon(epsilon))
        if math.isnan(raw):
            raise NumericalFailure(
                f"The privacy loss distribution has no delta at epsilon={epsilon!r}; no guarantee "
                "is claimed. Compose fewer or less extreme events."
            )
        return min(1.0, max(raw, 0.0) * (1 + 1e-9) + self.margin)


def loss_distribution(
    counts: Mapping[Event, int], *, relation: Relation
) -> LossDistribution | None:
    """Return the loss of all events, each as often as counted, or None if the grid is too large.

    >>> loss = loss_distribution({Pure(0.1): 100}, relation=Relation.REPLACE)
    >>> 1e-7 < loss.delta(4.77) < 1.1e-6
    True
    """
    from dp_accounting.pld import privacy_loss_distribution

    step = _grid_step(counts)
    composed: Any = None
    margin = 0.0
    for event, count in counts.items():
        reach = math.ceil(_largest_loss(event) / step) + 1
        if 2 * reach > _MOST_POINTS:
            return None
        directions = [
            _connect_the_dots(profile, step=step, reach=reach)
            for profile in profiles(event, relation=relation)
        ]
        single = privacy_loss_distribution.PrivacyLossDistribution(*(pmf for pmf, _ in directions))
        norm = max(norm for _, norm in directions)
        repeated = single if count == 1 else single.self_compose(count, _TRUNCATED_MASS)
        composed = repeated if composed is None else composed.compose(repeated, _TRUNCATED_MASS)
        margin += count * _rounding(step=step, points=_MOST_POINTS, norm=norm)
    return LossDistribution(composed, margin)


def profiles(event: Event, *, relation: Relation) -> tuple[Profile, ...]:
    r"""Return upper bounds on the profile of ``event`` as functions of t: one if symmetric.

    Under add/remove a subsampled event has two, for a removed and for an added user:
    :math:`q\,h(1+(\alpha-1)/q)` and :math:`c\,h(\alpha q/c)` with :math:`c=1-(1-q)\alpha`. Under
    replacement, their maximum bounds both directions.

    >>> [profile] = profiles(Laplace(1.0), relation=Relation.REPLACE)
    >>> profile(np.array([0.0, 0.5])).round(4)
    array([0.3935, 0.2212])
    """
    if not isinstance(event, Subsampled):
        return (_plain_profile(event),)
    inner, rate = _plain_profile(event.event), event.rate

    def removed(t: NDArray[np.float64]) -> NDArray[np.float64]:
        ratio = 1 + np.expm1(t) / rate
        inside = ratio > 0
        with np.errstate(over="ignore"):
            amplified = rate * inner(np.log(np.where(inside, ratio, 1.0)))
        return np.where(inside, amplified, -np.expm1(t))

    def added(t: NDArray[np.float64]) -> NDArray[np.float64]:
        kept = 1 - (1 - rate) * np.exp(t)
        inside = kept > 0
        kept = np.where(inside, kept, 1.0)
        return np.where(inside, kept * inner(t + np.log(rate / kept)), 0.0)

    match relation:
        case Relation.ADD_REMOVE:
            return removed, added
        case Relation.REPLACE:
            return (lambda t: np.maximum(removed(t), added(t)),)


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
            raise UnsupportedEventError(
                f"Expected Pure, Approximate, Laplace or Gaussian, got {event!r}. Describe the "
                "mechanism by its (epsilon, delta) instead."
            )


def _response_profile(epsilon: float, delta: float) -> Profile:
    """Randomized response, the worst (epsilon, delta)-DP pair."""

    def profile(t: NDArray[np.float64]) -> NDArray[np.float64]:
        likely, unlikely = (
            1 / (1 + math.exp(-epsilon)),
            math.exp(-epsilon) / (1 + math.exp(-epsilon)),
        )
        above = -np.expm1(np.minimum(t - epsilon, 0.0))
        below = -np.expm1(np.minimum(t + epsilon, 0.0))
        return delta + (1 - delta) * (likely * above + unlikely * below)

    return profile


def _laplace_profile(epsilon: float) -> Profile:
    def profile(t: NDArray[np.float64]) -> NDArray[np.float64]:
        middle = -np.expm1((np.clip(t, -epsilon, epsilon) - epsilon) / 2)
        return np.where(t < -epsilon, -np.expm1(t), middle)

    return profile


def _gaussian_profile(mu: float) -> Profile:
    from scipy.special import log_ndtr, ndtr

    def profile(t: NDArray[np.float64]) -> NDArray[np.float64]:
        difference = ndtr(mu / 2 - t / mu) - np.exp(t + log_ndtr(-mu / 2 - t / mu))
        return np.maximum(difference, np.maximum(0.0, -np.expm1(t)))

    return profile


def _largest_loss(event: Event) -> float:
    """A loss that no direction exceeds, up to a negligible probability."""
    match event:
        case Pure(epsilon=epsilon) | Approximate(epsilon=epsilon):
            return epsilon
        case Laplace(noise_multiplier=multiplier):
            return 1 / multiplier
        case Gaussian():
            return event.mu * (_GAUSSIAN_TAIL + event.mu / 2)
        case Subsampled(event=inner, rate=rate):
            largest = _largest_loss(inner)
            return max(largest + math.log(rate + (1 - rate) * math.exp(-largest)), 1e-12)
        case _:
            raise UnsupportedEventError(f"No rule bounds the privacy loss of {event!r}.")


def _typical_loss(event: Event) -> float:
    """Order of the standard deviation of the loss; not larger for more noise."""
    match event:
        case Subsampled(event=Gaussian() as inner, rate=rate):
            return min(inner.mu, rate * math.sqrt(math.expm1(min(inner.mu, 2.0) ** 2)))
        case Subsampled(event=inner, rate=rate):
            return rate * _typical_loss(inner)
        case Gaussian():
            return event.mu
        case _:
            return _largest_loss(event)


def _grid_step(counts: Mapping[Event, int]) -> float:
    scale = math.sqrt(math.fsum(count * _typical_loss(e) ** 2 for e, count in counts.items()))
    return 2.0 ** math.floor(math.log2(max(scale, 1e-9) / _POINTS_PER_SCALE))


def _connect_the_dots(profile: Profile, *, step: float, reach: int) -> tuple[Any, float]:
    """Return the loss on the grid whose profile connects the dots, and its Euclidean norm."""
    from dp_accounting.pld import pld_pmf

    deltas = np.clip(profile(np.arange(-reach, reach + 1) * step), 0.0, 1.0)
    deltas = np.maximum.accumulate(deltas[::-1])[::-1]
    slopes = np.diff(deltas)
    masses = np.empty_like(deltas)
    masses[0] = 1 - deltas[0] + slopes[0] / math.expm1(step)
    masses[1:-1] = (slopes[1:] - slopes[:-1] * math.exp(step)) / math.expm1(step)
    masses[-1] = -slopes[-1] / -math.expm1(-step)
    masses = np.maximum(masses, 0.0)
    pmf = pld_pmf.DensePLDPmf(step, -reach, masses, float(deltas[-1]), True)  # noqa: FBT003
    return pmf, float(np.linalg.norm(masses))


def _rounding(*, step: float, points: int, norm: float) -> float:
    """What rounding can hide per composed event.

    Second differences of the profile lose at most ``8u / step`` in total; a transform of ``points``
    numbers has a relative error of ``8u log2(points)`` in Euclidean norm, doubled for the way back,
    and a sum over ``points`` of them at most ``sqrt(points)`` times that.
    """
    transforms = 16 * math.log2(points) * math.sqrt(points) * norm
    return _UNIT_ROUNDOFF * (64 + 8 / step + transforms)
