"""The weighted choice follows its law exactly: enumerated, not sampled."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from all_paths import Scripted, law_of_all_paths
from goodness import FALSE_ALARM, p_value
from quorate._validate import float_down
from quorate.core.guarantees import Relation
from quorate.core.noise import SecureNoise, SeededNoise, exponential
from quorate.core.noise.exact_decisions import exp_enclosure
from quorate.core.noise.exponential import (
    Proposal,
    choose_weighted,
)
from quorate.exceptions import NumericalFailure, ParameterError, SchemaError
from quorate.mechanisms.choices.choose import exponential_rate
from quorate.mechanisms.laws import weighted_probabilities

LARGEST, SMALLEST = np.iinfo(np.int64).max, np.iinfo(np.int64).min

rates = st.builds(Fraction, st.integers(1, 10**9), st.integers(1, 10**9))
pieces = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 5), st.integers(0, 2**59)),
        st.one_of(st.integers(-5, 5), st.integers(SMALLEST, LARGEST)),
    ),
    min_size=1,
    max_size=8,
).filter(lambda drawn: any(length for length, _ in drawn))


def arrays(drawn):
    lengths, losses = zip(*drawn, strict=True)
    return np.array(lengths, dtype=np.uint64), np.array(losses, dtype=np.int64)


def true_weights(lengths, losses, rate):
    """High precision, and in Python's integers from the start."""
    covered = [int(s) for s, length in zip(losses, lengths, strict=True) if length]
    exponents = [rate * (int(s) - min(covered)) for s in losses]
    with mpmath.workprec(300):
        return [
            mpmath.mpf(int(length)) * mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
            for length, x in zip(lengths, exponents, strict=True)
        ]


class TestEnclosures:
    @settings(max_examples=300)
    @given(
        numerator=st.integers(0, 2**90), denominator=st.integers(1, 2**80), bits=st.integers(1, 250)
    )
    def test_they_contain_the_exponential_and_are_narrow(self, numerator, denominator, bits):
        lower, upper = exp_enclosure(Fraction(numerator, denominator), bits=bits)
        with mpmath.workprec(500):
            value = mpmath.exp(-mpmath.mpf(numerator) / denominator) * mpmath.mpf(2) ** bits
            assert lower <= value <= upper
        assert upper - lower <= 3

    @pytest.mark.parametrize("exponent", [Fraction(1, 2**200), Fraction(1, 2), Fraction(1), 63, 64])
    def test_the_seams_of_the_algorithm_are_inside(self, exponent):
        for bits in (1, 2, 63, 64, 65):
            lower, upper = exp_enclosure(Fraction(exponent), bits=bits)
            with mpmath.workprec(500):
                ratio = mpmath.mpf(Fraction(exponent).numerator) / Fraction(exponent).denominator
                assert lower <= mpmath.exp(-ratio) * mpmath.mpf(2) ** bits <= upper


class TestProposals:
    @settings(max_examples=300)
    @given(drawn=pieces, rate=rates)
    def test_every_weight_is_bounded_from_above(self, drawn, rate):
        lengths, losses = arrays(drawn)
        proposal = Proposal.of(lengths, exponential.gaps_of(lengths, losses), rate)
        weights = true_weights(lengths, losses, rate)
        for piece, weight in enumerate(weights):
            size = proposal.size(piece)
            assert (size == 0) == (lengths[piece] == 0)
            assert size >= weight * mpmath.mpf(2) ** proposal.shift
            assert size <= weight * mpmath.mpf(2) ** proposal.shift * (1 + 2.0**-34) + 1
        assert proposal.total < 2**62

    def test_float_exponentials_are_off_by_less_than_the_margin(self):
        gaps = np.arange(0, 4900, dtype=np.uint64)
        for rate in (Fraction(1, 7), Fraction(10**9 + 7, 10**10)):
            floats = exponential._exp_from_above(gaps, float_down(rate))
            for gap, value in zip(gaps[::7].tolist(), floats[::7], strict=True):
                with mpmath.workprec(200):
                    exact = mpmath.exp(-mpmath.mpf(gap) * rate.numerator / rate.denominator)
                    assert value >= exact * (1 - mpmath.mpf(2) ** -41)
                    assert value <= exact * (1 + mpmath.mpf(2) ** -38)

    def test_a_drawn_number_finds_its_piece_and_height(self):
        proposal = Proposal(np.array([3, 3, 5]), 0)
        assert [proposal.locate(u) for u in range(5)] == [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)]


WORLDS = [
    ([3, 1, 2], [0, 2, 1], Fraction(1, 2)),
    ([1, 0, 1], [5, -9, 6], Fraction(1)),
    ([1, 1], [SMALLEST, LARGEST], Fraction(1, 2**64)),
    ([7, 1], [3, 0], Fraction(2, 3)),
    ([5, 5, 5], [1, 1, 1], Fraction(3)),
    ([1, 40], [0, 60], Fraction(1, 10)),
]


class TestExactLaw:
    """Every path of the sampler, its probability as a fraction, against the true law.

    Proposals of a few bits and V bit by bit, so that all paths down to 2e-5 can be walked.
    """

    @pytest.fixture(autouse=True)
    def one_bit_at_once(self, monkeypatch):
        monkeypatch.setattr(exponential, "_BITS_AT_ONCE", 1)

    def follows_the_law(self, monkeypatch, lengths, losses, rate, *, change=0):
        lengths, losses = np.array(lengths, np.uint64), np.array(losses, np.int64)
        fine = Proposal.of(lengths, exponential.gaps_of(lengths, losses), rate, bits=3)
        sizes = np.diff(fine.cumulative, prepend=0)
        sizes[sizes > 0] += change
        coarse = Proposal(np.cumsum(sizes), fine.shift)
        monkeypatch.setattr(Proposal, "of", lambda *arguments: coarse)
        found, undecided = law_of_all_paths(
            lambda source: choose_weighted(lengths, losses, rate=rate, noise=source),
            smallest=2e-5,
        )
        assert undecided < Fraction(1, 20)
        weights = true_weights(lengths, losses, rate)
        with mpmath.workprec(300):
            slack = mpmath.mpf(undecided.numerator) / undecided.denominator
            chances = [found[piece] for piece in range(len(lengths))]
            low = [mpmath.mpf(f.numerator) / f.denominator for f in chances]
            law = [weight / sum(weights) for weight in weights]
            return all(a - 1e-60 <= p <= a + slack + 1e-60 for a, p in zip(low, law, strict=True))

    @pytest.mark.parametrize(("lengths", "losses", "rate"), WORLDS)
    def test_the_enumerated_law_is_the_true_law(self, monkeypatch, lengths, losses, rate):
        assert self.follows_the_law(monkeypatch, lengths, losses, rate)

    def test_generous_proposals_change_nothing(self, monkeypatch):
        assert self.follows_the_law(monkeypatch, *WORLDS[3], change=1)

    def test_a_proposal_that_is_too_small_is_refused(self, monkeypatch):
        with pytest.raises(NumericalFailure, match="no guarantee"):
            self.follows_the_law(monkeypatch, *WORLDS[4], change=-2)

    def test_without_that_check_the_enumeration_sees_it(self, monkeypatch):
        honest = exponential._Target.exceeds

        def unchecked(self, height, noise, *, size):
            return honest(self, height, noise, size=10**9)

        monkeypatch.setattr(exponential._Target, "exceeds", unchecked)
        assert not self.follows_the_law(monkeypatch, [9, 3], [0, 0], Fraction(1), change=-2)

    def test_a_sampler_that_accepts_every_proposal_is_seen(self, monkeypatch):
        monkeypatch.setattr(exponential._Target, "exceeds", lambda *_, **__: True)
        assert not self.follows_the_law(monkeypatch, *WORLDS[0])

    def test_a_sampler_without_the_lazy_bits_is_seen(self, monkeypatch):
        def rounded(self, height, noise, *, size):
            return height < float(self.enclosure(60)[0])

        monkeypatch.setattr(exponential._Target, "exceeds", rounded)
        assert not self.follows_the_law(monkeypatch, *WORLDS[0])


class TestAcceptance:
    @settings(max_examples=200)
    @given(
        length=st.integers(1, 2**63),
        exponent=st.builds(Fraction, st.integers(1, 10**6), st.integers(10**4, 10**5)),
        shift=st.integers(-4, 61),
        offset=st.sampled_from([-1, 0, 1]),
        chunks=st.integers(1, 4),
    )
    def test_v_next_to_the_target_is_judged_rightly(self, length, exponent, shift, offset, chunks):
        """V shares all but the last of its first 32 * chunks bits with the target's fraction."""
        with mpmath.workprec(2000):
            target = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
            target *= mpmath.mpf(length) * mpmath.mpf(2) ** shift
            height = int(mpmath.floor(target))
            v = int(mpmath.floor((target - height) * mpmath.mpf(2) ** (32 * chunks))) + offset
            if not 0 <= v < 2 ** (32 * chunks):
                return
            # The rest of V is all zeros, then all ones: the answer must fit V in both cases.
            for tail in (0, 2**32 - 1):
                digits = [(v >> (32 * (chunks - 1 - i))) % 2**32 for i in range(chunks)]
                source = Scripted(digits + [tail] * 40)
                judged = exponential._Target(length, exponent, shift)
                accepted = judged.exceeds(height, source, size=2**200)
                value = v + (mpmath.mpf(tail) / 2**32 if tail else 0)
                expected = value / mpmath.mpf(2) ** (32 * chunks) < target - height
                assert accepted == bool(expected)

    def test_a_rational_target_is_decided_at_its_last_bit(self):
        target = exponential._Target(3, Fraction(0), -3)  # 3/8
        assert target.exceeds(0, Scripted([3 * 2**29 - 1]), size=1)
        assert not target.exceeds(0, Scripted([3 * 2**29]), size=1)


class TestChoice:
    def test_it_agrees_with_its_probabilities(self):
        """4000 seeded and 2000 secure draws; chi-squared with a false alarm of 1e-7 each."""
        lengths, losses, rate = np.array([4, 0, 9, 1]), np.array([0, -5, 2, 1]), Fraction(1, 2)
        law = weighted_probabilities(lengths, losses, rate=rate)
        for source, draws in ((SeededNoise(1), 4000), (SecureNoise(), 2000)):
            drawn = [
                choose_weighted(lengths, losses, rate=rate, noise=source) for _ in range(draws)
            ]
            assert p_value(np.bincount(drawn, minlength=4), law) > FALSE_ALARM

    def test_twice_the_rate_is_caught(self):
        lengths, losses = np.array([4, 0, 9, 1]), np.array([0, -5, 2, 1])
        law = weighted_probabilities(lengths, losses, rate=Fraction(1, 2))
        source = SeededNoise(1)
        drawn = [
            choose_weighted(lengths, losses, rate=Fraction(1), noise=source) for _ in range(3000)
        ]
        assert p_value(np.bincount(drawn, minlength=4), law) < FALSE_ALARM

    @settings(max_examples=100)
    @given(drawn=pieces, rate=rates, seed=st.integers(0, 2**32))
    def test_any_pieces_work_and_empty_ones_are_never_chosen(self, drawn, rate, seed):
        lengths, losses = arrays(drawn)
        piece = choose_weighted(lengths, losses, rate=rate, noise=SeededNoise(seed))
        assert lengths[piece] > 0

    def test_the_extremes_of_every_type_work(self):
        lengths = np.array([2**64 - 2, 1], dtype=np.uint64)
        losses = np.array([LARGEST, SMALLEST])
        # The first weight is 2**64 exp(-2**64 * 10**300): the second piece wins.
        chosen = choose_weighted(lengths, losses, rate=Fraction(10**300), noise=SecureNoise())
        assert chosen == 1
        chosen = choose_weighted(lengths, losses, rate=Fraction(1, 10**400), noise=SecureNoise())
        assert chosen == 0  # the other one has a chance of 2**-64
        chosen = choose_weighted(lengths, losses, rate=Fraction(0), noise=SecureNoise())
        assert chosen == 0
        assert choose_weighted(lengths, losses, rate=Fraction(10**400), noise=SecureNoise()) == 1

    def test_probabilities_match_high_precision(self):
        lengths, losses = np.array([3, 10**15, 1]), np.array([0, 40, 7])
        weights = true_weights(lengths, losses, Fraction(9, 10))
        law = weighted_probabilities(lengths, losses, rate=Fraction(9, 10))
        for probability, weight in zip(law, weights, strict=True):
            assert probability == pytest.approx(float(weight / sum(weights)), rel=1e-13)


class TestRates:
    def test_the_rate_is_exact(self):
        rate = exponential_rate(0.1, sensitivity=3, relation=Relation.REPLACE, one_sided=False)
        assert rate == Fraction(0.1) / 6
        assert rate * 2 * 3 <= Fraction(0.1)

    def test_numpy_integers_do_not_overflow(self):
        rate = exponential_rate(
            np.float64(0.1), sensitivity=np.int64(3), relation=Relation.REPLACE, one_sided=False
        )
        assert rate * 2**200 == Fraction(0.1) * 2**200 / 6

    @pytest.mark.parametrize("sensitivity", [0, -1, 0.5, None, float("nan"), True])
    def test_bad_sensitivities_are_refused(self, sensitivity):
        with pytest.raises(ParameterError, match="sensitivity"):
            exponential_rate(
                1.0, sensitivity=sensitivity, relation=Relation.REPLACE, one_sided=False
            )

    def test_one_sided_scores_are_refused_under_replacement(self):
        with pytest.raises(ParameterError, match="one_sided"):
            exponential_rate(1.0, sensitivity=1, relation=Relation.REPLACE, one_sided=True)


def test_a_million_pieces_are_bounded_block_by_block():
    gaps = np.arange(10**6, dtype=np.uint64)
    lengths = np.full(10**6, 3, dtype=np.uint64)
    proposal = Proposal.of(lengths, gaps, Fraction(1, 10**5))
    scale = 3 * 2.0**proposal.shift
    expected = scale * np.exp(-(gaps / 10**5))
    sizes = np.diff(proposal.cumulative, prepend=0)
    assert np.all(sizes >= expected * (1 - 1e-15))
    assert np.all(sizes <= expected * (1 + 2.0**-34) + 1)


class TestRefusals:
    @pytest.mark.parametrize("rate", [0.5, Fraction(-1, 2), None])
    def test_a_rate_that_is_not_exact_is_refused(self, rate):
        with pytest.raises(ParameterError, match="Fraction"):
            choose_weighted(np.array([1]), np.array([0]), rate=rate, noise=SecureNoise())

    @pytest.mark.parametrize(
        ("lengths", "losses"),
        [
            ([0, 0], [1, 2]),
            ([], []),
            ([-1, 2], [1, 2]),
            ([1], [1, 2]),
            ([[1]], [[1]]),
            ([1.0], [1]),
            ([1], [1.0]),
            (np.array([2**63, 2**63], dtype=np.uint64), [0, 0]),
            (np.array([2**64 - 1, 2**64 - 1], dtype=np.uint64), [0, 0]),
            (np.array([2**64 - 1, 1, 1], dtype=np.uint64), [0, 0, 0]),
            ([1], np.array([1], dtype=np.uint64)),
        ],
    )
    def test_pieces_that_are_no_pieces_are_refused(self, lengths, losses):
        with pytest.raises(SchemaError):
            choose_weighted(
                np.array(lengths), np.array(losses), rate=Fraction(1), noise=SecureNoise()
            )


def test_a_running_sum_finds_every_number():
    lengths = np.array([2**60, 3, 0, 2**50, 1], dtype=np.uint64)
    proposal = Proposal.of(lengths, np.zeros(5, np.uint64), Fraction(1))
    edges = [0, *proposal.cumulative.tolist()]
    for piece, (start, stop) in enumerate(pairwise(edges)):
        if stop > start:
            assert proposal.locate(start) == (piece, 0)
            assert proposal.locate(stop - 1) == (piece, stop - start - 1)
