"""ChooseOrdered keeps its promise on small domains exactly and on 2^63 points in practice."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import Drawing
from goodness import FALSE_ALARM, p_value
from quorate.auditing import RecordedNoise, SmallWorld, audit_exactly
from quorate.core.account.account import Account
from quorate.core.account.along_a_line import choose_point
from quorate.core.by_hand import line_by_hand
from quorate.core.guarantees import Numerics, Pure, Relation
from quorate.core.noise import SecureNoise, SeededNoise, use_noise
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.choices.ordered import ChooseOrdered
from sealing import release_by_hand

REPLACE, ADD_REMOVE = Relation.REPLACE, Relation.ADD_REMOVE
LARGEST, SMALLEST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def pointwise(choice, losses):
    """The law over points, each a piece of its own."""
    losses = np.asarray(losses)
    return choice.probabilities(np.ones(len(losses), np.uint64), losses)


def merged(losses):
    """The same losses as pieces of equal loss."""
    starts = np.flatnonzero(np.r_[True, np.diff(losses) != 0])
    return np.diff(np.r_[starts, len(losses)]), np.asarray(losses)[starts]


def distances(records, size=6):
    """A loss of sensitivity 5 under replacement: how far each user is from each point."""
    points = np.arange(size)
    return np.sum([np.abs(points - r) for r in records], axis=0, dtype=np.int64) + 0 * points


class TestPrivacy:
    @settings(max_examples=150)
    @given(data=st.data())
    def test_losses_that_move_by_the_sensitivity_move_the_law_by_epsilon(self, data):
        n = data.draw(st.integers(1, 8))
        sensitivity = data.draw(st.integers(1, 4))
        epsilon = data.draw(st.floats(0.01, 4.0))
        losses = np.array(data.draw(st.lists(st.integers(-40, 40), min_size=n, max_size=n)))
        moves = st.integers(-sensitivity, sensitivity)
        other = losses + np.array(data.draw(st.lists(moves, min_size=n, max_size=n)))
        choice = ChooseOrdered(epsilon=epsilon, sensitivity=sensitivity)
        ratio = np.log(pointwise(choice, losses)) - np.log(pointwise(choice, other))
        assert np.abs(ratio).max() <= epsilon * (1 + 1e-9)

    def test_a_pair_comes_close_to_epsilon(self):
        choice = ChooseOrdered(epsilon=1.0, sensitivity=3)
        near = pointwise(choice, [0, 60])
        far = pointwise(choice, [-3, 63])
        assert np.log(near[1] / far[1]) > 0.999

    @pytest.mark.parametrize("relation", [REPLACE, ADD_REMOVE])
    def test_an_audit_of_all_small_data_sets_confirms_the_claim(self, relation):
        # One user is at most 5 away from a point; moving a user changes a distance by at most 5.
        choice = ChooseOrdered(epsilon=6.0, sensitivity=5, relation=relation)
        world = SmallWorld(records=range(6), n_users=3)
        audit = audit_exactly(
            lambda held: pointwise(choice, distances(held)), world, choice.guarantee
        )
        assert audit.holds
        # Adding a user moves all losses up, so a two-sided mechanism wastes half of its epsilon.
        assert audit.tightness > (0.9 if relation is REPLACE else 0.45)

    def test_one_sided_losses_use_the_whole_epsilon(self):
        choice = ChooseOrdered(epsilon=6.0, sensitivity=5, relation=ADD_REMOVE, one_sided=True)
        world = SmallWorld(records=range(6), n_users=3)
        audit = audit_exactly(
            lambda held: pointwise(choice, distances(held)), world, choice.guarantee
        )
        assert audit.holds
        assert audit.tightness > 0.9

    @pytest.mark.parametrize(
        "twin",
        [
            ChooseOrdered(epsilon=6.0, sensitivity=4),
            ChooseOrdered(epsilon=12.0, sensitivity=5),
            ChooseOrdered(epsilon=6.0, sensitivity=5, relation=ADD_REMOVE, one_sided=True),
        ],
        ids=["sensitivity off by one", "noise halved", "wrong relation"],
    )
    def test_broken_twins_are_caught(self, twin):
        claim = ChooseOrdered(epsilon=6.0, sensitivity=5).guarantee
        world = SmallWorld(records=range(6), n_users=3)
        audit = audit_exactly(lambda held: pointwise(twin, distances(held)), world, claim)
        assert not audit.holds

    @settings(max_examples=60)
    @given(st.lists(st.integers(-3, 3), min_size=1, max_size=12))
    def test_how_the_domain_is_cut_does_not_matter(self, losses):
        choice = ChooseOrdered(epsilon=1.0)
        lengths, values = merged(losses)
        spread = np.repeat(choice.probabilities(lengths, values) / lengths, lengths)
        assert spread == pytest.approx(pointwise(choice, losses), rel=1e-12)

    @given(epsilon=st.floats(1e-300, 1e300), sensitivity=st.integers(1, 2**70))
    def test_the_rate_spends_epsilon_and_no_more(self, epsilon, sensitivity):
        rate = ChooseOrdered(epsilon=epsilon, sensitivity=sensitivity).rate
        assert 2 * rate * sensitivity == Fraction(epsilon)


class TestLaw:
    LENGTHS, LOSSES = np.array([2, 0, 3, 1]), np.array([1, -9, 0, 2])

    def drawn(self, choice, draws=3000):
        return np.array(
            [release_by_hand(choice, self.LENGTHS, self.LOSSES, lower=-2) for _ in range(draws)]
        )

    def law(self, choice):
        each = choice.probabilities(self.LENGTHS, self.LOSSES) / np.maximum(self.LENGTHS, 1)
        return np.repeat(each, self.LENGTHS)

    def test_released_points_follow_the_law(self):
        """3000 secure draws over six points; chi-squared with a false alarm of 1e-7."""
        choice = ChooseOrdered(epsilon=1.0)
        counts = np.bincount(self.drawn(choice) + 2, minlength=6)
        assert p_value(counts, self.law(choice)) > FALSE_ALARM

    def test_half_the_noise_is_caught(self):
        counts = np.bincount(self.drawn(ChooseOrdered(epsilon=2.0)) + 2, minlength=6)
        assert p_value(counts, self.law(ChooseOrdered(epsilon=1.0))) < FALSE_ALARM

    def test_a_choice_that_forgets_lengths_is_caught(self):
        choice = ChooseOrdered(epsilon=1.0)
        points = []
        for _ in range(2000):
            piece = release_by_hand(choice, np.array([1, 0, 1, 1]), self.LOSSES)
            points.append([0, 2, 5][piece] + SecureNoise().uniform_below([2, 3, 1][piece]))
        assert p_value(np.bincount(points, minlength=6), self.law(choice)) < FALSE_ALARM

    def test_inside_a_huge_piece_points_are_uniform(self):
        """1000 draws from 2^63 points in sixteen cells; false alarm 1e-7."""
        choice = ChooseOrdered(epsilon=1.0)
        lengths, losses = np.array([2**63 - 1, 1], dtype=np.uint64), np.array([0, 0])
        cells = [release_by_hand(choice, lengths, losses) >> 59 for _ in range(1000)]
        assert p_value(np.bincount(cells, minlength=16), np.full(16, 1 / 16)) > FALSE_ALARM

    def test_a_single_point_wins_against_2_to_the_63_if_it_is_good_enough(self):
        choice = ChooseOrdered(epsilon=2.0)
        lengths = np.array([2**62, 1, 2**62 - 1], dtype=np.uint64)
        # Misses with probability 2**63 exp(-100) < 1e-24.
        assert release_by_hand(choice, lengths, np.array([100, 0, 100]), lower=SMALLEST) == -(2**62)

    def test_every_point_of_the_domain_can_come_out_as_a_python_integer(self):
        choice = ChooseOrdered(epsilon=1.0)
        lengths = np.array([1, 2**64 - 3, 1], dtype=np.uint64)
        first = release_by_hand(choice, lengths, np.array([0, 200, 10**6]), lower=SMALLEST)
        last = release_by_hand(choice, lengths, np.array([10**6, 200, 0]), lower=SMALLEST)
        assert (first, last) == (SMALLEST, SMALLEST + 2**64 - 2)
        assert type(first) is int


class TestReplay:
    @settings(max_examples=40)
    @given(data=st.data())
    def test_any_pieces_ask_for_the_same_noise(self, data):
        recorded = RecordedNoise(4)
        halves = np.array([2**59, 2**59])
        Drawing(ChooseOrdered(epsilon=1.0), recorded).release(halves, np.array([0, 1]))
        n = data.draw(st.integers(1, 6))
        cuts = data.draw(st.lists(st.integers(0, 2**60), min_size=n - 1, max_size=n - 1))
        lengths = np.diff([0, *sorted(cuts), 2**60])
        losses = data.draw(st.lists(st.integers(SMALLEST, LARGEST), min_size=n, max_size=n))
        replayed = recorded.replay()
        Drawing(ChooseOrdered(epsilon=1.0), replayed).release(lengths, np.array(losses))
        replayed.finish()
        assert [draw.method for draw in recorded.log] == ["ordered_choice"]

    def test_a_double_voids_the_guarantee(self):
        choice = ChooseOrdered(epsilon=0.5, relation=ADD_REMOVE)
        assert choice.guarantee.numerics is Numerics.EXACT
        assert choice.guarantee.relation is ADD_REMOVE
        assert choice.event == Pure(0.5)
        with use_noise(SeededNoise(0)):
            assert not ChooseOrdered(epsilon=0.5).guarantee.holds


class TestUtility:
    @pytest.mark.parametrize("size", [2, 1000, 2**63])
    @pytest.mark.parametrize("optimal", [1, 2])
    @pytest.mark.parametrize("beta", [0.4, 1e-3, 1e-9])
    @pytest.mark.parametrize("epsilon", [0.1, 3.0])
    def test_the_bound_is_the_smallest_that_holds(self, size, optimal, beta, epsilon):
        choice = ChooseOrdered(epsilon=epsilon)
        bound = choice.error_bound(size, beta, optimal_points=optimal)
        lengths = np.array([optimal, size - optimal], dtype=np.uint64)
        if size == optimal:
            assert bound == 0
            return
        assert choice.probabilities(lengths, np.array([0, bound + 1]))[1] <= beta * (1 + 1e-9)
        if bound > 0:
            assert choice.probabilities(lengths, np.array([0, bound]))[1] > beta * (1 - 1e-9)

    @settings(max_examples=80)
    @given(st.lists(st.integers(0, 80), min_size=10, max_size=10))
    def test_no_losses_exceed_the_bound(self, losses):
        choice = ChooseOrdered(epsilon=0.5)
        losses = np.array(losses)
        far = losses > losses.min() + choice.error_bound(10, 0.05)
        assert pointwise(choice, losses)[far].sum() <= 0.05


class TestRefusals:
    @pytest.mark.parametrize(
        "change",
        [
            {"epsilon": 0.0},
            {"epsilon": math.nan},
            {"epsilon": math.inf},
            {"sensitivity": 0},
            {"sensitivity": 1.5},
            {"relation": None},
            {"one_sided": True},
        ],
        ids=str,
    )
    def test_bad_parameters_are_refused(self, change):
        with pytest.raises(ParameterError):
            ChooseOrdered(**{"epsilon": 1.0, **change})

    def test_pieces_without_a_point_are_refused_without_a_number(self):
        with pytest.raises(SchemaError, match="at least one") as caught:
            release_by_hand(ChooseOrdered(epsilon=1.0), np.array([0, 0]), np.array([123456, 7]))
        assert "123456" not in str(caught.value)

    def test_a_domain_that_begins_between_integers_is_refused(self):
        choice = ChooseOrdered(epsilon=1.0)
        with pytest.raises(TypeError):
            release_by_hand(choice, np.array([3]), np.array([0]), lower=0.5)

    @pytest.mark.parametrize(
        "arguments",
        [(0, 0.1, 1), (10, 0.0, 1), (10, 1.0, 1), (10, math.nan, 1), (10, 0.1, 0), (10, 0.1, 11)],
    )
    def test_bad_bounds_are_refused(self, arguments):
        size, beta, optimal = arguments
        with pytest.raises(ParameterError):
            ChooseOrdered(epsilon=1.0).error_bound(size, beta, optimal_points=optimal)

    @pytest.mark.parametrize("first", [0, 2**60, 2**61, 2**62 - 1])
    def test_candidates_beyond_64_bits_are_refused_wherever_people_are(self, first):
        """Their numbers would wrap around, in some pieces and not in others."""
        sizes = np.array([first, 2**62 - first], np.uint64)
        line, account = line_by_hand(sizes, np.array([0, 0])), Account.open(epsilon=2.0)
        with pytest.raises(ParameterError):
            choose_point(line, rate=Fraction(1), account=account, scales=((1, 5),))
        assert account.left == 2
