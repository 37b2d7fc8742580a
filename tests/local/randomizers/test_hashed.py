"""The report's law is what it says, for every input, bit by bit; broken twins are caught."""

import dataclasses
import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

from goodness import FALSE_ALARM, p_value
from quorate.core.guarantees import Relation, Trust
from quorate.core.noise import SecureNoise, SeededNoise, use_noise
from quorate.exceptions import ParameterError, SchemaError
from quorate.local.randomizers.hashed import COIN_BITS, HashedResponse, best_width, keep_threshold
from reports_of import seeded_reports

SETTINGS = [
    (candidates, width, epsilon)
    for candidates, width in ((2, 1), (4, 1), (3, 1), (4, 2), (5, 1), (8, 2), (4, 3))
    for epsilon in (0.5, 1.0, 3.0)
]
every_setting = pytest.mark.parametrize(("candidates", "width", "epsilon"), SETTINGS)


def law_of_the_code(response, value):
    """Run ``from_words`` on all masks, coins and levels and on both ends of the coin's two cells.

    The code only compares the 32-bit coin with the threshold, so the two ends of a cell stand for
    all of it; that both give the same report is checked.
    """
    low_bits = response._level_place + response.levels.bit_length() - 1
    low = np.arange(2**low_bits, dtype=np.uint64)
    cells = [(0, response.threshold), (response.threshold, 2**COIN_BITS)]
    law = {}
    for start, end in cells:
        reports = []
        for coin in (start, end - 1):
            words = low | np.uint64(coin << (64 - COIN_BITS))
            made = response.from_words(np.full(len(words), value), words)
            columns = zip(made.masks.T.tolist(), made.answers.tolist(), made.levels, strict=True)
            reports.append([(tuple(masks), answer, int(level)) for masks, answer, level in columns])
        assert reports[0] == reports[1]
        share = Fraction(end - start, 2**COIN_BITS * 2**low_bits)
        for report in reports[0]:
            law[report] = law.get(report, 0) + share
    return law


def largest_ratio(response):
    """Return the exact worst ratio over all pairs of inputs, users without a candidate too."""
    inputs = [*range(response.candidates), -1]
    laws = [law_of_the_code(response, value) for value in inputs]
    assert all(sum(law.values()) == 1 for law in laws)
    reports = set().union(*laws)
    return max(
        first.get(report, Fraction(0)) / second[report]
        for first, second in product(laws, laws)
        for report in reports
        if report in second or first.get(report, 0) > 0
    )


def is_private(response):
    """Compare the worst ratio with e^epsilon in 60 digits."""
    ratio = largest_ratio(response)
    with mpmath.workdps(60):
        return mpmath.mpf(ratio.numerator) / ratio.denominator <= mpmath.exp(
            mpmath.mpf(response.epsilon)
        )


@pytest.mark.claim("G7: Theorem 29")
class TestPrivacy:
    @every_setting
    def test_every_pair_of_inputs_keeps_epsilon_exactly(self, candidates, width, epsilon):
        response = HashedResponse(candidates=candidates, epsilon=epsilon, width=width)
        assert is_private(response)
        assert largest_ratio(response) == response.likelihood_ratio
        # and hardly anything is wasted by rounding to 32 bits
        assert math.log(response.likelihood_ratio) > epsilon * (1 - 1e-6)

    @every_setting
    def test_the_stated_law_is_the_law_of_the_code(self, candidates, width, epsilon):
        response = HashedResponse(candidates=candidates, epsilon=epsilon, width=width)
        for value in (*range(candidates), -1, candidates, 2**62):
            stated = {report: mass for report, mass in response.law(value).items() if mass}
            assert stated == law_of_the_code(response, value)

    def test_levels_are_private_as_well(self, monkeypatch):
        monkeypatch.setattr("quorate.local.randomizers.hashed._PREFIX_BITS", 2)
        response = HashedResponse(candidates=16, epsilon=1.0, width=1)
        assert response.levels == 2
        assert response.prefix_bits == (2, 4)
        assert is_private(response)
        for value in (0, 5, 15, -1):
            stated = {report: mass for report, mass in response.law(value).items() if mass}
            assert stated == law_of_the_code(response, value)

    @every_setting
    def test_a_keep_probability_rounded_up_is_caught(self, candidates, width, epsilon):
        class RoundedUp(HashedResponse):
            @property
            def threshold(self):
                return keep_threshold(self.epsilon, self._width) + 1

        assert not is_private(RoundedUp(candidates=candidates, epsilon=epsilon, width=width))

    def test_the_nearest_threshold_is_caught_too(self):
        class Nearest(HashedResponse):
            @property
            def threshold(self):
                grown = math.exp(self.epsilon)
                return round((grown - 1) / (grown + 2**self._width - 1) * 2**COIN_BITS)

        caught = [
            not is_private(Nearest(candidates=4, epsilon=epsilon / 8, width=1))
            for epsilon in range(1, 13)
        ]
        assert any(caught)

    def test_keeping_and_flipping_exchanged_is_caught(self):
        class Swapped(HashedResponse):
            @property
            def threshold(self):
                return 2**COIN_BITS - keep_threshold(self.epsilon, self._width)

        assert not is_private(Swapped(candidates=4, epsilon=0.5, width=1))
        assert not is_private(Swapped(candidates=8, epsilon=1.0, width=2))

    def test_masks_that_depend_on_the_value_are_caught(self):
        class Honest(HashedResponse):
            def from_words(self, values, words):
                made = super().from_words(values, words)
                masks = made.masks | np.asarray(values, dtype=np.uint64)
                return dataclasses.replace(made, masks=masks)

        with pytest.raises(KeyError):
            largest_ratio(Honest(candidates=4, epsilon=1.0, width=1))

    def test_a_user_without_a_candidate_who_stays_silent_would_be_seen(self):
        """Their law must be within e^epsilon of everybody's, so silence is no answer."""
        response = HashedResponse(candidates=4, epsilon=1.0, width=1)
        reports = seeded_reports(response, np.array([-1, 1, 4, 2**62]), SecureNoise())
        assert len(reports) == 4

    def test_the_promise_is_local_and_exact(self):
        promise = HashedResponse(candidates=2**14, epsilon=1.0).guarantee
        assert (promise.epsilon, promise.delta) == (1.0, 0.0)
        assert promise.trust is Trust.LOCAL
        assert promise.relation is Relation.REPLACE
        assert promise.holds
        with use_noise(SeededNoise(0)):
            assert not HashedResponse(candidates=4, epsilon=1.0).guarantee.holds


class TestDraws:
    def test_secure_reports_have_the_law(self):
        response = HashedResponse(candidates=4, epsilon=1.0, width=1)
        reports = response.respond(np.full(50_000, 3))
        cells = reports.masks[0].astype(np.int64) * 2 + reports.answers
        law = response.law(3)
        chances = [float(law[(cell // 2,), cell % 2, 0]) for cell in range(8)]
        counts = np.bincount(cells, minlength=8)
        assert p_value(counts, chances) > FALSE_ALARM
        other = response.law(2)
        chances = [float(other[(cell // 2,), cell % 2, 0]) for cell in range(8)]
        assert p_value(counts, chances) < FALSE_ALARM

    @pytest.mark.parametrize("candidates", [2**14, 2**20, 2**32, 2**40, 2**63])
    @pytest.mark.parametrize("width", [1, 3, 8])
    def test_fields_across_words_are_read_as_one_number(self, candidates, width):
        """Against Python's integers, which have no words."""
        response = HashedResponse(candidates=candidates, epsilon=1.0, width=width)
        words = SeededNoise(4).uniform_words(20 * response.words)
        values = (SeededNoise(5).uniform_words(20) >> np.uint64(1)).astype(np.int64) & (
            candidates - 1
        )
        made = response.from_words(values, words)
        for i, row in enumerate(words.reshape(20, -1)):
            bits = sum(int(word) << (64 * j) for j, word in enumerate(row))
            level = (bits >> (width * (response.bits + 1))) % response.levels
            allowed = response.prefix_masks[level]
            masks = [
                (bits >> (j * response.bits)) % 2**response.bits & allowed for j in range(width)
            ]
            coins = (bits >> (width * response.bits)) % 2**width
            value = int(values[i])
            hashed = sum(((mask & value).bit_count() & 1) << j for j, mask in enumerate(masks))
            kept = bits >> (64 * response.words - COIN_BITS) < response.threshold
            assert made.masks[:, i].tolist() == masks
            assert made.answers[i] == (hashed if kept else coins)
            assert made.levels[i] == level

    def test_a_users_report_does_not_depend_on_the_others(self):
        response = HashedResponse(candidates=2**32, epsilon=1.0)
        words = SeededNoise(1).uniform_words(6 * response.words)
        whole = response.from_words(np.array([5, 2**31, -1, 0, 7, 2**32]), words)
        alone = response.from_words(np.array([2**31]), words[response.words : 2 * response.words])
        assert whole.masks[:, 1].tolist() == alone.masks[:, 0].tolist()
        assert whole.answers[1] == alone.answers[0]

    def test_one_word_is_enough_for_the_everyday_task(self):
        assert HashedResponse(candidates=2**14, epsilon=1.0).words == 1
        assert HashedResponse(candidates=2**32, epsilon=1.0).words == 2


class TestUtility:
    @pytest.mark.parametrize(("epsilon", "limit"), [(0.5, 1.08), (1.0, 1.03), (2.0, 1.03)])
    def test_the_variance_is_near_the_optimum(self, epsilon, limit):
        response = HashedResponse(candidates=2**14, epsilon=epsilon)
        optimum = 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2
        assert 1 <= response.variance(others=1.0) / optimum < limit

    def test_the_width_is_the_best_of_all(self):
        for epsilon in (0.1, 0.5, 1.0, 2.0, 3.0, 5.0):
            found = best_width(epsilon)
            variances = [
                HashedResponse(candidates=4, epsilon=epsilon, width=w).variance(others=1.0)
                for w in range(1, 9)
            ]
            assert variances[found - 1] == min(variances)

    def test_the_influence_is_reached_by_a_message_and_exceeded_by_none(self):
        """All messages, all pairs of candidates: agreements differ by one at most."""
        response = HashedResponse(candidates=4, epsilon=1.0, width=2)
        moved = set()
        for masks, answer, _ in response.law(0):
            agree = [
                answer == sum(((m & v).bit_count() & 1) << i for i, m in enumerate(masks))
                for v in range(4)
            ]
            moved |= {(int(a) - int(b)) / response.gain for a in agree for b in agree}
        assert max(moved) == response.influence


class TestRefusals:
    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, "1", None, True, 701.0])
    def test_an_epsilon_that_is_none_is_refused(self, epsilon):
        with pytest.raises(ParameterError):
            HashedResponse(candidates=4, epsilon=epsilon)

    def test_an_epsilon_too_small_to_say_anything_is_refused(self):
        with pytest.raises(ParameterError, match="epsilon=1e-12"):
            HashedResponse(candidates=4, epsilon=1e-12)

    @pytest.mark.parametrize("candidates", [0, 1, -5, 2.0, 2**256 + 1, None])
    def test_too_few_or_too_many_candidates_are_refused(self, candidates):
        with pytest.raises(ParameterError, match="candidates"):
            HashedResponse(candidates=candidates, epsilon=1.0)

    @pytest.mark.parametrize("width", [0, 9, 1.0, "1", True])
    def test_a_width_out_of_range_is_refused(self, width):
        with pytest.raises(ParameterError, match="width"):
            HashedResponse(candidates=4, epsilon=1.0, width=width)

    @pytest.mark.parametrize(
        "values",
        [np.array([1.5]), np.array([[1]]), np.array([2**63], np.uint64), np.array(["987654"])],
    )
    def test_values_of_another_type_are_refused_without_being_quoted(self, values):
        with pytest.raises(SchemaError, match="int64") as caught:
            HashedResponse(candidates=4, epsilon=1.0).respond(values)
        assert "987654" not in str(caught.value)


@pytest.mark.claim("G7: Lemma 13")
class TestWideCandidates:
    """Candidates of more than 63 bits: the same report, with masks of several words."""

    @pytest.mark.parametrize(("candidates", "width", "epsilon"), [(8, 1, 1.0), (8, 2, 0.5)])
    def test_small_worlds_have_the_law_that_was_enumerated(
        self, candidates, width, epsilon, monkeypatch
    ):
        """All masks, coins and values, as if three bits were more than a word holds."""
        response = HashedResponse(candidates=candidates, epsilon=epsilon, width=width)
        low = np.arange(2**response._level_place, dtype=np.uint64)
        for value in (*range(candidates), -1, candidates):
            for coin in (0, response.threshold - 1, response.threshold, 2**COIN_BITS - 1):
                words = low | np.uint64(coin << COIN_BITS)
                narrow = response.from_words(np.full(len(low), value), words)
                with monkeypatch.context() as patch:
                    patch.setattr("quorate.local.randomizers.hashed.WORD_BITS", 2)
                    assert response.wide
                    keys = np.full(len(low), value).astype(object)
                    wide = response.from_words(keys, words)
                np.testing.assert_array_equal(wide.masks[:, :, 0], narrow.masks)
                np.testing.assert_array_equal(wide.answers, narrow.answers)

    @staticmethod
    def worst_ratio(response, values, rng):
        """Return the largest ratio of two values' chances of an answer, given masks and level."""
        coins, worst = 2**response.width, Fraction(0)
        place, last = response.width * response.bits, response.words - 1
        for _ in range(20):
            base = rng.integers(0, 2**64, response.words, dtype=np.uint64)
            tables = []
            for coin in range(coins):
                for kept in (0, response.threshold):
                    number = sum(int(word) << (64 * i) for i, word in enumerate(base))
                    number &= ~((coins - 1) << place) & ~((2**COIN_BITS - 1) << (64 * last + 32))
                    number |= coin << place | kept << (64 * last + 32)
                    tables.append([number >> (64 * i) & (2**64 - 1) for i in range(last + 1)])
            words = np.array(tables, dtype=np.uint64)
            shares = [response.keep, 1 - response.keep] * coins
            laws = []
            for value in values:
                keys = np.array([value] * len(words), dtype=object)
                answers = response.from_words(keys, words.ravel()).answers
                law = [Fraction(0)] * coins
                for answer, share in zip(answers.tolist(), shares, strict=True):
                    law[answer] += share / coins
                laws.append(law)
            pairs = product(laws, laws)
            worst = max(worst, *(a / b for x, y in pairs for a, b in zip(x, y, strict=True)))
        return worst

    @pytest.mark.parametrize("bits", [64, 65, 128, 200, 256])
    def test_two_candidates_differ_by_the_ratio_and_no_more(self, bits):
        """Given masks and level the coins are enumerated, so this is the exact law."""
        rng = np.random.default_rng(bits)
        response = HashedResponse(candidates=2**bits, epsilon=1.0)
        values = [0, 1, 2**bits - 1, 2 ** (bits - 1) + 12345, -1, 2**bits]
        worst = self.worst_ratio(response, values, rng)
        assert worst == response.likelihood_ratio <= Fraction(math.exp(1.0))

    def test_a_report_that_keeps_too_often_is_caught(self):
        response = HashedResponse(candidates=2**128, epsilon=1.0)
        object.__setattr__(response, "threshold", int(1.2 * response.threshold))
        worst = self.worst_ratio(response, [0, 2**128 - 1], np.random.default_rng(0))
        assert worst > Fraction(math.exp(1.0))

    def test_hashes_are_inner_products_of_all_bits(self):
        rng = np.random.default_rng(3)
        response = HashedResponse(candidates=2**256, epsilon=40.0, width=8)
        values = [int.from_bytes(rng.bytes(32), "little") for _ in range(50)]
        reports = response.from_words(
            np.array(values, dtype=object),
            rng.integers(0, 2**64, 50 * response.words, dtype=np.uint64),
        )
        found = 0
        for user, value in enumerate(values):
            rows = reports.masks[:, user]
            masks = [sum(int(word) << (64 * i) for i, word in enumerate(row)) for row in rows]
            assert all(mask & ~response.prefix_masks[reports.levels[user]] == 0 for mask in masks)
            hashed = sum(((mask & value).bit_count() & 1) << i for i, mask in enumerate(masks))
            found += reports.answers[user] == hashed
        assert found == 50

    def test_odd_values_are_nobodys_candidates(self):
        response = HashedResponse(candidates=2**100, epsilon=1.0)
        odd = np.array([None, math.nan, 0.5, "7", -(2**200), 2**200, (1, 2)], dtype=object)
        words = np.random.default_rng(0).integers(0, 2**64, 7 * response.words, dtype=np.uint64)
        nobody = response.from_words(np.full(7, -1).astype(object), words)
        np.testing.assert_array_equal(response.from_words(odd, words).answers, nobody.answers)
