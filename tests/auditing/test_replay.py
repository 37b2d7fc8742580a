"""Programs whose glue leaks are told apart, programs that only release are not."""

from __future__ import annotations

import logging
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from quorate.auditing import ReplayMode, replay
from quorate.core.noise import SecureNoise, ambient_noise
from quorate.exceptions import ParameterError

DATA, NEIGHBOUR = [0.2, 0.4, 0.9], [0.2, 0.4, 7.0]


def on_grid(values):
    return np.array([round(1000 * sum(min(v, 1.0) for v in values))])


def released_sum(values, scale=100.0):
    return int(ambient_noise().discrete_laplace(on_grid(values), scale=scale)[0])


def honest(values):
    """Two releases; the second one's scale and shape depend on the first, as they may."""
    total = released_sum(values)
    n_more = 1 + total % 3
    more = ambient_noise().discrete_gaussian(
        np.repeat(on_grid(values), n_more), sigma=8.0 + abs(total)
    )
    best = ambient_noise().permute_and_flip(np.array([len(values), 2]), scale=2.0)
    coin = ambient_noise().bernoulli_exp(Fraction(max(0, int(values[2] * 10)), 10))
    return SimpleNamespace(total_=total, more_=more, best_=best, coin_=coin, n_iter_=n_more)


class TestTranscripts:
    @pytest.mark.parametrize("seed", range(10))
    def test_adaptive_releases_look_the_same(self, seed):
        report = replay(honest, DATA, NEIGHBOUR, seed=seed)
        assert report.same, str(report)
        assert len(report.calls) == 4
        assert str(report) == "The two runs look the same (4 noise calls)."

    def test_seeds_lead_to_other_transcripts(self):
        assert len({replay(honest, DATA, NEIGHBOUR, seed=s).calls for s in range(10)}) > 1

    def test_the_neighbour_is_given_a_copy_of_the_released_array(self):
        def writes_into_it(values):
            noisy = ambient_noise().discrete_laplace(on_grid(values), scale=1.0)
            noisy += 1
            return noisy

        assert replay(writes_into_it, DATA, NEIGHBOUR).same

    def test_a_program_without_noise_that_ignores_the_data_looks_the_same(self):
        assert replay(lambda values: 7, DATA, NEIGHBOUR).same

    def test_a_mechanism_with_noise_of_its_own_is_pointed_out(self):
        def run(values):
            return SecureNoise().discrete_laplace(on_grid(values), scale=1e9)[0]

        report = replay(run, DATA, NEIGHBOUR)
        assert not report.same
        assert "Build the mechanisms inside run" in str(report)


def early_stop(values):
    return [released_sum(values) for _ in range(2 if max(values) > 1 else 3)]


def late_stop(values):
    return [released_sum(values) for _ in range(3 if max(values) > 1 else 2)]


def scale_from_the_data(values):
    return released_sum(values, scale=100.0 * max(values))


def shape_from_the_data(values):
    counts = np.array([1 for v in values if v <= 1])
    return ambient_noise().discrete_laplace(counts, scale=1.0)


def candidates_from_the_data(values):
    scores = np.zeros(1 + int(max(values)), dtype=np.int64)
    return ambient_noise().gumbel_max(scores, scale=1.0)


def raises_on_an_outlier(values):
    total = released_sum(values)
    if max(values) > 1:
        raise ValueError("a value exceeds the bound")
    return total


def warns_on_an_outlier(values):
    if max(values) > 1:
        warnings.warn("clipping", UserWarning, stacklevel=1)
    return released_sum(values)


def logs_the_maximum(values):
    logging.getLogger("quorate.means").debug("largest value %s", max(values))
    return released_sum(values)


def keeps_the_data(values):
    return SimpleNamespace(total_=released_sum(values), _values=values)


def classes_from_the_data(values):
    return SimpleNamespace(total_=released_sum(values), classes_=np.unique(np.floor(values)))


def forgets_the_noise(values):
    return released_sum(values), on_grid(values)


LEAKS = [
    early_stop,
    late_stop,
    scale_from_the_data,
    shape_from_the_data,
    candidates_from_the_data,
    raises_on_an_outlier,
    warns_on_an_outlier,
    logs_the_maximum,
    classes_from_the_data,
    keeps_the_data,
    forgets_the_noise,
]


class TestLeaksAreSeen:
    @pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__)
    def test_in_the_transcript_mode(self, leak):
        report = replay(leak, DATA, NEIGHBOUR)
        assert not report.same
        assert "can be told apart" in str(report)

    @pytest.mark.parametrize("leak", LEAKS[:-2], ids=lambda leak: leak.__name__)
    def test_with_the_same_noise(self, leak):
        """The last two leak values only, which may differ when just the noise is the same."""
        assert not replay(leak, DATA, NEIGHBOUR, mode=ReplayMode.NOISE).same

    def test_the_first_difference_is_named(self):
        report = replay(early_stop, DATA, NEIGHBOUR)
        assert report.differences[0] == (
            "Noise call 2 was discrete_laplace(scale=100.0) of shape (1,); the neighbour made no "
            "such call."
        )
        report = replay(scale_from_the_data, DATA, NEIGHBOUR)
        assert "scale=90.0" in report.differences[0]
        assert "scale=700.0" in report.differences[0]


class TestSameNoise:
    def test_releases_of_fixed_shape_look_the_same(self):
        assert replay(released_sum, DATA, NEIGHBOUR, mode=ReplayMode.NOISE).same

    def test_released_values_may_differ_but_not_their_shape(self):
        def run(values):
            return np.zeros(released_sum(values) % 7)

        reports = [
            replay(run, DATA, [0.2, 0.4, 0.896 - s / 1000], mode=ReplayMode.NOISE) for s in range(7)
        ]
        assert not all(report.same for report in reports)


class TestRefusals:
    def test_an_unknown_mode(self):
        with pytest.raises(ParameterError, match="ReplayMode"):
            replay(honest, DATA, NEIGHBOUR, mode="transcript")

    def test_a_bad_seed(self):
        with pytest.raises(ParameterError, match="seed"):
            replay(honest, DATA, NEIGHBOUR, seed=-1)
