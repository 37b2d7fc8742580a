"""Known distributions of labelled records, from which exact oracles answer.

A *population* is a finite list of records with probabilities. It contains no real data: it is the
distribution of a theorem, a simulation or a textbook.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept
from quorate.learners.concepts.boolean.booleans import all_patterns
from quorate.papers.queries.statistical import Reduction, StatisticalQuery

__all__ = ["Population"]


@dataclass(frozen=True, eq=False)
class Population:
    """Records with their probabilities; each user has ``records`` independent ones.

    Parameters
    ----------
    X : array of shape (N, d)
    y : array of shape (N,)
    probabilities : array of shape (N,)
        Non-negative; they add up to 1.
    records : int, default=1
        Number of records per user, over which a query about users is averaged.

    Examples
    --------
    >>> from quorate.learners.concepts import Conjunctions
    >>> cube = Population.uniform_cube(3, Conjunctions(3).concept(1))
    >>> positive = StatisticalQuery(function=lambda X, y: y, tolerance=0.1, boolean=True)
    >>> cube.mean(positive)
    0.5
    >>> cube.error(Conjunctions(3).concept(0))
    0.5
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    records: int = 1

    def __post_init__(self) -> None:
        shape = (len(self.X),)
        if self.X.ndim != 2 or self.y.shape != shape or self.probabilities.shape != shape:
            raise ParameterError("Expected X of shape (N, d), y and probabilities of shape (N,).")
        if not (np.all(self.probabilities >= 0) and abs(self.probabilities.sum() - 1) < 1e-9):
            raise ParameterError("Expected probabilities >= 0 that add up to 1.")

    @classmethod
    def uniform(cls, X: NDArray[np.float64], rule: Concept, *, records: int = 1) -> Population:
        """Return the uniform distribution over the rows of ``X``, labelled by ``rule``."""
        rows = np.asarray(X, dtype=np.float64)
        labels = rule.predict(rows).astype(np.float64)
        return cls(rows, labels, np.full(len(rows), 1 / len(rows)), records)

    @classmethod
    def uniform_cube(cls, n_features: int, rule: Concept, *, records: int = 1) -> Population:
        """Return the uniform distribution over all rows of d Booleans, labelled by ``rule``."""
        return cls.uniform(all_patterns(n_features).astype(np.float64), rule, records=records)

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    def mean(self, query: StatisticalQuery) -> float:
        """Return the mean value of a query: over records, or over users if it is about users.

        The maximum of m independent values of a Boolean query is low with probability (share of low
        values)**m.
        """
        values = query.on_records(self.X, self.y)
        if query.reduction is Reduction.MEAN or self.records == 1:
            return float(np.dot(self.probabilities, values))
        if not query.boolean:
            raise ParameterError("Expected a Boolean query where several records make one value.")
        low = float(np.dot(self.probabilities, values == query.low)) ** self.records
        return query.low * low + query.high * (1 - low)

    def error(self, rule: Concept) -> float:
        """Return the error probability of ``rule``."""
        return float(np.dot(self.probabilities, rule.predict(self.X) != self.y))

    def draw(self, n_users: int, *, random_state: RandomState = None) -> UserData:
        """Draw users, each with ``records`` independent records; for simulations.

        >>> from quorate.learners.concepts import Constant
        >>> Population.uniform_cube(2, Constant(1), records=4).draw(10).n_users
        10
        """
        generator = public_generator(random_state)
        total = n_users * self.records
        rows = generator.choice(len(self.X), size=total, p=self.probabilities)
        offsets = np.arange(0, total + 1, self.records)
        return UserData(
            self.X[rows], self.y[rows], offsets=offsets, ids=np.arange(n_users, dtype=np.int64)
        )
