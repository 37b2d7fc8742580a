"""The error of a released distribution, and the algorithm that was used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.estimators import Route
from quorate.mechanisms.stated_error import StatedError

__all__ = ["DistributionError", "ReleasedShares"]


_COVERS = "Privacy noise and people who were left out; not the sampling of the people themselves."


@dataclass(frozen=True, kw_only=True)
class DistributionError(StatedError):
    """How far a released distribution is from that of the people in the data.

    Computed from public and released numbers. It does not include the sampling error relative to a
    population.

    Attributes
    ----------
    metric : str
        The distance that is bounded: total variation, the largest distance of the distribution
        functions, ...
    noise : float
        Bound on the effect of the noise.
    left_out : float
        Bound on the effect of users who were left out because they are too far from the others; it
        assumes nothing about them.
    bound : float
        The sum of both; holds with probability ``confidence``.
    confidence : float

    Examples
    --------
    >>> print(DistributionError(metric="total variation", noise=0.02, left_out=0.01, bound=0.03))
    the total variation is at most 0.03 with 95% confidence
    """

    metric: str
    noise: float
    left_out: float = 0.0
    bound: float
    confidence: float = 0.95
    covers: str = _COVERS

    @property
    def coordinates(self) -> tuple[float, ...]:
        """The bound; the whole distribution has a single number."""
        return (self.bound,)

    @property
    def worst(self) -> float:
        """The same as the bound: it assumes nothing about people who were left out."""
        return self.bound

    def __str__(self) -> str:
        return (
            f"the {self.metric} is at most {self.bound:.3g} with {self.confidence:.0%} confidence"
        )


@dataclass(frozen=True, kw_only=True)
class ReleasedShares:
    """Shares that add up to 1, with their error in total variation."""

    shares: NDArray[np.float64]
    error: DistributionError
    route: Route
