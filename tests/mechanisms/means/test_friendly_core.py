"""The friendly core: exact distances, the test, the mean, and both together on small worlds."""

import copy
import dataclasses
import math
import pickle
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import Drawing
from quorate.accounting.account import Account
from quorate.accounting.compose import price
from quorate.auditing import Cells, RecordedNoise, SmallWorld, audit_exactly, enumerate_runs, replay
from quorate.auditing.laws import gaussian_interval
from quorate.core.sealed import seal_rows
from quorate.exceptions import (
    NumericalFailure,
    ParameterError,
    RelationMismatchError,
    SealedError,
)
from quorate.guarantees import Composed, Guarantee, Numerics, Relation
from quorate.mechanisms.means.friendly_core import (
    CoreMean,
    CoreTest,
    Friends,
    IntegerUsers,
    friends_within,
    passing_threshold,
    unfriendly_distance,
)
from quorate.mechanisms.sums import NoisySearch
from quorate.noise import SeededNoise


def integer_users(points, step=1.0):
    return IntegerUsers(np.array(points, dtype=float).reshape(len(points), -1), step)


def friends_of(points, radius):
    return friends_within(integer_users(points), (radius,))[0]


@st.composite
def neighbours(draw):
    """Two data sets of clustered and far users that differ in one of them."""
    n = draw(st.integers(5, 12))
    point = st.tuples(st.integers(-3, 3), st.integers(-3, 3)) | st.tuples(
        st.sampled_from([-1000, 1000]), st.integers(-3, 3)
    )
    first = draw(st.lists(point, min_size=n, max_size=n))
    # Most users near the origin, or nothing would ever be friendly.
    for i in range(draw(st.integers(0, n))):
        first[i] = draw(st.tuples(st.integers(0, 1), st.integers(0, 1)))
    second = list(first)
    second[draw(st.integers(0, n - 1))] = draw(point)
    return first, second


class TestExactDistances:
    def test_friends_are_counted_as_by_brute_force(self):
        rng = np.random.default_rng(0)
        steps = rng.integers(-(2**21), 2**21, size=(150, 7)).astype(float)
        users, radii = IntegerUsers(steps, 0.1), (1e5, 2.7e5, 1e6)
        counts = friends_within(users, radii)
        whole = steps.astype(object)
        squares = ((whole[:, None] - whole[None]) ** 2).sum(axis=2)
        for row, radius in zip(counts, radii, strict=True):
            limit = (2**60 * int(radius * 10) ** 2) // 2**60
            assert np.array_equal(row, (squares <= limit).sum(axis=1))

    def test_the_largest_coordinates_allowed_are_still_exact(self):
        dimension = 3
        reach = math.floor(IntegerUsers.largest_radius(step=1.0, dimension=dimension))
        users = IntegerUsers.rounded(
            np.array([[reach] * 3, [-reach] * 3, [reach, reach, reach - 1.0]]),
            radius=float(reach),
            step=1.0,
        )
        farthest = 2 * reach * math.sqrt(3)
        counts = friends_within(users, (farthest * (1 - 1e-15), farthest * (1 + 1e-15), 1.0))
        assert counts[1].tolist() == [3, 3, 3]
        assert counts[2].tolist() == [2, 1, 2]

    def test_a_grid_too_fine_for_exact_sums_is_refused(self):
        with pytest.raises(ParameterError, match="Expected a step"):
            IntegerUsers.rounded(np.zeros((2, 4)), radius=1e9, step=1e-9)

    def test_rounding_cuts_to_the_radius(self):
        users = IntegerUsers.rounded(np.array([[1e300, -7.0]]), radius=5.0, step=0.5)
        assert users.steps.tolist() == [[10.0, -10.0]]


class TestSensitivity:
    @settings(max_examples=300)
    @given(pair=neighbours(), radius=st.floats(0.5, 5.0), few=st.integers(0, 4))
    def test_one_user_moves_the_distance_by_at_most_one(self, pair, radius, few):
        top = len(pair[0]) // 2 + 2
        first, second = (
            unfriendly_distance(friends_of(points, radius), top=top, few=few) for points in pair
        )
        assert abs(first - second) <= 1

    @settings(max_examples=400)
    @given(
        pair=neighbours(), radius=st.floats(0.5, 5.0), few=st.integers(0, 4), a=st.integers(1, 3)
    )
    def test_one_user_moves_the_mean_by_at_most_the_sensitivity(self, pair, radius, few, a):
        n = len(pair[0])
        top = n // 2 + 1 + a
        if top > n or 2 * few >= n:
            return
        mechanism = CoreMean(
            n_users=n,
            dimension=2,
            radius=radius,
            step=1.0,
            top=top,
            few=few,
            noise_multiplier=1.0,
        )
        friends = [friends_of(points, radius) for points in pair]
        if max(unfriendly_distance(f, top=top, few=few) for f in friends) < 0:
            return
        means = [
            mechanism.rounded_mean(integer_users(points), f)
            for points, f in zip(pair, friends, strict=True)
        ]
        assert np.linalg.norm(means[0] - means[1]) <= mechanism.sensitivity

    def test_the_distance_moves_by_one_where_the_test_flips(self):
        gathered = [0] * 9
        flipped = [*[0] * 8, 50]
        distances = [
            unfriendly_distance(friends_of(points, 1.0), top=8, few=0)
            for points in (gathered, flipped)
        ]
        assert distances == [0, -1]

    def test_the_definition_agrees_with_brute_force(self):
        rng = np.random.default_rng(1)
        found = set()
        for lowest in (1, 8, 10):
            for _ in range(300):
                friends = rng.integers(lowest, 13, size=12)
                top, few = int(rng.integers(7, 12)), int(rng.integers(0, 6))
                valid = [t for t in range(13) if np.sum(friends < top + 1 + t) + t <= few]
                distance = unfriendly_distance(friends, top=top, few=few)
                assert distance == max(valid, default=-1)
                found.add(distance)
        # Crowds of all kinds: hardly any of the first one is friendly.
        assert found == {-1, 0, 1, 2, 3}

    @pytest.mark.parametrize("dimension", [1, 7])
    @pytest.mark.parametrize(("n", "top", "few"), [(9, 7, 0), (9, 7, 4), (1000, 800, 150)])
    def test_the_sensitivity_is_that_of_the_proof(self, n, top, few, dimension):
        mean = CoreMean(
            n_users=n,
            dimension=dimension,
            radius=3.0,
            step=0.5,
            top=top,
            few=few,
            noise_multiplier=1.0,
        )
        # 2 r (1 + few / a) / (n - few) in units of step / 256, and a root of d for rounding.
        moved = 2 * 3.0 * (1 + few / (top - (n // 2 + 1))) / (n - few) * 256 / 0.5
        assert mean.sensitivity == pytest.approx(moved + math.sqrt(dimension), rel=1e-9)
        assert mean.sensitivity >= moved + math.sqrt(dimension)

    def test_half_of_the_users_are_no_core(self):
        """Two users of positive weight must share a friend, or the mean may be anywhere."""
        points = [0] * 5 + [100] * 5
        mean = dataclasses.replace(MEAN, n_users=10, top=8)
        assert mean.rounded_mean(integer_users(points), friends_of(points, 1.0)).tolist() == [0]

    def test_a_twin_without_the_slope_breaks_the_bound(self):
        # Weights of 0 or 1 at a threshold: all users cross it at once.
        first, second = [0, 0, 0, 2, 2], [0, 0, 0, 2, 1]
        friends = [friends_of(points, 1.0) for points in (first, second)]
        hard = [
            np.average(p, weights=(f >= 3)) for p, f in zip((first, second), friends, strict=True)
        ]
        assert abs(hard[0] - hard[1]) > 0.2


TEST = CoreTest(top=4, few=2, noise_multiplier=1.0, delta=0.02)
MEAN = CoreMean(n_users=5, dimension=1, radius=1.0, step=1.0, top=4, few=2, noise_multiplier=1.0)
WORLD = SmallWorld(records=(0, 1, 9), n_users=5)
DELTA = 0.05


def core_law(test=TEST, mean=MEAN, *, skip_test=False):
    """The law of test and mean together, by running both on every outcome of the noise."""

    @cache
    def law(records):
        users = integer_users(records)
        friends = friends_of(records, mean.radius)

        def run(noise):
            if not skip_test and not Drawing(test, noise).release_values(friends):
                return None
            return Drawing(mean, noise).release_values(users, friends)

        return enumerate_runs(run, cells=Cells(width=0.5, reach=3.5))

    # Neither test nor mean knows the users apart.
    return lambda records: law(tuple(sorted(records)))


class TestExactAudit:
    event = Composed((TEST.event, MEAN.event))
    claim = Guarantee(epsilon=price(event, delta=DELTA), delta=DELTA, numerics=Numerics.VOID)

    def test_the_world_contains_neighbours_between_which_the_test_flips(self):
        distances = [
            unfriendly_distance(friends_of(points, 1.0), top=4, few=2)
            for points in ((0, 0, 1, 0, 1), (0, 0, 1, 0, 9))
        ]
        assert distances == [0, -1]

    def test_test_and_mean_together_keep_their_claim(self):
        audit = audit_exactly(core_law(), WORLD, self.claim)
        assert audit.holds, str(audit)

    def test_a_twin_that_averages_without_a_test_is_caught(self):
        assert not audit_exactly(core_law(skip_test=True), WORLD, self.claim, thorough=False).holds

    def test_a_twin_whose_test_passes_too_easily_is_caught(self):
        class Easy(CoreTest):
            threshold = -3

        easy = Easy(**{f.name: getattr(TEST, f.name) for f in dataclasses.fields(TEST)})
        assert not audit_exactly(core_law(easy), WORLD, self.claim, thorough=False).holds

    def test_a_twin_with_little_noise_on_the_mean_is_caught(self):
        loud = core_law(
            dataclasses.replace(TEST, delta=0.4), dataclasses.replace(MEAN, noise_multiplier=0.1)
        )
        assert not audit_exactly(loud, WORLD, self.claim, thorough=False).holds

    @pytest.mark.parametrize("sigma", [2.3, 10.0, 55.0])
    @pytest.mark.parametrize("delta", [0.05, 1e-3, 1e-7])
    def test_the_test_passes_wrongly_with_probability_at_most_delta(self, sigma, delta):
        threshold = passing_threshold(sigma, delta)
        assert gaussian_interval(threshold + 1, None, sigma=sigma) <= delta
        # Not loose: a threshold lower by a quarter of sigma plus two would pass too often.
        lower = math.floor(threshold - 0.25 * sigma - 2)
        assert gaussian_interval(lower + 1, None, sigma=sigma) > delta


class TestNoise:
    def test_a_test_pays_for_passing_wrongly(self):
        account = Account.open(epsilon=9.0, delta=0.1, reserve=0.03, noise=SeededNoise(0))
        TEST.release_values(np.full(5, 5), account=account)
        # A test of 0.02 is paid; another one does not fit into what was kept for failures.
        with pytest.raises(NumericalFailure):
            TEST.release_values(np.full(5, 5), account=account)

    def test_both_ask_for_the_noise_that_is_priced(self):
        noise = RecordedNoise(0)
        friends = np.full(1000, 1000)
        Drawing(dataclasses.replace(TEST, top=700, few=100), noise).release_values(friends)
        mean = Drawing(dataclasses.replace(MEAN, n_users=1000, top=700, few=100), noise)
        mean.release_values(integer_users([0] * 1000), friends)
        test_sigma, mean_sigma = (draw.parameters["scale"] for draw in noise.log)
        assert test_sigma**2 >= TEST.noise_multiplier**2 + 4 - 1e-12
        assert mean_sigma**2 >= (mean.noise_multiplier * mean.sensitivity) ** 2 + 4 - 1e-6


class TestRounding:
    @given(multiplier=st.floats(0.1, 1e6))
    def test_noise_is_never_below_what_is_priced(self, multiplier):
        test = CoreTest(top=700, few=150, noise_multiplier=multiplier, delta=1e-7)
        assert Fraction(test.sigma) ** 2 >= Fraction(multiplier) ** 2 + 4
        search = NoisySearch(thresholds=[1.0, 2.0], target=5, noise_multiplier=multiplier)
        assert Fraction(search.sigma) ** 2 >= (16 * Fraction(multiplier)) ** 2 + 4

    def test_users_without_records_stand_at_the_centre(self):
        vectors = np.array([[np.nan, np.nan], [0.5, -0.25]])
        users = IntegerUsers.rounded(vectors, radius=1.0, step=0.25)
        assert users.steps.tolist() == [[0.0, 0.0], [2.0, -1.0]]


class TestReplay:
    def test_neighbours_with_the_same_answers_look_the_same(self):
        gathered, flipped = (0, 0, 1, 0, 1), (0, 0, 1, 0, 9)

        def run(points):
            friends = friends_of(points, 1.0)
            passed = CoreTest(top=4, few=2, noise_multiplier=1.0, delta=0.02).release_values(
                friends
            )
            mean = CoreMean(
                n_users=5, dimension=1, radius=1.0, step=1.0, top=4, few=2, noise_multiplier=1.0
            )
            return mean.release_values(integer_users(points), friends) if passed else None

        for seed in range(20):
            report = replay(run, gathered, flipped, seed=seed)
            assert report.same, str(report)


class TestUtility:
    def test_a_gathered_crowd_passes_and_a_scattered_one_does_not(self):
        rng = np.random.default_rng(2)
        crowd = IntegerUsers(np.rint(rng.normal(size=(600, 30)) * 20), 1.0)
        scattered = IntegerUsers(np.rint(rng.uniform(-(10**5), 10**5, size=(600, 30))), 1.0)
        test = CoreTest(top=400, few=100, noise_multiplier=8.0, delta=1e-7)
        for seed in range(20):
            noisy = Drawing(test, SeededNoise(seed))
            assert noisy.release_values(friends_within(crowd, (250.0,))[0])
            # Passing wrongly 20 times has probability below 2e-6.
            assert not noisy.release_values(friends_within(scattered, (250.0,))[0])

    def test_the_distance_needed_is_enough_and_not_much_more(self):
        test = CoreTest(top=400, few=100, noise_multiplier=8.0, delta=1e-7)
        needed, sigma = test.needed(0.01), test.sigma
        assert gaussian_interval(test.threshold - needed, None, sigma=sigma) >= 0.99
        assert gaussian_interval(test.threshold - (needed - 3), None, sigma=sigma) < 0.99

    def test_the_mean_is_that_of_the_core(self):
        points = [[4.0]] * 80 + [[1e6]] * 5
        users = integer_users(points, step=0.5)
        mean = Drawing(
            CoreMean(
                n_users=85, dimension=1, radius=1.0, step=0.5, top=60, few=20, noise_multiplier=0.5
            ),
            SeededNoise(0),
        )
        released = mean.release_values(users, friends_within(users, (1.0,))[0])
        assert abs(released[0] - 2.0) < 6 * mean.standard_error < 1.0


class TestFriends:
    """What people answer: nobody reads it, and a mean comes after a passed test only."""

    test = CoreTest(top=700, few=150, noise_multiplier=2.0, delta=1e-3)
    mean = CoreMean(
        n_users=1000,
        dimension=2,
        radius=1.0,
        step=0.25,
        top=700,
        few=150,
        noise_multiplier=1.0,
    )

    @staticmethod
    def within(rows, radii=(1.0,), **options):
        return Friends.within(radii, seal_rows(rows, Relation.REPLACE), reach=9.0, step=0.25)

    def test_they_answer_as_rows_of_ones_own(self):
        rows = np.random.default_rng(0).normal(3.0, 0.1, size=(1000, 2))
        (friends,) = self.within(rows)
        users = IntegerUsers.rounded(rows, radius=9.0, step=0.25)
        plain = friends_within(users, (1.0,))[0]
        mean, test = Drawing(self.mean, SeededNoise(3)), Drawing(self.test, SeededNoise(3))
        assert test.release(friends)
        expected = mean.release_values(users, plain)
        assert np.array_equal(Drawing(self.mean, SeededNoise(3)).release(friends), expected)

    def test_a_mean_without_a_passed_test_is_refused(self):
        near, far = np.zeros((1000, 2)), np.random.default_rng(0).uniform(-9, 9, (1000, 2))
        (friends,), (apart,) = self.within(near), self.within(far)
        with pytest.raises(SealedError, match="after a test"):
            self.mean.release(friends)
        assert self.test.release(friends)
        assert not self.test.release(apart)
        for core in (dataclasses.replace(self.mean, few=160), self.mean):
            with pytest.raises(SealedError, match="after a test"):
                core.release(apart if core is self.mean else friends)

    def test_a_test_at_one_radius_says_nothing_about_another(self):
        first, second = self.within(np.zeros((1000, 2)), (1.0, 2.0))
        assert self.test.release(first)
        with pytest.raises(SealedError):
            dataclasses.replace(self.mean, radius=2.0).release(second)

    def test_nobody_reads_them(self):
        (friends,) = self.within(np.zeros((1000, 2)))
        for read in (len, bool, list, np.asarray, pickle.dumps, copy.copy):
            with pytest.raises(SealedError):
                read(friends)

    def test_other_neighbours_and_pairs_are_refused(self):
        rows = np.zeros((10, 2))
        with pytest.raises(RelationMismatchError):
            Friends.within((1.0,), seal_rows(rows, Relation.ADD_REMOVE), reach=9.0, step=0.25)
        paired = seal_rows(rows, Relation.REPLACE, paired=True)
        with pytest.raises(SealedError):
            Friends.within((1.0,), paired, reach=9.0, step=0.25)


class TestRefusal:
    @pytest.mark.parametrize(
        "change",
        [{"top": 3}, {"top": 6}, {"few": 3}, {"few": -1}, {"n_users": 2**18 + 1}, {"radius": 0.0}],
    )
    def test_parameters_outside_the_proof_are_refused(self, change):
        with pytest.raises(ParameterError):
            dataclasses.replace(MEAN, **change)

    @pytest.mark.parametrize(
        "change", [{"delta": 0.0}, {"noise_multiplier": math.nan}, {"few": -1}]
    )
    def test_a_test_needs_sound_parameters(self, change):
        with pytest.raises(ParameterError):
            dataclasses.replace(TEST, **change)

    def test_an_empty_core_is_no_error(self):
        users = integer_users([0, 10, 20, 30, 40])
        friends = friends_within(users, (1.0,))[0]
        assert MEAN.rounded_mean(users, friends).tolist() == [0]

    def test_the_promise_is_for_replacement_only(self):
        assert TEST.relation is MEAN.relation is Relation.REPLACE
