"""Keys that many users hold: the claim holds exactly in small worlds, and broken twins break it."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import norm

from quorate.auditing import SmallWorld, audit_exactly
from quorate.auditing.enumeration import Cells, _EnumeratedNoise
from quorate.auditing.laws import Law, gaussian_interval
from quorate.auditing.outcomes import Outcomes
from quorate.core.account.account import Account
from quorate.core.account.compose import delta_of
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.questions import held_keys
from quorate.core.questions.held_keys import Division, keys_by_hand
from quorate.exceptions import NumericalFailure, ParameterError, RelationMismatchError, SealedError
from quorate.mechanisms.choices import set_union
from quorate.mechanisms.choices.set_union import SetUnion, passing_bound

REPLACE, ADD_REMOVE = Relation.REPLACE, Relation.ADD_REMOVE
relations = pytest.mark.parametrize("relation", list(Relation))
RADIUS = set_union._RADIUS
# What a user may hold: nothing, one key or two.
WORLD = SmallWorld(records=((), ("a",), ("a", "b")), n_users=3, ordered=False)


@pytest.fixture
def one_round(monkeypatch):
    """One round: a key that leaves play in the first of several is a failure less."""
    monkeypatch.setattr(set_union, "_SHARES", (1,))


class Decisions(_EnumeratedNoise):
    """Takes a value of each kind that a round tells apart: out of play, in play, found."""

    def __init__(self, union):
        super().__init__(Cells(), 100, 1)
        self.cuts = {each.sigma: (math.floor(each.sigma), each.threshold) for each in union.rounds}

    def _add(self, law, values, scale):
        assert law == "discrete_gaussian"
        low, high = self.cuts[scale]

        def outcomes(value):
            ends = [(None, low - value), (low + 1 - value, high - value), (high + 1 - value, None)]
            masses = [gaussian_interval(*each, sigma=scale) for each in ends]
            return Outcomes.possible([low, high, high + 1], masses)

        drawn = [self._draw((scale, v), lambda v=v: outcomes(v)) for v in values.tolist()]
        return np.array(drawn, dtype=np.int64)


def law_of(union, users):
    """Return the exact law of what is released: the code itself, for all its decisions."""
    source, masses = Decisions(union), defaultdict(float)
    with use_noise(source):
        while True:
            source.rewind()
            masses[union.release_keys(users)] += source.probability
            if not source.advance():
                return Law(dict(masses))


def make(relation=ADD_REMOVE, kind=SetUnion, **changes):
    given = {"noise_multiplier": 1.0, "failure": 0.05, "most": 2, "relation": relation}
    return kind(**(given | changes))


def audit(union, *, epsilon, claimed=None, world=WORLD, thorough=True):
    """Compare the exact hockey stick of what is released with the claim at this epsilon."""
    claimed = claimed or union
    delta = delta_of(claimed.event, epsilon=epsilon)
    claim = replace(claimed.guarantee_at(0.9), epsilon=epsilon, delta=delta)
    return audit_exactly(partial(law_of, union), world, claim, thorough=thorough)


class HalfNoise(SetUnion):
    @property
    def rounds(self):
        honest = SetUnion.rounds.func(self)
        return tuple(replace(each, sigma=each.sigma / 2) for each in honest)


class LowThreshold(SetUnion):
    @property
    def rounds(self):
        honest = SetUnion.rounds.func(self)
        return tuple(
            replace(each, threshold=round(each.threshold - each.sigma / 8)) for each in honest
        )


class FullPrice(SetUnion):
    """Every round has the failures of all rounds together."""

    @property
    def rounds(self):
        return SetUnion.rounds.func(replace(self, failure=3 * self.failure))


ALONE = SmallWorld(records=((), ("a",)), n_users=1)


class TestClaim:
    @relations
    def test_all_rounds_keep_the_claim_in_all_small_worlds(self, relation):
        for epsilon in (0.5, 1.0, 4.0):
            found = audit(make(relation), epsilon=epsilon)
            assert found.holds
            assert found.delta > 0

    def test_a_key_of_one_user_alone_appears_as_often_as_is_paid_for(self, one_round):
        """At a large epsilon nothing else is left of delta, and the bound is attained."""
        found = audit(make(most=1), epsilon=9.0, world=ALONE)
        assert found.holds
        assert found.delta > 0.999 * 0.05

    @relations
    def test_half_of_the_noise_is_caught(self, relation, one_round):
        world = SmallWorld(records=((), ("a",)), n_users=4, ordered=False)
        assert audit(make(relation), epsilon=1.0, world=world).holds
        twin = make(relation, HalfNoise)
        assert not audit(twin, epsilon=1.0, claimed=make(relation), world=world).holds

    def test_a_lower_threshold_is_caught(self, one_round):
        twin = make(kind=LowThreshold, most=1)
        assert not audit(twin, epsilon=9.0, claimed=make(most=1), world=ALONE).holds

    def test_failures_of_all_rounds_in_each_of_them_are_caught(self):
        twin = make(kind=FullPrice, most=1)
        assert not audit(twin, epsilon=9.0, claimed=make(most=1), world=ALONE).holds

    def test_a_length_for_each_key_is_caught(self, one_round, monkeypatch):
        world = SmallWorld(records=((), ("a", "b", "c")), n_users=1)
        assert audit(make(most=3), epsilon=9.0, world=world).holds
        monkeypatch.setattr(held_keys, "_shares", lambda most, radius: np.full(most + 1, radius))
        assert not audit(make(most=3), epsilon=9.0, world=world).holds

    def test_keys_beyond_the_most_are_caught(self, monkeypatch):
        """One key is paid for, and two are added."""
        world = SmallWorld(records=((), ("a", "b")), n_users=1)
        assert audit(make(most=1), epsilon=9.0, world=world).holds
        honest = Division.totals
        monkeypatch.setattr(
            Division,
            "totals",
            lambda self, *given, most, radius: honest(self, *given, most=2, radius=2 * radius),
        )
        assert not audit(make(most=1), epsilon=9.0, world=world, thorough=False).holds


class TestThresholds:
    @relations
    def test_keys_of_one_user_pass_at_most_as_often_as_the_bound_says(self, relation):
        for keys in (1, 2, 5, 40):
            union = make(relation, most=40, failure=0.03)
            for each in union.rounds:
                own = math.isqrt(RADIUS**2 // keys)
                pass_ = gaussian_interval(each.threshold - own + 1, None, sigma=each.sigma)
                rest = gaussian_interval(each.threshold + 1, None, sigma=each.sigma)
                more = 40 if relation is REPLACE else 0
                assert keys * pass_ + more * rest <= each.event.events[1].delta <= 0.01

    def test_unequal_shares_pass_no_more_often(self):
        """The bound holds for all vectors of that length, not only for equal entries."""
        rng = np.random.default_rng(0)
        union = make(most=30, failure=0.03)
        for each in union.rounds:
            for _ in range(50):
                entries = rng.exponential(size=30) ** rng.uniform(0, 4)
                entries = np.floor(RADIUS * entries / np.linalg.norm(entries))
                passes = norm.sf((each.threshold - entries) / each.sigma).sum()
                assert passes <= each.event.events[1].delta

    def test_the_threshold_is_the_smallest(self):
        union = make(most=7)
        for each in union.rounds:
            below = passing_bound(
                each.threshold - 1, sigma=each.sigma, radius=RADIUS, most=7, relation=ADD_REMOVE
            )
            assert below > 0.05 / 3 * (1 - 2.0**-30)

    def test_below_the_length_there_is_no_bound(self):
        told = {"sigma": 10.0, "radius": 100, "most": 3, "relation": ADD_REMOVE}
        assert passing_bound(99, **told) == 1.0

    @relations
    def test_rounds_cost_what_is_stated(self, relation):
        union = SetUnion(noise_multiplier=3.0, failure=1e-6, relation=relation)
        squares = [1 / each.event.events[0].noise_multiplier ** 2 for each in union.rounds]
        assert sum(squares) == pytest.approx(1 / 9, rel=1e-12)
        users = 2 if relation is REPLACE else 1
        for each, square in zip(union.rounds, squares, strict=True):
            assert users * RADIUS**2 / (each.sigma**2 - 4) <= square * (1 + 2.0**-50)


class TestUtility:
    def test_as_many_people_as_are_said_to_be_needed_are_enough_and_not_far_fewer(self):
        union = SetUnion(noise_multiplier=4.0, failure=1e-6, most=50, relation=ADD_REMOVE)
        for keys in (1, 20):
            own = [f"own {i}" for i in range(keys - 1)]
            for share, enough in ((1.0, True), (0.5, False)):
                people = round(share * union.people_needed(0.1, keys))
                with use_noise(SeededNoise(1)):
                    runs = [union.release_keys([["tea", *own]] * people) for _ in range(60)]
                found = np.mean(["tea" in run for run in runs])
                assert bool(found >= 0.9) is enough

    def test_later_rounds_find_more_than_one_alone(self, monkeypatch):
        """A world with keys of all sizes: people leave what is found and what is hopeless."""
        rng = np.random.default_rng(0)
        popularity = 1 / np.arange(1, 3001)
        users = [
            [f"k{key}" for key in np.unique(rng.choice(3000, 40, p=popularity / popularity.sum()))]
            for _ in range(3000)
        ]
        union = {"noise_multiplier": 4.0, "failure": 1e-6, "most": 40, "relation": ADD_REMOVE}
        sizes = {}
        for shares in ((1,), (1, 2, 4)):
            monkeypatch.setattr(set_union, "_SHARES", shares)
            with use_noise(SeededNoise(0)):
                sizes[shares] = len(SetUnion(**union).release_keys(users))
        assert sizes[1, 2, 4] > 1.3 * sizes[1,]

    def test_a_key_that_nobody_holds_never_appears(self):
        with use_noise(SeededNoise(0)):
            for _ in range(50):
                found = make(noise_multiplier=0.5).release_keys([["a"], ["b", None, 2.5]])
                assert set(found) <= {"a", "b"}


class TestAccount:
    def test_it_takes_its_failures_from_the_reserve(self):
        union = SetUnion(noise_multiplier=5.0, failure=1e-7, delta=1e-6)
        account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-7)
        union.release(keys_by_hand([["a"]], REPLACE), account=account)
        assert account.event == union.event
        with pytest.raises(NumericalFailure):
            union.release(keys_by_hand([["a"]], REPLACE), account=account)

    def test_keys_under_another_relation_are_refused(self):
        union = SetUnion(noise_multiplier=5.0, failure=1e-7)
        with pytest.raises(RelationMismatchError):
            union.release(keys_by_hand([["a"]], ADD_REMOVE))

    def test_open_keys_are_refused(self):
        with pytest.raises(SealedError):
            SetUnion(noise_multiplier=5.0, failure=1e-7).release([["a"]])

    @pytest.mark.parametrize(
        "wrong",
        [
            {"noise_multiplier": 0.0},
            {"noise_multiplier": math.nan},
            {"noise_multiplier": 1e-3},
            {"failure": 0.0},
            # Floats lose such chances, and a chance of 0 would be promised.
            {"failure": Fraction(1, 10**400)},
            {"failure": 1.0},
            {"most": 0},
            {"most": 2**21},
            {"relation": "replace"},
        ],
        ids=str,
    )
    def test_parameters_are_checked(self, wrong):
        with pytest.raises(ParameterError):
            SetUnion(**({"noise_multiplier": 5.0, "failure": 1e-7} | wrong))

    def test_more_keys_than_count_have_no_number_of_people(self):
        with pytest.raises(ParameterError, match="at most 2"):
            make().people_needed(0.05, 3)
