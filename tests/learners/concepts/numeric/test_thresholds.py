"""Cut-offs: sizes, sentences, dimensions, and domains that no list could hold.

Positions in a domain agree with comparisons, in integers and in floats.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts import (
    Constant,
    CutOff,
    Direction,
    OrderedDomain,
    Thresholds,
    littlestone_dimension,
    vc_dimension,
)
from quorate.learners.concepts.numeric.thresholds import _order, at_least


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


class TestDomainsOfIntegers:
    @given(
        lower=st.integers(-(2**63), 2**63 - 1),
        span=st.integers(0, 2**63 - 1),
        step=st.integers(1, 2**40),
        x=st.one_of(st.integers(-(2**63), 2**63 - 1), st.just(0)),
    )
    def test_the_position_is_exact_over_all_64_bit_integers(self, lower, span, step, x):
        points = min(span, 2**63 - 1 - lower) // step + 1
        domain = OrderedDomain(lower=lower, points=points, step=step)
        expected = min(max(0, (x - lower) // step), points - 1)
        assert int(domain.position(np.array([x], dtype=np.int64))[0]) == expected

    @given(x=st.floats(allow_nan=False), lower=st.integers(-(2**62), 2**62))
    def test_floats_are_rounded_down_exactly_and_clipped(self, x, lower):
        domain = OrderedDomain(lower=lower, points=2**61)
        whole = x if math.isinf(x) else math.floor(x)
        expected = min(max(whole, lower), lower + 2**61 - 1) - lower
        assert int(domain.position([x])[0]) == expected

    def test_nan_is_low_and_unsigned_integers_are_understood(self):
        domain = OrderedDomain(lower=5, points=10)
        assert domain.position([math.nan, 7.9]).tolist() == [0, 2]
        assert domain.position(np.array([2**64 - 1, 6], dtype=np.uint64)).tolist() == [9, 1]
        assert domain.position(np.array([True, False])).tolist() == [0, 0]

    @given(data=st.data(), points=st.integers(1, 2**63))
    def test_floats_near_the_ends_are_exact(self, data, points):
        lower = data.draw(st.integers(-(2**63), 2**63 - points))
        domain = OrderedDomain(lower=lower, points=points)
        for end in (lower, lower + points - 1):
            for x in (
                np.nextafter(float(end), -np.inf),
                float(end),
                np.nextafter(float(end), np.inf),
            ):
                expected = min(max(math.floor(x), lower), lower + points - 1) - lower
                assert int(domain.position([x])[0]) == expected

    def test_all_2_to_the_63_non_negative_integers_are_a_domain(self):
        domain = OrderedDomain.between(0, 2**63 - 1)
        assert domain.points == 2**63
        top = domain.position(np.array([2**63 - 1], dtype=np.int64))
        assert int(top[0]) == 2**63 - 1
        assert int(domain.position([1e300])[0]) == 2**63 - 1

    def test_numpy_integers_do_not_overflow(self):
        domain = OrderedDomain.between(np.int64(-(2**62)), np.int64(2**62 - 1), step=np.int8(1))
        assert domain.points == 2**63
        assert domain == OrderedDomain(lower=-(2**62), points=2**63)


class TestDomainsOfFloats:
    @given(
        lower=st.floats(-1e6, 1e6),
        step=st.floats(1e-6, 1e3),
        points=st.integers(1, 2**20),
        x=st.floats(allow_nan=False),
        near=st.integers(0, 2**20),
    )
    def test_the_position_counts_the_grid_points_at_or_below(self, lower, step, points, x, near):
        domain = OrderedDomain(lower=lower, points=points, step=step)
        grid_point = domain.value(min(near, points - 1))
        edges = [np.nextafter(grid_point, -np.inf), grid_point, np.nextafter(grid_point, np.inf)]
        for value in [x, *edges]:
            j = int(domain.position([value])[0])
            assert 0 <= j < points
            assert j == 0 or domain.value(j) <= value
            assert j == points - 1 or domain.value(j + 1) > value

    def test_decimal_steps_reach_the_last_point(self):
        assert OrderedDomain.between(0.0, 0.3, step=0.1).points == 4
        assert OrderedDomain.between(0.0, 0.35, step=0.1).points == 4
        assert OrderedDomain.between(0, 1, step=0.25).points == 5

    def test_nan_is_low(self):
        assert OrderedDomain(lower=0.5, points=3).position([math.nan]).tolist() == [0]


class TestComparison:
    @given(cut=st.integers(-(2**64), 2**64), near=st.integers(-3, 3))
    def test_floats_are_compared_with_integers_exactly(self, cut, near):
        x = float(cut)
        for _ in range(abs(near)):
            x = math.nextafter(x, math.copysign(math.inf, near))
        assert at_least(np.array([x]), cut)[0] == (int(x) >= cut if x == int(x) else x >= cut)

    @given(cut=st.integers(-(2**64), 2**64), x=st.integers(-(2**63), 2**63 - 1))
    def test_integers_are_compared_exactly(self, cut, x):
        assert at_least(np.array([x]), cut)[0] == (x >= cut)


class TestRefusedDomains:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"lower": math.nan, "points": 3},
            {"lower": math.inf, "points": 3},
            {"lower": 0, "points": 0},
            {"lower": 0, "points": 2.5},
            {"lower": 0, "points": 3, "step": 0},
            {"lower": 0, "points": 3, "step": math.nan},
            {"lower": 0, "points": 2**63 + 1},
            {"lower": 2**63 - 1, "points": 2},
            {"lower": -(2**63) - 1, "points": 2},
            {"lower": 0.0, "points": 2**51},
            {"lower": 1e300, "points": 3, "step": 1.0},
            {"lower": 1e308, "points": 3, "step": 1e308},
        ],
    )
    def test_a_domain_that_numbers_cannot_express_is_refused(self, wrong):
        with pytest.raises(ParameterError, match="Expected"):
            OrderedDomain(**wrong)

    @pytest.mark.parametrize("wrong", [(3, 2), (0, math.inf), (math.nan, 1)])
    def test_bounds_out_of_order_are_refused(self, wrong):
        with pytest.raises(ParameterError, match="Expected"):
            OrderedDomain.between(*wrong)

    @pytest.mark.parametrize("upper", [1e308, 2.0**50, 1e17])
    def test_bounds_too_far_apart_for_floats_are_refused(self, upper):
        with pytest.raises(ParameterError, match="coarser step"):
            OrderedDomain.between(-upper, upper)
