r"""How alike few users are: a cover of the pairs that are far apart.

Two users are joined where they are far apart. The relaxed smallest vertex cover of that graph
(:mod:`quorate.core.vertex_cover`) says how many users are in the way of the rest being alike;
it is 0 where nobody is far from anybody, and half of the users where nearly everybody can be paired
with somebody far away. A replaced user changes the edges of one vertex only, and the cover by at
most 1: as a count of disjoint pairs changes. But where people are of two kinds, half of the pairs
of a random pairing are close, and the cover is as large as it can be; so a smaller share of the
budget tells the two apart. All pairs take a table of users by users, which is for few users; see
``docs/proofs/distributions.md``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.trimmed import row_lengths
from quorate.core.moves import Moves
from quorate.core.sealed import Sealed, SealedRows, opened_rows, seal
from quorate.core.vertex_cover import half_integral_cover

__all__ = ["users_in_the_way"]


def users_in_the_way(rows: SealedRows, reach: float) -> Sealed:
    r"""Return the relaxed vertex cover of the pairs farther apart than ``reach``, rounded up.

    Privacy: whether two users are joined depends on their two rows alone. Replacing a user, who may
    stand at another place, renames vertices and changes the edges of one: give that one the weight
    1, and a cover of the one graph is a cover of the other, so the values differ by at most 1, and
    so do their ceilings. Who comes or goes is one vertex with its edges, and the same holds.

    Parameters
    ----------
    rows : SealedRows
        A few numbers of each user.
    reach : float
        An L1 distance.

    Examples
    --------
    >>> from quorate.core.people import People
    >>> from quorate.guarantees import Relation
    >>> from quorate.users.data import UserData
    >>> data = UserData.from_arrays([[1.0], [0.9], [0.0]], users=[4, 9, 5])
    >>> users_in_the_way(People(data, Relation.REPLACE).each(UserData.user_means), 0.5)
    Sealed(shape=(1,), one user moves a coordinate by at most 1)
    """
    found = _cover(opened_rows(rows), reach)
    return seal([found], Moves.of_counts(1), rows.relation, rows.among)


def _cover(rows: NDArray[Any], reach: float) -> int:
    apart = np.zeros((len(rows), len(rows)), dtype=np.bool_)
    for place in range(len(rows) - 1):
        with np.errstate(all="ignore"):  # a word about an overflow would tell of a value
            apart[place, place + 1 :] = row_lengths(rows[place + 1 :] - rows[place], 1) > reach
    if not apart.any():
        return 0
    return half_integral_cover(apart | apart.T).value
