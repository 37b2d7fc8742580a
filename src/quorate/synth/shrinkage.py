r"""Noisy tables of several columns, shrunk towards what tables of fewer columns predict.

Most cells of a table of two columns hold less than the noise. An estimate that is shrunk then has a
smaller error than the measured table. [1]_ The prediction is independence: the product of the two
distributions. The difference between table and prediction has a prior with variances in proportion
to that product, so that the mean chi-squared distance from independence is a single number. Along
an ordered column, neighbouring bins are correlated by :math:`e^{-|u-v|/\ell}`, where u and v are
the ranks of their middle records. The covariance is a Kronecker product and all cells have the same
noise, so that the coordinates along its axes are independent. Each of them has a normal prior whose
variance is one of a fixed list. The share of coordinates with each variance is estimated from all
coordinates together. [2]_ Their posterior means are exact.

Variances and correlation lengths maximise the likelihood of the noisy table (empirical Bayes). So
nothing is tuned: a table without dependence becomes its prediction, a few strong dependences stay,
and a table with little noise stays as it is. Everything here is computed from released numbers.

A table of three columns is shrunk towards the maximum-entropy distribution with its three tables of
two columns, each of them shrunk first.

References
----------
.. [1] Efron, Morris. Stein's estimation rule and its competitors: an empirical Bayes approach.
   J. American Statistical Association 68, 1973.
.. [2] Stephens. False discovery rates: a new deal. Biostatistics 18(2), 2017.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["fitted_to", "nearest_shares", "shrunk"]

Floats = NDArray[np.float64]

# Correlation lengths, in ranks between 0 and 1; 0 for codes without correlation.
_LENGTHS = (0.0, *(2.0**power for power in range(-4, 3)))
# Prior variances: from none that could be seen to more than any dependence has.
_VARIANCES = 2.0 ** np.arange(-24.0, 5.0)
# machine: a mixture hardly changes after so many steps.
_STEPS = 64
# machine: proportional fitting of so few tables hardly changes after so many rounds.
_FITS = 64


def shrunk(
    table: Floats, noise: float, shares: Sequence[Floats], ordered: Sequence[bool]
) -> Floats:
    """Return the posterior mean of a table of shares, as the nearest distribution.

    Parameters
    ----------
    table : array of two or three axes
        Noisy shares of records.
    noise : float
        Standard deviation of the noise in each cell.
    shares : sequence of arrays
        The distribution along each axis.
    ordered : sequence of bool
        Whether the codes of an axis are in an order.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> even, order = np.full(8, 1 / 8), [True, True]
    >>> alike = np.outer(even, even)
    >>> noisy = alike + rng.normal(0.0, 0.01, (8, 8))
    >>> found = shrunk(noisy, 0.01, [even, even], order)
    >>> bool(np.abs(found - alike).sum() < 0.3 * np.abs(noisy - alike).sum())
    True
    >>> same = np.diag(even) + rng.normal(0.0, 0.001, (8, 8))
    >>> bool(np.abs(shrunk(same, 0.001, [even, even], order) - np.diag(even)).max() < 0.005)
    True
    """
    axes = range(table.ndim)
    expected = shares[0]
    for each in shares[1:]:
        expected = np.multiply.outer(expected, each)
    if table.ndim == 3:
        pairs = list(itertools.combinations(axes, 2))
        smaller = []
        for pair in pairs:
            (left,) = set(axes) - set(pair)
            spread = noise * math.sqrt(table.shape[left])
            own, order = [shares[axis] for axis in pair], [ordered[axis] for axis in pair]
            smaller.append(shrunk(table.sum(axis=left), spread, own, order))
        expected = fitted_to(expected, pairs, smaller)
    return nearest_shares(expected + _dependence(table - expected, noise, shares, ordered))


def _dependence(
    apart: Floats, noise: float, shares: Sequence[Floats], ordered: Sequence[bool]
) -> Floats:
    """Return the posterior mean of a difference, for the most likely variance and lengths."""
    kernels = [
        [np.linalg.eigh(_covariance(own, length)) for length in (_LENGTHS if along else (0.0,))]
        for own, along in zip(shares, ordered, strict=True)
    ]
    chosen = [0] * apart.ndim
    best = _likelihood(*_in_axes(apart, [own[0] for own in kernels]), noise)
    # One axis at a time, until no other length is more likely.
    better = True
    while better:
        better = False
        for axis, place in ((axis, k) for axis, own in enumerate(kernels) for k in range(len(own))):
            tried = [*chosen[:axis], place, *chosen[axis + 1 :]]
            turned = _in_axes(apart, [own[k] for own, k in zip(kernels, tried, strict=True)])
            likelihood = _likelihood(*turned, noise)
            if likelihood > best:
                best, chosen, better = likelihood, tried, True
    axes = [own[k] for own, k in zip(kernels, chosen, strict=True)]
    found = _posterior(*_in_axes(apart, axes), noise)
    for axis, (_, vectors) in enumerate(axes):
        found = _turned(found, vectors, axis)
    return found


def _in_axes(values: Floats, axes: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Return coordinates along the axes of a covariance, and their variances."""
    weights = np.ones(())
    for axis, (own, vectors) in enumerate(axes):
        values = _turned(values, vectors.T, axis)
        weights = np.multiply.outer(weights, np.maximum(own, 0.0))
    return values, weights


def _likelihood(values: Floats, weights: Floats, noise: float) -> float:
    """Return the log-likelihood of coordinates for the most likely variance."""
    squares, least = values**2, noise * noise
    spreads = (variance * weights + least for variance in _VARIANCES)
    return max(-float((np.log(spread) + squares / spread).sum()) for spread in spreads)


def _posterior(values: Floats, weights: Floats, noise: float) -> Floats:
    """Return the posterior means of coordinates for the most likely mixture of variances.

    >>> sparse = np.array([5.0, *[0.1, -0.2, 0.3, -0.1] * 8])
    >>> found = _posterior(sparse, np.ones(33), 0.3)
    >>> bool(found[0] > 4.8), bool(np.abs(found[1:]).max() < 0.05)
    (True, True)
    """
    prior = _VARIANCES[:, None] * weights.ravel()
    spread = prior + noise * noise
    odds = -0.5 * (np.log(spread) + values.ravel() ** 2 / spread)
    odds = np.exp(odds - odds.max(axis=0))
    shares = np.full(len(_VARIANCES), 1.0 / len(_VARIANCES))
    for _ in range(_STEPS):
        mixed = shares[:, None] * odds
        shares = np.mean(mixed / mixed.sum(axis=0), axis=1)
    mixed = shares[:, None] * odds
    mixed /= mixed.sum(axis=0)
    kept = (mixed * (prior / spread)).sum(axis=0)
    return np.asarray(values * kept.reshape(values.shape))


def _turned(values: Floats, matrix: Floats, axis: int) -> Floats:
    """Multiply one axis of a table by a matrix."""
    return np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)


def _covariance(shares: Floats, length: float) -> Floats:
    """Return the covariance along one axis."""
    if length == 0.0:
        return np.diag(shares)
    ranks, roots = np.cumsum(shares) - shares / 2, np.sqrt(shares)
    alike = np.exp(-np.abs(ranks[:, None] - ranks) / length)
    return np.asarray(roots[:, None] * alike * roots)


def fitted_to(table: Floats, axes: Sequence[Sequence[int]], wanted: Sequence[Floats]) -> Floats:
    """Return the table with these marginals, by iterative proportional fitting.

    >>> ones = np.ones(2)
    >>> fitted_to(np.array([[1.0, 1.0], [1.0, 3.0]]), [(0,), (1,)], [ones, ones]).round(3)
    array([[0.634, 0.366],
           [0.366, 0.634]])
    """
    # No cell is 0: some marginals would then be impossible.
    found = table + 2.0**-40 / table.size
    for _ in range(_FITS):
        for kept, marginal in zip(axes, wanted, strict=True):
            others = tuple(axis for axis in range(table.ndim) if axis not in kept)
            own = found.sum(axis=others, keepdims=True)
            found = found * (np.expand_dims(marginal, others) / np.where(own > 0, own, 1.0))
    return np.asarray(found)


def nearest_shares(counts: Floats) -> Floats:
    """Return noisy shares as the nearest distribution.

    >>> nearest_shares(np.array([0.7, 0.5, -0.1])).round(2).tolist()
    [0.6, 0.4, 0.0]
    """
    ordered = np.sort(counts, axis=None)[::-1]
    levels = (np.cumsum(ordered) - 1.0) / np.arange(1, counts.size + 1)
    level = levels[np.flatnonzero(ordered > levels)[-1]]
    return np.asarray(np.maximum(counts - level, 0.0))
