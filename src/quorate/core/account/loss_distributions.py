r"""Privacy loss distributions: numerical upper bounds on the cost of mixed chains.

Every event gives an upper bound on its profile (:mod:`quorate.core.account.profiles`), which is
convex in :math:`e^t`. The bound is replaced by straight lines between points of a grid ("connect
the dots", [1]_), which only raises it. The results are composed by ``dp_accounting``. A pair that
dominates each step dominates the chain [2]_, so the result is never too small.

Grids are nested (the step is a power of two) and become finer with more noise, so that more noise
never costs more because of discretization. Proofs: ``docs/proofs/composition.md``.

References
----------
.. [1] Doroshenko, Ghazi, Kamath, Kumar, Manurangsi. Connect the dots: tighter discrete
   approximations of privacy loss distributions. PoPETs 2022(4), arXiv:2207.04380v1.
.. [2] Zhu, Dong, Wang. Optimal accounting of differential privacy via characteristic function.
   AISTATS 2022, arXiv:2106.08567v3.
.. [3] Higham. Accuracy and stability of numerical algorithms, 2nd ed., Theorem 24.2. SIAM, 2002.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.profiles import LARGEST_LOSS, Profile, largest_loss, profiles
from quorate.core.guarantees import Event, Gaussian, Relation, Subsampled
from quorate.exceptions import NumericalFailure

__all__ = ["LossDistribution", "loss_distribution"]

_UNIT_ROUNDOFF = 2.0**-53
_POINTS_PER_SCALE = 2**10
_POINTS_PER_EVENT = 2**16
_MOST_REPETITIONS = 10**7
_SMALLEST_LOSS = 1e-30
_TRUNCATED_MASS = 1e-15
_BLOCK = 512
_PROFILE_UNITS = 2**12
"""Rounding of one value of a profile, in units of 2**-53: tails at x <= 40 lose x squared."""


@dataclass(frozen=True)
class LossDistribution:
    """The composed privacy loss and a bound on its floating-point error.

    ``directions`` holds one distribution on the grid, or two if adding and removing a user differ.
    ``margin`` bounds how much rounding in the profiles, in the Fourier transforms and in the final
    sum can have lowered a delta.
    """

    directions: tuple[Any, ...]
    margin: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta at ``epsilon``.

        >>> from quorate.core.guarantees import Pure
        >>> loss = loss_distribution({Pure(1.0): 1}, relation=Relation.REPLACE)
        >>> round(loss.delta(0.5), 4)
        0.2876
        """
        raw = [float(direction.get_delta_for_epsilon(epsilon)) for direction in self.directions]
        if any(map(math.isnan, raw)):
            raise NumericalFailure(
                f"The privacy loss distribution has no delta at epsilon={epsilon!r}; no guarantee "
                "is claimed. Compose fewer or less extreme events."
            )
        return min(1.0, max(0.0, *raw) * (1 + 1e-9) + self.margin)

    def epsilon(self, delta: float) -> float:
        """Return nearly the smallest epsilon whose delta is at most ``delta``, or infinity.

        >>> from quorate.core.guarantees import Pure
        >>> loss = loss_distribution({Pure(1.0): 1}, relation=Relation.REPLACE)
        >>> loss.delta(loss.epsilon(0.2)) <= 0.2
        True
        """
        from scipy.optimize import brentq

        if not delta > self.margin:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        high = 1.0
        while self.delta(high) > delta:
            high *= 2
            if not high < 2**40:
                return math.inf
        # The root is only a guess; what counts is that the bound holds where we stop.
        root = brentq(lambda e: math.log(self.delta(e) / delta), 0.0, high, xtol=1e-300, rtol=1e-9)
        step = 1e-9
        while self.delta(root) > delta:
            root, step = root * (1 + step), 2 * step
        return float(root)


def loss_distribution(
    counts: Mapping[Event, int], *, relation: Relation
) -> LossDistribution | None:
    """Return the composed loss of counted events, or None if it is too large to compute.

    >>> from quorate.core.guarantees import Pure
    >>> loss = loss_distribution({Pure(0.1): 100}, relation=Relation.REPLACE)
    >>> 0.9e-6 < loss.delta(4.77) < 1.1e-6
    True
    """
    largest = max(map(largest_loss, counts))
    if not _SMALLEST_LOSS < largest < LARGEST_LOSS or max(counts.values()) > _MOST_REPETITIONS:
        return None
    step = _grid_step(counts, largest)
    pairs = {event: profiles(event, relation=relation) for event in counts}
    symmetric = all(forward is backward for forward, backward in pairs.values())
    directions, margin = [], 0.0
    for way in (0,) if symmetric else (0, 1):
        composed, rounding = None, 0.0
        for event, count in counts.items():
            reach = math.ceil(largest_loss(event) / step) + 1
            single = _connect_the_dots(pairs[event][way], pairs[event][1 - way], step, reach)
            repeated, lost = _repeat(single, count)
            rounding += lost
            if composed is None:
                composed = repeated
            else:
                # Three transforms instead of two.
                rounding += 2 * _transform_error(composed.size + repeated.size, norm=1.0)
                composed = composed.compose(repeated, _TRUNCATED_MASS)
        directions.append(composed)
        margin = max(margin, rounding)
    return LossDistribution(tuple(directions), margin)


def _typical_loss(event: Event) -> float:
    """Return the order of the standard deviation of the loss; it never grows with more noise."""
    match event:
        case Subsampled(event=Gaussian() as inner, rate=rate):
            return rate * math.sqrt(math.expm1(min(inner.mu, 2.0) ** 2))
        case Gaussian():
            return event.mu
        case _:
            return largest_loss(event)


def _grid_step(counts: Mapping[Event, int], largest: float) -> float:
    scale = math.sqrt(math.fsum(count * _typical_loss(e) ** 2 for e, count in counts.items()))
    step = max(scale / _POINTS_PER_SCALE, largest / _POINTS_PER_EVENT)
    return 2.0 ** math.floor(math.log2(step))


def _connect_the_dots(forward: Profile, backward: Profile, step: float, reach: int) -> _Grid:
    r"""Return the loss whose profile connects the points of ``forward`` by straight lines.

    Masses are second differences of the profile, which do not depend on constants and multiples of
    :math:`e^t`. Subtracting :math:`(1-e^t)_+`, the profile of zero loss, leaves a residue that is
    small if the loss is small, and so are its rounding errors. For t < 0 the residue is :math:`e^t`
    times the profile of the other direction at -t.
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
        masses=masses,
        lowest=-reach,
        infinite=infinite,
        step=step,
        norm=float(np.linalg.norm(masses)),
        rounding=_UNIT_ROUNDOFF * (_PROFILE_UNITS + 8 * float(np.abs(slopes).sum()) / step),
    )


@dataclass(frozen=True)
class _Grid:
    """A loss on the grid, its Euclidean norm, and a bound on its rounding error.

    Losses are ``lowest`` times ``step`` and upwards, with ``masses``, and infinity.
    """

    pmf: Any
    masses: NDArray[np.float64]
    lowest: int
    infinite: float
    step: float
    norm: float
    rounding: float


def _repeat(single: _Grid, count: int) -> tuple[Any, float]:
    if count == 1:
        return single.pmf, single.rounding
    from dp_accounting.pld import pld_pmf
    from scipy import fft

    masses = single.masses
    # As dp_accounting does, but its bounds overflow at tiny masses of secret samples: it warns and
    # cuts nothing off. What is cut off at either end counts as an infinite loss.
    last = _largest_sum(masses, count)
    first = count * (masses.size - 1) - _largest_sum(masses[::-1], count)
    length = fft.next_fast_len(max(last - first + 1, masses.size), real=True)
    wrapped = fft.irfft(fft.rfft(masses, length) ** count, length)
    repeated = pld_pmf.DensePLDPmf(
        single.step,
        count * single.lowest + first,
        np.roll(wrapped, -first)[: last - first + 1],
        _TRUNCATED_MASS - math.expm1(count * math.log1p(-single.infinite)),
        pessimistic_estimate=True,
    )
    points = repeated.size + single.pmf.size
    return repeated, count * (single.rounding + _transform_error(points, norm=single.norm))


def _largest_sum(masses: NDArray[np.float64], count: int) -> int:
    """Return a bound on a sum of ``count`` losses that fails with half the truncated mass.

    It is the smallest of Chernoff's bounds at twenty orders; no power exceeds e^20.
    """
    # Powers of places are products of powers of their block and of their place in it.
    size, orders = masses.size, np.arange(1, 21) / masses.size
    block = min(_BLOCK, size)
    blocks = np.concatenate([masses, np.zeros(-size % block)]).reshape(-1, block)
    inside = np.exp(np.outer(np.arange(block), orders))
    outside = np.exp(np.outer(block * np.arange(len(blocks)), orders))
    moments = ((blocks @ inside) * outside).sum(axis=0)
    largest = count * (size - 1)
    for order, moment in zip(orders.tolist(), moments.tolist(), strict=True):
        if moment > 0:
            exponent = count * math.log(moment) + math.log(2 / _TRUNCATED_MASS)
            largest = min(largest, math.ceil(exponent / order))
    return largest


def _transform_error(points: int, *, norm: float) -> float:
    """Return how much a Fourier transform and its inverse can change a sum over the grid.

    The relative error of each is ``8u log2(length)`` in Euclidean norm [3]_; a sum over the grid is
    at most the square root of its length times the norm. The transform may be padded to at most
    twice the points.
    """
    length = 2 * points
    return 16 * _UNIT_ROUNDOFF * math.log2(length) * math.sqrt(length) * norm
