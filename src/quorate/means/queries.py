"""Answers to adaptively chosen questions within a budget fixed in advance (U4).

Each question is a function of *one user's* records; the answer is the private mean of its bounded
values over users. Later questions may depend on earlier answers. The whole budget is charged when
the data are handed over, and further questions are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.account.costs import gdp_mu
from quorate.core.bounds.grid import Bound
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.users import UserData
from quorate.core.users.crowd import call_quietly, silence
from quorate.core.users.public_choices import in_own_order
from quorate.estimators import NotFitted, Route, UserEstimator
from quorate.exceptions import ParameterError, QueriesExhaustedError
from quorate.ledger.ledger import Ledger
from quorate.means.mean_error import MeanError
from quorate.means.present_mean import ErrorParts
from quorate.means.vector_mean import gaussian_run
from quorate.means.weighted_users import PeopleVectors
from quorate.mechanisms.means.private_range import CONSTANTS
from quorate.mechanisms.means.rotation import Rotation
from quorate.mechanisms.means.winsorized import RotatedWinsorizedMean
from quorate.ranges import as_bound, half_widths

__all__ = ["QueryAnswer", "UserQueries"]

_ALGORITHMS = ("auto", "clip", "ball", "winsorized")

Query = Callable[[NDArray[np.float64]], ArrayLike]


@dataclass(frozen=True, kw_only=True)
class QueryAnswer:
    """A released answer, its error and the method that found it.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(2000, 1))
    >>> desk = UserQueries(epsilon=1.0, delta=1e-6, bounds=9.0).fit(X, users=range(2000))
    >>> answer = desk.ask(lambda records: records.mean(axis=0))
    >>> answer.value.shape, answer.algorithm.name
    ((1,), 'ball')
    """

    value: NDArray[np.float64]
    error: MeanError
    algorithm: Route


class UserQueries(UserEstimator):
    r"""Answer up to ``queries`` bounded queries about users, chosen one after the other.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP for all answers together
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters, the questions, the number of features and, under ``Relation.REPLACE``,
        of users; released: the answers
    numerics : exact
    proof : A query gets the records of one user at a time, so a user's value depends on that user
        alone (if the function keeps no state between calls). If it returns no value or one of the
        wrong shape, or raises an error, the user counts as absent from this answer. Each answer is
        a private mean with an equal part of the squared Gaussian budget, or (``"winsorized"``) a
        mean of U3 with an equal part of the composition; the parts add up under adaptive
        composition. The parts are fixed in ``fit``; parameters that are set later do not change
        them.

    Utility
    -------
    If users are concentrated around one point for every question, the noise scales with their
    concentration radius and with the root of the number of questions. Theorem 3 of [1]_ states this
    for ``algorithm="winsorized"``.

    Complexity
    ----------
    One call of the question per user, then one private mean.

    Parameters
    ----------
    epsilon : float
    delta : float, default=1e-6
        Must be positive: the noise is Gaussian. Well below one over the number of users.
    queries : int
        The largest number of queries.
    bounds : float, pair, dict or Bound
        Public range of the answers, as in :class:`~quorate.means.user_mean.UserMean`.
    dimension : int, default=1
        Length of every answer.
    algorithm : {"auto", "clip", "ball", "winsorized"}, default="auto"
    radius : float, optional
        Public concentration radius (L2) of the users' values; needed for ``"winsorized"``.
    constants : {"calibrated", "published"}, default="calibrated"
        For ``algorithm="winsorized"``.
    relation, ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    guarantee_ : Guarantee
        The guarantee of all answers together; its events are the draws so far.
    algorithm_ : Route
        The requested algorithm. Each answer states the one that was used for it.

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845, Theorem 3.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(2.0, 1.0, size=(20_000, 1))
    >>> desk = UserQueries(epsilon=1.0, delta=1e-6, queries=2, bounds=100.0)
    >>> desk = desk.fit(X, users=np.arange(20_000) // 10)
    >>> first = desk.ask(lambda records: records.mean(axis=0))
    >>> second = desk.ask(lambda records: [np.mean(records > first.value[0])])
    >>> abs(first.value[0] - 2.0) < 0.3, abs(second.value[0] - 0.5) < 0.2
    (np.True_, np.True_)
    >>> desk.ask(lambda records: records.max(axis=0))
    Traceback (most recent call last):
        ...
    quorate.exceptions.QueriesExhaustedError: All queries=2 questions have been answered; ...
    """

    _desk: _Desk | None = None

    _takes_crowds = True

    _draws_later = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        queries: int = 1,
        bounds: Any = None,
        dimension: int = 1,
        algorithm: str = "auto",
        radius: float | None = None,
        constants: str = "calibrated",
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.queries = queries
        self.bounds = bounds
        self.dimension = dimension
        self.algorithm = algorithm
        self.radius = radius
        self.constants = constants
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> UserQueries:
        """Charge the whole budget and store the data (records with ``users``, or a crowd).

        All parameters are fixed here: changing them later has no effect until the next :meth:`fit`.
        """
        bound = self._checked_bound()
        if self.algorithm == "winsorized":
            self._rotated(bound, 2)
        gdp_mu(float(self.epsilon), float(self.delta))
        account = self._charge(X, None, users)
        self._desk = None
        people = self._population(X, None, users)
        rotated = self._rotated(bound, people.n_users) if self.algorithm == "winsorized" else None
        if rotated is not None:
            account.reserve_chain(rotated.event)
        self._desk = _Desk(
            people=people,
            bound=bound,
            queries=int(self.queries),
            tickets=[None] * int(self.queries),
            algorithm=self.algorithm,
            radius=None if self.radius is None else float(self.radius),
            account=account,
            rotated=rotated,
            generator=public_generator(self.random_state),
        )
        self.guarantee_ = self._promise(account)
        self.algorithm_ = Route(
            name=self.algorithm, reason="each answer states its method and the reason."
        )
        return self

    @property
    def _only_gaussian(self) -> bool:
        # The winsorized answers are a plan of their own, priced as a whole.
        return self.algorithm != "winsorized"

    @property
    def remaining(self) -> int:
        """How many questions may still be asked."""
        return len(self._fitted_desk().tickets)

    def ask(self, query: Query) -> QueryAnswer:
        """Return the private mean over users of ``query(records of one user)``.

        The query is first tried on two made-up rows of zeros: an error or a wrong shape there is
        refused and costs nothing.

        Parameters
        ----------
        query : callable
            Takes an array (records x features), and returns a vector of length ``dimension``, or a
            number if that is 1. It must not remember anything from one user to the next.
        """
        desk = self._fitted_desk()
        if not callable(query):
            raise ParameterError(f"Expected query to be a function, got {type(query).__name__}.")
        answer = desk.answer(query)
        if desk.account is not None:
            self.guarantee_ = self._promise(desk.account)
        return answer

    def _fitted_desk(self) -> _Desk:
        if (desk := self._desk) is None:
            raise NotFitted(
                "This UserQueries instance is not fitted yet: call fit, which charges the budget, "
                "before asking."
            )
        return desk

    def _rotated(self, bound: Bound, n_users: int) -> RotatedWinsorizedMean:
        mechanism = RotatedWinsorizedMean(
            bound=float(half_widths(bound).max()),
            radius=float(self.radius or 0.0),
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            n_users=n_users,
            dimension=bound.dimension,
            queries=int(self.queries),
            constants=self.constants,
        )
        _ = mechanism.coordinate
        return mechanism

    def __getstate__(self) -> dict[str, Any]:
        """Leave the data out: a saved or copied object contains no records and gives no answers."""
        state = dict(super().__getstate__())
        if (desk := state.get("_desk")) is not None:
            state["_desk"] = desk.closed()
        return state

    def _checked_bound(self) -> Bound:
        _validate.useful_epsilon(epsilon=self.epsilon)
        _validate.one_of(_ALGORITHMS, algorithm=self.algorithm)
        _validate.one_of(CONSTANTS, constants=self.constants)
        _validate.positive_integer(queries=self.queries, dimension=self.dimension)
        _validate.delta(delta=self.delta)
        if self.delta == 0:
            raise ParameterError(
                "UserQueries needs delta > 0. Pass delta= well below one over the number of users, "
                "such as delta=1e-6."
            )
        if self.radius is not None:
            _validate.positive(radius=self.radius)
        if self.algorithm == "winsorized" and self.radius is None:
            raise ParameterError("algorithm='winsorized' needs radius=; use 'auto' without one.")
        if self.algorithm == "winsorized" and self.relation is not Relation.REPLACE:
            raise ParameterError("algorithm='winsorized' needs Relation.REPLACE; use 'auto'.")
        return as_bound(self.bounds, int(self.dimension))


@dataclass(kw_only=True)
class _Desk:
    """The stored data and the charged budget, from which answers are computed.

    Only the list of tickets changes: it has one ticket for each question that may still be asked.
    Taking a ticket is atomic, so two threads cannot take the same ticket.
    """

    people: People | None
    bound: Bound
    queries: int
    tickets: list[None]
    algorithm: str
    radius: float | None
    account: Account | None
    rotated: RotatedWinsorizedMean | None
    generator: RandomState

    def closed(self) -> _Desk:
        return replace(self, people=None, account=None, tickets=[], generator=None)

    def answer(self, query: Query) -> QueryAnswer:
        if self.people is None or self.account is None or not self.tickets:
            raise self._exhausted()
        self.account.refuse_elsewhere()
        self._try_out(query, self.people.n_features)
        try:
            self.tickets.pop()
        except IndexError:
            raise self._exhausted() from None
        values = PeopleVectors.of(self.people, _Evaluated(query, self.bound.dimension), self.bound)
        if self.rotated is not None:
            return self._winsorized(self.rotated, values, self.account)
        share = Fraction(1, self.queries)
        run = gaussian_run(self.account, values, self.bound, share=share, spread=self.radius)
        release = run.clip("it was requested.") if self.algorithm == "clip" else run.adapt()
        return QueryAnswer(
            value=release.mean + self.bound.centre,
            error=release.error,
            algorithm=release.route,
        )

    def _exhausted(self) -> QueriesExhaustedError:
        return QueriesExhaustedError(
            f"All queries={self.queries} questions have been answered; the reserved budget is "
            f"spent. Fit again, with a new budget, to ask more."
        )

    def _try_out(self, query: Query, n_features: int) -> None:
        """Refuse a question that fails on made-up records."""
        expected = f"a vector of length {self.bound.dimension}"
        if self.bound.dimension == 1:
            expected += " or a number"
        try:
            with np.errstate(all="ignore"), silence():
                value = np.asarray(query(_unwritable(np.zeros((2, n_features)))), np.float64)
        except (Exception, SystemExit) as error:
            raise ParameterError(
                f"Expected query to turn the records of one user into {expected}; on two made-up "
                f"records of zeros it raised {type(error).__name__}: {error}. It was not asked."
            ) from error
        if not _fits(value, self.bound.dimension):
            raise ParameterError(
                f"Expected query to turn the records of one user into {expected}; on two made-up "
                f"records of zeros it gave an array of shape {value.shape}. It was not asked."
            )

    def _winsorized(
        self, mechanism: RotatedWinsorizedMean, values: PeopleVectors, account: Account
    ) -> QueryAnswer:
        rotation = Rotation.random(self.bound.dimension, random_state=self.generator)
        mean = mechanism.release(values.rows(), rotation=rotation, account=account)
        each = mechanism.coordinate
        noise = np.full(mean.shape, math.sqrt(2.0) * each.noise_scale)
        error = ErrorParts(noise=noise, laplace=True, radius=each.range.half_width).stated()
        route = Route(name="winsorized", reason="it was requested.", spread=self.radius)
        return QueryAnswer(value=mean + self.bound.centre, error=error, algorithm=route)


@dataclass(frozen=True)
class _Evaluated:
    """One value per user; NaN (absent) if the question fails for that user."""

    query: Query
    dimension: int

    def __call__(self, users: UserData) -> NDArray[np.float64]:
        rows, offsets = _unwritable(in_own_order(users).X), users.offsets
        values = np.full((users.n_users, self.dimension), np.nan)
        for user in range(users.n_users):
            records = rows[offsets[user] : offsets[user + 1]]
            # An error or a warning would tell something about one user.
            value = call_quietly(partial(_as_floats, self.query, records))
            if value is not None and _fits(value, self.dimension):
                values[user] = value
        return values


def _fits(value: NDArray[np.float64], dimension: int) -> bool:
    return value.shape == (dimension,) or (dimension == 1 and value.shape == ())


def _as_floats(query: Query, records: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(query(records), dtype=np.float64)


def _unwritable(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a read-only view, so that a question cannot change records for the next one."""
    view = rows.view()
    view.flags.writeable = False
    return view
