"""Several bounds side by side: a person has several vectors, each with its own bound.

A table has one block for each number of a cell (its records, its people, a sum), and a block has
one coordinate a group. If several columns have shares, each column has one block. Each block of a
person is clipped to its own bound, whatever the other blocks contain. The sensitivity of a sum
follows from the blocks: their L1 norms and their squared L2 norms add up. Joint noise of blocks
depends on the *largest* L1 norm of a block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quorate._validate import readonly
from quorate.core.bounds.grid import Bound, Joint, enlarged
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError

__all__ = ["Blocks"]


@dataclass(frozen=True, eq=False)
class Blocks(Bound):
    """Points of several bounds, one after the other.

    Parameters
    ----------
    parts : tuple of Bound

    Examples
    --------
    >>> from quorate.core.bounds.grid import Ball
    >>> counts = Ball(5.0, dimension=2, norm=1, signed=False)
    >>> both = Blocks((counts, Ball(1.0, dimension=2, norm=1)))
    >>> both.clip([[6.0, 4.0, 0.5, -1.5]]).round(6)
    array([[ 3.  ,  2.  ,  0.25, -0.75]])
    >>> both.change_in_steps(1.0, Relation.REPLACE), both.joint_in_steps(1.0, Relation.REPLACE)
    ((12, 54), ('blocks_laplace', (2, 2), 10))
    """

    parts: tuple[Bound, ...]

    def __post_init__(self) -> None:
        given = isinstance(self.parts, tuple) and all(isinstance(p, Bound) for p in self.parts)
        if not (given and self.parts):
            raise ParameterError("Expected a tuple of bounds, at least one.")
        centre = np.concatenate([part.centre for part in self.parts])
        object.__setattr__(self, "centre", readonly(centre))
        object.__setattr__(self, "dimension", len(centre))

    @property
    def places(self) -> list[slice]:
        """Where each block lies."""
        ends = np.cumsum([0, *(part.dimension for part in self.parts)]).tolist()
        return [slice(start, stop) for start, stop in pairwise(ends)]

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Clip each block of a row to its bound."""
        for part, block in zip(self.parts, self.places, strict=True):
            part.offsets_in_steps(values[:, block], step, out=out[:, block])

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the largest L1 norm and squared L2 norm of a change, in steps."""
        plain, squared = zip(*self._changes(step, relation), strict=True)
        return sum(plain), sum(squared)

    def joint_in_steps(self, step: float, relation: Relation) -> Joint | None:
        """Return blocks of one size, and the largest L1 norm of a change of one of them."""
        sizes = {part.dimension for part in self.parts}
        plain = [each for each, _ in self._changes(step, relation)]
        shape = len(plain), self.dimension // len(plain)
        return ("blocks_laplace", shape, max(plain)) if len(sizes) == 1 else None

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the largest L1 and L2 norm of a change, rounded up."""
        plain, root = zip(*(part.change(relation) for part in self.parts), strict=True)
        return enlarged(math.fsum(plain)), enlarged(math.hypot(*root))

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return max(part.largest_offset for part in self.parts)

    def _changes(self, step: float, relation: Relation) -> list[tuple[int, int]]:
        return [part.change_in_steps(step, relation) for part in self.parts]

    def _key(self) -> tuple[object, ...]:
        return type(self), *(part._key() for part in self.parts)
