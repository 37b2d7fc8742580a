"""Private estimates of how much of a table could be read.

A CSV file declares no types, and a label may be spelt differently from its class. A cell that
cannot be read is missing by a public rule and never an error, because an error would reveal a
value. So a table with columns like "1,250" and "3.5.2021" would be answered as if it were empty. So
a small part of the budget pays for numbers that measure what was dropped: the average share of a
person's rows that could be read and, if the answer depends on them, the share of people who lost a
row or the number of dropped rows (:class:`~quorate.app.catalogue.left_out.Weighing`). Each of them
is a sum to which a person adds a bounded number, released once with Laplace noise. How many rows a
person lost has no bound of its own, so dropped rows are clipped to the cap of the answer, which is
public or released. No budget is spent on a cap for rows that nobody could read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate._validate import exact, float_down
from quorate.app.catalogue import Weighing, figure
from quorate.core.account.account import Account
from quorate.core.account.parts import SharedAccount
from quorate.core.bounds.grid import Ball, Bound, Interval
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.noise import ambient_noise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.core.users.crowd import Crowd
from quorate.data.columns.ids import group
from quorate.data.files.table_files import Columns, TableFile
from quorate.mechanisms.laplace import LaplaceSum, laplace_quantile
from quorate.mechanisms.sums import fitting_grid

__all__ = [
    "CONFIDENCE",
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

CONFIDENCE = 0.95  # public: 95 % is the convention of stated errors
"""With this probability an upper limit of what was dropped holds."""

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

    ``left_out`` is an upper limit of the dropped share, with ``confidence``; ``users`` is a limit
    of the sum over people of their dropped shares. ``people`` and ``dropped`` are upper limits too,
    or None if they were not released; each person counts with at most ``row_cap`` dropped rows.
    ``moves`` bounds how far the dropped rows may move each number of the answer, if this follows
    from released numbers and the public bounds. :meth:`stated_with` adds it to a stated error.

    >>> found = ReadableShare(share=0.951, bound=0.02, left_out=0.065, confidence=0.95,
    ...                unit="patient", rows=True, guarantee=Guarantee(epsilon=0.05, delta=0.0))
    >>> print(found)
    About 95% (at most 2 points off, 95% confidence) of each patient's rows could be read, on
    average.
    >>> found.dropped_at_most
    "up to 6.5% of each patient's rows, on average (95% confidence)"
    """

    share: float
    bound: float
    left_out: float
    confidence: float
    unit: str
    rows: bool
    guarantee: Guarantee
    listed: bool = False
    users: float | None = None
    people: float | None = None
    dropped: float | None = None
    row_cap: float | None = None
    moves: Mapping[str, float] = field(default_factory=dict)

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
        if self.dropped is not None and self.row_cap is not None:
            rows = f"up to {figure(math.ceil(self.dropped))} rows"
            said += f"; {rows}, counting at most {figure(self.row_cap)} of each {self.unit}"
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
        elif self.share + self.bound >= 1.0:
            said += (
                " That is no sign of dropped rows. (This count is less exact than the answer: "
                f"{float(SHARE):.0%} of epsilon pays for it.)"
            )
        return said

    def stated_with(self, bound: float, confidence: float) -> tuple[float, float] | None:
        """Return the error including dropped rows, and its confidence; None if there is no bound.

        The stated error and the count may both fail, so the two failure probabilities add up.

        >>> found = ReadableShare(share=0.7, bound=0.05, left_out=0.34, confidence=0.95,
        ...                unit="patient", rows=True, guarantee=Guarantee(epsilon=0.05, delta=0.0),
        ...                moves={"age": 42.0})
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
            "rows_of_a_person_counted_at_most": self.row_cap,
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
    >>> counts.shares().X.ravel().tolist(), counts.losses().X.ravel().tolist()
    ([1.0, 0.25], [0.0, 1.0])
    >>> counts.dropped(2.0).X.ravel().tolist()
    [0.0, 2.0]
    """

    rows: NDArray[np.int64]
    readable: NDArray[np.int64]
    keys: NDArray[np.uint64]
    unit: str

    def shares(self) -> UserData:
        """Return one row per user: the share of their rows that could be read.

        It is a function of that user's rows alone: a ratio of two counts.
        """
        return self._users(self.readable / np.maximum(self.rows, 1))

    def losses(self) -> UserData:
        """Return one row per user: 1 for one who lost a row, 0 for one who did not."""
        return self._users(np.where(self.readable < self.rows, 1.0, 0.0))

    def dropped(self, cap: float) -> UserData:
        """Return one row per user: how many of their rows were dropped, at most ``cap``."""
        return self._users(np.minimum(self.rows - self.readable, cap))

    def _users(self, values: NDArray[np.float64]) -> UserData:
        # A user whose rows all lack an id does not exist; everybody else has at least one row.
        each = np.arange(len(values) + 1)
        column = np.ascontiguousarray(values[:, None], dtype=np.float64)
        return UserData(column, offsets=each, unit=self.unit).with_keys(self.keys)


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


@dataclass(frozen=True)
class _OwnNumber:
    """The number that a user holds; in two dimensions, and what it is short of 1."""

    bound: Bound
    batched: ClassVar[bool] = False

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        """Return one row a user."""
        own = users.user_means()[:, :1]
        return np.hstack([own, 1.0 - own]) if self.bound.dimension == 2 else own


@dataclass(frozen=True, kw_only=True)
class _Average:
    """An average over users of numbers from 0 to 1: its estimate and what errors do not exceed.

    ``bound`` holds on both sides; ``least`` and ``most`` on one, and so does ``missing_users``, a
    limit of how much the numbers of all users are short of 1. Each holds with ``CONFIDENCE``.
    """

    value: float
    bound: float
    least: float
    most: float
    missing_users: float

    @classmethod
    def release(cls, numbers: Crowd, account: Account) -> _Average:
        r"""Spend all of ``account`` on an average of one number from 0 to 1 a user.

        Under replacement the number of users is public, and one sum is released. Under add/remove
        the numbers and their differences to 1 are: who joins moves both together by 1, so each has
        noise of scale :math:`1/\varepsilon`. Noise of at most t in either of them moves the
        average by at most t over their sum, because both limits of it have the same denominator.
        """
        people = People(numbers, account.relation, among=account)
        public = account.relation is Relation.REPLACE
        inside = Interval(0.0, 1.0) if public else Ball(1.0, dimension=2, norm=1)
        mechanism = _laplace(inside, people, account)
        totals = people.total(_OwnNumber(inside), mechanism.grid)
        count = float(people.n_users) if public else 0.0
        found = mechanism.release(totals, count=count, account=account).tolist()
        n_users = max(1.0, count if public else math.fsum(found))
        value, one_side = found[0] / n_users, mechanism.error_bound(_on_one_side(len(found)))
        # A single total, of which a single draw of noise may be too far off.
        missing = n_users - found[0] if public else found[1]
        alone = laplace_quantile(mechanism.scale, _on_one_side(1)) * mechanism.grid.step
        return cls(
            value=value,
            bound=mechanism.error_bound(1.0 - CONFIDENCE) / n_users,
            least=value - one_side / n_users,
            most=value + one_side / n_users,
            missing_users=max(0.0, missing + alone),
        )


def _on_one_side(dimension: int) -> float:
    """Return how often symmetric noise may exceed a bound that has to hold on one side only.

    >>> _on_one_side(1), round(_on_one_side(2), 4)
    (0.1, 0.0987)
    """
    each = 1.0 - math.pow(CONFIDENCE, 1.0 / dimension)
    return round(1.0 - math.pow(1.0 - 2.0 * each, dimension), 12)


def _laplace(bound: Bound, people: People, account: Account) -> LaplaceSum:
    """Return the mechanism that spends all of ``account`` on a sum of bounded numbers."""
    epsilon, relation = account.left, account.relation
    noise = bound.change(relation)[0] / float(epsilon)
    grid = fitting_grid(bound, n_users=people.size_bound, relation=relation, noise=noise)
    return LaplaceSum(grid=grid, epsilon=epsilon, relation=relation)


def _dropped_rows(counted: RowCounts, cap: float, account: Account) -> float:
    """Spend all of ``account`` on an upper limit of the number of dropped rows."""
    people = People(counted.dropped(cap), account.relation, among=account)
    # Zero rows are the centre, so that nobody needs to know how many people there are.
    inside = Interval(0.0, cap, centre=0.0)
    mechanism = _laplace(inside, people, account)
    totals = people.total(_OwnNumber(inside), mechanism.grid)
    found = mechanism.release(totals, count=0.0, account=account)
    return max(0.0, float(found[0]) + mechanism.error_bound(_on_one_side(1)))


def release_readable_share(
    counted: RowCounts | Crowd,
    account: SharedAccount,
    *,
    epsilon: float,
    weighing: Weighing = Weighing.SHARE,
    row_cap: float | None = None,
    listed: bool = False,
) -> ReadableShare:
    """Release how much was dropped, in the numbers that ``weighing`` needs.

    The cost is taken from the account of the fit. For a crowd only the share of users with a row is
    released. ``row_cap`` is how many dropped rows of one person count, if rows are counted.
    ``listed`` says that a row must also have a listed key.
    """
    in_rows = isinstance(counted, RowCounts)
    second = weighing is Weighing.PEOPLE or (weighing is Weighing.ROWS and row_cap is not None)
    both, relation = in_rows and second, account.relation
    parts = [
        account.lend(epsilon=exact(epsilon) / (1 + both), relation=relation)
        for _ in range(1 + both)
    ]
    numbers = counted.shares() if isinstance(counted, RowCounts) else counted
    share = _Average.release(numbers, account=parts[0])
    people = dropped = None
    if both and isinstance(counted, RowCounts):
        if weighing is Weighing.PEOPLE:
            people = min(1.0, max(0.0, _Average.release(counted.losses(), account=parts[1]).most))
        elif row_cap is not None:
            dropped = _dropped_rows(counted, row_cap, parts[1])
    left_out = min(1.0, max(0.0, 1.0 - share.least))
    return ReadableShare(
        share=share.value,
        bound=share.bound,
        left_out=left_out,
        confidence=CONFIDENCE,
        unit=counted.unit,
        rows=in_rows,
        listed=listed,
        users=share.missing_users,
        people=people,
        dropped=dropped,
        row_cap=None if dropped is None else row_cap,
        guarantee=Guarantee(
            epsilon=epsilon,
            unit=counted.unit,
            relation=relation,
            numerics=ambient_noise().numerics,
            events=tuple(part.event for part in parts),
        ),
    )
