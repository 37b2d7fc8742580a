"""The budget of one fit, and how it is divided before anything is released."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quorate import _validate
from quorate.accounting.calibrate import gdp_mu
from quorate.engines.base import Engine
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.mechanisms.user_sample import UserSample
from quorate.models.minibatches import SETUP_SHARE
from quorate.releases.allowance import Allowance
from quorate.releases.user_releases import UserReleases
from quorate.users.crowd import Crowd

__all__ = ["Budget"]


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Epsilon and delta of a fit, and the rate of its minibatches if there are any.

    Parameters
    ----------
    epsilon, delta : float
        ``delta`` > 0: models use Gaussian noise.
    relation : Relation, default=Relation.REPLACE
    rate : float, optional
        Probability with which a user takes part in a step; full batches by default.

    Examples
    --------
    >>> round(Budget(epsilon=1.0, delta=1e-6).mu, 4)
    0.2367
    """

    epsilon: float
    delta: float
    relation: Relation = Relation.REPLACE
    rate: float | None = None

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        if self.delta == 0:
            raise ParameterError(
                "Expected delta > 0, got delta=0.0: models use Gaussian noise, which has no pure "
                "guarantee. Choose delta well below one over the number of users, such as 1e-6."
            )
        _validate.probability(delta=self.delta)
        if self.rate is not None:
            _validate.probability(rate=self.rate)

    @property
    def mu(self) -> float:
        """Gaussian parameter of what sees all users."""
        whole = gdp_mu(self.epsilon, self.delta)
        return whole if self.rate is None else whole * math.sqrt(SETUP_SHARE)

    def start(self, data: Crowd, engine: Engine) -> UserReleases:
        """Begin a run with the whole allowance."""
        return UserReleases.start(data, engine, mu=self.mu, relation=self.relation)

    def sample(self, steps: int) -> UserSample:
        """Return the minibatches of ``steps`` steps, calibrated to what the setup leaves."""
        if self.rate is None:
            raise ParameterError("Expected a rate for minibatches, got rate=None.")
        return UserSample.calibrated(
            rate=self.rate,
            steps=steps,
            epsilon=self.epsilon,
            delta=self.delta,
            relation=self.relation,
            setup=Allowance(self.mu).event,
        )
