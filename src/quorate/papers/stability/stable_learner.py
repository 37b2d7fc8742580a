"""A learner for three trust models: the hypothesis on which most users agree (G5 to G8).

Every user runs a stable rule with a public seed and gets one key. The most frequent key is found by
a trusted server, from shuffled reports, or from reports that are private by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from quorate import _validate
from quorate._validate import exact
from quorate.core.account.account import Account
from quorate.core.guarantees import TRUST, Relation, Trust
from quorate.core.people import People
from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.users import UserData
from quorate.core.users.crowd import call_quietly
from quorate.core.users.public_choices import in_own_order
from quorate.data.tables import check_classes, check_columns, check_labels, declared_users
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept, ConceptClass, Constant
from quorate.ledger.ledger import Ledger
from quorate.local.randomizers.bucket_counts import BucketCounts
from quorate.local.randomizers.hashed import MAX_BITS, WORD_BITS
from quorate.local.simulate import (
    MOST_BUCKETS,
    bucket_choice,
    bucket_reports,
    honest_users,
    local_choice,
    shuffle_choice,
)
from quorate.mechanisms.choices.choose import CONFIDENCE, ChoiceError
from quorate.mechanisms.choices.stable_choice import StableChoice
from quorate.mechanisms.choices.universe import LARGEST_UNIVERSE, ChooseKey
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.papers.stability.representations import Representation
from quorate.papers.stability.rules import Keys, StableRule
from quorate.papers.stability.shared_seed import SharedSeed
from quorate.papers.stability.softmax import SoftmaxRule

__all__ = ["REPORTS", "SEEDS", "KeySelection", "StableLearner", "choose_selection"]

SEEDS = 16
"""Seeds among which a pure central choice chooses by default."""

AGREEMENT_SHARE = 0.1
"""The part of epsilon that a released agreement costs in the central model."""

AGREE_UNDER_THE_BEST_SEED, AGREE_UNDER_ONE_SEED = 0.9, 0.5
"""Shares of users who hold one key: under the best of many seeds, and under a bad one of ten."""

_COUNTED = "people who arrive at the rule by themselves"

MOST_CANDIDATES = {"shuffle": 2**WORD_BITS, "local": 2**MAX_BITS}
"""The largest number of candidates of a report; keys beyond 63 bits are Python integers."""


@dataclass(frozen=True)
class KeySelection:
    """How a trusted server finds the most frequent key, decided from public numbers.

    Parameters
    ----------
    pure : bool
        Whether the exponential mechanism over all keys is used, or truncated noise on the keys with
        votes.
    votes : float
        Number of votes with which a key wins in about nine of ten cases.
    users : float
        Number of users among whom a key has this many votes, with typical shares.
    reason : str
    """

    pure: bool
    votes: float
    users: float
    reason: str

    @property
    def route(self) -> Route:
        """The selection by name."""
        return Route(name="pure_choice" if self.pure else "truncated_noise", reason=self.reason)


REPORTS = {
    "shuffle": Route(
        name="shuffled_response", reason="one report a user, hidden among those of all others"
    ),
    "local": Route(
        name="hashed_response", reason="every user sends one report that protects by itself"
    ),
    "buckets": Route(
        name="bucket_counts",
        reason="shuffled messages for every key, with the least noise that hides one user",
    ),
    "published": Route(
        name="published_counts",
        reason="shuffled messages for every key, with the noise of Corollary 40",
    ),
}
"""How users report where no server is trusted with their records."""


@lru_cache(maxsize=1024)
def choose_selection(
    *, size: int, seeds: int, epsilon: float, delta: float, relation: Relation
) -> KeySelection:
    """Return the selection that needs fewer users; the planner uses it too.

    A pure choice may also choose the seed, at the cost of a slightly larger universe; with the best
    of many seeds nearly all users agree.

    >>> known = dict(seeds=16, epsilon=1.0, delta=1e-6, relation=Relation.REPLACE)
    >>> choose_selection(size=2**14, **known).pure, choose_selection(size=2**64, **known).pure
    (True, False)
    """
    universe = size * seeds
    pure = math.inf
    if universe <= LARGEST_UNIVERSE:
        rate = ChooseKey(size=universe, epsilon=epsilon, relation=relation).rate
        pure = (math.log(universe) + math.log(9.0)) / float(rate)
    stable = math.inf
    if delta > 0:
        choice = StableChoice(epsilon=epsilon, delta=delta, relation=relation)
        # P(Z <= -t) is about q^t / (1 + q).
        stable = choice.reach + choice.scale * math.log(5.0)
    share = AGREE_UNDER_ONE_SEED if seeds == 1 else AGREE_UNDER_THE_BEST_SEED
    for_pure, for_stable = pure / share, stable / AGREE_UNDER_ONE_SEED
    if for_pure <= for_stable:
        text = f"a pure choice among all keys and {seeds} seeds takes about {for_pure:.0f} users"
        other = "" if delta == 0 else f", truncated noise {for_stable:.0f}"
        return KeySelection(pure=True, votes=pure, users=for_pure, reason=text + other)
    other = "of so many keys is impossible" if pure == math.inf else f"about {for_pure:.0f}"
    text = f"truncated noise takes about {for_stable:.0f} users, a pure choice {other}"
    return KeySelection(pure=False, votes=stable, users=for_stable, reason=text)


class StableLearner(ClassifierMixin, UserEstimator):  # type: ignore[misc]
    r"""Learn a rule on which most users agree, with a trusted server, a shuffler, or neither.

    All users share a public random seed and run the same stable algorithm on their own records.
    Most of them arrive at the same hypothesis, and only the most frequent hypothesis is released.
    The number of users depends on the class only through the logarithm of its size. In the local
    model every user sends one report. It implements Algorithms 2, 4, 7 and 8 and Theorems 25, 29,
    30 and 35 of [1]_.

    Learning
    --------
    concept class : finite or ordered classes, representations of larger ones, or any
        :class:`~quorate.papers.stability.rules.StableRule`
    setting : agnostic; users i.i.d., records of one user i.i.d.; privacy needs none of this
    users needed : ``plan("agreement", ...)``: the votes that the selection needs over the share of
        users who agree. Theorems 1 to 3 of [1]_: :math:`O(\log(1/\delta)/\varepsilon)` central,
        :math:`O(d/\varepsilon)` pure central, :math:`O(d/\varepsilon^2)` local, for a class with a
        representation of d bits and users with enough records; Theorem 35:
        :math:`O(\log(1/(\beta\delta))/\varepsilon)` with a shuffler and counts of buckets

    Privacy
    -------
    guarantee : :math:`(\varepsilon, \delta)`-DP, with the given ``epsilon`` and ``delta``; the
        central model uses and charges no delta if a pure choice needs fewer users
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user (central only)
    trust : central, shuffle or local, as ``trust`` says
    public : the class, all parameters, the seed, the features' names; under ``Relation.REPLACE``
        the number of users
    numerics : exact
    proof : The seed is fixed before records are read, and a key is a function of one user's records
        and the seed. Central: with :math:`k` seeds a user has one vote for each seed, and one user
        moves every count of (seed, key) by at most one. So the exponential mechanism over all pairs
        is :class:`~quorate.mechanisms.choices.universe.ChooseKey`, at the same cost for every k.
        With truncated noise there is one seed and one vote, and the cost is that of
        :class:`~quorate.mechanisms.choices.stable_choice.StableChoice`. Shuffle and local: one
        report of :class:`~quorate.local.randomizers.hashed.HashedResponse` per user, or for
        shuffled buckets the messages of
        :class:`~quorate.local.randomizers.bucket_counts.BucketCounts`. Released: ``index_``,
        ``seed_`` and functions of them; ``agreement_`` if it was requested.

    Complexity
    ----------
    Mistakes of all hypotheses once for each seed, in blocks of users; beyond 2^16 ordered
    hypotheses a search of about 35 nodes per user.

    Parameters
    ----------
    concepts : ConceptClass, Representation or StableRule
        The rules; chosen without looking at the data.
    trust : {"central", "shuffle", "local"}, default="central"
    epsilon : float, default=1.0
    delta : float, default=0.0
        Positive for "shuffle"; for "central" it allows truncated noise, which large classes need.
    sharpness : float, default=8.0
        For classes and representations: :math:`\gamma = c\sqrt{m}` of
        :class:`~quorate.papers.stability.softmax.SoftmaxRule`. A larger value is more accurate, but
        users agree less often.
    seeds : int, default=16
        Number of seeds among which a pure central choice may choose; other models use one.
    agreement : bool, default=False
        Whether to release the share of users who have the released key. It costs a tenth of
        ``epsilon`` in the central model, where the number of users must be public; in the other
        models it is free.
    honest : float, default=1.0
        Share of users whose shuffled reports hide the others; public.
    reports : {"hashed", "buckets", "published"}, default="hashed"
        What users send to a shuffler. "hashed" is one short message each. "buckets" is Theorem 35:
        messages for every key, at most 2^14 keys, with a proved ``error_``. "published" is the same
        with the paper's constants, for thousands of users.
    classes : sequence of two labels, default=(0, 1)
        The labels of ``y``, negative first; records with another label are dropped.
    relation, ledger, data_name, random_state
        As in every estimator; ``random_state`` gives the public seed and must not depend on the
        data.

    Attributes
    ----------
    concept_ : Concept
        The rule; "always 0" if no key was popular enough (truncated noise only).
    index_ : int or None
        The key of the rule; ``None`` if there is none.
    seed_ : SharedSeed
        The seed under which the key stands for the rule.
    agreement_ : float or None
        ``None`` unless it was paid for.
    error_ : ChoiceError
        How much worse than the best rule the chosen one may be, or the reason why this is unknown.
    algorithm_ : Route
        Which selection was used (``name``), and why (``reason``).
    classes_ : array of shape (2,)
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling. NeurIPS
       2021.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 100, size=60 * 200)
    >>> people = np.repeat(np.arange(60), 200)
    >>> learner = StableLearner(Thresholds(0, 99), epsilon=2.0, random_state=0)
    >>> learner = learner.fit(x.reshape(-1, 1), x >= 40, users=people)
    >>> bool(np.mean(learner.predict(x.reshape(-1, 1)) == (x >= 40)) > 0.95)
    True
    >>> learner.guarantee_.trust.name
    'CENTRAL'
    """

    _takes_crowds = True

    def __init__(  # noqa: PLR0913 - the common keywords and those of the three models
        self,
        concepts: ConceptClass | Representation | StableRule,
        trust: str = "central",
        *,
        epsilon: float = 1.0,
        delta: float = 0.0,
        sharpness: float = 8.0,
        seeds: int = SEEDS,
        agreement: bool = False,
        honest: float = 1.0,
        reports: str = "hashed",
        classes: Sequence[Any] = (0, 1),
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.concepts = concepts
        self.trust = trust
        self.epsilon = epsilon
        self.delta = delta
        self.sharpness = sharpness
        self.seeds = seeds
        self.agreement = agreement
        self.honest = honest
        self.reports = reports
        self.classes = classes
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> StableLearner:
        """Learn from records grouped by user: ``(X, y, users=...)`` or a crowd."""
        rule = self._rule()
        self._validate(rule)
        check_columns(X, expected=rule.n_features)
        check_labels(y, self.classes)
        # Before any record is read: a seed chosen afterwards could be chosen against somebody.
        seed = int(public_generator(self.random_state).integers(2**62))
        if self.trust == "shuffle" and (present := declared_users(X, users)) is not None:
            self.refuse_hopeless(present, rule.n_features)
        account = self._charge(X, y, users, target=True, reserve=self._charged_delta)
        people = self._population(X, y, users, classes=self.classes)
        if self.trust == "central":
            released = self._central(rule, people, seed, account)
        else:
            released = self._reported(rule, people, SharedSeed(seed), account)
        self.guarantee_ = self._promise(account)
        self.index_, self.seed_ = released.key, released.seed
        self.concept_: Concept = Constant(0)
        if released.key is not None:
            self.concept_ = rule.concept(released.key, released.seed)
        self.agreement_ = released.agreement
        self.algorithm_ = released.route
        self.error_ = released.error
        self.classes_ = np.asarray(self.classes)
        return self

    def refuse_hopeless(self, n_users: int, n_features: int) -> None:
        """Raise an error if no user would be honest: no honest report could hide the others.

        With counts of buckets, also raise if delta is too small for the tables of this many users.
        """
        if self.trust == "shuffle" and self.reports == "hashed":
            honest_users(n_users, honest=self.honest)
        elif self.trust == "shuffle":
            bucket_reports(n_users, candidates=self._rule().size, **self._bucket_parameters)

    @property
    def _bucket_parameters(self) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "honest": self.honest,
            "published": self.reports == "published",
        }

    def predict(self, X: Any) -> Any:
        """Predict one of the two classes for every row of ``X`` by the released rule."""
        check_is_fitted(self, "concept_")
        return self.classes_[self.concept_.predict(self._features(X))]

    @property
    def _trust(self) -> Trust:
        return TRUST[self.trust]

    @property
    def _caveat(self) -> str | None:
        return self._rule().caveat

    def _rule(self) -> StableRule:
        if isinstance(self.concepts, StableRule):
            return self.concepts
        return SoftmaxRule(self.concepts, sharpness=self.sharpness)

    def _validate(self, rule: StableRule) -> None:
        _validate.one_of(tuple(TRUST), trust=self.trust)
        _validate.positive(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        _validate.positive_integer(seeds=self.seeds)
        _validate.one_of((True, False), agreement=self.agreement)
        _validate.fraction(honest=self.honest)
        _validate.one_of(("hashed", "buckets", "published"), reports=self.reports)
        if self.reports != "hashed" and self.trust != "shuffle":
            raise ParameterError(
                f"Expected trust='shuffle' for reports={self.reports!r}, got trust={self.trust!r}: "
                "only shuffled messages hide who counts in which bucket."
            )
        _validate.one_of(tuple(Relation), relation=self.relation)
        check_classes(self.classes)
        if self.trust == "central":
            self._validate_central(rule)
            return
        if self.relation is not Relation.REPLACE:
            raise ParameterError(
                f"Expected relation=Relation.REPLACE for trust={self.trust!r}: whoever collects "
                "reports sees how many there are."
            )
        most = MOST_CANDIDATES[self.trust]
        if rule.size > most:
            raise ParameterError(
                f"Expected a rule with at most 2^{math.log2(most):.0f} keys for "
                f"trust={self.trust!r}, got "
                f"2^{math.log2(rule.size):.0f}; use a smaller class or representation."
            )
        if self.reports != "hashed" and rule.size > MOST_BUCKETS:
            raise ParameterError(
                f"Expected a rule with at most 2^14 keys for reports={self.reports!r}, got "
                f"2^{math.log2(rule.size):.0f}; use reports='hashed'."
            )
        if (self.delta > 0) is not (self.trust == "shuffle"):
            needed = "delta > 0" if self.trust == "shuffle" else "delta = 0"
            raise ParameterError(
                f"Expected {needed} for trust={self.trust!r}, got delta={self.delta!r}."
            )

    def _validate_central(self, rule: StableRule) -> None:
        if self.delta == 0 and rule.size * self.seeds > LARGEST_UNIVERSE:
            raise ParameterError(
                "Expected at most 2^256 keys over all seeds for a pure choice, got "
                f"2^{math.log2(rule.size * self.seeds):.0f}; use delta > 0 or fewer seeds."
            )
        if self.agreement and self.relation is not Relation.REPLACE:
            raise ParameterError(
                "Expected relation=Relation.REPLACE for agreement=True: a share needs the number "
                "of users, which is private under addition and removal."
            )

    def _selection(self, rule: StableRule) -> KeySelection:
        epsilon = self.epsilon * (1 - AGREEMENT_SHARE if self.agreement else 1)
        return choose_selection(
            size=rule.size,
            seeds=self.seeds,
            epsilon=epsilon,
            delta=self.delta,
            relation=self.relation,
        )

    @property
    def _charged_delta(self) -> float:
        """The delta that is charged: zero for a pure choice, which does not use it."""
        pure = self.trust == "central" and self._selection(self._rule()).pure
        return 0.0 if pure else self.delta

    def _central(self, rule: StableRule, people: People, seed: int, account: Account) -> _Released:
        selection = self._selection(rule)
        share = exact(AGREEMENT_SHARE) * account.epsilon if self.agreement else Fraction(0)
        left = account.epsilon - share
        seeds = [SharedSeed(seed, task=f"seed {i}") for i in range(self.seeds)]
        if not selection.pure:
            seeds = seeds[:1]
        ballots = [people.ballots(_Decided(rule, each)) for each in seeds]
        votes = [own.votes(rule.size) for own in ballots]
        chosen: int | None
        if selection.pure:
            under_all = votes[0]
            for place, under in enumerate(votes[1:], start=1):
                under_all = under_all.beside(under, shift=place * rule.size)
            choice = ChooseKey(size=rule.size * len(seeds), epsilon=left, relation=self.relation)
            place, chosen = divmod(choice.release(under_all, account=account), rule.size)
        else:
            stable = StableChoice(epsilon=left, delta=self.delta, relation=self.relation)
            place = 0
            chosen = stable.release(votes[0], account=account)
        agreement = None
        if self.agreement:
            counted = NoisyCount(epsilon=share, relation=self.relation)
            noisy = counted.release(ballots[place].of_key(chosen), account=account)
            agreement = min(max(float(noisy) / people.n_users, 0.0), 1.0)
        worse: float = math.inf
        n_users = people.n_users if self.relation is Relation.REPLACE else None
        if selection.pure:
            worse = choice.error_bound(1.0 - CONFIDENCE)
        elif n_users is not None and chosen is not None:
            worse = stable.error_bound(1.0 - CONFIDENCE, keys=max(2, n_users))
        error = ChoiceError.unknown("How many keys have votes was not released.")
        if math.isfinite(worse):
            error = ChoiceError.of_people(worse, counts=_COUNTED, n_users=n_users)
        return _Released(chosen, seeds[place], agreement, selection.route, error)

    def _reported(
        self, rule: StableRule, people: People, seed: SharedSeed, account: Account
    ) -> _Released:
        keys = people.ballots(_Decided(rule, seed))
        if self.trust == "local":
            found = local_choice(keys, candidates=rule.size, epsilon=self.epsilon, account=account)
        elif self.reports != "hashed":
            found = bucket_choice(
                keys, candidates=rule.size, account=account, **self._bucket_parameters
            )
        else:
            found = shuffle_choice(
                keys,
                candidates=rule.size,
                epsilon=self.epsilon,
                delta=self.delta,
                honest=self.honest,
                account=account,
            )
        agreement = None
        if self.agreement:
            agreement = float(np.clip(found.votes.shares.max(), 0.0, 1.0))
        error = ChoiceError.unknown("Reports of people are noisy one by one; no bound was proved.")
        route = REPORTS[self.trust if self.reports == "hashed" else self.reports]
        if isinstance(found.report, BucketCounts):
            # Lemma 36: no count is above the truth, so only the best key's own noise can hurt it.
            worse = found.report.error_bound(1.0 - CONFIDENCE)
            error = ChoiceError.of_people(worse, counts=_COUNTED, n_users=people.n_users)
        return _Released(found.key, seed, agreement, route, error)


@dataclass(frozen=True)
class _Released:
    """The result of a selection."""

    key: int | None
    seed: SharedSeed
    agreement: float | None
    route: Route
    error: ChoiceError


def decide_quietly(rule: StableRule, data: UserData, seed: SharedSeed) -> Keys:
    """Return one key per user, -1 for users for whom a caller's rule raised; never raise.

    A rule of the caller is called for one user at a time, whether it raises for somebody or not.

    >>> from quorate.learners.concepts import Thresholds
    >>> one = UserData.from_arrays([[3.0]], [1], users=[0])
    >>> len(decide_quietly(SoftmaxRule(Thresholds(0, 9)), one, SharedSeed(0)))
    1
    """
    together = rule.keeps_users_apart
    keys = call_quietly(partial(_decide, rule, data, seed)) if together else None
    if keys is None or keys.shape != (data.n_users,):
        own = in_own_order(data)
        people = (own.take([user]) for user in range(data.n_users))
        alone = (call_quietly(partial(_decide, rule, person, seed)) for person in people)
        keys = np.array(
            [-1 if key is None or key.shape != (1,) else key[0] for key in alone], dtype=object
        )
        keys = keys.astype(np.int64) if rule.size <= 2**WORD_BITS else keys
    return keys


@dataclass(frozen=True)
class _Decided:
    """The decision of each user by a rule and a seed."""

    rule: StableRule
    seed: SharedSeed

    def __call__(self, part: UserData) -> Keys:
        return decide_quietly(self.rule, part, self.seed)


def _decide(rule: StableRule, data: UserData, seed: SharedSeed) -> Keys:
    keys = np.asarray(rule.decide(data, seed))
    # What is no key of the rule is no vote.
    if rule.size <= 2**WORD_BITS:
        return np.where((keys >= 0) & (keys < rule.size), keys, -1).astype(np.int64)
    return np.array([key if 0 <= key < rule.size else -1 for key in keys.tolist()], dtype=object)
