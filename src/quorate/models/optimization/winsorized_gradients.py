"""Gradients released as by Levy et al.: winsorized means of rotated gradients (U5).

The default is in :mod:`quorate.models.optimization.gradients`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Box
from quorate.core.guarantees import Nothing, Relation
from quorate.core.public_randomness import RandomState, public_generator
from quorate.exceptions import ParameterError
from quorate.mechanisms.means.rotation import Rotation
from quorate.mechanisms.means.winsorized import RotatedWinsorizedMean
from quorate.mechanisms.sums import choose_grid
from quorate.mechanisms.user_releases import BoundedVectors, UserReleases
from quorate.models.losses import Loss
from quorate.models.optimization.gradients import (
    GradientRelease,
    GradientRun,
    ReleasedGradient,
    gradients_at,
)

__all__ = ["WinsorizedGradients", "uniform_radius"]

Vector = NDArray[np.float64]


def uniform_radius(
    *,
    spread: float,
    smoothness: float,
    diameter: float,
    records: int,
    dimension: int,
    n_users: int,
    gamma: float,
) -> float:
    r"""Return a bound on how far any user's gradient is from its mean, at all parameters (U5).

    This is Proposition 1 of Levy et al. with the constants of its proof. Except with probability
    ``gamma``, all n users are within :math:`\sigma\sqrt{32(d\ln(5+10R/\Delta)+\ln(n/\gamma))/m}` of
    their mean, at all parameters of a set of diameter R. Here :math:`\Delta = \min(1,
    \sigma\sqrt{d/m}/H)`, for H-smooth losses whose gradients are :math:`\sigma`-sub-Gaussian. A
    ball of radius r has the diameter 2r.

    >>> known = dict(spread=1.0, smoothness=2.0, diameter=9.0, dimension=4, n_users=1000)
    >>> round(uniform_radius(records=100, gamma=0.01, **known), 2)
    3.52
    """
    _validate.positive(spread=spread, smoothness=smoothness, diameter=diameter)
    _validate.positive_integer(records=records, dimension=dimension, n_users=n_users)
    _validate.probability(gamma=gamma)
    mesh = min(1.0, spread * math.sqrt(dimension / records) / smoothness)
    logarithms = dimension * math.log(5.0 + 10.0 * diameter / mesh) + math.log(n_users / gamma)
    return spread * math.sqrt(32.0 * logarithms / records)


@dataclass(frozen=True, kw_only=True)
class WinsorizedGradients(GradientRelease):
    r"""Algorithm 3 of the paper: a winsorized mean of rotated gradients in each step.

    It is implemented as published. With the published constants a fit needs hundreds of thousands
    of users at :math:`d = 32`; the default method needs hundreds. The T steps are T queries of one
    :class:`~quorate.mechanisms.means.winsorized.RotatedWinsorizedMean`, priced together; each has a
    rotation of its own.

    Parameters
    ----------
    bound : float
        Largest absolute value G of a coordinate of a user gradient; public.
    radius : float
        L2 concentration radius of user gradients around their mean; public.
    gamma : float, default=0.01
        Failure probability. Published (Theorem 4 of [1]_): a third is for users outside of
        ``radius`` (:func:`uniform_radius`), a third, divided by T, for rotations.
    constants : {"calibrated", "published"}, default="calibrated"
    random_state : int, Generator or None
        Public randomness of the rotations.

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845,
       Algorithm 3, Theorem 4, Proposition 1.

    Examples
    --------
    >>> from quorate.core.account.account import Account
    >>> strategy = WinsorizedGradients(bound=1.0, radius=0.1)
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> mean = strategy.mechanism(account, n_users=10_000, dimension=4, steps=10)
    >>> mean.queries, mean.padded
    (10, 4)
    """

    bound: float
    radius: float
    gamma: float = 0.01
    constants: str = "calibrated"
    random_state: RandomState = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _validate.positive(bound=self.bound, radius=self.radius)
        _validate.probability(gamma=self.gamma)
        _validate.one_of(("calibrated", "published"), constants=self.constants)

    def mechanism(
        self, account: Account, *, n_users: int, dimension: int, steps: int
    ) -> RotatedWinsorizedMean:
        """Return the mechanism that answers all steps."""
        return RotatedWinsorizedMean(
            bound=self.bound,
            radius=self.radius,
            epsilon=account.declared.epsilon,
            delta=account.declared.delta,
            n_users=n_users,
            dimension=dimension,
            gamma=self.gamma / 3.0 if self.constants == "published" else self.gamma,
            queries=steps,
            constants=self.constants,
        )

    def start(self, run: UserReleases, loss: Loss, *, steps: int) -> GradientRun:
        """Build the mechanism."""
        if run.sample is not None or run.relation is not Relation.REPLACE:
            raise ParameterError(
                "WinsorizedGradients needs Relation.REPLACE and full batches; use ClippedGradients."
            )
        if not isinstance(run.account.event, Nothing):
            raise ParameterError(
                "WinsorizedGradients spends the whole budget; give steps= or a public records=."
            )
        dimension = loss.dimension(run.data.n_features)
        mechanism = self.mechanism(
            run.account, n_users=run.data.n_users, dimension=dimension, steps=steps
        )
        run.account.reserve_chain(mechanism.event)
        return _WinsorizedRun(run, loss, mechanism, public_generator(self.random_state))


class _WinsorizedRun(GradientRun):
    def __init__(
        self,
        run: UserReleases,
        loss: Loss,
        mechanism: RotatedWinsorizedMean,
        generator: RandomState,
    ) -> None:
        self._run, self._loss, self._mechanism = run, loss, mechanism
        self._generator = generator

    def release(self, theta: Vector, step: int) -> ReleasedGradient:
        mechanism = self._mechanism
        reach = np.full(mechanism.dimension, mechanism.bound)
        grid = choose_grid(Box(-reach, reach), n_users=mechanism.n_users)
        # Through the engine, which cuts each coordinate and keeps quiet about records.
        bounded = BoundedVectors(gradients_at(self._loss, theta), grid.bound)
        vectors = self._run.data.encoded(bounded, grid).map(partial(grid.decode, count=0.0))
        rotation = Rotation.random(mechanism.dimension, random_state=self._generator)
        value = mechanism.release(vectors, rotation=rotation, account=self._run.account)
        noise = mechanism.coordinate.noise_scale * math.sqrt(2.0)
        whole = noise / math.sqrt(mechanism.queries)
        return ReleasedGradient(value, noise, whole, mechanism.radius)
