"""Private quantiles: the loss moves as proved, the law follows, the rank error is as promised."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodness import FALSE_ALARM, p_value
from quorate.auditing import RecordedNoise, SmallWorld, audit_exactly
from quorate.core.by_hand import rows_by_hand
from quorate.core.guarantees import Guarantee, Numerics, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.questions.ranks import quantile_pieces
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.choices.quantiles import FloatQuantile, PrivateQuantile
from sealing import release_by_hand

REPLACE, ADD_REMOVE = Relation.REPLACE, Relation.ADD_REMOVE
LARGEST, SMALLEST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
QUANTILES = [Fraction(1, 2), Fraction(9, 10), Fraction(1, 3)]
every_quantile = pytest.mark.parametrize("quantile", QUANTILES, ids=str)
every_relation = pytest.mark.parametrize("relation", list(Relation), ids=lambda r: r.name)

wild = st.one_of(st.integers(-3, 9), st.integers(SMALLEST, LARGEST))
users = st.lists(st.tuples(wild, wild), min_size=0, max_size=6)


def columns(pairs):
    lower, upper = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return lower, upper


def pointwise_losses(pairs, quantile, domain=(0, 6)):
    lengths, losses = quantile_pieces(*columns(pairs), domain=domain, quantile=quantile)
    return np.repeat(losses, lengths.astype(np.int64))


def losses_by_definition(pairs, quantile, domain=(0, 6)):
    first, last = domain
    a, b, n = quantile.numerator, quantile.denominator, len(pairs)
    clipped = [tuple(min(max(limit, first), last) for limit in pair) for pair in pairs]
    found = []
    for u in range(first, last + 1):
        below = sum(upper < u for _, upper in clipped)
        above = sum(lower > u for lower, _ in clipped)
        found.append(max(b * below - a * n, b * above - (b - a) * n))
    return found


class TestPieces:
    @every_quantile
    @settings(max_examples=150)
    @given(pairs=users)
    def test_pieces_are_the_definition(self, quantile, pairs):
        assert pointwise_losses(pairs, quantile).tolist() == losses_by_definition(pairs, quantile)

    @settings(max_examples=60)
    @given(pairs=users, first=wild, last=wild)
    def test_pieces_cover_any_domain_once_in_a_fixed_number(self, pairs, first, last):
        first, last = min(first, last), max(first, last)
        if last - first + 1 == 2**64:
            last -= 1
        lengths, losses = quantile_pieces(
            *columns(pairs), domain=(first, last), quantile=Fraction(1, 2)
        )
        assert len(lengths) == len(losses) == 2 * len(pairs) + 1
        assert sum(lengths.tolist()) == last - first + 1


class TestSensitivity:
    @every_quantile
    @settings(max_examples=150)
    @given(pairs=users, old=st.tuples(wild, wild), new=st.tuples(wild, wild))
    def test_one_user_moves_no_loss_by_more_than_the_sensitivity(self, quantile, pairs, old, new):
        before = pointwise_losses([*pairs, old], quantile)
        replaced = pointwise_losses([*pairs, new], quantile)
        removed = pointwise_losses(pairs, quantile)
        for relation, after in ((REPLACE, replaced), (ADD_REMOVE, removed)):
            mechanism = PrivateQuantile(
                domain=(0, 6), epsilon=1.0, quantile=quantile, relation=relation
            )
            assert np.abs(before - after).max() <= mechanism.sensitivity

    @every_quantile
    def test_a_pair_reaches_the_sensitivity(self, quantile):
        a, b = quantile.numerator, quantile.denominator
        here, there = [(0, 0)] * 3, [(6, 6)] * 3
        before = pointwise_losses(here + there, quantile)
        replaced = pointwise_losses([(6, 6), *here[1:], *there], quantile)
        assert np.abs(before - replaced).max() == b
        moves = [
            pointwise_losses([*held, held[0]], quantile) - pointwise_losses(held, quantile)
            for held in (here, there)
        ]
        assert max(np.abs(move).max() for move in moves) == max(a, b - a)

    @every_relation
    @every_quantile
    def test_an_audit_of_all_small_data_sets_confirms_the_claim(self, relation, quantile):
        mechanism = PrivateQuantile(
            domain=(0, 3), epsilon=4.0, quantile=quantile, relation=relation
        )
        world = SmallWorld(records=(-9, 0, 1, 3, 99), n_users=4)
        audit = audit_exactly(
            lambda held: mechanism.probabilities(np.array(held, dtype=np.int64)),
            world,
            mechanism.guarantee,
        )
        assert audit.holds
        # Four users are too few to stand on both sides of the point nine tenths.
        assert audit.tightness > (0.9 if quantile < Fraction(2, 3) else 0.45)

    @every_relation
    def test_ten_users_use_the_whole_epsilon_at_nine_tenths(self, relation):
        mechanism = PrivateQuantile(domain=(0, 1), epsilon=12.0, quantile=0.9, relation=relation)
        world = SmallWorld(records=(0, 1), n_users=10)
        audit = audit_exactly(
            lambda held: mechanism.probabilities(np.array(held, dtype=np.int64)),
            world,
            mechanism.guarantee,
        )
        assert audit.holds
        assert audit.tightness > 0.9

    @every_relation
    def test_an_audit_of_pairs_of_limits_confirms_the_claim(self, relation):
        mechanism = PrivateQuantile(domain=(0, 2), epsilon=4.0, relation=relation)
        limits = [(0, 0), (0, 2), (1, 1), (2, 0), (2, 2)]
        world = SmallWorld(records=limits, n_users=3)
        audit = audit_exactly(
            lambda held: mechanism.probabilities(*columns(held)), world, mechanism.guarantee
        )
        assert audit.holds

    @pytest.mark.parametrize(
        ("twin", "claimed"),
        [
            (PrivateQuantile(domain=(0, 3), epsilon=4.0, relation=ADD_REMOVE), REPLACE),
            (PrivateQuantile(domain=(0, 3), epsilon=8.0), REPLACE),
        ],
        ids=["wrong relation", "noise halved"],
    )
    def test_broken_twins_are_caught(self, twin, claimed):
        world = SmallWorld(records=(0, 1, 3), n_users=4)
        audit = audit_exactly(
            lambda held: twin.probabilities(np.array(held, dtype=np.int64)),
            world,
            Guarantee(epsilon=4.0, relation=claimed),
        )
        assert not audit.holds

    def test_a_domain_taken_from_the_data_is_caught(self):
        def law(held):
            domain = (min(held), max(held))
            points = PrivateQuantile(domain=domain, epsilon=4.0).probabilities(np.array(held))
            return dict(enumerate(points, start=domain[0]))

        world = SmallWorld(records=(0, 1, 3), n_users=3)
        assert not audit_exactly(law, world, Guarantee(epsilon=4.0), thorough=False).holds

    def test_a_sensitivity_off_by_one_is_caught(self):
        def law(held):
            x = np.array(held, dtype=np.int64)
            lengths, losses = quantile_pieces(x, x, domain=(0, 3), quantile=Fraction(1, 2))
            twin = ChooseOrdered(epsilon=4.0, sensitivity=1)
            points = twin.probabilities(lengths, losses) / np.maximum(lengths, 1)
            return np.repeat(points, lengths.astype(int))

        world = SmallWorld(records=(0, 1, 3), n_users=4)
        assert not audit_exactly(law, world, Guarantee(epsilon=4.0), thorough=False).holds


class TestLaw:
    """2000 draws each; chi-squared with a false alarm of 1e-7."""

    VALUES = np.array([1, 1, 2, 4, 4, 4, 77])

    def fit(self, source_epsilon, law_epsilon):
        mechanism = PrivateQuantile(domain=(0, 5), epsilon=source_epsilon)
        drawn = [release_by_hand(mechanism, self.VALUES) for _ in range(2000)]
        law = PrivateQuantile(domain=(0, 5), epsilon=law_epsilon).probabilities(self.VALUES)
        return p_value(np.bincount(drawn, minlength=6), law)

    def test_releases_follow_the_law(self):
        assert self.fit(1.0, 1.0) > FALSE_ALARM

    def test_half_the_noise_is_caught(self):
        assert self.fit(2.0, 1.0) < FALSE_ALARM


class TestReplay:
    @settings(max_examples=40)
    @given(pairs=users, others=users)
    def test_any_users_ask_for_the_same_noise(self, pairs, others):
        def between(held):
            limits = map(rows_by_hand, columns(held))
            return PrivateQuantile(domain=(0, 9), epsilon=1.0).release_between(*limits)

        recorded = RecordedNoise(3)
        with use_noise(recorded):
            between(pairs)
        with use_noise(recorded.replay()) as replayed:
            between(others)
            replayed.finish()

    def test_a_double_voids_the_guarantee(self):
        assert PrivateQuantile(domain=(0, 9), epsilon=1.0).guarantee.numerics is Numerics.EXACT
        with use_noise(SeededNoise(1)):
            assert not PrivateQuantile(domain=(0, 9), epsilon=1.0).guarantee.holds
            grid = FloatQuantile(lower=0.0, upper=1.0, resolution=0.1, epsilon=1.0)
            assert not grid.guarantee.holds


class TestUtility:
    def excess(self, pairs, quantile, domain):
        """By how many users each point's rank is off."""
        losses = pointwise_losses(pairs, quantile, domain)
        return losses / quantile.denominator

    @every_relation
    @every_quantile
    @settings(max_examples=60)
    @given(values=st.lists(st.integers(0, 30), min_size=1, max_size=60))
    def test_the_rank_is_off_by_at_most_the_bound(self, relation, quantile, values):
        mechanism = PrivateQuantile(
            domain=(0, 30), epsilon=2.0, quantile=quantile, relation=relation
        )
        off = self.excess([(v, v) for v in values], quantile, (0, 30))
        far = off > mechanism.error_bound(0.05)
        assert mechanism.probabilities(np.array(values))[far].sum() <= 0.05

    @every_relation
    def test_three_quarters_of_the_bound_are_exceeded_more_often(self, relation):
        """The worst case has two good points, all users on them, and the others equally bad."""
        domain, beta = (0, 999), 0.001
        mechanism = PrivateQuantile(domain=domain, epsilon=1.0, relation=relation)
        smaller = math.floor(0.75 * mechanism.error_bound(beta))
        values = np.repeat([500, 501], smaller + 1)
        off = self.excess([(v, v) for v in values], Fraction(1, 2), domain)
        assert mechanism.probabilities(values)[off > smaller].sum() > beta

    def test_a_median_over_the_whole_of_int64_is_found(self):
        domain = (SMALLEST + 1, LARGEST)
        mechanism = PrivateQuantile(domain=domain, epsilon=1.0)
        values = np.arange(1000) * 10**15 - 5 * 10**17
        rank = np.count_nonzero(values < release_by_hand(mechanism, values))
        # Off by more than the bound with probability below 1e-9.
        assert abs(rank - 500) <= mechanism.error_bound(1e-9) + 1

    def test_users_who_accept_an_interval_help(self):
        points = PrivateQuantile(domain=(0, 99), epsilon=1.0)
        narrow = points.probabilities(np.full(20, 50))
        wide = points.probabilities(np.full(20, 40), np.full(20, 60))
        assert wide[40:61].sum() > narrow[50]


class TestFloats:
    def test_values_outside_the_range_or_missing_have_their_place(self):
        grid = FloatQuantile(lower=-1.0, upper=1.0, resolution=0.5, epsilon=1.0)
        values = np.array([-np.inf, -7.0, -0.3, 0.0, 0.9, 1e300, np.inf, np.nan])
        assert grid.encode(values).tolist() == [0, 0, 1, 2, 4, 4, 4, 2]
        assert grid.encode(np.array([3, -3])).tolist() == [4, 0]

    def test_releases_lie_in_the_range(self):
        grid = FloatQuantile(lower=0.1, upper=0.7, resolution=0.07, epsilon=0.01)
        released = {release_by_hand(grid, np.array([0.5])) for _ in range(100)}
        assert all(0.1 <= value <= 0.7 for value in released)

    def test_the_promise_is_that_of_the_integers(self):
        grid = FloatQuantile(
            lower=0.0, upper=1.0, resolution=0.01, epsilon=0.5, quantile=0.9, relation=ADD_REMOVE
        )
        assert grid.guarantee == grid.integers.guarantee
        assert grid.guarantee.relation is ADD_REMOVE
        assert grid.event == grid.integers.event
        assert grid.integers.domain == (0, 100)
        assert grid.error_bound(0.1) == grid.integers.error_bound(0.1)

    def test_an_audit_with_wild_values_confirms_the_claim(self):
        grid = FloatQuantile(lower=0.0, upper=1.0, resolution=0.5, epsilon=3.0)
        world = SmallWorld(records=(-np.inf, 0.2, 0.9, np.inf, "nan"), n_users=3)

        def law(held):
            values = np.array([np.nan if v == "nan" else v for v in held])
            return grid.integers.probabilities(grid.encode(values))

        assert audit_exactly(law, world, grid.guarantee).holds

    @pytest.mark.parametrize(
        "change",
        [
            {"lower": 1.0},
            {"upper": math.inf},
            {"lower": -1e308, "upper": 1e308},
            {"resolution": 0.0},
            {"resolution": math.nan},
            {"resolution": 2.0},
            {"resolution": 1e-300},
            {"epsilon": -1.0},
        ],
        ids=str,
    )
    def test_bad_grids_are_refused(self, change):
        with pytest.raises(ParameterError):
            FloatQuantile(
                **{"lower": 0.0, "upper": 1.0, "resolution": 0.1, "epsilon": 1.0, **change}
            )

    @pytest.mark.parametrize("values", [[["0.5"]], ["x"], [1j]])
    def test_what_is_no_real_vector_is_refused(self, values):
        grid = FloatQuantile(lower=0.0, upper=1.0, resolution=0.1, epsilon=1.0)
        with pytest.raises(SchemaError):
            release_by_hand(grid, np.array(values))

    @pytest.mark.parametrize("kind", [np.float32, Fraction, int])
    def test_a_range_of_another_type_is_taken_by_value(self, kind):
        """With fractions every call failed inside NumPy."""
        limits = {"lower": kind(-2), "upper": kind(6), "resolution": kind(1)}
        grid = FloatQuantile(epsilon=100.0, **limits)
        assert grid.encode(np.array([-9.0, 0.2, 9.0])).tolist() == [0, 2, 8]
        assert release_by_hand(grid, np.full(99, 3.0)) == 3.0
        assert type(release_by_hand(grid, np.full(99, 3.0))) is float


class TestRefusals:
    @pytest.mark.parametrize(
        "change",
        [
            {"domain": (5, 4)},
            {"domain": (0.0, 4.0)},
            {"domain": [0, 4]},
            {"domain": (0, 2**63)},
            {"domain": (SMALLEST, LARGEST)},
            {"domain": None},
            {"quantile": 0.0},
            {"quantile": 1.0},
            {"quantile": math.nan},
            {"quantile": 1 / 3},
            {"quantile": Fraction(1, 10**7)},
            {"epsilon": 0.0},
            {"relation": "replace"},
        ],
        ids=str,
    )
    def test_bad_parameters_are_refused(self, change):
        with pytest.raises(ParameterError):
            PrivateQuantile(**{"domain": (0, 4), "epsilon": 1.0, **change})

    @pytest.mark.parametrize("values", [[1.5], [True], [[1, 2]], ["a"]])
    def test_values_of_another_type_are_refused(self, values):
        with pytest.raises(SchemaError):
            release_by_hand(PrivateQuantile(domain=(0, 4), epsilon=1.0), np.array(values))

    def test_users_without_one_of_two_limits_are_served(self):
        """Who is absent is private, so an error must not follow from it."""
        there = rows_by_hand(np.array([1, 2]))
        few = rows_by_hand(np.array([1.0, np.nan])).present().map(lambda rows: rows.astype(int))
        for limits in ((there, few), (few, there)):
            mechanism = PrivateQuantile(domain=(0, 4), epsilon=1.0)
            assert mechanism.release_between(*limits) in range(5)

    @pytest.mark.parametrize("values", [np.zeros(0, np.int64), np.array([3])])
    def test_nobody_and_a_single_user_are_served(self, values):
        assert release_by_hand(PrivateQuantile(domain=(0, 4), epsilon=1.0), values) in range(5)

    def test_a_domain_of_one_point_is_served(self):
        assert release_by_hand(PrivateQuantile(domain=(7, 7), epsilon=1.0), np.array([1, 2])) == 7

    def test_unsigned_values_beyond_int64_are_clipped(self):
        mechanism = PrivateQuantile(domain=(0, 9), epsilon=50.0)
        # Misses with probability below 1e-30.
        assert release_by_hand(mechanism, np.full(9, 2**64 - 1, dtype=np.uint64)) == 9

    def test_numpy_integers_may_describe_the_domain(self):
        mechanism = PrivateQuantile(
            domain=(np.int64(SMALLEST + 1), np.int64(LARGEST)), epsilon=np.float64(1.0)
        )
        assert mechanism.error_bound(0.1) > 0
        assert type(release_by_hand(mechanism, np.array([5]))) is int
