"""Random pairs of users in a secret order: distances between people, each in one pair.

A fixed pairing of *indices* would not be private. Users are sorted by their keys, so a person who
is replaced by one with another id shifts the indices of others, and fixed pairs of indices would
pair other people. Uniformly random pairs have the same distribution whatever the order of the
users. Let sigma map the indices of D to those of its neighbour D': everybody who stays to their own
new index, and the replaced person to the index of the replacement. If pi are uniformly random pairs
for D, then sigma(pi) are for D'. Both pair the same people, in the same places, except in the one
pair of the replaced person. So for each pi the rows computed from pairs differ in one row. If the
outputs are close for each pi, so are their averages over pi.

If only present users are paired, a user may also be added or removed. Let D' be D without the user
p. A random pairing of D' is obtained from one of D by changing one pair: if somebody was left over,
that user takes the place of p; otherwise the partner of p is left over; if p was left over, nothing
changes. By symmetry each pairing of D' is equally likely. So one row is replaced, added or removed,
under either relation; the positions of rows may shift.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.core.alone import refuse_company, refuse_other_rows
from quorate.core.forgetting import forgetting
from quorate.core.guarantees import Relation
from quorate.core.people import People, PerUser
from quorate.core.sealed import SealedRows, seal_rows
from quorate.core.users.crowd import is_rows, joined_rows, told
from quorate.exceptions import ParameterError

__all__ = ["secret_pairs"]


def secret_pairs(
    people: People,
    values: PerUser,
    *,
    account: Account,
    most: int,
    only_present: bool = False,
    made: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
    at_once: int | None = None,
) -> SealedRows:
    """Return the rows of both users of random disjoint pairs, one row per pair, drawn anew.

    Parameters
    ----------
    people : People
    values : callable
        Returns one row of numbers per user.
    account : Account
        Its noise source orders the users; this costs nothing, because the order does not depend on
        the data.
    most : int
        The largest number of users that are paired.
    only_present : bool, default=False
        Whether users with NaN in their row are left out. Otherwise they are paired like all others,
        which needs ``Relation.REPLACE``; the result of a row may then depend on its position.
    made : callable, optional
        The function computed from each pair of rows; by default it returns both rows.
    at_once : int, optional
        How many pairs are processed together, if their rows do not all fit into memory.

    Examples
    --------
    >>> from quorate.core.users import UserData
    >>> data = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "carl"])
    >>> people = People(data, Relation.REPLACE)
    >>> secret_pairs(people, UserData.user_means, account=Account.open(epsilon=1.0), most=2**16)
    SealedRows(shape of a row=(2, 1), one row a pair of users)
    """
    if only_present and at_once is not None:
        raise ParameterError("at_once= needs only_present=False: absent users would shift pairs.")
    if not only_present and people.relation is not Relation.REPLACE:
        raise ParameterError(
            "Pairs of all users need Relation.REPLACE: if a user joins, other users may get "
            "another partner."
        )
    order = account.secret_order(people._held_crowd().n_users)[:most]
    size = max(1, len(order)) if at_once is None else 2 * at_once
    nobody = people._held_crowd().nobody()
    refuse_company(values, values, nobody)
    none = np.asarray(values(nobody))
    if made is not None:
        refuse_other_rows(made, (2, *none.shape[1:]))
    kept = [_pairs(none, made)]
    with forgetting(values, made):
        for start in range(0, max(1, len(order)), size):
            rows = people._gathered(values, order[start : start + size])
            if only_present:
                rows = rows[~np.isnan(rows).any(axis=1)]
            kept.append(_pairs(rows, made))
    return seal_rows(joined_rows(kept), people.relation, paired=True, among=people.among)


def _pairs(rows: NDArray[Any], made: Callable[[NDArray[Any]], NDArray[Any]] | None) -> NDArray[Any]:
    pairs = len(rows) // 2
    paired = np.ascontiguousarray(rows[: 2 * pairs]).reshape(pairs, 2, *rows.shape[1:])
    if made is None:
        return paired
    return told(
        lambda: np.asarray(made(paired)), "numbers, one row a pair", partial(is_rows, size=pairs)
    )
