"""Private estimates of how much of a table could be read.

A CSV file declares no types, and a label may be spelt differently from its class. A cell that
cannot be read is missing by a public rule and never an error, because an error would reveal a
value. So a table with columns like "1,250" and "3.5.2021" would be answered as if it were empty. So
a small part of the budget pays for numbers that measure what was dropped: the average share of a
person's rows that could be read and, if the answer depends on them, the share of people who lost a
row or the number of dropped rows (:class:`~quorate.app.catalogue.left_out.Weighing`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import exact, float_down
from quorate.app.catalogue import Weighing, figure
from quorate.core.account.parts import SharedAccount
from quorate.core.guarantees import Guarantee
from quorate.core.users import UserData
from quorate.core.users.crowd import Crowd
from quorate.data.columns.ids import group
from quorate.data.files.table_files import Columns, TableFile
from quorate.means import UserMean
from quorate.tabulate.user_count import UserCount

__all__ = [
    "SHARE",
    "Listed",
    "ReadableShare",
    "RowCounts",
    "count_rows",
    "held_by_users",
    "needs_count",
    "release_readable_share",
    "split_epsilon",
]

SHARE = Fraction(1, 20)  # public: the command line states it
"""Part of epsilon that is spent on the count."""

Listed = Mapping[str, Sequence[Any]]
"""The public keys of groups, by column."""

_LITTLE = 0.5
# Nearly nothing: below this, with the confidence of the count, there is nothing to answer about.
_NOTHING = 0.1
# Below this no part is taken: a count that says nothing would only cost.
_SMALLEST_EPSILON = 1e-3


@dataclass(frozen=True, kw_only=True)
class ReadableShare:
    """The share of the rows of a person that could be read, on average over people.

    ``moves`` bounds how far the dropped rows may move each number of the answer, if this follows
    from released numbers and the public bounds. :meth:`stated_with` adds it to a stated error.
    ``people`` and ``dropped`` are upper limits, or None if they were not released.

    >>> found = ReadableShare(share=0.981, bound=0.02, confidence=0.95, unit="patient", rows=True,
    ...                guarantee=Guarantee(epsilon=0.05, delta=0.0))
    >>> print(found)
    About 98% (at most 2 points off, 95% confidence) of each patient's rows could be read, on
    average.
    >>> found.dropped_at_most
    "up to 3.9% of each patient's rows, on average (95% confidence)"
    """

    share: float
    bound: float
    confidence: float
    unit: str
    rows: bool
    guarantee: Guarantee
    listed: bool = False
    people: float | None = None
    dropped: float | None = None
    moves: Mapping[str, float] = field(default_factory=dict)

    @property
    def left_out(self) -> float:
        """The largest share of a person's rows that was dropped, with ``confidence``."""
        return min(max(1.0 - self.share + self.bound, 0.0), 1.0)

    @property
    def is_little(self) -> bool:
        """Whether the released share is less than one half."""
        return self.share < _LITTLE

    @property
    def is_nothing(self) -> bool:
        """Return whether there is nothing to answer about.

        This is the case if the estimate cannot be distinguished from zero and is almost surely
        below one half, or if almost surely less than a tenth of the rows could be read. The second
        rule does not apply to listed keys, which may be rare.
        """
        most = self.share + self.bound
        if self.share <= self.bound and most < _LITTLE:
            return True
        return not self.listed and most < _NOTHING

    @property
    def dropped_at_most(self) -> str:
        """What was dropped, as upper limits, with their confidence."""
        if not self.rows:
            said = f"up to {_percent(self.left_out)} of all users have no readable row"
        else:
            said = f"up to {_percent(self.left_out)} of each {self.unit}'s rows, on average"
        if self.people is not None:
            said += f"; up to {_percent(self.people)} of all users lost a row"
        if self.dropped is not None and math.isfinite(self.dropped):
            said += f"; up to {figure(round(self.dropped))} rows"
        return f"{said} ({self.confidence:.0%} confidence)"

    @property
    def not_covered(self) -> str:
        """A sentence for answers on which the effect of dropped rows cannot be bounded."""
        return f"It does not cover dropped rows: {self.dropped_at_most}."

    def covered(self, confidence: float) -> str:
        """Return a sentence: how far dropped rows may move each number, with which confidence.

        ``confidence`` is that of the stated error; both the error and the count may fail.
        """
        moves = ", ".join(f"{name} by up to {figure(by)}" for name, by in self.moves.items())
        return (
            f"Rows that could not be read ({self.dropped_at_most}) may move {moves}; "
            f"with them the error holds with {self._both(confidence):.0%} confidence."
        )

    def __str__(self) -> str:
        share = min(max(self.share, 0.0), 1.0)
        off = f"at most {100 * self.bound:.2g} points off, {self.confidence:.0%} confidence"
        if self.listed:
            said = (
                f"About {share:.0%} ({off}) of each {self.unit}'s rows could be read and have a "
                "listed key, on average."
            )
        elif self.rows:
            whose = f"{self.unit}'s"
            said = f"About {share:.0%} ({off}) of each {whose} rows could be read, on average."
        else:
            said = f"About {share:.0%} ({off}) of all users have a row that could be read."
        if self.is_little:
            said += (
                " That may be too little: are numbers written as 1250.5, days as 2020-12-31, and "
                "labels and keys exactly as announced, in this case of letters and this encoding?"
            )
        return said

    def stated_with(self, bound: float, confidence: float) -> tuple[float, float] | None:
        """Return the error including dropped rows, and its confidence; None if there is no bound.

        The stated error and the count may both fail, so the two failure probabilities add up.

        >>> found = ReadableShare(share=0.7, bound=0.05, confidence=0.95, unit="patient", rows=True,
        ...             guarantee=Guarantee(epsilon=0.05, delta=0.0), moves={"age": 42.0})
        >>> found.stated_with(3.0, 0.95)
        (45.0, 0.9)
        """
        if not self.moves:
            return None
        return bound + math.hypot(*self.moves.values()), self._both(confidence)

    def _both(self, confidence: float) -> float:
        return round(confidence + self.confidence - 1.0, 12)

    def to_dict(self) -> dict[str, object]:
        """Return the estimate as plain data."""
        return {
            "share": self.share,
            "bound": self.bound,
            "confidence": self.confidence,
            "of": "rows of a person, on average" if self.rows else "people with a row",
            "listed_keys": self.listed,
            "people_who_lost_a_row_at_most": self.people,
            "rows_left_out_at_most": self.dropped,
            "rows_left_out_move": dict(self.moves),
            "epsilon": self.guarantee.epsilon,
        }


def _percent(share: float) -> str:
    """Return an upper limit in percent, rounded up to a tenth.

    >>> _percent(0.9999), _percent(0.141)
    ('100%', '14.1%')
    """
    return f"{math.ceil(round(1000.0 * share, 6)) / 10.0:g}%"


@dataclass(frozen=True)
class RowCounts:
    """How many rows each user has, and how many of them could be read. Private.

    >>> counts = RowCounts(np.array([2, 4]), np.array([2, 1]), np.array([7, 9], np.uint64), "user")
    >>> counts.shares().X.ravel().tolist(), counts.shares(with_losses=True).X[:, 1].tolist()
    ([1.0, 0.25], [0.0, 1.0])
    >>> counts.dropped().record_counts().tolist()
    [0, 3]
    """

    rows: NDArray[np.int64]
    readable: NDArray[np.int64]
    keys: NDArray[np.uint64]
    unit: str

    def shares(self, *, with_losses: bool = False) -> UserData:
        """Return one row per user: their readable share, and whether they lost a row.

        It is a function of that user's rows alone: a ratio of two counts.
        """
        share = self.readable / np.maximum(self.rows, 1)
        columns = [share, np.where(self.readable < self.rows, 1.0, 0.0)]
        stacked = np.stack(columns[: 2 if with_losses else 1], axis=1)
        # A user whose rows all lack an id does not exist; everybody else has at least one row.
        return self._users(np.ascontiguousarray(stacked), np.ones(len(share), dtype=np.int64))

    def dropped(self) -> UserData:
        """Return the dropped rows of each user, without their contents."""
        lost = self.rows - self.readable
        return self._users(np.zeros((int(lost.sum()), 1)), lost)

    def _users(self, rows: NDArray[np.float64], counts: NDArray[np.int64]) -> UserData:
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return UserData(rows, offsets=offsets, unit=self.unit).with_keys(self.keys)


def needs_count(
    table: TableFile, columns: Columns, epsilon: float, listed: Listed | None = None
) -> bool:
    """Return whether the schema leaves open how many rows are readable, so that counting helps.

    This holds for files without declared types, for labels, categories and dates in text, and for
    groups whose keys are ``listed``.
    """
    if listed and epsilon >= _SMALLEST_EPSILON:
        return True
    if not epsilon >= _SMALLEST_EPSILON or not columns.features:
        return False
    return table.separator is not None or columns.classes is not None or not columns.coding.is_plain


def split_epsilon(epsilon: float) -> tuple[float, float]:
    """Return the epsilons of the answer and of the count; their sum is at most all.

    >>> answer, count = split_epsilon(1.0)
    >>> round(answer, 6), round(count, 6), answer + count <= 1.0
    (0.95, 0.05, True)
    """
    answer = float_down((1 - SHARE) * exact(epsilon))
    return answer, float_down(exact(epsilon) - exact(answer))


def held_by_users(users: UserData) -> UserData:
    """Return a row for each user: 1 for a user with a record, 0 for a user without.

    >>> people = UserData.from_arrays([[1.0], [float("nan")]], users=[8, 9])
    >>> held_by_users(people).X.ravel().tolist()
    [1.0, 0.0]
    """
    held = (users.record_counts() > 0).astype(np.float64)
    rows = UserData(held[:, None], offsets=np.arange(users.n_users + 1), unit=users.unit)
    return rows.with_keys(users.keys())


def count_rows(table: TableFile, columns: Columns, listed: Listed | None = None) -> RowCounts:
    """Count the rows of each user, and those that can be read.

    A row can be read if its numbers, days and label can be read, its categories are listed, and the
    keys of its group are among those ``listed``.
    """
    readable, ids = table.readable(columns)
    for name, labels in (listed or {}).items():
        readable &= table.is_listed(name, labels)
    groups = group(ids)
    codes, n_users = groups.codes, len(groups.keys)
    if (codes < 0).any():  # rows without an id are nobody's
        known = codes >= 0
        codes, readable = codes[known], readable[known]
    rows = np.bincount(codes, minlength=n_users)
    lost = np.bincount(codes[~readable], minlength=n_users)
    return RowCounts(rows, rows - lost, groups.keys, columns.protected)


def release_readable_share(
    counted: RowCounts | Crowd,
    account: SharedAccount,
    *,
    epsilon: float,
    weighing: Weighing = Weighing.SHARE,
    listed: bool = False,
) -> ReadableShare:
    """Release how much was dropped, in the numbers that ``weighing`` needs.

    The cost is taken from the account of the fit. For a crowd only the share of users with a row is
    released. ``listed`` says that a row must also have a listed key.
    """
    in_rows = isinstance(counted, RowCounts)
    both = in_rows and weighing is Weighing.ROWS
    part = float_down(exact(epsilon) / 2) if both else epsilon
    losses = in_rows and weighing is Weighing.PEOPLE
    mean = UserMean(
        epsilon=part, bounds=(0.0, 1.0), algorithm="clip", relation=account.relation
    ).draw_from(account)
    mean.fit(counted.shares(with_losses=losses) if isinstance(counted, RowCounts) else counted)
    error, promise, dropped = mean.error_, mean.guarantee_, None
    if both and isinstance(counted, RowCounts):
        count = UserCount(of="records", epsilon=part, relation=account.relation)
        count.draw_from(account).fit(counted.dropped())
        events = (*promise.events, *count.guarantee_.events)
        promise = replace(promise, epsilon=epsilon, events=events)
        dropped = max(0.0, float(count.count_) + float(count.error_.bound))
    return ReadableShare(
        share=float(mean.mean_[0]),
        bound=float(error.coordinates[0] if losses else error.bound),
        confidence=float(error.confidence),
        unit=counted.unit,
        rows=in_rows,
        listed=listed,
        people=min(1.0, max(0.0, float(mean.mean_[1] + error.coordinates[1]))) if losses else None,
        dropped=dropped,
        guarantee=promise,
    )
