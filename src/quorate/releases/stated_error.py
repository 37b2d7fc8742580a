"""How far a release may be off, in one form: what every ``error_`` tells."""

from __future__ import annotations

from typing import Any

__all__ = ["StatedError"]


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
    >>> from quorate.means import MeanError
    >>> error = MeanError.of_noise(0.1, dimension=1, radius=1.0, cut_share=0.0)
    >>> isinstance(error, StatedError), len(error.coordinates), error.worst == error.bound
    (True, 1, True)
    """

    confidence: float
    bound: Any
    worst: Any
    covers: Any
    coordinates: Any
