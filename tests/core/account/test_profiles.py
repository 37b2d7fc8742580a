"""Profiles against integration of the two densities they stand for."""

import math
from functools import cache

import mpmath
import numpy as np
import pytest

from quorate.core.account.profiles import largest_loss, profiles
from quorate.core.guarantees import (
    Approximate,
    Composed,
    Gaussian,
    Nothing,
    Pure,
    Relation,
    Repeated,
    Subsampled,
)
from quorate.exceptions import UnsupportedEventError

LOSSES = [0.0, 0.01, 0.1, 0.3, 1.0, 2.0]


OUTPUTS = np.linspace(-30, 30, 120_001)
WIDTH = OUTPUTS[1] - OUTPUTS[0]


def hockey_stick(p, q, t):
    """Integrate (p - e^t q)+ on the line."""
    return np.maximum(p - math.exp(t) * q, 0.0).sum() * WIDTH


@cache
def centred(centre):
    return np.exp(-((OUTPUTS - centre) ** 2) / 2) / math.sqrt(2 * math.pi)


def sampled(shift, rate):
    return (1 - rate) * centred(0.0) + rate * centred(shift)


def value(event, relation, t, way=0):
    return float(profiles(event, relation=relation)[way](np.array([t]))[0])


every_loss = pytest.mark.parametrize("t", LOSSES)


class TestPlainEvents:
    @every_loss
    @pytest.mark.parametrize("multiplier", [0.5, 1.0, 4.0])
    def test_noise_has_the_profile_of_its_shift(self, t, multiplier):
        shift = 1 / multiplier
        expected = hockey_stick(centred(0.0), centred(shift), t)
        assert value(Gaussian(multiplier), Relation.REPLACE, t) == pytest.approx(expected, abs=1e-6)

    @every_loss
    def test_randomized_response_is_the_worst_pure_mechanism(self, t):
        likely = math.e / (1 + math.e)
        truth = max(0.0, likely - math.exp(t) * (1 - likely))
        assert value(Pure(1.0), Relation.REPLACE, t) == pytest.approx(truth, abs=1e-15)

    def test_an_approximate_event_never_costs_less_than_its_delta(self):
        assert value(Approximate(1.0, 0.25), Relation.REPLACE, 5.0) == 0.25
        assert value(Approximate(1.0, 0.25), Relation.REPLACE, 1.0) == 0.25

    def test_a_plain_event_is_symmetric_and_blind_to_the_relation(self):
        for relation in Relation:
            forward, backward = profiles(Gaussian(2.0), relation=relation)
            assert forward is backward


class TestSampledUnderAddRemove:
    @every_loss
    @pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
    def test_both_directions_match_the_mixture(self, t, rate):
        mixture, absent = sampled(1.0, rate), centred(0.0)
        subsampled = Subsampled(Gaussian(1.0), rate)
        removed = hockey_stick(mixture, absent, t)
        added = hockey_stick(absent, mixture, t)
        assert value(subsampled, Relation.ADD_REMOVE, t, 0) == pytest.approx(removed, abs=1e-6)
        assert value(subsampled, Relation.ADD_REMOVE, t, 1) == pytest.approx(added, abs=1e-6)


class TestSampledUnderReplacement:
    @every_loss
    @pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
    def test_opposite_records_reach_the_bound(self, t, rate):
        truth = hockey_stick(sampled(1.0, rate), sampled(-1.0, rate), t)
        assert value(Subsampled(Gaussian(1.0), rate), Relation.REPLACE, t) == pytest.approx(
            truth, abs=1e-6
        )

    @every_loss
    @pytest.mark.parametrize("records", [(1.0, 0.0), (0.0, 1.0), (0.5, 1.0), (1.0, 0.3), (0.4, -1)])
    def test_no_other_records_exceed_it(self, t, records):
        old, new = records
        for rate in (0.05, 0.6):
            truth = hockey_stick(sampled(old, rate), sampled(new, rate), t)
            assert truth <= value(Subsampled(Gaussian(1.0), rate), Relation.REPLACE, t) + 1e-7

    def test_no_records_of_the_plane_exceed_it(self):
        """Vectors that are neither parallel nor opposite, on a fine grid of outputs."""
        axis = np.arange(-8, 8, 0.05)
        x, y = np.meshgrid(axis, axis)

        def density(a, b):
            return np.exp(-((x - a) ** 2 + (y - b) ** 2) / 2) / (2 * math.pi) * 0.05**2

        rate = 0.3
        for angle in (0.5, 1.5, 2.5):
            old = (1 - rate) * density(0, 0) + rate * density(1, 0)
            new = (1 - rate) * density(0, 0) + rate * density(math.cos(angle), math.sin(angle))
            for t in (0.0, 0.1, 0.3):
                gain = np.maximum(old - math.exp(t) * new, 0).sum()
                assert gain <= value(Subsampled(Gaussian(1.0), rate), Relation.REPLACE, t) + 1e-9

    def test_the_price_of_add_and_remove_would_be_caught(self):
        """The broken twin: the same event read as if nobody could be exchanged."""
        rate, t = 0.3, 0.1
        truth = hockey_stick(sampled(1.0, rate), sampled(-1.0, rate), t)
        cheap = value(Subsampled(Gaussian(1.0), rate), Relation.ADD_REMOVE, t)
        assert cheap < truth - 0.01


class TestDiscreteLaplace:
    """Why discrete Laplace noise is described by a pure loss, and not by continuous noise."""

    @staticmethod
    def discrete(t, scale, sensitivity):
        with mpmath.workdps(40):
            p = mpmath.exp(-1 / mpmath.mpf(scale))
            mass = lambda z: (1 - p) / (1 + p) * p ** abs(z)  # noqa: E731
            gains = (mass(z) - mpmath.exp(t) * mass(z - sensitivity) for z in range(-400, 400))
            return mpmath.fsum(max(gain, 0) for gain in gains)

    @staticmethod
    def continuous(t, shift):
        return max(0.0, 1 - math.exp((t - shift) / 2))

    def test_it_agrees_with_continuous_noise_at_its_own_losses(self):
        scale, sensitivity = 3.0, 4
        for j in range(3):
            t = (sensitivity - 2 * j) / scale
            expected = self.continuous(t, sensitivity / scale)
            assert float(self.discrete(t, scale, sensitivity)) == pytest.approx(expected, abs=1e-12)

    def test_it_costs_more_between_them_and_less_than_a_pure_event(self):
        scale, sensitivity, t = 3.0, 4, 3 / 3.0
        truth = self.discrete(t, scale, sensitivity)
        assert truth > self.continuous(t, sensitivity / scale) + 0.01
        assert truth < value(Pure(sensitivity / scale), Relation.REPLACE, t)


class TestRange:
    @pytest.mark.parametrize("relation", Relation)
    @pytest.mark.parametrize(
        "event",
        [
            Pure(0.5),
            Gaussian(0.3),
            Gaussian(30.0),
            Subsampled(Gaussian(0.5), 0.2),
            Subsampled(Gaussian(2.0), 0.999),
            Subsampled(Gaussian(0.5), 0.5),
        ],
    )
    def test_beyond_the_largest_loss_nothing_is_left(self, event, relation):
        for way in (0, 1):
            assert value(event, relation, largest_loss(event), way) < 1e-18

    def test_noise_that_hides_nothing_has_no_bound(self):
        assert largest_loss(Subsampled(Gaussian(0.001), 0.5)) == math.inf

    @pytest.mark.parametrize(
        "event", [Nothing(), Repeated(Pure(1.0), 2), Composed((Pure(1.0), Pure(2.0)))]
    )
    def test_a_chain_has_no_profile_of_its_own(self, event):
        with pytest.raises(UnsupportedEventError):
            profiles(event, relation=Relation.REPLACE)
        with pytest.raises(UnsupportedEventError):
            largest_loss(event)

    def test_a_sample_of_an_unknown_event_is_refused(self):
        with pytest.raises(UnsupportedEventError):
            profiles(Subsampled(Nothing(), 0.5), relation=Relation.REPLACE)
