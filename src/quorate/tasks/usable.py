"""How much of a table could be read: a private share, lest an answer be about nothing.

A CSV file declares no types, and a label may be spelt in another way than its class. What cannot be
read is missing by a public rule and never an error, because an error would tell of a value: columns
of "1,250" and "3.5.2021" would be answered as if nobody had brought anything. So a small part of
the budget goes into one more number: the share of people who hold a row that could be read. It is
the same wherever the table lies: rows that cannot be read are left where they are, so that nobody
but their person is there to be counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from quorate.accounting.rounding import exact, float_down
from quorate.files.table_files import Columns, TableFile
from quorate.guarantees import Guarantee, Relation
from quorate.means import UserMean
from quorate.users import UserData
from quorate.users.coding import Category
from quorate.users.crowd import Crowd

__all__ = [
    "SHARE",
    "HoldsReadable",
    "Usable",
    "needs_count",
    "release_usable",
    "split_epsilon",
]

SHARE = Fraction(1, 20)
"""Part of epsilon that is spent on the count."""

_LITTLE = 0.5
# Below this no part is taken: a count that says nothing would only cost.
_SMALLEST_EPSILON = 1e-3


@dataclass(frozen=True, kw_only=True)
class Usable:
    """The share of people who hold a row that could be read.

    >>> found = Usable(share=0.981, bound=0.02, confidence=0.95, unit="patient",
    ...                guarantee=Guarantee(epsilon=0.05, delta=0.0))
    >>> print(found)
    For about 98% (at most 2 points off, 95% confidence) of all (unit: patient) a row could be read.
    """

    share: float
    bound: float
    confidence: float
    unit: str
    guarantee: Guarantee

    @property
    def is_little(self) -> bool:
        """Whether what was released is less than half."""
        return self.share < _LITTLE

    def __str__(self) -> str:
        share = min(max(self.share, 0.0), 1.0)
        off = f"at most {100 * self.bound:.2g} points off, {self.confidence:.0%} confidence"
        said = f"For about {share:.0%} ({off}) of all (unit: {self.unit}) a row could be read."
        if self.is_little:
            said += (
                " That may be too little: are numbers written as 1250.5, days as 2020-12-31, and "
                "labels exactly as announced?"
            )
        return said

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "share": self.share,
            "bound": self.bound,
            "confidence": self.confidence,
            "of": "people who hold a row that could be read",
            "epsilon": self.guarantee.epsilon,
        }


def needs_count(table: TableFile, columns: Columns, epsilon: float) -> bool:
    """Tell whether the schema leaves open how much of a table can be read, and a count can say it.

    It does for a file without declared types, and for labels, categories and dates in text.
    """
    if not epsilon >= _SMALLEST_EPSILON:
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


@dataclass(frozen=True)
class HoldsReadable:
    """Turns users into a row each: 1 for one who holds a readable record, 0 for one who does not.

    Records whose numbers, days or label cannot be read are not there; one whose category is on no
    list has zeros only.

    Parameters
    ----------
    categories : tuple of (int, int)
        Where the zeros and ones of each category begin and end.

    Examples
    --------
    >>> people = UserData.from_arrays([[1.0], [float("nan")], [0.0]], users=[8, 9, 7])
    >>> HoldsReadable()(people).X.ravel().tolist()
    [1.0, 1.0, 0.0]
    >>> HoldsReadable(((0, 1),))(people).X.ravel().tolist()
    [0.0, 1.0, 0.0]
    """

    categories: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, columns: Columns) -> HoldsReadable:
        """Return it for columns as they are read."""
        places, start = [], 0
        for column in columns.coding.columns:
            if isinstance(column, Category):
                places.append((start, start + len(column.names)))
            start += len(column.names)
        return cls(tuple(places))

    def __call__(self, users: UserData) -> UserData:
        """Return the marks of the users of a part, under their keys."""
        readable = np.ones(users.n_records, dtype=np.bool_)
        for start, end in self.categories:
            readable &= users.X[:, start:end].sum(axis=1) > 0
        counts = np.bincount(users.user_index()[readable], minlength=users.n_users)
        held = (counts > 0).astype(np.float64)
        rows = UserData(held[:, None], offsets=np.arange(users.n_users + 1), unit=users.unit)
        return rows.with_keys(users.keys())


def release_usable(crowd: Crowd, *, epsilon: float, relation: Relation) -> Usable:
    """Release the mean of zeros and ones over people."""
    mean = UserMean(epsilon=epsilon, bounds=(0.0, 1.0), algorithm="clip", relation=relation)
    mean.fit(crowd)
    return Usable(
        share=float(mean.mean_[0]),
        bound=float(mean.error_.bound),
        confidence=float(mean.error_.confidence),
        unit=crowd.unit,
        guarantee=mean.guarantee_,
    )
