"""Events: frozen, checked, rounded towards the higher cost, and plain data when written."""

import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from quorate.accounting.events import (
    Approximate,
    Composed,
    Event,
    Gaussian,
    Laplace,
    Nothing,
    Pure,
    Repeated,
    Subsampled,
    compose_events,
)
from quorate.exceptions import ParameterError

NAN, INF = math.nan, math.inf


class TestRefusals:
    @pytest.mark.parametrize("epsilon", [-1.0, NAN, INF, "1", None, True])
    def test_a_loss_is_finite_and_not_negative(self, epsilon):
        with pytest.raises(ParameterError, match="epsilon"):
            Pure(epsilon)
        with pytest.raises(ParameterError, match="epsilon"):
            Approximate(epsilon, 0.1)

    @pytest.mark.parametrize("delta", [-0.1, 1.0, NAN, INF])
    def test_delta_lies_below_one(self, delta):
        with pytest.raises(ParameterError, match="delta"):
            Approximate(1.0, delta)

    @pytest.mark.parametrize("multiplier", [0.0, -1.0, NAN, INF, Fraction(1, 10**400)])
    @pytest.mark.parametrize("event", [Gaussian, Laplace])
    def test_noise_is_positive_and_finite(self, event, multiplier):
        with pytest.raises(ParameterError, match="noise_multiplier"):
            event(multiplier)

    @pytest.mark.parametrize("rate", [-0.1, 1.1, NAN])
    def test_a_rate_is_a_probability(self, rate):
        with pytest.raises(ParameterError, match="rate"):
            Subsampled(Pure(1.0), rate)

    @pytest.mark.parametrize("count", [-1, 1.5, 2.0, True, NAN])
    def test_a_count_is_a_whole_number(self, count):
        with pytest.raises(ParameterError, match="count"):
            Repeated(Pure(1.0), count)

    def test_only_events_can_be_wrapped(self):
        with pytest.raises(ParameterError, match="Event"):
            Subsampled(1.0, 0.5)
        with pytest.raises(ParameterError, match="Event"):
            Repeated("pure", 2)
        with pytest.raises(ParameterError, match="tuple of events"):
            Composed([Pure(1.0)])
        with pytest.raises(ParameterError, match="tuple of events"):
            Composed((Pure(1.0), 2.0))

    def test_the_base_describes_nothing(self):
        with pytest.raises(TypeError):
            Event()


class TestRounding:
    def test_a_rational_loss_is_rounded_up(self):
        assert Fraction(Pure(Fraction(1, 3)).epsilon) > Fraction(1, 3)
        assert Fraction(Approximate(0, Fraction(1, 7)).delta) > Fraction(1, 7)
        assert Fraction(Subsampled(Pure(1), Fraction(1, 3)).rate) > Fraction(1, 3)

    def test_rational_noise_is_rounded_down(self):
        assert Fraction(Gaussian(Fraction(2, 3)).noise_multiplier) < Fraction(2, 3)
        assert Fraction(Laplace(Fraction(1, 10)).noise_multiplier) < Fraction(1, 10)

    def test_numpy_numbers_become_python_numbers(self):
        assert type(Pure(np.float64(0.5)).epsilon) is float
        assert type(Repeated(Pure(1.0), np.int64(3)).count) is int
        json.dumps(Repeated(Gaussian(np.float32(2)), np.int32(2)).to_dict())

    @pytest.mark.parametrize("multiplier", [3.0, 7.0, 0.1, 4.2247, 1e-200])
    def test_mu_is_rounded_up(self, multiplier):
        assert Fraction(Gaussian(multiplier).mu) * Fraction(multiplier) >= 1


class TestData:
    def test_events_are_frozen_and_compare_by_value(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            Pure(1.0).epsilon = 0.0
        assert Pure(1) == Pure(1.0)
        assert hash(Pure(1)) == hash(Pure(1.0))
        assert Pure(1.0) != Laplace(1.0)

    def test_a_nested_event_writes_itself_whole(self):
        event = Composed((Repeated(Subsampled(Gaussian(2.0), 0.1), 5), Nothing(), Pure(0.5)))
        assert json.loads(json.dumps(event.to_dict())) == {
            "event": "composed",
            "of": [
                {
                    "event": "repeated",
                    "count": 5,
                    "of": {
                        "event": "subsampled",
                        "rate": 0.1,
                        "of": {"event": "gaussian", "noise_multiplier": 2.0},
                    },
                },
                {"event": "nothing"},
                {"event": "pure", "epsilon": 0.5},
            ],
        }

    def test_composing_one_event_adds_no_layer(self):
        assert compose_events([Pure(1.0)]) == Pure(1.0)
        assert compose_events(iter([Pure(1.0), Pure(2.0)])) == Composed((Pure(1.0), Pure(2.0)))
        assert compose_events([]) == Composed(())
