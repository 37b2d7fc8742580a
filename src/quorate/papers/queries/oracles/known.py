"""Oracles that know the distribution: exact ones, and adversarial ones within the tolerance.

An algorithm is correct for statistical queries if it is correct with *every* oracle that keeps the
tolerances. :func:`against_all_signs` runs one with all 2**t oracles that move each of t answers by
its whole tolerance, up or down. Answers in between are no harder for algorithms that compare them
with thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from quorate.core.public_randomness import RandomState, public_generator
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept
from quorate.papers.queries.populations import Population
from quorate.papers.queries.statistical import QueryAlgorithm, QueryOracle, StatisticalQuery

__all__ = ["ExactOracle", "MovedOracle", "RandomlyMovedOracle", "against_all_signs"]

# machine: a million runs of a cheap algorithm take minutes.
_MAX_SIGNS = 20


class ExactOracle(QueryOracle):
    """Answers with the exact mean.

    >>> from quorate.learners.concepts import Constant
    >>> oracle = ExactOracle(Population.uniform_cube(2, Constant(0)))
    >>> oracle.ask(StatisticalQuery(function=lambda X, y: X[:, 0], tolerance=0.1, name="x0"))
    0.5
    >>> oracle.n_queries, oracle.n_rounds, oracle.smallest_tolerance
    (1, 1, 0.1)
    """

    def __init__(self, population: Population) -> None:
        super().__init__(population.n_features)
        self._population = population

    def _answer(self, queries: tuple[StatisticalQuery, ...]) -> NDArray[np.float64]:
        return np.array([self._population.mean(query) for query in queries])


class MovedOracle(ExactOracle):
    """Moves the j-th answer by ``moves[j]`` tolerances, each between -1 and 1.

    >>> from quorate.learners.concepts import Constant
    >>> oracle = MovedOracle(Population.uniform_cube(2, Constant(0)), moves=[-1, 1])
    >>> oracle.ask(StatisticalQuery(function=lambda X, y: X[:, 0], tolerance=0.125, name="x0"))
    0.375
    """

    def __init__(self, population: Population, *, moves: Sequence[float]) -> None:
        super().__init__(population)
        self._moves = np.asarray(moves, dtype=np.float64)
        if not np.all(np.abs(self._moves) <= 1):
            raise ParameterError("Expected moves between -1 and 1, in tolerances.")

    def _answer(self, queries: tuple[StatisticalQuery, ...]) -> NDArray[np.float64]:
        first = self.n_queries
        if first + len(queries) > len(self._moves):
            raise ParameterError(f"Expected at most {len(self._moves)} queries, got another one.")
        moves = self._moves[first : first + len(queries)]
        return super()._answer(queries) + moves * [query.tolerance for query in queries]


class RandomlyMovedOracle(ExactOracle):
    """Moves every answer by a uniform random part of its tolerance, up or down.

    >>> from quorate.learners.concepts import Constant
    >>> oracle = RandomlyMovedOracle(Population.uniform_cube(2, Constant(0)), random_state=0)
    >>> answer = oracle.ask(StatisticalQuery(function=lambda X, y: X[:, 0], tolerance=0.1))
    >>> 0 < abs(answer - 0.5) <= 0.1
    True
    """

    def __init__(self, population: Population, *, random_state: RandomState = None) -> None:
        super().__init__(population)
        self._generator = public_generator(random_state)

    def _answer(self, queries: tuple[StatisticalQuery, ...]) -> NDArray[np.float64]:
        moves = self._generator.uniform(-1.0, 1.0, size=len(queries))
        return super()._answer(queries) + moves * [query.tolerance for query in queries]


def against_all_signs(algorithm: QueryAlgorithm, population: Population) -> Iterator[Concept]:
    """Yield an algorithm's results for all ways to move each answer by its tolerance.

    >>> from quorate.papers.queries.algorithms import UniformConjunctionQueries
    >>> from quorate.learners.concepts import Conjunctions
    >>> rule = Conjunctions(3).concept(1 + 9)
    >>> algorithm = UniformConjunctionQueries(3, literals=2)
    >>> found = set(against_all_signs(algorithm, Population.uniform_cube(3, rule)))
    >>> print(*found)
    Predict 1 if x0 and x2, else 0.
    """
    if algorithm.max_queries > _MAX_SIGNS:
        raise ParameterError(
            f"Expected at most {_MAX_SIGNS} queries, got {algorithm.max_queries}: there would be "
            "too many oracles. Use RandomlyMovedOracle."
        )
    for moves in product((-1.0, 1.0), repeat=algorithm.max_queries):
        yield algorithm.run(MovedOracle(population, moves=moves))
