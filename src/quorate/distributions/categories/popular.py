"""Which labels many people hold: categories that nobody listed beforehand."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import described, float_down
from quorate.accounting.account import Account
from quorate.exceptions import SchemaError
from quorate.mechanisms.choices.stable_choice import StableHistogram
from quorate.mechanisms.votes import count_votes
from quorate.public_randomness import RandomState
from quorate.users.data import UserData
from quorate.users.keys import LabelWords, label_words

__all__ = ["LabelCodes", "own_votes", "popular_labels", "private_codes"]

Label = int | str


class LabelCodes:
    """Labels as numbers in no order that matters; private, like the labels.

    >>> codes = LabelCodes(np.array(["b", "a", None, 2, 2.5], dtype=object))
    >>> codes.numbers.tolist()
    [2.0, 1.0, nan, 0.0, nan]
    >>> codes.labels
    (2, 'a', 'b')
    """

    def __init__(self, column: NDArray[Any]) -> None:
        plain = [_plain(label) for label in column.tolist()]
        known = {label for label in plain if label is not None}
        self.labels: tuple[Label, ...] = tuple(sorted(known, key=lambda x: (isinstance(x, str), x)))
        places = {label: float(place) for place, label in enumerate(self.labels)}
        missing = math.nan
        self.numbers = np.array(
            [missing if label is None else places[label] for label in plain], dtype=np.float64
        )

    def places_of(self, chosen: tuple[Label, ...]) -> NDArray[np.float64]:
        """Return for each record the place of its label among ``chosen``, their number if other.

        >>> codes = LabelCodes(np.array(["b", "a", "c", None], dtype=object))
        >>> codes.places_of(("c", "a")).tolist()
        [2.0, 1.0, 0.0, nan]
        """
        new = {label: float(place) for place, label in enumerate(chosen)}
        table = np.array([new.get(label, float(len(chosen))) for label in self.labels])
        known = ~np.isnan(self.numbers)
        places = np.full(self.numbers.size, np.nan)
        places[known] = table[self.numbers[known].astype(np.int64)]
        return places


def private_codes(X: Any) -> LabelCodes:
    """Return a column of labels as numbers; refuse by shape only.

    >>> private_codes(["x", "y", "x"]).numbers.tolist()
    [0.0, 1.0, 0.0]
    """
    column = np.asarray(X, dtype=object)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise SchemaError(f"Expected one column of labels, got {described(X)}.")
    return LabelCodes(column)


def own_votes(codes: LabelCodes, data: UserData, random_state: RandomState) -> list[Label]:
    """Return the label of one record of each person who holds any.

    >>> codes = private_codes(["x", "y", "x"])
    >>> own_votes(codes, UserData.from_arrays(codes.numbers, users=[1, 1, 2]), 0)[1]
    'x'
    """
    # A place among labels depends on who else holds what; the word of a label does not.
    words = LabelWords((label_words(codes.labels),))
    drawn = data.cap(1, random_state=random_state, words_of=words)
    return [codes.labels[int(number)] for number in drawn.X[:, 0]]


def popular_labels(
    codes: LabelCodes,
    data: UserData,
    *,
    epsilon: float,
    delta: float,
    account: Account,
    random_state: RandomState,
) -> tuple[Label, ...]:
    """Release the labels that many people hold, in the order of labels.

    Every person votes for the label of one record, drawn by a public seed, the person's own id and
    labels, so nobody's vote depends on anybody else. What is released is a
    :class:`~quorate.mechanisms.choices.stable_choice.StableHistogram` without its counts.

    Parameters
    ----------
    codes : LabelCodes
    data : UserData
        Whose only feature is ``codes.numbers``.
    epsilon, delta : float
    account : Account
    random_state : int, generator or None
    """
    votes = own_votes(codes, data, random_state)
    mechanism = StableHistogram(
        epsilon=float_down(epsilon), delta=float_down(delta), relation=account.relation
    )
    return tuple(mechanism.release(count_votes(votes), account=account))


def _plain(label: Any) -> Label | None:
    """Return text and whole numbers; everything else is missing."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, bool | np.bool_):
        return int(label)
    if isinstance(label, numbers.Integral):
        return int(label)
    number = float(label) if isinstance(label, float | np.floating) else math.nan
    return int(number) if number.is_integer() and abs(number) < 2**53 else None
