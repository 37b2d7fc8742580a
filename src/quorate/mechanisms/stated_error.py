"""The stated error of a release: the fields that every ``error_`` has."""

from __future__ import annotations

import math
from typing import Any

from quorate import _validate

__all__ = ["StatedError", "chance_of_each"]


class StatedError:
    """The fields that every ``error_`` has, computed from public and released numbers only.

    Subclasses add fields of their own (a rank, a cap, a metric).

    Attributes
    ----------
    confidence : float
        Usually 0.95.
    bound : float
        Not exceeded by the error of the whole release with probability ``confidence``: its length,
        rank or distance. It is an array if several columns are released independently.
    coordinates : tuple of float
        The same for each released number on its own. Empty if the release itself contains it, cell
        by cell.
    worst : float
        A bound with the same confidence that assumes nothing about the data; infinite if the effect
        of clipping cannot be bounded by released numbers.
    covers : str
        One line: what ``bound`` covers, and what it does not.

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
    """Return the failure probability of each independent coordinate, for beta in all.

    >>> round(chance_of_each(0.05, 2), 4)
    0.0253
    """
    _validate.probability(beta=beta)
    return -math.expm1(math.log1p(-beta) / dimension)
