"""What a run of the mean gives back: the mean, its error, and the way that was taken."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.releases.route import Route

__all__ = ["MeanError", "MeanRelease"]


@dataclass(frozen=True, kw_only=True)
class MeanError:
    """How wrong a released mean is expected to be; computed from public and released numbers.

    Attributes
    ----------
    standard_error : float
        Root mean square length (L2) of the privacy noise in the mean, the noise of the number of
        users included where that is noisy.
    bound : float
        Length that the noise exceeds with a probability of at most ``1 - confidence``.
    confidence : float
    radius : float
        Users farther than this from the centre of the last step were pulled in to it.
    cut_share : float
        Share of users that the radius was planned to leave outside, noise of the search included.
        Pulling users in biases the mean by at most this share times how far they were outside;
        that bias, the sampling error of a mean of n users, and users without records who are too
        few to be noticed and count as the centre, are not part of the two figures.

    Examples
    --------
    >>> error = MeanError.of_noise(0.1, dimension=4, radius=1.0, cut_share=0.0)
    >>> error.standard_error, round(error.bound, 3)
    (0.2, 0.308)
    """

    standard_error: float
    bound: float
    confidence: float
    radius: float
    cut_share: float

    @classmethod
    def of_noise(
        cls,
        per_coordinate: float,
        *,
        dimension: int,
        radius: float,
        cut_share: float,
        along: float = 0.0,
    ) -> MeanError:
        """Return the error of Gaussian noise of this standard deviation in each coordinate.

        ``along`` is the standard deviation of noise in one more direction: that of the mean's
        offset, if the number of users it was divided by is noisy.
        """
        from scipy.special import gammaincinv

        confidence = 0.95
        # Quantiles of chi distributions: the length of a standard normal vector, or number.
        reach, beside = (
            math.sqrt(2.0 * float(gammaincinv(size / 2.0, confidence))) for size in (dimension, 1)
        )
        return cls(
            standard_error=math.hypot(per_coordinate * math.sqrt(dimension), along),
            bound=math.hypot(per_coordinate * reach, along * beside),
            confidence=confidence,
            radius=radius,
            cut_share=cut_share,
        )


@dataclass(frozen=True, kw_only=True)
class MeanRelease:
    """A released mean as an offset from the centre of the public bound."""

    mean: NDArray[np.float64]
    error: MeanError
    route: Route
