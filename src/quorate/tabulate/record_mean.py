"""Means over records, in which people with more records have more weight, up to a cap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState
from quorate.data.by_group.reading import schema_of
from quorate.ledger.ledger import Ledger
from quorate.tabulate.base import UserStatistic, stated
from quorate.tabulate.procedure import Procedure
from quorate.tabulate.released import means
from quorate.tabulate.user_count import StatisticError, route_of
from quorate.tabulate.user_sum import asked_columns

__all__ = ["RecordMean"]


class RecordMean(UserStatistic):
    r"""The mean of each column over all records, hiding any one person's whole record.

    :class:`~quorate.means.user_mean.UserMean` counts every person once. Here every record counts
    once. The mean is the ratio of two noisy sums: of the values relative to a released centre, and
    of the number of records.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, pure if ``delta`` = 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and the names and types of the columns; under ``Relation.REPLACE`` the
        number of users; released: ``mean_``, ``count_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : A table of one group (:mod:`quorate.tabulate.procedure`). The core clips the number of a
        person's records and the sums of their values relative to released centres, each to its own
        length. They are released by a :class:`~quorate.mechanisms.blocks.BlockSum`, after tallies
        of one number per user, all from one account. The ratio is computed afterwards.

    Utility
    -------
    ``error_.bound`` holds with probability 95 % for each column separately; see
    :func:`~quorate.tabulate.released.means`.

    Complexity
    ----------
    Time :math:`O(N d)` for N records of d columns.

    Parameters
    ----------
    epsilon : float
    bounds : dict, pair or float
        Public ranges of the values; they may be loose.
    cap : float or "auto", default="auto"
        How many records of a person count.
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
    mean_ : array of shape (d,)
    count_ : float
        Released number of records, with at most the cap from each person.
    error_ : StatisticError
        The errors of the means, with arrays of shape (d,).
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Amin, Kulesza, Munoz, Vassilvitskii. Bounding user contributions: a bias-variance
       trade-off in differential privacy. ICML 2019.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = rng.integers(0, 5000, 50_000)
    >>> waits = rng.gamma(2.0, 10.0, size=(50_000, 1))
    >>> mean = RecordMean(epsilon=1.0, bounds=(0, 500)).fit(waits, users=people)
    >>> bool(abs(mean.mean_[0] - 20) < 1), mean.guarantee_.epsilon
    (True, 1.0)
    """

    mean_: NDArray[np.float64]
    count_: float
    error_: StatisticError

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = None,
        cap: float | str = "auto",
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

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> RecordMean:
        """Release the means of ``X``: records with ``users``, or a crowd.

        Parameters
        ----------
        X : array, frame or crowd
            As for :meth:`quorate.tabulate.user_sum.UserSum.fit`.
        y : ignored
        users : array of shape (records,) or str
            The user id of each row, or the name of the column with the ids.
        """
        self._check_common()
        cap = stated(self.cap, name="cap")
        request, reading = asked_columns(self, schema_of(X), users, "mean")
        account = self._charge(X, None, users)
        records = self._read(X, users, reading)
        ranges = request.ranges(self.bounds)
        _, people, columns, _ = self._cells(records, request.values, (), ranges)
        procedure = Procedure(
            people(),
            account,
            groups=1,
            columns=columns,
            records=True,
            caps={} if cap is None else {"rows": cap},
            algorithm=self.algorithm,
        )
        released = procedure.run()
        rows = released["rows"]
        found = [means(released[place], rows) for place in range(len(columns))]
        self.guarantee_ = self._promise(account)
        self.mean_ = np.array([each.values[0] for each in found])
        self.count_ = float(rows.values[0])
        self.error_ = StatisticError(
            standard_error=np.array([each.errors[0] for each in found]),
            bound=np.array([each.bounds[0] for each in found]),
            cap=rows.cap,
            covers=procedure.covers,
            # The mean stays inside of its range, whatever is cut.
            worst=max(column.upper - column.lower for column in columns),
        )
        self.algorithm_ = route_of(procedure, found=cap is None)
        return self
