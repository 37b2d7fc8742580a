"""The promise as data, as prose and as JSON."""

import json
import math
from fractions import Fraction

import pytest

from quorate import Guarantee, Relation
from quorate.accounting.events import Pure
from quorate.exceptions import ParameterError
from quorate.guarantees import Numerics, Trust


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
        assert Guarantee.from_dict(json.loads(promise.to_json())) == promise

    def test_an_infinite_epsilon_survives_json(self):
        document = json.loads(Guarantee(epsilon=math.inf).to_json())
        assert Guarantee.from_dict(document).epsilon == math.inf

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
