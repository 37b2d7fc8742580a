"""Popular keys: the groups of a table, found privately if they are not listed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.users.data import UserData, ordered_users
from quorate.data.by_group.keys import LabelNumbers, Row
from quorate.data.columns.keys import LabelWords
from quorate.data.labels import PrivateLabels, label_order
from quorate.mechanisms.choices.stable_choice import StableHistogram

__all__ = ["popular_keys"]


@dataclass(frozen=True)
class _Keys:
    """The same people; their records contain only the codes of the keys."""

    columns: tuple[int, ...]

    def __call__(self, part: UserData) -> UserData:
        rows, keys = np.ascontiguousarray(part.X[:, self.columns]), part.keys()
        return ordered_users(rows, None, part.offsets, keys, part.unit, None, part.marks)


@dataclass(frozen=True)
class _Ballots:
    """The key of each person's single record, as text; None without a record."""

    labels: tuple[LabelNumbers | PrivateLabels, ...]

    def __call__(self, part: UserData) -> NDArray[Any]:
        found = np.full(part.n_users, None, dtype=object)
        for person, row in zip(part.user_index().tolist(), part.X.tolist(), strict=True):
            key = [of.label(number) for of, number in zip(self.labels, row, strict=True)]
            found[person] = None if None in key else json.dumps(key)
        return found


def popular_keys(
    people: People,
    columns: tuple[int, ...],
    labels: Sequence[LabelNumbers | PrivateLabels],
    *,
    epsilon: float | Fraction,
    delta: float | Fraction,
    account: Account,
    random_state: RandomState,
) -> tuple[tuple[Row, ...], int]:
    """Release the keys that many people have, in sorted order.

    Every person votes for the key of one record. It is drawn with a public seed, the person's own
    id and this person's keys, or it is the first one with an ``order=``. The votes go to a
    :class:`~quorate.mechanisms.choices.stable_choice.StableHistogram`, whose counts are not
    released. Also return how many votes a key needs to be found almost surely, which is public.

    Parameters
    ----------
    people : People
        With records.
    columns : tuple of int
        The columns of the key.
    labels : sequence of LabelNumbers or PrivateLabels
        The labels that the codes of each column stand for.
    epsilon, delta : float
    account : Account
    random_state : int, generator or None

    Examples
    --------
    >>> from quorate.core.guarantees import Relation
    >>> held = UserData(np.repeat([3.0, 8.0], [400, 2])[:, None], offsets=range(403))
    >>> account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-6)
    >>> popular_keys(
    ...     People(held, Relation.REPLACE),
    ...     (0,),
    ...     [LabelNumbers()],
    ...     epsilon=0.1,
    ...     delta=1e-6,
    ...     account=account,
    ...     random_state=0,
    ... )
    (((3,),), 435)
    """
    # A place among labels depends on who else holds what, so votes are drawn by the labels' words.
    words = [of.words() for of in labels]
    known = tuple(each for each in words if each is not None)
    drawn = people.derive(_Keys(columns)).capped(
        1,
        random_state=random_state,
        words_of=LabelWords(known) if len(known) == len(columns) else None,
    )
    mechanism = StableHistogram(
        epsilon=float_down(epsilon), delta=float_down(delta), relation=account.relation
    )
    votes = drawn.ballots(_Ballots(tuple(labels))).votes()
    found = mechanism.release(votes, account=account)
    keys = [tuple(json.loads(key)) for key in found]
    ordered = sorted(keys, key=lambda key: [label_order(label) for label in key])
    return tuple(ordered), 2 * mechanism.reach + 1
