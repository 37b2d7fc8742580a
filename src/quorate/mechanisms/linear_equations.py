"""Linear equations over the field of two elements, for learning parities.

A record (x, y) of a parity r is the equation "the sum of r_j over the true features of x is y
modulo 2". Sixty-four unknowns are stored in one machine word, so adding one equation to another
takes a few exclusive-ors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["SolutionSpace", "full_rank_probability", "pack_bits", "solve"]

Words = NDArray[np.uint64]

_WORD = 64


def pack_bits(truth: NDArray[np.bool_]) -> Words:
    """Pack rows of Booleans into words of 64 bits; bit j of a row is its column j.

    >>> pack_bits(np.array([[True, False, True]])).tolist()
    [[5]]
    """
    rows, columns = truth.shape
    words = -(-columns // _WORD)
    packed = np.zeros((rows, 8 * words), dtype=np.uint8)
    bits = np.packbits(truth, axis=1, bitorder="little")
    packed[:, : bits.shape[1]] = bits
    return packed.view("<u8").astype(np.uint64, copy=False)


@dataclass(frozen=True)
class SolutionSpace:
    """All solutions of a consistent system: one for each choice of the free unknowns.

    >>> space = solve(pack_bits(np.array([[True, True]])), np.array([True]), unknowns=2)
    >>> space.dimension, sorted(bin(space.point(free)) for free in range(2))
    (1, ['0b1', '0b10'])
    """

    unknowns: int
    pivots: tuple[int, ...]
    equations: tuple[int, ...]
    """Equation i, as bits, begins at ``pivots[i]``; its label is bit ``unknowns``."""

    @property
    def dimension(self) -> int:
        """Number of free unknowns."""
        return self.unknowns - len(self.pivots)

    def point(self, free: int) -> int:
        """Return the solution (as bits) in which the free unknowns are the bits of ``free``."""
        solution = _spread(free, self.pivots, self.unknowns)
        for pivot, equation in zip(reversed(self.pivots), reversed(self.equations), strict=True):
            # The label's bit takes part, so an odd sum means that the pivot has to be set.
            known = solution | (1 << self.unknowns)
            if (equation & known).bit_count() % 2:
                solution |= 1 << pivot
        return solution


def solve(rows: Words, labels: NDArray[np.bool_], *, unknowns: int) -> SolutionSpace | None:
    """Solve the equations by elimination; None if they contradict each other.

    Time O(rows x unknowns^2 / 64). A row of zeros with label 1 is a contradiction.

    >>> solve(pack_bits(np.zeros((1, 3), bool)), np.array([True]), unknowns=3) is None
    True
    """
    table = _with_labels(rows, labels, unknowns)
    pivots: list[int] = []
    done = 0
    for column in range(unknowns):
        if done == len(table):
            break
        word, bit = divmod(column, _WORD)
        below = table[done:]
        hits = np.flatnonzero(below[:, word] & np.uint64(1 << bit))
        if not hits.size:
            continue
        first = int(hits[0])
        if first:
            below[[0, first]] = below[[first, 0]]
        # The row that was first lacks the bit, so the other hits are where they were.
        others = hits[1:]
        if others.size:
            below[others, word:] ^= below[0, word:]
        pivots.append(column)
        done += 1
    if done < len(table) and table[done:].any():
        return None
    raw = table[:done].astype("<u8").tobytes()
    width = 8 * table.shape[1]
    equations = tuple(
        int.from_bytes(raw[i * width : (i + 1) * width], "little") for i in range(done)
    )
    return SolutionSpace(unknowns, tuple(pivots), equations)


def full_rank_probability(equations: int, unknowns: int) -> float:
    """Return the probability that uniform equations determine all unknowns.

    A matrix of K uniform rows has rank d with probability (1 - 2^-K)(1 - 2^(1-K))...(1 -
    2^(d-1-K)).

    >>> full_rank_probability(2, 2), full_rank_probability(1, 2)
    (0.375, 0.0)
    """
    if equations < unknowns:
        return 0.0
    # Factors with an exponent far below -53 are 1 to the last bit.
    smallest = max(-equations, unknowns - equations - 1100)
    exponents = np.arange(smallest, unknowns - equations, dtype=np.float64)
    return float(np.prod(1.0 - np.exp2(exponents)))


def _with_labels(rows: Words, labels: NDArray[np.bool_], unknowns: int) -> Words:
    """Return a copy of the rows with the label as bit ``unknowns``."""
    word, bit = divmod(unknowns, _WORD)
    table = np.zeros((len(rows), word + 1), dtype=np.uint64)
    table[:, : rows.shape[1]] = rows
    table[:, word] |= labels.astype(np.uint64) << np.uint64(bit)
    return table


def _spread(free: int, pivots: tuple[int, ...], unknowns: int) -> int:
    """Put the bits of ``free`` at the positions that are not pivots."""
    taken = set(pivots)
    solution = 0
    for place in range(unknowns):
        if place not in taken:
            solution |= (free & 1) << place
            free >>= 1
    return solution
