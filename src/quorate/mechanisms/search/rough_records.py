"""A rough private estimate of how many records a user has.

Which score learns best depends on the number of records per user, which is private. If a number is
publicly known, the caller states it. Otherwise a small share of the budget is used to choose, among
a few public ranges, the *range* that contains the number of records of the median user. The answer
is only used to choose an algorithm; every algorithm keeps its sensitivity, whatever the answer is.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact
from quorate.core.account.account import Account
from quorate.core.guarantees import Guarantee, Pure, Relation
from quorate.core.people import People
from quorate.core.users.data import UserData
from quorate.exceptions import ParameterError
from quorate.mechanisms.choices.choose import ChooseBest

__all__ = ["RECORD_LADDER", "RecordRange", "RoughRecords", "rough_records_budget"]

RECORD_LADDER = tuple(2**k for k in range(16))
"""Candidates of a rough estimate where an algorithm needs the number itself."""
# derived: a wrong range among few has the chance exp(-epsilon * users / 2), here e^-10.
_ENOUGH = 20
_LARGEST_SHARE = Fraction(1, 10)


@dataclass(frozen=True)
class RecordRange:
    """The number of records of a typical user: at least ``lower``, and below ``upper`` if known.

    >>> print(RecordRange(4, 8))
    4 to 7 records
    >>> print(RecordRange(8))
    8 records or more
    """

    lower: int
    upper: int | None = None

    def __post_init__(self) -> None:
        _validate.non_negative_integer(lower=self.lower)
        if self.upper is not None and not self.upper > self.lower:
            raise ParameterError(
                f"Expected upper > lower, got lower={self.lower} and upper={self.upper}."
            )

    @classmethod
    def exactly(cls, records: int) -> RecordRange:
        """Return the range of a number that was stated publicly."""
        _validate.positive_integer(records=records)
        return cls(int(records), int(records) + 1)

    def __str__(self) -> str:
        if self.upper is None:
            return f"{self.lower} records or more"
        if self.upper == self.lower + 1:
            return f"{self.lower} record{'' if self.lower == 1 else 's'}"
        return f"{self.lower} to {self.upper - 1} records"


def rough_records_budget(
    epsilon: float | Fraction, *, relation: Relation, n_users: int
) -> Fraction:
    """Return the epsilon of a rough estimate: a tenth of ``epsilon``, or less for many users.

    The number of users is used under ``Relation.REPLACE`` only, where it is public.

    >>> rough_records_budget(1.0, relation=Relation.REPLACE, n_users=1000)
    Fraction(1, 50)
    >>> rough_records_budget(1.0, relation=Relation.ADD_REMOVE, n_users=1000)
    Fraction(1, 10)
    """
    share = _LARGEST_SHARE * exact(epsilon)
    if relation is Relation.REPLACE and n_users > 0:
        return min(share, Fraction(_ENOUGH, n_users))
    return share


@dataclass(frozen=True, kw_only=True)
class RoughRecords:
    r"""Choose the range that contains the median number of records, hiding any one user.

    The cuts :math:`c_1 < \dots < c_k` make k + 1 ranges. The loss of a range is the larger of the
    numbers of users below it and above it; permute-and-flip chooses a range with a small loss.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``cuts`` and all other parameters
    numerics : exact
    proof : Each user is below, inside or above a range, so replacing or adding a user changes both
        counts, and their maximum, by at most 1; adding one never lowers them. The rest is
        :class:`~quorate.mechanisms.choices.choose.ChooseBest`.

    Utility
    -------
    With probability at least :math:`1-\beta` the chosen range has at most ``error_bound(beta)``
    users more on one side than the best one. If all n users are in one range, another one is
    chosen with probability at most :math:`\frac{k}{2} e^{-\varepsilon n / 2}` (replacement).

    Complexity
    ----------
    Time O(n k).

    Parameters
    ----------
    cuts : tuple of int
        Increasing and public.
    epsilon : float
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] McKenna, Sheldon. Permute-and-Flip: a new mechanism for differentially private selection.
       arXiv:2010.12603.

    Examples
    --------
    >>> rough = RoughRecords(cuts=(4, 8), epsilon=1.0)
    >>> data = UserData(np.zeros((500, 1)), offsets=range(0, 501, 5))
    >>> print(rough.release(People(data, Relation.REPLACE)))
    4 to 7 records
    """

    cuts: tuple[int, ...]
    epsilon: float | Fraction
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        if not self.cuts or any(a >= b for a, b in pairwise((0, *self.cuts))):
            raise ParameterError(f"Expected increasing cuts above 0, got cuts={self.cuts!r}.")
        for cut in self.cuts:
            _validate.positive_integer(cut=cut)
        _ = self.chooser

    @property
    def sensitivity(self) -> int:
        """The largest change of a loss by one user."""
        return 1

    @property
    def chooser(self) -> ChooseBest:
        """The underlying private selection."""
        return ChooseBest(
            candidates=len(self.cuts) + 1,
            epsilon=self.epsilon,
            sensitivity=self.sensitivity,
            relation=self.relation,
            one_sided=self.relation is Relation.ADD_REMOVE,
        )

    @property
    def event(self) -> Pure:
        """The event for the accountant."""
        return self.chooser.event

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one call of :meth:`release`."""
        return self.chooser.guarantee

    def losses(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, for each range, the number of users below it or above it, whichever is larger."""
        place = np.searchsorted(np.asarray(self.cuts), counts, side="right")
        inside = np.bincount(place, minlength=len(self.cuts) + 1).astype(np.int64)
        below = np.cumsum(inside) - inside
        return np.asarray(np.maximum(below, inside.sum() - below - inside))

    def release(self, people: People, *, account: Account | None = None) -> RecordRange:
        """Release the range of the median user."""
        cuts = np.array(self.cuts, dtype=np.float64) - 0.5
        below = people.counts(UserData.record_counts, np.r_[-1.0, cuts])
        above = people.counts(_turned_counts, np.r_[-np.inf, -cuts[::-1]])[::-1]
        place = self.chooser.release(-below.maximum(above), account=account)
        edges: tuple[int | None, ...] = (0, *self.cuts, None)
        return RecordRange(edges[place] or 0, edges[place + 1])

    def error_bound(self, beta: float) -> int:
        """Bound the excess of users on one side, except with probability ``beta``."""
        return self.chooser.error_bound(beta)


def _turned_counts(users: UserData) -> NDArray[np.int64]:
    """Return negated numbers of records, so that "at least" becomes "at most"."""
    return -users.record_counts()
