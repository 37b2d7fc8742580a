"""What plans of learners of rules share: the error of the best rule, and how people enter.

Rules err on records, and people are sampled, whatever epsilon is: users who differ by what lies
``between`` them add an excess of their own, to every way of learning and to group privacy alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.exceptions import ParameterError
from quorate.planning.tasks.base import LearningTask
from quorate.planning.tasks.choices import people_excess

__all__ = ["RuleTask", "check_error_level"]


def check_error_level(error_level: float) -> None:
    """Refuse an error of the best rule at which there is nothing to learn."""
    if not 0 <= error_level < 0.5:
        raise ParameterError(f"Expected 0 <= error_level < 0.5, got error_level={error_level!r}.")


@dataclass(frozen=True, kw_only=True)
class RuleTask(LearningTask):
    """A rule that errs at most as often as a coin, and little more often than the best one.

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
        """A coin errs this much more often than the best one."""
        return 0.5 - self.error_level

    def _people(self, users: int) -> float:
        """Return the excess of sampling people, whatever epsilon is."""
        return people_excess(
            users=users,
            records=self.records,
            between=self.share_between,
            error_level=self.error_level,
            beta=self.beta,
        )

    def group_error(self, users: int, epsilon: float) -> float:
        """Return the error of hiding records one by one; people are sampled there as well."""
        found = super().group_error(users, epsilon) + self._people(users)
        return min(found, self.largest_error)
