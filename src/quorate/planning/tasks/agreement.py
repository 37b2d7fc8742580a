r"""Planning a learner by agreement, in the three trust models: its excess error (G5 to G11).

Users who share a seed vote for one hypothesis each; a *share* of them votes for the same one. The
share differs from seed to seed. So a plan uses a seed that is worse than nine of ten
(:func:`expected_share`) or, if the seed is chosen privately, the best of sixteen
(:func:`best_share`). A private selection needs a certain number of votes; the number of users is
this number divided by the share. Sharper weights have smaller errors and less agreement; the plan
uses the sharpest weights that the number of users allows.

The shares, and the constants of the shuffle and the local model, were measured. Tests compare them
with exact tails. The central failure probabilities are exact sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from quorate import _validate
from quorate.core.account.costs import gdp_mu
from quorate.core.guarantees import Relation
from quorate.local.shuffling.count_noise import selection_bound
from quorate.local.simulate import MOST_BUCKETS
from quorate.mechanisms.choices.stable_choice import StableChoice, truncated_laplace_mass
from quorate.papers.stability.stable_learner import REPORTS, SEEDS, choose_selection
from quorate.planning.limits import fixed_users_floor, representation_users
from quorate.planning.plan import PublishedBound
from quorate.planning.tasks.base import PlanTask
from quorate.planning.tasks.rules import check_error_level

__all__ = [
    "AgreementTask",
    "BucketAgreementTask",
    "LocalAgreementTask",
    "ShuffleAgreementTask",
    "best_share",
    "central_failure",
    "expected_share",
]

_SHARPNESS: tuple[float, ...] = tuple(float(2.0 ** (k / 2)) for k in range(2, 13))
# Excess x sharpness x sqrt(records) that nine of ten crowds keep.
_EXCESS = 2.8
# Of ten seeds one agrees less than planned; half of its crowds may fail.
_UNDER_A_BAD_SEED = 5.0
# Votes that lose are spread over about this many rivals.
_RIVALS = 4
# Beyond this many users the binomial tails are negligible and sums over them long.
_MANY = 4_000
_MOST_USERS = 2**40


def expected_share(sharpness: float, records: int) -> float:
    """Return the share of users who agree with an unlucky seed (worse than nine of ten).

    It was measured on cut-offs with a tenth of wrong labels; it hardly depends on the class.

    >>> round(expected_share(8.0, 1024), 2)
    0.46
    """
    more = math.log2(max(records, 1)) - 4.0
    found = 0.48 + 0.02 * more - (0.09 - 0.003 * more) * math.log2(sharpness / 2.0)
    return min(max(found, 0.2), 0.9)


def best_share(sharpness: float, records: int) -> float:
    """Return the share of users who agree with the best of sixteen seeds.

    >>> round(best_share(8.0, 1024), 2)
    0.97
    """
    more = math.log2(max(records, 1)) - 4.0
    found = 1.0 + 0.04 * more - 0.11 * math.log2(sharpness / 2.0)
    return min(max(found, 0.4), 0.97)


@lru_cache(maxsize=4096)
def central_failure(
    *,
    users: int,
    share: float,
    size: int,
    seeds: int,
    epsilon: float,
    delta: float,
    relation: Relation,
) -> float:
    """Return the probability that a trusted server misses the most frequent choice.

    Votes are binomial, other votes are spread over four rivals, and the law of the selection is
    exact.

    >>> known = dict(size=2**14, epsilon=1.0, delta=0.0, relation=Relation.REPLACE)
    >>> central_failure(users=40, share=0.8, seeds=1, **known) < 0.1
    True
    """
    from scipy.stats import binom

    if users > _MANY:
        return 0.0
    won = np.arange(users + 1)
    rival = (users - won) / _RIVALS
    selection = choose_selection(
        size=size, seeds=seeds, epsilon=epsilon, delta=delta, relation=relation
    )
    if selection.pure:
        rate = epsilon if relation is Relation.ADD_REMOVE else epsilon / 2
        # Weights relative to the winner's; those without votes weigh one each.
        others = _RIVALS * np.exp(np.minimum(rate * (rival - won), 700.0))
        others = others + np.exp(np.minimum(math.log(size * seeds) - rate * won, 700.0))
        found = 1.0 / (1.0 + others)
    else:
        choice = StableChoice(epsilon=epsilon, delta=delta, relation=relation)
        masses = truncated_laplace_mass(choice.reach, scale=choice.scale)
        at_least = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
        # Z > reach - votes, and Z is -reach at the least.
        passes = at_least[np.clip(2 * choice.reach - won + 1, 0, 2 * choice.reach + 1)]
        ahead = 1.0 - np.exp(-np.maximum(won - rival, 0.0) / choice.scale) * _RIVALS / 2
        found = passes * np.clip(ahead, 0.0, 1.0)
    return float(1.0 - np.sum(binom.pmf(won, users, share) * found))


@dataclass(frozen=True, kw_only=True)
class AgreementTask(PlanTask):
    """The rule on which most users agree, as in :class:`~quorate.papers.stability.StableLearner`.

    The error is the excess error over the best rule of the class.

    Parameters
    ----------
    size : int, default=16384
        Number of hypotheses, or of the hypotheses of a representation.
    error_level : float, default=0.1
        Error of the best rule.
    plurality : float, optional
        Share of the users who agree, if it is known; by default a typical value.

    Examples
    --------
    >>> task = AgreementTask(size=2**14, records=1024)
    >>> task.error(20, 1.0) == task.largest_error, task.error(50, 1.0) <= 0.03
    (True, True)
    >>> task.algorithm(50, 1.0)[0]
    'pure_choice'
    """

    size: int = 2**14
    error_level: float = 0.1
    plurality: float | None = None

    name: ClassVar[str] = "agreement"
    error_meaning: ClassVar[str] = "excess over the error of the best rule"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.positive_integer(size=self.size)
        check_error_level(self.error_level)
        if self.plurality is not None:
            _validate.probability(plurality=self.plurality)

    @property
    def largest_error(self) -> float:
        """The excess error of a random guess over the best rule."""
        return 0.5 - self.error_level

    def share(self, sharpness: float, epsilon: float) -> float:
        """Return the share of users who agree, as seen by the selection."""
        if self.plurality is not None:
            return self.plurality
        if self._selection_is_pure(epsilon):
            return best_share(sharpness, self.records)
        return expected_share(sharpness, self.records)

    def error(self, users: int, epsilon: float) -> float:
        """Return the excess error at the largest sharpness for which enough users agree."""
        if self.size == 1:
            return 0.0
        sharpness = self.sharpness(users, epsilon)
        if sharpness is None:
            return self.largest_error
        return min(_EXCESS / (sharpness * math.sqrt(self.records)), self.largest_error)

    def sharpness(self, users: int, epsilon: float) -> float | None:
        """Return the largest sharpness for which enough users agree; ``None`` if there is none."""

        def reached(sharpness: float) -> bool:
            share = self.share(sharpness, epsilon)
            return self.failure(users, epsilon, share=share) <= self._allowed(epsilon)

        if not reached(_SHARPNESS[0]):
            return None
        low, high = 0, len(_SHARPNESS)  # shares fall, so the first failure ends it
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if reached(_SHARPNESS[middle]) else (low, middle)
        return _SHARPNESS[low]

    def _allowed(self, epsilon: float) -> float:
        """Return the allowed failure probability, given the planned share.

        The planned seed is worse than nine of ten, so half of its runs may fail, because with other
        seeds hardly any run fails.
        """
        if self.plurality is None and not self._selection_is_pure(epsilon):
            return min(0.5, _UNDER_A_BAD_SEED * self.beta)
        return self.beta / 2

    def failure(self, users: int, epsilon: float, *, share: float) -> float:
        """Return the probability of missing the users' most frequent choice."""
        return central_failure(
            users=users,
            share=share,
            size=self.size,
            seeds=SEEDS,
            epsilon=epsilon,
            delta=self.delta,
            relation=self.relation,
        )

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the selection that the learner would use."""
        selection = choose_selection(
            size=self.size,
            seeds=SEEDS,
            epsilon=epsilon,
            delta=self.delta,
            relation=self.relation,
        )
        return selection.route.name, selection.reason + self._advice(users, epsilon)

    def _advice(self, users: int, epsilon: float) -> str:
        found = self.sharpness(users, epsilon)
        return "." if found is None else f"; use sharpness={found:.3g}."

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return Theorems 25 and 30 of Ghazi et al. (2021), with constants 1."""
        del error
        doubt = math.log(1.0 / self.beta)
        pure = (math.log2(self.size) + doubt) / epsilon
        stable = math.inf if self.delta == 0 else (math.log(1.0 / self.delta) + doubt) / epsilon
        return PublishedBound(
            users=min(pure, stable),
            theorem="Theorem 30" if pure <= stable else "Theorem 25",
            holds=False,
            note="Ghazi, Kumar, Manurangsi (2021), constants 1, for users with very many records",
        )

    def lower(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return a lower bound for all learners: Theorem 9 of Levy et al., Lemma 4 for cut-offs.

        Lemma 4 uses the representation dimension, which is at most ln(size). For cut-offs, whose
        dimension is known, it is ln(size) up to a constant; for point functions it is far smaller.
        So the returned number is the general lower bound, and the note has the one for classes
        without a smaller representation.
        """
        del error
        floor = fixed_users_floor(
            epsilon=epsilon, delta=self.delta, beta=self.beta, relation=self.relation
        )
        dimension = math.log(max(self.size, 2))
        represented = representation_users(dimension=dimension, epsilon=epsilon, delta=self.delta)
        return PublishedBound(
            users=max(float(floor), 1.0),
            theorem="Theorem 9 of Levy et al. (2021)",
            holds=True,
            note=f"a class without a representation smaller than itself needs {represented:.3g} "
            "by Lemma 4 of Ghazi, Kumar, Manurangsi (2021)",
        )

    def _selection_is_pure(self, epsilon: float) -> bool:
        return choose_selection(
            size=self.size,
            seeds=SEEDS,
            epsilon=epsilon,
            delta=self.delta,
            relation=self.relation,
        ).pure


@dataclass(frozen=True, kw_only=True)
class LocalAgreementTask(AgreementTask):
    """Agreement without a trusted server: one report from each user.

    Examples
    --------
    >>> LocalAgreementTask(size=2**14, records=1024).error(500, 1.0) <= 0.03
    True
    """

    name: ClassVar[str] = "agreement-local"

    def share(self, sharpness: float, epsilon: float) -> float:
        """Return the share of users who agree with a single seed."""
        del epsilon
        return expected_share(sharpness, self.records) if self.plurality is None else self.plurality

    def _allowed(self, epsilon: float) -> float:
        del epsilon
        return self.beta / 2 if self.plurality else min(0.5, _UNDER_A_BAD_SEED * self.beta)

    def failure(self, users: int, epsilon: float, *, share: float) -> float:
        """Return 0 if there are enough users, otherwise 1."""
        return 0.0 if users >= self.needed(epsilon, share=share) else 1.0

    def needed(self, epsilon: float, *, share: float) -> float:
        """Return the users needed to find a candidate of this share, from nearly exact tails."""
        doubt = self._allowed(epsilon)
        deviations = math.sqrt(2.0 * math.log(max(self.size, 2) / doubt))
        deviations += 0.63 * NormalDist().inv_cdf(1.0 - doubt)
        growth = math.expm1(min(epsilon, 300.0))
        variance = 4.0 * (growth + 1.0) / growth**2 + 0.15
        return variance * (deviations / share) ** 2

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the report of the local model."""
        report = REPORTS["local"]
        return report.name, report.reason + self._advice(users, epsilon)

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return Theorem 29 of Ghazi et al. (2021), with constant 1."""
        del error
        users = (math.log2(self.size) + math.log(1.0 / self.beta)) / epsilon**2
        return PublishedBound(
            users=users,
            theorem="Theorem 29",
            holds=False,
            note="Ghazi, Kumar, Manurangsi (2021), constant 1, for users with very many records",
        )


@dataclass(frozen=True, kw_only=True)
class ShuffleAgreementTask(LocalAgreementTask):
    """Agreement through a shuffler, which mixes one report from each user.

    Examples
    --------
    >>> task = ShuffleAgreementTask(size=2**14, records=1024, delta=1e-6)
    >>> task.error(110, 1.0) <= 0.03
    True
    """

    name: ClassVar[str] = "agreement-shuffle"

    def needed(self, epsilon: float, *, share: float) -> float:
        """Return the users needed to find a candidate with this share, by shuffled reports."""
        alone = super().needed(epsilon, share=share)
        if self.delta == 0:
            return alone
        doubt = math.log(1.0 / self._allowed(epsilon))
        votes = 6.3 + 2.65 * math.log(max(self.size, 2)) + 8.0 * doubt
        votes *= math.sqrt(math.log(1.0 / self.delta) / math.log(1e6)) / epsilon**0.85
        return float(min(votes / share, alone))

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return the shuffled messages of the algorithm."""
        report = REPORTS["shuffle"]
        return report.name, report.reason + self._advice(users, epsilon)


@dataclass(frozen=True, kw_only=True)
class BucketAgreementTask(LocalAgreementTask):
    """Agreement through a shuffler, with counts of buckets: ``StableLearner(reports="buckets")``.

    Counts are never above the truth, so only the noise of the winning bucket matters: the number of
    users does not grow with the number of hypotheses (Theorem 35 of Ghazi et al. (2021)), of which
    there are at most 2^14.

    Examples
    --------
    >>> task = BucketAgreementTask(size=2**14, records=1024, delta=1e-6)
    >>> task.error(130, 1.0) <= 0.03
    True
    """

    name: ClassVar[str] = "agreement-buckets"

    def needed(self, epsilon: float, *, share: float) -> float:
        """Return the fewest users for which the votes lead by more than the noise of one bucket.

        Too few votes and too large noise each have half of the allowed failure probability; the
        other votes are assumed to be spread over four rivals.
        """
        if self.delta == 0 or self.size > MOST_BUCKETS:
            return math.inf
        doubt = self._allowed(epsilon) / 2
        return _users_ahead(_bucket_noise(epsilon, self.delta, doubt), share, doubt)

    def algorithm(self, users: int, epsilon: float) -> tuple[str, str]:
        """Return which reports the shuffle model uses, and why."""
        report = REPORTS["buckets"]
        return report.name, report.reason + self._advice(users, epsilon)

    def upper(self, *, epsilon: float, error: float) -> PublishedBound:
        """Return Theorem 35 by Lemma 36 with its constants: all users but a tenth agree."""
        del error
        if self.delta == 0 or epsilon > 1:
            return PublishedBound(
                users=math.inf,
                theorem="Theorem 35",
                holds=False,
                note="Ghazi, Kumar, Manurangsi (2021), stated for delta > 0 and epsilon up to 1",
            )
        ahead = selection_bound(epsilon, self.delta, beta=self.beta / 3)
        return PublishedBound(
            users=ahead / 0.8,
            theorem="Theorem 35",
            holds=False,
            note="Ghazi, Kumar, Manurangsi (2021), for users with very many records",
        )


@lru_cache(maxsize=4096)
def _users_ahead(noise: float, share: float, doubt: float) -> float:
    """Return the fewest users for which a share leads by ``noise``, with a small failure chance."""
    from scipy.special import bdtr

    def ahead(users: int) -> bool:
        least = (_RIVALS * noise + users) / (_RIVALS + 1)
        return bool(bdtr(math.floor(least), users, share) <= doubt)

    many = 1
    while not ahead(many):
        many *= 2
        if many > _MOST_USERS:
            return math.inf
    low, high = many // 2, many
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if ahead(middle) else (middle, high)
    return float(high)


def _bucket_noise(epsilon: float, delta: float, beta: float) -> float:
    """Return the ``1 - beta`` quantile of the noise of one bucket, to some percent.

    Counts with small noise are about Poisson, with mean and variance v. With many users, a replaced
    user, who moves two counts by one, is protected by v = 2 / mu^2. An empty bucket that stays
    empty needs v = ln(1/delta); half of that is added.
    """
    empty = math.log(1.0 / delta)
    variance = max(empty, 2.0 / gdp_mu(epsilon, delta) ** 2 + empty / 2.0)
    return variance + NormalDist().inv_cdf(1.0 - beta) * math.sqrt(variance)
