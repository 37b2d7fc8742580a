"""Plans for parities and for the smallest error of a class, from proved numbers of users."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.learners.parity_learner import ParityLearner
from quorate.learners.smallest_error_search import MinErrorSearch
from quorate.planning.limits import packing_users
from quorate.planning.plan import PublishedBound
from quorate.planning.tasks.base import ErrorModel, PlanTask

__all__ = ["ParityTask", "SmallestErrorTask"]

# Errors that a plan can speak of, from half down to a five-hundredth.
_ERRORS = tuple(0.5 * 2.0 ** (-step / 4) for step in range(1, 33))


@dataclass(frozen=True, kw_only=True)
class _ProvedTask(PlanTask):
    """Shared by the tasks of this module: the estimator computes the users that an error needs."""

    @property
    def largest_error(self) -> float:
        """A coin."""
        return 0.5

    def users_for(self, error: float, epsilon: float) -> int:
        """Return how many users the estimator requires."""
        raise NotImplementedError

    def error(self, users: int, epsilon: float) -> float:
        """Return the smallest listed error for which this many users are proved to suffice."""
        reached = (e for e in reversed(_ERRORS) if self.users_for(e, epsilon) <= users)
        return next(reached, self.largest_error)

    def baselines(self) -> dict[str, ErrorModel]:
        """Return nothing, because no simpler method is known to work."""
        return {}


@lru_cache(maxsize=256)
def _search(error: float, records: int) -> MinErrorSearch:
    """Return a search that caches its gap, which does not depend on epsilon."""
    return MinErrorSearch(alpha=error, records=records, reach=0.5)


@dataclass(frozen=True, kw_only=True)
class SmallestErrorTask(_ProvedTask):
    """The error of the best rule, as in :class:`~quorate.learners.PrivateMinError`.

    Parameters
    ----------
    size : int, default=1000
        Rules.

    Examples
    --------
    >>> SmallestErrorTask(records=64, size=100).error(2000, 1.0) < 0.1
    True
    """

    size: int = 1000

    name: ClassVar[str] = "smallest-error"
    error_meaning: ClassVar[str] = "distance from the error of the best rule, if people are alike"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(size=self.size)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions behind the figures."""
        return (
            "Assumes that people are alike, because shares of people above a rate determine "
            "the error only then.",
        )

    def users_for(self, error: float, epsilon: float) -> int:
        """Return the number of users required by Lemma 4.5 with all constants."""
        search = _search(error, self.records)
        return search.users_needed(epsilon=epsilon, beta=self.beta, size=self.size)

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the only algorithm."""
        del users, epsilon
        return "binary_search", "private comparisons halve the interval of possible errors."

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the number of users required by Lemma 4.5."""
        return PublishedBound(
            users=float(self.users_for(min(error, 0.49), epsilon)),
            theorem="Lemma 4.5 of Li, Wang, Ye (2024)",
            holds=False,
            note="constants of this library; people who are alike",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the lower bound for two populations: the rule is always wrong, or never."""
        del error
        return self.two_crowds(epsilon)


@dataclass(frozen=True, kw_only=True)
class ParityTask(_ProvedTask):
    """A parity of Boolean features, as in :class:`~quorate.learners.ParityLearner`.

    The inputs are arbitrary, and the labels come from a parity. If features are independent fair
    coins, far fewer users suffice; ``sufficient`` says how many.

    Parameters
    ----------
    dimension : int, default=10
        Boolean features.

    Examples
    --------
    >>> ParityTask(dimension=16).error(20_000, 1.0) < 0.1
    True
    """

    dimension: int = 10

    name: ClassVar[str] = "parity"
    error_meaning: ClassVar[str] = "error of the parity that is found, if one has none"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(dimension=self.dimension)
        if self.relation is not Relation.REPLACE:
            raise ParameterError(
                "Expected Relation.REPLACE: how users are split into parts depends on their number."
            )

    def _learner(self, epsilon: float, error: float, inputs: str) -> ParityLearner:
        return ParityLearner(epsilon, inputs=inputs, error=error, failure=self.beta)

    def users_for(self, error: float, epsilon: float) -> int:
        """Return how many users the learner needs for arbitrary inputs."""
        return self._learner(epsilon, error, "any").users_needed(self.dimension)

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the algorithm for people with too few records to solve the equations alone."""
        del users, epsilon
        return "one_record", "users cannot be counted on to solve alone."

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the number of users required by Theorem 4.4 with the constants of this library."""
        return PublishedBound(
            users=float(self.users_for(min(error, 0.49), epsilon)),
            theorem="Theorem 4.4 of Kasiviswanathan et al. (2011)",
            holds=False,
            note="constants of this library",
        )

    def sufficient(self, *, epsilon: float, error: float) -> tuple[PublishedBound, ...]:
        """Return the users that suffice if features are independent fair coins."""
        users = self._learner(epsilon, min(error, 0.49), "uniform").users_needed(self.dimension)
        return (
            PublishedBound(
                users=float(users),
                theorem="Theorem 4.4 of Kasiviswanathan et al. (2011)",
                holds=False,
                note="features that are independent fair coins; the parity is then found exactly",
            ),
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the packing bound over all parities.

        Any two of them differ on half of the inputs.
        """
        if error >= 0.25:
            return PublishedBound(
                users=1.0, theorem="no theorem", holds=True, note="half of two parities may do"
            )
        users = packing_users(
            log_alternatives=self.dimension * math.log(2.0),
            epsilon=epsilon,
            beta=self.beta,
            relation=self.relation,
        )
        return PublishedBound(
            users=max(1.0, users),
            theorem="Lemma 39 (packing) of Ghazi et al. (2023)",
            holds=True,
            note="uniform inputs, on which any two parities differ by half",
        )
