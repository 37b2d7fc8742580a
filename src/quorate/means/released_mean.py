"""What a run of the mean gives back: the mean, its error, and the way that was taken.

A route tells what its error is made of (:class:`ErrorParts`), in its own units. From this one
function makes what people read (:class:`MeanError`): the same figures for every route.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from quorate.releases.route import Route
from quorate.releases.stated_error import StatedError

__all__ = ["ErrorParts", "MeanError", "MeanRelease"]

_CONFIDENCE = 0.95
# Fourth moments: the variance of a squared number of variance 1, normal or Laplace.
_NORMAL, _LAPLACE = 2.0, 5.0
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
    >>> error = MeanError.of_noise(0.1, dimension=4, radius=1.0, cut_share=0.0)
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

    @classmethod
    def of_noise(
        cls, per_coordinate: float, *, dimension: int, radius: float, cut_share: float
    ) -> MeanError:
        """Return the error of Gaussian noise of this standard deviation in each coordinate."""
        noise = np.full(dimension, per_coordinate)
        return ErrorParts(noise=noise, radius=radius, cut_share=cut_share).stated()


@dataclass(frozen=True, kw_only=True)
class ErrorParts:
    """What the error of a released mean is made of, in the units of its route.

    Parameters
    ----------
    noise : array of shape (d,)
        Standard deviation of the noise in each coordinate.
    laplace : bool, default=False
        Whether the noise is Laplace; otherwise normal.
    along : array of shape (d,) or float, default=0.0
        Standard deviation that the number of users gives to each coordinate, if that is noisy.
    pull : float, default=0.0
        How far clipping is likely to have moved the mean, as a length.
    worst_pull : float, default=0.0
        How far it can have moved it, wherever the users are.
    radius : float
    cut_share : float, default=0.0

    Examples
    --------
    >>> parts = ErrorParts(noise=np.ones(1), laplace=True, radius=1.0)
    >>> error = parts.stated()
    >>> error.standard_error, round(error.coordinates[0], 3)
    (1.0, 2.118)
    >>> parts.scaled(np.array([10.0])).stated().standard_error
    10.0
    """

    noise: NDArray[np.float64]
    radius: float
    laplace: bool = False
    along: NDArray[np.float64] | float = 0.0
    pull: float = 0.0
    worst_pull: float = 0.0
    cut_share: float = 0.0
    pulls: NDArray[np.float64] | None = field(default=None)

    def scaled(self, scales: NDArray[np.float64]) -> ErrorParts:
        """Return the same in units of which each coordinate has ``scales`` to one of the old."""
        largest = float(scales.max())
        return replace(
            self,
            noise=self.noise * scales,
            radius=self.radius * largest,
            along=self.along * scales,
            pull=self.pull * largest,
            worst_pull=self.worst_pull * largest,
            pulls=self.pull * scales if self.pulls is None else self.pulls * scales,
        )

    def stated(self) -> MeanError:
        """Return the figures for people."""
        variances = self.noise**2 + np.broadcast_to(np.square(self.along), self.noise.shape)
        length = _length_quantile(variances, _LAPLACE if self.laplace else _NORMAL)
        each = math.log(1.0 / (1.0 - _CONFIDENCE)) / math.sqrt(2.0) if self.laplace else 1.96
        pulls = np.full(self.noise.shape, self.pull) if self.pulls is None else self.pulls
        return MeanError(
            standard_error=math.sqrt(float(np.sum(variances))),
            bound=length + self.pull,
            confidence=_CONFIDENCE,
            radius=self.radius,
            cut_share=self.cut_share,
            coordinates=tuple((each * np.sqrt(variances) + pulls).tolist()),
            worst=length + max(self.pull, self.worst_pull),
        )


def _length_quantile(variances: NDArray[np.float64], spread: float) -> float:
    """Return the 95 % quantile of the length of independent numbers with these variances.

    Exact for normal noise that is alike in all coordinates; otherwise the squared length is taken
    for a gamma variable of the same mean and variance.
    """
    from scipy.special import gammaincinv

    mean = float(np.sum(variances))
    if not mean > 0.0:
        return 0.0
    weights = variances / mean
    variance = spread * float(np.sum(weights**2))
    return math.sqrt(mean * variance * float(gammaincinv(1.0 / variance, _CONFIDENCE)))


@dataclass(frozen=True, kw_only=True)
class MeanRelease:
    """A released mean as an offset from the centre of the public bound."""

    mean: NDArray[np.float64]
    parts: ErrorParts
    route: Route

    @property
    def error(self) -> MeanError:
        """How wrong the mean is expected to be."""
        return self.parts.stated()
