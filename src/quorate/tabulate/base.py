"""What these estimators share: columns and ids by name, and the order of a fit."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from quorate import _validate
from quorate._validate import is_frame
from quorate.core.guarantees import Guarantee
from quorate.core.people import People
from quorate.data.by_group.person_cells import ToCells, ValueColumn
from quorate.data.by_group.reading import Reading, Records, names_of, read_records
from quorate.data.frames import open_frame
from quorate.data.tables import check_ids, without_rows
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError, SchemaError

__all__ = ["UserStatistic", "stated"]


def stated(cap: Any, *, name: str) -> float | None:
    """Return a stated cap, or None if it is to be found privately; refuse anything else.

    >>> stated("auto", name="cap") is None, stated(20, name="cap")
    (True, 20.0)
    """
    if isinstance(cap, str):
        _validate.one_of(("auto",), **{name: cap})
        return None
    _validate.positive(**{name: cap})
    if not isinstance(cap, numbers.Real) or not 2.0**-30 <= float(cap) <= 2.0**60:
        raise ParameterError(f"Expected {name} between 2^-30 and 2^60, got {name}={cap!r}.")
    return float(cap)


class UserStatistic(UserEstimator):
    """Base of counts, sums, means and tables; their records have named columns.

    ``fit(X, users=...)`` takes a table and either the ids of its rows or the name of the id column.
    It also takes a crowd with named features.
    """

    _takes_crowds = True
    _reads_labels = True
    _reads_users_by_name = True
    _single_feature = True

    algorithm: str = "auto"

    guarantee_: Guarantee
    algorithm_: Route

    def _check_use(self, X: Any, y: Any, users: Any, *, target: bool) -> None:
        if not (isinstance(users, str) and is_frame(X)):
            super()._check_use(X, y, users, target=target)
            return
        if users not in names_of(X):
            raise SchemaError(f"Expected a column {users!r}, the table has {sorted(names_of(X))}.")
        empty = without_rows(X)
        if empty is not None:
            check_ids(open_frame(empty, [users]).column(0))

    def _read(self, X: Any, users: Any, reading: Reading, order: Any = None) -> Records:
        """Return the records grouped by user; set which columns were read."""

        def under_users(rows: Any, ids: Any, names: tuple[str, ...], told: bool) -> Any:  # noqa: FBT001
            crowd = self._crowd(rows, None, ids, order=order)
            self.n_features_in_ = len(names)
            if told:
                self.feature_names_in_ = np.asarray(names, dtype=object)
            return crowd

        return read_records(reading, X, users, under_users)

    def _cells(
        self, records: Records, sums: tuple[str, ...], medians: tuple[str, ...], ranges: Any
    ) -> tuple[People, Callable[[], People], tuple[ValueColumn, ...], tuple[ValueColumn, ...]]:
        """Return people with counts per cell, a function that adds the sums, and the columns."""
        added, middle = (
            tuple(ValueColumn(records.values[name], *ranges[name]) for name in names)
            for names in (sums, medians)
        )
        change = ToCells(records.numbers, len(records.keys), added, middle)
        counted, waiting = records.cells_in_turn(change)
        people = self._people_of(counted)
        return people, lambda: self._people_of(waiting()), added, middle

    def _check_common(self) -> None:
        """Refuse invalid parameters, before the charge."""
        _validate.useful_epsilon(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        _validate.one_of(("auto", "laplace", "gaussian"), algorithm=self.algorithm)
        if self.algorithm == "gaussian" and self.delta == 0:
            raise ParameterError("algorithm='gaussian' needs delta > 0; use 'laplace'.")
