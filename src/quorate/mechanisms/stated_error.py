"""How far a release may be off, in one form: what every ``error_`` tells."""

from __future__ import annotations

import math
from typing import Any

from quorate import _validate

__all__ = ["StatedError", "chance_of_each"]


class StatedError:
    """What every ``error_`` tells in the same words, from public and released numbers only.

    Kinds of releases add what is theirs (a rank, a cap, a metric).

    Attributes
    ----------
    confidence : float
        Usually 0.95.
    bound : float
        Not exceeded by the error of the whole release with probability ``confidence``: its length,
        rank or distance. An array where columns are released side by side, each by itself.
    coordinates : tuple of float
        The same for each released number on its own. Empty where the release itself says it, cell
        by cell.
    worst : float
        Holds with the same confidence without any assumption about where people lie; infinite where
        nothing that was released limits what clipping took away.
    covers : str
        In one line: what ``bound`` covers, and what not.

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
    """Return the chance each of independent coordinates may fail, if one in all may with beta.

    >>> round(chance_of_each(0.05, 2), 4)
    0.0253
    """
    _validate.probability(beta=beta)
    return -math.expm1(math.log1p(-beta) / dimension)
