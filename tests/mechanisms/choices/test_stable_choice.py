"""Popular keys without a list of keys: the claim is attained exactly, and never exceeded."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from goodness import FALSE_ALARM, p_value
from quorate.auditing import SmallWorld, audit_exactly, enumerate_runs
from quorate.core.account.account import Account
from quorate.core.account.among_keys import largest_mass
from quorate.core.guarantees import Relation
from quorate.core.noise import SecureNoise, SeededNoise, ambient_noise, use_noise
from quorate.core.questions.votes import sorted_votes
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.mechanisms.choices.stable_choice import (
    StableChoice,
    StableHistogram,
    truncated_laplace_mass,
)
from sealing import release_by_hand

REPLACE, ADD_REMOVE = Relation.REPLACE, Relation.ADD_REMOVE
relations = pytest.mark.parametrize("relation", list(Relation))
DELTA = {ADD_REMOVE: 0.07, REPLACE: 0.25}
"""For a reach of 2 at epsilon = 1, so that counts beyond 2A + 1 are in a small world."""
WORLD = SmallWorld(records=("a", "b", "c"), n_users=6, ordered=False)


def audit(run, mechanism, *, world=WORLD, thorough=True, **claimed):
    """Compare the exact hockey stick over all votes with the delta that is attained."""
    claim = replace(mechanism.guarantee, **({"delta": mechanism.event.delta} | claimed))
    return audit_exactly(
        lambda held: enumerate_runs(lambda _: run(Counter(held))), world, claim, thorough=thorough
    )


def make(kind, relation, **changes):
    return kind(**({"epsilon": 1.0, "delta": DELTA[relation], "relation": relation} | changes))


def with_threshold(mechanism, votes, *, shift, keys=None):
    """The release written anew, with another threshold: a twin."""
    counts = sorted_votes(votes) if keys is None else {k: votes.get(k, 0) for k in keys}
    values = np.array(list(counts.values()), dtype=np.int64)
    noisy = ambient_noise().truncated_laplace(values, scale=mechanism.scale, reach=mechanism.reach)
    limit = mechanism.reach + shift
    return {k: n for k, n in zip(counts, noisy.tolist(), strict=True) if n > limit}


@pytest.mark.claim("G9: Lemma 11")
class TestClaim:
    @relations
    def test_the_worst_hockey_stick_over_all_small_votes_is_the_claim(self, relation):
        histogram = make(StableHistogram, relation)
        assert histogram.reach == 2
        found = audit(partial(release_by_hand, histogram), histogram)
        assert found.holds
        assert abs(found.delta - histogram.event.delta) <= 1e-12

    @relations
    def test_the_choice_keeps_the_claim(self, relation):
        choice = make(StableChoice, relation)
        found = audit(partial(release_by_hand, choice), choice)
        assert found.holds
        if relation is ADD_REMOVE:
            assert abs(found.delta - choice.event.delta) <= 1e-12

    @relations
    def test_at_other_scales_too(self, relation):
        for epsilon, delta in ((2.0, 0.1), (0.5, 0.3)):
            histogram = make(StableHistogram, relation, epsilon=epsilon, delta=delta)
            world = SmallWorld(records=("a", "b"), n_users=2 * histogram.reach + 3, ordered=False)
            found = audit(partial(release_by_hand, histogram), histogram, world=world)
            assert abs(found.delta - histogram.event.delta) <= 1e-12

    @relations
    def test_a_threshold_one_lower_is_caught(self, relation):
        histogram = make(StableHistogram, relation)
        same = audit(lambda v: with_threshold(histogram, v, shift=0), histogram)
        assert abs(same.delta - histogram.event.delta) <= 1e-12
        lower = audit(lambda v: with_threshold(histogram, v, shift=-1), histogram, thorough=False)
        assert not lower.holds

    @relations
    def test_half_of_the_noise_is_caught(self, relation):
        histogram = make(StableHistogram, relation)
        less = make(StableHistogram, relation, epsilon=2.0)
        assert not audit(partial(release_by_hand, less), histogram, thorough=False).holds

    def test_the_noise_of_the_other_relation_is_caught(self):
        histogram = make(StableHistogram, REPLACE)
        wrong = make(StableHistogram, ADD_REMOVE)
        assert not audit(partial(release_by_hand, wrong), histogram, thorough=False).holds

    def test_an_order_of_users_that_reaches_the_output_is_caught(self):
        """Keys in the order of their first vote, as a hash table would keep them."""
        histogram = make(StableHistogram, REPLACE)
        world = SmallWorld(records=("a", "b"), n_users=6)

        def in_order(held, run):
            popular = run(Counter(held))
            return list(dict.fromkeys(key for key in held if key in popular))

        def law(held):
            return enumerate_runs(lambda _: in_order(held, partial(release_by_hand, histogram)))

        claim = replace(histogram.guarantee, delta=histogram.event.delta)
        assert not audit_exactly(law, world, claim, thorough=False).holds
        honest = audit_exactly(
            lambda held: enumerate_runs(lambda _: list(release_by_hand(histogram, Counter(held)))),
            world,
            claim,
        )
        assert honest.holds


class TestReach:
    @pytest.mark.parametrize(
        ("epsilon", "delta", "alone", "replaced"),
        [(0.5, 1e-6, 25, 51), (1.0, 1e-6, 14, 27), (1.0, 1e-9, 20, 41), (2.0, 1e-6, 7, 14)],
    )
    def test_known_values(self, epsilon, delta, alone, replaced):
        for relation, reach in ((ADD_REMOVE, alone), (REPLACE, replaced)):
            found = StableHistogram(epsilon=epsilon, delta=delta, relation=relation).reach
            assert abs(found - reach) <= 1

    @relations
    def test_it_is_the_smallest_that_keeps_delta(self, relation):
        for delta in (0.3, 1e-3, 1e-6, 1e-12):
            histogram = make(StableHistogram, relation, delta=delta)
            assert histogram.event.delta <= delta
            below = largest_mass(histogram.reach - 1, scale=histogram.scale)
            assert 1 - (1 - below) ** histogram.sensitivity > delta

    def test_the_largest_mass_is_rounded_up_and_tight(self):
        for reach, scale in ((1, 1.0), (14, 1.0), (27, 2.0), (3, 0.01)):
            exact = truncated_laplace_mass(reach, scale=scale)[-1]
            assert float(largest_mass(reach, scale=scale)) == pytest.approx(exact, rel=1e-12)

    def test_extreme_budgets_have_a_reach(self):
        assert StableHistogram(epsilon=1e-3, delta=1e-300).reach > 10**6
        assert StableHistogram(epsilon=50.0, delta=0.5).reach == 1


class TestOutput:
    def test_a_key_without_votes_never_appears_and_a_heavy_one_always_does(self):
        histogram = StableHistogram(epsilon=1.0, delta=1e-3)
        heavy = 2 * histogram.reach + 1
        with use_noise(SeededNoise(0)):
            for _ in range(300):
                found = release_by_hand(histogram, {"heavy": heavy, "none": 0, "one": 1})
                assert "heavy" in found
                assert "none" not in found
                assert abs(found["heavy"] - heavy) <= histogram.reach

    @pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(3)], ids=repr)
    def test_noise_follows_its_truncated_law(self, noise):
        drawn = noise.truncated_laplace(np.zeros(20_000, np.int64), scale=2.0, reach=3)
        counts = np.bincount(drawn + 3, minlength=7)
        assert p_value(counts, truncated_laplace_mass(3, scale=2.0)) > FALSE_ALARM
        assert p_value(counts, truncated_laplace_mass(3, scale=1.7)) < FALSE_ALARM

    def test_ties_go_to_the_first_key(self):
        class Silent(SeededNoise):
            def _truncated(self, size, scale, reach):
                return np.zeros(size, dtype=np.int64)

        choice = StableChoice(epsilon=1.0, delta=1e-3)
        with use_noise(Silent(0)):
            assert release_by_hand(choice, {"b": 99, "a": 99, "c": 98}) == "a"

    @relations
    def test_the_error_bounds_hold_and_are_not_loose(self, relation):
        votes = {"a": 100, **{f"k{i}": 95 for i in range(9)}}
        histogram = StableHistogram(epsilon=1.0, delta=1e-6, relation=relation)
        choice = StableChoice(epsilon=1.0, delta=1e-6, relation=relation)
        with use_noise(SeededNoise(1)):
            off = [
                max(abs(n - votes[k]) for k, n in release_by_hand(histogram, votes).items())
                for _ in range(400)
            ]
            wins = sum(release_by_hand(choice, votes) == "a" for _ in range(400))
        assert np.mean(np.array(off) > histogram.error_bound(0.1, keys=10)) <= 0.15
        assert np.mean(np.array(off) > histogram.error_bound(0.1, keys=10) / 2) > 0.1
        for beta in (0.5, 0.1, 0.01):
            if choice.error_bound(beta, keys=10) <= 4:
                assert wins >= 400 * (1 - beta) - 60
        assert histogram.error_bound(1e-12) <= histogram.reach
        assert choice.error_bound(1e-12, keys=1000) <= 2 * histogram.reach


class TestAccount:
    def test_it_takes_its_delta_from_the_reserve(self):
        account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-6)
        choice = StableChoice(epsilon=1.0, delta=1e-6)
        release_by_hand(choice, {"a": 100}, account=account)
        assert account.left == 0
        assert account.event == choice.event
        with pytest.raises(NumericalFailure):
            release_by_hand(choice, {"a": 100}, account=account)

    def test_a_share_that_is_no_float_fits(self):
        account = Account.open(epsilon=Fraction(1, 3), delta=1e-6, reserve=1e-6)
        choice = StableChoice(epsilon=Fraction(1, 3), delta=1e-6)
        release_by_hand(choice, {"a": 9}, account=account)
        assert account.left < Fraction(1, 10**15)

    @pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, math.nan, "1e-6"])
    def test_a_delta_that_is_none_is_refused(self, delta):
        with pytest.raises(ParameterError, match="delta"):
            StableChoice(epsilon=1.0, delta=delta)
