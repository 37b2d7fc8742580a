"""How wrong a released mean is expected to be: what ``error_`` of a mean tells."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quorate.mechanisms.stated_error import StatedError

__all__ = ["MeanError"]

_COVERS = (
    "Privacy noise, people without records, and clipping as far as it can be guessed from what was "
    "released; not the sampling of the people themselves."
)


@dataclass(frozen=True, kw_only=True)
class MeanError(StatedError):
    """How wrong a released mean is expected to be; computed from public and released numbers.

    Attributes
    ----------
    standard_error : float
        Root mean square length (L2) of the privacy noise in the mean, the noise of the number of
        users included where that is noisy.
    bound : float
        Length that the error exceeds with a probability of at most ``1 - confidence``, if users lie
        around one centre and thin out towards the ends; see ``covers``.
    confidence : float
    radius : float
        Users farther than this from the centre of the last step were pulled in to it, in the units
        of the route.
    cut_share : float
        Share of users that may be outside of the radius.
    coordinates : tuple of float
        The same bound for each coordinate on its own.
    worst : float
        Length that holds with the same confidence wherever the users lie: it counts everybody who
        may be outside as if they were at the far end of the range.
    covers : str
        What ``bound`` covers, in one line.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.means.present_mean import ErrorParts
    >>> error = ErrorParts(noise=np.full(4, 0.1), radius=1.0).stated()
    >>> error.standard_error, round(error.bound, 3)
    (0.2, 0.308)
    """

    standard_error: float
    bound: float
    confidence: float
    radius: float
    cut_share: float
    coordinates: tuple[float, ...] = ()
    worst: float = math.inf
    covers: str = _COVERS
