"""Cut-offs: sizes, sentences, dimensions, and domains that no list could hold."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.concepts import (
    Constant,
    CutOff,
    Direction,
    Thresholds,
    littlestone_dimension,
    vc_dimension,
)
from quorate.concepts.numeric.thresholds import _order
from quorate.exceptions import ParameterError
from quorate.users import UserData


class TestConcepts:
    def test_the_line_of_both_directions_meets_in_the_constants(self):
        concepts = Thresholds(1, 3, direction=Direction.EITHER)
        sentences = [str(concepts.concept(index)) for index in range(concepts.size)]
        assert sentences == [
            "Always predict 1.",
            "Predict 1 if x >= 2, else 0.",
            "Predict 1 if x >= 3, else 0.",
            "Always predict 0.",
            "Predict 1 if x < 2, else 0.",
            "Predict 1 if x < 3, else 0.",
        ]

    def test_below_starts_with_never_and_ends_with_always(self):
        concepts = Thresholds(0, 1, direction=Direction.BELOW, name="age")
        assert concepts.concept(0) == Constant(0)
        assert concepts.concept(1) == CutOff(cut=1, above=False, name="age")
        assert concepts.concept(2) == Constant(1)

    def test_cut_offs_are_values_of_the_domain(self):
        concepts = Thresholds(-5, 5, direction=Direction.EITHER)
        assert [concepts.cut_off(index) for index in (0, 1, 11, 12, 21)] == [-5, -4, 6, -4, 5]

    def test_integers_beyond_floats_are_told_apart(self):
        concept = Thresholds(0, 2**63 - 1).concept(2**62 + 1)
        assert concept.predict(np.array([2**62, 2**62 + 1])).tolist() == [0, 1]

    def test_a_float_is_never_above_a_cut_off_it_does_not_reach(self):
        # Regression: numpy rounds 9e18 + 1 to 9e18 before it compares.
        concepts = Thresholds(0, 2**63 - 1)
        assert concepts.predict(9 * 10**18, [9e18]).tolist() == [1]
        assert concepts.predict(9 * 10**18 + 1, [9e18]).tolist() == [0]

    def test_the_cut_lies_above(self):
        assert Thresholds(0, 9).predict(4, [3.999, 4.0]).tolist() == [0, 1]


class TestDimensions:
    @pytest.mark.parametrize("points", range(1, 40))
    @pytest.mark.parametrize("direction", list(Direction))
    def test_the_formulas_are_the_dimensions(self, points, direction):
        concepts = Thresholds(0, points - 1, direction=direction)
        table = concepts.predictions(np.arange(points)).T
        assert len(np.unique(table, axis=0)) == concepts.size
        assert concepts.vc_is_exact
        assert concepts.vc_dimension == vc_dimension(table)
        assert concepts.littlestone_is_exact
        assert concepts.littlestone_dimension == littlestone_dimension(table)

    def test_huge_domains_have_them_too(self):
        assert Thresholds(0, 2**63 - 1).littlestone_dimension == 63
        assert Thresholds(0, 2**32 - 1, direction=Direction.EITHER).littlestone_dimension == 33


class TestHugeDomains:
    @settings(max_examples=40)
    @given(
        records=st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 2**31).map(float), st.integers(0, 1)),
            max_size=12,
        ),
        direction=st.sampled_from(list(Direction)),
        t=st.integers(0, 3),
    )
    def test_every_piece_has_the_mistakes_of_its_ends(self, records, direction, t):
        records = sorted(records)
        users = UserData(
            np.array([x for _, x, _ in records]).reshape(-1, 1),
            np.array([y for *_, y in records], dtype=float),
            offsets=np.searchsorted([user for user, *_ in records], np.arange(5)),
        )
        concepts = Thresholds(0, 2**30, direction=direction)
        events = concepts.mistake_events(users)
        ends = [events.starts, events.starts + events.lengths - np.uint64(1)]
        for places in ends:
            for place, above, total in zip(
                places, events.users_above(t), events.total(), strict=True
            ):
                wrong = concepts.predict(int(place), users.X) != users.y
                own = [wrong[a:b].sum() for a, b in pairwise(users.offsets)]
                assert sum(count > t for count in own) == above
                assert sum(own) == total

    @pytest.mark.parametrize("points", [2**20, 2**63])
    def test_both_ways_of_sorting_sort(self, points):
        position = np.random.default_rng(0).integers(0, points, 1_000, dtype=np.uint64)
        order = _order(position, points=points)
        assert sorted(order.tolist()) == list(range(1_000))
        assert np.all(position[order][1:] >= position[order][:-1])

    def test_the_largest_domains_are_allowed(self):
        users = UserData([[5.0], [9e18]], [0.0, 1.0], offsets=[0, 1, 2])
        events = Thresholds(0, 2**63 - 1).mistake_events(users)
        assert int(events.lengths.sum()) == 2**63 + 1
        assert events.total().tolist() == [1, 0, 1]
        both = Thresholds(0, 2**63 - 2, direction=Direction.EITHER)
        assert int(both.mistake_events(users).lengths.sum()) == 2**64 - 2

    def test_a_list_of_mistakes_is_refused_with_the_way_out(self):
        users = UserData([[5.0]], [0.0], offsets=[0, 1])
        with pytest.raises(ParameterError, match="Use mistake_events"):
            Thresholds(0, 2**32).mistakes(users)


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "keywords"),
        [
            ((3, 2), {}),
            ((0, 5), {"step": 0}),
            ((0, 5), {"direction": "above"}),
            ((0, 2**63 - 1), {"direction": Direction.EITHER}),
            ((0, 2**63), {}),
            ((0.0, float("nan")), {}),
            ((None, 5), {}),
        ],
    )
    def test_parameters_outside_are_refused_when_the_class_is_built(self, arguments, keywords):
        with pytest.raises(ParameterError, match="Expected"):
            Thresholds(*arguments, **keywords)
