"""Labels that many people have: categories found privately instead of listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.questions.ballots import Ballots
from quorate.core.users.data import UserData
from quorate.data.columns.keys import LabelWords
from quorate.data.labels import Label, PrivateLabels, check_labelled
from quorate.data.tables import without_rows
from quorate.distributions.categories.label_columns import label_columns
from quorate.exceptions import SchemaError
from quorate.mechanisms.choices.stable_choice import StableHistogram

__all__ = ["check_labels", "own_votes", "popular_labels", "private_labels"]


def check_labels(X: Any) -> None:
    """Refuse a table without exactly one column of labels, by shape and type only.

    >>> check_labels(np.array(["x", "y"]))
    """
    empty = without_rows(X)
    columns = label_columns(X if empty is None else empty)
    if len(columns) != 1:
        raise SchemaError("Expected one column of labels, got several.")
    if not isinstance(columns[0], np.ndarray):
        check_labelled("X", columns[0].type)


def private_labels(X: Any) -> PrivateLabels:
    """Return the labels of a column.

    >>> private_labels(["x", "y", "x"]).numbers.tolist()
    [0.0, 1.0, 0.0]
    """
    (column,) = label_columns(X)
    if isinstance(column, np.ndarray):
        return PrivateLabels.of_cells(column.tolist() if column.dtype == object else column)
    return PrivateLabels.of_arrow(column)


def own_votes(codes: PrivateLabels, people: People, random_state: RandomState) -> Ballots:
    """Return the label of one record of each person who has a record.

    >>> codes = private_labels(["x", "y", "x"])
    >>> from quorate.core.guarantees import Relation
    >>> data = UserData.from_arrays(codes.numbers, users=[1, 1, 2])
    >>> own_votes(codes, People(data, Relation.REPLACE), 0)
    Ballots(one key a user)
    """
    # A place among labels depends on who else holds what; the word of a label does not.
    words = LabelWords((codes.words(),))
    return people.capped(1, random_state=random_state, words_of=words).ballots(_OwnLabel(codes))


@dataclass(frozen=True, eq=False)
class _OwnLabel:
    """The label of the first record, or none."""

    codes: PrivateLabels

    def __call__(self, part: UserData) -> NDArray[Any]:
        votes = np.full(part.n_users, None, dtype=object)
        there = part.record_counts() > 0
        votes[there] = [self.codes.label(number) for number in part.X[part.offsets[:-1][there], 0]]
        return votes


def popular_labels(
    codes: PrivateLabels,
    people: People,
    *,
    epsilon: float,
    delta: float,
    account: Account,
    random_state: RandomState,
) -> tuple[Label, ...]:
    """Release the labels that many people have, in sorted order.

    Every person votes for the label of one of their records. The record is chosen by a public seed,
    the person's id and labels, so a vote does not depend on other people. The votes go to a
    :class:`~quorate.mechanisms.choices.stable_choice.StableHistogram`, whose counts are not
    released.

    Parameters
    ----------
    codes : PrivateLabels
    people : People
        People whose only feature is ``codes.numbers``.
    epsilon, delta : float
    account : Account
    random_state : int, generator or None
    """
    votes = own_votes(codes, people, random_state).votes()
    mechanism = StableHistogram(
        epsilon=float_down(epsilon), delta=float_down(delta), relation=account.relation
    )
    return tuple(mechanism.release(votes, account=account))
