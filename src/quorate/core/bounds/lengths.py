r"""One bound on the length of a person's contribution to a whole table, across all groups.

A person may appear in many groups, with much or little in each. What one person adds to a table is
one vector over all its cells, and the vector is scaled down to a length: L2 for Gaussian noise, L1
for Laplace noise. The alternative is a cap on the number of groups, and a cap for each group. Its
noise would be calibrated to people who reach both caps, and hardly anybody does.

The vectors are sparse: most people are in few groups. :func:`capped_steps` bounds them cell by
cell, and no cell that a person does not touch is ever written down.

Why no integer vector leaves its length
---------------------------------------
The proof of the ball, in ``docs/proofs/grid.md``, asks two things of the computed length: that it
is a sum of at most d numbers >= 0, in any order, and that every number in it was rounded once. Both
hold here with d = ``dimension``, since a person has at most that many cells; the same factor is
then applied to each of them, two more roundings, and truncation makes nothing larger. For the L1
length the proof of the simplex does the same. Entries are cut to 2^200 before they are squared, so
nothing overflows, and NaN counts as 0. The ball gives the largest distance between two people's
contributions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.grid import Ball

__all__ = ["capped_steps", "lengths_of", "powers_of"]

Floats = NDArray[np.float64]
_LARGEST_ENTRY = 2.0**200
_SMALLEST, _LARGEST = 2.0**-128, 2.0**128


def lengths_of(values: Floats, owners: NDArray[np.int64], n_users: int, *, norm: int) -> Floats:
    """Return the norm of each user's cells; ``values`` has one column per cell.

    A person's cells are added up one after the other, so the result does not depend on other
    people, to the last bit.

    >>> lengths_of(np.array([[3.0, 4.0, 1.0]]), np.array([0, 0, 2]), 3, norm=2).tolist()
    [5.0, 0.0, 1.0]
    """
    sums = powers_of(values, owners, n_users, norm=norm)
    return sums if norm == 1 else np.sqrt(sums)


def powers_of(values: Floats, owners: NDArray[np.int64], n_users: int, *, norm: int) -> Floats:
    """Return each person's sum of squares or of absolute values, of which the length is the root.

    >>> powers_of(np.array([[3.0, 4.0, 1.0]]), np.array([0, 0, 2]), 3, norm=2).tolist()
    [25.0, 0.0, 1.0]
    """
    return _powers(_cut(values, -_LARGEST_ENTRY), owners, n_users, norm)


def _powers(cut: Floats, owners: NDArray[np.int64], n_users: int, norm: int) -> Floats:
    power = np.abs if norm == 1 else np.square
    own = power(cut[0]) if len(cut) else np.zeros(cut.shape[1])
    for each in cut[1:]:
        own += power(each)
    sums = np.bincount(owners, weights=own, minlength=n_users)
    return np.asarray(sums, dtype=np.float64)


def _cut(values: Floats, lowest: float, highest: float = _LARGEST_ENTRY) -> Floats:
    """Return entries clipped to ``lowest`` and the largest summand; NaN stays NaN."""
    highest = min(highest, _LARGEST_ENTRY)
    # Nothing to cut is by far the most usual, and quick to see; a NaN is not in any range.
    with np.errstate(invalid="ignore"):
        if values.min(initial=0.0) >= lowest and values.max(initial=0.0) <= highest:
            return values
        return np.clip(values, lowest, highest)


def capped_steps(
    values: Floats, owners: NDArray[np.int64], n_users: int, *, bound: Ball, step: float
) -> Floats:
    """Return the cells in whole steps, each person's scaled down to the radius of ``bound``.

    Parameters
    ----------
    values : array of shape (k, cells)
        NaN counts as 0.
    owners : array of shape (cells,)
        The number of each cell's person; a person's cells in one fixed order.
    n_users : int
    bound : Ball
        Around 0.
    step : float
        A power of two.

    Examples
    --------
    >>> bound = Ball(5.0, dimension=4)
    >>> cells = np.array([[6.0, 0.0, 1.0], [0.0, 8.0, 1.0]])
    >>> (capped_steps(cells, np.array([0, 0, 1]), 2, bound=bound, step=2.0**-20) / 2**20).round(3)
    array([[3., 0., 1.],
           [0., 4., 1.]])
    """
    cut = _cut(values, -_LARGEST_ENTRY if bound.signed else 0.0, bound.entry)
    if cut is not values:
        cut[np.isnan(cut)] = 0.0
    radius = bound.radius * (1.0 - (bound.dimension + 8) * 2.0**-52)
    lengths = _powers(cut, owners, n_users, bound.norm)
    if bound.norm == 2:
        np.sqrt(lengths, out=lengths)
    factors = (radius / step) / np.maximum(lengths, radius)
    # Every owner is in the table, so nothing is clipped: it is the quickest way to look up.
    pulled = cut * np.take(factors, owners, mode="clip")
    return np.asarray(np.trunc(pulled, out=pulled))
