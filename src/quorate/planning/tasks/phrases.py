"""Planning popular phrases: how many people have to use a phrase for it to be found."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from quorate import _validate
from quorate._validate import exact
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.exceptions import ParameterError
from quorate.planning.plan import PublishedBound
from quorate.planning.solve import smallest_users
from quorate.planning.tasks.base import ErrorModel, PlanTask
from quorate.tabulate.phrases import needed, plan_unions

__all__ = ["PhrasesTask"]


@dataclass(frozen=True, kw_only=True)
class PhrasesTask(PlanTask):
    """Phrases that many people use, as in :class:`~quorate.tabulate.PopularPhrases`.

    The error is the share of people who have to use a phrase for it to be found.

    Parameters
    ----------
    size : int, default=100
        Number of different phrases that a person uses, of any one length.
    dimension : int, default=1
        Lengths.

    Examples
    --------
    >>> task = PhrasesTask(size=100, delta=1e-6)
    >>> task.error(100_000, 1.0) < 0.005 < task.error(10_000, 1.0)
    True
    """

    size: int = 100
    dimension: int = 1
    relation: Relation = Relation.ADD_REMOVE

    name: ClassVar[str] = "phrases"
    error_meaning: ClassVar[str] = "share of users who have to use a phrase for it to be found"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(size=self.size, dimension=self.dimension)
        if self.delta == 0:
            raise ParameterError("Popular phrases need delta > 0, such as 1e-6.")

    @property
    def largest_error(self) -> float:
        """The error if nothing is found."""
        return 1.0

    def error(self, users: int, epsilon: float) -> float:
        """Return the share of people who must use a phrase; their number is public."""
        failure = Fraction(exact(self.delta)) / 2
        account = Account.open(
            epsilon=epsilon, delta=self.delta, relation=self.relation, reserve=failure
        )
        unions = plan_unions(account, range(self.dimension), most=self.size, failure=failure)
        return min(self.largest_error, needed(unions, self.size, beta=self.beta) / users)

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the only algorithm."""
        del users, epsilon
        reason = (
            "three rounds, in which people divide their weight among phrases that are not found or "
            "dropped yet."
        )
        return "rounds", reason

    def baselines(self) -> dict[str, ErrorModel]:
        """Return nothing, because it does not matter how often a person uses a phrase."""
        return {}

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the users that suffice, by the law of the noise."""
        users = smallest_users(lambda n: self.error(n, epsilon), error)
        return PublishedBound(
            users=None if users is None else float(users),
            theorem="law of the noise",
            holds=True,
            note="whoever the people are",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return the lower bound for two populations: everybody uses a phrase, or nobody."""
        del error
        return self.two_crowds(epsilon)
