r"""Linear separators of the Boolean cube under any distribution, by statistical queries (G10).

Corollary 33 of Ghazi et al. [1]_ needs an algorithm of statistical queries for linear separators
over :math:`\{0,1\}^d` under any distribution. The Chow parameters of
:class:`~quorate.papers.queries.algorithms.halfspaces.HalfspaceQueries` work for fair coins only.

Errors are found and corrected one at a time. Let :math:`z = (1, \bar x)` be a record with signs
instead of bits. A separator :math:`w^*` has :math:`\bar y \langle w^*, z\rangle > 0` at every
point, so

* a *point* at which the current vote errs gives a linear condition on :math:`w^*`. A point whose
  errors weigh more than twice the tolerance is found by fixing the bits of the cube one after the
  other, each time choosing the half with more errors: 2 d queries.
* if no single point weighs so much, the mean of :math:`\bar y z` over all errors is the
  normal vector of a linear condition, up to the tolerance: d + 1 queries.

The next vote satisfies all conditions; it is found by the perceptron algorithm in integers. [2]_

References
----------
.. [1] Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling. NeurIPS 2021,
   Theorem 5 and Corollary 33.
.. [2] Blum, Frieze, Kannan, Vempala. A polynomial-time algorithm for learning noisy linear
   threshold functions. Algorithmica 22, 1998: separators are learned by statistical queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.learners.concepts.base import Concept, feature_names
from quorate.learners.concepts.numeric.halfspaces import Halfspace
from quorate.papers.queries.statistical import QueryAlgorithm, QueryOracle, StatisticalQuery

__all__ = ["SeparatorQueries"]

Integers = NDArray[np.int64]

# machine: mistakes of the perceptron before it returns the best vote it has seen.
_MOST_MISTAKES = 20_000


@dataclass(frozen=True)
class ErrorsOf:
    """Whether a vote errs on a record whose first features have the given values."""

    row_wise: ClassVar[bool] = True

    weights: tuple[int, ...]
    prefix: tuple[bool, ...] = ()

    def __call__(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.bool_]:
        inside = np.ones(len(X), dtype=np.bool_)
        for feature, value in enumerate(self.prefix):
            inside &= (X[:, feature] > 0.5) == value
        # Small integers add up exactly in any order.
        wrong: NDArray[np.bool_] = inside & ((_signs(X) @ np.array(self.weights) > 0) != (y == 1))
        return wrong


@dataclass(frozen=True)
class MeanError:
    """One coordinate of the signed record times its signed label if a vote errs; otherwise 0."""

    row_wise: ClassVar[bool] = True

    errors: ErrorsOf
    coordinate: int

    def __call__(self, X: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        signs = np.where(y == 1, 1.0, -1.0) * _signs(X)[:, self.coordinate]
        return np.where(self.errors(X, y), signs, 0.0)


def _signs(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a one and the features, as + for true and - for false."""
    return np.hstack([np.ones((len(X), 1)), np.where(X > 0.5, 1.0, -1.0)])


@dataclass(frozen=True)
class SeparatorQueries(QueryAlgorithm):
    r"""Learn a linear separator of Boolean features, under any distribution.

    Suppose that every point of the distribution weighs more than :math:`2\tau` and that there are
    at most ``cuts`` points. Then the rule errs with probability at most :math:`2.5\tau`: no point
    is found twice, because the next vote is correct at that point, and an error above
    :math:`2.5\tau` has an answer above :math:`1.5\tau`. Otherwise conditions are means, and the
    rule with the lowest answered error is returned.

    Parameters
    ----------
    features : int
        Number of Boolean features d.
    tolerance : float, default=0.02
    cuts : int, optional
        The largest number of conditions; by default :math:`(d+1)^2`, about the number of halvings
        needed for d + 1 numbers of log d digits.
    largest : int, default=255
        The largest weight of a rule; it bounds the number of possible rules.

    Examples
    --------
    >>> from quorate.papers.queries.oracles import ExactOracle
    >>> from quorate.papers.queries.populations import Population
    >>> names = tuple(f"x{j}" for j in range(5))
    >>> uneven = Halfspace(weights=(5.0, -3.0, 2.0, 1.0, 1.0), offset=0.5, names=names)
    >>> points = np.random.default_rng(0).integers(0, 2, size=(12, 5)).astype(float)
    >>> population = Population.uniform(points, uneven)
    >>> population.error(SeparatorQueries(5).run(ExactOracle(population)))
    0.0
    """

    features: int
    tolerance: float = 0.02
    cuts: int | None = None
    largest: int = 255

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features, largest=self.largest)
        _validate.probability(tolerance=self.tolerance)
        if self.cuts is None:
            object.__setattr__(self, "cuts", (self.features + 1) ** 2)
        _validate.positive_integer(cuts=self.cuts)

    @property
    def n_features(self) -> int:
        """The number of Boolean features d."""
        return self.features

    @property
    def rounds(self) -> tuple[int, ...]:
        """For each condition one query for the errors, two per feature, and d + 1 for the means."""
        each = (1, *(2,) * self.features, self.features + 1)
        return each * (self.cuts or 0) + (1,)

    def run(self, oracle: QueryOracle) -> Concept:
        """Query errors until hardly any are left, and return the vote with the fewest errors."""
        conditions: list[Integers] = []
        weights = np.zeros(self.features + 1, dtype=np.int64)
        fewest, best = np.inf, weights
        while True:
            errors = ErrorsOf(tuple(weights.tolist()))
            answer = oracle.ask(self._share(errors))
            if answer < fewest:
                fewest, best = answer, weights
            if answer <= 1.5 * self.tolerance or len(conditions) == self.cuts:
                return self._rule(best)
            point = self._point(oracle, errors)
            if point is None:
                point = self._mean(oracle, errors, answer)
            conditions.append(point)
            weights = self._vote(conditions)

    def _share(self, errors: ErrorsOf) -> StatisticalQuery:
        where = "".join("1" if value else "0" for value in errors.prefix)
        return StatisticalQuery(
            function=errors, tolerance=self.tolerance, boolean=True, name=f"errors below {where!r}"
        )

    def _point(self, oracle: QueryOracle, errors: ErrorsOf) -> Integers | None:
        """Return the condition of a point at which there certainly are errors, if one is found."""
        prefix: tuple[bool, ...] = ()
        for _ in range(self.features):
            halves = [(*prefix, False), (*prefix, True)]
            found = oracle.answer([self._share(ErrorsOf(errors.weights, each)) for each in halves])
            prefix = halves[int(found[1] > found[0])]
            if max(found) <= self.tolerance:
                return None
        signs = np.array([1, *(1 if value else -1 for value in prefix)], dtype=np.int64)
        wrong = bool(signs @ np.array(errors.weights) > 0)
        return -self.largest * signs if wrong else self.largest * signs

    def _mean(self, oracle: QueryOracle, errors: ErrorsOf, answer: float) -> Integers:
        """Return the mean condition of all errors, as integers."""
        queries = [
            StatisticalQuery(
                function=MeanError(errors, coordinate),
                tolerance=self.tolerance,
                low=-1.0,
                high=1.0,
                name=f"mean of errors, {coordinate}",
            )
            for coordinate in range(self.features + 1)
        ]
        mean = oracle.answer(queries) / max(answer, self.tolerance)
        return np.rint(self.largest * np.clip(mean, -1.0, 1.0)).astype(np.int64)

    def _vote(self, conditions: list[Integers]) -> Integers:
        """Return integers that satisfy all conditions, or most of them if the search is long."""
        rows = np.array(conditions)
        rows = rows // max(1, int(np.gcd.reduce(rows, axis=None)))
        weights = np.zeros(rows.shape[1], dtype=np.int64)
        fewest, best = len(rows) + 1, weights
        for _ in range(_MOST_MISTAKES):
            kept = rows @ weights
            broken = int(np.count_nonzero(kept <= 0))
            if broken < fewest:
                fewest, best = broken, weights
            if broken == 0:
                break
            weights = weights + rows[int(np.argmin(kept))]
        return self._short(best)

    def _short(self, weights: Integers) -> Integers:
        """Return the same vote with weights of at most ``largest``, rounded if necessary."""
        weights = weights // max(1, int(np.gcd.reduce(weights)))
        longest = int(np.abs(weights).max())
        if longest <= self.largest:
            return weights
        # Half up, in integers: the same on every machine.
        return (2 * self.largest * weights + longest) // (2 * longest)

    def _rule(self, weights: Integers) -> Concept:
        names = feature_names(None, n_features=self.features)
        offset, *others = map(float, weights.tolist())
        return Halfspace(weights=tuple(others), offset=offset, names=names)
