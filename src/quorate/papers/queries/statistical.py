r"""Statistical queries, and the algorithms that use nothing else (K6).

A *statistical query* is a bounded function of one record and a tolerance; an *oracle* answers with
a number within the tolerance of the mean of the function. An algorithm that sees data only through
such answers runs unchanged on a known distribution, with an adversary, on a sample, privately with
a curator, and with noise that every user adds. Only the oracle changes
(:mod:`quorate.papers.queries.oracles`). [1]_ [2]_

Queries are made in *rounds*: all queries of a round are submitted together, and only then answered.
A :class:`NonAdaptive` algorithm has one round by construction: :meth:`NonAdaptive.queries` takes no
answers.

References
----------
.. [1] Kearns. Efficient noise-tolerant learning from statistical queries. J. ACM 45(6), 1998.
.. [2] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011, Section 5.
   Definitions 5.4 and 5.5; Boolean queries are 0 or 1 here, so a tolerance is half of theirs.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import is_of_caller
from quorate.core.once import OnceOnly
from quorate.core.users import UserData
from quorate.core.users.crowd import call_quietly
from quorate.core.users.public_choices import in_own_order
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept

__all__ = [
    "Evaluation",
    "NonAdaptive",
    "OneRound",
    "QueryAlgorithm",
    "QueryOracle",
    "Reduction",
    "StatisticalQuery",
    "binary_digits",
    "from_binary_digits",
]

Floats = NDArray[np.float64]

Evaluation = Callable[[NDArray[np.float64], NDArray[np.float64]], Any]
"""Maps features (N, d) and targets (N,) to N values, each a function of its own record alone."""


class Reduction(Enum):
    """How the values of one user's records become one value.

    >>> Reduction.ANY.value
    'the largest of the values of the records'
    """

    MEAN = "the mean of the values of the records"
    ANY = "the largest of the values of the records"


@dataclass(frozen=True, kw_only=True)
class StatisticalQuery:
    """A query for the mean of a bounded function of a record, up to a tolerance.

    Definition 5.4 of K.

    This class clips values to ``[low, high]`` and replaces NaN by the middle, so a function with a
    wrong range cannot break privacy; ``boolean`` values are rounded to the nearer end. The function
    is called on the records of one user at a time; if it raises an error for a user, the value is
    the middle. So no record can prevent an answer or change another user's value. It must not
    remember anything from one call to the next. Functions of this package with an attribute
    ``row_wise = True`` treat every record separately, and are called on all of them at once, which
    is much faster.

    Parameters
    ----------
    function : callable
        ``function(X, y)`` returns one value per record, each a function of its own row alone.
    tolerance : float
        The largest distance of an answer from the mean.
    low, high : float, default=0.0, 1.0
        The range of the values.
    boolean : bool, default=False
        Whether all values are ``low`` or ``high``.
    reduction : Reduction, default=Reduction.MEAN
        How one user's values are combined. With ``ANY`` the query is about users, not about
        records.
    name : str, default="query"
        Its name in reports.

    Examples
    --------
    >>> older = StatisticalQuery(
    ...     function=lambda X, y: X[:, 0] > 60, tolerance=0.05, boolean=True, name="older than 60"
    ... )
    >>> older.on_records(np.array([[70.0], [np.nan], [50.0]]), np.zeros(3))
    array([1., 0., 0.])
    >>> people = UserData.from_arrays([[70.0], [50.0], [80.0]], [0, 0, 0], users=["a", "a", "b"])
    >>> older.on_users(people)
    array([0.5, 1. ])
    """

    function: Evaluation = field(compare=False)
    tolerance: float
    low: float = 0.0
    high: float = 1.0
    boolean: bool = False
    reduction: Reduction = Reduction.MEAN
    name: str = "query"

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ParameterError("Expected function to be callable: function(X, y) -> values.")
        _validate.positive(tolerance=self.tolerance)
        _validate.ordered(self.low, self.high, name="range of a query")
        _validate.one_of(tuple(Reduction), reduction=self.reduction)
        if not math.isfinite(self.high - self.low):
            raise ParameterError(
                "Expected a range of finite width, got low and high too far apart."
            )

    @property
    def middle(self) -> float:
        """The replacement of a missing value."""
        return self.low / 2 + self.high / 2

    @property
    def width(self) -> float:
        """The width of the range."""
        return self.high - self.low

    def check(self, n_features: int) -> None:
        """Refuse a function that does not return one number per record of a table of zeros.

        No records are used, so it may raise an error; an oracle does this before it reads any.
        """
        if self._called(np.zeros((3, n_features)), np.zeros(3)) is None:
            raise ParameterError(
                f"Expected the function of {self.name!r} to return 3 numbers for 3 records of "
                f"{n_features} zeros, got an exception or another shape."
            )

    def on_records(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> Floats:
        """Return the value of each record, clipped to the range."""
        values = self._called(X, y)
        if values is None:
            alone = [self._called(X[i : i + 1], y[i : i + 1]) for i in range(len(X))]
            values = np.array([math.nan if each is None else each[0] for each in alone])
        return self._bounded(values)

    def on_users(self, users: UserData) -> Floats:
        """Return the value of each user; for users without records, the middle of the range."""
        offsets, counts = users.offsets, users.record_counts()
        together = getattr(self.function, "row_wise", False) and not is_of_caller(self.function)
        values = self._called(users.X, _targets(users)) if together else None
        if values is None:
            users = in_own_order(users)
            X, y = users.X, _targets(users)
            values = np.full(len(X), math.nan)
            # Warnings are silenced once for all calls: that takes longer than most functions.
            call_quietly(lambda: self._fill_by_user(values, X, y, offsets))
        bounded = self._bounded(values)
        reduced = np.full(users.n_users, self.middle)
        present = counts > 0
        if not present.any():
            return reduced
        starts = offsets[:-1][present]
        if self.reduction is Reduction.ANY:
            reduced[present] = np.maximum.reduceat(bounded, starts)
            return reduced
        # Offsets from the middle keep a sum of many records within what a float can hold; a
        # user's sum is taken over the user's own records, in their order.
        offset = (bounded - self.middle) / counts[users.user_index()]
        sums = users.user_sums(offset[:, np.newaxis])[:, 0]
        reduced[present] = np.clip(self.middle + sums[present], self.low, self.high)
        return reduced

    def _fill_by_user(
        self,
        values: Floats,
        X: NDArray[np.float64],
        y: NDArray[np.float64],
        offsets: NDArray[np.int64],
    ) -> None:
        """Write the values of each user's records; they stay NaN if the function raises."""
        for first, last in pairwise(offsets.tolist()):
            alone = self._called(X[first:last], y[first:last]) if first < last else None
            if alone is not None:
                values[first:last] = alone

    def _called(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> Floats | None:
        """Return the function's values, one float per record; None if it failed."""

        def run() -> Floats:
            return np.asarray(self.function(X, y)).astype(np.float64)

        values = call_quietly(run)
        return values if values is not None and values.shape == (len(X),) else None

    def _bounded(self, values: Floats) -> Floats:
        whole = np.where(np.isnan(values), self.middle, values)
        if self.boolean:
            return np.where(whole > self.middle, self.high, self.low)
        return np.clip(whole, self.low, self.high)


class QueryOracle(OnceOnly, ABC):
    """It answers queries, one round at a time, and counts them.

    Subclasses implement ``_answer``. ``asked`` stores the queries of each round, never an answer.
    With ``n_features`` every query is first tried on made-up records, so that errors in it are
    reported.
    """

    def __init__(self, n_features: int | None = None) -> None:
        super().__init__()
        self._one_round = threading.RLock()
        self.n_features = n_features
        self.asked: list[tuple[StatisticalQuery, ...]] = []

    def answer(self, queries: Sequence[StatisticalQuery]) -> Floats:
        """Answer one round of queries."""
        batch = tuple(queries)
        for query in batch:
            if not isinstance(query, StatisticalQuery):
                raise ParameterError(f"Expected a StatisticalQuery, got {type(query).__name__}.")
            if self.n_features is not None:
                query.check(self.n_features)
        if not batch:
            return np.zeros(0)
        self.refuse_elsewhere()
        with self._one_round:
            answers = self._answer(batch)
            self.asked.append(batch)
        return answers

    def ask(self, query: StatisticalQuery) -> float:
        """Answer one query, as a round of its own."""
        return float(self.answer([query])[0])

    @abstractmethod
    def _answer(self, queries: tuple[StatisticalQuery, ...]) -> Floats: ...

    @property
    def n_queries(self) -> int:
        """The number of queries that were answered."""
        return sum(map(len, self.asked))

    @property
    def n_rounds(self) -> int:
        """The number of rounds."""
        return len(self.asked)

    @property
    def smallest_tolerance(self) -> float:
        """The smallest tolerance of all queries; infinity without a query."""
        return min((query.tolerance for batch in self.asked for query in batch), default=math.inf)


class OneRound(QueryOracle):
    """Passes one round of queries to an oracle, and refuses further rounds.

    So what an algorithm learns from it is learned without adaptivity.

    Examples
    --------
    >>> class Half(QueryOracle):
    ...     def _answer(self, queries):
    ...         return np.full(len(queries), 0.5)
    >>> door = OneRound(Half())
    >>> query = StatisticalQuery(function=lambda X, y: y, tolerance=0.1)
    >>> door.ask(query)
    0.5
    >>> door.ask(query)
    Traceback (most recent call last):
        ...
    quorate.exceptions.ParameterError: The one round of queries is over: a non-adaptive algorithm
    makes all queries before it gets an answer.
    """

    def __init__(self, oracle: QueryOracle) -> None:
        super().__init__()
        self._oracle = oracle

    def _answer(self, queries: tuple[StatisticalQuery, ...]) -> Floats:
        if self.asked:
            raise ParameterError(
                "The one round of queries is over: a non-adaptive algorithm makes all queries "
                "before it gets an answer."
            )
        return self._oracle.answer(queries)


class QueryAlgorithm(ABC):
    """An algorithm that gets data only from an oracle; later rounds may depend on answers.

    Definition 5.5 of paper K. Subclasses give ``rounds`` and ``run``. Everything else is public:
    features, tolerances, randomness from a public seed.
    """

    @property
    @abstractmethod
    def rounds(self) -> tuple[int, ...]:
        """The largest number of queries of each round; public, and never exceeded."""

    @property
    def max_queries(self) -> int:
        """The largest total number of queries."""
        return sum(self.rounds)

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of columns of ``X``."""

    @abstractmethod
    def run(self, oracle: QueryOracle) -> Concept:
        """Make the queries, and return a rule."""


class NonAdaptive(QueryAlgorithm):
    """An algorithm whose queries are all fixed before any answer is seen.

    You can write your own algorithm as a small class:

    >>> from dataclasses import dataclass
    >>> from quorate.learners.concepts import Constant
    >>> @dataclass(frozen=True)
    ... class Majority(NonAdaptive):
    ...     n_features: int = 1
    ...     def queries(self):
    ...         return (StatisticalQuery(function=lambda X, y: y, tolerance=0.1, boolean=True),)
    ...     def conclude(self, answers):
    ...         return Constant(int(answers[0] > 0.5))
    >>> class Always(QueryOracle):
    ...     def _answer(self, queries):
    ...         return np.ones(len(queries))
    >>> print(Majority().run(Always()))
    Always predict 1.
    """

    @abstractmethod
    def queries(self) -> Sequence[StatisticalQuery]:
        """Return all queries; there are no answers yet."""

    @abstractmethod
    def conclude(self, answers: Floats) -> Concept:
        """Return a rule, given one answer per query."""

    @property
    def rounds(self) -> tuple[int, ...]:
        """One round of all queries."""
        return (len(self.queries()),)

    @final
    def run(self, oracle: QueryOracle) -> Concept:
        """Make all queries, then conclude."""
        return self.conclude(OneRound(oracle).answer(self.queries()))


def binary_digits(query: StatisticalQuery) -> tuple[StatisticalQuery, ...]:
    r"""Return Boolean queries whose answers give the answer of a real-valued one.

    With u = (g - low) / (high - low), digit j is the j-th binary digit of u, for j = 1, ..., k and
    :math:`k = \lceil\log_2(2(high - low)/\tau)\rceil`. The truncation error is at most
    :math:`\tau/2`, and tolerances :math:`\tau/(2(high - low))` add up to at most another
    :math:`\tau/2`, because the weights of the digits add up to less than one. All of them belong to
    one round.

    >>> ages = StatisticalQuery(function=lambda X, y: X[:, 0], tolerance=10.0, high=120.0)
    >>> len(binary_digits(ages))
    5
    """
    if query.reduction is not Reduction.MEAN:
        raise ParameterError("Expected a query about records: only means are sums of digits.")
    count = max(1, math.ceil(math.log2(2 * query.width / query.tolerance)))
    return tuple(
        StatisticalQuery(
            function=_Digit(query, place),
            tolerance=query.tolerance / (2 * query.width),
            boolean=True,
            name=f"digit {place} of {query.name}",
        )
        for place in range(1, count + 1)
    )


def from_binary_digits(query: StatisticalQuery, answers: Floats) -> float:
    """Return the answer of ``query``, computed from the answers of its digits.

    >>> ages = StatisticalQuery(function=lambda X, y: X[:, 0], tolerance=10.0, high=128.0)
    >>> from_binary_digits(ages, np.array([1.0, 0.0, 1.0, 0.0, 0.0]))
    80.0
    """
    weights = 0.5 ** np.arange(1, len(answers) + 1)
    return query.low + query.width * float(np.dot(weights, np.asarray(answers, np.float64)))


@dataclass(frozen=True)
class _Digit:
    """One binary digit of a query's value, as a function of records."""

    query: StatisticalQuery
    place: int

    @property
    def row_wise(self) -> bool:
        return bool(getattr(self.query.function, "row_wise", False))

    def __call__(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        share = (self.query.on_records(X, y) - self.query.low) / self.query.width
        # The upper end is 0.111..., not 1.000..., in this notation.
        share = np.minimum(share, math.nextafter(1.0, 0.0))
        digits: NDArray[np.bool_] = np.floor(np.ldexp(share, self.place)) % 2 == 1
        return digits


def _targets(users: UserData) -> NDArray[np.float64]:
    """Return the targets, or zeros if there are none, because a query may use features alone."""
    return np.zeros(users.n_records) if users.y is None else users.y
