"""The common part of plans of rules: the error of the best rule, and sampling of people.

Rules are evaluated on new people, so the differences between users (``between``) add an excess to
every method, including group privacy, whatever epsilon is.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.exceptions import ParameterError
from quorate.planning.tasks.base import LearningTask
from quorate.planning.tasks.choices import people_excess

__all__ = ["RuleTask", "check_error_level"]


def check_error_level(error_level: float) -> None:
    """Refuse an error of the best rule at which nothing can be learned."""
    if not 0 <= error_level < 0.5:
        raise ParameterError(f"Expected 0 <= error_level < 0.5, got error_level={error_level!r}.")


@dataclass(frozen=True, kw_only=True)
class RuleTask(LearningTask):
    """A rule whose error is compared with that of the best rule and of a random guess.

    Parameters
    ----------
    error_level : float, default=0.1
        Error of the best rule.
    """

    error_level: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_error_level(self.error_level)

    @property
    def largest_error(self) -> float:
        """The excess error of a random guess over the best rule."""
        return 0.5 - self.error_level

    def _people(self, users: int) -> float:
        """Return the excess error due to sampling of people, which does not depend on epsilon."""
        return people_excess(
            users=users,
            records=self.records,
            between=self.share_between,
            error_level=self.error_level,
            beta=self.beta,
        )

    def group_error(self, users: int, epsilon: float) -> float:
        """Return the error of group privacy, including the sampling of people."""
        found = super().group_error(users, epsilon) + self._people(users)
        return min(found, self.largest_error)
