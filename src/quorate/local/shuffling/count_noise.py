r"""Negative binomial noise on shuffled counts: its exact privacy cost (G11).

Users who each add NB(r/n, p) messages to a bucket add NB(r, p) together, because the law is
infinitely divisible. Here p is the probability to *continue*. The mass of k is
:math:`\binom{k + r - 1}{k} (1 - p)^r p^k`, with mean :math:`rp/(1-p)`. Theorem 39 of the paper [1]_
(there from [2]_) needs :math:`r = 3(1 + \ln(1/\delta))` and :math:`p = e^{-0.2\varepsilon}` for one
bucket, and takes half of the budget twice because a replaced user leaves one bucket and enters
another.

Computed instead of bounded, the two buckets together cost

.. math::
   \delta(\varepsilon) = \sum_{x, y} \max(0,\; f(x - 1) f(y) - e^\varepsilon f(x) f(y - 1)),

which needs a fifth of the noise. Sums have positive terms; the rest beyond the last term is bounded
by a geometric series and added; the result is multiplied by 1 + 1e-9 to cover rounding.

Both neighbours must have the same noise. A user who stays away adds no noise to any bucket, which
no formula here covers. So the number of users is public.

References
----------
.. [1] Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling, Appendix D.
   arXiv:2110.11208.
.. [2] Ghazi, Kumar, Manurangsi, Pagh. Private counting from anonymous messages. arXiv:2106.04247.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import NumericalFailure

__all__ = [
    "CountNoise",
    "calibrated_noise",
    "histogram_bound",
    "noise_delta",
    "published_noise",
    "selection_bound",
    "sum_bound",
]

_INFLATION = 1 + 1e-9
_NEGLIGIBLE = 1e-22
_CONTINUE = (1 / 256, 1 / 16, 1 / 4)
"""Chances to continue that are tried besides exp(-epsilon)."""


@dataclass(frozen=True)
class CountNoise:
    """The law NB(r, p) of the messages that all users together add to one bucket.

    Parameters
    ----------
    r : float
    p : float
        Probability to continue.

    Examples
    --------
    >>> noise = CountNoise(10.0, 0.5)
    >>> noise.mean, round(noise.deviation, 3)
    (10.0, 4.472)
    """

    r: float
    p: float

    def __post_init__(self) -> None:
        _validate.positive(r=self.r)
        _validate.probability(p=self.p)

    @property
    def mean(self) -> float:
        """Mean number of messages."""
        return self.r * self.p / (1 - self.p)

    @property
    def deviation(self) -> float:
        """Standard deviation of the number of messages."""
        return math.sqrt(self.mean / (1 - self.p))

    def quantile(self, beta: float) -> int:
        """Return the smallest T that a draw exceeds with at most probability ``beta``.

        The tail is P(Y > T) = P(Bin(T + r, 1 - p) < r) for integers r; the paper prints Bin(T, 1 -
        p).

        >>> CountNoise(1.0, 0.5).quantile(0.25)
        1
        """
        _validate.probability(beta=beta)
        masses, beyond = self.masses()
        above = np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0) + beyond
        return int(np.flatnonzero(above <= beta)[0])

    def masses(self) -> tuple[NDArray[np.float64], float]:
        """Return the masses of 0, 1, ... and a bound on what lies beyond them."""
        from scipy.special import gammaln

        size = int(self.mean + 16 * self.deviation + 64)
        while True:
            k = np.arange(size, dtype=np.float64)
            logs = gammaln(k + self.r) - gammaln(k + 1) - gammaln(self.r)
            masses = np.exp(logs + self.r * math.log1p(-self.p) + k * math.log(self.p))
            # From the last term on, each is at most this share of the one before.
            share = self.p * max(1.0, (self.r + size - 1) / size)
            if share < 1:
                beyond = float(masses[-1]) * share / (1 - share)
                if beyond <= _NEGLIGIBLE or size > 10_000_000:
                    return masses, beyond
            if size > 10_000_000:
                raise NumericalFailure(f"The tail of NB({self.r}, {self.p}) is too long to sum.")
            size *= 2


def published_noise(epsilon: float, delta: float, *, beta: float | None = None) -> CountNoise:
    """Return the noise of Theorem 39 for one bucket, or of Corollary 40 if ``beta`` is given.

    The corollary takes r = ceil(1000 (1 + ln(1 / (beta delta)))) so that its own tail bound holds.

    >>> noise = published_noise(1.0, 1e-6)
    >>> round(noise.r, 2), round(noise.p, 4), round(noise.mean, 1)
    (44.45, 0.8187, 200.7)
    """
    _validate.positive(epsilon=epsilon)
    _validate.probability(delta=delta)
    r = 3 * (1 + math.log(1 / delta))
    if beta is not None:
        _validate.probability(beta=beta)
        r = math.ceil(1000 * (1 + math.log(1 / (beta * delta))))
    return CountNoise(r, math.exp(-0.2 * epsilon))


def sum_bound(epsilon: float, delta: float, *, beta: float) -> float:
    r"""Return T = 2r / (1 - p) of Corollary 40, which a sum's error rarely exceeds.

    It does so with probability at most ``beta``.

    It is :math:`O(\log(1/(\beta\delta))/\varepsilon)` with all constants of the proof, for the
    noise that :func:`published_noise` gives for the same ``beta``.

    >>> round(sum_bound(1.0, 1e-6, beta=0.05))
    196525
    """
    noise = published_noise(epsilon, delta, beta=beta)
    return 2 * noise.r / (1 - noise.p)


def selection_bound(epsilon: float, delta: float, *, beta: float) -> float:
    """Return by how many users the bucket of Lemma 36 may be smaller than the best one.

    No count is above the truth (each with half of epsilon and delta), so only the noise of the best
    bucket matters.

    >>> selection_bound(1.0, 1e-6, beta=0.05) == sum_bound(0.5, 5e-7, beta=0.05)
    True
    """
    return sum_bound(epsilon / 2, delta / 2, beta=beta)


def histogram_bound(epsilon: float, delta: float, *, beta: float, users: int) -> float:
    """Return how far every bucket of Lemma 37 is from the truth, except with probability ``beta``.

    At most ``users`` buckets are not empty and the empty ones are exact: each may fail with chance
    beta / users.

    >>> histogram_bound(1.0, 1e-6, beta=0.05, users=100) == selection_bound(1.0, 1e-6, beta=5e-4)
    True
    """
    _validate.positive_integer(users=users)
    return selection_bound(epsilon, delta, beta=beta / users)


def noise_delta(epsilon: float, noise: CountNoise, *, buckets: int = 2) -> float:
    """Return the delta of counts if one user changes this many buckets by one message each.

    A replaced user leaves one bucket and enters another; a user without a bucket changes one.

    >>> noise_delta(1.0, published_noise(1.0, 1e-6), buckets=1) < 1e-19
    True
    """
    _validate.positive(epsilon=epsilon)
    _validate.one_of((1, 2), buckets=buckets)
    masses, beyond = noise.masses()
    here = np.append(masses, 0.0)
    before = np.concatenate([[0.0], masses])
    factor = math.exp(epsilon)
    if buckets == 1:
        gained = float(np.sum(np.maximum(before - factor * here, 0.0)))
        lost = float(np.sum(np.maximum(here - factor * before, 0.0)))
        total = max(gained, lost) + 2 * beyond
    else:
        total = _joint(here, before, factor) + 4 * beyond
    if not math.isfinite(total):
        raise NumericalFailure("The price of shuffled counts could not be computed.")
    return min(1.0, total * _INFLATION)


def _joint(here: NDArray[np.float64], before: NDArray[np.float64], factor: float) -> float:
    """Sum max(0, f(x-1) f(y) - factor f(x) f(y-1)) over all x and y, some rows at a time."""
    total, rows = 0.0, max(1, 4_000_000 // len(here))
    for start in range(0, len(here), rows):
        x = slice(start, start + rows)
        excess = np.multiply.outer(before[x], here) - factor * np.multiply.outer(here[x], before)
        total += float(np.sum(np.maximum(excess, 0.0)))
    return total


@lru_cache(maxsize=64)
def calibrated_noise(epsilon: float, delta: float, *, buckets: int = 2) -> CountNoise:
    """Return the noise with the smallest deviation whose exact delta is at most ``delta``.

    The mean is known and subtracted, so the standard deviation is the error of a count.

    >>> noise = calibrated_noise(1.0, 1e-6)
    >>> noise.mean < 43, noise.deviation < 6.6
    (True, True)
    """
    _validate.positive(epsilon=epsilon)
    _validate.probability(delta=delta)
    tried = sorted({*_CONTINUE, math.exp(-epsilon)})
    found = [_smallest(epsilon, delta, p, buckets) for p in tried]
    return min(found, key=lambda noise: noise.deviation)


def _smallest(epsilon: float, delta: float, p: float, buckets: int) -> CountNoise:
    """Return the noise with the smallest mean for a probability to continue."""

    def fits(mean: float) -> bool:
        return noise_delta(epsilon, CountNoise(mean * (1 - p) / p, p), buckets=buckets) <= delta

    low, high = 0.0, 1.0
    while not fits(high):
        low, high = high, 2 * high
        if high > 1e6:
            raise NumericalFailure(f"No noise below a mean of {high:g} keeps delta={delta!r}.")
    mean = _bisect(fits, low, high)
    return CountNoise(mean * (1 - p) / p, p)


def _bisect(fits: Callable[[float], bool], low: float, high: float) -> float:
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high
