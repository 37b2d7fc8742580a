r"""Shares of records in categories, as exact integers that do not depend on other users.

A user with m records, c of them in a category, has the share c / m in it. Shares are whole numbers
of steps, rounded down, so that the shares of one user never add up to more than a whole, and totals
are exact. The difference to a whole counts as *absent*. A user without records is absent. If
records are weighted up to a cap, a user with fewer records is partly absent.

Privacy: records are counted here, whatever category numbers a coder returns. So a user adds numbers
>= 0 whose sum is at most a whole: each is the integer part of a term, and the terms add up to a
whole. For one set of categories that is a point of a
:class:`~quorate.core.bounds.simplex.Simplex` in whole steps, whose last category may be absence;
for several sets, next to each other, one of :class:`~quorate.core.bounds.blocks.Blocks`. The sealed
answer has the sensitivity that these bounds prove; see ``docs/proofs/distributions.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import Grid
from quorate.core.bounds.simplex import Simplex
from quorate.core.forgetting import forgetting
from quorate.core.moves import GridMoves
from quorate.core.people import People
from quorate.core.sealed import Sealed, seal
from quorate.core.users.crowd import told
from quorate.core.users.data import UserData
from quorate.exceptions import ParameterError

__all__ = ["Coder", "ShareSet", "ShareTotals", "held", "share_totals"]

Integers = NDArray[np.int64]
Coder = Callable[[UserData], Integers]
"""From the records of a part to the number of each record's category, or -1 for none."""

# Up to so many cells a record a table of all cells is quicker than sorting the records.
_DENSE = 4
# Steps times the records of one user stay below 2^63.
_MAX_STEPS = 2**30


@dataclass(frozen=True)
class ShareSet:
    """One set of categories.

    Parameters
    ----------
    coder : Coder
    categories : int
    absent : bool, default=False
        Whether the missing part is counted, as an additional category.
    """

    coder: Coder
    categories: int
    absent: bool = False


def held(part: UserData, coder: Coder, categories: int) -> tuple[Integers, ...]:
    """Return the user, category and count of all entries, and each user's number of records.

    >>> people = UserData.from_arrays([[1.0], [0.0], [1.0]], users=[4, 9, 4])
    >>> [found.tolist() for found in held(people, lambda part: part.X[:, 0].astype(int), 2)]
    [[0, 1], [1, 0], [2, 1], [2, 1]]
    """
    codes = told(
        lambda: np.asarray(coder(part)),
        "one whole number a record",
        lambda found: found.shape == (part.n_records,) and found.dtype.kind in "iu",
    )
    known = (codes >= 0) & (codes < categories)
    users = part.user_index()[known].astype(np.int64)
    numbers = users * categories + codes[known]
    if part.n_users * categories <= _DENSE * len(codes):
        table = np.bincount(numbers, minlength=part.n_users * categories)
        cells = np.flatnonzero(table)
        counts = table[cells]
    else:
        cells, counts = np.unique(numbers, return_counts=True)
    records = np.bincount(users, minlength=part.n_users).astype(np.int64)
    return cells // categories, cells % categories, counts.astype(np.int64), records


def share_totals(people: People, sets: Sequence[ShareSet], grid: Grid, *, cap: int = 1) -> Sealed:
    """Add up the users' shares of one or several sets of categories, in steps of ``grid``.

    Parameters
    ----------
    people : People
    sets : sequence of ShareSet
    grid : Grid
        Of a ``Simplex`` or of ``Blocks`` of them, with a category more where absence is counted.
    cap : int, default=1
        A user with m records has the weight min(1, m / cap): with 1 everybody who holds a record
        counts once, with M every record counts once, up to M of a user.

    Examples
    --------
    >>> from quorate.core.guarantees import Relation
    >>> data = UserData.from_arrays([[1.0], [0.0], [1.0]], users=[4, 9, 4])
    >>> pages = ShareSet(lambda part: part.X[:, 0].astype(int), 2, absent=True)
    >>> share_totals(People(data, Relation.REPLACE), [pages], Grid(Simplex(3), step=2.0**-20))
    Sealed(shape=(3,), one user moves a coordinate by at most 1.48291e+06)
    """
    bound = grid.bound
    told = tuple(each.categories + each.absent for each in sets)
    parts = bound.parts if isinstance(bound, Blocks) else (bound,)
    sizes = tuple(part.dimension for part in parts)
    if not all(isinstance(part, Simplex) for part in parts) or sizes != told:
        raise ParameterError(f"Expected a grid of simplices of {told} categories, got {bound!r}.")
    steps = int(1 / Fraction(grid.step))
    if steps > _MAX_STEPS or cap < 1:
        raise ParameterError(f"Expected at most 2^30 steps and a cap >= 1, got cap={cap!r}.")
    with forgetting(*(each.coder for each in sets)):
        found = people._held_crowd().add_up(ShareTotals(tuple(sets), steps, int(cap)))
    return seal(found, GridMoves(grid, people.relation), people.relation, people.among)


@dataclass(frozen=True)
class ShareTotals:
    """The sum of the shares of the users of a part, in steps.

    >>> people = UserData.from_arrays([[1.0], [0.0], [1.0], [0.0]], users=[4, 9, 4, 4])
    >>> pages = ShareSet(lambda part: part.X[:, 0].astype(int), 2, absent=True)
    >>> ShareTotals((pages,), steps=300)(people).tolist()
    [400, 200, 0]
    >>> ShareTotals((pages,), steps=300, cap=3)(people).tolist()
    [200, 200, 200]
    """

    sets: tuple[ShareSet, ...]
    steps: int
    cap: int = 1

    def __call__(self, part: UserData) -> Integers:
        """Return the totals of a part, with the sets one after the other."""
        found = []
        for each in self.sets:
            users, places, counts, records = held(part, each.coder, each.categories)
            wholes = np.maximum(records, self.cap)
            totals = np.zeros(each.categories + 1, dtype=np.int64)
            np.add.at(totals, places, counts * self.steps // wholes[users])
            totals[-1] = ((wholes - records) * self.steps // wholes).sum()
            found.append(totals if each.absent else totals[:-1])
        return np.concatenate(found)
