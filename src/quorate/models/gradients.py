"""How a mean of user gradients is released: the part of a minimisation that costs privacy (U5).

:class:`ClippedGradients`, the default, clips each user's gradient to a ball around zero whose
radius was found privately, and finds a smaller one on the way: gradients shrink as the optimum
comes near, and zero is where their mean ends up, so a centre would buy nothing.
:class:`WinsorizedGradients` is the estimator the paper uses.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.accounting.account import Account
from quorate.accounting.events import Nothing
from quorate.bounds import Ball, Box
from quorate.exceptions import ParameterError
from quorate.grid import choose_grid
from quorate.guarantees import Relation
from quorate.mechanisms.means.winsorized import RotatedWinsorizedMean
from quorate.models.losses import Loss, by_user
from quorate.models.runs import sampled_mean
from quorate.public_randomness import RandomState, public_generator
from quorate.releases.user_releases import (
    NARROW,
    WIDE,
    BoundedVectors,
    UserReleases,
    UserVectors,
    search_square,
)
from quorate.rotation import Rotation
from quorate.users import UserData

__all__ = [
    "ClippedGradients",
    "GradientRelease",
    "GradientRun",
    "ReleasedGradient",
    "WinsorizedGradients",
    "clip_length",
    "gradients_at",
    "growing_squares",
    "uniform_radius",
]

Vector = NDArray[np.float64]

# Steps get budgets that grow by this factor: the last ones decide where the fit ends up.
_GROWTH = 1.05
# The quantile of the norms that was found, times this, is the radius; the last one is longer where
# there are many users for each parameter (:func:`clip_length`).
_TIGHTER, _LONGEST = 0.85, 4.0
# Users for each parameter, n mu^2 / p, from which on it grows, and how fast.
_MANY, _POWER = 16.5, 0.75
# With few users a second search costs more than a smaller radius saves.
_WORTH_A_SECOND_LOOK = 0.04


@dataclass(frozen=True)
class ReleasedGradient:
    """A noisy mean gradient.

    ``noise`` is the standard deviation in each coordinate; ``whole`` what it would be if this step
    had all the budget of the descent.
    """

    value: Vector
    noise: float
    whole: float
    radius: float


class GradientRun(ABC):
    """The gradients of one minimisation."""

    @abstractmethod
    def release(self, theta: Vector, step: int) -> ReleasedGradient:
        """Release the mean user gradient at ``theta``."""


class GradientRelease(ABC):
    """A strategy; ``start`` binds it to data, a loss and a number of steps."""

    @abstractmethod
    def start(self, run: UserReleases, loss: Loss, *, steps: int) -> GradientRun:
        """Plan the budget of ``steps`` releases; nothing is released yet."""


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
    r"""Return how far any user's gradient is from its mean, wherever the parameters are (U5).

    Proposition 1 of Levy et al. with the constants of its proof: but for a probability of ``gamma``
    all n users are, at all parameters of a set of diameter R, within
    :math:`\sigma\sqrt{32(d\ln(5+10R/\Delta)+\ln(n/\gamma))/m}` of their mean, with
    :math:`\Delta = \min(1, \sigma\sqrt{d/m}/H)`, for H-smooth losses whose gradients are
    :math:`\sigma`-sub-Gaussian. A ball of radius r has the diameter 2r.

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


def growing_squares(whole: float, steps: int) -> Vector:
    """Divide a squared budget among steps, the later ones getting a little more.

    >>> growing_squares(1.0, 2).round(3)
    array([0.488, 0.512])
    """
    growth = _GROWTH ** np.arange(steps)
    return np.asarray(whole * growth / growth.sum())


def clip_length(*, n_users: float, mu: float, dimension: int) -> float:
    """Return the last radius over a quantile of the norms, from public numbers.

    Noise with a radius of f typical norms has 4 f^2 p / (n mu^2) times the variance of the sample
    of users. Clipping biases where people differ, and no number of them takes that away: the radius
    is the longer the more users there are, as long as noise stays below what the sample costs.

    >>> clip_length(n_users=1000, mu=0.2367, dimension=21)
    0.85
    >>> round(clip_length(n_users=2000, mu=0.2367, dimension=2), 2)
    2.5
    """
    crowd = n_users * mu * mu / dimension
    return min(_LONGEST, max(_TIGHTER, math.pow(crowd / _MANY, _POWER)))


def gradients_at(loss: Loss, theta: Vector) -> Callable[[UserData], Vector]:
    """Return the function from users to their gradients at ``theta``, each user's on its own."""
    return partial(_at, by_user(loss), theta)


def _at(loss: Loss, theta: Vector, users: UserData) -> Vector:
    return loss.user_gradients(users, theta)


@dataclass(frozen=True, kw_only=True)
class ClippedGradients(GradientRelease):
    """Clip user gradients to a ball around zero, add Gaussian noise.

    Parameters
    ----------
    radius : float, optional
        Public radius of the ball. By default it is found privately before the first step and once
        more after a third of the steps, each time for a few percent of the budget.

    Examples
    --------
    >>> from quorate.accounting.account import Account
    >>> from quorate.models.losses import SquaredLoss
    >>> people = UserData(np.ones((4000, 1)), np.ones(4000), offsets=np.arange(4001))
    >>> run = UserReleases.start(people, Account.open(epsilon=4.0, delta=1e-6))
    >>> gradients = ClippedGradients().start(run, SquaredLoss(), steps=4)
    >>> released = gradients.release(np.zeros(2), 0)
    >>> bool(np.all(released.value < -0.3)), released.radius < 2.0
    (True, True)
    """

    radius: float | None = None

    def __post_init__(self) -> None:
        if self.radius is not None:
            _validate.positive(radius=self.radius)

    def start(self, run: UserReleases, loss: Loss, *, steps: int) -> GradientRun:
        """Set aside what the searches cost; the rest is for the steps."""
        mu = run.account.mu
        searches = {} if self.radius is not None else {0: WIDE}
        again = round(steps / 3)
        price = search_square(NARROW.size, n_users=run.n_users, mu=mu)
        if self.radius is None and again and price <= _WORTH_A_SECOND_LOOK * mu**2:
            searches[again] = NARROW
        reserved = sum(
            search_square(grid.size, n_users=run.n_users, mu=mu) for grid in searches.values()
        )
        left = float(run.account.square_left) - reserved
        return _ClippedRun(run, loss, self.radius, searches, growing_squares(left, steps))


class _ClippedRun(GradientRun):
    def __init__(
        self,
        run: UserReleases,
        loss: Loss,
        radius: float | None,
        searches: dict[int, Vector],
        squares: Vector,
    ) -> None:
        self._run, self._loss = run, by_user(loss)
        self._radius, self._searches, self._squares = radius, searches, squares
        self._dimension = loss.dimension(run.data.n_features)
        self._last_length = clip_length(
            n_users=run.n_users, mu=run.account.mu, dimension=self._dimension
        )

    def release(self, theta: Vector, step: int) -> ReleasedGradient:
        run = self._run
        gradients: UserVectors = partial(_at, self._loss, theta)
        if step in self._searches:
            if run.sample is None:
                run, gradients = run.once(gradients, dimension=self._dimension)
            found = run.radius(
                gradients,
                self._searches[step],
                dimension=self._dimension,
                unit=1.0 if self._radius is None else self._radius,
            )
            # The first radius is for gradients that are about to shrink.
            self._radius = found * (self._last_length if step else _TIGHTER)
        radius = 1.0 if self._radius is None else self._radius
        if run.sample is not None:
            bound = Ball(radius, dimension=self._dimension)
            noisy = sampled_mean(run, BoundedVectors(gradients, bound))
            whole = noisy.noise / math.sqrt(len(self._squares))
            return ReleasedGradient(noisy.value, noisy.noise, whole, radius)
        square = float(self._squares[step])
        if step == len(self._squares) - 1:
            # Searches look less often than they may, so a little more than planned is left.
            square = float(run.account.square_left)
        noisy = run.mean(gradients, dimension=self._dimension, radius=radius, square=square)
        whole = noisy.noise * math.sqrt(square / float(self._squares.sum()))
        return ReleasedGradient(noisy.value, noisy.noise, whole, radius)


@dataclass(frozen=True, kw_only=True)
class WinsorizedGradients(GradientRelease):
    r"""Algorithm 3 of the paper: a winsorized mean of rotated gradients, step by step.

    Faithful, and documented as what it is: with the published constants a fit needs hundreds of
    thousands of users at :math:`d = 32`; the default needs hundreds. The T steps are T queries of
    one :class:`~quorate.mechanisms.means.winsorized.RotatedWinsorizedMean`, priced together; each
    has a rotation of its own.

    Parameters
    ----------
    bound : float
        Largest absolute value G of a coordinate of a user gradient; public.
    radius : float
        L2 concentration radius of user gradients around their mean; public.
    gamma : float, default=0.01
        Probability with which something may go wrong. Published (Theorem 4 of [1]_): a third is for
        users outside of ``radius`` (:func:`uniform_radius`), a third, divided by T, for rotations.
    constants : {"calibrated", "published"}, default="calibrated"
    random_state : int, Generator or None
        Public randomness of the rotations.

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845,
       Algorithm 3, Theorem 4, Proposition 1.

    Examples
    --------
    >>> from quorate.accounting.account import Account
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
        run.account.plan(mechanism.event)
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
        steps = self._run.data.votes(bounded, grid)
        vectors = grid.decode(steps, count=0.0)
        rotation = Rotation.random(mechanism.dimension, random_state=self._generator)
        value = mechanism.release(vectors, rotation=rotation, account=self._run.account)
        noise = mechanism.coordinate.noise_scale * math.sqrt(2.0)
        whole = noise / math.sqrt(mechanism.queries)
        return ReleasedGradient(value, noise, whole, mechanism.radius)
