"""Sums over all records, with each person's total clipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState
from quorate.data.by_group.conditions import as_conditions
from quorate.data.by_group.reading import Reading, names_of, schema_of
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.ranges import limits_by_name
from quorate.tabulate.base import UserStatistic, stated
from quorate.tabulate.procedure import Procedure
from quorate.tabulate.requests import TableRequest, as_request
from quorate.tabulate.user_count import StatisticError, route_of

__all__ = ["UserSum"]


class UserSum(UserStatistic):
    r"""The sum of each column, hiding any one person's whole record.

    The total of each user is clipped to a cap, which is stated or found privately. The totals are
    summed, and noise in proportion to the cap is added.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, pure if ``delta`` = 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and the names and types of the columns; under ``Relation.REPLACE`` the
        number of users; released: ``sum_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : A table of one group (:mod:`quorate.tabulate.procedure`). The totals of a person are a
        function of that person's records, clipped by the core, and released by a
        :class:`~quorate.mechanisms.blocks.BlockSum`. Caps that are not stated are derived from a
        :class:`~quorate.mechanisms.noisy_tally.NoisyTally` of one length per user. Everything is
        drawn from one account.

    Utility
    -------
    ``error_.bound`` holds with probability 95 % for each column separately. It includes the
    clipping bias, and is infinite if there are too few people to estimate it.

    Complexity
    ----------
    Time :math:`O(N d)` for N records of d columns.

    Parameters
    ----------
    epsilon : float
    bounds : dict, pair or float
        Public ranges of the values of a record.
    cap : float, dict or "auto", default="auto"
        Largest total of one person, in the units of the column. A stated cap is used as it is; no
        bound includes what it clips.
    where : dict, optional
        Condition on records; see :mod:`quorate.data.by_group.conditions`.
    missing : "drop" or float, default="drop"
    delta : float, default=0.0
    algorithm : {"auto", "laplace", "gaussian"}, default="auto"
    relation : Relation, default=Relation.ADD_REMOVE
        Add or remove one user, as in other libraries for tables.
    ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    sum_ : array of shape (d,)
    error_ : StatisticError
        Its arrays have the shape (d,).
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Amin, Kulesza, Munoz, Vassilvitskii. Bounding user contributions: a bias-variance
       trade-off in differential privacy. ICML 2019.

    Examples
    --------
    >>> spent = np.full((4000, 1), 2.5)
    >>> total = UserSum(epsilon=1.0, bounds=(0, 100), cap=10).fit(spent, users=np.arange(4000) // 4)
    >>> bool(abs(total.sum_[0] - 10_000) < 200), total.guarantee_.epsilon
    (True, 1.0)
    """

    sum_: NDArray[np.float64]
    error_: StatisticError

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = None,
        cap: Any = "auto",
        where: Mapping[str, Any] | None = None,
        missing: str | float = "drop",
        delta: float = 0.0,
        algorithm: str = "auto",
        relation: Relation = Relation.ADD_REMOVE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.cap = cap
        self.where = where
        self.missing = missing
        self.delta = delta
        self.algorithm = algorithm
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> UserSum:
        """Release the sums of ``X``: records with ``users``, or a crowd.

        Parameters
        ----------
        X : array, frame or crowd
            All columns except the ids and those of conditions are summed; with a dictionary of
            bounds, only the columns that it names.
        y : ignored
        users : array of shape (records,) or str
            The user id of each row, or the name of the column with the ids.
        """
        self._check_common()
        request, reading = asked_columns(self, schema_of(X), users, "sum")
        ranges = request.ranges(self.bounds)
        caps = self._caps(request.values)
        account = self._charge(X, None, users)
        records = self._read(X, users, reading)
        _, people, columns, _ = self._cells(records, request.values, (), ranges)
        procedure = Procedure(
            people(),
            account,
            groups=1,
            columns=columns,
            caps={place: cap for place, cap in enumerate(caps) if cap is not None},
            algorithm=self.algorithm,
        )
        found = list(procedure.run().values())
        self.guarantee_ = self._promise(account)
        self.sum_ = np.array([each.values[0] for each in found])
        self.error_ = StatisticError(
            standard_error=np.array([each.errors[0] for each in found]),
            bound=np.array([each.bounds[0] for each in found]),
            cap=np.array([each.cap for each in found]),
            covers=procedure.covers,
        )
        self.algorithm_ = route_of(procedure, found=None in caps)
        return self

    def _caps(self, names: tuple[str, ...]) -> list[float | None]:
        if isinstance(self.cap, Mapping):
            return [stated(cap, name="cap") for cap in limits_by_name(self.cap, list(names))]
        return [stated(self.cap, name="cap")] * len(names)


def asked_columns(
    estimator: Any, X: Any, users: Any, statistic: str
) -> tuple[TableRequest, Reading]:
    """Return the columns of ``X`` that are read; refuse wrong names and types.

    >>> import pyarrow as pa
    >>> table = pa.table({"who": [1], "price": [2.0], "weight": [3.0]})
    >>> asked_columns(UserSum(bounds=9), table, "who", "sum")[0].values
    ('price', 'weight')
    """
    where = as_conditions(estimator.where)
    names: tuple[str, ...]
    if isinstance(estimator.bounds, Mapping) and None not in estimator.bounds:
        names = tuple(map(str, estimator.bounds))
    else:
        others = {users} if isinstance(users, str) else set()
        others |= {condition.column for condition in where}
        names = tuple(name for name in names_of(X) if name not in others)
    if not names:
        raise ParameterError("Expected at least one column of numbers beside ids and conditions.")
    request = as_request(dict.fromkeys(names, statistic))
    request.ranges(estimator.bounds)
    reading = Reading(values=request.values, where=where, missing=estimator.missing)
    reading.check(X)
    return request, reading
