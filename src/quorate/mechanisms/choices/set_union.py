r"""Popular keys among unknown ones, for users with many keys each: set union in several rounds.

In every round users divide one length among those of their keys that are still in play. A key is in
play if it was neither found nor dropped because its noisy total was too small. So from round to
round a user's contribution goes to fewer and more promising keys. Noisy totals of keys that were
not found are never shown to anybody. In the proof they count as released, so users' next
contributions may depend on them.

In [1]_ contributions depend on the keys that were found, and no keys are dropped. There are greedy
rules in which a user's contribution depends on what earlier users have added [2]_, or on how much
others will add [3]_. They are not functions of the user's own keys and of released numbers, and are
not used here on purpose.

References
----------
.. [1] Swanberg, Desfontaines, Haney. DP-SIPS: A simpler, more scalable mechanism for differentially
   private partition selection. PoPETs 2023, arXiv:2301.01998.
.. [2] Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin. Differentially private set union. ICML
   2020, arXiv:2002.09745.
.. [3] Chen, Cohen-Addad, Epasto, Zadimoghaddam. Scalable private partition selection via adaptive
   weighting. ICML 2025, arXiv:2502.08878.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from quorate import _validate
from quorate._validate import exact, exact_ratio, float_up, ratio_root_up
from quorate.core.account.account import Account, noise_for
from quorate.core.guarantees import (
    DISCRETENESS,
    Approximate,
    Event,
    Relation,
    compose_events,
    gaussian_costs,
)
from quorate.core.noise import NoiseSource
from quorate.core.questions.held_keys import HeldKeys, keys_by_hand
from quorate.core.sealed import check_sealed, opened
from quorate.exceptions import ParameterError
from quorate.mechanisms.gaussian import GaussianMechanism

__all__ = ["SetUnion", "passing_bound"]

# One length in steps: what rounding takes from a user with a thousand keys is a part in 4000.
_RADIUS = 2**17
# What each round may spend, as squares: the next one twice as much as the one before.
_SHARES = (1, 2, 4)
# machine: erfc and its argument are good to far fewer units than this.
_ROUNDING = 1 + 2.0**-40
# machine: below it erfc leaves the range of floats, and a chance would become 0.
RAREST = 2.0**-900
LARGEST = 2**20


def passing_bound(
    threshold: int, *, sigma: float, radius: int, most: int, relation: Relation
) -> float:
    r"""Bound the probability that noise alone lifts a key of one user above a threshold.

    Let :math:`G(x)` = ``P(N > (threshold - x) / sigma)`` for a normal N. A key with a total of x
    exceeds the threshold with a probability of at most :math:`G(x)`, because the discrete Gaussian
    is at least m with a probability of at most that of :math:`\sigma N \ge m - 1`. G is convex
    below the threshold, so :math:`G(x) \le G(0) + (G(R) - G(0)) x / R`. A user whose K keys have
    :math:`\sum x^2 \le R^2`, hence :math:`\sum x \le \sqrt K R`, has one of them above it with
    probability at most :math:`K G(0) + \sqrt K (G(R) - G(0))`. A user who replaces that user has K
    other keys, to which the first user adds nothing.

    >>> passing_bound(600, sigma=100.0, radius=100, most=1, relation=Relation.ADD_REMOVE) < 3e-7
    True
    """
    if threshold < radius:
        return 1.0
    none, full = (
        0.5 * math.erfc((threshold - x) / sigma / math.sqrt(2.0)) * _ROUNDING for x in (0, radius)
    )
    others = most if relation is Relation.REPLACE else 0
    root = math.sqrt(most)
    return min(1.0, ((most - root + others) * none + root * full) * _ROUNDING)


def _at_most(number: int, sigma: float) -> float:
    """Bound the probability that discrete Gaussian noise is at most a number below 0."""
    return 0.5 * math.erfc(-(number + 1) / sigma / math.sqrt(2.0)) if number < 0 else 1.0


@dataclass(frozen=True)
class _Round:
    """One round: its noise, the threshold for releasing keys, and its cost; all public."""

    sigma: float
    threshold: int
    event: Event


@dataclass(frozen=True, kw_only=True)
class SetUnion(GaussianMechanism):
    r"""Release keys that many users have, hiding all keys of any one user.

    Three rounds. In each round a user divides one length R evenly among at most ``most`` of the
    user's keys in play, those with the largest noisy totals of the round before. Every total gets
    discrete Gaussian noise. A key is released if its noisy total exceeds the threshold of the
    round. A key whose noisy total does not exceed the standard deviation of the noise is dropped
    from play.

    Privacy
    -------
    guarantee : Gaussian DP with :math:`\mu` = 1 / ``noise_multiplier`` and a failure probability of
        at most ``failure``, hence :math:`(\varepsilon, \delta)`-DP with the :math:`\varepsilon` of
        ``guarantee_at(delta)``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters; keys are private until they are released
    numerics : exact
    proof : Let V be the noisy totals of all rounds, for the keys of either of two neighbours. A
        user's contribution in a round is a function of the user's keys and of the earlier part of
        V, and is at most R long. So V is :math:`\mu`-GDP (``docs/proofs/set_union.md``). Let f(V)
        be the release if only those keys counted to which users other than the differing one add
        something. Other keys are released with a probability of at most ``failure``, under either
        neighbour, by :func:`passing_bound` in every round; otherwise the release is f(V).

    Utility
    -------
    A key of ``people_needed(beta, keys)`` users or more, each of whom has at most ``keys`` keys, is
    released with probability :math:`1 - \beta`. This number is :math:`O(\sqrt{k \ln(K/\delta)} /
    \varepsilon)` for k keys per user. The number of keys in play falls from round to round, so
    fewer users are usually enough.

    Complexity
    ----------
    Time :math:`O(N \log N)` for N pairs of a user and a key, and one draw per round for each key in
    play.

    Parameters
    ----------
    noise_multiplier : float
        Noise multiplier of all rounds together.
    failure : float
        The part of delta for keys of a single user.
    most : int, default=300
        How many keys of a user count in a round.
    relation : Relation, default=Relation.REPLACE
    delta : float, default=0.0
        The delta of ``guarantee``, including ``failure``.

    References
    ----------
    .. [1] Swanberg, Desfontaines, Haney. DP-SIPS: A simpler, more scalable mechanism for
       differentially private partition selection. PoPETs 2023, arXiv:2301.01998.
    .. [2] Canonne, Kamath, Steinke. The discrete Gaussian for differential privacy.
       arXiv:2004.00010v5; Proposition 25 for the tail.

    Examples
    --------
    >>> union = SetUnion(noise_multiplier=4.5, failure=5e-7, delta=1e-6)
    >>> round(union.guarantee.epsilon, 2)
    0.97
    >>> drinks = [["tea", "mate"]] * 400 + [["tea", "my own blend"]] + [["coffee"]] * 200
    >>> union.release_keys(drinks)
    ('coffee', 'mate', 'tea')
    """

    noise_multiplier: float
    failure: float | Fraction
    most: int = 300
    relation: Relation = Relation.REPLACE
    delta: float = 0.0

    def __post_init__(self) -> None:
        _validate.positive(noise_multiplier=self.noise_multiplier)
        _validate.probability(failure=self.failure)
        _validate.positive_integer(most=self.most)
        _validate.delta(delta=self.delta)
        _validate.one_of(tuple(Relation), relation=self.relation)
        if self.failure < RAREST:
            raise ParameterError(f"Expected failure to be at least 2**-900, got {self.failure!r}.")
        if self.most > LARGEST:
            raise ParameterError(f"Expected at most {LARGEST} keys a user, got {self.most}.")
        if not 0.01 <= self.noise_multiplier <= 2.0**30:
            raise ParameterError(
                f"Expected a noise multiplier of ordinary size, got {self.noise_multiplier!r}."
            )

    @cached_property
    def rounds(self) -> tuple[_Round, ...]:
        """Noise and threshold of each round, computed from the parameters."""
        return tuple(map(self._round, _SHARES))

    @property
    def event(self) -> Event:
        """The event for the accountant."""
        return compose_events([each.event for each in self.rounds])

    def release_keys(self, users: Sequence[Iterable[Any]]) -> tuple[Any, ...]:
        """Release keys, given the keys of each user; values that are not keys are ignored."""
        held = keys_by_hand(users, self.relation)
        return self.release(held, account=None)

    def release(self, held: HeldKeys, *, account: Account | None = None) -> tuple[Any, ...]:
        """Return the keys that were found, in the order of keys."""
        check_sealed(held, HeldKeys)
        paying = Account.of_release(account, self)
        paying.check_seal(held)
        return self._popular(held, noise_for(paying, self.event))

    def error_bound(self, beta: float, keys: int = 1) -> int:
        """Return :meth:`people_needed`."""
        return self.people_needed(beta, keys)

    def people_needed(self, beta: float, keys: int = 1) -> int:
        """Return how many users a key needs to be released, if each has at most this many keys.

        This holds except with probability ``beta``, whatever keys other users have.
        """
        _validate.probability(beta=beta)
        _validate.positive_integer(keys=keys)
        if keys > self.most:
            raise ParameterError(f"Expected at most {self.most} keys, which count, got {keys}.")
        each = math.isqrt(_RADIUS**2 // keys)
        low, high = 0, 1
        while self._missed(high * each) > beta:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._missed(middle * each) > beta else (low, middle)
        return high

    def _missed(self, total: int) -> float:
        """Bound the probability that a key is not released, if it has ``total`` in every round."""
        found, dropped = 1.0, 0.0
        for each in self.rounds:
            found = min(found, dropped + _at_most(each.threshold - total, each.sigma))
            dropped += _at_most(math.floor(each.sigma) - total, each.sigma)
        return min(1.0, found)

    def _round(self, share: int) -> _Round:
        users = 2 if self.relation is Relation.REPLACE else 1
        top, bottom = exact_ratio(self.noise_multiplier)
        top, bottom = top * top * sum(_SHARES), bottom * bottom * share
        moved = users * _RADIUS**2
        sigma = ratio_root_up(top * moved + DISCRETENESS * bottom, bottom)
        event, _ = gaussian_costs(sigma, moved)
        failure = exact(self.failure) / len(_SHARES)
        threshold = self._threshold(sigma, float(failure) * (1 - 2.0**-40))
        passing = Approximate(0.0, float_up(self._passing(threshold, sigma)))
        return _Round(sigma, threshold, compose_events([event, passing]))

    def _passing(self, threshold: int, sigma: float) -> float:
        return passing_bound(
            threshold, sigma=sigma, radius=_RADIUS, most=self.most, relation=self.relation
        )

    def _threshold(self, sigma: float, failure: float) -> int:
        """Return the smallest threshold that noise exceeds with at most this probability."""
        low, high = 0, _RADIUS
        while self._passing(high, sigma) > failure:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._passing(middle, sigma) <= failure else (middle, high)
        return high

    def _popular(self, held: HeldKeys, noise: NoiseSource) -> tuple[Any, ...]:
        division, before = opened(held), None
        playing = np.ones(division.size, dtype=np.bool_)
        found = ~playing
        for each in self.rounds:
            totals = division.totals(playing, before, most=self.most, radius=_RADIUS)
            before = totals.copy()
            before[playing] = noise.discrete_gaussian(totals[playing], sigma=each.sigma)
            above = before > each.threshold
            found |= playing & above & (totals > 0)
            # Who is in play follows from noisy totals alone, and not from who added something.
            playing &= ~above & (before > each.sigma)
        return division.named(found)
