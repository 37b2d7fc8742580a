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
from quorate.core.people import People
from quorate.estimators import Route
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.public_randomness import RandomState
from quorate.tabulate.base import UserStatistic, stated
from quorate.tabulate.medians import group_medians
from quorate.tabulate.popular_keys import popular_keys
from quorate.tabulate.procedure import Procedure
from quorate.tabulate.released import (
    Estimates,
    Released,
    TableError,
    arrow_table,
    means,
    totals,
)
from quorate.tabulate.requests import Request, TableRequest, as_request
from quorate.users.by_group.conditions import as_conditions
from quorate.users.by_group.keys import as_keys
from quorate.users.by_group.reading import (
    Reading,
    Records,
    checked_names,
    order_of,
    schema_of,
)

__all__ = ["UserTable", "table_route"]

Ranges = dict[str, tuple[float, float]]

# Part of epsilon for popular keys.
_KEY_SHARE = Fraction(1, 5)


class UserTable(UserStatistic):
    r"""A table of statistics by group, hiding any one person's whole record.

    A user may be in many groups, often in some and rarely in others. The contribution of a user to
    all cells of one statistic (records, users, sums of a column) is one vector. Its norm is clipped
    to a *cap*, and the noisy sum of these vectors is released. Caps and the typical size of the
    values are found privately; every stated error includes what the caps cut. See
    :mod:`quorate.tabulate.procedure`.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, pure if ``delta`` = 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and the names and types of the columns; under ``Relation.REPLACE`` the
        number of users; released: ``table_``, ``keys_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : A user's cells are a function of that user's records, of public and of released numbers.
        :meth:`~quorate.core.people.People.cell_totals` bounds each part of them (records, people,
        sums) by one length across all groups, in whole steps; all parts together are one
        :class:`~quorate.mechanisms.sums.GaussianSum` or
        :class:`~quorate.mechanisms.blocks.BlockSum`. What is looked at before is a number of
        people, a rough median of one number per user
        (:class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`) and tallies of one length a
        user (:class:`~quorate.mechanisms.noisy_tally.NoisyTally`), from which caps follow. Medians
        are noisy sums of votes at released thresholds (:mod:`quorate.tabulate.medians`). Popular
        keys: one vote per user
        (:class:`~quorate.mechanisms.choices.stable_choice.StableHistogram`). All are drawn from one
        account, which reads off the seals how far one user moves them; ratios, errors and bounds
        are computed afterwards.

    Utility
    -------
    Every cell comes with a standard error and with a bound that holds with probability 95 %. The
    bound includes noise, what caps cut as far as tallies show it, and a tail beyond them. It is
    infinite where too few people answered to see what caps cut: state ``cap=`` then.

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
        of ``epsilon`` and half of ``delta``, which must be positive; the last row, whose key is
        null, is about all other keys together.
    statistics : dict
        From names of the table's columns to ``"count"`` (of records), ``"users"`` (who hold one),
        ``"sum"``, ``"mean"`` (over records) or ``"median"`` (over people, of their own medians in a
        group). The name is the column that is added up; give a pair such as ``("price", "mean")``
        for another name.
    bounds : dict, pair or float
        Public ranges of the values, by column; values outside count as the nearest end.
    delta : float, default=0.0
    algorithm : {"auto", "laplace", "gaussian"}, default="auto"
        Which noise; ``"auto"`` takes Gaussian noise where ``delta`` allows it and people are in
        more than a few groups.
    cap : float or "auto", default="auto"
        How long a person's records may be: the root of the sum of squares (with Laplace noise
        the sum) of their numbers of records in the groups. A stated cap is taken as a fact: what it
        cuts is in no bound.
    groups : float or "auto", default="auto"
        In how many groups a person counts fully where people are counted, and in medians; taken as
        a fact, too.
    where : dict, optional
        Which records the table is about; see :mod:`quorate.users.by_group.conditions`.
    missing : "drop" or float, default="drop"
        A record without one of the values is dropped, or this number stands in for it.
    relation : Relation, default=Relation.ADD_REMOVE
        As in other tools for tables: one person may join or leave.
    ledger, data_name, random_state
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
        relation: Relation = Relation.ADD_REMOVE,
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
        reserve, aside, certain = Fraction(0), Fraction(0), None
        if reading.keys is None:
            reserve, aside = exact(self.delta) / 2, _KEY_SHARE * exact(self.epsilon)
        account = self._charge(X, None, users, reserve=reserve, aside=aside)
        records = self._read(X, users, reading, order)
        if reading.keys is None:
            records, certain = self._popular(records, account, reserve)
        columns, caps, covers, route = self._released(records, request, ranges, account)
        self.guarantee_ = self._promise(account)
        self.keys_ = records.keys
        self.table_ = arrow_table(reading.by, records.keys, columns)
        self.error_ = TableError(
            standard_error={
                name: float(np.sqrt(np.mean(found.errors**2))) for name, found in columns.items()
            },
            caps=caps,
            smallest_key=certain,
            covers=covers,
        )
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

    def _popular(
        self, records: Records, account: Account, reserve: Fraction
    ) -> tuple[Records, int]:
        keys, certain = popular_keys(
            People(records.crowd, self.relation),
            records.by,
            records.labels,
            epsilon=account.aside,
            delta=reserve,
            account=account,
            random_state=self.random_state,
        )
        return records.with_keys(keys, others=True), certain

    def _released(
        self, records: Records, request: TableRequest, ranges: Ranges, account: Account
    ) -> tuple[dict[str, Estimates], dict[str, float], str, Route]:
        """Run the procedure, and compute every column of the table from what it released."""
        people, waiting, added, middle = self._cells(
            records, request.added_up, request.medians, ranges
        )
        size, held = len(records.keys), stated(self.groups, name="groups")
        cap = stated(self.cap, name="cap")
        parts = request.counted + len(added) + request.people
        # A median searches: it counts as two parts.
        share = Fraction(parts, parts + 2 * len(middle))
        procedure = Procedure(
            people,
            account.part(share) if 0 < share < 1 else account,
            groups=size,
            columns=added,
            records=request.counted,
            count_people=request.people,
            caps={} if cap is None else {"rows": cap},
            held=held,
            algorithm=self.algorithm,
            several=bool(middle),
        )
        people = waiting()
        found = procedure.run(people) if parts else {}
        medians, norm = {}, procedure.norm
        rest = account.rest() if norm == 2 else account.part_of(epsilon=account.left)
        for place, column in enumerate(middle):
            medians[request.medians[place]] = group_medians(
                people,
                column,
                2 + len(added) + place,
                groups=size,
                length=procedure.held ** (1 / norm),
                norm=norm,
                account=rest.part(Fraction(1, len(middle))),
            )
        how = "found privately" if cap is None else "stated"
        made = {r.name: _estimates(r, request, found, medians) for r in request.requests}
        caps = {_said(name, request): each.cap for name, each in found.items()}
        caps |= {"groups": procedure.held} if request.people or middle else {}
        return made, caps, procedure.covers, table_route(norm, how)


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


def _said(name: str | int, request: TableRequest) -> str:
    if isinstance(name, int):
        return request.added_up[name]
    return "records" if name == "rows" else "groups"


def _estimates(
    request: Request,
    table: TableRequest,
    found: dict[str | int, Released],
    medians: dict[str, Estimates],
) -> Estimates:
    if request.statistic == "users":
        return found["people"]
    if request.statistic == "count":
        return found["rows"]
    column = str(request.column)
    if request.statistic == "median":
        return medians[column]
    sums = found[table.added_up.index(column)]
    if request.statistic == "mean":
        return means(sums, found["rows"])
    return totals(sums, found.get("rows"))
