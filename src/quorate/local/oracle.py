r"""The local model: queries to single users, charged before an answer is drawn (K5).

A :class:`LocalOracle` has the records of users, as if those of each user were on the user's own
device. It only draws answers of randomizers, after charging that user's own budget. A query that
exceeds the user's remaining budget is refused, and nothing is drawn. The result is a
:class:`Transcript`: the queries, the users who were asked, and the answers. [1]_

References
----------
.. [1] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011, Definitions
   5.1 to 5.3 and 5.13.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate._validate import exact, float_up, is_of_caller
from quorate.core.account.account import Account, noise_for
from quorate.core.guarantees import Approximate, Guarantee, Relation, Trust
from quorate.core.users import UserData
from quorate.core.users.crowd import Crowd, call_quietly
from quorate.core.users.public_choices import in_own_order
from quorate.exceptions import ParameterError, QueriesExhaustedError, ReplayMismatchError
from quorate.local.randomizers.known_laws import Randomizer

__all__ = ["Exchange", "LocalOracle", "Report", "Transcript"]

Values = Callable[[UserData], Any]
"""Maps users to one value each, a function of that user's records alone."""


@dataclass(frozen=True)
class Report:
    """A query to a user: what to compute from the records, and how to randomize it.

    Parameters
    ----------
    values : callable
        Takes a :class:`~quorate.core.users.UserData`, and returns one value (or row) per user. It
        is called for one user at a time, unless it belongs to this package and has the attribute
        ``row_wise = True``, so no user's value depends on another's records. Where it raises, the
        value is NaN, which every randomizer reads as a public default.
    randomizer : Randomizer
    name : str, default="report"

    Examples
    --------
    >>> from quorate.local.randomizers.known_laws import BinaryResponse
    >>> Report(lambda users: users.user_means()[:, 0], BinaryResponse(0.5), name="is it 1?").cost
    Fraction(1, 2)
    """

    values: Values = field(compare=False)
    randomizer: Randomizer
    name: str = "report"

    def __post_init__(self) -> None:
        if not callable(self.values) or not isinstance(self.randomizer, Randomizer):
            raise ParameterError("Expected a function of users and a Randomizer.")

    @property
    def cost(self) -> Fraction:
        """The exact cost of one answer."""
        return self.randomizer.cost

    def of(self, users: UserData) -> Any:
        """Return one value per user; NaN for users without a value."""
        if getattr(self.values, "row_wise", False) and not is_of_caller(self.values):
            values = call_quietly(lambda: np.asarray(self.values(users), dtype=np.float64))
            if values is not None and values.shape == (users.n_users, *self.randomizer.shape):
                return values
        # One user's odd value must not change how another's is read: each is converted alone.
        dtype = np.float64 if self.randomizer.numeric else object
        found = np.full((users.n_users, *self.randomizer.shape), math.nan, dtype=dtype)
        own = in_own_order(users)
        for place in range(users.n_users):
            value = self._alone(own.take([place]))
            if value is not None:
                found[place] = value
        return found

    def of_places(self, users: Crowd, places: NDArray[np.int64]) -> Any:
        """Return the values of the users at these indices of a crowd, in this order."""
        order = np.argsort(places)
        parts = users.take(places[order]).map(self.of)
        found = np.concatenate([self.of(users.nobody()), *parts])
        values = np.empty_like(found)
        values[order] = found
        return values

    def _alone(self, user: UserData) -> Any:
        """Return the value of one user, or None if there is none of the right shape."""

        def run() -> Any:
            (value,) = self.values(user)
            if not self.randomizer.numeric:
                return value
            number = np.asarray(value, dtype=np.float64)
            return number if number.shape == self.randomizer.shape else None

        return call_quietly(run)

    def probability(self, answer: Any, user: UserData) -> float:
        """Return the probability that a user with these records gives this answer."""
        return self.randomizer.probability(answer, self.of(user)[0])


@dataclass(frozen=True)
class Exchange:
    """One query to several users, and their answers."""

    places: NDArray[np.int64]
    report: Report
    answers: NDArray[Any]


@dataclass
class Transcript:
    """Everything that left the devices, in order; it can be priced and replayed."""

    n_users: int
    exchanges: list[Exchange] = field(default_factory=list)

    def spent(self) -> list[Fraction]:
        """Return what each user paid.

        >>> Transcript(n_users=2).spent()
        [Fraction(0, 1), Fraction(0, 1)]
        """
        totals = [Fraction(0)] * self.n_users
        for exchange in self.exchanges:
            for place in exchange.places.tolist():
                totals[place] += exchange.report.cost
        return totals

    @property
    def epsilon(self) -> Fraction:
        """The largest cost of a user: the epsilon of the whole transcript."""
        return max(self.spent(), default=Fraction(0))

    def log_probability(self, users: UserData) -> float:
        """Return the log probability of all answers, if the users had these records.

        Later questions are functions of earlier answers, so the probabilities of the answers
        multiply, however the questions were chosen.
        """
        total = 0.0
        for exchange in self.exchanges:
            for place, answer in zip(exchange.places.tolist(), exchange.answers, strict=True):
                total += math.log(exchange.report.probability(answer, users.take([place])))
        return total

    def replay(self) -> Replay:
        """Return an oracle that gives the same answers to the same queries, without any data."""
        return Replay(self)


class Replay:
    """Answers from a transcript; a query that is not in the transcript is refused."""

    def __init__(self, transcript: Transcript) -> None:
        self.n_users = transcript.n_users
        self._left: Iterator[Exchange] = iter(list(transcript.exchanges))

    def ask(self, places: ArrayLike, report: Report) -> NDArray[Any]:
        """Return the recorded answers to this query at this position of the transcript."""
        wanted = np.asarray(places, dtype=np.int64)
        exchange = next(self._left, None)
        if (
            exchange is None
            or exchange.report != report
            or not np.array_equal(exchange.places, wanted)
        ):
            raise ReplayMismatchError("The transcript holds another question at this point.")
        return exchange.answers


class LocalOracle:
    r"""Query users one by one, each within a budget of their own.

    Definitions 5.2 and 5.3 of paper K.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``, or
        :math:`(\varepsilon, \delta)`-DP
    neighbours : replace all records of one user
    trust : local
    public : which users are asked, what, and when; the number of users; all parameters
    numerics : exact
    proof : Let one user's records change. Queries are functions of earlier answers, so the same
        answers lead to the same queries. Answers of other users have the same law; an answer of
        this user under a randomizer of cost c changes its probability by a factor of at most
        :math:`e^c`. The costs of this user's answers, exact fractions, add up to at most
        :math:`\varepsilon`: each is added before the draw, and a query whose cost does not fit is
        refused without a draw. The failure probabilities of approximate randomizers add up in the
        same way.

    Parameters
    ----------
    users : UserData, or another crowd
        The index of a user is that in the order of the crowd.
    epsilon : float or Fraction
        The budget of each user.
    delta : float, default=0.0
        The same for failure probabilities, if randomizers have any.
    one_shot : bool, default=False
        Whether only one batch of queries may be made (the non-interactive model), by
        :meth:`ask_all`.
    account : Account, optional
        The account that is charged, once and in advance, for all possible queries.

    Examples
    --------
    >>> from quorate.local.randomizers.known_laws import BinaryResponse
    >>> people = UserData.from_arrays([[1.0], [0.0]], users=["ann", "bob"])
    >>> oracle = LocalOracle(people, epsilon=1.0)
    >>> smokes = Report(lambda users: users.user_means()[:, 0], BinaryResponse(0.75))
    >>> oracle.ask([0, 1], smokes).shape
    (2,)
    >>> oracle.ask([1], smokes)
    Traceback (most recent call last):
        ...
    quorate.exceptions.QueriesExhaustedError: User 1 has 0.25 of epsilon=1 left, this query costs
    0.75: nothing was drawn.
    """

    def __init__(
        self,
        users: Crowd,
        epsilon: float | Fraction,
        *,
        delta: float = 0.0,
        one_shot: bool = False,
        account: Account | None = None,
    ) -> None:
        _validate.positive(epsilon=epsilon)
        _validate.delta(delta=delta)
        if not isinstance(users, Crowd):
            raise ParameterError(f"Expected a UserData, got {type(users).__name__}.")
        self.epsilon, self.delta = exact(epsilon), exact(delta)
        self.one_shot = one_shot
        self.n_users = users.n_users
        self.transcript = Transcript(self.n_users)
        if account is None:
            account = Account.open(
                epsilon=epsilon, delta=delta, reserve=delta, trust=Trust.LOCAL, unit=users.unit
            )
        if account.relation is not Relation.REPLACE:
            raise ParameterError(
                "Expected an account about replacing a user: that a user answers is public."
            )
        whole = Approximate(float_up(epsilon), float_up(delta)) if delta else self.epsilon
        self._noise = noise_for(account, whole)
        self._account: Account | None = account
        self._numerics = self._noise.numerics
        self._users: Crowd | None = users
        self._spent = [Fraction(0)] * self.n_users
        self._failures = [Fraction(0)] * self.n_users
        self._lock = threading.Lock()
        self._closed = False

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee for all possible queries."""
        return Guarantee(
            epsilon=float_up(self.epsilon),
            delta=float_up(self.delta),
            trust=Trust.LOCAL,
            numerics=self._numerics,
        )

    def left(self, place: int) -> Fraction:
        """Return the remaining budget of one user; it is public."""
        return self.epsilon - self._spent[place]

    def ask(self, places: ArrayLike, report: Report) -> NDArray[Any]:
        """Send one query to some users; later queries may depend on earlier answers.

        Parameters
        ----------
        places : integers
            Indices of users, each at most once.
        report : Report
        """
        if self.one_shot:
            raise ParameterError("Expected ask_all: this oracle takes one batch of questions.")
        return self._ask([(self._places(places), report)])[0]

    def ask_all(self, questions: Sequence[tuple[ArrayLike, Report]]) -> list[NDArray[Any]]:
        """Send all queries at once; a one-shot oracle is closed afterwards.

        If one query exceeds a budget, none is sent and the oracle does not change.
        """
        return self._ask([(self._places(places), report) for places, report in questions])

    def _ask(self, questions: list[tuple[NDArray[np.int64], Report]]) -> list[NDArray[Any]]:
        if self._account is not None:
            self._account.refuse_elsewhere()
        with self._lock:
            users = self._users
            if users is None or self._closed:
                raise QueriesExhaustedError(
                    "This oracle is closed: it has no records, or its only batch of queries was "
                    "answered."
                )
            self._charge(questions)
            self._closed = self.one_shot
            answers = []
            for places, report in questions:
                drawn = report.randomizer.draw(report.of_places(users, places), self._noise)
                self.transcript.exchanges.append(Exchange(places, report, drawn))
                answers.append(drawn)
            return answers

    def _charge(self, questions: list[tuple[NDArray[np.int64], Report]]) -> None:
        """Add the costs of all queries, or raise and add nothing."""
        spent, failures = list(self._spent), list(self._failures)
        for places, report in questions:
            cost, failure = report.cost, exact(report.randomizer.delta)
            for place in places.tolist():
                spent[place] += cost
                failures[place] += failure
                if spent[place] > self.epsilon:
                    left = float(self.epsilon - spent[place] + cost)
                    raise QueriesExhaustedError(
                        f"User {place} has {left:.6g} of epsilon={float(self.epsilon):.6g} left, "
                        f"this query costs {float(cost):.6g}: nothing was drawn."
                    )
                if failures[place] > self.delta:
                    raise QueriesExhaustedError(
                        f"User {place} may fail with delta={float(self.delta):.6g} in total, "
                        f"these queries with {float(failures[place]):.6g}: nothing was drawn."
                    )
        self._spent, self._failures = spent, failures

    def _places(self, places: ArrayLike) -> NDArray[np.int64]:
        numbers = np.asarray(places)
        if numbers.size == 0:
            numbers = numbers.astype(np.int64)
        _validate.integer_dtype(places=numbers.dtype)
        inside = np.all((numbers >= 0) & (numbers < self.n_users))
        if numbers.ndim != 1 or not inside or len(np.unique(numbers)) < len(numbers):
            raise ParameterError(
                f"Expected different numbers of users from 0 to {self.n_users - 1} in places."
            )
        return numbers.astype(np.int64)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the records and the noise, so that a saved oracle answers nothing."""
        state = {name: value for name, value in vars(self).items() if name not in ("_lock",)}
        return state | {"_users": None, "_noise": None, "_account": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"LocalOracle(epsilon={float(self.epsilon):g}, delta={float(self.delta):g})"
