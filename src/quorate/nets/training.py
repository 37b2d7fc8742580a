r"""Private training: steps on noisy mean gradients of users, with automatic clipping.

A step releases the mean gradient over all users, or over a secret Poisson sample. Each user
contributes the mean gradient of the user's own records. The core computes it in batches of fixed
public shapes (:mod:`quorate.core.placed`), clips it to a ball, rounds it to integers and adds it
up. The account adds exact discrete Gaussian noise. Together with the gradient every user adds the
*lift* of the ball (:mod:`quorate.core.bounds.lifted_ball`). It does not raise the sensitivity, and
it shows whether the clipping radius suits the gradients. The next radius is derived from it.

Public numbers decide everything else (:func:`recipe_for`). T steps share the budget, and each has
noise :math:`\sqrt T` times that of a single one. So in each step nearly all of the gradient is
noise, and Adam scales its steps by the noise. A weight without signal then moves by the learning
rate times a random number of size one. With steps in proportion to :math:`1/\sqrt T`, signal and
noise of a whole training are the same for every T. Then one choice is left, the total length of the
steps, and the best one is the typical size of the weights themselves (a ridge penalty for a normal
prior gives the same answer).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import exact
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Grid, Interval
from quorate.core.bounds.lifted_ball import LiftedBall
from quorate.core.compiled import LARGEST_STEPS
from quorate.core.guarantees import Gaussian, Nothing, Relation
from quorate.core.people import People
from quorate.core.placed import Places
from quorate.core.users import UserData
from quorate.mechanisms.sums import GaussianSum, choose_grid, pay_again
from quorate.mechanisms.user_releases import BoundedVectors, ReleasedMean
from quorate.mechanisms.user_sample import UserSample
from quorate.models.optimization.descent import Optimizer, OptimizerState, follow
from quorate.models.optimization.gradients import TraceStep
from quorate.models.optimization.optimizers import Adam
from quorate.nets.checkpoints import Checkpoint
from quorate.nets.clip import LengthBelief
from quorate.nets.linear_ends import LinearEnds
from quorate.nets.networks import Network

__all__ = ["Recipe", "Training", "open_training", "places_for", "recipe_for"]

Vector = NDArray[np.float64]

# Numbers of one batch of gradients: a quarter of a megabyte, which stays in the cache of a core.
_BATCH = 2**16
# No batch holds more users, and an expected queue is at least so long: short ones are uneven.
_WIDEST, _SHORTEST_QUEUE = 512, 16
# machine: records of a batch grow by this factor: few shapes to compile, and not much padding.
_GROWTH = 3
# machine: signal and noise are the same for any number of steps (see above), but long ones are not
# stable where a network is curved. So many take a minute for 10,000 people and a small network.
_STEPS = 480
# Gradients of a full batch, users x weights, that are computed in a step before sampling pays.
_FULL = 2**27
# The radius, the norm that lifts show, changes by at most this factor in a step.
_FASTEST = 2.0
# Norms of gradients are taken for at most so many first radii.
_REACH = 20.0
# Part of mu squared that buys the number of users, where it is private.
_COUNTED = 0.03
# Under these numbers a checkpoint claims what comes before all steps: the number of users, and
# what a training begins with.
_COUNT, _BEGUN = -2, -1


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The settings of a training; public.

    Attributes
    ----------
    steps : int
    rate : float
        Probability with which a user takes part in a step; 1 means all users in all steps.
    learning_rate : float
    """

    steps: int
    rate: float
    learning_rate: float


def recipe_for(
    *,
    n_users: float,
    weights: int,
    length: float,
    spread: float,
    steps: int | None = None,
    rate: float | None = None,
    learning_rate: float | None = None,
) -> Recipe:
    r"""Return the settings, with defaults from public numbers for those that are not given.

    * steps: 480;
    * rate: 1, unless users x weights is above 2^27; then 2^27 / (users x weights);
    * learning rate of Adam at the first step: :math:`2b/(J\sqrt T)` for outputs of ``spread`` b and
      a gradient of ``length`` J. A gradient with curvature h and noise :math:`\sigma` is
      informative about a weight of size :math:`\tau` if :math:`h\tau > \sigma`. So t, the sum of
      the steps, should be :math:`\tau/\sigma`; a longer training only adds noise. Adam divides by
      the noise, its steps decrease linearly to zero, and :math:`\sigma` is the noise of one step
      with the whole budget. Hence :math:`t = \eta\sqrt T/(2\sigma)`. Outputs of
      size b need weights of size :math:`\tau = b/J`.

    >>> recipe_for(n_users=16_673, weights=1607, length=3.0, spread=1.28)
    Recipe(steps=480, rate=1.0, learning_rate=0.0389...)
    """
    steps = _STEPS if steps is None else steps
    if rate is None:
        rate = min(1.0, _FULL / (max(n_users, 1.0) * weights))
    if learning_rate is None:
        learning_rate = 2.0 * spread / (length * math.sqrt(steps))
    return Recipe(steps=steps, rate=float(rate), learning_rate=learning_rate)


def places_for(*, weights: int, users_of_step: float, records: int) -> Places:
    """Return the shapes of batches, from public numbers.

    >>> places_for(weights=1607, users_of_step=16_673, records=64)
    Places(width=32, lengths=(3, 8, 22, 64))
    """
    most = min(_WIDEST, max(1, _BATCH // weights), max(1, int(users_of_step) // _SHORTEST_QUEUE))
    lengths = [records]
    while lengths[0] > _GROWTH:
        lengths.insert(0, -(-lengths[0] // _GROWTH))
    return Places(width=1 << (most.bit_length() - 1), lengths=tuple(lengths))


@dataclass(kw_only=True)
class Training:
    """A training under way; every number in it is public or was released.

    Attributes
    ----------
    state : OptimizerState
    square : Fraction
        Budget of one step, as a part of mu squared.
    radius : float
    ends : LinearEnds, optional
        What runs before the first step, and after the last one with the initial weights.
    belief : LengthBelief
    trace : list of TraceStep
    """

    people: People = field(repr=False)
    account: Account
    network: Network = field(repr=False)
    optimizer: Optimizer
    recipe: Recipe
    places: Places
    n_users: float
    sample: UserSample | None
    square: Fraction
    word: int
    radius: float
    start: Vector
    state: OptimizerState
    belief: LengthBelief
    trace: list[TraceStep] = field(default_factory=list)
    checkpoint: Checkpoint | None = None
    ends: LinearEnds | None = None

    def run(self, *, progress: bool | None) -> Vector:
        """Take the remaining steps; return the trained weights."""
        claims = {} if self.checkpoint is None else self.checkpoint.claims
        done, steps, ends = max(claims, default=_COUNT), self.recipe.steps, self.ends
        if ends is not None and done < _BEGUN:
            self._begin_at(ends.begun(self.start, self.people, self._paid(_BEGUN, ends.first)))
            self._write(_BEGUN)
        left = range(max(0, done + 1), steps)
        for step in follow(left, label="private training", show=progress):
            self._step(step)
            self._write(step)
        weights = self.optimizer.aggregate(self.state)
        if ends is not None and done < steps:
            paying = self._paid(steps, ends.last)
            weights = ends.ended(self.start, weights, self.people, paying)
            self.state = OptimizerState.start(weights, steps=steps)
            self._write(steps)
        return weights

    def _paid(self, step: int, part: float) -> Account:
        """Claim a part of the budget that is spent once; return an account with this part."""
        multiplier = self.account.multiplier(float(self.account.square) * part)
        if self.checkpoint is not None:
            self.checkpoint.claim(step, multiplier=multiplier)
        return self.account.part_of(square=1 / exact(multiplier) ** 2)

    def _begin_at(self, weights: Vector) -> None:
        self.start = weights
        self.state = OptimizerState.start(weights, steps=self.recipe.steps)

    def _write(self, step: int) -> None:
        if self.checkpoint is not None:
            self.checkpoint.write(step, self._arrays())

    def _step(self, step: int) -> None:
        theta, radius = self.optimizer.query(self.state), self.radius
        noisy = self._released(theta, step)
        value, noise = noisy.value[:-1], noisy.noise
        self.belief = self.belief.after(
            float(noisy.value[-1]) / radius,
            radius=radius,
            noise=noise / radius,
            users=max(1.0, self.n_users * self.recipe.rate),
        )
        wanted = self.belief.radius(noise=noise / radius * math.sqrt(theta.size))
        self.radius = min(_FASTEST * radius, max(radius / _FASTEST, wanted))
        # Adam compares a gradient with those before: in radii, as clip and noise are, or a first
        # radius that is too long would shorten all steps after it.
        unit = radius if isinstance(self.optimizer, Adam) else 1.0
        self.state = self.optimizer.update(
            self.state, value / unit, curvature=1.0, precision=1.0 / noise**2
        )
        self.trace.append(
            TraceStep(
                step=step,
                radius=radius,
                gradient_norm=float(np.linalg.norm(value)),
                noise=noise,
                penalty=0.0,
            )
        )

    def _released(self, theta: Vector, step: int) -> ReleasedMean:
        """Release the mean clipped gradient and the mean lift."""
        people, account, count = self.people, self.account, self.n_users
        if self.sample is None:
            multiplier = account.multiplier(self.square)
        else:
            account = self.sample.draw(account)
            people = account.people(people)
            multiplier, count = self.sample.multiplier, count * self.sample.rate
        bound = LiftedBall(
            self.radius,
            centre=np.zeros(theta.size),
            cone=account.relation is not Relation.REPLACE,
        )
        scale = 2.0 ** math.ceil(math.log2(multiplier)) * bound.l2_diameter
        # A radius of 2^20 steps: 32 bits hold a gradient to 2^-24 of its size.
        grid = choose_grid(
            bound, n_users=people.size_bound, noise_scale=scale, max_steps=LARGEST_STEPS
        )
        mechanism = GaussianSum(grid=grid, noise_multiplier=multiplier, relation=account.relation)
        total = people.placed_total(
            self.network.program(theta), grid, self.places, word=self.word + step
        )
        if self.checkpoint is not None:
            self.checkpoint.claim(step, multiplier=multiplier)
        found = mechanism.release(total, count=0.0, account=account)
        return ReleasedMean(found / count, mechanism.standard_error / count)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state of the training as arrays; all of it is public or released."""
        state, belief = asdict(self.state), asdict(self.belief)
        return (
            {f"state.{name}": np.asarray(held) for name, held in state.items()}
            | {f"belief.{name}": np.asarray(held) for name, held in belief.items()}
            | {
                "trace": np.array([astuple(each) for each in self.trace]),
                "radius": np.asarray(self.radius),
                "start": self.start,
                "n_users": np.asarray(self.n_users),
            }
        )

    def go_on(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state of a training from its arrays."""
        held = {name: part[()] for name, part in arrays.items()}
        parts: dict[str, dict[str, Any]] = {"state": {}, "belief": {}}
        for name, part in held.items():
            owner, _, own = name.partition(".")
            if own:
                parts[owner][own] = part
        self.state = OptimizerState(**parts["state"])
        self.belief = LengthBelief(**parts["belief"])
        self.radius = float(held["radius"])
        self.start = held["start"]
        self.trace = [_read_step(row) for row in held["trace"].tolist()]


def _read_step(row: list[float]) -> TraceStep:
    step, radius, gradient_norm, noise, penalty = row
    return TraceStep(
        step=int(step), radius=radius, gradient_norm=gradient_norm, noise=noise, penalty=penalty
    )


def _pay_again(claims: Mapping[int, float], account: Account, sample: UserSample | None) -> None:
    """Record the cost of what earlier runs of a training drew or may have drawn.

    A claimed step stays paid, whether its result was written or lost.
    """
    for step, multiplier in claims.items():
        if sample is None or step == _COUNT:
            pay_again(account, multiplier)
        else:
            pay_again(sample.draw(account), multiplier)


def _counted(
    people: People, account: Account, setup: Gaussian, checkpoint: Checkpoint | None
) -> float:
    """Return a private number of users; at least 1."""
    if checkpoint is not None:
        checkpoint.claim(_COUNT, multiplier=setup.noise_multiplier)
    grid = Grid(Interval(0.0, 1.0, centre=0.0), step=2.0**-28)
    count = GaussianSum(
        grid=grid, noise_multiplier=setup.noise_multiplier, relation=account.relation
    )
    total = people.total(BoundedVectors(_ones, grid.bound), grid)
    found = max(1.0, float(count.release(total, count=0.0, account=account)[0]))
    if checkpoint is not None:
        checkpoint.write(_COUNT, {"n_users": np.asarray(found)})
    return found


def _ones(users: UserData) -> Vector:
    return np.ones((users.n_users, 1))


def open_training(
    people: People,
    account: Account,
    network: Network,
    *,
    recipe: Callable[[float], Recipe],
    optimizer: Callable[[Recipe], Optimizer],
    records: int,
    radius: float,
    word: int,
    initial: Vector | None = None,
    checkpoint: Checkpoint | None = None,
    ends: LinearEnds | None = None,
) -> Training:
    """Begin a training: count the users if their number is private, then plan the steps.

    Steps on secret samples are priced as a whole before anything is drawn, so their number must not
    depend on a released number. If users are counted privately, ``recipe`` is called with 0 users
    and must return a public number of steps. It starts at ``initial``, by default at the weights of
    the network. With a ``checkpoint`` the training continues where another run of it ended; the
    draws of that run are paid first. Training on secret samples is priced as a whole and has no
    budget for ``ends``.
    """
    start = network.initial if initial is None else initial
    if checkpoint is not None:
        word = checkpoint.begin(_facts(people, start, network.frozen), seed=word)
    public = account.relation is Relation.REPLACE
    sampled = recipe(float(people.n_users) if public else 0.0)
    setup: Gaussian | None = None
    square = account.square
    if not public:
        setup = Gaussian(account.multiplier(_COUNTED * float(account.square)))
        square -= 1 / exact(setup.noise_multiplier) ** 2
    sample = None
    if sampled.rate < 1.0:
        # Planned for a little less noise than is drawn: an account adds up costs rounded upwards.
        planned = Nothing() if setup is None else Gaussian(setup.noise_multiplier * (1 - 2.0**-40))
        sample = UserSample.calibrated(
            rate=sampled.rate,
            steps=sampled.steps,
            epsilon=account.declared.epsilon,
            delta=account.declared.delta,
            relation=account.relation,
            setup=planned,
        )
        account.reserve_chain(sample.total(planned, sampled.steps))
    held = {} if checkpoint is None else checkpoint.arrays
    if checkpoint is not None:
        _pay_again(checkpoint.claims, account, sample)
    n_users = float(people.n_users) if setup is None else 0.0
    if held:
        n_users = float(held["n_users"])
    elif setup is not None:
        if checkpoint is not None:
            checkpoint.refuse_lost(_COUNT)
        n_users = _counted(people, account, setup, checkpoint)
    chosen = recipe(n_users) if sample is None else sampled
    if sample is not None:
        ends = None
    kept = Fraction(0) if ends is None else account.square * exact(ends.first + ends.last)
    size = network.initial.size
    cone = account.relation is not Relation.REPLACE or sample is not None
    training = Training(
        people=people,
        account=account,
        network=network,
        optimizer=optimizer(chosen),
        recipe=chosen,
        places=places_for(weights=size, users_of_step=chosen.rate * n_users, records=records),
        n_users=n_users,
        sample=sample,
        square=(square - kept) / chosen.steps,
        word=word,
        radius=radius,
        start=start,
        state=OptimizerState.start(start, steps=chosen.steps),
        belief=LengthBelief.at_most(_REACH * radius, cone=cone),
        checkpoint=checkpoint,
        ends=ends,
    )
    if "radius" in held:
        training.go_on(held)
    return training


def _facts(people: People, start: Vector, frozen: str) -> str:
    """Return a hash of all initial weights and of the public facts about people."""
    known = people.n_users if people.relation is Relation.REPLACE else None
    told = repr((known, people.unit, people.n_features, start.size, frozen)).encode()
    return hashlib.sha256(told + start.tobytes()).hexdigest()
