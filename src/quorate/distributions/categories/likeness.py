r"""How alike few users are: all of their pairs at once.

Two users are joined where they are far apart. The relaxed smallest vertex cover of that graph
(:mod:`quorate.conversion.vertex_cover`) says how many users are in the way of the rest being alike;
it is 0 where nobody is far from anybody, and half of the users where nearly everybody can be paired
with somebody far away. A replaced user changes the edges of one vertex only, and the cover by at
most 1: as a count of disjoint pairs changes. But where people are of two kinds, half of the pairs
of a random pairing are close, and the cover is as large as it can be; so a smaller share of the
budget tells the two apart. All pairs take a table of users by users, which is for few users.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.conversion.vertex_cover import half_integral_cover
from quorate.distributions.categories.trimming import row_lengths

__all__ = ["ALL_PAIRS", "users_in_the_way"]

ALL_PAIRS = 2.2
"""Two users whose L1 distance is above so many typical distances from a centre are far apart."""


def users_in_the_way(rows: NDArray[np.float64], reach: float) -> int:
    r"""Return the relaxed vertex cover of the pairs farther apart than ``reach``, rounded up.

    Privacy: whether two users are joined depends on their two rows alone. Replacing a user, who may
    stand at another place, renames vertices and changes the edges of one: give that one the weight
    1, and a cover of the one graph is a cover of the other, so the values differ by at most 1, and
    so do their ceilings.

    Parameters
    ----------
    rows : array of shape (n, k)
        Shares of each user.
    reach : float

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [0.9, 0.1], [1.0, 0.0], [0.0, 1.0]])
    >>> users_in_the_way(rows, 0.5), users_in_the_way(rows, 0.1), users_in_the_way(rows, 2.0)
    (1, 2, 0)
    """
    apart = np.zeros((len(rows), len(rows)), dtype=np.bool_)
    for place in range(len(rows) - 1):
        apart[place, place + 1 :] = row_lengths(rows[place + 1 :] - rows[place], 1) > reach
    if not apart.any():
        return 0
    return half_integral_cover(apart | apart.T).value
