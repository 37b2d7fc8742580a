"""A check that two processes compute the same bits.

Contributions are rounded to a grid, and a value halfway between two grid points is rounded to one
or the other by its last bit. Processors with other vector units, and other versions of numpy, give
different last bits of exponentials, logarithms and inner products. One process uses the same
arithmetic for all users. Several processes must use equal arithmetic, or a user's integer would
depend on where it was computed. So every process hashes the results of a fixed public computation.
"""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np

__all__ = ["arithmetic_fingerprint"]


@cache
def arithmetic_fingerprint() -> str:
    """Return a hash of fixed public computations, equal for processes of equal arithmetic.

    >>> len(arithmetic_fingerprint())
    16
    """
    # A fixed sequence of fractions in (0, 1), and the same numbers over many magnitudes.
    steps = np.arange(1, 4097, dtype=np.float64)
    numbers = (steps * 0.6180339887498949) % 1.0
    wide = (numbers - 0.5) * 2.0 ** (steps % 61 - 30)
    digest = hashlib.sha256(np.__version__.encode())
    with np.errstate(all="ignore"):
        for function in (np.exp, np.log2, np.log1p, np.tanh, np.sqrt, np.expm1, np.logaddexp2):
            arguments = (wide, numbers) if function.nin == 2 else (np.abs(wide),)
            digest.update(function(*arguments).tobytes())
        for function in (np.exp, np.tanh):
            digest.update(function(wide.astype(np.float32)).tobytes())
        for width in (1, 2, 3, 7, 10, 33, 128):
            rows = np.ascontiguousarray(wide[: 4096 - 4096 % width].reshape(-1, width))
            weights = numbers[:width]
            # Products over the records of one user at a time, as in gradients and second moments.
            own = rows[: len(rows) - len(rows) % 32].reshape(-1, 32, width)
            for users in (own, own.astype(np.float32)):
                digest.update(np.matmul(users, weights.astype(users.dtype)).tobytes())
                turned, strip = users.transpose(0, 2, 1), slice(width // 2, None)
                digest.update(np.matmul(turned, users).tobytes())
                digest.update(np.matmul(turned[:, strip], users).tobytes())
                digest.update(np.matmul(np.ones(32, users.dtype), users).tobytes())
            digest.update(np.vecdot(rows, rows).tobytes())
            digest.update(np.einsum("ij,j->i", rows, weights).tobytes())
            digest.update(np.linalg.norm(rows, axis=1).tobytes())
            digest.update(np.add.reduceat(rows, np.arange(0, len(rows), 5), axis=0).tobytes())
    return digest.hexdigest()[:16]
