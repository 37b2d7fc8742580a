"""How many records a typical user holds: stated publicly, or bought roughly.

The number is private. It only helps to choose an algorithm or to plan how many steps pay off; a
wrong one costs accuracy. :class:`HeldRecords` buys it with a pure part of an account, among ranges;
:func:`typical_records` with Gaussian noise, as one power of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.accounting.account import Account
from quorate.exceptions import ParameterError
from quorate.mechanisms.search.noisy_search import NoisySearch, looks_needed
from quorate.mechanisms.search.rough_records import RecordRange, RoughRecords, rough_records_budget
from quorate.releases.user_releases import UserReleases
from quorate.users import UserData
from quorate.users.crowd import Crowd

__all__ = ["RECORD_LADDER", "HeldRecords", "check_records", "typical_records"]

RECORD_LADDER = tuple(2**k for k in range(16))
"""Candidates of a rough estimate where an algorithm needs the number itself."""

_LARGEST_SHARE = 0.04


def check_records(records: Any) -> None:
    """Refuse what is neither a public number nor ``"auto"``.

    >>> check_records("auto")
    """
    if isinstance(records, str):
        if records != "auto":
            raise ParameterError(
                f"Expected records to be a public number or 'auto', got records={records!r}."
            )
    else:
        _validate.positive_integer(records=records)


def typical_records(run: UserReleases, records: int | str) -> float:
    """Return the public number, or release the power of two that half of the users reach.

    Examples
    --------
    >>> from quorate.accounting.account import Account
    >>> from quorate.users import UserData
    >>> people = UserData(np.zeros((30_000, 1)), offsets=np.arange(0, 30_001, 6))
    >>> run = UserReleases.start(people, Account.open(epsilon=5.0, delta=1e-6))
    >>> typical_records(run, "auto"), typical_records(run, 7)
    (8.0, 7.0)
    """
    if not isinstance(records, str):
        return float(records)
    looks = looks_needed(len(RECORD_LADDER))
    square = min(looks / (run.n_users / 8.0) ** 2, _LARGEST_SHARE * float(run.account.square))
    search = NoisySearch(
        thresholds=np.array(RECORD_LADDER, dtype=np.float64),
        target=run.n_users / 2.0,
        noise_multiplier=run.account.multiplier(square, count=looks),
        relation=run.relation,
    )
    counts = run.data.counts(UserData.record_counts, search.thresholds)
    return float(RECORD_LADDER[search.release_counts(counts, account=run.account)])


@dataclass
class HeldRecords:
    """What a fit knows about how many records a user holds: stated, bought, or nothing yet.

    >>> account = Account.open(epsilon=1.0)
    >>> people = UserData(np.zeros((800, 1)), offsets=np.arange(0, 801, 4))
    >>> held = HeldRecords(account)
    >>> held.typical(people), account.left < 1
    (4, True)
    >>> print(held.known)
    4 to 7 records
    """

    account: Account
    known: RecordRange | None = None

    @classmethod
    def stated(cls, records: int | str, account: Account) -> HeldRecords:
        """Start with a public number, or with nothing for ``"auto"``."""
        return cls(account, None if isinstance(records, str) else RecordRange.exactly(records))

    def buy(self, data: Crowd, cuts: tuple[int, ...]) -> None:
        """Spend a little on the range of records that holds the median user."""
        relation = self.account.relation
        rough = RoughRecords(
            cuts=cuts,
            epsilon=rough_records_budget(
                self.account.epsilon, relation=relation, n_users=data.n_users
            ),
            relation=relation,
        )
        below = data.counts(UserData.record_counts, np.array(cuts, dtype=np.float64) - 0.5)
        everybody = data.add_up(_one_each)
        held = np.diff(np.concatenate([[0], below, everybody]))
        self.known = rough.release_tally(held, account=self.account)

    def typical(self, data: Crowd) -> int:
        """Return the number of records an algorithm is tuned to, stated or bought."""
        if self.known is None:
            self.buy(data, RECORD_LADDER[1:13])
        return max(1, self.known.lower if self.known is not None else 1)


def _one_each(users: UserData) -> NDArray[np.int64]:
    return np.array([users.n_users])
