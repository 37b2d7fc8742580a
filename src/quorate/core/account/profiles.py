r"""Privacy profiles: the delta of an event as a function of epsilon.

The profile of an event is :math:`h(t)=\sup_S P(S)-e^tQ(S)` for its worst pair of neighbours: its
delta at epsilon :math:`t`. The functions here bound it for :math:`t\ge 0`; for negative :math:`t`
it follows from the pair in the other direction, :math:`h(t)=1-e^t+e^t\bar h(-t)`.

A sampled user is present with probability :math:`q`. Let the mechanism release :math:`M_0` if a
user stays away, :math:`M_1` if the user takes part, and :math:`M_1'` if another user takes part
instead. With :math:`\alpha=e^t`:

* a *removed* user, :math:`(1-q)M_0+qM_1` against :math:`M_0`, has
  :math:`q\,h(\log(1+(\alpha-1)/q))`;
* an *added* user, the other way round, has :math:`c\,h(\log(\alpha q/c))` with
  :math:`c=1-(1-q)\alpha`;
* a *replaced* user, :math:`(1-q)M_0+qM_1` against :math:`(1-q)M_0+qM_1'`, has
  :math:`\sup_c q\bar F(c-r)-\alpha q\bar F(c+r)-(\alpha-1)(1-q)\bar F(c)`, where :math:`\bar F` is
  the upper tail of the noise and :math:`r` how far one user's presence shifts it.

The first two are known [1]_; all three are proved in ``docs/proofs/composition.md``.

References
----------
.. [1] Zhu, Dong, Wang. Optimal accounting of differential privacy via characteristic function.
   AISTATS 2022, arXiv:2106.08567v3.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quorate.core.guarantees import (
    Approximate,
    Event,
    Gaussian,
    Pure,
    Relation,
    Subsampled,
)
from quorate.exceptions import UnsupportedEventError

__all__ = ["Profile", "largest_loss", "profiles"]

Profile = Callable[[NDArray[np.float64]], NDArray[np.float64]]

LARGEST_LOSS = 700.0
"""Beyond this, exponentials of a loss leave the range of floats."""

_GAUSSIAN_TAIL = 9.0


def profiles(event: Event, *, relation: Relation) -> tuple[Profile, Profile]:
    """Return bounds on the profile of ``event`` for t >= 0, in both directions.

    They are the same function if the event is symmetric.

    >>> profile, _ = profiles(Pure(1.0), relation=Relation.REPLACE)
    >>> profile(np.array([0.0, 0.5])).round(4)
    array([0.4621, 0.2876])
    """
    match event:
        case Subsampled(event=Gaussian() as inner, rate=rate):
            if relation is Relation.ADD_REMOVE:
                plain = _gaussian_profile(inner.mu)
                return _removed(plain, rate), _added(plain, rate)
            symmetric = _replaced_gaussian(inner.mu, rate)
        case Gaussian():
            symmetric = _gaussian_profile(event.mu)
        case Pure(epsilon=epsilon):
            symmetric = _response_profile(epsilon, 0.0)
        case Approximate(epsilon=epsilon, delta=delta):
            symmetric = _response_profile(epsilon, delta)
        case _:
            raise _unsupported(event)
    return symmetric, symmetric


def largest_loss(event: Event) -> float:
    """Return a loss that is exceeded with negligible probability in either direction.

    >>> largest_loss(Pure(2.0))
    2.0
    """
    match event:
        case Pure(epsilon=epsilon) | Approximate(epsilon=epsilon):
            return epsilon
        case Gaussian():
            return event.mu * (_GAUSSIAN_TAIL + event.mu / 2)
        case Subsampled(event=Gaussian() as inner, rate=rate):
            loss = largest_loss(inner)
            if not loss < LARGEST_LOSS:
                return math.inf
            raised = math.log1p(rate * math.expm1(loss))
            lowered = -math.log1p(-rate) if rate < 1 else math.inf
            return raised + min(lowered, 2 * loss)
        case _:
            raise _unsupported(event)


def _response_profile(epsilon: float, delta: float) -> Profile:
    """Return the worst pair of an (epsilon, delta)-DP event: randomized response with failures."""
    likely = (1 - delta) / (1 + math.exp(-epsilon))

    def profile(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return delta - likely * np.expm1(np.minimum(t - epsilon, 0.0))

    return profile


def _gaussian_profile(mu: float) -> Profile:
    from scipy.special import log_ndtr, ndtr

    def profile(t: NDArray[np.float64]) -> NDArray[np.float64]:
        difference = ndtr(mu / 2 - t / mu) - np.exp(t + log_ndtr(-mu / 2 - t / mu))
        return np.asarray(np.maximum(difference, 0.0), dtype=np.float64)

    return profile


def _removed(inner: Profile, rate: float) -> Profile:
    def profile(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return rate * inner(np.log1p(np.expm1(t) / rate))

    return profile


def _added(inner: Profile, rate: float) -> Profile:
    def profile(t: NDArray[np.float64]) -> NDArray[np.float64]:
        kept = rate - (1 - rate) * np.expm1(t)
        positive = kept > 0
        kept = np.where(positive, kept, 1.0)
        return np.where(positive, kept * inner(np.maximum(t + np.log(rate / kept), 0.0)), 0.0)

    return profile


def _replaced_gaussian(mu: float, rate: float) -> Profile:
    r"""Return the supremum, which is reached where the densities balance.

    With :math:`y=e^{\mu c}` that is :math:`y-\alpha/y=2B` for
    :math:`2B=(\alpha-1)(1-q)e^{\mu^2/2}/q`.
    """
    from scipy.special import log_ndtr, ndtr

    def profile(t: NDArray[np.float64]) -> NDArray[np.float64]:
        absent = np.expm1(t) * (1 - rate)
        with np.errstate(over="ignore"):
            half = absent * math.exp(mu * mu / 2) / (2 * rate)
        cut = np.log(half + np.hypot(half, np.exp(t / 2))) / mu
        present = ndtr(mu - cut) - np.exp(t + log_ndtr(-mu - cut))
        return np.asarray(np.maximum(rate * present - absent * ndtr(-cut), 0.0), dtype=np.float64)

    return profile


def _unsupported(event: Event) -> UnsupportedEventError:
    return UnsupportedEventError(
        f"Expected Pure, Approximate, Gaussian or a sample of the last, got {event!r}. Describe "
        "the mechanism by its (epsilon, delta) instead."
    )
