"""Words become integers of the stated law: each chance is found to the last bit of a word."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from goodness import FALSE_ALARM, counts_in, law_in, p_value
from quorate.core.noise import SecureNoise, SeededNoise, exact_decisions, sources
from quorate.core.noise.exact_decisions import LARGEST_SCALE
from quorate.core.noise.sources import exact_integers, exact_rows

pytestmark = pytest.mark.entropy

LAWS = ["discrete_gaussian", "discrete_laplace", "geometric"]
WORDS = 2**64
CASES = [
    (law, scale, k, bits)
    for law in LAWS
    for scale in (1.7, 3.1e5, 2.0**47 * 1.3)
    for k, bits in ((0, 1), (1, 12345), (3, 77), (5, 5))
]


def exponent(law, scale, magnitude):
    ratio = Fraction(magnitude) / Fraction(scale)
    return ratio * ratio / 2 if law == "discrete_gaussian" else ratio


def mass(law, scale, magnitude, digits=200):
    """Return exp(-e) to 200 digits, from another library."""
    import mpmath

    with mpmath.workdps(digits):
        e = exponent(law, scale, magnitude)
        return mpmath.exp(-mpmath.mpf(e.numerator) / e.denominator)


def no_more_words(count):
    raise AssertionError("nothing more was expected to be drawn")


def asked(law, scale, k, bits, marks, words=no_more_words, *, sign=0):
    """Return which of these marks keep the magnitude of ``k`` zeros and these ``bits``."""
    coins = np.full(len(marks), (sign << 63) | (1 << k), dtype=np.uint64)
    low = np.full(len(marks), bits, dtype=np.uint64)
    kept = [
        sources._kept(law, scale, np.array([coins[:1], low[:1], [mark]], np.uint64), words)
        for mark in marks
    ]
    return [len(found) == 1 for found in kept]


def threshold(law, scale, k, bits):
    """Return how many first words are kept, a byte of that number at a time; +-1 at the border."""
    words = SeededNoise(3).uniform_words
    coins, low = np.full(256, 1 << k, dtype=np.uint64), np.full(256, bits, dtype=np.uint64)
    found = 0
    for place in range(56, -1, -8):
        marks = np.array([found + (digit << place) for digit in range(256)], dtype=np.uint64)
        # What is kept lies below the border, so counting finds it.
        kept = len(sources._kept(law, scale, np.array([coins, low, marks]), words))
        found += max(0, kept - 1) << place
    return found + 1


def largest_error(law, scale, most):
    """Return how far chances are from 2^k times the mass, relative to that of 0; in words."""
    import mpmath

    width = sources._bits_of(scale)
    first = threshold(law, scale, 0, 0)
    errors = []
    with mpmath.workdps(60):
        for k in range(most):
            for bits in range(2**width):
                wanted = first * 2**k * mass(law, scale, (k << width) + bits, 60)
                errors.append(float(abs(threshold(law, scale, k, bits) - wanted)))
    return max(errors)


class TestLaw:
    """A magnitude is proposed with probability 2^-(k+1+b), so its chance must be 2^k its mass."""

    @pytest.mark.parametrize("law", LAWS)
    @pytest.mark.parametrize("scale", [0.3, 1.0, 1.4142135, 2.5, 4.0])
    def test_every_magnitude_has_its_mass(self, law, scale):
        # Two borders are found up to one word each, and 2^k times a mass is at most 1.22.
        assert largest_error(law, scale, 4) < 3

    @pytest.mark.parametrize("twin", ["factor", "exponent", "rough", "coins"])
    def test_broken_twins_are_caught(self, monkeypatch, twin):
        if twin == "factor":  # a chance above one cannot be kept
            monkeypatch.setattr(exact_decisions, "GAUSSIAN_FACTOR", Fraction(1))
        elif twin == "exponent":
            right = sources._chance
            monkeypatch.setattr(
                sources,
                "_chance",
                lambda law, scale, zeros, x: right(law, scale * (1 + 1e-6), zeros, x),
            )
        elif twin == "rough":
            monkeypatch.setattr(sources, "_ROUGHLY", 2.0**-24)
        else:
            monkeypatch.setattr(sources, "_bits_of", lambda scale: 1)
        assert largest_error("discrete_gaussian", 4.0 if twin == "factor" else 2.5, 3) > 1000

    @pytest.mark.parametrize("law", LAWS)
    def test_samples_follow_it(self, law):
        """Chi-squared over 40 cells of equal width, false alarm 1e-7."""
        scale = 1000.3
        drawn = exact_integers(law, 20_000, scale=scale, words=SecureNoise().uniform_words)
        assert p_value(*self.cells(law, scale, drawn)) > FALSE_ALARM
        wrong = exact_integers(law, 20_000, scale=1.2 * scale, words=SecureNoise().uniform_words)
        assert p_value(*self.cells(law, scale, wrong)) < FALSE_ALARM

    def cells(self, law, scale, drawn):
        z = np.arange(-12_000, 12_001)
        weights = np.exp(-((z / scale) ** 2) / 2 if law == LAWS[0] else -np.abs(z) / scale)
        if law == "geometric":
            weights[z < 0] = 0.0
        # Once in twenty runs a draw lies beyond what is added up here: it is one of the last cell.
        edges = np.append(np.arange(-4000, 4001, 200), [2**62])
        wanted = [weights[(z >= a) & (z < b)].sum() for a, b in pairwise(edges)]
        wanted = np.array([weights.sum() - sum(wanted), *wanted]) / weights.sum()
        found = np.histogram(drawn, bins=edges)[0]
        return np.array([len(drawn) - found.sum(), *found]), wanted

    def test_signs_are_fair_and_zero_has_one_sign(self):
        marks = [0]
        assert asked("discrete_laplace", 4.0, 0, 0, marks) == [True]
        assert asked("discrete_laplace", 4.0, 0, 0, marks, sign=1) == [False]
        assert asked("discrete_laplace", 4.0, 0, 3, marks, sign=1) == [True]
        assert asked("geometric", 4.0, 0, 0, marks, sign=1) == [True]


class TestDecisions:
    """Near the boundary floats are not asked."""

    def exact(self, law, scale, k, bits):
        import mpmath

        width = sources._bits_of(scale)
        magnitude = (k << width) + (bits & (2**width - 1))
        with mpmath.workdps(200):
            chance = 2**k * mass(law, scale, magnitude)
            return chance * 4 / 5 if law == "discrete_gaussian" else chance

    @pytest.mark.parametrize(("law", "scale", "k", "bits"), CASES)
    def test_words_around_the_boundary(self, law, scale, k, bits):
        import mpmath

        with mpmath.workdps(200):
            chance = self.exact(law, scale, k, bits)
            border = int(mpmath.floor(chance * WORDS))
            second = int(mpmath.floor((chance * WORDS - border) * WORDS))
        steps = [step for step in (1, 2, 1000, 2**20, 2**40) if step <= border]
        below = [border - step for step in steps]
        above = [border + step for step in (1, 2, 1000, 2**20) if border + step < WORDS]
        assert all(asked(law, scale, k, bits, below))
        assert not any(asked(law, scale, k, bits, above))
        # On the border the next word decides.
        for word, kept in ((second - 1, True), (second + 1, False)):
            words = iter([np.array([word], np.uint64)])
            assert asked(law, scale, k, bits, [border], lambda _, w=words: next(w)) == [kept]

    @pytest.mark.parametrize("law", LAWS)
    @pytest.mark.parametrize("scale", [5e-324, 1e-3, 0.9, 6.5, 1e9, LARGEST_SCALE])
    def test_integers_alone_say_the_same_as_floats(self, monkeypatch, law, scale):
        quick = exact_integers(law, 300, scale=scale, words=SeededNoise(5).uniform_words)
        monkeypatch.setattr(sources, "_ROUGHLY", 2.0)
        monkeypatch.setattr(sources, "_RELATIVE", 2.0)
        slow = exact_integers(law, 300, scale=scale, words=SeededNoise(5).uniform_words)
        assert quick.tolist() == slow.tolist()

    def test_floats_err_far_less_than_they_are_believed(self):
        rng = np.random.default_rng(0)
        for law in LAWS:
            scale = float(2.0 ** rng.uniform(0, 40))
            zeros = np.minimum(rng.geometric(0.3, size=300) - 1, 12)
            width = sources._bits_of(scale)
            magnitudes = (zeros << width) + rng.integers(0, 2**width, size=300)
            rough = sources._chances(law, scale, zeros, magnitudes)
            for k, x, roughly in zip(zeros.tolist(), magnitudes.tolist(), rough, strict=True):
                true = float(2**k * mass(law, scale, x, 60) * (0.8 if law == LAWS[0] else 1))
                chance = sources._chance(law, scale, k, x)
                assert abs(chance - true) <= 2.0**-38 * true + 2.0**-64
                assert abs(roughly - true) <= 2.0**-16

    @pytest.mark.parametrize("law", LAWS)
    def test_rough_chances_err_less_than_they_are_believed_at_every_exponent(self, law):
        """The error is largest where the exponent is three."""
        places = np.arange(0, 2**20, 97)
        for k in range(0, 64, 7):
            magnitudes = (k << 17) + places
            rough = sources._chances(law, 2.0**17, np.full(len(places), k), magnitudes)
            right = [sources._chance(law, 2.0**17, k, x) for x in magnitudes.tolist()]
            assert np.abs(rough - right).max() < 2.0**-16
        assert sources._ROUGHLY >= 2.0 * 2.0**-16

    def test_chances_never_exceed_one(self):
        for law in LAWS:
            for scale in (1.0, 1.0000001, 1.999, 2.0**47 + 1):
                zeros = np.arange(60)
                found = sources._chances(law, scale, zeros, zeros << sources._bits_of(scale))
                assert found.max() <= 1.0 + 2.0**-16

    @pytest.mark.parametrize("value", [Fraction(0), Fraction(1, 3), Fraction(45), Fraction(10**30)])
    @pytest.mark.parametrize("digits", [1, 64, 400])
    def test_digits_of_the_exponential(self, value, digits):
        import mpmath

        lower, upper = exact_decisions.exp_enclosure(value, bits=digits)
        with mpmath.workdps(300):
            true = (
                mpmath.exp(-mpmath.mpf(value.numerator) / value.denominator)
                * mpmath.mpf(2) ** digits
            )
            assert lower <= true <= upper
        assert upper - lower <= 3

    def test_a_row_of_zeros_goes_on(self):
        """63 zeros in a word of coins come once in 2^63 times; then the next words are read."""
        words = iter([np.array([w], np.uint64) for w in (0, 8)])
        assert exact_decisions.further_zeros(lambda _: next(words)) == 64 + 3
        zero = np.zeros((3, 1), np.uint64)
        more = iter([np.array([w], np.uint64) for w in (4, *[0] * 60)])
        found = sources._kept("geometric", 1.0, zero, lambda _: next(more))
        assert found.tolist() == [65]


class TestSizes:
    @pytest.mark.parametrize("count", [0, 1, 30_000])
    def test_as_many_as_asked_for(self, count):
        words = SecureNoise().uniform_words
        drawn = exact_integers("geometric", count, scale=3.0, words=words)
        assert drawn.shape == (count,)
        assert drawn.dtype == np.int64

    def test_the_largest_scale_stays_far_from_overflowing(self):
        words = SecureNoise().uniform_words
        drawn = exact_integers("discrete_laplace", 1000, scale=LARGEST_SCALE, words=words)
        assert np.abs(drawn).max() < 2**55
        assert 0.3 < np.mean(np.abs(drawn) > LARGEST_SCALE * math.log(2)) < 0.7


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.01, 0.7, 1.0, 2.5, 3.1e5, 2.0**47 * 1.3])
def test_one_integer_is_the_first_of_many(law, scale):
    """The way without arrays keeps, of the same words, what the other way keeps first."""
    source = SeededNoise(int(scale))
    for turn in range(150):
        drawn = source.uniform_words(3 * 19).reshape(3, 19).copy()
        if turn % 5 == 0:
            drawn[0, :2] &= np.uint64(2**63)  # no coin shows a one
        more = lambda: SeededNoise(turn).uniform_words  # noqa: B023, E731
        many = sources._kept(law, scale, drawn, more()).tolist()
        assert sources._first_kept(law, scale, drawn, more()) == next(iter(many), None)


MIXED = [2.5, 0.7, 1000.3, 1.0, 4.0, 3.1e5, 2.0**47 * 1.3]


class Scripted:
    """Words of a seed, all of which are remembered."""

    def __init__(self, seed):
        self.source, self.given = SeededNoise(seed), []

    def __call__(self, count):
        self.given.append(self.source.uniform_words(count))
        return self.given[-1]


class TestRows:
    """Vectors of several scales, judged together, are what each scale alone makes of its words."""

    SIZE = 40

    def alone(self, law, scales, drawn):
        """Return what each scale keeps of its own part of the words, by itself."""
        ends = np.cumsum([sources._tries(scale, self.SIZE) for scale in scales])
        parts = np.split(drawn.reshape(3, -1), ends[:-1], axis=1)
        kept = [
            sources._kept(law, scale, part, SeededNoise(1).uniform_words)
            for scale, part in zip(scales, parts, strict=True)
        ]
        return [row[: self.SIZE].tolist() for row in kept]

    @pytest.mark.parametrize("law", LAWS)
    @pytest.mark.parametrize("certain", [True, False], ids=["floats", "integers"])
    def test_the_same_words_become_the_same_integers(self, monkeypatch, law, certain):
        words = Scripted(11)
        if not certain:  # whatever floats say is unclear
            monkeypatch.setattr(sources, "_ROUGHLY", 2.0)
            monkeypatch.setattr(sources, "_RELATIVE", 2.0)
        together = exact_rows(law, MIXED, self.SIZE, words)
        monkeypatch.undo()
        alone = self.alone(law, MIXED, words.given[0])
        full = [row for row in range(len(MIXED)) if len(alone[row]) == self.SIZE]
        assert len(full) >= len(MIXED) - 2
        assert all(together[row].tolist() == alone[row] for row in full)
        assert [len(row) for row in together] == [self.SIZE] * len(MIXED)

    def masses(self, law, scale):
        z = np.arange(-60, 61)
        weights = np.exp(-((z / scale) ** 2) / 2 if law == LAWS[0] else -np.abs(z) / scale)
        weights[z < (0 if law == "geometric" else -60)] = 0.0
        return dict(zip(z.tolist(), weights / weights.sum(), strict=True))

    def fits(self, law, scales, rows):
        window = (-15, 15)
        return [
            p_value(counts_in(row, window), law_in(self.masses(law, scale).get, window))
            for scale, row in zip(scales, rows, strict=True)
        ]

    @pytest.mark.parametrize("law", LAWS)
    def test_each_row_has_the_law_of_its_scale(self, monkeypatch, law):
        """Chi-squared, false alarm 1e-7 a row; rows of which too few were kept are among them."""
        scales, words = [1.6, 2.4, 2.0, 2.8], SecureNoise().uniform_words
        rows = exact_rows(law, scales, 4000, words)
        assert min(self.fits(law, scales, rows)) > FALSE_ALARM
        right = sources._tries
        monkeypatch.setattr(sources, "_tries", lambda scale, count: right(scale, count) // 2 + 1)
        again = exact_rows(law, scales, 4000, words)
        assert min(self.fits(law, scales, again)) > FALSE_ALARM

    @pytest.mark.parametrize("law", LAWS)
    def test_scales_in_each_others_place_are_caught(self, monkeypatch, law):
        right = sources._judged
        monkeypatch.setattr(
            sources, "_judged", lambda law, scale, *rest: right(law, np.flip(scale), *rest)
        )
        scales, words = [2.5, 2.9], SeededNoise(2).uniform_words
        rows = exact_rows(law, scales, 20_000, words)
        # Where they leave too few, the scale alone is asked again, and that is right.
        assert min(self.fits(law, scales, rows)) < FALSE_ALARM

    def test_where_floats_do_not_know_a_proposal_is_judged_by_its_own_scale(self, monkeypatch):
        asked = []
        monkeypatch.setattr(sources, "_ROUGHLY", 2.0)
        monkeypatch.setattr(
            sources, "_decided", lambda law, scale, *rest: asked.append(scale) or (True, 1)
        )
        exact_rows("geometric", [2.5, 0.7], 5, SeededNoise(0).uniform_words)
        tries = [sources._tries(scale, 5) for scale in (2.5, 0.7)]
        assert asked == [2.5] * tries[0] + [0.7] * tries[1]

    @pytest.mark.parametrize("law", LAWS)
    def test_long_rows_of_zeros_are_refused_however_they_go_on(self, law):
        """What is not looked at for being clearly refused: its chance is far below the margin."""
        for scale in (0.3, 1.0, 1.9999, 2.0**47 + 1, LARGEST_SCALE):
            for zeros in (63, 64, 70, 200):
                magnitude = zeros << sources._bits_of(scale)
                assert 2**zeros * mass(law, scale, magnitude, 60) < sources._ROUGHLY / 1000


@pytest.mark.parametrize("scale", [0.01, 0.7, 1.0, 1.01, 1.5, 2.0, 1e9])
@pytest.mark.parametrize("count", [2, 21, 8000])
def test_as_many_proposals_as_mostly_do(scale, count):
    tries, words = sources._tries(scale, count), SeededNoise(4).uniform_words
    drawn = (words(3 * tries).reshape(3, tries) for _ in range(40))
    enough = [
        len(sources._kept("discrete_gaussian", scale, each, words)) >= count for each in drawn
    ]
    assert sum(enough) >= 30
    assert tries < 6 * count + 30
