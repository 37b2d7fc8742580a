"""The stated error of a released mean, ``error_``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quorate.mechanisms.stated_error import StatedError

__all__ = ["MeanError"]

_COVERS = (
    "Privacy noise, people without records, and the clipping bias estimated from released "
    "numbers; not sampling error."
)


@dataclass(frozen=True, kw_only=True)
class MeanError(StatedError):
    """The stated error of a released mean, computed from public and released numbers.

    Attributes
    ----------
    standard_error : float
        Root mean square length (L2) of the privacy noise in the mean. It includes the noise in the
        number of users where that number is noisy.
    bound : float
        Bound on the length of the error, with this ``confidence``. It assumes that users lie around
        one centre, with fewer of them towards the ends of the range; see ``covers``.
    confidence : float
    radius : float
        Clipping radius of the last step. Users farther from its centre were clipped.
    cut_share : float
        Upper bound on the share of users who were clipped.
    coordinates : tuple of float
        The same bound for each coordinate on its own.
    worst : float
        A bound with the same confidence that holds for any users: it assumes that everybody who may
        have been clipped is at the far end of the range.
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
