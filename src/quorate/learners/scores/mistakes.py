"""Count mistakes, a bounded number of records from each user (K1).

Theorem 3.4 of Kasiviswanathan et al., *What can we learn privately?*, learns any finite class by
the exponential mechanism on the number of mistakes when every person has one record. With
``records=1`` each user keeps one record, and this is that learner. With ``records=k`` it is group
privacy, the baseline whose noise is proportional to the number of records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.learners.scores.base import AdditiveScore, Integers

__all__ = ["Mistakes"]


@dataclass(frozen=True, kw_only=True)
class Mistakes(AdditiveScore):
    """Loss: mistakes on at most ``records`` records of each user, added up.

    Privacy
    -------
    sensitivity : ``records``, under both relations; one more user only adds
    proof : A user's mistakes are clipped at ``records``, so the sum has terms in {0, ...,
        ``records``}; see :class:`AdditiveScore`. The cap holds even if a user has more records.

    Parameters
    ----------
    records : int, default=1
        How many records of each user are kept, chosen by public randomness.

    Examples
    --------
    >>> Mistakes(records=2).judged(np.array([[0, 3], [1, 1]]), np.array([3, 3])).tolist()
    [[0, 2], [1, 1]]
    """

    name = "mistakes"
    records: int = 1

    def __post_init__(self) -> None:
        _validate.positive_integer(records=self.records)

    @property
    def record_cap(self) -> int:
        """The largest number of records of a user that count."""
        return self.records

    @property
    def bound(self) -> int:
        """The contribution of a user whose counted records are all mistakes."""
        return self.records

    def contribution(self, mistakes: NDArray[np.integer], held: Integers) -> NDArray[np.integer]:
        """Return the mistakes, clipped at ``records``."""
        del held
        return np.asarray(np.minimum(mistakes, self.records))
