"""Phased minimisation for stochastic convex optimisation (U6, Algorithm 4).

It is implemented as published, and it is a proof device rather than a practical method. With the
published constants its last phase has no users and its first one needs tens of thousands of steps.
With the calibrated constants it runs, and its excess risk is two to five times that of
:func:`~quorate.models.minimize` on the same data, because every phase uses only its own users.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.account.costs import gdp_mu
from quorate.core.account.parts import cut_by_draws, disjoint_groups
from quorate.core.people import People
from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.users.crowd import Crowd
from quorate.exceptions import NotEnoughUsersError
from quorate.mechanisms.user_releases import UserReleases
from quorate.models.losses import Loss
from quorate.models.optimization.descent import (
    AveragedDescent,
    Minimum,
    Optimizer,
    OptimizerState,
    descend,
)
from quorate.models.optimization.gradients import (
    ClippedGradients,
    GradientRelease,
    check_budget,
    plan_steps,
)
from quorate.models.optimization.minimization import initial_point, with_caveat
from quorate.models.optimization.optimizers import RestartedDescent
from quorate.models.optimization.winsorized_gradients import WinsorizedGradients, uniform_radius

__all__ = ["Phase", "PhasedMinimizer", "ProximalDescent"]

Vector = NDArray[np.float64]

# A calibrated phase below this many users would be noise only.
_FEWEST_USERS = 50
# Probability with which published gradients may be cut, in each phase.
_GAMMA = 0.01


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase: its number of users, the strength of its proximal term, its number of steps.

    >>> Phase(n_users=500, strength=0.1, steps=20).n_users
    500
    """

    n_users: int
    strength: float
    steps: int


@dataclass(frozen=True, kw_only=True)
class ProximalDescent(Optimizer):
    """An optimiser of the loss plus strength / 2 x squared distance from ``centre``.

    Examples
    --------
    >>> descent = ProximalDescent(inner=AveragedDescent(), centre=np.array([2.0]), strength=1.0)
    >>> state = OptimizerState.start(np.array([2.0]), steps=10)
    >>> for _ in range(10):
    ...     state = descent.update(state, state.theta, curvature=1.0, precision=1.0)
    >>> bool(abs(descent.aggregate(state)[0] - 1.0) < 0.05)
    True
    """

    inner: Optimizer
    centre: Vector
    strength: float

    @property
    def keeps_curvature(self) -> bool:
        """Whether the inner optimiser depends on the declared curvature only."""
        return self.inner.keeps_curvature

    def query(self, state: OptimizerState) -> Vector:
        """Return the next point of the inner optimiser."""
        return self.inner.query(state)

    def update(
        self, state: OptimizerState, gradient: Vector, *, curvature: float, precision: float
    ) -> OptimizerState:
        """Add the gradient of the proximal term, then let the inner optimiser move."""
        pull = self.strength * (self.inner.query(state) - self.centre)
        return self.inner.update(
            state, gradient + pull, curvature=curvature + self.strength, precision=precision
        )

    def aggregate(self, state: OptimizerState) -> Vector:
        """Return the final point of the inner optimiser."""
        return self.inner.aggregate(state)


@dataclass(frozen=True, kw_only=True)
class PhasedMinimizer:
    r"""Minimise in phases, each on its own users, with a proximal term around the last result.

    Phase t has :math:`n_t = n/2^t` users and minimises their loss plus
    :math:`\frac{\lambda_t}{2}\|\theta-\theta_{t-1}\|^2` with :math:`\lambda_t = 4^t\lambda` and
    :math:`\lambda = \sqrt{G\bar G/(nm) + \sigma^2d^2/(n^2m\varepsilon^2)}/R`, by Algorithm 3.

    Privacy
    -------
    guarantee : (``epsilon``, ``delta``)-DP, in ``Minimum.guarantee``
    neighbours : replace all records of one user
    trust : central
    public : all parameters, the loss, the number of features and of users, and which user is in
        which phase (from the seed and the ids)
    numerics : exact
    proof : A user is in one phase only, and each phase is a run of
        :func:`~quorate.models.minimize` with the whole budget. Later phases use only what earlier
        phases released.

    Utility
    -------
    Theorem 5 of [1]_ up to logarithms, for losses with H-smooth, :math:`\sigma`-sub-Gaussian
    gradients; see the module for what that means at realistic n.

    Complexity
    ----------
    The steps of all phases, each over its own users.

    Parameters
    ----------
    epsilon, delta : float
    gradient_bound : float
        G, largest length of the gradient of a record.
    gradient_spread : float
        :math:`\sigma`, sub-Gaussian spread of one coordinate of the gradient of a record.
    smoothness : float
        H, largest curvature.
    radius : float
        Parameters are kept in a ball of this radius.
    records : int
        m, number of records per user; public.
    constants : {"calibrated", "published"}, default="calibrated"
        Calibrated: phases until fewer than 50 users are left (at most ``phases``), clipped
        gradients with a private radius, R = ``radius``. Published: winsorized gradients within the
        radius of Proposition 1, with its logarithms
        (:func:`~quorate.models.optimization.winsorized_gradients.uniform_radius`), the steps of
        Proposition 3, as many phases and steps as the proof asks for, and R is the diameter of the
        ball.
    phases : int, default=2
        Largest number of phases with the calibrated constants.
    random_state : int, Generator or None
        Public randomness: who is in which phase, and rotations.

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845,
       Algorithm 4, Theorem 5, Corollary 2. The number of phases is that of the proof,
       :math:`\lceil\log_2(Gn\sqrt m\varepsilon/(\sigma d))\rceil`.

    Examples
    --------
    >>> from quorate.models.regression_losses import SquaredLoss
    >>> from quorate.core.users import UserData
    >>> rows = np.random.default_rng(0).normal(size=(20_000, 1))
    >>> people = UserData(rows, 2.0 * rows[:, 0], offsets=np.arange(0, 20_001, 5))
    >>> phased = PhasedMinimizer(
    ...     epsilon=4.0,
    ...     delta=1e-6,
    ...     gradient_bound=10.0,
    ...     gradient_spread=2.0,
    ...     smoothness=2.0,
    ...     radius=5.0,
    ...     records=5,
    ...     random_state=0,
    ... )
    >>> [phase.n_users for phase in phased.schedule(n_users=4000, dimension=2)]
    [2000, 1000]
    >>> minimum = phased.minimize(people, SquaredLoss())
    >>> bool(abs(minimum.theta[0] - 2.0) < 0.5)
    True
    """

    epsilon: float
    delta: float
    gradient_bound: float
    gradient_spread: float
    smoothness: float
    radius: float
    records: int
    constants: str = "calibrated"
    phases: int = 2
    random_state: RandomState = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _validate.positive(
            gradient_bound=self.gradient_bound,
            gradient_spread=self.gradient_spread,
            smoothness=self.smoothness,
            radius=self.radius,
        )
        _validate.positive_integer(records=self.records, phases=self.phases)
        _validate.one_of(("calibrated", "published"), constants=self.constants)
        check_budget(epsilon=self.epsilon, delta=self.delta)

    @property
    def mu(self) -> float:
        """The Gaussian parameter mu of every phase, because no user is in two phases."""
        return gdp_mu(float(self.epsilon), float(self.delta))

    @property
    def diameter(self) -> float:
        """Diameter of the ball: what the paper calls R."""
        return 2.0 * self.radius

    def strength(self, *, n_users: int, dimension: int) -> float:
        """Return lambda, the strength of the proximal term before the first phase."""
        spread = self.gradient_spread * math.sqrt(dimension)
        smaller = min(self.gradient_bound, spread)
        sampling = self.gradient_bound * smaller / (n_users * self.records)
        noise = (self.gradient_spread * dimension / (n_users * self.epsilon)) ** 2 / self.records
        size = self.diameter if self.constants == "published" else self.radius
        return math.sqrt(sampling + noise) / size

    def schedule(self, *, n_users: int, dimension: int) -> tuple[Phase, ...]:
        """Return the phases, from public numbers.

        Raises
        ------
        NotEnoughUsersError
            A phase has no users, which is usual with the published constants.
        """
        _validate.positive_integer(n_users=n_users, dimension=dimension)
        root = self.strength(n_users=n_users, dimension=dimension)
        count = self._count(n_users, dimension)
        sizes = [n_users // 2**t for t in range(1, count + 1)]
        if not sizes or sizes[-1] < 1:
            raise NotEnoughUsersError(
                f"{count} phases leave {n_users} / 2^{count} users for the last one. Use more "
                "users, constants='calibrated', or minimize, which needs no phases."
            )
        strengths = [4.0**t * root for t in range(1, count + 1)]
        return tuple(
            Phase(
                n_users=size,
                strength=strength,
                steps=self._steps(size, strength, n_users, dimension),
            )
            for size, strength in zip(sizes, strengths, strict=True)
        )

    def minimize(
        self,
        data: Crowd,
        loss: Loss,
        *,
        initial: ArrayLike | None = None,
    ) -> Minimum:
        """Run all phases and return the result of the last one."""
        dimension = loss.dimension(data.n_features)
        phases = self.schedule(n_users=data.n_users, dimension=dimension)
        theta = initial_point(initial, dimension)
        generator = public_generator(self.random_state)
        account = Account.open(epsilon=self.epsilon, delta=self.delta, unit=data.unit)
        groups = disjoint_groups(account, len(phases))
        parts = cut_by_draws(
            People(data, account.relation, among=account),
            [phase.n_users for phase in phases],
            groups,
            random_state=self.random_state,
        )
        minimum = None
        for phase, part, group in zip(phases, parts, groups, strict=True):
            minimum = descend(
                UserReleases.start(part, group),
                loss,
                steps=phase.steps,
                optimizer=self._optimizer(theta, phase.strength),
                gradients=self._strategy(phase.n_users, dimension, generator),
                initial=theta,
                curvature=self.smoothness,
                shrinkage=0.0,
            )
            theta = minimum.theta
        if minimum is None:
            raise NotEnoughUsersError("Expected at least one phase; use more users.")
        promise = with_caveat(account.guarantee(), loss)
        return replace(minimum, event=account.event, guarantee=promise)

    def _count(self, n_users: int, dimension: int) -> int:
        if self.constants == "calibrated":
            affordable = int(math.log2(max(1.0, n_users / _FEWEST_USERS)))
            return max(1, min(self.phases, affordable))
        signal = self.gradient_bound * n_users * math.sqrt(self.records) * self.epsilon
        return max(1, math.ceil(math.log2(signal / (self.gradient_spread * dimension))))

    def _steps(self, size: int, strength: float, n_users: int, dimension: int) -> int:
        if self.constants == "calibrated":
            return plan_steps(
                n_users=size,
                mu=self.mu,
                records=float(self.records),
                dimension=dimension,
            )
        # Corollary 2: H / lambda x log(n^2 m eps^2 / d), up to what the O hides.
        accuracy = max(math.e, n_users**2 * self.records * self.epsilon**2 / dimension)
        condition = (self.smoothness + strength) / strength
        return math.ceil(condition * math.log(accuracy))

    def _optimizer(self, centre: Vector, strength: float) -> Optimizer:
        inner: Optimizer = AveragedDescent(step_size=1.0, radius=self.radius)
        if self.constants == "published":
            condition = (self.smoothness + strength) / strength
            inner = RestartedDescent(condition=condition, radius=self.radius, constants="published")
        return ProximalDescent(inner=inner, centre=centre, strength=strength)

    def _strategy(self, n_users: int, dimension: int, generator: RandomState) -> GradientRelease:
        if self.constants == "calibrated":
            return ClippedGradients()
        radius = uniform_radius(
            spread=self.gradient_spread,
            smoothness=self.smoothness,
            diameter=self.diameter,
            records=self.records,
            dimension=dimension,
            n_users=n_users,
            gamma=_GAMMA / 3.0,
        )
        return WinsorizedGradients(
            bound=self.gradient_bound,
            radius=radius,
            gamma=_GAMMA,
            constants="published",
            random_state=generator,
        )
