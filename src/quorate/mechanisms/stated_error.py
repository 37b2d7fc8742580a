"""The stated error of a release: the fields of every ``error_``."""

from __future__ import annotations

import math
from typing import Any

from quorate import _validate

__all__ = ["StatedError", "chance_of_each"]


class StatedError:
    """The fields of every ``error_``, computed from public and released numbers only.

    Subclasses add fields of their own (a rank, a cap, a metric).

    Attributes
    ----------
    confidence : float
        Usually 0.95.
    bound : float
        Upper bound on the error of the whole release (a length, rank or distance) that holds with
        probability ``confidence``. It is an array if several columns are released independently.
    coordinates : tuple of float
        The same bound for each released number separately. Empty if the release itself contains the
        bounds, cell by cell.
    worst : float
        A bound with the same confidence that assumes nothing about the data; infinite if the effect
        of clipping cannot be bounded by released numbers.
    covers : str
        What ``bound`` covers and what it does not, in one line.

    Examples
    --------
    >>> from quorate.mechanisms.choices.choose import ChoiceError
    >>> error = ChoiceError.of_people(24.0, counts="mistakes", n_users=1000)
    >>> isinstance(error, StatedError), len(error.coordinates), error.worst == error.bound
    (True, 1, True)
    """

    confidence: float
    bound: Any
    worst: Any
    covers: Any
    coordinates: Any


def chance_of_each(beta: float, dimension: int) -> float:
    """Return the failure probability of each independent coordinate, for beta in total.

    >>> round(chance_of_each(0.05, 2), 4)
    0.0253
    """
    _validate.probability(beta=beta)
    return -math.expm1(math.log1p(-beta) / dimension)
