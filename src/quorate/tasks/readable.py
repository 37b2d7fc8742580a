"""How much of a table could be read: a private estimate of the fraction of usable rows.

A CSV file declares no types, and a label may be spelt in another way than its class. What cannot be
read is missing by a public rule and never an error, because an error would tell of a value: columns
of "1,250" and "3.5.2021" would be answered as if nobody had brought anything. So a small part of
the budget goes into one more number: the share of a person's rows that could be read, on average
over the people.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from quorate._validate import exact, float_down
from quorate.accounting.account_parts import SharedAccount
from quorate.catalogue import figure
from quorate.files.table_files import Columns, TableFile
from quorate.guarantees import Guarantee
from quorate.means import UserMean
from quorate.users import UserData
from quorate.users.coding import Category
from quorate.users.crowd import Crowd

__all__ = [
    "SHARE",
    "Listed",
    "ReadableShare",
    "held_by_users",
    "mean_moved_by",
    "needs_count",
    "readable_rows",
    "release_readable_share",
    "shares_moved_by",
    "split_epsilon",
]

SHARE = Fraction(1, 20)
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

    ``moves`` says by how much the rows left out may move each number of the answer, where that
    follows from the share and the public bounds. :meth:`stated_with` adds it to a stated error.

    >>> found = ReadableShare(share=0.981, bound=0.02, confidence=0.95, unit="patient", rows=True,
    ...                guarantee=Guarantee(epsilon=0.05, delta=0.0))
    >>> print(found)
    About 98% (at most 2 points off, 95% confidence) of a patient's rows could be read, on average.
    """

    share: float
    bound: float
    confidence: float
    unit: str
    rows: bool
    guarantee: Guarantee
    listed: bool = False
    moves: Mapping[str, float] = field(default_factory=dict)

    @property
    def left_out(self) -> float:
        """The largest share of a person's rows that was left out, with ``confidence``."""
        return min(max(1.0 - self.share + self.bound, 0.0), 1.0)

    @property
    def is_little(self) -> bool:
        """Whether what was released is less than half."""
        return self.share < _LITTLE

    @property
    def is_nothing(self) -> bool:
        """Whether surely less than a tenth could be read; of listed keys, perhaps none at all.

        Keys may be listed that few rows have. So there the estimate must also be within its error
        of zero.
        """
        if self.listed and self.share > self.bound:
            return False
        return self.share + self.bound < _NOTHING

    def __str__(self) -> str:
        share = min(max(self.share, 0.0), 1.0)
        off = f"at most {100 * self.bound:.2g} points off, {self.confidence:.0%} confidence"
        if self.listed:
            said = (
                f"About {share:.0%} ({off}) of a {self.unit}'s rows could be read and have a "
                "listed key, on average."
            )
        elif self.rows:
            said = f"About {share:.0%} ({off}) of a {self.unit}'s rows could be read, on average."
        else:
            said = f"About {share:.0%} ({off}) of all users have a row that could be read."
        if self.moves:
            moves = ", ".join(f"{name} by up to {figure(by)}" for name, by in self.moves.items())
            said += f" Whatever the rows left out hold within the bounds, they change {moves}."
        elif self.rows and share + self.bound < 1 and not self.listed:
            said += (
                " The stated error does not cover the rows left out: if they differ from the "
                "others, the answer is off by more."
            )
        if self.is_little:
            said += (
                " That may be too little: are numbers written as 1250.5, days as 2020-12-31, and "
                "labels and keys exactly as announced, in this case of letters and this encoding?"
            )
        return said

    def stated_with(self, bound: float, confidence: float) -> tuple[float, float] | None:
        """Return the error with the rows left out, and how sure it is; None where nobody can say.

        The stated error and the count may both fail, so the two chances of failure add up.

        >>> found = ReadableShare(share=0.7, bound=0.05, confidence=0.95, unit="patient", rows=True,
        ...             guarantee=Guarantee(epsilon=0.05, delta=0.0), moves={"age": 42.0})
        >>> found.stated_with(3.0, 0.95)
        (45.0, 0.9)
        """
        if not self.moves:
            return None
        both = bound + math.hypot(*self.moves.values())
        return both, round(confidence + self.confidence - 1.0, 12)

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "share": self.share,
            "bound": self.bound,
            "confidence": self.confidence,
            "of": "rows of a person, on average" if self.rows else "people with a row",
            "listed_keys": self.listed,
            "rows_left_out_move": dict(self.moves),
            "epsilon": self.guarantee.epsilon,
        }


def needs_count(
    table: TableFile, columns: Columns, epsilon: float, listed: Listed | None = None
) -> bool:
    """Tell whether the schema leaves open how much of a table can be read, and a count can say it.

    It does for a file without declared types, for labels, categories and dates in text, and for
    groups whose keys are ``listed``.
    """
    if listed and epsilon >= _SMALLEST_EPSILON:
        return True
    if not epsilon >= _SMALLEST_EPSILON or not columns.features:
        return False
    return table.separator is not None or columns.classes is not None or not columns.coding.is_plain


def split_epsilon(epsilon: float) -> tuple[float, float]:
    """Return what is left for the answer and what the count may cost; together no more than all.

    >>> answer, count = split_epsilon(1.0)
    >>> round(answer, 6), round(count, 6), answer + count <= 1.0
    (0.95, 0.05, True)
    """
    answer = float_down((1 - SHARE) * exact(epsilon))
    return answer, float_down(exact(epsilon) - exact(answer))


def held_by_users(users: UserData) -> UserData:
    """Return a row for each user: 1 for one who holds a record, 0 for one who does not.

    >>> people = UserData.from_arrays([[1.0], [float("nan")]], users=[8, 9])
    >>> held_by_users(people).X.ravel().tolist()
    [1.0, 0.0]
    """
    held = (users.record_counts() > 0).astype(np.float64)
    rows = UserData(held[:, None], offsets=np.arange(users.n_users + 1), unit=users.unit)
    return rows.with_keys(users.keys())


def readable_rows(table: TableFile, columns: Columns, listed: Listed | None = None) -> UserData:
    """Return a 1 for each row that can be read and a 0 for each other one, grouped by user.

    A row can be read if its numbers, days and label can be, its categories are on their lists, and
    the keys of its group are among those ``listed``.
    """
    read = table.load(columns)
    rows, coding = read.rows, columns.coding
    readable = np.ones(len(read.ids[0]), dtype=np.bool_)
    for name, labels in (listed or {}).items():
        readable &= table.is_listed(name, labels)
    start = 0
    for column in coding.columns:
        block = rows[:, start : start + len(column.names)]
        found = np.isfinite(block).all(axis=1)
        readable &= found | (columns.missing != "drop")
        if isinstance(column, Category):
            readable &= ~found | (block.sum(axis=1) > 0)
        start += len(column.names)
    if read.targets is not None:
        readable &= np.isfinite(read.targets)
    marks = readable.astype(np.float64)[:, None]
    return UserData.from_arrays(marks, users=read.ids, unit=columns.protected)


def mean_moved_by(readable: ReadableShare, widths: Mapping[str, float]) -> dict[str, float]:
    r"""Return by how much rows that were left out may move each coordinate of a mean over users.

    A user whose share :math:`r_u` of rows could be read has the mean :math:`r_u a_u + (1-r_u) b_u`
    where :math:`a_u` is the mean of the rows that could be read and :math:`b_u` that of the others;
    both lie within bounds of width w, so leaving rows out moves it by at most :math:`(1-r_u) w`.
    The mean over all users moves by at most w times the mean of :math:`1-r_u`. A user without a
    readable row is left out altogether, which is the same with :math:`r_u = 0`.

    >>> found = ReadableShare(share=0.7, bound=0.05, confidence=0.95, unit="patient", rows=True,
    ...                guarantee=Guarantee(epsilon=0.05, delta=0.0))
    >>> {name: round(by, 6) for name, by in mean_moved_by(found, {"age": 120.0}).items()}
    {'age': 42.0}
    """
    return {name: readable.left_out * width for name, width in widths.items()}


def shares_moved_by(readable: ReadableShare, metric: str) -> dict[str, float]:
    r"""Return by how much rows that were left out may move shares that are averaged over users.

    A user with the shares :math:`a_u` of categories among the rows that could be read and
    :math:`b_u` among the others has :math:`r_u a_u + (1-r_u) b_u` among all; that is at most
    :math:`1-r_u` away from :math:`a_u` in total variation, and so are distribution functions.

    >>> found = ReadableShare(share=0.7, bound=0.05, confidence=0.95, unit="patient", rows=True,
    ...                guarantee=Guarantee(epsilon=0.05, delta=0.0))
    >>> {name: round(by, 6) for name, by in shares_moved_by(found, "total variation").items()}
    {'total variation': 0.35}
    """
    return {metric: readable.left_out}


def release_readable_share(
    crowd: Crowd, account: SharedAccount, *, epsilon: float, rows: bool, listed: bool = False
) -> ReadableShare:
    """Release the mean of zeros and ones over people; ``rows`` says what they are about.

    ``listed`` says that a row must have a listed key, too.

    What it costs is borrowed from the account of the fit.
    """
    mean = UserMean(
        epsilon=epsilon, bounds=(0.0, 1.0), algorithm="clip", relation=account.relation
    ).draw_from(account)
    mean.fit(crowd)
    return ReadableShare(
        share=float(mean.mean_[0]),
        bound=float(mean.error_.bound),
        confidence=float(mean.error_.confidence),
        unit=crowd.unit,
        rows=rows,
        listed=listed,
        guarantee=mean.guarantee_,
    )
