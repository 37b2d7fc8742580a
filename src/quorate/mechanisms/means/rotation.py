r"""A random rotation that spreads every vector evenly over its coordinates (part of U3).

:math:`U = D^{-1/2} H S` with the Walsh-Hadamard matrix :math:`H` of a power of two :math:`D` and
random signs :math:`S`; vectors are padded with zeros to :math:`D` coordinates. The product with
:math:`H` takes :math:`\log_2 D` passes of additions and subtractions over blocks that fit into the
cache. A rotated row is, to the last bit, a function of that row alone, which a matrix product over
many users' rows does not guarantee. The signs are public randomness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.public_randomness import RandomState, public_generator

__all__ = ["Rotation"]

# A quarter of a megabyte of floats.
_BLOCK = 2**15


@dataclass(frozen=True)
class Rotation:
    """A rotation of vectors of ``len(signs)`` coordinates after padding.

    Parameters
    ----------
    signs : array of shape (D,)
        1 or -1 for each padded coordinate.
    dimension : int
        Number of coordinates before padding.

    Examples
    --------
    >>> rotation = Rotation.random(5, random_state=0)
    >>> rotation.padded
    8
    >>> x = np.arange(10.0).reshape(2, 5)
    >>> y = rotation.apply(x)
    >>> np.allclose(np.linalg.norm(y, axis=1), np.linalg.norm(x, axis=1))
    True
    >>> np.allclose(rotation.undo(y), x)
    True
    """

    signs: NDArray[np.float64]
    dimension: int

    @classmethod
    def random(cls, dimension: int, *, random_state: RandomState = None) -> Rotation:
        """Draw signs from public randomness."""
        _validate.positive_integer(dimension=dimension)
        padded = 1 << (dimension - 1).bit_length()
        flips = public_generator(random_state).integers(0, 2, size=padded)
        return cls(np.where(flips == 1, -1.0, 1.0), dimension)

    @property
    def padded(self) -> int:
        """Number of coordinates after padding."""
        return int(self.signs.size)

    def apply(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rotated rows, with ``padded`` coordinates."""
        result = np.empty((len(vectors), self.padded))
        size = max(1, _BLOCK // self.padded)
        for start in range(0, len(vectors), size):
            block = result[start : start + size]
            block[:, self.dimension :] = 0.0
            np.multiply(
                vectors[start : start + size],
                self.signs[: self.dimension],
                out=block[:, : self.dimension],
            )
            block[:] = self._product(block)
        return result

    def undo(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows rotated back, without the padding."""
        return np.asarray((self._product(vectors) * self.signs)[:, : self.dimension])

    def _product(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        half = self.padded // 2
        for _ in range(self.padded.bit_length() - 1):
            even, odd = block[:, 0::2], block[:, 1::2]
            block = np.empty((len(block), self.padded))
            np.add(even, odd, out=block[:, :half])
            np.subtract(even, odd, out=block[:, half:])
        return np.asarray(block / math.sqrt(self.padded))
