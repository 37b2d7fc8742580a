r"""Several vectors per person, each with its own length: a person's contribution to a table.

A table has one block for each number of a cell (its records, its users, a sum), and a block has one
coordinate per group. Each block of a person is scaled down to its own length, whatever is in the
other blocks.

The sensitivity of a sum follows from the blocks: their L1 norms and their squared L2 norms add up,
and joint noise depends on the *largest* L1 norm of a block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.bounds.grid import Bound
from quorate.core.bounds.lengths import Lengths
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError

__all__ = ["Blocks"]


@dataclass(frozen=True, eq=False)
class Blocks(Bound):
    """One vector for each number of a cell, one after the other, each with a bounded length.

    Parameters
    ----------
    parts : tuple of Lengths
        The bounds of the blocks; all have the same dimension (the number of groups) and the same
        norm.

    Examples
    --------
    >>> both = Blocks((Lengths(5.0, 2, norm=1, signed=False), Lengths(1.0, 2, norm=1)))
    >>> both.clip([[6.0, 4.0, 0.5, -1.5]]).round(6)
    array([[ 3.  ,  2.  ,  0.25, -0.75]])
    >>> both.change_in_steps(1.0, Relation.REPLACE), both.blocks_in_steps(1.0, Relation.REPLACE)
    ((12, 54), (2, 10))
    """

    parts: tuple[Lengths, ...]

    def __post_init__(self) -> None:
        _validate.positive_integer(parts=len(self.parts))
        if len({(part.dimension, part.norm) for part in self.parts}) > 1:
            raise ParameterError("Expected blocks of one dimension and one norm.")
        centre = np.zeros(self.groups * len(self.parts))
        centre.flags.writeable = False
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "dimension", len(centre))

    @property
    def groups(self) -> int:
        """Number of coordinates of a block."""
        return self.parts[0].dimension

    def offsets_in_steps(
        self, values: NDArray[np.float64], step: float, *, out: NDArray[np.float64]
    ) -> None:
        """Scale each block down to its length; one with NaN or infinity becomes 0."""
        for number, part in enumerate(self.parts):
            block = slice(number * self.groups, (number + 1) * self.groups)
            part.offsets_in_steps(values[:, block], step, out=out[:, block])

    def change_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the largest L1 norm and squared L2 norm of a change, in steps."""
        plain, squared = zip(*self._changes(step, relation), strict=True)
        return sum(plain), sum(squared)

    def blocks_in_steps(self, step: float, relation: Relation) -> tuple[int, int]:
        """Return the number of blocks, and the largest L1 norm of a change of one of them."""
        return len(self.parts), max(plain for plain, _ in self._changes(step, relation))

    def change(self, relation: Relation) -> tuple[float, float]:
        """Return the largest L1 and L2 norm of a change, rounded up."""
        plain, root = zip(*(part.change(relation) for part in self.parts), strict=True)
        return sum(plain) * _UP, float(np.linalg.norm(root)) * _UP

    @property
    def largest_offset(self) -> float:
        """Largest absolute value of a coordinate of an offset."""
        return max(part.largest_offset for part in self.parts)

    def _changes(self, step: float, relation: Relation) -> list[tuple[int, int]]:
        return [part.change_in_steps(step, relation) for part in self.parts]

    def _key(self) -> tuple[object, ...]:
        return type(self), *(part._key() for part in self.parts)


# More than the rounding errors of adding up a few numbers.
_UP = 1 + 2.0**-40
