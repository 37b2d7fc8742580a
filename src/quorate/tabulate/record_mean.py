"""Means over records: those who hold more count for more, up to a bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.ledger import Ledger
from quorate.estimators import Route
from quorate.guarantees import Relation
from quorate.public_randomness import RandomState
from quorate.tabulate.base import UserStatistic, shape_of, stated
from quorate.tabulate.blocks import release_block
from quorate.tabulate.gathering.reading import schema_of
from quorate.tabulate.looks import number_of_users
from quorate.tabulate.released import means
from quorate.tabulate.user_count import StatisticError
from quorate.tabulate.user_sum import asked_columns

__all__ = ["RecordMean"]

_COVERS = (
    "Privacy noise, about a mean in which people with more records than the cap count as much as "
    "the cap; not the sampling of the people themselves."
)


class RecordMean(UserStatistic):
    r"""The mean of each column over all records, hiding any one person's whole record.

    :class:`~quorate.means.user_mean.UserMean` counts every person once. Here every record counts
    once: the mean is a ratio of two noisy sums, of values and of records, and both are paid for.
    Somebody with more records than the cap counts as much as the cap, with all their records, so a
    low cap biases little where people with many records hold values like everybody else's.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, pure if ``delta`` = 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and the names and types of the columns; under ``Relation.REPLACE`` the
        number of users; released: ``mean_``, ``count_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : The number of a person's records and the sums of their values, counted from released
        centres in released units, are one vector, which
        :class:`~quorate.tabulate.lengths.Lengths` bounds; one noisy sum of these vectors is
        released, after the looks of :mod:`quorate.tabulate.looks`, all from one account. The ratio
        is computed afterwards.

    Utility
    -------
    ``error_.bound`` holds with probability 95 % for each column by itself, against the mean in
    which everybody has the weight that the cap leaves them; see
    :func:`~quorate.tabulate.released.means`.

    Complexity
    ----------
    Time :math:`O(N d)` for N records of d columns.

    Parameters
    ----------
    epsilon : float
    bounds : dict, pair or float
        Public ranges of the values; loose is fine.
    cap : float or "auto", default="auto"
        How many records of a person count.
    where : dict, optional
        Which records the mean is about; see :mod:`quorate.tabulate.conditions`.
    missing : "drop" or float, default="drop"
    delta : float, default=0.0
    algorithm : {"auto", "laplace", "gaussian"}, default="auto"
    relation, ledger, data_name, random_state
        As everywhere.

    Attributes
    ----------
    mean_ : array of shape (d,)
    count_ : float
        Released number of records, up to the cap of each person.
    error_ : StatisticError
        With arrays of shape (d,), of the means.
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
        relation: Relation = Relation.REPLACE,
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
            Whose record each row is, or the name of the column that says so.
        """
        self._check_common()
        cap = stated(self.cap, name="cap")
        request, reading = asked_columns(self, schema_of(X), users, "mean")
        account = self._charge(X, None, users)
        records = self._read(X, users, reading)
        crowd, columns, _ = self._cells(records, request.values, (), request.ranges(self.bounds))
        purse, norm = self._purse(account, 1 + len(columns))
        n_users = number_of_users(crowd, purse)
        shape = shape_of(
            crowd,
            columns,
            weights=np.ones(1),
            counted=True,
            norm=norm,
            account=purse,
            n_users=n_users,
        )
        length = None if cap is None else cap * float(shape.coordinates) ** (1 / norm)
        block = release_block(crowd, shape, account=purse, n_users=n_users, length=length)
        found = [means(block, place) for place in range(len(columns))]
        self.guarantee_ = self._promise(account)
        self.mean_ = np.array([each.values[0] for each in found])
        self.count_ = float(np.zeros(1)[0] if block.counts is None else block.counts[0])
        self.error_ = StatisticError(
            standard_error=np.array([each.errors[0] for each in found]),
            bound=np.array([each.bounds[0] for each in found]),
            cap=block.length / float(shape.coordinates) ** (1 / norm),
            people_cut=block.cut,
            # Those who are cut count less; the mean stays inside of its range.
            worst=max(column.upper - column.lower for column in columns),
            covers=_COVERS,
        )
        how = "found privately" if cap is None else "stated"
        self.algorithm_ = Route(
            name="laplace" if norm == 1 else "gaussian",
            reason=f"a ratio of two sums; the cap was {how}.",
        )
        return self
