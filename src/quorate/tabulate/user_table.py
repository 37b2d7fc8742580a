"""Group-bys that protect whole people: counts, people, sums, means and medians of every group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from quorate import _validate
from quorate._validate import exact
from quorate.accounting.account import Account
from quorate.accounting.ledger import Ledger
from quorate.estimators import Route
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.public_randomness import RandomState
from quorate.tabulate.base import UserStatistic, shape_of, shares, stated
from quorate.tabulate.blocks import Block, presence_of, release_block
from quorate.tabulate.conditions import as_conditions
from quorate.tabulate.gathering.reading import (
    Reading,
    Records,
    checked_names,
    order_of,
    schema_of,
)
from quorate.tabulate.keys import as_keys, popular_keys
from quorate.tabulate.looks import Shape, group_weights, number_of_users, pure_part
from quorate.tabulate.medians import LOOKS, group_medians
from quorate.tabulate.released import Estimates, TableError, arrow_table, means, plain, totals
from quorate.tabulate.requests import TableRequest, as_request
from quorate.users.crowd import Crowd

__all__ = ["UserTable", "table_route"]

Ranges = dict[str, tuple[float, float]]

_KEY_SHARE = Fraction(1, 5)
# In so many groups a person counts fully in medians where nobody said or looked.
_FEW_GROUPS = 4


class UserTable(UserStatistic):
    r"""A table of statistics by group, hiding any one person's whole record.

    A person may be in many groups, often in some and rarely in others. What they add to all cells
    is one vector; it is pulled in to one length, and one noisy sum of these vectors is released.
    Records and values share it: somebody with too much is scaled down as a whole, which leaves
    means almost as they are. The length, the size of the groups and the usual size of the values
    are found privately, for a few percent of the budget.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, pure if ``delta`` = 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and the names and types of the columns; under ``Relation.REPLACE`` the
        number of users; released: ``table_``, ``keys_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : A user's cells are a function of that user's records, of public and of released numbers,
        and :class:`~quorate.tabulate.lengths.Lengths` bounds them across all groups in whole steps;
        so records and people are each a :class:`~quorate.mechanisms.sums.GaussianSum` or
        :class:`~quorate.mechanisms.laplace.LaplaceSum`. What is looked at before (numbers of
        people, portions of groups, quantiles over people, a count at public lengths) is a mechanism
        of :mod:`quorate.tabulate.looks` with one number or one vector of length 1 a user. Medians
        are noisy sums of votes at released thresholds (:mod:`quorate.tabulate.medians`). Popular
        keys: one vote a user (:class:`~quorate.mechanisms.choices.stable_choice.StableHistogram`).
        All are drawn from one account; ratios and errors are computed afterwards.

    Utility
    -------
    Every cell comes with its standard error and with a bound that holds with probability 95 %, for
    the table of everybody's bounded contributions; ``error_`` says about how many people had more.

    Complexity
    ----------
    Time :math:`O(N)` for N records, one pass; then a few passes over the cells that people hold.

    Parameters
    ----------
    epsilon : float
    by : str or list of str, optional
        Columns of the key; None makes one row of all records.
    keys : list, dict or "popular"
        Public labels of the groups: a list, or for several columns a dictionary of lists, of which
        all combinations are rows. ``"popular"`` finds the keys that many people hold, for a fifth
        of the budget and half of ``delta``, which must be positive.
    statistics : dict
        From names of the table's columns to ``"count"`` (of records), ``"users"`` (who hold one),
        ``"sum"``, ``"mean"`` (over records) or ``"median"`` (over people, of their own medians in a
        group). The name is the column that is added up; give a pair such as ``("price", "mean")``
        for another name.
    bounds : dict, pair or float
        Public ranges of the values, by column; values outside count as the nearest end.
    delta : float, default=0.0
    algorithm : {"auto", "laplace", "gaussian"}, default="auto"
        Which noise; ``"auto"`` takes Gaussian noise where ``delta`` allows it and there are more
        than a few cells.
    cap : float or "auto", default="auto"
        How long a person's records may be: the root of the sum of squares (with Laplace noise
        the sum) of their numbers of records in the groups.
    groups : float or "auto", default="auto"
        In how many groups a person counts fully where people are counted, and in medians.
    where : dict, optional
        Which records the table is about; see :mod:`quorate.tabulate.conditions`.
    missing : "drop" or float, default="drop"
        A record without one of the values is dropped, or this number stands in for it.
    relation, ledger, data_name, random_state
        As everywhere; ``random_state`` seeds the public choice of records that vote for keys.

    Attributes
    ----------
    table_ : pyarrow.Table
        One row a group; for each statistic three columns: ``name``, ``name_error`` (standard error)
        and ``name_bound``. ``table_.to_pandas()`` and ``polars.from_arrow(table_)`` are frames.
    keys_ : tuple
        The groups, as they stand in the table.
    error_ : TableError
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Amin, Kulesza, Munoz, Vassilvitskii. Bounding user contributions: a bias-variance
       trade-off in differential privacy. ICML 2019.
    .. [2] Wilson et al. Differentially private SQL with bounded user contribution. PETS 2020. (Caps
       on groups and on each of them, which one length replaces here.)

    Examples
    --------
    >>> import pyarrow as pa
    >>> rng = np.random.default_rng(0)
    >>> visits = pa.table(
    ...     {
    ...         "patient": rng.integers(0, 5000, 40_000),
    ...         "clinic": rng.choice(["north", "south"], 40_000, p=[0.7, 0.3]),
    ...         "wait": rng.gamma(2.0, 10.0, 40_000),
    ...     }
    ... )
    >>> table = UserTable(
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ...     by="clinic",
    ...     keys=["north", "south"],
    ...     statistics={"visits": "count", "wait": "mean"},
    ...     bounds={"wait": (0, 200)},
    ... ).fit(visits, users="patient")
    >>> north = table.table_.to_pylist()[0]
    >>> north["clinic"], abs(north["visits"] - 28_000) < 2000, abs(north["wait"] - 20) < 2
    ('north', True, True)
    >>> table.guarantee_.epsilon
    1.0
    """

    table_: Any
    keys_: tuple[tuple[Any, ...], ...]
    error_: TableError

    def __init__(  # noqa: PLR0913 - the common keywords and those of a table
        self,
        epsilon: float = 1.0,
        *,
        by: str | Sequence[str] | None = None,
        keys: Any = None,
        statistics: Mapping[str, Any] | None = None,
        bounds: Any = None,
        delta: float = 0.0,
        algorithm: str = "auto",
        cap: float | str = "auto",
        groups: float | str = "auto",
        where: Mapping[str, Any] | None = None,
        missing: str | float = "drop",
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.by = by
        self.keys = keys
        self.statistics = statistics
        self.bounds = bounds
        self.delta = delta
        self.algorithm = algorithm
        self.cap = cap
        self.groups = groups
        self.where = where
        self.missing = missing
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None, order: Any = None) -> UserTable:
        """Release the table of ``X``: a frame with ``users``, or a crowd.

        Parameters
        ----------
        X : frame with named columns, or crowd with named features
        y : ignored
        users : array of shape (records,) or str
            Whose record each row is, or the name of the column that says so.
        order : array of shape (records,) or str, optional
            For ``keys="popular"``: numbers, dates or times, or the name of their column. Everybody
            votes for the key of their first record, and not of any. A crowd has its own.
        """
        request, reading, ranges = self._checked()
        reading.check(schema_of(X))
        if order is not None:
            if reading.keys is not None:
                raise ParameterError(
                    "order= says which record votes where keys='popular'; all records count here."
                )
            order = order_of(X, order)
        reserve = exact(self.delta) / 2 if reading.keys is None else Fraction(0)
        account = self._charge(X, None, users, reserve=reserve)
        records = self._read(X, users, reading, order)
        if reading.keys is None:
            records = self._popular(records, account, reserve)
        columns, error, route = self._released(records, request, ranges, account)
        self.guarantee_ = self._promise(account)
        self.keys_ = records.keys
        self.table_ = arrow_table(reading.by, records.keys, columns)
        self.error_ = error
        self.algorithm_ = route
        return self

    def _checked(self) -> tuple[TableRequest, Reading, Ranges]:
        """Refuse what parameters show to be wrong, before the charge."""
        self._check_common()
        request = as_request(self.statistics)
        names = [name for r in request.requests for name in _columns_of(r.name)]
        by = checked_names(self.by, reserved=names)
        stated(self.cap, name="cap"), stated(self.groups, name="groups")
        ranges = request.ranges(self.bounds)
        keys: tuple[tuple[Any, ...], ...] | None = None
        if not by:
            if self.keys is not None:
                raise ParameterError("Expected by=, the columns that keys= is about.")
            keys = ()
        elif isinstance(self.keys, str):
            _validate.one_of(("popular",), keys=self.keys)
            if self.delta == 0:
                raise ParameterError(
                    "keys='popular' needs delta > 0: without it keys that nobody holds must be "
                    "possible. Pass delta=, such as 1e-6, or a public list of keys."
                )
        else:
            keys = as_keys(self.keys, by)
        reading = Reading(
            by=by,
            keys=keys,
            values=request.values,
            where=as_conditions(self.where),
            missing=self.missing,
        )
        return request, reading, ranges

    def _popular(self, records: Records, account: Account, reserve: Fraction) -> Records:
        keys = popular_keys(
            records.crowd,
            records.by,
            records.labels,
            epsilon=pure_part(account, _KEY_SHARE),
            delta=reserve,
            account=account,
            random_state=self.random_state,
        )
        return records.with_keys(keys)

    def _released(
        self, records: Records, request: TableRequest, ranges: Ranges, account: Account
    ) -> tuple[dict[str, Estimates], TableError, Route]:
        """Look, release the blocks, and compute every column of the table from them."""
        if not records.keys:
            nothing = Estimates(values=np.empty(0), errors=np.empty(0), bounds=np.empty(0))
            reason = "no key was popular, so there is no group."
            found = {r.name: nothing for r in request.requests}
            return found, TableError(standard_error={}), Route(name="none", reason=reason)
        counted, waiting, added, middle = self._cells_in_turn(
            records, request.added_up, request.medians, ranges
        )
        size, block = len(records.keys), bool(request.counted or added)
        coordinates = size * (request.counted + len(added) + request.people)
        rest, norm = self._purse(account, max(coordinates, LOOKS**2 * len(middle)))
        n_users = number_of_users(counted, rest)
        cap, groups = stated(self.cap, name="cap"), stated(self.groups, name="groups")
        weights = np.ones(size)
        if (block and cap is None) or (not block and request.people and groups is None):
            weights = group_weights(
                counted,
                groups=size,
                norm=norm,
                presence=not block,
                account=rest,
                n_users=n_users,
            )
        rest, crowd = rest.rest(), waiting()
        sizes = [request.counted + len(added), int(request.people), 2 * len(middle)]
        # What is all that is left needs no account of its own.
        parts = [rest.part(share) if 0 < share < 1 else rest for share in shares(sizes)]
        cells = people = None
        if block:
            cells = self._records(crowd, added, request, weights, parts[0], n_users, cap, norm)
        if request.people:
            even = weights if groups is None else np.ones(size)
            people = self._people(crowd, even, parts[1], n_users, groups, norm)
        found = {}
        for place, column in enumerate(middle):
            reach = groups if groups is not None else _usual_groups(people, size, norm)
            found[request.medians[place]] = group_medians(
                crowd,
                column,
                2 + len(added) + place,
                groups=size,
                length=min(reach, float(size)) ** (1 / norm),
                norm=norm,
                account=parts[2].part(Fraction(1, len(middle))),
            )
        how = "stated" if cap is not None else "found privately"
        made = {r.name: _estimates(r, request, cells, people, found) for r in request.requests}
        return made, _error(made, cells, people), table_route(norm, how)

    def _records(
        self,
        crowd: Crowd,
        added: Any,
        request: TableRequest,
        weights: Any,
        account: Account,
        n_users: float,
        cap: float | None,
        norm: int,
    ) -> Block:
        shape = shape_of(
            crowd,
            added,
            weights=weights,
            counted=request.counted,
            norm=norm,
            account=account,
            n_users=n_users,
        )
        length = None if cap is None else cap * float(shape.coordinates) ** (1 / norm)
        return release_block(crowd, shape, account=account, n_users=n_users, length=length)

    def _people(
        self,
        crowd: Crowd,
        weights: Any,
        account: Account,
        n_users: float,
        groups: float | None,
        norm: int,
    ) -> Block:
        shape = Shape(weights=weights, norm=norm)
        length = None if groups is None else groups ** (1 / norm)
        if len(weights) == 1:
            length = 1.0
        return release_block(
            presence_of(crowd), shape, account=account, n_users=n_users, length=length
        )


def _usual_groups(people: Block | None, size: int, norm: int) -> float:
    """Return in how many groups a person counts in a median if nobody said so."""
    if people is None:
        return float(min(size, _FEW_GROUPS))
    return max(1.0, people.length) ** norm


def table_route(norm: int, how: str) -> Route:
    """Return which noise a table has, and why.

    >>> table_route(2, "stated").name
    'gaussian'
    """
    length = "sum" if norm == 1 else "root of the sum of squares"
    return Route(
        name="laplace" if norm == 1 else "gaussian",
        reason=f"one vector a person over all groups, its length (the {length}) {how}.",
    )


def _columns_of(name: str) -> tuple[str, str, str]:
    return name, f"{name}_error", f"{name}_bound"


def _estimates(
    request: Any,
    table: TableRequest,
    cells: Block | None,
    people: Block | None,
    medians: dict[str, Estimates],
) -> Estimates:
    if request.statistic == "users" and people is not None and people.counts is not None:
        return plain(people.counts, people.count_errors, gaussian=people.gaussian)
    if request.statistic == "median":
        return medians[request.column]
    if cells is None:
        raise ParameterError("Expected records to be counted where a statistic needs them.")
    if request.statistic == "count" and cells.counts is not None:
        return plain(cells.counts, cells.count_errors, gaussian=cells.gaussian)
    place = table.added_up.index(request.column)
    return totals(cells, place) if request.statistic == "sum" else means(cells, place)


def _error(made: dict[str, Estimates], cells: Block | None, people: Block | None) -> TableError:
    blocks = [block for block in (cells, people) if block is not None]
    return TableError(
        standard_error={
            name: float(np.sqrt(np.mean(found.errors**2))) for name, found in made.items()
        },
        length=None if cells is None else cells.length,
        people_length=None if people is None else people.length,
        people_cut=max((block.cut for block in blocks), default=0.0),
    )
