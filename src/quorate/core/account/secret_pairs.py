"""Pairs of users in a secret order: how far apart people are, with nobody in two pairs.

A known pairing of *places* would not do. Users stand in the order of their keys, so a person who is
replaced by one with another id shifts the places of others, and known pairs of places would pair
other people. Uniformly random pairs are the same for every order: let sigma move the places of D to
those of its neighbour D', everybody who stays to their own new place and the replaced person to the
replacement's. If pi are uniformly random pairs for D then sigma(pi) are for D', and the two pair
the same people, in the same places, except in the one pair of the replaced person. So rows that are
made of a pair each change in one row for each pi, and averages over pi of outputs that are close
for each pi are as close.

Where only those who are present are paired, a user may be added or removed, too. Let D' be D
without the user p. A random pairing of D' is got from one of D by changing one pair: if somebody
was left over, that one takes p's place, otherwise p's partner is left over; and if p itself was
left over nothing changes. By symmetry each pairing of D' is as likely as any other. So one row is
replaced, added or removed, whatever the relation; places may shift.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.core.forgetting import forgetting
from quorate.core.guarantees import Relation
from quorate.core.people import People, PerUser
from quorate.core.sealed import SealedRows, seal_rows
from quorate.core.users.crowd import call_quietly
from quorate.exceptions import ParameterError, SchemaError

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
    """Return the rows of both users of random disjoint pairs, one pair a row, drawn anew.

    Parameters
    ----------
    people : People
    values : callable
        One row of numbers a user.
    account : Account
        Its noise orders the users; nothing is paid, because the order does not depend on them.
    most : int
        How many users are paired at most.
    only_present : bool, default=False
        Whether users with NaN in their row are left out. Otherwise they are paired as all others
        are, which needs ``Relation.REPLACE``; what is made of a row may then depend on its place.
    made : callable, optional
        What is computed from each pair of rows; both rows by default.
    at_once : int, optional
        So many pairs are looked at together, where not all of their rows fit into memory.

    Examples
    --------
    >>> from quorate.core.users import UserData
    >>> data = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "carl"])
    >>> people = People(data, Relation.REPLACE)
    >>> secret_pairs(people, UserData.user_means, account=Account.open(epsilon=1.0), most=2**16)
    SealedRows(shape of a row=(2, 1), one row a pair of users)
    """
    if only_present and at_once is not None:
        raise ParameterError("Expected at_once for pairs of everybody: who is absent shifts pairs.")
    if not only_present and people.relation is not Relation.REPLACE:
        raise ParameterError(
            "Pairs of everybody need Relation.REPLACE: when somebody joins, everybody may get "
            "another partner."
        )
    order = account.secret_order(people._held_crowd().n_users)[:most]
    size = max(1, len(order)) if at_once is None else 2 * at_once
    kept = []
    with forgetting(values, made):
        for start in range(0, max(1, len(order)), size):
            rows = people._gathered(values, order[start : start + size])
            if only_present:
                rows = rows[~np.isnan(rows).any(axis=1)]
            kept.append(_pairs(rows, made))
    return seal_rows(np.concatenate(kept), people.relation, paired=True, among=people.among)


def _pairs(rows: NDArray[Any], made: Callable[[NDArray[Any]], NDArray[Any]] | None) -> NDArray[Any]:
    pairs = len(rows) // 2
    paired = np.ascontiguousarray(rows[: 2 * pairs]).reshape(pairs, 2, *rows.shape[1:])
    if made is None:
        return paired
    found = call_quietly(lambda: np.asarray(made(paired)))
    if found is None or found.shape[:1] != (pairs,) or found.dtype.kind not in "fiub":
        raise SchemaError("Expected numbers, one row a pair; what was found is withheld.")
    return found
