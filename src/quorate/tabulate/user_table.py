"""Private group-bys: counts, users, sums, means and quantiles of every group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from quorate import _validate
from quorate._validate import exact, is_frame
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState
from quorate.data.by_group.conditions import as_conditions
from quorate.data.by_group.joining import joined, joined_schema
from quorate.data.by_group.keys import as_keys, as_rows, key_rows
from quorate.data.by_group.person_cells import ToCells
from quorate.data.by_group.reading import Reading, Records, checked_names, order_of, schema_of
from quorate.data.frames import as_table
from quorate.estimators import Route
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.tabulate.base import UserStatistic, stated
from quorate.tabulate.hierarchies import Tree
from quorate.tabulate.largest_groups import largest_groups
from quorate.tabulate.popular_keys import popular_keys
from quorate.tabulate.procedure import Procedure
from quorate.tabulate.quantiles import group_quantiles
from quorate.tabulate.released import Estimates, Released, TableError, arrow_table, means, totals
from quorate.tabulate.requests import Request, TableRequest, as_request

__all__ = ["UserTable", "table_route"]

Ranges = dict[str, tuple[float, float]]

# Parts of epsilon for popular keys, and for the choice of the largest groups.
_KEY_SHARE, _CHOICE_SHARE = Fraction(1, 5), Fraction(1, 5)
_MOST_RECORDS = 2.0**20


class UserTable(UserStatistic):
    r"""A table of statistics by group, hiding any one person's whole record.

    A user may be in many groups. The contribution of a user to all cells of one statistic (records,
    users, sums of a column) is one vector. Its norm is clipped to a *cap*, and the noisy sum of
    these vectors is released. Caps and the typical size of the values are found privately; every
    stated error includes the clipping bias. See :mod:`quorate.tabulate.procedure`.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, pure if ``delta`` = 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and the names and types of the columns; under ``Relation.REPLACE`` the
        number of users; released: ``table_``, ``keys_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : A user's cells are a function of that user's records and of public and released numbers.
        :meth:`~quorate.core.people.People.cell_totals` clips each part of them (records, users,
        sums) to one length across all groups, in whole steps. All parts together are one
        :class:`~quorate.mechanisms.sums.GaussianSum` or
        :class:`~quorate.mechanisms.blocks.BlockSum`. The following are released before: a number of
        users, a rough median of one number per user
        (:class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`), and tallies of one length
        per user (:class:`~quorate.mechanisms.noisy_tally.NoisyTally`), from which caps are derived.
        Quantiles are noisy sums of votes at released thresholds
        (:mod:`quorate.tabulate.quantiles`). Popular keys: one vote per user
        (:class:`~quorate.mechanisms.choices.stable_choice.StableHistogram`). The largest groups are
        chosen by scores that one user changes by at most 1, or ``cap``
        (:mod:`quorate.tabulate.largest_groups`). Everything is drawn from one account, which knows
        the sensitivity of each sealed number; ratios, errors and bounds are post-processing.

    Utility
    -------
    Every cell comes with a standard error and with a bound that holds with probability 95 %. The
    bound includes noise, clipping bias as far as the tallies show it, and an assumed tail beyond
    that. It is infinite if there are too few people to estimate the clipping bias; state ``cap=``
    then.

    Complexity
    ----------
    Time :math:`O(N)` for N records in one pass, then a few passes over the non-empty cells of the
    users.

    Parameters
    ----------
    epsilon : float
    by : str or list of str, optional
        Columns of the key; with None the table has one row for all records.
    keys : list, dict or "popular"
        Public labels of the groups: a list, or for several columns a dictionary of lists, of which
        all combinations become rows. ``"popular"`` finds the keys that many people have, for a
        fifth of ``epsilon`` and half of ``delta``, which must be positive. The last row, whose key
        is null, holds all other keys together.
    statistics : dict
        Maps names of the table's columns to ``"count"`` (of records), ``"users"`` (with at least
        one record), ``"sum"``, ``"mean"`` (over records) or ``"median"`` (over people, of each
        person's own median in the group). The name is also the column of the data; for another name
        give a pair such as ``("price", "mean")``. ``("price", "quantile", 0.9)`` is the 90 %
        quantile over people, of each person's own median in the group.
    bounds : dict, pair or float
        Public ranges of the values, by column; values outside are clipped.
    delta : float, default=0.0
    algorithm : {"auto", "laplace", "gaussian"}, default="auto"
        The kind of noise. ``"auto"`` uses Gaussian noise if ``delta`` allows it and people are in
        more than a few groups.
    cap : float or "auto", default="auto"
        Cap on the length of a person's vector of record counts over the groups: the root of the sum
        of squares (with Laplace noise the sum). A stated cap is used as it is; no bound includes
        what it clips.
    groups : float or "auto", default="auto"
        In how many groups a person counts fully, for numbers of users and for quantiles. A stated
        number is used as it is.
    others : bool, default=False
        Whether to add a last row, with a null key, for all records whose key is missing or not
        listed.
    levels : bool, default=False
        Whether the columns of ``by`` are levels of a hierarchy, from the top down, such as country,
        region and city. ``keys`` lists the rows of the lowest level. The table has a row for each
        node; in its key the lower levels are null. Counts and sums of a node are the sums of the
        nodes below it (:mod:`quorate.tabulate.hierarchies`). It needs a data frame, and ``users``
        as the name of a column.
    largest : int, optional
        Number of groups to release: those with the most people, the largest first, and a last row,
        with a null key, for all others. The choice costs a fifth of ``epsilon``.
    largest_by : {"users", "count"}, default="users"
        Whether the largest groups are those with the most people or with the most records. For
        records ``cap`` must be stated; a person counts with at most ``cap`` records in each group.
    where : dict, optional
        Condition on records; see :mod:`quorate.data.by_group.conditions`.
    missing : "drop" or float, default="drop"
        ``"drop"`` drops a record with a missing value; a number replaces the missing value.
    relation : Relation, default=Relation.ADD_REMOVE
        Add or remove one user, as in other libraries for tables.
    ledger, data_name, random_state
        As in every estimator; ``random_state`` seeds the public choice of records that vote for
        keys.

    Attributes
    ----------
    table_ : pyarrow.Table
        One row per group; for each statistic three columns: ``name``, ``name_error`` (standard
        error) and ``name_bound``. ``table_.to_pandas()`` and ``polars.from_arrow(table_)`` return
        data frames.
    keys_ : tuple
        The groups, in the order of the table.
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
        others: bool = False,
        levels: bool = False,
        largest: int | None = None,
        largest_by: str = "users",
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
        self.others = others
        self.levels = levels
        self.largest = largest
        self.largest_by = largest_by
        self.where = where
        self.missing = missing
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        users: Any = None,
        order: Any = None,
        people: Any = None,
    ) -> UserTable:
        """Release the table of ``X``: a frame with ``users``, or a crowd.

        Parameters
        ----------
        X : frame with named columns, or crowd with named features
        y : ignored
        users : array of shape (records,) or str
            The user id of each row, or the name of the column with the ids.
        order : array of shape (records,) or str, optional
            For ``keys="popular"``: numbers, dates or times, or the name of their column. Then every
            person votes for the key of the first record, instead of a random one. A crowd has its
            own order.
        people : frame with named columns, optional
            A table of attributes of people, one row per person, with the same id column. ``by``,
            ``where`` and ``statistics`` may name its columns as if each record had them. They are
            missing for people who are not listed, or are listed more than once. It is protected
            like ``X``.
        """
        request, reading, ranges = self._checked()
        if self.levels and not (isinstance(users, str) and is_frame(X)):
            raise ParameterError(
                "levels=True needs a frame, and users= as the name of its column of ids."
            )
        people, by = as_table(people), reading.by
        tree = Tree(reading.groups) if self.levels else None
        reading.check(
            schema_of(X) if people is None else joined_schema(X, users, people, reading.columns)
        )
        if order is not None:
            if reading.keys is not None:
                raise ParameterError(
                    "order= is only for keys='popular', where it says which record votes; here "
                    "all records count."
                )
            order = order_of(X, order)
        reserve, aside, certain = Fraction(0), Fraction(0), None
        if reading.keys is None:
            reserve, aside = exact(self.delta) / 2, _KEY_SHARE * exact(self.epsilon)
        choice = Fraction(0) if self.largest is None else _CHOICE_SHARE * exact(self.epsilon)
        account = self._charge(X, None, users, reserve=reserve, aside=aside + choice)
        if people is not None:
            X = joined(X, people, users=users, columns=reading.columns)
        if tree is not None:
            X, reading = tree.stacked(X, users, reading)
        records, behind = self._read(X, users, reading, order), None
        if reading.keys is None:
            records, certain = self._popular(records, account, reserve, aside)
        if self.largest is not None:
            others = reading.keys is None or self.others
            records, behind = self._chosen(records, account, choice, self.largest, others=others)
        columns, caps, covers, route = self._released(records, request, ranges, account)
        self.guarantee_ = self._promise(account)
        self.keys_ = records.keys if tree is None else tree.nodes
        if tree is not None:
            adding = {r.name for r in request.requests if r.statistic in ("count", "sum")}
            columns |= {name: tree.added_up(columns[name]) for name in adding}
        self.table_ = arrow_table(by, self.keys_, columns)
        self.error_ = TableError(
            standard_error={
                name: float(np.sqrt(np.mean(found.errors**2))) for name, found in columns.items()
            },
            caps=caps,
            smallest_key=certain,
            behind=behind,
            covers=covers,
        )
        self.algorithm_ = route
        return self

    def _checked(self) -> tuple[TableRequest, Reading, Ranges]:
        """Refuse invalid parameters, before the charge."""
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
                    "keys='popular' needs delta > 0: with delta=0 keys that nobody has would "
                    "have to be possible. Pass delta=, such as 1e-6, or a public list of keys."
                )
        else:
            keys = as_keys(self.keys, by)
        self._check_largest(by, keys)
        self._check_rows(by)
        reading = Reading(
            by=by,
            keys=keys,
            rows=as_rows(self.keys, by),
            others=self.others and keys is not None,
            values=request.values,
            where=as_conditions(self.where),
            missing=self.missing,
        )
        return request, reading, ranges

    def _check_rows(self, by: tuple[str, ...]) -> None:
        _validate.boolean(others=self.others, levels=self.levels)
        if self.others and not by:
            raise ParameterError("Expected by= and keys=, beside which others=True has a row.")
        if self.others and isinstance(self.keys, str):
            raise ParameterError("keys='popular' has a row for all others anyway: leave it out.")
        if not self.levels:
            return
        if len(by) < 2 or as_rows(self.keys, by) is None:
            raise ParameterError(
                "levels=True needs by= with the levels from the top down, and keys= as a list of "
                "rows: one label of each level for every node of the lowest one."
            )
        if self.others or self.largest is not None:
            raise ParameterError("Levels that add up have no largest= and no others=.")

    def _check_largest(self, by: tuple[str, ...], keys: tuple[tuple[Any, ...], ...] | None) -> None:
        _validate.one_of(("users", "count"), largest_by=self.largest_by)
        if self.largest is None:
            return
        _validate.positive_integer(largest=self.largest)
        if not by:
            raise ParameterError("Expected by=, columns of groups of which the largest are chosen.")
        size = 0 if keys is None else len(as_rows(self.keys, by) or key_rows(keys))
        if keys is not None and size <= self.largest:
            raise ParameterError(
                f"Expected largest below the number of groups, {size}, got "
                f"largest={self.largest}: leave it out to have them all."
            )
        cap = stated(self.cap, name="cap")
        if self.largest_by == "count" and (cap is None or not 1 <= cap <= _MOST_RECORDS):
            raise ParameterError(
                "largest_by='count' needs cap=, how many records of one person count in a group "
                "(from 1 to 2^20): a cap that is found privately is found after the choice."
            )

    def _popular(
        self, records: Records, account: Account, reserve: Fraction, epsilon: Fraction
    ) -> tuple[Records, int]:
        keys, certain = popular_keys(
            self._people_of(records.crowd),
            records.by,
            records.labels,
            epsilon=epsilon,
            delta=reserve,
            account=account,
            random_state=self.random_state,
        )
        return records.with_keys(keys, others=True), certain

    def _chosen(
        self, records: Records, account: Account, epsilon: Fraction, size: int, *, others: bool
    ) -> tuple[Records, int | None]:
        """Keep the largest groups, and one row for all others, which may exist already."""
        candidates = len(records.keys) - others
        if candidates <= size:
            return records, None  # hardly any popular keys were found
        cells = records.cells(ToCells(records.numbers, len(records.keys)))
        found, behind = largest_groups(
            self._people_of(cells),
            groups=candidates,
            chosen=size,
            most=1 if self.largest_by == "users" else int(self.cap),
            epsilon=epsilon,
            account=account,
        )
        return records.with_groups(found), behind

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
        # A quantile searches: it counts as two parts.
        searched = request.quantiles
        share = Fraction(parts, parts + 2 * len(searched))
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
            several=bool(searched),
        )
        people = waiting()
        found = procedure.run(people) if parts else {}
        quantiles, norm = {}, procedure.norm
        rest = account.rest() if norm == 2 else account.part_of(epsilon=account.left)
        for column, fraction in searched:
            place = request.medians.index(column)
            quantiles[column, fraction] = group_quantiles(
                people,
                middle[place],
                2 + len(added) + place,
                fraction=fraction,
                groups=size,
                length=procedure.held ** (1 / norm),
                norm=norm,
                account=rest.part(Fraction(1, len(searched))),
            )
        how = "found privately" if cap is None else "stated"
        made = {r.name: _estimates(r, request, found, quantiles) for r in request.requests}
        caps = {_said(name, request): each.cap for name, each in found.items()}
        caps |= {"groups": procedure.held} if request.people or searched else {}
        return made, caps, procedure.covers, table_route(norm, how)


def table_route(norm: int, how: str) -> Route:
    """Return the kind of noise of a table, and the reason.

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
    quantiles: dict[tuple[str, float], Estimates],
) -> Estimates:
    if request.statistic == "users":
        return found["people"]
    if request.statistic == "count":
        return found["rows"]
    column = str(request.column)
    if request.statistic in ("median", "quantile"):
        return quantiles[column, request.fraction]
    sums = found[table.added_up.index(column)]
    if request.statistic == "mean":
        return means(sums, found["rows"])
    return totals(sums, found.get("rows"))
