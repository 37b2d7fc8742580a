r"""Algorithm 1 (DelStab) for any base mechanism, by enumerating all sets of users (F1).

Nothing is assumed about the base mechanism: it need not even be private. For each value r of a
noisy limit all sets S of r users are examined; S is *stable* if the base mechanism, run on any two
choices of n - 4 kappa of the other users, has nearly the same law. If some S is stable, one is
drawn, further users are left out at random, and the base mechanism runs on the rest. Otherwise
nothing is released.

The numbers of sets are binomial coefficients, so this is possible for a dozen users at most. It
serves as a reference, for audits, and for comparison with the certified variant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact, float_up
from quorate.core.account.account import Account
from quorate.core.guarantees import Approximate, Guarantee, Relation
from quorate.core.noise.exact_decisions import exp_enclosure
from quorate.core.noise.truncated_laplace import TruncatedLaplace, published_reach
from quorate.core.users.crowd import call_quietly
from quorate.exceptions import NotEnoughUsersError, ParameterError, SchemaError
from quorate.mechanisms.wrappers.mixture_release import Mixture, MixtureRelease, Weights

__all__ = ["ItemToUser"]

MAX_CHOICES = 1000  # machine: time of comparing all pairs
"""More choices of users, or sets of users to leave out, are refused: all pairs are compared."""

_BITS = 128
# Sums of rounded masses are right to far better than this; what is nearer is decided exactly.
_UNSURE = 1e-9

Users = Sequence[Hashable]
Law = Callable[[Users], Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class ItemToUser:
    r"""Turn any mechanism with a finite law into a user-level private one, as published.

    Privacy
    -------
    guarantee : :math:`(\varepsilon, \delta)`-DP, with :math:`\varepsilon` = ``epsilon`` and the
        :math:`\delta` of ``event``, which is at most ``delta`` if ``reach`` is not given
    neighbours : replace all records of one user
    trust : central
    public : ``n_users``, ``outputs``, ``law`` as code, and all other parameters
    numerics : exact
    proof : Lemma 18 of [1]_ with :math:`\bar\varepsilon = \varepsilon/3`: the total is
        :math:`2P[R=0] + (e^{2\bar\varepsilon}+e^{\bar\varepsilon})\bar\delta`. The proof needs that
        a set that is stable for a neighbour stays so when the changed user joins it. That holds
        because stability is decided for pairs of sets, each decision depends only on the records of
        the users in the pair, and leaving out a user only removes pairs. A decision is "near" only
        if it is so in exact arithmetic (up to interval bounds of the exponential, rounded towards
        "far").

    Complexity
    ----------
    :math:`\binom{n}{4\kappa}` laws and all pairs of them, and all sets of up to
    :math:`2\kappa` users; at most 1000 of either.

    Parameters
    ----------
    law : callable
        Takes the records of ``n_users - 4 * reach`` users, in their order, and returns a weight for
        each output: numbers of at least zero, which are taken as exact rationals. If it raises an
        error or returns anything else, all outputs have the same weight. It must be deterministic:
        the same records give the same weights.
    outputs : int
    n_users : int
        At least ``4 * reach + 1``.
    epsilon : float, default=1.0
    delta : float, default=1e-6
    reach : int or None, default=None
        The paper's :math:`\kappa = 1 + \lceil\ln(1/\bar\delta)/\bar\varepsilon\rceil`. A smaller
        one is for small examples and makes the delta of ``event`` larger.

    References
    ----------
    .. [1] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
       examples per user. NeurIPS 2023. Algorithm 1, Lemma 18, Appendix C.4.

    Examples
    --------
    >>> votes = lambda users: [1 + sum(users), 1 + len(users) - sum(users)]
    >>> tiny = ItemToUser(law=votes, outputs=2, n_users=6, epsilon=3.0, delta=0.1, reach=1)
    >>> tiny.survivors, round(tiny.event.delta, 3)
    (2, 0.507)
    >>> tiny.release([0, 0, 0, 0, 0, 0]) in (0, 1, None)
    True
    """

    law: Law = field(repr=False)
    outputs: int
    n_users: int
    epsilon: float = 1.0
    delta: float = 1e-6
    reach: int | None = None

    relation = Relation.REPLACE

    def __post_init__(self) -> None:
        if not callable(self.law):
            raise ParameterError("Expected law to be a function of users' records.")
        _validate.positive_integer(outputs=self.outputs, n_users=self.n_users)
        _validate.positive(epsilon=self.epsilon)
        _validate.probability(delta=self.delta)
        if self.reach is None:
            reach = published_reach(self.step, float(self.closeness_delta))
            object.__setattr__(self, "reach", reach)
        if self.survivors < 1:
            raise NotEnoughUsersError(
                f"Expected at least {4 * self.limit.reach + 1} users for a reach of "
                f"{self.limit.reach}, got {self.n_users}."
            )
        # Binomial coefficients rise up to the middle.
        left_out = min(2 * self.limit.reach, self.n_users // 2)
        for size in (self.survivors, left_out):
            if math.comb(self.n_users, size) > MAX_CHOICES:
                raise ParameterError(
                    f"Expected at most {MAX_CHOICES} choices of {size} among {self.n_users} users. "
                    "Use CertifiedItemToUser for more."
                )
        _ = self.event

    @property
    def step(self) -> Fraction:
        """A third of epsilon."""
        return exact(self.epsilon) / 3

    @cached_property
    def closeness_delta(self) -> Fraction:
        """The delta up to which two laws must be near, rounded down."""
        return exact(self.delta) / (_exp_up(2 * self.step) + _exp_up(self.step) + 2)

    @cached_property
    def limit(self) -> TruncatedLaplace:
        """The law of the noisy limit."""
        return TruncatedLaplace(self.step, reach=self.reach or 0)

    @property
    def survivors(self) -> int:
        """The number of users on which the base mechanism runs."""
        return self.n_users - 4 * self.limit.reach

    @cached_property
    def event(self) -> Approximate:
        """The event for the accountant."""
        near = (_exp_up(2 * self.step) + _exp_up(self.step)) * self.closeness_delta
        delta = float_up(2 * self.limit.tail + near)
        if not delta < 1:
            raise ParameterError(
                f"Expected a delta below 1, got {delta:.3g} for reach={self.reach}."
            )
        return Approximate(float_up(self.epsilon), delta)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one release."""
        return self._drawn.guarantee

    def release(self, users: Users, *, account: Account | None = None) -> int | None:
        """Return an output of the base, or None; ``users`` holds each user's records."""
        if len(users) != self.n_users:
            raise SchemaError(f"Expected the records of {self.n_users} users.")
        return self._drawn.release(self.mixtures(users), account=account)

    def probabilities(self, users: Users) -> dict[int | None, float]:
        """Return the law of :meth:`release` in floating point, for audits."""
        masses = self._drawn.law(self.mixtures(users))
        return {None: float(masses[0])} | {i: float(p) for i, p in enumerate(masses[1:])}

    def mixtures(self, users: Users) -> list[Mixture | None]:
        """Return the law of the output for each value of the limit; private, for audits."""
        laws = tuple(
            self._weights([users[i] for i in chosen])
            for chosen in combinations(range(self.n_users), self.survivors)
        )
        # A set is stable if it meets every pair of choices whose laws are far apart.
        far = _far_pairs(laws, self.step, self.closeness_delta)
        avoid = np.unique(np.array([self._choices[a] | self._choices[b] for a, b in far], np.int64))
        return [self._mixture(laws, avoid, gone) for gone in range(2 * self.limit.reach + 1)]

    @property
    def _drawn(self) -> MixtureRelease:
        return MixtureRelease(limit=self.limit, event=self.event, outputs=self.outputs)

    @cached_property
    def _choices(self) -> NDArray[np.int64]:
        """The choices of users on which the base may run, as bit masks."""
        return _masks(self.n_users, self.survivors)

    def _mixture(
        self, laws: tuple[Weights, ...], avoid: NDArray[np.int64], gone: int
    ) -> Mixture | None:
        """Average over stable sets of ``gone`` users, and over the further users left out."""
        sets = _masks(self.n_users, gone)
        stable = sets[((sets[:, np.newaxis] & avoid) != 0).all(axis=1)]
        if stable.size == 0:
            return None
        # For every stable set there is the same number of choices without its users.
        shares = ((self._choices[:, np.newaxis] & stable) == 0).sum(axis=1)
        return Mixture(tuple(int(share) for share in shares), laws)

    def _weights(self, records: list[Hashable]) -> Weights:
        weights = call_quietly(lambda: _integer_weights(self.law(records)))
        usable = weights is not None and len(weights) == self.outputs
        return weights if weights is not None and usable else (1,) * self.outputs


def _masks(n: int, size: int) -> NDArray[np.int64]:
    return np.array([sum(1 << i for i in each) for each in combinations(range(n), size)], np.int64)


def _integer_weights(weights: Sequence[Any]) -> Weights | None:
    """Return weights as integers in the same proportions; None if they are invalid."""
    rationals = [exact(weight) for weight in weights]
    if min(rationals) < 0 or not sum(rationals) > 0:
        return None
    common = math.lcm(*(rational.denominator for rational in rationals))
    return tuple(int(rational * common) for rational in rationals)


def _exp_up(x: Fraction) -> Fraction:
    """Return exp(x), rounded up."""
    return Fraction(1 << _BITS, exp_enclosure(x, bits=_BITS)[0])


def _exp_down(x: Fraction) -> Fraction:
    return Fraction(1 << _BITS, exp_enclosure(x, bits=_BITS)[1])


def _far_pairs(
    laws: tuple[Weights, ...], epsilon: Fraction, delta: Fraction
) -> list[tuple[int, int]]:
    """Return the pairs of laws that are not (epsilon, delta)-close."""
    masses = np.array([[weight / sum(law) for weight in law] for law in laws])
    factor = math.exp(float(epsilon))
    far = []
    for a in range(len(laws)):
        sticks = np.maximum(masses[a] - factor * masses, 0.0).sum(axis=1)
        for b in np.flatnonzero(sticks > float(delta) - _UNSURE):
            sure = sticks[b] > float(delta) + _UNSURE
            if sure or _stick(laws[a], laws[b], _exp_down(epsilon)) > delta:
                far.append((a, int(b)))
    return far


def _stick(first: Weights, second: Weights, factor: Fraction) -> Fraction:
    """Return the exact hockey-stick divergence of two laws."""
    one, two = sum(first), sum(second)
    return sum(
        (
            max(Fraction(p, one) - factor * Fraction(q, two), Fraction(0))
            for p, q in zip(first, second, strict=True)
        ),
        Fraction(0),
    )
