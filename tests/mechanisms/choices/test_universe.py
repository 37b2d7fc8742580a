"""Choosing among 2^256 keys is the plain exponential mechanism, exactly."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from goodness import FALSE_ALARM, p_value
from quorate.accounting.account import Account, noise_for
from quorate.auditing import Cells, SmallWorld, audit_exactly, enumerate_runs, gumbel_max_mass
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.guarantees import Pure, Relation
from quorate.mechanisms.choices.exponential import choose_heavy
from quorate.mechanisms.choices.universe import ChooseKey, UniverseHistogram, _unseen_key
from quorate.noise import SecureNoise, SeededNoise, use_noise

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
            found = law_of(lambda held=held: choice.release_keys(list(held)))
            assert set(found) == set(plain)
            assert all(abs(found[key] - plain[key]) <= 1e-12 for key in plain)

    @relations
    def test_an_audit_confirms_the_claim(self, relation):
        choice = ChooseKey(size=4, epsilon=3.0, relation=relation)
        world = SmallWorld(records=(0, 1, 3, "stray"), n_users=3)

        def audit(run):
            return audit_exactly(lambda held: law_of(lambda: run(held)), world, choice.guarantee)

        honest = audit(lambda held: choice.release_keys(list(held)))
        assert honest.holds
        assert honest.tightness > 0.8
        twice = ChooseKey(size=4, epsilon=6.0, relation=relation)
        assert not audit(lambda held: twice.release_keys(list(held))).holds

    def test_naming_the_unseen_as_one_symbol_would_leak_how_many_were_seen(self):
        """The broken twin: "none of the seen" instead of a uniform unseen key."""
        choice = ChooseKey(size=6, epsilon=1.0)
        world = SmallWorld(records=(0, 1, 2), n_users=2)

        def twin(held):
            key = choice.release_keys(list(held))
            return key if key in held else "none of the seen"

        assert not audit_exactly(
            lambda held: law_of(lambda: twin(held)), world, choice.guarantee
        ).holds

    def test_the_noise_of_the_other_relation_is_caught(self):
        wrong = ChooseKey(size=4, epsilon=3.0, relation=ADD_REMOVE)
        claim = ChooseKey(size=4, epsilon=3.0).guarantee
        world = SmallWorld(records=(0, 1), n_users=3)
        audit = audit_exactly(
            lambda held: law_of(lambda: wrong.release_keys(list(held))), world, claim
        )
        assert not audit.holds

    @pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(5)], ids=repr)
    def test_real_draws_follow_the_law(self, noise):
        votes = {2: 3, 5: 1, 6: 1}
        choice = ChooseKey(size=9, epsilon=1.5)
        with use_noise(noise):
            drawn = [choice.release(votes) for _ in range(1500)]
        counts = np.bincount(drawn, minlength=9)
        assert p_value(counts, choice.probabilities(votes)) > FALSE_ALARM
        wrong = ChooseKey(size=9, epsilon=3.5).probabilities(votes)
        assert p_value(counts, wrong) < FALSE_ALARM

    def test_keys_without_votes_are_all_equally_likely_in_a_huge_universe(self):
        choice = ChooseKey(size=2**200, epsilon=1.0)
        with use_noise(SeededNoise(1)):
            drawn = [choice.release({7: 1}) for _ in range(2000)]
        top = np.bincount([key >> 197 for key in drawn], minlength=8)
        assert p_value(top, np.full(8, 1 / 8)) > FALSE_ALARM

    def test_the_votes_needed_are_those_of_the_rule(self):
        """2 (ln U + ln 9) / epsilon votes win in nine of ten cases."""
        for bits, votes in [(14, 24), (20, 33), (32, 49), (64, 94), (256, 360)]:
            law = ChooseKey(size=2**bits, epsilon=1.0)._law({0: votes})
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
        choice.release({1: 1}, account=account)
        assert account.left == 0
        with pytest.raises(NumericalFailure):
            choice.release({1: 1}, account=account)

    @pytest.mark.parametrize("size", [0, -1, 2**256 + 1, 2.0, None, True])
    def test_what_is_no_universe_is_refused(self, size):
        for kind in (ChooseKey, UniverseHistogram):
            with pytest.raises(ParameterError):
                kind(size=size, epsilon=1.0)

    def test_unseen_keys_are_ranked_around_the_seen_ones(self):
        assert [_unseen_key(rank, [0, 3, 4, 9]) for rank in range(6)] == [1, 2, 5, 6, 7, 8]

    def test_pieces_of_any_length_are_weighed(self):
        noise = SeededNoise(2)
        lengths, losses = [3 * 2**300, 0, 2**300], [5, -100, 5]
        drawn = [choose_heavy(lengths, losses, rate=Fraction(1), noise=noise) for _ in range(2000)]
        assert p_value(np.bincount(drawn, minlength=3), [0.75, 0.0, 0.25]) > FALSE_ALARM


class TestHistogram:
    @relations
    def test_the_law_is_that_of_noise_on_every_key(self, relation):
        """Against the plain way: Laplace noise on each key of the universe, then the cut."""
        histogram = UniverseHistogram(size=2, epsilon=1.0, false_keys=0.6, relation=relation)
        cells = Cells(reach=2.0)

        def plain(votes):
            account = Account.for_event(Pure(1.0), relation=relation)
            noise = noise_for(account, Pure(1.0))
            counts = np.array([votes.get(key, 0) for key in range(2)])
            noisy = noise.discrete_laplace(counts, scale=histogram.scale)
            return {key: n for key, n in enumerate(noisy.tolist()) if n >= histogram.cut}

        for votes in ({}, {1: 2}, {0: 1, 1: 3}):
            wanted = law_of(lambda votes=votes: plain(votes), cells=cells)
            found = law_of(lambda votes=votes: histogram.release(votes), cells=cells)
            assert set(found) == set(wanted)
            assert max(abs(found[key] - wanted[key]) for key in wanted) <= 1e-12

    def test_an_audit_confirms_the_claim_and_catches_what_leaves_out_the_unseen(self):
        histogram = UniverseHistogram(size=2, epsilon=1.0, false_keys=0.6)
        world = SmallWorld(records=(0, 1), n_users=2)
        cells = Cells(reach=3.0)

        def audit(run):
            return audit_exactly(
                lambda held: law_of(lambda: run(Counter(held)), cells=cells),
                world,
                histogram.guarantee,
            )

        assert audit(histogram.release).holds
        assert not audit(
            lambda votes: {k: n for k, n in histogram.release(votes).items() if k in votes}
        ).holds

    def test_few_keys_without_votes_appear_in_a_huge_universe(self):
        histogram = UniverseHistogram(size=2**256, epsilon=1.0, false_keys=2.0)
        with use_noise(SeededNoise(3)):
            found = [histogram.release({}) for _ in range(300)]
        assert 450 < sum(map(len, found)) <= 680
        assert all(n >= histogram.cut for each in found for n in each.values())

    def test_popular_keys_are_found_within_the_bound(self):
        histogram = UniverseHistogram(size=2**64, epsilon=1.0)
        votes = dict.fromkeys(range(100), 200)
        with use_noise(SeededNoise(4)):
            found = histogram.release(votes)
        assert set(votes) <= set(found)
        bound = histogram.error_bound(1e-6, keys=100)
        assert max(abs(found[key] - 200) for key in votes) <= bound

    def test_the_chance_of_rising_is_enclosed(self):
        histogram = UniverseHistogram(size=2**20, epsilon=0.7)
        low, high = histogram._chance(200)
        q = math.exp(-1 / histogram.scale)
        assert low <= high <= low + 8
        assert low / 2**200 == pytest.approx(q**histogram.cut / (1 + q), rel=1e-12)

    def test_too_many_false_keys_are_refused(self):
        with pytest.raises(ParameterError, match="false_keys"):
            UniverseHistogram(size=2**20, epsilon=1.0, false_keys=100.0)
