"""One private mean of one bounded vector a user, as a step of something larger."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.accounting.calibrate import gdp_mu
from quorate.accounting.events import Approximate, Composed, Event
from quorate.bounds import Bound
from quorate.guarantees import Relation
from quorate.means.gaussian_routes import GaussianRun
from quorate.means.released_mean import MeanRelease
from quorate.means.weighted_users import WeightedUsers, bounded_vectors
from quorate.releases.allowance import Allowance

__all__ = ["MeanBudget"]

# Share of delta that is set aside for core tests, whether or not they take place.
_CORE_DELTA_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class MeanBudget:
    """A budget for several private means, each with a share of it.

    Parameters
    ----------
    epsilon, delta : float
    relation : Relation, default=Relation.REPLACE
    core : bool, default=True
        Whether means may start from a friendly core, for which a tenth of delta is reserved.

    Examples
    --------
    >>> from quorate.bounds import Box
    >>> budget = MeanBudget(epsilon=1.0, delta=1e-6)
    >>> vectors = np.random.default_rng(0).normal(size=(2000, 2))
    >>> release = budget.mean(vectors, Box([-100.0] * 2, [100.0] * 2), share=0.5)
    >>> bool(np.abs(release.mean).max() < 0.5)
    True
    """

    epsilon: float
    delta: float
    relation: Relation = Relation.REPLACE
    core: bool = True

    @property
    def reserve(self) -> float:
        """The part of delta that is reserved for core tests."""
        possible = self.core and self.relation is Relation.REPLACE
        return _CORE_DELTA_SHARE * self.delta if possible else 0.0

    @property
    def mu(self) -> float:
        """Gaussian parameter of all means together."""
        return gdp_mu(self.epsilon, self.delta - self.reserve)

    @property
    def event(self) -> Event:
        """What all means together cost, whichever routes they take."""
        event: Event = Allowance(self.mu).event
        return Composed((event, Approximate(0.0, self.reserve))) if self.reserve else event

    def run(
        self,
        vectors: NDArray[np.float64],
        bound: Bound,
        *,
        share: float = 1.0,
        counts: NDArray[np.int64] | None = None,
        records: float | None = None,
        hostile: float = 0.0,
        spread: float | None = None,
    ) -> GaussianRun:
        """Return a run on ``vectors``, clipped to ``bound``, with a share of the budget."""
        return GaussianRun(
            users=WeightedUsers(bounded_vectors(vectors, bound)),
            counts=counts,
            reach=bound.l2_radius,
            allowance=Allowance(self.mu * math.sqrt(share)),
            core_delta=self.reserve * share,
            hostile=hostile,
            relation=self.relation,
            spread=spread,
            records=records,
        )

    def mean(
        self,
        vectors: NDArray[np.float64],
        bound: Bound,
        *,
        share: float,
    ) -> MeanRelease:
        """Release the mean of ``vectors`` by the best route, as an offset from the centre."""
        return self.run(vectors, bound, share=share).adapt()
