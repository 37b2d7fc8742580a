"""What estimators of everyday statistics share: columns and ids by name, and the order of a fit."""

from __future__ import annotations

import numbers
from fractions import Fraction
from typing import Any

import numpy as np

from quorate import _validate
from quorate._validate import is_frame
from quorate.accounting.account import Account
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError, SchemaError
from quorate.guarantees import Guarantee
from quorate.tabulate.gathering.cells import ToCells, ValueColumn
from quorate.tabulate.gathering.reading import Reading, Records, ids_of, names_of, with_names
from quorate.tabulate.looks import Shape, noise_norm
from quorate.tabulate.usual import usual_units, usual_values
from quorate.users.crowd import Crowd
from quorate.users.frames import open_frame
from quorate.users.tables import check_ids, without_rows

__all__ = ["UserStatistic", "shape_of", "stated"]


def stated(cap: Any, *, name: str) -> float | None:
    """Return a stated cap, or None if it is to be found; refuse all else.

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


def shape_of(
    crowd: Crowd,
    columns: tuple[ValueColumn, ...],
    *,
    weights: Any,
    counted: bool,
    norm: int,
    account: Account,
    n_users: float,
) -> Shape:
    """Look for usual values and spreads, and return the shape of the vectors of a block.

    Without a count values are added up as they are: their centre is 0.

    >>> from quorate.users.data import UserData
    >>> nobody = UserData(np.empty((0, 2)), offsets=[0])
    >>> account = Account.open(epsilon=1.0)
    >>> shape_of(
    ...     nobody, (), weights=np.ones(3), counted=True, norm=1, account=account, n_users=1.0
    ... ).coordinates
    1
    """
    centres: tuple[float, ...] = (0.0,) * len(columns)
    if counted:
        centres = usual_values(crowd, columns, account=account, n_users=n_users)
    units = usual_units(
        crowd,
        columns,
        centres,
        weights=weights,
        counted=counted,
        norm=norm,
        account=account,
        n_users=n_users,
    )
    return Shape(
        columns=columns,
        centres=centres,
        units=units,
        weights=weights,
        counted=counted,
        norm=norm,
    )


class UserStatistic(UserEstimator):
    """Base of counts, sums, means and tables: records are columns with names.

    ``fit(X, users=...)`` takes a frame and the ids of its rows, or the name of the column that
    holds them; or a crowd with names of features, wherever it lies.
    """

    _takes_crowds = True
    _reads_labels = True
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
        """Return the records under their users; sets which columns were read."""
        named = with_names(X)
        names = [name for name in names_of(named) if not _is_same(name, users)]
        told = is_frame(X) or (isinstance(X, Crowd) and X.feature_names is not None)

        def under_users(rows: Any, ids: Any = None) -> Crowd:
            crowd = self._crowd(rows, None, ids, order=order)
            self.n_features_in_ = len(names)
            if told:
                self.feature_names_in_ = np.asarray(names, dtype=object)
            return crowd

        if isinstance(X, Crowd):
            return reading.read(under_users(X), under_users)
        return reading.read(named, under_users, ids_of(X, users))

    @staticmethod
    def _cells(
        records: Records, sums: tuple[str, ...], medians: tuple[str, ...], ranges: Any
    ) -> Any:
        """Return the crowd of cells and the columns of its sums and medians."""
        change = _to_cells(records, sums, medians, ranges)
        return records.cells(change), change.sums, change.medians

    @staticmethod
    def _cells_in_turn(
        records: Records, sums: tuple[str, ...], medians: tuple[str, ...], ranges: Any
    ) -> Any:
        """Return cells with their counts, what waits for all of them, and the columns."""
        change = _to_cells(records, sums, medians, ranges)
        return *records.cells_in_turn(change), change.sums, change.medians

    def _purse(self, account: Account, coordinates: int) -> tuple[Account, int]:
        """Return the account that pays for sums of so many coordinates, and the norm it is about.

        L1 for Laplace noise, also where ``delta`` would allow Gaussian noise but there are few
        coordinates; L2 for Gaussian noise.
        """
        norm = noise_norm(account, coordinates, self.algorithm)
        if norm == 1:
            return account.part_of(epsilon=account.left), norm
        return account if account.square_left == account.square else account.rest(), norm

    def _check_common(self) -> None:
        """Refuse what parameters show to be wrong, before the charge."""
        _validate.usual_epsilon(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        _validate.one_of(("auto", "laplace", "gaussian"), algorithm=self.algorithm)
        if self.algorithm == "gaussian" and self.delta == 0:
            raise ParameterError("algorithm='gaussian' needs delta > 0; use 'laplace'.")


def _to_cells(
    records: Records, sums: tuple[str, ...], medians: tuple[str, ...], ranges: Any
) -> ToCells:
    added = tuple(ValueColumn(records.values[name], *ranges[name]) for name in sums)
    middle = tuple(ValueColumn(records.values[name], *ranges[name]) for name in medians)
    return ToCells(records.numbers, len(records.keys), added, middle)


def _is_same(name: str, users: Any) -> bool:
    return isinstance(users, str) and users == name


def shares(sizes: list[int]) -> list[Fraction]:
    """Return parts of a budget in these proportions.

    >>> shares([1, 3])
    [Fraction(1, 4), Fraction(3, 4)]
    """
    return [Fraction(size, sum(sizes)) for size in sizes]
