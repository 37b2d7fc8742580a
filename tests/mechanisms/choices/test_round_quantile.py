"""Quantiles on round numbers: which there are, the law of the choice, and what it is good for."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodness import FALSE_ALARM, p_value
from quorate.auditing import SmallWorld, audit_exactly
from quorate.core.account.along_a_line import _Entries
from quorate.core.by_hand import rows_by_hand
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.choices.quantiles import FloatQuantile, PrivateQuantile
from quorate.mechanisms.choices.round_quantile import RoundNumbers, RoundQuantile
from quorate.mechanisms.laws import law_of
from sealing import release_by_hand

every_relation = pytest.mark.parametrize("relation", list(Relation), ids=lambda r: r.name)
# Points 0 to 12; the multiples of 5 and of 10 among them once more.
SMALL = RoundQuantile(lower=0.0, upper=12.0, epsilon=2.0, digits=1)


def points(*values):
    return np.array(values, dtype=np.int64)


class TestNumbers:
    @settings(max_examples=200)
    @given(
        lower=st.floats(-1e60, 1e60),
        width=st.floats(1e-20, 1e60),
        values=st.lists(st.floats(), max_size=5),
    )
    def test_any_range_has_points_and_every_value_one_of_them(self, lower, width, values):
        upper = max(lower + width, math.nextafter(lower, math.inf))
        numbers = RoundNumbers.within(lower, upper)
        assert numbers.first <= numbers.last
        assert max(abs(numbers.first), abs(numbers.last)) < 2**50
        held = numbers.encode(np.array(values, dtype=np.float64))
        assert held.shape == (len(values),)
        for value, point in zip(values, held.tolist(), strict=True):
            assert numbers.first <= point <= numbers.last
            if not math.isnan(value):
                inside = min(max(value, lower), upper)
                # Beside a float's own rounding a point is at most a step away.
                slack = numbers.step + Fraction(math.ulp(inside))
                assert abs(Fraction(numbers.decode(point)) - Fraction(inside)) <= slack

    @pytest.mark.parametrize("limits", [(0.0, 125.0), (-40.0, 60.0), (0.5, 5.0), (1e9, 1e9 + 3)])
    def test_decimals_are_met_to_the_last_bit(self, limits):
        numbers = RoundNumbers.within(*limits)
        rng = np.random.default_rng(0)
        for decimals in range(6):
            values = np.round(rng.uniform(*limits, 50), decimals)
            values = values[(values >= limits[0]) & (values <= limits[1])]
            assert [numbers.decode(p) for p in numbers.encode(values).tolist()] == values.tolist()

    def test_the_ends_are_met_even_if_they_are_not_round(self):
        numbers = RoundNumbers.within(math.pi, 2 * math.pi)
        ends = numbers.encode(np.array([math.pi, 2 * math.pi, -9.0, 9.0]))
        assert [numbers.decode(p) for p in ends.tolist()] == [math.pi, 2 * math.pi] * 2

    def test_each_scale_counts_its_own_multiples(self):
        numbers = RoundNumbers.within(-7.0, 23.0, digits=1)
        assert numbers.strides == (1, 5, 10)
        for stride in numbers.strides:
            multiples = [u for u in range(numbers.first, numbers.last + 1) if u % stride == 0]
            assert numbers.points(stride) == len(multiples)

    @pytest.mark.parametrize("limits", [(1.0, 1.0), (0.0, math.inf), (math.nan, 1.0)])
    def test_what_is_no_range_is_refused(self, limits):
        with pytest.raises(ParameterError):
            RoundNumbers.within(*limits)

    def test_no_value_warns(self):
        numbers = RoundNumbers.within(0.0, 9.0, digits=0)
        widest = np.finfo(np.longdouble).max
        held = np.array([np.nan, np.inf, -np.inf, widest, -widest, 5.2], dtype=np.longdouble)
        assert numbers.encode(held).tolist() == [4, 9, 0, 9, 0, 5]
        whole = np.array([-(2**63), 2**63 - 1])
        assert numbers.encode(whole).tolist() == [0, 9]

    def test_tables_are_refused(self):
        with pytest.raises(SchemaError):
            RoundNumbers.within(0.0, 1.0).encode(np.zeros((2, 2)))


class TestLaw:
    def test_it_is_the_exponential_mechanism_over_the_list_of_candidates(self):
        held = points(3, 5, 5, 11)
        ranks = PrivateQuantile(domain=(0, 12), epsilon=2.0)
        plain = ranks.probabilities(held)
        sizes = {1: 13, 5: 3, 10: 2}
        base = np.array([sum((u % s == 0) / size for s, size in sizes.items()) for u in range(13)])
        expected = plain * base / np.sum(plain * base)
        # Scales weigh the same up to the rounding of their copies.
        np.testing.assert_allclose(SMALL.probabilities(held), expected, rtol=1e-12)

    @pytest.mark.parametrize("held", [(3, 5, 5, 11), (0, 12), ()])
    def test_draws_follow_the_law(self, held):
        lower, upper = points(*held), points(*held) + (1 if 3 in held else 0)
        expected = SMALL.probabilities(lower, upper)
        with use_noise(SeededNoise(len(held))):
            held = rows_by_hand(lower), rows_by_hand(upper)
            drawn = [SMALL.release_between(*held) for _ in range(500)]
        counts = np.bincount(drawn, minlength=13)
        assert p_value(counts, expected) > FALSE_ALARM
        twin = np.roll(expected, 1)
        if len(held) == 4:
            assert p_value(counts, twin) < FALSE_ALARM

    @settings(max_examples=60)
    @given(
        held=st.lists(st.integers(-3, 130), max_size=6),
        drawn=st.floats(0, 1, exclude_max=True),
        first=st.integers(-40, 40),
    )
    def test_every_weight_of_a_piece_names_a_point_inside_it(self, held, drawn, first):
        median = RoundQuantile(lower=float(first), upper=first + 90.0, epsilon=1.0, digits=3)
        lengths, losses = median.ranks.pieces(points(*held), points(*held))
        entries = _Entries(median.numbers.first, lengths, median.scales)
        edges = median.numbers.first + np.cumsum(np.r_[0, lengths.astype(np.int64)])
        weights = np.sum(entries.weights, axis=0).astype(object)
        assert sum(weights) == median.weight < 2**64
        assert len(weights) == len(losses)
        for piece, weight in enumerate(weights):
            if weight:
                number = entries.number(piece, int(drawn * int(weight)))
                assert edges[piece] <= entries.point(number) < edges[piece + 1]


class TestPrivacy:
    @every_relation
    @pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(1, 4)], ids=str)
    def test_an_audit_of_all_small_data_sets_confirms_the_claim(self, relation, quantile):
        mechanism = replace(SMALL, relation=relation, quantile=quantile)
        world = SmallWorld(records=(-9, 0, 4, 5, 10, 99), n_users=3)

        def law(held, mechanism=mechanism):
            return mechanism.probabilities(np.array(held, dtype=np.int64))

        audit = audit_exactly(law, world, mechanism.guarantee)
        assert audit.holds, str(audit)
        twin = replace(mechanism, epsilon=4.2)
        assert not audit_exactly(
            lambda held: law(held, twin), world, mechanism.guarantee, thorough=False
        ).holds

    def test_a_base_that_follows_the_users_is_caught(self):
        """The broken twin: candidates are what the users hold, and a new one tells of a user."""
        world = SmallWorld(records=(0, 4, 10), n_users=3)

        def law(held):
            plain = SMALL.probabilities(np.array(held, dtype=np.int64))
            shown = np.zeros_like(plain)
            shown[list(held)] = plain[list(held)]
            return shown / shown.sum() if held else plain

        assert not audit_exactly(law, world, SMALL.guarantee, thorough=False).holds


class TestUtility:
    def test_a_shared_number_is_met_where_a_fine_grid_passes_it_by(self):
        # 24 of 1,000 users hold the median; beside it the rank is off by at least 10.
        visits = np.repeat([1.0, 2.5, 3.0, 4.0, 5.0], [300, 190, 24, 286, 200])
        known = {"lower": 0.0, "upper": 125.0, "epsilon": 1.0}
        fine = FloatQuantile(resolution=125.0 * 2.0**-40, **known)
        coarse = RoundQuantile(**known)
        held = coarse.encode(visits)
        with use_noise(SeededNoise(0)):
            met = sum(coarse.decode(release_by_hand(coarse, held)) == 3.0 for _ in range(60))
            missed = sum(release_by_hand(fine, visits) != 3.0 for _ in range(60))
        assert met >= 54
        assert missed == 60

    @every_relation
    def test_the_worst_case_bound_holds_in_the_worst_case(self, relation):
        # All users at a number that only the finest scale has.
        median = RoundQuantile(lower=0.0, upper=1.0, epsilon=1.0, relation=relation)
        held = np.full(200, median.numbers.last // 3 | 1)
        bound = median.error_bound(0.05)
        lengths, losses = median.ranks.pieces(held, held)
        entries = _Entries(median.numbers.first, lengths, median.scales)
        law = law_of("ordered_choice", {"rate": median.choice.rate}, (entries, losses))
        off = np.tile(losses, len(median.numbers.strides)) / 2 > bound
        assert law.probabilities[off].sum() <= 0.05

    def test_no_range_costs_more_time(self):
        held = np.random.default_rng(0).normal(size=20_000)
        for width in (1e-9, 1e9):
            median = RoundQuantile(lower=-5 * width, upper=5 * width, epsilon=1.0)
            assert (
                abs(median.decode(release_by_hand(median, median.encode(held * width))))
                < 0.1 * width
            )


@pytest.mark.parametrize("limits", [(0.0, 1.7e308), (-1.7e308, 1.7e308), (0.0, 1e-312)])
def test_ranges_beyond_floats_are_refused_before_any_value(limits):
    with pytest.raises(ParameterError, match="use other units"):
        RoundQuantile(lower=limits[0], upper=limits[1], epsilon=1.0)
    assert RoundNumbers.within(-1e300, 1e300).decode(10**20) == 1e300
    assert RoundNumbers.within(0.0, 1e-290).encode(np.array([5e-291, 0.0])).tolist()[1] == 0
