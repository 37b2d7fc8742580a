"""Answers to adaptively chosen questions within a budget fixed in advance (U4).

Each question is a function of *one user's* records; the answer is the private mean of its bounded
values over users. Later questions may depend on earlier answers. The whole budget is charged when
the data are handed over, and the question after the last one is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.accounting.events import Event
from quorate.accounting.ledger import Ledger
from quorate.bounds import Bound
from quorate.estimators import UserEstimator
from quorate.exceptions import ParameterError, QueriesExhaustedError
from quorate.guarantees import Guarantee, Relation
from quorate.means.private_range import CONSTANTS
from quorate.means.pure_routes import laplace_error
from quorate.means.release import MeanError, Route
from quorate.means.rotation import Rotation
from quorate.means.user_mean import as_bound, half_widths
from quorate.means.vector_mean import MeanBudget
from quorate.means.weighted_users import bounded_vectors
from quorate.means.winsorized import RotatedWinsorizedMean
from quorate.public_randomness import RandomState, public_generator
from quorate.users import UserData

__all__ = ["Answer", "UserQueries"]

_ALGORITHMS = ("auto", "clip", "ball", "winsorized")

Query = Callable[[NDArray[np.float64]], ArrayLike]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A released answer, its error and how it was found.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(2000, 1))
    >>> desk = UserQueries(epsilon=1.0, delta=1e-6, bound=9.0).fit(X, users=range(2000))
    >>> answer = desk.ask(lambda records: records.mean(axis=0))
    >>> answer.value.shape, answer.algorithm.name
    ((1,), 'ball')
    """

    value: NDArray[np.float64]
    error: MeanError
    algorithm: Route


class UserQueries(UserEstimator):
    r"""Answer up to ``queries`` adaptively chosen bounded questions about users.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP for all answers together
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters, the questions, the number of features and, under ``Relation.REPLACE``,
        of users; released: the answers
    numerics : exact
    proof : A question sees the records of one user at a time, so a user's value depends on that
        user alone (if the function keeps no memory between calls); a value that is missing, of the
        wrong shape, or an error, counts as the centre of the bound. Each answer is a private mean
        with an equal part of the squared Gaussian budget, or (``"winsorized"``) a mean of U3 with
        an equal part of the composition; the parts add up under adaptive composition.

    Utility
    -------
    If users are concentrated, uniformly over the questions, the noise scales with their
    concentration radius and with the root of the number of questions. Theorem 3 of [1]_ states this
    for ``algorithm="winsorized"``.

    Complexity
    ----------
    One call of the question per user, then one private mean.

    Parameters
    ----------
    epsilon : float
    delta : float
        Must be positive.
    queries : int
        How many questions may be asked.
    bound : float, pair or Bound
        Public range of the answers, as in :class:`~quorate.means.user_mean.UserMean`.
    dimension : int, default=1
        Length of every answer.
    algorithm : {"auto", "clip", "ball", "winsorized"}, default="auto"
    radius : float, optional
        Public concentration radius (L2) of the users' values; needed for ``"winsorized"``.
    constants : {"calibrated", "published"}, default="calibrated"
        For ``algorithm="winsorized"``.
    relation, ledger, data_name, random_state
        As everywhere.

    Attributes
    ----------
    guarantee_ : Guarantee
        Of all answers together, set by :meth:`fit`.

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845, Theorem 3.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(2.0, 1.0, size=(20_000, 1))
    >>> desk = UserQueries(epsilon=1.0, delta=1e-6, queries=2, bound=100.0)
    >>> desk = desk.fit(X, users=np.arange(20_000) // 10)
    >>> first = desk.ask(lambda records: records.mean(axis=0))
    >>> second = desk.ask(lambda records: [np.mean(records > first.value[0])])
    >>> abs(first.value[0] - 2.0) < 0.3, abs(second.value[0] - 0.5) < 0.2
    (np.True_, np.True_)
    >>> desk.ask(lambda records: records.max(axis=0))
    Traceback (most recent call last):
        ...
    quorate.exceptions.QueriesExhaustedError: All queries=2 questions have been asked; ...
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        queries: int = 1,
        bound: Any = None,
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
        self.bound = bound
        self.dimension = dimension
        self.algorithm = algorithm
        self.radius = radius
        self.constants = constants
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> UserQueries:
        """Charge the whole budget and take the data (records with ``users``, or a UserData)."""
        bound = self._checked_bound()
        self._charge(X, None, users)
        data = self._gather(X, None, users)
        self._range, self._records = bound, data
        self._asked = 0
        self._generator = public_generator(self.random_state)
        self.guarantee_: Guarantee = self._promise(self._event(data.n_users))
        return self

    @property
    def remaining(self) -> int:
        """How many questions may still be asked."""
        return int(self.queries) - self._asked

    def ask(self, query: Query) -> Answer:
        """Return the private mean over users of ``query(records of one user)``.

        Parameters
        ----------
        query : callable
            From an array (records x features) to a vector of length ``dimension``. It must not
            remember anything from one user to the next.
        """
        if not callable(query):
            raise ParameterError(f"Expected query to be a function, got {type(query).__name__}.")
        if self._asked >= self.queries:
            raise QueriesExhaustedError(
                f"All queries={self.queries} questions have been asked; the budget that was set "
                "aside is spent. Fit again, with a new budget, to ask more."
            )
        self._asked += 1
        values = self._evaluate(query)
        if self.algorithm == "winsorized":
            return self._winsorized(values)
        run = self._budget.run(
            values,
            self._range,
            share=1.0 / self.queries,
            spread=None if self.radius is None else float(self.radius),
        )
        if self.algorithm == "clip":
            release = run.clip("you asked for it.")
        else:
            release = run.adapt(core=False if self.algorithm == "ball" else None)
        return Answer(
            value=release.mean + self._range.centre,
            error=release.error,
            algorithm=release.route,
        )

    @property
    def _budget(self) -> MeanBudget:
        return MeanBudget(
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            relation=self.relation,
            core=self.algorithm == "auto",
        )

    def _event(self, n_users: int) -> Event:
        if self.algorithm == "winsorized":
            return self._rotated(n_users).event
        return self._budget.event

    def _rotated(self, n_users: int) -> RotatedWinsorizedMean:
        return RotatedWinsorizedMean(
            bound=float(half_widths(self._range).max()),
            radius=float(self.radius or 0.0),
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            n_users=n_users,
            dimension=self.dimension,
            queries=self.queries,
            constants=self.constants,
        )

    def _winsorized(self, values: NDArray[np.float64]) -> Answer:
        mechanism = self._rotated(self._records.n_users)
        rotation = Rotation.random(self.dimension, random_state=self._generator)
        mean = mechanism.release(bounded_vectors(values, self._range), rotation=rotation)
        each = mechanism.coordinate
        error = laplace_error(
            np.full(mechanism.padded, each.noise_scale),
            radius=each.range.half_width,
            cut_share=0.0,
        )
        route = Route(name="winsorized", reason="you asked for it.", spread=self.radius)
        return Answer(value=mean + self._range.centre, error=error, algorithm=route)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the data behind: a saved object holds no records and answers nothing."""
        state = dict(super().__getstate__())
        if state.pop("_records", None) is not None:
            state["_asked"] = self.queries
        return state

    def _evaluate(self, query: Query) -> NDArray[np.float64]:
        """Return one value a user; whatever goes wrong for a user counts as the centre."""
        data: UserData = self._records
        rows, offsets = data.X, data.offsets
        values = np.full((data.n_users, self.dimension), np.nan)
        for user in range(data.n_users):
            records = rows[offsets[user] : offsets[user + 1]]
            # An error or a warning would tell something about one user.
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                    value = np.asarray(query(records), dtype=np.float64)
            except Exception:
                continue
            if value.shape == (self.dimension,):
                values[user] = value
        return values

    def _checked_bound(self) -> Bound:
        _validate.one_of(_ALGORITHMS, algorithm=self.algorithm)
        _validate.one_of(CONSTANTS, constants=self.constants)
        _validate.positive_integer(queries=self.queries, dimension=self.dimension)
        _validate.probability(delta=self.delta)
        if self.radius is not None:
            _validate.positive(radius=self.radius)
        if self.algorithm == "winsorized" and self.radius is None:
            raise ParameterError("algorithm='winsorized' needs radius=; use 'auto' without one.")
        if self.algorithm == "winsorized" and self.relation is not Relation.REPLACE:
            raise ParameterError("algorithm='winsorized' needs Relation.REPLACE; use 'auto'.")
        return as_bound(self.bound, self.dimension)
