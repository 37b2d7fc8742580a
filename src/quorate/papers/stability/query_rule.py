r"""Stable rules from any algorithm of statistical queries (G10, Algorithm 5).

A user answers each query from their own records and rounds the answer to a grid whose offset all
users share. Means of different users are close to each other, so they are mostly rounded to the
same value, and users with the same answers return the same rule. With one shared offset U for a
query, two users with means u, u' in the unit interval and I steps disagree with probability exactly
I |u - u'|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.users import UserData
from quorate.core.users.crowd import call_quietly
from quorate.core.users.public_choices import in_own_order
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept
from quorate.papers.queries.algorithms import (
    ConjunctionQueries,
    DecisionListQueries,
    DisjunctionQueries,
    HalfspaceQueries,
    SeparatorQueries,
)
from quorate.papers.queries.statistical import QueryAlgorithm, QueryOracle, StatisticalQuery
from quorate.papers.stability.codes import Code, DecisionListCode, HalfspaceCode, LiteralsCode
from quorate.papers.stability.rules import Keys, StableRule, key_array
from quorate.papers.stability.shared_seed import SharedSeed

__all__ = ["QueryRule", "RoundedOracle", "code_of", "query_records", "round_together"]


def round_together(value: float, offset: float, *, steps: int) -> float:
    """Round a number in the unit interval to a multiple of 1 / steps, up or down by the offset.

    >>> round_together(0.37, 0.2, steps=10), round_together(0.37, 0.9, steps=10)
    (0.3, 0.4)
    """
    return min(math.floor(steps * value + offset), steps) / steps


class RoundedOracle(QueryOracle):
    """Answer from one user's records, rounded with offsets that all users share.

    Parameters
    ----------
    X, y : arrays
        The user's records.
    offsets : callable
        Returns the offset in [0, 1) of the query with this number.
    steps : int, optional
        Steps of the grid; by default ceil(3 / tolerance) on the unit scale, as published.
    parts : int, optional
        Divide the records into this many parts and answer each query from the next part; by default
        every query uses all records.
    """

    def __init__(
        self,
        X: NDArray[np.float64],
        y: NDArray[np.float64],
        *,
        offsets: NDArray[np.float64],
        steps: int | None = None,
        parts: int | None = None,
    ) -> None:
        super().__init__()
        self._X, self._y = X, y
        self._offsets = offsets
        self._steps = steps
        self._parts = parts

    def _answer(self, queries: tuple[StatisticalQuery, ...]) -> NDArray[np.float64]:
        before = self.n_queries
        return np.array([self._one(query, before + i) for i, query in enumerate(queries)])

    def _one(self, query: StatisticalQuery, number: int) -> float:
        X, y = self._X, self._y
        if self._parts is not None:
            own = slice(number % self._parts, None, self._parts)
            X, y = X[own], y[own]
        mean = math.fsum(query.on_records(X, y)) / len(X) if len(X) else query.middle
        share = min(max((mean - query.low) / query.width, 0.0), 1.0)
        steps = self._steps or math.ceil(3 * query.width / query.tolerance)
        offset = float(self._offsets[number % len(self._offsets)])
        return query.low + query.width * round_together(share, offset, steps=steps)


def code_of(algorithm: QueryAlgorithm) -> Code:
    """Return the code of the rules that an algorithm of this library returns.

    >>> code_of(HalfspaceQueries(2, resolution=0.5)).size
    125
    """
    match algorithm:
        case DecisionListQueries():
            return DecisionListCode(algorithm.features, length=algorithm.length)
        case ConjunctionQueries() | DisjunctionQueries():
            return LiteralsCode(
                algorithm.features, any_of=isinstance(algorithm, DisjunctionQueries)
            )
        case HalfspaceQueries():
            return HalfspaceCode(algorithm.features, resolution=algorithm.resolution)
        case SeparatorQueries():
            return HalfspaceCode(algorithm.features, resolution=1.0, largest=algorithm.largest)
        case _:
            raise ParameterError(
                f"Expected code= beside {type(algorithm).__name__}: its rules need numbers that "
                "users can vote for. See quorate.papers.stability.codes."
            )


@dataclass(frozen=True)
class QueryRule(StableRule):
    r"""Run an algorithm of statistical queries on each user's records, with shared rounding.

    Parameters
    ----------
    algorithm : QueryAlgorithm
        An algorithm that makes queries and returns a rule; its randomness is public.
    code : Code, optional
        Numbering of its rules; predefined for the algorithms of
        :mod:`quorate.papers.queries.algorithms`.
    steps : int, optional
        Steps of the grid; by default ceil(3 / tolerance) of each query, as published. With fewer
        steps users agree more often, but answers are less accurate.
    fresh : bool, default=False
        Whether every query uses different records, as published; otherwise each query uses all
        records.

    Examples
    --------
    >>> from quorate.papers.queries.algorithms import ConjunctionQueries
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, size=(2000, 4))
    >>> y = X[:, 0] & X[:, 2]
    >>> users = UserData.from_arrays(X, y, users=np.repeat(np.arange(4), 500))
    >>> rule = QueryRule(ConjunctionQueries(4, tolerance=0.05))
    >>> [str(rule.concept(key, SharedSeed(1))) for key in rule.decide(users, SharedSeed(1))[:2]]
    ['Predict 1 if x0 and x2, else 0.', 'Predict 1 if x0 and x2, else 0.']
    """

    algorithm: QueryAlgorithm
    code: Code | None = None
    steps: int | None = None
    fresh: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.algorithm, QueryAlgorithm):
            raise ParameterError(f"Expected a QueryAlgorithm, got {type(self.algorithm).__name__}.")
        if self.steps is not None:
            _validate.positive_integer(steps=self.steps)
        _ = self.numbers

    @property
    def numbers(self) -> Code:
        """The code in use."""
        return code_of(self.algorithm) if self.code is None else self.code

    @property
    def size(self) -> int:
        """The number of code words."""
        return self.numbers.size

    @property
    def n_features(self) -> int:
        """The number of columns of ``X``."""
        return self.algorithm.n_features

    def records_needed(
        self, *, tolerance: float, beta: float, constants: str = "calibrated"
    ) -> float:
        """Return the records a user needs for ``fresh`` queries on which two users agree.

        The probability that they disagree on some query is at most ``beta``; :func:`query_records`
        returns the records per query of this ``tolerance``.

        >>> from quorate.papers.queries.algorithms import ConjunctionQueries
        >>> rule = QueryRule(ConjunctionQueries(4, tolerance=0.05), fresh=True)
        >>> f"{rule.records_needed(tolerance=0.05, beta=0.1):.0e}"
        '5e+07'
        """
        queries = self.algorithm.max_queries
        return queries * query_records(
            queries=queries, tolerance=tolerance, beta=beta, constants=constants
        )

    def concept(self, key: int, seed: SharedSeed) -> Concept:
        """Return the rule of a number."""
        del seed
        return self.numbers.decode(int(key))

    def decide(self, users: UserData, seed: SharedSeed) -> Keys:
        """Return the number of the rule that each user finds."""
        code, parts = self.numbers, self.algorithm.max_queries if self.fresh else None
        offsets = seed.uniforms("offsets", np.arange(self.algorithm.max_queries))
        users = in_own_order(users, word=seed.words("records", np.zeros(1, np.int64))[0])
        y = np.zeros(users.n_records) if users.y is None else users.y
        keys = []
        for first, last in pairwise(users.offsets.tolist()):
            oracle = RoundedOracle(
                users.X[first:last],
                y[first:last],
                offsets=offsets,
                steps=self.steps,
                parts=parts,
            )
            keys.append(self._one(oracle, code))
        return key_array(keys, size=code.size)

    def _one(self, oracle: RoundedOracle, code: Code) -> int:
        """Return one user's key; if the algorithm fails, the user gets the default."""

        def run() -> NDArray[np.object_]:
            return np.array([code.encode(self.algorithm.run(oracle))], dtype=object)

        found = call_quietly(run)
        key = 0 if found is None else found[0]
        return key if isinstance(key, int) and 0 <= key < code.size else 0


def query_records(
    *, queries: int, tolerance: float, beta: float, constants: str = "calibrated"
) -> float:
    """Return the records per query for which two users agree with probability 1 - beta.

    The calibrated number is (I q / beta)^2 ln(2 q / beta) / 2 for I = ceil(3 / tolerance), from I
    |u - u'| <= beta / q. The published number (Lemma 32, with the power of beta that its proof
    needs) is 10^6 q^2 ln(q^2 / (beta^4 tolerance^2)) / (beta^4 tolerance^2).

    >>> query_records(queries=9, tolerance=0.25, beta=0.1) < 5e6
    True
    """
    _validate.positive_integer(queries=queries)
    _validate.probability(tolerance=tolerance, beta=beta)
    _validate.one_of(("calibrated", "published"), constants=constants)
    if constants == "published":
        inner = math.log(queries**2 / (beta**4 * tolerance**2))
        return 1e6 * queries**2 * inner / (beta**4 * tolerance**2)
    steps = math.ceil(3 / tolerance)
    return (steps * queries / beta) ** 2 * math.log(2 * queries / beta) / 2
