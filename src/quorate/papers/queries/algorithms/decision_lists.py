"""Decision lists from statistical queries: one round for each rule of the list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.learners.concepts.base import Concept, Constant, feature_names
from quorate.learners.concepts.boolean.decision_lists import DecisionList
from quorate.papers.queries.statistical import QueryAlgorithm, QueryOracle, StatisticalQuery

__all__ = ["DecisionListQueries"]

Rule = tuple[int, bool, int]


@dataclass(frozen=True)
class Reaches:
    """Whether a record of one label reaches a literal.

    No earlier rule decides it, and it satisfies the literal.
    """

    row_wise: ClassVar[bool] = True

    rules: tuple[Rule, ...]
    literal: tuple[int, bool] | None
    label: int

    def __call__(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        reached = y == self.label
        for feature, value, _ in self.rules:
            reached &= (X[:, feature] > 0.5) != value
        if self.literal is not None:
            feature, value = self.literal
            reached &= (X[:, feature] > 0.5) == value
        kept: NDArray[np.bool_] = reached
        return kept


@dataclass(frozen=True)
class DecisionListQueries(QueryAlgorithm):
    r"""Learn a 1-decision list, rule by rule (Rivest's algorithm with noisy answers).

    Each round queries, for every remaining literal and both labels, how many records are not
    decided by the list so far, satisfy the literal and have the label. The next rule is the literal
    that covers most records, among those for which the share of the other label is at most the
    noise level plus the tolerance. If no literal covers more than the tolerance, the more frequent
    remaining label is the default. Suppose that a list explains all labels and answers are within
    the tolerance :math:`\tau`. Then, as long as records are left, some literal covers one label
    only. Every rule errs with probability at most :math:`2\tau`, and the list with at most
    :math:`(2 \cdot \text{length} + 4d)\tau` in total.

    Parameters
    ----------
    features : int
        Number of Boolean features d.
    length : int, default=5
        The largest number of rules.
    tolerance : float, default=0.01
    noise : float, default=0.0
        The allowed share of wrong labels among the records that a literal covers.

    Examples
    --------
    >>> from quorate.papers.queries.oracles import ExactOracle
    >>> from quorate.papers.queries.populations import Population
    >>> names = ("x0", "x1", "x2")
    >>> rule = DecisionList(rules=((1, True, 1), (0, False, 0)), default=1, names=names)
    >>> found = DecisionListQueries(3).run(ExactOracle(Population.uniform_cube(3, rule)))
    >>> print(found)
    If x0 then predict 1, else if x1 then predict 1, else predict 0.
    """

    features: int
    length: int = 5
    tolerance: float = 0.01
    noise: float = 0.0

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features, length=self.length)
        _validate.probability(tolerance=self.tolerance)
        _validate.fraction(noise=self.noise)

    @property
    def n_features(self) -> int:
        """The number of Boolean features d."""
        return self.features

    @property
    def rounds(self) -> tuple[int, ...]:
        """Up to 4 d + 2 queries for each rule and two for the default."""
        return (4 * self.features + 2,) * self.length + (2,)

    def run(self, oracle: QueryOracle) -> Concept:
        """Make the queries, and return a list."""
        rules: tuple[Rule, ...] = ()
        while True:
            literals = tuple(self._literals_left(rules)) if len(rules) < self.length else ()
            answers = oracle.answer(self._queries(rules, literals)).reshape(-1, 2)
            rule = self._next_rule(literals, answers[1:])
            if rule is None:
                return self._list(rules, default=int(np.argmax(answers[0])))
            rules = (*rules, rule)

    def _literals_left(self, rules: tuple[Rule, ...]) -> Iterator[tuple[int, bool]]:
        used = {(feature, value) for feature, value, _ in rules}
        for feature in range(self.features):
            for value in (True, False):
                if (feature, value) not in used:
                    yield feature, value

    def _queries(
        self, rules: tuple[Rule, ...], literals: tuple[tuple[int, bool], ...]
    ) -> list[StatisticalQuery]:
        return [
            StatisticalQuery(
                function=Reaches(rules, literal, label),
                tolerance=self.tolerance,
                boolean=True,
                name=f"rule {len(rules)}: {literal} and label {label}",
            )
            for literal in (None, *literals)
            for label in (0, 1)
        ]

    def _next_rule(
        self, literals: tuple[tuple[int, bool], ...], answers: NDArray[np.float64]
    ) -> Rule | None:
        best, found = self.tolerance, None
        for literal, shares in zip(literals, answers, strict=True):
            label = int(np.argmax(shares))
            covered, wrong = float(shares.sum()), float(shares.min())
            if wrong <= self.tolerance + self.noise * covered and shares[label] > best:
                best, found = float(shares[label]), (*literal, label)
        return found

    def _list(self, rules: tuple[Rule, ...], default: int) -> Concept:
        while rules and rules[-1][2] == default:  # the default says the same
            rules = rules[:-1]
        if not rules:
            return Constant(default)
        names = feature_names(None, n_features=self.features)
        return DecisionList(rules=rules, default=default, names=names)
