r"""Noisy shares become a distribution, and bounds on its error.

Noisy shares x = p + z are projected to the nearest distribution q (in the L2 norm): :math:`q_j =
\max(x_j - \theta, 0)`, with the level :math:`\theta` at which they add up to 1. [1]_

How far q is from p
-------------------
The total variation is :math:`\sum_j (q_j - p_j)_+ = \sum_j (p_j - q_j)_+`. Where q_j > 0 the first
summand is :math:`(z_j - \theta)_+`, elsewhere it is 0; where q_j = 0, :math:`p_j \le \theta - z_j`.
So

.. math:: TV(q, p) \le \min\Bigl(\sum_j (z_j - \theta)_+, \sum_j (\theta - z_j)_+\Bigr),

If the first sum is used for :math:`\theta \ge 0` and the second for :math:`\theta < 0`, then for
symmetric noise only the law of :math:`S_t = \sum_j (z_j - t)_+` at :math:`t = |\theta|` is needed.
The level is *released*, so a bound may depend on it; the bound is smaller if most of the noise was
removed. As the level depends on the noise, bounds are computed for t = 0, b, 2b, ... at once, and
their failure probabilities add up.

References
----------
.. [1] Wang, Carreira-Perpinan. Projection onto the probability simplex. arXiv:1309.1541.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quorate.core.public_randomness import public_generator

__all__ = [
    "balanced_bound",
    "balanced_noise",
    "gaussian_bound",
    "laplace_bound",
    "laplace_sum",
    "mixed_bound",
    "nearest_distribution",
]

# From this many coordinates on, the sum of excesses is close to its mean.
_MANY = 40
_FEW = 6
# machine: public draws of lengths of Laplace noise.
_DRAWS, _SEED = 20_000, 20_232
_FEWEST = 64


def nearest_distribution(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the distribution nearest to ``values``, and the level that was subtracted.

    >>> nearest_distribution(np.array([0.7, 0.5, -0.3]))
    (array([0.6, 0.4, 0. ]), 0.1)
    """
    falling = np.sort(values)[::-1]
    levels = (np.cumsum(falling) - 1.0) / np.arange(1, values.size + 1)
    level = float(levels[np.flatnonzero(falling > levels)[-1]])
    return np.maximum(values - level, 0.0), round(level, 15)


def laplace_bound(*, scale: float, categories: int, level: float, beta: float) -> float:
    r"""Return a bound on the total variation distance, for Laplace noise of this scale.

    An excess :math:`(z - t)_+` is 0, or with probability :math:`e^{-t/b}/2` exponential with mean
    b. So a sum of k of them is a gamma variable with a binomial number of terms, whose distribution
    is known exactly. For up to six categories the norm of the centred noise gives a smaller bound,
    as for normal noise.

    >>> round(laplace_bound(scale=2 / 300, categories=10, level=0.001, beta=0.05), 4)
    0.0785
    """
    from scipy.special import gammaincc
    from scipy.stats import binom

    if categories <= _FEW:
        return min(1.0, 0.5 * math.sqrt(categories) * scale * _laplace_length(categories, beta))
    cell = math.floor(abs(level) / scale)
    chance = _peeled(beta, cell)
    success = 0.5 * math.exp(-cell)
    # All numbers of terms that have a chance worth counting.
    low, high = (int(end) for end in binom.ppf([1e-12, 1.0 - 1e-12], categories, success))
    terms = np.arange(max(low, 0), high + 1)
    masses = binom.pmf(terms, categories, success)

    def exceeds(size: float) -> float:
        return float(np.where(terms > 0, gammaincc(np.maximum(terms, 1), size), 0.0) @ masses)

    low_size, high_size = 0.0, float(categories) + 50.0 * math.sqrt(categories) + 50.0
    while high_size - low_size > 1e-6 * high_size:
        middle = 0.5 * (low_size + high_size)
        low_size, high_size = (
            (middle, high_size) if exceeds(middle) + 1e-11 > chance else (low_size, middle)
        )
    return min(1.0, scale * high_size)


def balanced_bound(*, scale: float, categories: int, level: float, beta: float) -> float:
    """Bound the total variation error for Laplace noise that adds up to zero.

    It is estimated from public simulations, with a margin for their finite number; one of the
    categories may be absence.

    >>> round(balanced_bound(scale=2 / 300, categories=6, level=0.001, beta=0.05), 4)
    0.0361
    """
    cell = min(2, math.floor(abs(level) / scale))
    return min(1.0, scale * _balanced_excess(categories, cell, _peeled(beta, cell)))


@lru_cache(maxsize=64)
def _balanced_excess(categories: int, cell: int, chance: float) -> float:
    noise = balanced_noise(_DRAWS, categories)
    excess = np.maximum(noise - cell, 0.0).sum(axis=1)
    margin = 2.0 * math.sqrt(chance * (1.0 - chance) / _DRAWS)
    return float(np.quantile(excess, min(1.0, 1.0 - chance + margin)))


@lru_cache(maxsize=8)
def balanced_noise(draws: int, categories: int) -> NDArray[np.float64]:
    """Return public draws of Laplace noise of scale 1, given that each row adds up to zero.

    >>> bool(np.abs(balanced_noise(3, 5).sum(axis=1)).max() < 1e-9)
    True
    """
    generator = public_generator(_SEED + 1)
    kept: list[NDArray[np.float64]] = []
    while sum(map(len, kept)) < draws:
        noise = generator.laplace(size=(draws, categories - 1))
        missing = -noise.sum(axis=1)
        taken = generator.exponential(size=draws) >= np.abs(missing)
        kept.append(np.column_stack([noise, missing])[taken])
    found = np.concatenate(kept)[:draws]
    found.flags.writeable = False
    return found


def gaussian_bound(*, sigma: float, categories: int, level: float, beta: float) -> float:
    r"""Bound the total variation error for normal noise of this standard deviation.

    For few categories: a projection does not increase distances, so the L2 error is at most the
    length of the centred noise, and the total variation is at most :math:`\sqrt k / 2` times that.
    For many: :math:`S_t` has a known mean and changes by at most :math:`\sqrt k` times the L2
    change of the noise. So by Gaussian concentration it exceeds its mean by :math:`\sigma\sqrt{2 k
    \ln(1/\beta)}` with a probability of at most :math:`\beta`.

    >>> round(gaussian_bound(sigma=0.01, categories=6, level=0.0, beta=0.05), 4)
    0.0408
    """
    from scipy.special import chdtri, ndtr

    if categories <= _MANY:
        length = sigma * math.sqrt(float(chdtri(max(1, categories - 1), beta)))
        return min(1.0, 0.5 * math.sqrt(categories) * length)
    cell = math.floor(abs(level) / sigma)
    density = math.exp(-0.5 * cell * cell) / math.sqrt(2.0 * math.pi)
    mean = categories * (density - cell * float(ndtr(-cell)))
    beyond = math.sqrt(2.0 * categories * math.log(1.0 / _peeled(beta, cell)))
    return min(1.0, sigma * (mean + beyond))


def mixed_bound(
    *,
    inner: float,
    outer: float,
    centre: NDArray[np.float64],
    pure: bool,
    beta: float,
    balanced: bool = False,
) -> float:
    r"""Bound the total variation error for noise of two kinds.

    The noise is :math:`z + y - c\sum_j y_j` for a released centre c, with z of size ``inner`` and y
    of size ``outer``, Laplace or normal; ``balanced`` says that z adds up to zero. By the
    inequality of the module the total variation is at most the larger of the sums of its positive
    and of its negative terms. Their distribution is estimated from public simulations, with a
    margin for their finite number.

    >>> flat = np.full(6, 1 / 6)
    >>> found = mixed_bound(inner=0.0, outer=1.0, centre=flat, pure=True, beta=0.05)
    >>> 5.0 < found < 8.0
    True
    """
    draws = max(_FEWEST, min(_DRAWS // 4, 2**21 // centre.size))
    generator = public_generator(_SEED)
    make = generator.laplace if pure else generator.normal
    other = make(size=(draws, centre.size))
    own = balanced_noise(*other.shape) if balanced else make(size=other.shape)
    noise = inner * own + outer * (other - other.sum(axis=1)[:, None] * centre)
    sizes = np.maximum(np.maximum(noise, 0.0).sum(axis=1), np.maximum(-noise, 0.0).sum(axis=1))
    if draws * beta < 8.0:
        return float(sizes.mean() + sizes.std() * (1.0 - 2.0 * math.log(beta)) ** 0.5)
    margin = 2.0 * math.sqrt(beta * (1.0 - beta) / draws)
    return float(np.quantile(sizes, min(1.0, 1.0 - beta + margin)))


@lru_cache(maxsize=64)
def laplace_sum(terms: int, beta: float) -> float:
    r"""Bound a sum of Laplace variables of scale 1, except with probability ``beta``.

    For few terms it is estimated from public simulations, with a margin for their finite number.
    For many it is Chernoff's bound :math:`\min_t (\ln(1/\beta) - k\ln(1 - t^2))/t` over t in (0,
    1).

    >>> round(laplace_sum(6, 0.02), 1), round(laplace_sum(100, 0.02), 1)
    (7.4, 39.9)
    """
    if terms <= _MANY:
        sums = public_generator(_SEED).laplace(size=(_DRAWS, terms)).sum(axis=1)
        margin = 2.0 * math.sqrt(beta * (1.0 - beta) / _DRAWS)
        return float(np.quantile(sums, min(1.0, 1.0 - beta + margin)))
    t = np.linspace(0.01, 0.99, 99)
    return float(np.min((math.log(1.0 / beta) - terms * np.log1p(-t * t)) / t))


@lru_cache(maxsize=64)
def _laplace_length(categories: int, beta: float) -> float:
    """Return a quantile of the length of centred Laplace noise of scale 1.

    It is estimated from public draws, with a margin for their finite number.
    """
    noise = public_generator(_SEED).laplace(size=(_DRAWS, max(2, categories)))
    noise -= noise.mean(axis=1, keepdims=True)
    margin = 2.0 * math.sqrt(beta * (1.0 - beta) / _DRAWS)
    return float(np.quantile(np.sqrt(np.vecdot(noise, noise)), min(1.0, 1.0 - beta + margin)))


def _peeled(beta: float, cell: int) -> float:
    """Return two-sided failure probabilities for cells 0, 1, 2, ...; they add up to ``beta``."""
    return beta * (0.4 if cell == 0 else 0.1 * 0.5**cell)
