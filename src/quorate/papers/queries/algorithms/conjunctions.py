r"""Conjunctions and disjunctions from statistical queries, one round each.

:class:`ConjunctionQueries` works under every distribution: a literal belongs to the conjunction
only if no positive record violates it. :class:`UniformConjunctionQueries` assumes that features are
independent fair coins. Then the mean of every query is one of a few public numbers, and the result
is the conjunction whose numbers are closest to the answers. That needs far fewer users.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept, Constant, feature_names
from quorate.learners.concepts.boolean.conjunctions import Literals
from quorate.papers.queries.statistical import NonAdaptive, Reduction, StatisticalQuery

__all__ = ["ConjunctionQueries", "DisjunctionQueries", "UniformConjunctionQueries"]

# machine: one row of predicted means per set of literals: 100,000 sets of 20 features fill 16 MB.
_MAX_SETS = 100_000


@dataclass(frozen=True)
class Violates:
    """Whether a record has the label ``label`` and a literal is false on it."""

    row_wise: ClassVar[bool] = True

    feature: int
    wanted: bool
    label: int

    def __call__(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        wrong: NDArray[np.bool_] = ((X[:, self.feature] > 0.5) != self.wanted) & (y == self.label)
        return wrong


@dataclass(frozen=True)
class Agrees:
    """Whether one feature and the label of a record are both true or both false."""

    row_wise: ClassVar[bool] = True

    feature: int

    def __call__(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        same: NDArray[np.bool_] = (X[:, self.feature] > 0.5) == (y == 1)
        return same


@dataclass(frozen=True)
class _LiteralQueries(NonAdaptive):
    """The common part of conjunctions and disjunctions: keep rarely violated literals."""

    features: int
    tolerance: float = 0.02
    negations: bool = False
    reduction: Reduction = Reduction.MEAN

    _any_of = False

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features)
        _validate.probability(tolerance=self.tolerance)
        _validate.one_of(tuple(Reduction), reduction=self.reduction)

    @property
    def n_features(self) -> int:
        """The number of Boolean features d."""
        return self.features

    @property
    def _literals(self) -> tuple[tuple[int, bool], ...]:
        signs = (True, False) if self.negations else (True,)
        return tuple((feature, sign) for sign in signs for feature in range(self.features))

    def queries(self) -> tuple[StatisticalQuery, ...]:
        """Query for each literal the share of records that exclude it."""
        label = 0 if self._any_of else 1
        return tuple(
            StatisticalQuery(
                # A disjunction is 1 wherever one of its literals is true.
                function=Violates(feature, wanted is not self._any_of, label),
                tolerance=self.tolerance,
                boolean=True,
                reduction=self.reduction,
                name=f"label {label} although {'' if wanted else 'not '}x{feature} is "
                f"{'true' if self._any_of else 'false'}",
            )
            for feature, wanted in self._literals
        )

    def conclude(self, answers: NDArray[np.float64]) -> Concept:
        """Keep the literals whose answer is within the tolerance of zero."""
        kept = tuple(
            literal
            for literal, answer in zip(self._literals, answers, strict=True)
            if answer <= self.tolerance
        )
        if not kept:
            return Constant(0 if self._any_of else 1)
        names = feature_names(None, n_features=self.features)
        return Literals(literals=kept, any_of=self._any_of, names=names)


@dataclass(frozen=True)
class ConjunctionQueries(_LiteralQueries):
    r"""Learn a conjunction under any distribution.

    No positive record violates a literal of the target, so its answer is at most the tolerance
    :math:`\tau` and it is kept. Every literal that is kept is violated with probability at most
    :math:`2\tau`. The rule is correct on all negative records, and wrong on positive ones with
    probability at most :math:`2\tau` times the number of kept literals.

    Parameters
    ----------
    features : int
        Number of Boolean features d.
    tolerance : float, default=0.02
    negations : bool, default=False
        Whether "not x_j" is also a literal; then there are 2 d queries instead of d.
    reduction : Reduction, default=Reduction.MEAN
        ``Reduction.ANY`` queries the share of *users* with a record that violates the literal,
        which grows with the number of records; it needs labels without errors.

    Examples
    --------
    >>> from quorate.papers.queries.oracles import ExactOracle
    >>> from quorate.papers.queries.populations import Population
    >>> rule = Literals(literals=((0, True), (2, False)), any_of=False, names=("x0", "x1", "x2"))
    >>> oracle = ExactOracle(Population.uniform_cube(3, rule))
    >>> print(ConjunctionQueries(3, negations=True).run(oracle))
    Predict 1 if x0 and not x2, else 0.
    """


@dataclass(frozen=True)
class DisjunctionQueries(_LiteralQueries):
    """Learn a disjunction under any distribution; the mirror image of :class:`ConjunctionQueries`.

    Examples
    --------
    >>> from quorate.papers.queries.oracles import ExactOracle
    >>> from quorate.papers.queries.populations import Population
    >>> rule = Literals(literals=((0, True), (2, True)), any_of=True, names=("x0", "x1", "x2"))
    >>> print(DisjunctionQueries(3).run(ExactOracle(Population.uniform_cube(3, rule))))
    Predict 1 if x0 or x2, else 0.
    """

    _any_of = True


@dataclass(frozen=True)
class UniformConjunctionQueries(NonAdaptive):
    r"""Learn a conjunction of a few features that are independent fair coins.

    With users of one record, query j is "x_j and the label agree"; its mean is :math:`1/2 + 2^{-k}`
    if x_j is one of the k literals and :math:`1/2` otherwise. With m records per user it is "some
    positive record has x_j false", which is false for all users if x_j is a literal and true for a
    share :math:`1 - (1 - 2^{-k-1})^m` of the users otherwise. All sets of at most ``literals``
    features are compared with the answers by least squares. It is exact if all answers are within
    the tolerance, which is half the distance of the two means at k = ``literals``.

    Parameters
    ----------
    features : int
        Number of Boolean features d.
    literals : int, default=3
        The largest number of features in the conjunction.
    records : int, default=1
        Number of records per user; public.

    Examples
    --------
    >>> from quorate.papers.queries.oracles import ExactOracle
    >>> from quorate.papers.queries.populations import Population
    >>> rule = Literals(literals=((1, True),), any_of=False, names=("x0", "x1", "x2"))
    >>> population = Population.uniform_cube(3, rule, records=4)
    >>> print(UniformConjunctionQueries(3, records=4).run(ExactOracle(population)))
    Predict 1 if x1, else 0.
    """

    features: int
    literals: int = 3
    records: int = 1

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features, records=self.records)
        _validate.positive_integer(literals=self.literals)
        sets = sum(comb(self.features, k) for k in range(self.literals + 1))
        if self.literals > self.features or sets > _MAX_SETS:
            raise ParameterError(
                f"Expected literals <= features and at most {_MAX_SETS} sets of literals, got "
                f"features={self.features} and literals={self.literals}. Use ConjunctionQueries."
            )

    @property
    def n_features(self) -> int:
        """The number of Boolean features d."""
        return self.features

    @property
    def tolerance(self) -> float:
        """Half the smallest distance between the two means of a query."""
        inside, outside = self._means(self.literals)
        return abs(outside - inside) / 2

    def queries(self) -> tuple[StatisticalQuery, ...]:
        """Make one query for each feature."""
        single = self.records == 1
        # A hair less than half: at half the distance two sets may be equally close.
        tolerance = self.tolerance * (1 - 2.0**-20)
        return tuple(
            StatisticalQuery(
                function=Agrees(feature) if single else Violates(feature, wanted=True, label=1),
                tolerance=tolerance,
                boolean=True,
                reduction=Reduction.MEAN if single else Reduction.ANY,
                name=f"x{feature} {'agrees with the label' if single else 'is excluded'}",
            )
            for feature in range(self.features)
        )

    def conclude(self, answers: NDArray[np.float64]) -> Concept:
        """Return the conjunction whose means are closest to the answers."""
        sets, means = self._table
        distances = ((means - np.asarray(answers)) ** 2).sum(axis=1)
        chosen = sets[int(np.argmin(distances))]
        if not chosen:
            return Constant(1)
        names = feature_names(None, n_features=self.features)
        return Literals(literals=tuple((j, True) for j in chosen), any_of=False, names=names)

    def _means(self, k: int) -> tuple[float, float]:
        """Return the mean of a query inside and outside a conjunction of ``k`` features."""
        if self.records == 1:
            return 0.5 + 0.5**k, 0.5
        return 0.0, -np.expm1(self.records * np.log1p(-(0.5 ** (k + 1))))

    @cached_property
    def _table(self) -> tuple[list[tuple[int, ...]], NDArray[np.float64]]:
        sets = [
            chosen
            for k in range(self.literals + 1)
            for chosen in combinations(range(self.features), k)
        ]
        means = np.empty((len(sets), self.features))
        for row, chosen in zip(means, sets, strict=True):
            inside, outside = self._means(len(chosen))
            row[:] = outside
            row[list(chosen)] = inside
        return sets, means
