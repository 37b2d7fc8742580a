"""The blanket bound is never below the truth, which tiny shuffles tell, nor far above it."""

import itertools
import math
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from scipy.stats import binom

from quorate.exceptions import ParameterError
from quorate.local.randomizers.hashed import HashedResponse
from quorate.local.shuffling import blanket
from quorate.local.shuffling.blanket import amplified_epsilon, blanket_delta


@cache
def multisets(kinds, users):
    """Return for every sequence of reports the number of its multiset."""
    places = np.stack(np.unravel_index(np.arange(kinds**users), [kinds] * users))
    places.sort(axis=0)
    key = np.zeros(kinds**users, dtype=np.int64)
    for row in places:
        key = key * kinds + row
    return np.unique(key, return_inverse=True)[1]


def shuffled_law(response, values):
    """Return the exact law of the multiset of reports of a few users."""
    laws = [response.law(value) for value in values]
    masses = np.ones(1)
    for law in laws:
        masses = np.multiply.outer(masses, [float(law[report]) for report in laws[0]]).ravel()
    return np.bincount(multisets(len(laws[0]), len(values)), weights=masses)


def exact_delta(response, users, epsilon):
    """Return the largest hockey stick over all neighbours of all small crowds."""
    worst = 0.0
    everybody = [*range(response.candidates), -1]  # -1 names no candidate
    for others in combinations_with_replacement(everybody, users - 1):
        laws = [shuffled_law(response, (value, *others)) for value in everybody]
        for first, second in product(laws, laws):
            excess = np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
            worst = max(worst, float(excess))
    return worst


WORLDS = [(2, 1, 3), (4, 1, 3), (3, 1, 4), (2, 2, 4), (2, 1, 6), (4, 2, 2)]
GRID = [(1.0, 0.25), (1.0, 0.6), (2.0, 0.5), (2.0, 1.0), (3.0, 0.25)]


def bound_and_truth(world, local, epsilon, *, pretend=0):
    candidates, width, users = world
    response = HashedResponse(candidates=candidates, epsilon=local, width=width)
    bound = blanket_delta(epsilon, users=users + pretend, width=width, keep=float(response.keep))
    return bound, exact_delta(response, users, epsilon)


class TestTruth:
    @pytest.mark.parametrize("world", WORLDS)
    def test_no_tiny_shuffle_is_above_the_bound(self, world):
        for local, epsilon in GRID:
            bound, truth = bound_and_truth(world, local, epsilon)
            assert truth <= bound + 1e-12

    def test_the_bound_is_reached_within_a_few_percent_somewhere(self):
        ratios = [truth / bound for bound, truth in (bound_and_truth((2, 1, 3), *g) for g in GRID)]
        assert max(ratios) > 0.9

    def test_counting_users_who_are_not_there_is_caught(self):
        caught = [
            truth > bound + 1e-12
            for bound, truth in (bound_and_truth((2, 1, 3), *g, pretend=3) for g in GRID)
        ]
        assert any(caught)

    def test_levels_are_bounded_too(self, monkeypatch):
        monkeypatch.setattr("quorate.local.randomizers.hashed._PREFIX_BITS", 1)
        response = HashedResponse(candidates=4, epsilon=1.5, width=1)
        assert response.levels == 2
        truth = exact_delta(response, 3, 0.5)
        bound = blanket_delta(0.5, users=3, width=1, keep=float(response.keep), levels=2)
        assert 0 < truth <= bound


def by_definition(epsilon, users, width, keep):
    """Sum the formula of the module over everything, without windows or blocks."""
    answers, factor = 2**width, math.exp(epsilon)
    total = 0.0
    for size in range(users):
        m = size + 1
        both = np.arange(m + 1)[:, None, None]
        one = np.arange(m + 1)[None, :, None]
        first = np.arange(m + 1)[None, None, :]
        mass = (
            binom.pmf(both, m, 1 / answers**2)
            * np.where(
                one <= m - both, binom.pmf(one, np.maximum(m - both, 0), 2 / (answers + 1)), 0
            )
            * binom.pmf(first, one, 0.5)
        )
        value = (1 - keep) * m * (1 - factor) + keep * answers * (
            both + first - factor * (both + one - first)
        )
        inner = np.sum(mass * np.maximum(value, 0.0)) / m
        total += binom.pmf(size, users - 1, 1 - keep) * inner
    return total


class TestFormula:
    @pytest.mark.parametrize("width", [1, 2, 4, 5])
    @pytest.mark.parametrize("keep", [0.1, 0.4])
    def test_windows_and_blocks_only_raise_it_and_only_a_little(self, width, keep):
        for epsilon in (0.5, 1.0):
            truth = by_definition(epsilon, 30, width, keep)
            bound = blanket_delta(epsilon, users=30, width=width, keep=keep)
            assert truth <= bound <= truth * 1.15 + 1e-13

    def test_more_users_larger_epsilon_and_smaller_keep_cost_less(self):
        def price(epsilon=1.0, users=60, keep=0.3):
            return blanket_delta(epsilon, users=users, width=4, keep=keep)

        assert price(users=90) < price() < price(users=40)
        assert price(epsilon=1.2) < price() < price(epsilon=0.8)
        assert price(keep=0.25) < price() < price(keep=0.35)

    def test_the_tails_of_many_throws_are_those_of_the_table(self):
        """Where both are at hand; in the far tails, where two large numbers are subtracted."""
        sums = np.arange(200, 512)
        first = sums[:, np.newaxis] * np.array([[0.5, 0.6, 0.7, 0.75]])
        first = np.concatenate([first.astype(np.int64) + 1, sums[:, np.newaxis] + 1], axis=1)
        for table, large in zip(
            blanket._table_tails(sums, first), blanket._large_tails(sums, first), strict=True
        ):
            np.testing.assert_allclose(large, table, rtol=1e-10, atol=1e-290)

    def test_windows_of_many_throws_only_raise_it_too(self, monkeypatch):
        known = blanket_delta(0.3, users=1500, width=1, keep=0.2)
        monkeypatch.setattr(blanket, "_TABLE", 64)
        assert blanket_delta(0.3, users=1500, width=1, keep=0.2) == pytest.approx(known, rel=1e-9)

    @pytest.mark.parametrize("same", [0.0, 0.5])
    def test_one_more_uniform_report_never_costs_more(self, same):
        """The step that prices a block of sizes by its smallest one."""
        problem = blanket._Reduced(math.e, 8, 0.4, same)
        values = [problem.value(size) for size in range(1, 60)]
        assert all(later <= now * (1 + 1e-9) for now, later in pairwise(values))

    def test_the_ends(self):
        assert blanket_delta(1.0, users=10, width=3, keep=0.0) == 0.0
        assert blanket_delta(1.0, users=10, width=3, keep=1.0) == 1.0
        response = HashedResponse(candidates=2, epsilon=2.0, width=1)
        alone = blanket_delta(1.0, users=1, width=1, keep=float(response.keep))
        assert alone == pytest.approx(exact_delta(response, 1, 1.0), rel=1e-5)

    def test_more_users_than_are_counted_cost_no_less(self, monkeypatch):
        monkeypatch.setattr(blanket, "MAX_USERS", 100)
        few, many = (blanket_delta(1.0, users=n, width=5, keep=0.3) for n in (100, 10**9))
        assert few == many


class TestAmplification:
    @pytest.mark.parametrize(("users", "width", "known"), [(100, 5, 2.64), (400, 5, 3.33)])
    def test_it_agrees_with_figures_computed_elsewhere(self, users, width, known):
        """By an independent program, to the two digits it printed."""
        assert amplified_epsilon(1.0, 1e-6, users=users, width=width) == pytest.approx(
            known, abs=0.011
        )

    def test_the_result_fits_and_one_step_more_does_not(self):
        found = amplified_epsilon(1.0, 1e-6, users=60, width=4)
        for epsilon, fits in ((found, True), (found + 2e-4, False)):
            keep = float(HashedResponse(candidates=4, epsilon=epsilon, width=4).keep)
            assert (blanket_delta(1.0, users=60, width=4, keep=keep) <= 1e-6) == fits

    def test_one_user_has_nowhere_to_hide(self):
        assert amplified_epsilon(1.0, 1e-6, users=1, width=1) == pytest.approx(1.0, abs=2e-4)

    @pytest.mark.parametrize(
        "wrong",
        [{"users": 0}, {"width": 9}, {"epsilon": 0.0}, {"delta": 0.0}, {"delta": 1.0}],
    )
    def test_parameters_out_of_range_are_refused(self, wrong):
        good = {"epsilon": 1.0, "delta": 1e-6, "users": 10, "width": 2} | wrong
        with pytest.raises(ParameterError):
            amplified_epsilon(good.pop("epsilon"), good.pop("delta"), **good)


class TestUsersWithoutACandidate:
    """The paragraph of the module about them, by all functions from four tags to two answers."""

    TAGS, WIDTH = 4, 2

    def functions(self):
        return list(itertools.product(range(self.WIDTH), repeat=self.TAGS))

    def share(self, function, answer):
        return Fraction(sum(value == answer for value in function), self.TAGS)

    def test_balanced_functions_answer_as_coins_do_and_meet_a_hash_with_one_over_l(self):
        balanced = [
            f
            for f in self.functions()
            if all(self.share(f, answer) == Fraction(1, self.WIDTH) for answer in range(2))
        ]
        assert len(balanced) == 6
        for tag in range(self.TAGS):  # averaged over them a report is uniform, whatever the tag
            assert Fraction(sum(f[tag] for f in balanced), len(balanced)) == Fraction(1, 2)
        for f, hashed in itertools.product(balanced, range(self.WIDTH)):
            assert self.share(f, hashed) == Fraction(1, self.WIDTH)

    def test_the_module_speaks_of_balanced_functions(self):
        """It used to speak of all functions, for which the next test shows the opposite."""
        paragraph = next(p for p in blanket.__doc__.split("\n\n") if "without a candidate" in p)
        assert "*balanced* function" in paragraph

    def test_it_is_not_so_for_all_functions(self):
        """What the paragraph used to say: a constant one meets a hash always or never."""
        met = {self.share(f, 1) for f in self.functions()}
        assert {Fraction(0), Fraction(1)} <= met
