"""The training of all linear models: clipped gradients at the mean of their posterior.

Each step releases the mean gradient at the mean of the posterior
(:mod:`quorate.models.optimization.posterior`). The clipping radius is found from lifts
(:mod:`quorate.models.optimization.clips`). The prior mean is the constant model, so coefficients
without signal stay there. The posterior variances are the errors of the coefficients.

Clipping affects the records of a rare label most. This moves the intercept of a classifier and
little else. So the intercept is corrected at the end by the mean of (prediction minus label), which
is not clipped. The share of labels that was released at the start is a second observation. If both
together are within their noise of the intercept, it is not changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.grid import Interval
from quorate.core.users import UserData
from quorate.core.users.store import row_lengths
from quorate.mechanisms.user_releases import (
    BoundedVectors,
    ReleasedMean,
    UserReleases,
    UserVectors,
    bounded_mean,
)
from quorate.models.coefficients import NORMAL
from quorate.models.coordinates.geometry import Geometry, WhitenedLoss
from quorate.models.losses import LinearLoss
from quorate.models.optimization.clipped_means import (
    Lifted,
    clipped_mean,
    lifted_mean,
    takes_cone,
)
from quorate.models.optimization.clips import Lengths
from quorate.models.optimization.descent import follow
from quorate.models.optimization.gradients import TraceStep, gradients_at, signal_of
from quorate.models.optimization.posterior import BENT, Observed, Posterior
from quorate.models.regression_losses import SquaredLoss

__all__ = [
    "MOST_PARAMETERS",
    "STEPS",
    "Start",
    "Trained",
    "constant_share",
    "train",
    "train_constant",
]

Vector = NDArray[np.float64]

# derived: a curvature that is off by a factor of four leaves (3/4)^20 = .003 of the way.
STEPS = 20
"""Steps of a fit that names no other number."""
# derived: one over the noise that a constant is worth, in shares of its label: it costs 1/800 of
# that share.
_SHARE = 20.0
# Without this part of the budget all other noise is longer by .004.
_LITTLE = 2.0**-7
# derived: of the budget from step to step: the last third of the steps has two thirds of it.
_GROWTH = 2.0 ** (1.0 / 6.0)
# Log lengths change by a factor of e over all steps, as a random walk.
_DRIFT = 1.0 / math.sqrt(STEPS)
# Lengths before they are asked for lie within this factor of the longest that is thought of: its
# logarithm is the range of the answer, and its noise a sixth of that over n mu root .02.
_LENGTHS = 2.0**10
_SIZE_SHARE = 1.0 / 64.0
# The most that intercepts may cost once more, where steps have told of them already.
_LAST_SHARE = 1.0 / 16.0
# Rounds about a mean target, each of which leaves less than half of the clip of the one before.
_ROUNDS = 4
# public: log-odds of a label, and standard deviations of a target, are predicted to spread by at
# most this.
_LARGEST_SCORE = 6.0
# Log-curvatures differ by a factor of e^.5 from those of normal features, either way.
_UNSURE = 0.5
# No loss is taken for flatter than this part of its largest curvature.
_FLATTEST = 2.0**-10
# machine: lengths up to eight times the one before, so near that sums are integrals.
_STRETCHES = np.geomspace(2.0**-6, 2.0**3, 61)
# Noise of what was not asked for.
_NOTHING = 2.0**40
# machine: the product of two matrices of this size takes as long as a step.
MOST_PARAMETERS = 300
"""Beyond this many no error is stated: matrices of them would take longer than the fit."""


def constant_share(run: UserReleases, *, most: float, rarest: float = 0.5) -> float:
    """Return the share of the account for the constant model, at most a public share.

    With it the noise in the share of a label is a twentieth of the ``rarest`` share, as far as that
    is known. For all other labels this costs little.

    >>> from quorate.core.account.account import Account
    >>> from quorate.core.people import People
    >>> people = UserData(np.zeros((1000, 1)), offsets=np.arange(1001))
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> round(constant_share(run, most=0.25), 4)
    0.0286
    """
    signal = signal_of(n_users=run.n_users, mu=run.account.mu, relation=run.relation)
    return min(most, max(_LITTLE, (_SHARE / (rarest * max(signal, 1e-9))) ** 2))


@dataclass(frozen=True, kw_only=True, eq=False)
class Start:
    """The prior mean at the start of training, in released coordinates.

    Attributes
    ----------
    constant : array
        The intercepts of a model without coefficients, as far as they were released; zero of a loss
        that has none.
    variance : float
        The variance of each intercept.
    slope : float
        The typical slope of the loss, or a bound of it.
    shares : array, optional
        Released shares of labels, for losses whose slopes are bounded by ``slope``; None for
        regression.
    """

    constant: Vector
    variance: float
    slope: float
    shares: Vector | None = None

    @property
    def labels(self) -> bool:
        """Whether targets are labels."""
        return self.shares is not None

    def taken(self, radius: float, *, size: int) -> float:
        """Return by how much clipping may move the log-odds of the labels.

        A label has ``size`` parameters, D. With a share q of a label, and one record a user,
        gradients of its holders have the length (1 - q) root D and those of others q root D.
        Clipping weighs both labels anew, which moves log-odds by the logarithm of the ratio of the
        weights (Prentice and Pyke 1979).

        >>> known = dict(constant=np.zeros(1), variance=1.0, slope=1.0)
        >>> found = [Start(shares=np.array([1 - q, q]), **known) for q in (0.5, 0.1)]
        >>> [round(each.taken(0.3, size=9), 2) for each in found]
        [0.0, 2.2]
        """
        if self.shares is None:
            return 0.0
        reach = radius / math.sqrt(size)
        own, others = (np.minimum(1.0, reach / x) for x in (1.0 - self.shares, self.shares))
        return float(np.max(np.abs(np.log(others / own))))


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """The result of training, with its covariance, which is None for very many parameters."""

    theta: Vector
    covariance: Vector | None
    trace: tuple[TraceStep, ...]


@dataclass(frozen=True)
class _LogLengths:
    """The logarithm of the length of each user's vector; NaN is replaced by the smallest one."""

    vectors: UserVectors
    shortest: float

    def __call__(self, users: UserData) -> Vector:
        """Return one number per user."""
        lengths = np.nan_to_num(row_lengths(self.vectors(users)), posinf=np.finfo(float).max)
        return np.asarray(np.log(np.maximum(lengths, self.shortest)))[:, None]


def _release_lengths(
    run: UserReleases, vectors: UserVectors, *, longest: float
) -> tuple[Lengths, float]:
    """Release the mean log length of the users' vectors, and return it with its standard error."""
    bound = Interval(math.log(longest / _LENGTHS), math.log(longest))
    noisy = bounded_mean(
        run.data,
        BoundedVectors(_LogLengths(vectors, longest / _LENGTHS), bound),
        multiplier=run.account.multiplier(_SIZE_SHARE * float(run.account.square)),
        account=run.account,
        n_users=run.n_users,
    )
    log = min(max(float(noisy.value[0]), bound.lower), bound.upper)
    # The mean of logarithms is not that of lengths: by a quarter, for people a factor of two apart.
    error = math.hypot(noisy.noise, 0.25)
    return Lengths.around(log, error=error, cone=takes_cone(run)), error


def train_constant(run: UserReleases, *, reach: float, share: float) -> tuple[Posterior, Lengths]:
    """Release roughly the mean over users of their mean targets, for ``share`` of the account.

    Targets are usually within ``reach``. Also return how far users are from the constant.

    Examples
    --------
    >>> from quorate.core.account.account import Account
    >>> from quorate.core.people import People
    >>> rng = np.random.default_rng(0)
    >>> people = UserData(np.zeros((4000, 1)), rng.normal(0.4, 0.1, 4000), offsets=np.arange(4001))
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> found, _ = train_constant(run, reach=1.0, share=0.1)
    >>> bool(abs(found.mean[0] - 0.4) < 0.1), bool(found.variance[0] < 0.01)
    (True, True)
    """
    loss, one = SquaredLoss(), np.ones(1)
    # All users are asked, also where steps see samples: of those no more are planned than steps.
    run = replace(run, sample=None)
    belief = Posterior(
        start=np.zeros(1),
        variance_before=np.full(1, reach**2),
        widest=reach,
        unsure=0.5 * one,
        pull=0.0 * one,
    )
    lengths = Lengths.around(math.log(reach / 2.0), error=2.0, cone=takes_cone(run))
    square = share * float(run.account.square) / _ROUNDS
    for _ in range(_ROUNDS):
        theta = np.append(np.zeros(run.data.n_features), belief.mean)
        vectors = Lifted(gradients_at(loss, theta), (theta.size - 1,))
        noisy, _, kept, lengths = clipped_mean(
            run, vectors, lengths, size=1, square=square, whole=_ROUNDS * square, drift=_DRIFT
        )
        curvature = kept * one
        belief = belief.after(Observed(belief.mean, noisy.value, noisy.noise * one, curvature))
    return belief, lengths


def train(
    run: UserReleases,
    loss: WhitenedLoss,
    start: Start,
    *,
    before: tuple[Vector, float] | None = None,
    penalty: float = 0.0,
    steps: int | None = None,
    progress: bool | None = None,
) -> Trained:
    """Train in released coordinates with the rest of the account.

    ``run`` holds the users as ``loss`` sees them, ``penalty`` is the strength of penalty / 2 x
    squared coefficients of the features. ``before`` are parameters at which an earlier fit ended,
    and the noise of the gradient there, which was about zero: if others do not agree it is
    forgotten.

    Examples
    --------
    >>> from quorate.core.account.account import Account
    >>> from quorate.core.people import People
    >>> from quorate.models.coordinates.geometry import Geometry
    >>> from quorate.models.regression_losses import SquaredLoss
    >>> X = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> people = UserData(X, X @ [1.0, -1.0], offsets=np.arange(0, 20_001, 5))
    >>> account = Account.open(epsilon=2.0, delta=1e-6)
    >>> run = UserReleases.start(People(people, account.relation), account)
    >>> loss = WhitenedLoss(SquaredLoss(), Geometry(np.zeros(2), np.eye(2)))
    >>> start = Start(constant=np.zeros(1), variance=1.0, slope=1.0)
    >>> trained = train(run, loss, start)
    >>> bool(np.abs(trained.theta - [1.0, -1.0, 0.0]).max() < 0.05)
    True
    """
    theta = np.zeros(loss.dimension(loss.geometry.centre.size))
    if loss.inner.intercept:
        theta = loss.inner.with_offsets(theta, start.constant)
    frame = _Frame.of(loss, theta)
    longest = start.slope * math.sqrt(theta.size) * (2.0 if start.labels else _LENGTHS / 32.0)
    lengths, error = _release_lengths(run, gradients_at(loss, theta), longest=longest)
    # Where a label is predicted too rarely most gradients are short, and a clip that followed them
    # would hide the few that say so.
    least = 0.5 * math.exp(lengths.typical - 2.0 * error) if start.labels else 0.0
    widest = _LARGEST_SCORE / math.sqrt(max(1, loss.geometry.centre.size))
    if not start.labels:
        widest = _LARGEST_SCORE / 2.0 * math.exp(lengths.typical)
    belief = frame.belief(theta, start, loss.geometry, widest=widest, penalty=penalty)
    last = 0.0
    if loss.inner.intercept:
        rarest = 0.5 if start.shares is None else float(start.shares.min())
        last = constant_share(run, most=_LAST_SHARE, rarest=rarest)
    whole = float(run.account.square_left) - last * float(run.account.square)
    growth = _GROWTH ** np.arange(STEPS if steps is None else steps)
    shares = growth / growth.sum()
    trace: list[TraceStep] = []
    looks: list[_Look] = []
    unsure = np.zeros(theta.size)
    if before is not None:
        looks.append(frame.look(before[0], ReleasedMean(np.zeros(theta.size), before[1]), 1.0))
        belief, theta, unsure = frame.told(belief, looks)
    for step in follow(range(shares.size), label="private descent", show=progress):
        noisy, radius, kept, lengths = clipped_mean(
            run,
            Lifted(gradients_at(loss, theta)),
            lengths,
            size=theta.size,
            square=whole * float(shares[step]),
            whole=whole,
            drift=_DRIFT,
            least=least,
        )
        looks.append(frame.look(theta, noisy, kept))
        belief, theta, unsure = frame.told(belief, looks)
        trace.append(
            TraceStep(
                step=step,
                radius=radius,
                gradient_norm=float(np.linalg.norm(noisy.value)),
                noise=noisy.noise,
                penalty=penalty,
            )
        )
    variance = belief.variance
    if loss.inner.intercept:
        # All users are asked, also where steps saw samples.
        every = replace(run, sample=None)
        size, left = loss.inner.outputs, float(run.account.square_left)
        places = tuple(np.flatnonzero(frame.is_offset).tolist())
        if start.labels:
            taken = start.taken(trace[-1].radius, size=theta.size // loss.inner.outputs)
            asked = frame.asked_at(theta, variance, start, taken=taken)
            vectors = Lifted(gradients_at(loss, asked.theta), places)
            noisy = lifted_mean(every, vectors, start.slope, size=size, square=left)
            noisy = ReleasedMean(noisy.value[:-1], noisy.noise)
            theta, variance = frame.corrected(theta, variance, noisy, asked, taken=taken)
        else:
            vectors = Lifted(gradients_at(loss, theta), places)
            own = Lengths.around(
                lengths.typical - 0.5 * math.log(theta.size), error=1.0, cone=takes_cone(every)
            )
            noisy, _, kept, _ = clipped_mean(
                every, vectors, own, size=size, square=left, whole=left, drift=_DRIFT
            )
            belief = belief.after(frame.look(theta, noisy, kept).observed)
            theta, variance = frame.outward(belief.mean), belief.variance
    seen = bool(np.any(loss.geometry.unsure < 1.0))
    covariance = frame.covariance(belief, variance) if seen else None
    if not np.all(np.isfinite(unsure)):
        covariance = None
    if covariance is not None:
        covariance = covariance + np.outer(unsure, unsure)
    return Trained(theta=theta, covariance=covariance, trace=tuple(trace))


class _Look(NamedTuple):
    """A released gradient, and what the loss is expected to do where it was asked for."""

    theta: Vector
    bent: Vector  # the expected curvature in the predictions
    kept: float
    observed: Observed


class _Asked(NamedTuple):
    """The parameters at which the labels are released again, and the direction of intercepts."""

    theta: Vector
    way: Vector
    spread: float


@dataclass(frozen=True, kw_only=True, eq=False)
class _Frame:
    """The coordinates of the posterior, in which the curvature of the loss is about diagonal.

    Outputs are rotated to the axes of their curvature at the start. Features are rotated to the
    axes of the geometry, in which its errors are known.
    """

    inner: LinearLoss
    outputs: Vector
    axes: Vector | None
    hidden: Vector
    is_offset: NDArray[np.bool_]

    @classmethod
    def of(cls, loss: WhitenedLoss, theta: Vector) -> _Frame:
        inner, geometry = loss.inner, loss.geometry
        outputs = np.linalg.eigh(inner.expected_curvature(theta))[1]
        offsets = np.asarray(inner.unpenalized(geometry.centre.size))
        none = np.zeros((0, geometry.centre.size))
        hidden = none if geometry.hidden is None else geometry.hidden
        return cls(
            inner=inner, outputs=outputs, axes=geometry.axes, hidden=hidden, is_offset=offsets
        )

    def _turned(self, rows: Vector, axes: Vector | None) -> Vector:
        if axes is None:
            return rows
        size = len(axes)
        return np.concatenate([rows[:, :size] @ axes, rows[:, size:]], axis=1)

    def inward(self, theta: Vector) -> Vector:
        """Return parameters, or gradients, in these coordinates."""
        rows = self.outputs.T @ theta.reshape(len(self.outputs), -1)
        return self._turned(rows, self.axes).ravel()

    def outward(self, theta: Vector) -> Vector:
        """Undo :meth:`inward`, with nothing along directions in which nothing could be learned."""
        rows = self._turned(
            theta.reshape(len(self.outputs), -1), None if self.axes is None else self.axes.T
        )
        size = self.hidden.shape[1]
        rows[:, :size] -= rows[:, :size] @ self.hidden.T @ self.hidden
        return np.asarray(self.outputs @ rows).ravel()

    def covariance(self, belief: Posterior, variance: Vector) -> Vector | None:
        """Return the covariance of parameters, unless they are very many."""
        if variance.size > MOST_PARAMETERS:
            return None
        turn = np.array([self.outward(each) for each in np.eye(variance.size)]).T
        found = (turn * variance) @ turn.T
        # What nobody could see is as long as before.
        unseen = np.zeros((variance.size // len(self.outputs),) * 2)
        size = self.hidden.shape[1]
        unseen[:size, :size] = belief.spread**2 * self.hidden.T @ self.hidden
        return np.asarray(found + np.kron(np.eye(len(self.outputs)), unseen))

    def curvature(self, theta: Vector) -> Vector:
        """Return the expected curvature at parameters, in the coordinates of the loss."""
        seen = self.outputs.T @ self.inner.expected_curvature(theta) @ self.outputs
        each = np.maximum(np.diagonal(seen), _FLATTEST * self.inner.curvature)
        return np.repeat(each, theta.size // each.size)

    def belief(
        self, theta: Vector, start: Start, geometry: Geometry, *, widest: float, penalty: float
    ) -> Posterior:
        """Return what is known before the first gradient: a constant model, ``theta``."""
        # Clipping takes most from a rare label: its log-odds fall, and are set right later.
        variance = start.variance + (_LARGEST_SCORE / 3.0) ** 2 * start.labels
        unsure = np.full(theta.size, _UNSURE)
        pull = np.zeros(theta.size)
        features = ~self.is_offset
        unsure[features] = np.tile(np.hypot(_UNSURE, geometry.unsure), len(self.outputs))
        pull[features] = np.tile(penalty * geometry.stretched**2, len(self.outputs))
        return Posterior(
            start=self.inward(theta),
            variance_before=np.where(self.is_offset, variance, np.inf),
            widest=widest,
            unsure=unsure,
            pull=pull,
        )

    def look(self, theta: Vector, noisy: ReleasedMean, kept: float) -> _Look:
        """Return a released gradient, or one by the intercepts alone, in these coordinates."""
        gradient, noise = noisy.value, np.full(theta.size, noisy.noise)
        if gradient.size < theta.size:
            gradient = np.zeros(theta.size)
            gradient[self.is_offset] = noisy.value
            noise = np.where(self.is_offset, noise, _NOTHING * noisy.noise)
        curvature = kept * self.curvature(theta)
        observed = Observed(self.inward(theta), self.inward(gradient), noise, curvature)
        return _Look(theta, self.inner.expected_curvature(theta), kept, observed)

    def told(self, belief: Posterior, looks: list[_Look]) -> tuple[Posterior, Vector, Vector]:
        """Return the posterior of all looks, its mean, and by how much that is longer or shorter.

        Over normal features the mean of prediction x feature is (expected curvature) x coefficients
        (Stein 1981), and so is how it changes from one model to another. A length is therefore
        asked for on a line, where nothing need be straight, and how far it is from the mean counts
        as an error of that.
        """
        belief = belief.of(tuple(look.observed for look in looks))
        theta = self.outward(belief.mean)
        rows = np.where(self.is_offset, 0.0, theta)
        length = float(np.linalg.norm(rows))
        if self.inner.bends and length > 0.0:
            found, error = self._length(belief, looks, theta, rows / length)
            away = rows / length
            own = float((self.inward(away) ** 2) @ belief.variance)
            # Labels that features nearly tell apart have no minimum that anybody could see.
            if found + NORMAL * error > _LARGEST_SCORE:
                return belief, theta, np.full(theta.size, np.inf)
            # Longer or shorter than the mean by what a curve that is not straight hid from it.
            square = error**2 + (found - length) ** 2 - own
            return belief, theta, away * math.sqrt(max(0.0, square))
        return belief, theta, np.zeros(theta.size)

    def _length(
        self, belief: Posterior, looks: list[_Look], theta: Vector, way: Vector
    ) -> tuple[float, float]:
        """Return how long coefficients are in a direction, and the standard deviation of that."""
        now = float(theta @ way)
        lengths = now * _STRETCHES
        rows = way.reshape(self.outputs.shape[0], -1)

        def along(length: float) -> float:
            there = self.inner.expected_curvature(theta + (length - now) * way)
            return length * float(np.sum(rows * (there @ rows)))

        ends = np.array([along(length) for length in lengths.tolist()])
        likely = np.zeros(lengths.size)
        for look in looks:
            own = np.where(self.is_offset, 0.0, look.theta).reshape(rows.shape)
            begin = float(np.sum(rows * (look.bent @ own)))
            expected = look.kept * (begin - ends)
            gradient = float(self.outward(look.observed.gradient) @ way)
            doubt = look.observed.noise[0] ** 2 + (BENT * expected) ** 2
            likely -= 0.5 * ((gradient - expected) ** 2 / doubt + np.log(doubt))
        chances = belief.along(lengths, likely)
        mean = float(chances @ lengths)
        return mean, math.sqrt(float(chances @ (lengths - mean) ** 2))

    def asked_at(self, theta: Vector, variance: Vector, start: Start, *, taken: float) -> _Asked:
        """Return where the labels are released again, given what is known before.

        Two estimates of the intercepts are known: those of the constant model, enlarged by the
        spread of the scores (MacKay 1992), and those of the gradient steps, which clipping may have
        moved by ``taken``.
        """
        rows = theta.reshape(len(self.outputs), -1)
        stretch = 1.0 + math.pi / 8.0 * np.sum(rows[:, :-1] ** 2, axis=1)
        stretched = start.constant * np.sqrt(stretch)
        # That is so for normal scores of two classes: as unsure as it is large.
        doubt = float(np.mean((stretched - start.constant) ** 2))
        spread = start.variance * float(stretch.mean()) + doubt
        own = variance[self.is_offset] + taken**2
        way = self.outputs.T @ (rows[:, -1] - stretched)
        offsets = stretched + self.outputs @ (spread / (spread + own) * way)
        return _Asked(
            self.inner.with_offsets(theta, offsets), self.outputs.T @ (stretched - offsets), spread
        )

    def corrected(
        self,
        theta: Vector,
        variance: Vector,
        noisy: ReleasedMean,
        asked: _Asked,
        *,
        taken: float,
    ) -> tuple[Vector, Vector]:
        """Return parameters whose intercepts agree with the labels, and their variances.

        Two observations, the mean of (prediction minus label) and the intercepts of the constant
        model, are combined with the intercepts of the gradient steps.
        """
        rows = theta.reshape(len(self.outputs), -1).copy()
        steep = self.curvature(asked.theta)[self.is_offset]
        weights, known = (steep / noisy.noise) ** 2, 1.0 / asked.spread
        missed = np.clip(self.outputs.T @ noisy.value / steep, -1.0, 1.0)
        error = 1.0 / (weights + known)
        agreed = error * (known * asked.way - weights * missed)
        there = asked.theta.reshape(rows.shape)[:, -1]
        off = self.outputs.T @ (rows[:, -1] - there) - agreed
        # A shift of all scores of several classes moves nothing.
        seen = steep > 2.0 * _FLATTEST * self.inner.curvature
        off, error = np.where(seen, off, 0.0), np.where(seen, error, 0.0)
        own = variance[self.is_offset]
        # The bias of clipping: what the difference shows of it, as far as there can be any.
        shown = max(0.0, float(off @ off) - float((error + own) @ seen))
        taken = min(taken**2, shown)
        part = (own + taken) / np.maximum(own + taken + error, 1e-300)
        rows[:, -1] -= self.outputs @ (part * off)
        variance = variance.copy()
        variance[self.is_offset] = (1.0 - part) ** 2 * (own + taken) + part**2 * error
        return rows.ravel(), variance
