"""The mean of shares around a centre, from numbers released about users inside and outside."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate.distributions.projection import laplace_sum, mixed_bound

__all__ = ["NOTICED", "TrimmedMean"]

# People outside are seen where their pull has this chance or less in noise alone.
_SURPRISE = 0.004
NOTICED = 3.0
"""Votes of up to this many sizes of the noise are ignored: noise alone might explain them."""
# In L1 people outside are also seen by their number, beyond this share of all and this many
# standard deviations: more than that are outside where people are not alike, wherever they pull.
_EXPECTED, _DEVIATIONS = 0.05, 3.0


@dataclass(frozen=True)
class TrimmedMean:
    """Released numbers about the users inside a ball, and about the others.

    All of these are released numbers.

    Parameters
    ----------
    centre : array of shape (k,)
    radius : float
    pure : bool
    users : int
    offsets : array of shape (k,)
        Noisy sum of the offsets of the users inside.
    outside : array of shape (k,)
        Noisy sum of the shares of the users outside.
    votes : pair of floats
        Noisy numbers of users outside (in the L2 norm only), and of absent users.
    noise : float
        Size of the noise of ``offsets``.
    whole : float
        Size of the shares of one user outside.
    """

    centre: NDArray[np.float64]
    radius: float
    pure: bool
    users: int
    offsets: NDArray[np.float64]
    outside: NDArray[np.float64]
    votes: tuple[float, float]
    noise: float
    whole: float

    @property
    def outer_noise(self) -> float:
        """Size of the noise of ``outside``."""
        return self.noise / self.whole

    @property
    def vote_noise(self) -> float:
        """Size of the noise of a number of votes."""
        return self.noise / self.radius

    @property
    def present(self) -> float:
        """Number of users with records.

        It is the number of all users if the absent ones are within the noise.
        """
        absent = self.votes[1]
        gone = absent if absent > NOTICED * self.vote_noise else 0.0
        return max(self.users - gone, 0.1 * self.users, 1.0)

    @property
    def pull(self) -> NDArray[np.float64]:
        """The difference that the users outside would make.

        It is their shares minus those of the centre.
        """
        return np.asarray(self.outside - self.outside.sum() * self.centre)

    @cached_property
    def noticed(self) -> bool:
        """Whether the users outside are more, or further to one side, than noise alone explains."""
        many, shares = self.centre.size, self.centre
        deviation = self.outer_noise * math.sqrt(2.0 * many)
        limit = _EXPECTED * self.users + _DEVIATIONS * deviation
        if self.pure and self.outside.sum() > limit:
            return True
        sizes = self.outer_noise * np.sqrt((1.0 - shares) ** 2 + shares**2 * (many - 1))
        limit = math.log(many) + 5.0 if self.pure else math.sqrt(2.0 * math.log(100.0 * many))
        if np.any(self.pull > limit * sizes):
            return True
        noise = mixed_bound(
            inner=0.0, outer=self.outer_noise, centre=shares, pure=self.pure, beta=_SURPRISE
        )
        return bool(np.maximum(self.pull, 0.0).sum() > noise)

    def inside(self) -> NDArray[np.float64]:
        """Return the mean of the users inside."""
        gone = float(np.clip(self.outside.sum(), 0.0, 0.5 * self.users)) if self.noticed else 0.0
        return np.asarray(self.centre + self.offsets / max(1.0, self.present - gone))

    def mean(self) -> NDArray[np.float64]:
        """Return the mean of all users, or of those inside if the rest may be noise only."""
        pull = self.pull if self.noticed else 0.0
        return np.asarray(self.centre + (self.offsets + pull) / self.present)

    def left_out(self, beta: float) -> float:
        """Bound the share of users outside; each moves the mean by at most one user's weight."""
        if self.pure:
            seen, noise = float(self.outside.sum()), laplace_sum(self.centre.size, beta)
            return (max(0.0, seen) + self.outer_noise * noise) / self.present
        noise = self.vote_noise * math.sqrt(-2.0 * math.log(beta))
        return (max(0.0, self.votes[0]) + noise) / self.present
