"""Small tables on which every estimator gives a sensible answer: 300 people with four records each.

They are computed, so they are the same on every machine and contain no real data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.app.catalogue.descriptor import Example

__all__ = ["N_USERS", "bits", "labelled", "measured", "numbers", "whose"]

N_USERS, _RECORDS = 300, 4


def whose() -> NDArray[np.int64]:
    """Return the user of each row.

    >>> whose()[:6]
    array([0, 0, 0, 0, 1, 1])
    """
    return np.arange(N_USERS * _RECORDS) // _RECORDS


def numbers(columns: int = 2, **parameters: Any) -> Example:
    """Return columns of numbers between 0 and 9, without a target.

    >>> numbers(1).X.min(), numbers(1).X.max()
    (np.float64(0.0), np.float64(9.0))
    """
    return Example(parameters, _table(columns), None, whose())


def labelled(columns: int = 1, **parameters: Any) -> Example:
    """Return the same numbers with labels: 1 if the first column is at least 5.

    >>> labelled().y[:4].tolist()
    [0, 1, 0, 0]
    """
    X = _table(columns)
    return Example(parameters, X, (X[:, 0] >= 5).astype(np.int64), whose())


def measured(columns: int = 2, **parameters: Any) -> Example:
    """Return the same numbers with a numeric target.

    >>> bool(measured().y.max() <= 9)
    True
    """
    X = _table(columns)
    return Example(parameters, X, X.mean(axis=1), whose())


def bits(columns: int = 3, **parameters: Any) -> Example:
    """Return columns of 0 and 1, labelled by the parity of the first two.

    >>> sorted(set(bits().X.ravel().tolist()))
    [0.0, 1.0]
    """
    X = (_table(columns) % 2).astype(np.float64)
    y = (X[:, :2].sum(axis=1) % 2).astype(np.int64)
    return Example(parameters, X, y, whose())


def _table(columns: int) -> NDArray[np.float64]:
    rows = np.arange(N_USERS * _RECORDS)[:, None]
    primes = np.array([7, 11, 13, 17, 19, 23, 29, 31])[:columns]
    # Squares keep columns from being multiples of each other.
    return np.asarray((rows * primes + rows**2 // (primes + 30)) % 10, dtype=np.float64)
