r"""Noisy sums of users' scores, or nothing at all if the users are too different.

This is the last step of every conversion from item level to user level
(:mod:`quorate.papers.conversion`). A noisy limit is compared with the distance to data on which the
release would reveal too much. If the distance is below the limit, the release has the noise of an
item-level mechanism, which may be far too little for the worst user. The caller computes the
distance and the sums of users; the proof states the conditions on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact, float_down, float_up
from quorate.core.account.account import Account, noise_for
from quorate.core.account.costs import gdp_mu
from quorate.core.guarantees import Approximate, Guarantee, Relation
from quorate.core.noise import NoiseSource, ambient_noise
from quorate.core.noise.truncated_laplace import TruncatedLaplace, smallest_reach
from quorate.exceptions import ParameterError, SchemaError

__all__ = ["Base", "BaseKind", "StableRelease"]


class BaseKind(Enum):
    """The noise of an item-level mechanism, and the norm of the difference of two users.

    >>> BaseKind.LAPLACE.value
    'sums plus discrete Laplace noise; L1 distance'
    """

    EXPONENTIAL = "exponential mechanism on sums; range of the difference"
    LAPLACE = "sums plus discrete Laplace noise; L1 distance"
    GAUSSIAN = "sums plus discrete Gaussian noise; L2 distance"


@dataclass(frozen=True)
class Base:
    """An item-level mechanism on sums of scores: a choice, or the sums with noise.

    Parameters
    ----------
    kind : BaseKind
    scale : float
        Scale of the noise, in units of the integer scores; for Gaussian noise its sigma, above 2.
        The exponential mechanism chooses h with probability proportional to exp(sum / scale).

    Examples
    --------
    >>> Base(BaseKind.EXPONENTIAL, scale=20.0).probabilities(np.array([0, 20])).round(3).tolist()
    [0.269, 0.731]
    """

    kind: BaseKind
    scale: float

    def __post_init__(self) -> None:
        _validate.one_of(tuple(BaseKind), kind=self.kind)
        _validate.positive(scale=self.scale)
        if self.kind is BaseKind.GAUSSIAN and self.scale <= 2:
            raise ParameterError(f"Expected Gaussian noise of scale > 2, got {self.scale!r}.")

    def probabilities(self, totals: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the law of a choice in floating point, for audits."""
        if self.kind is not BaseKind.EXPONENTIAL:
            raise ParameterError("Expected the exponential mechanism: sums have infinite laws.")
        weights = np.exp((totals - np.max(totals)) / float(self.scale))
        return np.asarray(weights / weights.sum())

    def draw(self, totals: NDArray[np.int64], noise: NoiseSource) -> int | NDArray[np.int64]:
        """Return the choice or the noisy sums; the noise source must have been paid already."""
        match self.kind:
            case BaseKind.EXPONENTIAL:
                return noise.gumbel_max(totals, scale=self.scale)
            case BaseKind.LAPLACE:
                return noise.discrete_laplace(totals, scale=self.scale)
            case BaseKind.GAUSSIAN:
                return noise.discrete_gaussian(totals, sigma=self.scale)


@dataclass(frozen=True, kw_only=True)
class StableRelease:
    r"""Release the base mechanism on the sums of similar users, or nothing.

    Privacy
    -------
    guarantee : :math:`(\varepsilon, \delta)`-DP, with :math:`\varepsilon` = ``epsilon`` and
        :math:`\delta` at most ``delta``; ``event`` tells both
    neighbours : replace all records of one user
    trust : central
    public : the number of users and all parameters
    numerics : exact
    proof : docs/proofs/item_to_user.md. The caller must ensure: (1) the distance v is a
        non-negative integer that one user changes by at most 1; (2) if v and v' of neighbours are
        at most ``2 * reach`` and not both equal to it, the totals differ by at most ``2 *
        closeness`` in the norm of the base (range, L1, L2). Half of epsilon is spent on the limit,
        half on the totals; for Gaussian noise half of delta as well.

    Utility
    -------
    Something is released with ``pass_probability(distance)``, which is 1 at distance 0; its noise
    is that of the base.

    Complexity
    ----------
    One draw of the limit, in time :math:`O(\kappa)`, and one of the base.

    Parameters
    ----------
    base : Base
    epsilon : float
    delta : float
        Must be positive.
    reach : int or None, default=None
        The kappa of the paper; by default the smallest whose tail fits into ``delta``. A smaller
        one is allowed, for small examples, and makes delta larger.

    References
    ----------
    .. [1] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
       examples per user. NeurIPS 2023. Algorithm 1.

    Examples
    --------
    >>> base = Base(BaseKind.EXPONENTIAL, scale=1000.0)
    >>> stable = StableRelease(base=base, epsilon=1.0, delta=1e-6)
    >>> stable.reach, stable.closeness_squared == 250**2
    (25, True)
    >>> stable.release(0, np.array([0, 10**6, 0]))
    1
    >>> stable.release(51, np.array([0, 10**6, 0])) is None
    True
    """

    base: Base
    epsilon: float
    delta: float
    reach: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.base, Base):
            raise ParameterError(f"Expected base to be a Base, got {type(self.base).__name__}.")
        _validate.positive(epsilon=self.epsilon)
        _validate.probability(delta=self.delta)
        if self.reach is None:
            object.__setattr__(self, "reach", smallest_reach(self._half, self._limit_delta))
        _ = self.limit, self.event

    relation = Relation.REPLACE

    @property
    def _half(self) -> Fraction:
        return exact(self.epsilon) / 2

    @property
    def _limit_delta(self) -> Fraction:
        """The part of delta for the noisy limit."""
        return exact(self.delta) / (2 if self.base.kind is BaseKind.GAUSSIAN else 1)

    @cached_property
    def limit(self) -> TruncatedLaplace:
        """The law of the noisy limit."""
        return TruncatedLaplace(self._half, reach=self.reach or 0)

    @cached_property
    def closeness_squared(self) -> Fraction:
        """The squared distance that totals may have from those of the common users.

        These are the users that both neighbours share.

        It is squared, because for Gaussian noise the distance is a root. Twice this distance costs
        half of epsilon. For pure noise it is ``epsilon * scale / 4``. Gaussian noise with a
        variance larger by 4 is a post-processing of the continuous one.
        """
        scale = exact(self.base.scale)
        if self.base.kind is not BaseKind.GAUSSIAN:
            return (self._half / 2 * scale) ** 2
        mu = exact(gdp_mu(float_down(self._half), float_down(exact(self.delta) / 2)))
        return mu**2 * (scale**2 - 4) / 4

    @property
    def event(self) -> Approximate:
        """The event for the accountant."""
        noise_delta = exact(self.delta) / 2 if self.base.kind is BaseKind.GAUSSIAN else Fraction(0)
        delta = float_up(self.limit.tail + noise_delta)
        if not delta < 1:
            raise ParameterError("Expected a reach whose delta is below 1.")
        return Approximate(float_up(self.epsilon), delta)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release."""
        return Guarantee(
            epsilon=self.event.epsilon,
            delta=self.event.delta,
            relation=self.relation,
            numerics=ambient_noise().numerics,
            events=(self.event,),
        )

    def release(
        self, distance: int, totals: NDArray[np.int64], *, account: Account | None = None
    ) -> int | NDArray[np.int64] | None:
        """Return the base's result on the totals, or None if the distance exceeds the limit."""
        _validate.non_negative_integer(distance=distance)
        totals = np.asarray(totals)
        if totals.ndim != 1 or totals.dtype.kind != "i":
            raise SchemaError("Expected one axis of int64 totals.")
        noise = noise_for(Account.of_release(account, self), self.event)
        limit = self.limit.draw(noise)
        # The base draws in any case: how many draws there are does not depend on the users.
        drawn = self.base.draw(totals, noise)
        return drawn if distance <= limit else None

    def pass_probability(self, distance: int) -> float:
        """Return the probability that something is released."""
        return self.limit.pass_probability(distance)
