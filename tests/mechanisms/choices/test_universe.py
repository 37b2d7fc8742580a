"""Choosing among 2^256 keys is the plain exponential mechanism, exactly."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from goodness import FALSE_ALARM, p_value
from quorate.auditing import SmallWorld, audit_exactly, enumerate_runs, gumbel_max_mass
from quorate.core.account.account import Account
from quorate.core.account.among_keys import unseen_key
from quorate.core.guarantees import Relation
from quorate.core.noise import SecureNoise, SeededNoise, use_noise
from quorate.core.noise.exponential import choose_heavy
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.mechanisms.choices.universe import ChooseKey
from quorate.mechanisms.laws import key_law
from sealing import release_by_hand

REPLACE, ADD_REMOVE = Relation.REPLACE, Relation.ADD_REMOVE
relations = pytest.mark.parametrize("relation", list(Relation))


def law_of(run, **options):
    return enumerate_runs(lambda _: run(), **options)


@pytest.mark.claim("G8: Lemma 12")
class TestChoice:
    @relations
    @pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
    def test_it_equals_the_plain_exponential_mechanism_on_small_universes(self, relation, size):
        choice = ChooseKey(size=size, epsilon=1.3, relation=relation)
        scale = 2 / 1.3 if relation is REPLACE else 1 / 1.3
        for held in itertools.product(range(size), repeat=3):
            plain = gumbel_max_mass(np.bincount(held, minlength=size), scale=scale)
            found = law_of(lambda held=held: release_by_hand(choice, list(held)))
            assert set(found) == set(plain)
            assert all(abs(found[key] - plain[key]) <= 1e-12 for key in plain)

    @relations
    def test_an_audit_confirms_the_claim(self, relation):
        choice = ChooseKey(size=4, epsilon=3.0, relation=relation)
        world = SmallWorld(records=(0, 1, 3, "stray"), n_users=3)

        def audit(run):
            return audit_exactly(lambda held: law_of(lambda: run(held)), world, choice.guarantee)

        honest = audit(lambda held: release_by_hand(choice, list(held)))
        assert honest.holds
        assert honest.tightness > 0.8
        twice = ChooseKey(size=4, epsilon=6.0, relation=relation)
        assert not audit(lambda held: release_by_hand(twice, list(held))).holds

    def test_naming_the_unseen_as_one_symbol_would_leak_how_many_were_seen(self):
        """The broken twin: "none of the seen" instead of a uniform unseen key."""
        choice = ChooseKey(size=6, epsilon=1.0)
        world = SmallWorld(records=(0, 1, 2), n_users=2)

        def twin(held):
            key = release_by_hand(choice, list(held))
            return key if key in held else "none of the seen"

        assert not audit_exactly(
            lambda held: law_of(lambda: twin(held)), world, choice.guarantee
        ).holds

    def test_the_noise_of_the_other_relation_is_caught(self):
        wrong = ChooseKey(size=4, epsilon=3.0, relation=ADD_REMOVE)
        claim = ChooseKey(size=4, epsilon=3.0).guarantee
        world = SmallWorld(records=(0, 1), n_users=3)
        audit = audit_exactly(
            lambda held: law_of(lambda: release_by_hand(wrong, list(held))), world, claim
        )
        assert not audit.holds

    @pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(5)], ids=repr)
    def test_real_draws_follow_the_law(self, noise):
        votes = {2: 3, 5: 1, 6: 1}
        choice = ChooseKey(size=9, epsilon=1.5)
        with use_noise(noise):
            drawn = [release_by_hand(choice, votes) for _ in range(1500)]
        counts = np.bincount(drawn, minlength=9)
        assert p_value(counts, choice.probabilities(votes)) > FALSE_ALARM
        wrong = ChooseKey(size=9, epsilon=3.5).probabilities(votes)
        assert p_value(counts, wrong) < FALSE_ALARM

    def test_keys_without_votes_are_all_equally_likely_in_a_huge_universe(self):
        choice = ChooseKey(size=2**200, epsilon=1.0)
        with use_noise(SeededNoise(1)):
            drawn = [release_by_hand(choice, {7: 1}) for _ in range(2000)]
        top = np.bincount([key >> 197 for key in drawn], minlength=8)
        assert p_value(top, np.full(8, 1 / 8)) > FALSE_ALARM

    def test_the_votes_needed_are_those_of_the_rule(self):
        """2 (ln U + ln 9) / epsilon votes win in nine of ten cases."""
        for bits, votes in [(14, 24), (20, 33), (32, 49), (64, 94), (256, 360)]:
            law = key_law({0: votes}, size=2**bits, rate=Fraction(1, 2))
            assert law.probabilities[0] == pytest.approx(0.9, abs=0.035)
            assert ChooseKey(size=2**bits, epsilon=1.0).error_bound(0.1) in (votes - 1, votes)

    def test_the_bound_is_the_smallest(self):
        choice = ChooseKey(size=6, epsilon=1.0)
        for beta in (0.3, 0.05, 1e-3):
            bound = choice.error_bound(beta)
            for gap, kept in ((bound, False), (bound + 1, True)):
                chance = (
                    1 - choice.probabilities({0: 50, **dict.fromkeys(range(1, 6), 50 - gap)})[0]
                )
                assert bool(chance <= beta) is kept

    def test_the_account_pays_and_refuses(self):
        account = Account.open(epsilon=Fraction(1, 3))
        choice = ChooseKey(size=2**64, epsilon=Fraction(1, 3))
        release_by_hand(choice, {1: 1}, account=account)
        assert account.left == 0
        with pytest.raises(NumericalFailure):
            release_by_hand(choice, {1: 1}, account=account)

    @pytest.mark.parametrize("size", [0, -1, 2**256 + 1, 2.0, None, True])
    def test_what_is_no_universe_is_refused(self, size):
        with pytest.raises(ParameterError):
            ChooseKey(size=size, epsilon=1.0)

    def test_unseen_keys_are_ranked_around_the_seen_ones(self):
        assert [unseen_key(rank, [0, 3, 4, 9]) for rank in range(6)] == [1, 2, 5, 6, 7, 8]

    def test_pieces_of_any_length_are_weighed(self):
        noise = SeededNoise(2)
        lengths, losses = [3 * 2**300, 0, 2**300], [5, -100, 5]
        drawn = [choose_heavy(lengths, losses, rate=Fraction(1), noise=noise) for _ in range(2000)]
        assert p_value(np.bincount(drawn, minlength=3), [0.75, 0.0, 0.25]) > FALSE_ALARM
