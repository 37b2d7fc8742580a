"""How many people there are, or how many records they have, under a public condition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.data.by_group.conditions import as_conditions
from quorate.data.by_group.reading import Reading, schema_of
from quorate.estimators import Route
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.stated_error import StatedError
from quorate.tabulate.base import UserStatistic, stated
from quorate.tabulate.parts import HeldOften
from quorate.tabulate.procedure import Procedure
from quorate.tabulate.released import CONFIDENCE, COVERS, STATE_A_CAP

__all__ = ["StatisticError", "UserCount"]


_COVERS_ALL = "Privacy noise (nobody is clipped); not sampling error."


@dataclass(frozen=True, kw_only=True, eq=False)
class StatisticError(StatedError):
    """How far a released number may be from the true number for these people.

    Attributes
    ----------
    standard_error : float or array
        Of the noise and the likely clipping bias together.
    bound : float or array
        Holds with probability ``confidence``, for each number separately.
    confidence : float
    cap : float, array or None
        The cap to which a person's contribution was clipped.
    worst : float
        The largest bound if nobody is clipped. Infinite if people may exceed the cap, because no
        released number limits by how much.
    covers : str

    Examples
    --------
    >>> print(StatisticError(standard_error=2.0, bound=4.0))
    within 4 with 95% confidence
    """

    standard_error: Any
    bound: Any
    confidence: float = CONFIDENCE
    cap: Any = None
    worst: float = math.inf
    covers: str = COVERS

    @property
    def coordinates(self) -> tuple[float, ...]:
        """The bound of each number."""
        return tuple(np.atleast_1d(np.asarray(self.bound, dtype=float)).tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StatisticError) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        values = (self.standard_error, self.bound, self.confidence, self.cap)
        return tuple(None if x is None else np.asarray(x, float).tobytes() for x in values)

    def __str__(self) -> str:
        bounds = ", ".join(f"{bound:.3g}" for bound in np.atleast_1d(self.bound))
        said = f"within {bounds} with {self.confidence:.0%} confidence"
        return said if np.all(np.isfinite(self.bound)) else f"{STATE_A_CAP}: {said}"


class UserCount(UserStatistic):
    r"""The number of users or of records, hiding any one person's whole record.

    Privacy
    -------
    guarantee : ``guarantee_``: ``epsilon``-DP (``delta`` is declared but rarely used)
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and the names and types of the columns; under ``Relation.REPLACE`` the
        number of users; released: ``count_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : Users: each counts 0 or 1, in a :class:`~quorate.mechanisms.noisy_count.NoisyCount`.
        Records: a table of one group (:mod:`quorate.tabulate.procedure`).

    Utility
    -------
    ``error_.bound`` holds with probability 95 %. It is about :math:`3/\varepsilon` for users. For
    records it is :math:`3/\varepsilon` times the cap plus the possible clipping bias.

    Complexity
    ----------
    Time :math:`O(N)` for N records.

    Parameters
    ----------
    epsilon : float
    of : {"users", "records"}, default="users"
    where : dict, optional
        Condition on records, by column; a user is counted if one record fulfils it. See
        :mod:`quorate.data.by_group.conditions`.
    cap : float or "auto", default="auto"
        How many records of one person count; not used for users. A stated cap is used as it is; no
        bound includes what it clips.
    delta : float, default=0.0
    algorithm : {"auto", "laplace", "gaussian"}, default="auto"
    relation : Relation, default=Relation.ADD_REMOVE
        Add or remove one user, as in other libraries for tables.
    ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    count_ : float
    error_ : StatisticError
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Ghosh, Roughgarden, Sundararajan. Universally utility-maximizing privacy mechanisms.
       SIAM J. Comput. 41(6), 2012.

    Examples
    --------
    >>> import pyarrow as pa
    >>> visits = pa.table({"patient": [7, 7, 8, 9] * 100, "age": [30, 30, 70, 41] * 100})
    >>> old = UserCount(epsilon=2.0, where={"age": (65, None)}).fit(visits, users="patient")
    >>> abs(old.count_ - 1) < 10, old.guarantee_.epsilon
    (True, 2.0)
    """

    count_: float
    error_: StatisticError

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        of: str = "users",
        where: Mapping[str, Any] | None = None,
        cap: float | str = "auto",
        delta: float = 0.0,
        algorithm: str = "auto",
        relation: Relation = Relation.ADD_REMOVE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.of = of
        self.where = where
        self.cap = cap
        self.delta = delta
        self.algorithm = algorithm
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> UserCount:
        """Release the count of ``X``: records with ``users``, or a crowd.

        Parameters
        ----------
        X : array, frame or crowd
            It needs named columns if there is a condition.
        y : ignored
        users : array of shape (records,) or str
            The user id of each row, or the name of the column with the ids.
        """
        self._check_common()
        _validate.one_of(("users", "records"), of=self.of)
        cap = stated(self.cap, name="cap")
        reading = Reading(where=as_conditions(self.where))
        reading.check(schema_of(X))
        account = self._charge(X, None, users)
        people = self._cells(self._read(X, users, reading), (), (), {})[1]()
        if self.of == "users":
            count, error, route = self._people(people, account)
        else:
            count, error, route = self._records(people, cap, account)
        self.guarantee_ = self._promise(account)
        self.count_, self.error_, self.algorithm_ = count, error, route
        return self

    def _people(self, people: People, account: Account) -> tuple[float, StatisticError, Route]:
        mechanism = NoisyCount(epsilon=account.left, relation=self.relation)
        found = mechanism.release(people.tally(HeldOften(), 1)[0], account=account)
        bound = float(mechanism.error_bound(1.0 - CONFIDENCE))
        error = StatisticError(
            standard_error=mechanism.standard_error,
            bound=bound,
            cap=1.0,
            worst=bound,
            covers=_COVERS_ALL,
        )
        return float(found), error, Route(name="laplace", reason="every person counts once.")

    def _records(
        self, people: People, cap: float | None, account: Account
    ) -> tuple[float, StatisticError, Route]:
        procedure = Procedure(
            people,
            account,
            groups=1,
            records=True,
            caps={} if cap is None else {"rows": cap},
            algorithm=self.algorithm,
        )
        found = procedure.run()["rows"]
        error = StatisticError(
            standard_error=float(found.errors[0]),
            bound=float(found.bounds[0]),
            cap=found.cap,
            covers=procedure.covers,
        )
        return float(found.values[0]), error, route_of(procedure, found=cap is None)


def route_of(procedure: Procedure, *, found: bool) -> Route:
    """Return the kind of noise of a number, and the source of its cap."""
    how = "found privately" if found else "stated"
    return Route(name="gaussian" if procedure.gaussian else "laplace", reason=f"the cap was {how}.")
