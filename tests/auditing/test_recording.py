"""Recorded noise is given again, and every other sequence of calls is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.auditing import RecordedNoise, ReplayMismatchError
from quorate.core.guarantees import Numerics

ADDITIVE = [("discrete_laplace", "scale"), ("discrete_gaussian", "sigma"), ("geometric", "scale")]
vectors = st.lists(st.integers(-(2**40), 2**40), min_size=3, max_size=3)


def no_law():
    raise AssertionError("a recording draws; it needs no law")


def choose(source, draw, **public):
    return source.sample("a choice", draw, held=no_law, **public)


class TestTheSameNoise:
    @settings(max_examples=30)
    @given(first=vectors, second=vectors, seed=st.integers(0, 2**32))
    def test_additive_noise_is_the_same_integers_on_other_data(self, first, second, seed):
        recorded = RecordedNoise(seed)

        def noise(source, values):
            return [
                (getattr(source, method)(np.array(values), **{keyword: 40.0}) - values).tolist()
                for method, keyword in ADDITIVE
            ]

        expected = noise(recorded, first)
        replayed = recorded.replay()
        assert noise(replayed, second) == expected
        replayed.finish()

    @pytest.mark.parametrize("method", ["permute_and_flip", "gumbel_max"])
    @settings(max_examples=30)
    @given(scores=vectors, raised=st.integers(0, 2), seed=st.integers(0, 2**32))
    def test_a_choice_sees_the_same_noise_per_candidate(self, method, scores, raised, seed):
        """With the same noise a better score lets its candidate win or changes nothing."""
        recorded = RecordedNoise(seed)
        before = getattr(recorded, method)(np.array(scores), scale=2.0**39)
        scores[raised] += 2**39
        after = getattr(recorded.replay(), method)(np.array(scores), scale=2.0**39)
        assert after in {before, raised}

    def test_fresh_noise_per_candidate_would_be_seen(self):
        """The negative control of the test above: 200 fresh choices break its rule."""
        sources = [(RecordedNoise(s), RecordedNoise(s + 1000)) for s in range(200)]
        scores, better = np.array([0, 0, 0]), np.array([1, 0, 0])
        winners = [
            (a.permute_and_flip(scores, scale=4.0), b.permute_and_flip(better, scale=4.0))
            for a, b in sources
        ]
        assert any(after not in {before, 0} for before, after in winners)

    def test_uniform_integers_come_from_the_same_variate(self):
        recorded = RecordedNoise(2)
        coarse = choose(recorded, lambda noise: noise.uniform_below(10**6))
        fine = choose(recorded.replay(), lambda noise: noise.uniform_below(10**9))
        assert fine // 1000 == coarse

    def test_inside_a_sampler_the_number_of_draws_may_differ(self):
        recorded = RecordedNoise(2)
        choose(recorded, lambda noise: noise.uniform_below(5), rate=1)
        after = recorded.uniform_below(100)
        replayed = recorded.replay()

        def many(noise):
            noise.bernoulli_exp(Fraction(1, 2))
            return sum(noise.uniform_below(5) for _ in range(10))

        choose(replayed, many, rate=1)
        assert replayed.uniform_below(100) == after
        replayed.finish()

    def test_a_coin_is_one_call_however_often_it_is_flipped(self):
        recorded = RecordedNoise(2)
        side = recorded.bernoulli_exp(Fraction(5, 2))
        assert [str(draw) for draw in recorded.log] == [
            "bernoulli_exp(x=Fraction(5, 2)) of shape ()"
        ]
        assert recorded.replay().bernoulli_exp(Fraction(5, 2)) == side

    def test_recordings_void_every_guarantee(self):
        assert RecordedNoise(0).numerics is Numerics.VOID
        assert RecordedNoise(0).replay().numerics is Numerics.VOID


class TestRefusals:
    @pytest.mark.parametrize(
        "call",
        [
            lambda s: s.discrete_laplace(np.array([1, 2]), scale=2.0),
            lambda s: s.geometric(np.array([1]), scale=2.0),
            lambda s: s.discrete_laplace(np.array([1]), scale=2.5),
            lambda s: s.uniform_below(3),
            lambda s: s.bernoulli_exp(Fraction(1)),
            lambda s: s.permute_and_flip(np.array([1]), scale=2.0),
            lambda s: choose(s, lambda noise: 1),
        ],
        ids=["shape", "method", "scale", "uniform", "bernoulli", "choice", "sampler"],
    )
    def test_another_call_is_refused(self, call):
        recorded = RecordedNoise(0)
        recorded.discrete_laplace(np.array([1]), scale=2.0)
        with pytest.raises(ReplayMismatchError, match="Call 0 was recorded as discrete_laplace"):
            call(recorded.replay())

    def test_other_public_parameters_of_a_sampler_are_refused(self):
        recorded = RecordedNoise(0)
        choose(recorded, lambda noise: 1, size=10)
        with pytest.raises(ReplayMismatchError, match="size=10"):
            choose(recorded.replay(), lambda noise: 1, size=11)

    def test_another_range_outside_of_a_sampler_is_refused(self):
        recorded = RecordedNoise(0)
        recorded.uniform_below(10)
        with pytest.raises(ReplayMismatchError, match="upper=10"):
            recorded.replay().uniform_below(11)

    def test_one_call_more_and_one_call_less_are_refused(self):
        recorded = RecordedNoise(0)
        recorded.uniform_below(10)
        replayed = recorded.replay()
        with pytest.raises(ReplayMismatchError, match="not replayed"):
            replayed.finish()
        replayed.uniform_below(10)
        replayed.finish()
        with pytest.raises(ReplayMismatchError, match="recorded as nothing"):
            replayed.uniform_below(10)

    def test_an_error_inside_a_sampler_leaves_one_call_behind(self):
        recorded = RecordedNoise(0)
        with pytest.raises(ZeroDivisionError):
            choose(recorded, lambda noise: 1 // noise.uniform_below(1))
        recorded.uniform_below(10)
        assert [draw.method for draw in recorded.log] == ["a choice", "uniform_below"]
