"""The budget of one fit: what is left, what was done, what is known about records.

A fit keeps all of this here and not in its estimator, so that an estimator holds nothing that was
not promised, even if the promise fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from quorate.accounting.events import Event, compose_events
from quorate.accounting.rounding import float_down
from quorate.guarantees import Relation
from quorate.mechanisms.rough_records import (
    RECORD_LADDER,
    RecordRange,
    RoughRecords,
    rough_records_budget,
)
from quorate.users import UserData

__all__ = ["Purse"]


@dataclass(kw_only=True)
class Purse:
    """Budget, events and the records of a user, as a fit goes on.

    >>> import numpy as np
    >>> purse = Purse(epsilon=1.0, relation=Relation.REPLACE)
    >>> people = UserData(np.zeros((800, 1)), offsets=np.arange(0, 801, 4))
    >>> purse.typical_records(people), purse.left < 1.0
    (4, True)
    """

    epsilon: float
    relation: Relation
    records: RecordRange | None = None
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = self.epsilon

    @classmethod
    def of(cls, estimator: Any) -> Purse:
        """Start with the budget of an estimator, and with ``records`` if they are stated."""
        stated = None if estimator.records == "auto" else RecordRange.exactly(estimator.records)
        return cls(epsilon=float(estimator.epsilon), relation=estimator.relation, records=stated)

    @property
    def event(self) -> Event:
        """Everything that was done."""
        return compose_events(self.events)

    def buy_records(self, data: UserData, cuts: tuple[int, ...]) -> None:
        """Spend a little on the range of records that holds the median user."""
        rough = RoughRecords(
            cuts=cuts,
            epsilon=rough_records_budget(
                self.epsilon, relation=self.relation, n_users=data.n_users
            ),
            relation=self.relation,
        )
        self.records = rough.release(data.record_counts())
        self.events.append(rough.event)
        self.left = float_down(Fraction(self.left) - Fraction(rough.epsilon))

    def typical_records(self, data: UserData) -> int:
        """Return the number of records an algorithm is tuned to, stated or bought."""
        if self.records is None:
            self.buy_records(data, RECORD_LADDER)
        return max(1, self.records.lower if self.records is not None else 1)
