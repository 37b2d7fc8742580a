"""The promise as data, as prose and as JSON; its events, rounded towards the higher cost."""

import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from quorate import Guarantee, Relation
from quorate.core.account import price
from quorate.core.guarantees import (
    Approximate,
    Composed,
    Event,
    Gaussian,
    Nothing,
    Numerics,
    Pure,
    Repeated,
    Subsampled,
    Trust,
    compose_events,
    gaussian_costs,
)
from quorate.exceptions import ParameterError, UnsupportedEventError
from quorate.ledger.entries import read_guarantee

NAN, INF = math.nan, math.inf


class TestSentence:
    def test_it_names_the_unit_and_the_figure(self):
        sentence = str(Guarantee(epsilon=1.0, unit="patient"))
        assert sentence.startswith(
            "epsilon = 1 for each patient: whatever one patient's whole record says"
        )
        assert "replaced by any other" in sentence
        assert "\n" not in sentence

    def test_add_remove_speaks_of_absence(self):
        sentence = str(Guarantee(epsilon=1.0, relation=Relation.ADD_REMOVE))
        assert "had never been in the data" in sentence

    def test_delta_is_stated_as_an_exception(self):
        assert "up to an added probability of 1e-06" in str(Guarantee(epsilon=1.0, delta=1e-6))

    def test_idealized_numerics_cannot_hide(self):
        assert "floating-point" in str(Guarantee(epsilon=1.0, numerics=Numerics.IDEALIZED))

    def test_a_trust_model_other_than_central_is_spelled_out(self):
        assert "device" in str(Guarantee(epsilon=1.0, trust=Trust.LOCAL))

    @pytest.mark.parametrize(
        "promise",
        [
            Guarantee(epsilon=1.0, numerics=Numerics.VOID),
            Guarantee(epsilon=math.inf),
            Guarantee(epsilon=1.0, delta=1.0),
        ],
    )
    def test_an_empty_promise_says_that_it_is_empty(self, promise):
        assert not promise.holds
        assert str(promise).startswith("No guarantee")

    def test_a_huge_epsilon_still_prints(self):
        assert "too large" in str(Guarantee(epsilon=1e6))


class TestData:
    def test_json_round_trip_keeps_every_field_but_events(self):
        promise = Guarantee(
            epsilon=0.5,
            delta=1e-7,
            unit="person x day",
            relation=Relation.ADD_REMOVE,
            data_name="trips",
        )
        assert read_guarantee(json.loads(json.dumps(promise.to_dict()))) == promise

    def test_an_infinite_epsilon_survives_json(self):
        document = json.loads(json.dumps(Guarantee(epsilon=math.inf).to_dict()))
        assert read_guarantee(document).epsilon == math.inf

    def test_events_are_written_as_plain_data(self):
        document = Guarantee(epsilon=1.0, events=(Pure(1.0),)).to_dict()
        assert document["events"] == [{"event": "pure", "epsilon": 1.0}]

    def test_charging_adds_the_name_and_nothing_else(self):
        promise = Guarantee(epsilon=1.0)
        assert promise.charged_to("visits").data_name == "visits"
        assert promise.data_name is None


class TestRefusals:
    @pytest.mark.parametrize("epsilon", [-1.0, float("nan"), "1", True, None])
    def test_a_bad_epsilon_is_refused(self, epsilon):
        with pytest.raises(ParameterError, match="epsilon"):
            Guarantee(epsilon=epsilon)

    @pytest.mark.parametrize("delta", [-1e-9, 1.1, float("nan")])
    def test_a_bad_delta_is_refused(self, delta):
        with pytest.raises(ParameterError, match="delta"):
            Guarantee(epsilon=1.0, delta=delta)

    def test_a_relation_given_as_text_is_refused(self):
        with pytest.raises(ParameterError, match="Relation"):
            Guarantee(epsilon=1.0, relation="replace")

    def test_an_empty_unit_is_refused(self):
        with pytest.raises(ParameterError, match="unit"):
            Guarantee(epsilon=1.0, unit=" ")


def test_numerics_combine_to_the_weakest():
    assert Numerics.EXACT.weakest(Numerics.VOID) is Numerics.VOID
    assert Numerics.IDEALIZED.weakest(Numerics.EXACT) is Numerics.IDEALIZED


def test_a_rational_epsilon_is_rounded_up_to_a_float():
    third = Guarantee(epsilon=Fraction(1, 3))
    assert isinstance(third.epsilon, float)
    assert third.epsilon >= Fraction(1, 3)
    assert "0.333333" in str(third)


class TestRefusedEvents:
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
    def test_noise_is_positive_and_finite(self, multiplier):
        with pytest.raises(ParameterError, match="noise_multiplier"):
            Gaussian(multiplier)

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
        with pytest.raises(UnsupportedEventError, match="Event"):
            price(Event())


class TestRoundedEvents:
    def test_a_rational_loss_is_rounded_up(self):
        assert Fraction(Pure(Fraction(1, 3)).epsilon) > Fraction(1, 3)
        assert Fraction(Approximate(0, Fraction(1, 7)).delta) > Fraction(1, 7)
        assert Fraction(Subsampled(Pure(1), Fraction(1, 3)).rate) > Fraction(1, 3)

    def test_rational_noise_is_rounded_down(self):
        assert Fraction(Gaussian(Fraction(2, 3)).noise_multiplier) < Fraction(2, 3)
        assert Fraction(Gaussian(Fraction(1, 10)).noise_multiplier) < Fraction(1, 10)

    def test_numpy_numbers_become_python_numbers(self):
        assert type(Pure(np.float64(0.5)).epsilon) is float
        assert type(Repeated(Pure(1.0), np.int64(3)).count) is int
        json.dumps(Repeated(Gaussian(np.float32(2)), np.int32(2)).to_dict())

    @pytest.mark.parametrize("multiplier", [3.0, 7.0, 0.1, 4.2247, 1e-200])
    def test_mu_is_rounded_up(self, multiplier):
        assert Fraction(Gaussian(multiplier).mu) * Fraction(multiplier) >= 1


class TestEventsAsData:
    def test_events_are_frozen_and_compare_by_value(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            Pure(1.0).epsilon = 0.0
        assert Pure(1) == Pure(1.0)
        assert hash(Pure(1)) == hash(Pure(1.0))
        assert Pure(1.0) != Gaussian(1.0)

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


def test_discrete_noise_is_priced_as_a_little_less_continuous_noise():
    event, _ = gaussian_costs(10.0, Fraction(4))
    assert Fraction(event.noise_multiplier) ** 2 * 4 <= 96
    assert event.noise_multiplier == pytest.approx(24**0.5)
    with pytest.raises(ParameterError, match="sigma > 2"):
        gaussian_costs(2.0, Fraction(1))
