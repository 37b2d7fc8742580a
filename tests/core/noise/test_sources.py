"""The noise has the laws it claims and refuses what OpenDP would swallow."""

from __future__ import annotations

import ast
import math
import os
import random
import subprocess
import sys
import threading
import warnings
from contextvars import Context, copy_context
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from goodness import FALSE_ALARM, counts_in, law_in, p_value
from quorate.auditing import RecordedNoise
from quorate.core.noise import NoiseSource, SecureNoise, SeededNoise, ambient_noise, use_noise
from quorate.exceptions import ParameterError, SchemaError

pytestmark = pytest.mark.entropy

LARGEST, SMALLEST = np.iinfo(np.int64).max, np.iinfo(np.int64).min
SOURCES = [SecureNoise, lambda: SeededNoise(11), lambda: RecordedNoise(11)]
every_source = pytest.mark.parametrize("make", SOURCES, ids=["secure", "seeded", "recorded"])
SECURE_AND_SEEDED = pytest.mark.parametrize("make", SOURCES[:2], ids=["secure", "seeded"])


def laplace_mass(scale):
    ratio = math.exp(-1 / scale)
    return lambda z: (1 - ratio) / (1 + ratio) * ratio ** abs(z)


def gaussian_mass(sigma):
    total = sum(math.exp(-(z**2) / (2 * sigma**2)) for z in range(-200, 201))
    return lambda z: math.exp(-(z**2) / (2 * sigma**2)) / total


def geometric_mass(scale):
    ratio = math.exp(-1 / scale)
    return lambda z: (1 - ratio) * ratio**z if z >= 0 else 0.0


LAWS = [
    ("discrete_laplace", "scale", laplace_mass, (-12, 12)),
    ("discrete_gaussian", "sigma", gaussian_mass, (-12, 12)),
    ("geometric", "scale", geometric_mass, (-1, 14)),
]
every_law = pytest.mark.parametrize(("method", "keyword", "mass", "window"), LAWS)


class HalvedNoise(NoiseSource):
    """A broken source: every scale is half of what was asked for."""

    def __init__(self):
        self.real = SeededNoise(5)

    def _add(self, law, values, scale):
        return self.real._add(law, values, scale / 2)

    def _choose(self, law, scores, scale):
        return self.real._choose(law, scores, scale / 2)

    def _uniform_below(self, upper):
        return self.real._uniform_below(max(1, upper // 2))


class TestAdditiveNoise:
    """Chi-squared with a false alarm of 1e-7 a test; the halved twin must be seen."""

    def fit(self, source, method, keyword, mass, window, scale):
        noise = getattr(source, method)(np.zeros(20_000, np.int64), **{keyword: scale})
        return p_value(counts_in(noise, window), law_in(mass(scale), window))

    @every_law
    @SECURE_AND_SEEDED
    @pytest.mark.parametrize("scale", [0.6, 2.5])
    def test_noise_has_the_stated_mass(self, make, method, keyword, mass, window, scale):
        assert self.fit(make(), method, keyword, mass, window, scale) > FALSE_ALARM

    @every_law
    def test_half_the_noise_is_caught(self, method, keyword, mass, window):
        assert self.fit(HalvedNoise(), method, keyword, mass, window, 2.5) < FALSE_ALARM

    @every_law
    @every_source
    def test_noise_is_added_to_the_values(self, make, method, keyword, mass, window):
        values = np.array([-(10**12), 0, 10**12])
        noisy = getattr(make(), method)(values, **{keyword: 3.0})
        assert noisy.dtype == np.int64
        # Noise beyond 200 scales has probability below 1e-80.
        assert np.abs(noisy - values).max() < 600

    @every_law
    @every_source
    def test_sums_saturate_at_the_ends_of_int64(self, make, method, keyword, mass, window):
        ends = np.array([LARGEST, SMALLEST] * 50)
        noisy = getattr(make(), method)(ends, **{keyword: 1e6})
        assert np.all(noisy[::2] > LARGEST - 10**9)
        assert np.all(noisy[1::2] < SMALLEST + 10**9)
        assert np.any(noisy[::2] == LARGEST)

    @every_law
    @every_source
    def test_enormous_and_tiny_scales_work(self, make, method, keyword, mass, window):
        for scale in (5e-324, 1e-3, 1e30, sys.float_info.max):
            noisy = getattr(make(), method)(np.array([0, 7]), **{keyword: scale})
            assert noisy.shape == (2,)
        assert getattr(make(), method)(np.array([0, 7]), **{keyword: 1e-3}).tolist() == [0, 7]

    @every_law
    @every_source
    def test_no_values_give_no_noise(self, make, method, keyword, mass, window):
        noisy = getattr(make(), method)(np.zeros(0, np.int64), **{keyword: 1.0})
        assert noisy.shape == (0,)
        assert noisy.dtype == np.int64

    @every_source
    def test_views_and_foreign_layouts_are_read_by_value(self, make):
        source = make()
        whole = np.arange(10, dtype=np.int64) * 1000
        for values in (whole[::3], whole[::-1], whole.astype(">i8"), whole.astype(np.int32)):
            noisy = source.discrete_laplace(values, scale=0.01)
            assert noisy.tolist() == values.tolist()

    def test_the_callers_array_is_not_written_to(self):
        values = np.zeros(100, np.int64)
        SecureNoise().discrete_gaussian(values, sigma=50.0)
        assert not values.any()


class TestDrawnAhead:
    """A vector that was drawn before it is needed is added once, or not at all."""

    ZEROS, SIGMAS = np.zeros(4, np.int64), (1e9, 2e9)

    def test_each_vector_is_added_once(self):
        ahead = SecureNoise().gaussian_ahead(self.SIGMAS, size=4)
        first, second = (ahead.add(self.ZEROS, sigma=sigma) for sigma in self.SIGMAS)
        assert first.tolist() != second.tolist()
        assert first.any()
        assert ahead.add(self.ZEROS, sigma=1e9) is None

    def test_another_law_and_another_length_have_none(self):
        ahead = SecureNoise().gaussian_ahead(self.SIGMAS, size=4)
        assert ahead.add(self.ZEROS, sigma=math.nextafter(1e9, 2e9)) is None
        assert ahead.add(self.ZEROS[:3], sigma=1e9) is None
        assert ahead.add(self.ZEROS[:, np.newaxis], sigma=2e9) is None

    def test_it_has_the_stated_mass(self):
        sigmas, window = [0.9, 2.4], (-12, 12)
        ahead = SecureNoise().gaussian_ahead(sigmas, size=4000)
        zeros = np.zeros(4000, np.int64)
        noise = {sigma: counts_in(ahead.add(zeros, sigma=sigma), window) for sigma in sigmas}
        fits = [p_value(noise[sigma], law_in(gaussian_mass(sigma), window)) for sigma in sigmas]
        assert min(fits) > FALSE_ALARM
        assert p_value(noise[2.4], law_in(gaussian_mass(3.0), window)) < FALSE_ALARM

    def test_sums_saturate_and_the_callers_array_is_not_written_to(self):
        ends = np.array([LARGEST, SMALLEST] * 50)
        noisy = SecureNoise().gaussian_ahead([1e6], size=100).add(ends, sigma=1e6)
        assert np.all(noisy[::2] > LARGEST - 10**9)
        assert np.all(noisy[1::2] < SMALLEST + 10**9)
        assert np.any(noisy[::2] == LARGEST)
        assert ends.tolist() == [LARGEST, SMALLEST] * 50

    def test_values_are_guarded_as_ever(self):
        ahead = SecureNoise().gaussian_ahead([9.0], size=2)
        with pytest.raises(SchemaError):
            ahead.add(np.array([0.5, 1.0]), sigma=9.0)
        assert ahead.add(np.array([1, 2]), sigma=9.0) is None

    def test_another_process_has_none(self, monkeypatch):
        ahead = SecureNoise().gaussian_ahead(self.SIGMAS, size=4)
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: -1)
            assert ahead.add(self.ZEROS, sigma=1e9) is None

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
    def test_a_child_that_has_its_parents_number_has_none(self, monkeypatch):
        """As in containers, which number their processes anew."""
        ahead = SecureNoise().gaussian_ahead(self.SIGMAS, size=4)
        monkeypatch.setattr(os, "getpid", lambda: 1)
        theirs = SecureNoise().gaussian_ahead(self.SIGMAS, size=4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a fork among threads, which only looks
            child = os.fork()
        if child == 0:
            taken = [each.add(self.ZEROS, sigma=1e9) is None for each in (ahead, theirs)]
            os._exit(0 if all(taken) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert theirs.add(self.ZEROS, sigma=1e9) is not None

    def test_who_wants_to_see_every_release_does(self):
        class Watched(SecureNoise):
            def _add(self, law, values, scale):
                return values

        assert Watched().gaussian_ahead(self.SIGMAS, size=4) is None

    def test_doubles_draw_when_they_are_asked(self):
        """So that a replay sees the releases of a run in their order."""
        for source in (SeededNoise(1), RecordedNoise(1)):
            assert source.gaussian_ahead(self.SIGMAS, size=4) is None

    def test_enormous_scales_and_long_vectors_are_not_drawn_ahead(self):
        source = SecureNoise()
        assert source.gaussian_ahead([1e30], size=4) is None
        assert source.gaussian_ahead([], size=4) is None
        assert source.gaussian_ahead([9.0, 8.0], size=2**12 + 1) is None
        some = source.gaussian_ahead([1e30, 9.0, math.nan], size=4)
        assert some.add(self.ZEROS, sigma=1e30) is None
        assert some.add(self.ZEROS, sigma=9.0) is not None


class TestSelection:
    """3000 draws each; false alarm 1e-7."""

    SCORES = np.array([0, 3, 3, 5])

    def counts(self, source, method, scores, scale, draws=3000):
        drawn = [getattr(source, method)(scores, scale=scale) for _ in range(draws)]
        return np.bincount(drawn, minlength=len(scores))

    def exponential_law(self, scale):
        weights = np.exp(self.SCORES / scale)
        return weights / weights.sum()

    def permute_and_flip_law(self, scale):
        """By the definition: a random order, and the first whose flip succeeds."""
        from itertools import permutations

        flips = np.exp((self.SCORES - self.SCORES.max()) / scale)
        law = np.zeros(4)
        for order in permutations(range(4)):
            alive = 1 / 24
            for i in order:
                law[i] += alive * flips[i]
                alive *= 1 - flips[i]
        return law

    @SECURE_AND_SEEDED
    def test_gumbel_max_is_the_exponential_mechanism(self, make):
        counts = self.counts(make(), "gumbel_max", self.SCORES, 2.0)
        assert p_value(counts, self.exponential_law(2.0)) > FALSE_ALARM

    @SECURE_AND_SEEDED
    def test_permute_and_flip_has_its_law(self, make):
        counts = self.counts(make(), "permute_and_flip", self.SCORES, 2.0)
        assert p_value(counts, self.permute_and_flip_law(2.0)) > FALSE_ALARM

    def test_half_the_noise_and_the_other_law_are_caught(self):
        for method, law in (
            ("gumbel_max", self.exponential_law(2.0)),
            ("permute_and_flip", self.permute_and_flip_law(2.0)),
        ):
            assert p_value(self.counts(HalvedNoise(), method, self.SCORES, 2.0), law) < FALSE_ALARM
        counts = self.counts(SeededNoise(1), "gumbel_max", self.SCORES, 2.0, draws=20_000)
        assert p_value(counts, self.permute_and_flip_law(2.0)) < FALSE_ALARM

    @every_source
    @pytest.mark.parametrize("method", ["gumbel_max", "permute_and_flip"])
    def test_extreme_scores_do_not_overflow(self, make, method):
        scores = np.array([SMALLEST, LARGEST, 0])
        assert getattr(make(), method)(scores, scale=1.0) == 1
        assert getattr(make(), method)(np.array([SMALLEST]), scale=1.0) == 0
        assert getattr(make(), method)(scores, scale=1e-3) == 1


class TestExactBits:
    @pytest.mark.parametrize("upper", [1, 2, 7])
    @SECURE_AND_SEEDED
    def test_small_uniform_integers_are_uniform(self, make, upper):
        source = make()
        drawn = [source.uniform_below(upper) for _ in range(7000)]
        assert p_value(np.bincount(drawn, minlength=upper), np.full(upper, 1 / upper)) > FALSE_ALARM

    def test_a_shorter_range_is_caught(self):
        drawn = [HalvedNoise().uniform_below(7) for _ in range(7000)]
        assert p_value(np.bincount(drawn, minlength=7), np.full(7, 1 / 7)) < FALSE_ALARM

    @every_source
    def test_large_uniform_integers_fill_their_range(self, make):
        source, upper = make(), 10**60
        tenths = [source.uniform_below(upper) * 10 // upper for _ in range(2000)]
        assert p_value(np.bincount(tenths, minlength=10), np.full(10, 0.1)) > FALSE_ALARM


class TestWords:
    """Every bit and every byte of many words is uniform; false alarm 1e-7 a test."""

    @staticmethod
    def fit(words):
        data = words.astype("<u8").tobytes()
        counts = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
        return p_value(counts, np.full(256, 1 / 256))

    @every_source
    def test_each_bit_is_a_fair_coin_of_its_own(self, make):
        words = make().uniform_words(20_000)
        assert words.shape == (20_000,)
        assert words.dtype == np.uint64
        bits = (words[:, np.newaxis] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        # 64 fair coins, thrown 20,000 times, leave 6.5 standard deviations with chance below 1e-8.
        assert np.abs(bits.mean(axis=0) - 0.5).max() < 6.5 * 0.5 / math.sqrt(20_000)
        products = (bits * 2.0 - 1.0).T @ (bits * 2.0 - 1.0) / 20_000
        np.fill_diagonal(products, 0.0)
        assert np.abs(products).max() < 7 / math.sqrt(20_000)
        assert self.fit(words) > FALSE_ALARM

    def test_a_lost_bit_is_caught(self):
        words = SecureNoise().uniform_words(20_000) | np.uint64(1 << 17)
        assert self.fit(words) < FALSE_ALARM

    def test_a_source_without_words_of_its_own_makes_them_of_integers(self):
        class Counting(SeededNoise):
            _uniform_words = NoiseSource._uniform_words

            def _uniform_below(self, upper):
                assert upper == 2**64
                return 2**64 - 1

        assert Counting(0).uniform_words(2).tolist() == [2**64 - 1, 2**64 - 1]

    @every_source
    def test_two_calls_differ(self, make):
        source = make()
        assert source.uniform_words(4).tolist() != source.uniform_words(4).tolist()
        assert source.uniform_words(0).shape == (0,)

    @every_source
    @pytest.mark.parametrize("count", [-1, 1.5, True, None])
    def test_counts_that_are_no_counts_are_refused(self, make, count):
        with pytest.raises(ParameterError, match="count"):
            make().uniform_words(count)

    def test_a_replay_gives_the_same_words_and_refuses_another_number_of_them(self):
        from quorate.exceptions import ReplayMismatchError

        recorded = RecordedNoise(3)
        first = recorded.uniform_words(5).tolist()
        assert recorded.replay().uniform_words(5).tolist() == first
        with pytest.raises(ReplayMismatchError):
            recorded.replay().uniform_words(6)


class TestRefusals:
    @every_source
    @pytest.mark.parametrize(
        "values",
        [
            np.array([1.0, np.nan]),
            np.array([True]),
            np.array([2**63], dtype=np.uint64),
            np.array([1, "x"], dtype=object),
            np.zeros((2, 2), np.int64),
            np.int64(3),
        ],
        ids=["float", "bool", "uint64", "object", "two axes", "scalar"],
    )
    def test_arrays_that_are_not_int64_vectors_are_refused(self, make, values):
        source = make()
        for method in ("discrete_laplace", "geometric", "permute_and_flip", "gumbel_max"):
            with pytest.raises(SchemaError):
                getattr(source, method)(values, scale=1.0)

    @every_source
    @pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, "1", None, True, 10**400])
    def test_scales_that_are_no_scales_are_refused(self, make, scale):
        source, values = make(), np.array([1])
        for method in ("discrete_laplace", "geometric", "permute_and_flip", "gumbel_max"):
            with pytest.raises(ParameterError, match="scale"):
                getattr(source, method)(values, scale=scale)
        with pytest.raises(ParameterError, match="sigma"):
            source.discrete_gaussian(values, sigma=scale)

    @every_source
    def test_no_candidates_are_refused(self, make):
        for method in ("permute_and_flip", "gumbel_max"):
            with pytest.raises(SchemaError, match="at least one candidate"):
                getattr(make(), method)(np.zeros(0, np.int64), scale=1.0)

    @every_source
    @pytest.mark.parametrize("upper", [0, -1, 1.5, True, None])
    def test_empty_ranges_are_refused(self, make, upper):
        with pytest.raises(ParameterError, match="upper"):
            make().uniform_below(upper)

    @every_source
    @pytest.mark.parametrize("x", [Fraction(-1, 2), 0.5, math.nan, None, True])
    def test_exponents_that_are_not_rational_are_refused(self, make, x):
        with pytest.raises(ParameterError, match="Fraction"):
            make().bernoulli_exp(x)

    def test_messages_do_not_quote_values(self):
        with pytest.raises(SchemaError) as caught:
            SecureNoise().discrete_laplace(np.array([123456.5]), scale=1.0)
        assert "123456" not in str(caught.value)

    def test_a_rational_scale_is_rounded_up(self):
        asked = []

        class Asking(SeededNoise):
            def _add(self, law, values, scale):
                asked.append(scale)
                return values

        for scale in (Fraction(1, 3), Fraction(2, 3), 2**53 + 1):
            Asking(0).discrete_laplace(np.array([0]), scale=scale)
            assert Fraction(asked[-1]) >= scale
        Asking(0).discrete_laplace(np.array([0]), scale=np.float32(0.1))
        assert asked[-1] == float(np.float32(0.1))


class TestAmbientNoise:
    def test_it_is_secure_unless_a_block_says_otherwise(self):
        assert isinstance(ambient_noise(), SecureNoise)
        outer, inner = SeededNoise(1), SeededNoise(2)
        with use_noise(outer) as given_back:
            assert given_back is outer
            with use_noise(inner):
                assert ambient_noise() is inner
            assert ambient_noise() is outer
        assert isinstance(ambient_noise(), SecureNoise)

    def test_it_is_restored_after_an_error(self):
        def fails():
            with use_noise(SeededNoise(1)):
                raise KeyError

        with pytest.raises(KeyError):
            fails()
        assert isinstance(ambient_noise(), SecureNoise)

    @pytest.mark.parametrize("inherits", [False, True])
    def test_another_thread_does_not_see_the_double(self, inherits):
        """Not even in a copy of the context, which threads of later Pythons may inherit."""
        seen = []
        with use_noise(SeededNoise(1)):
            context = copy_context() if inherits else Context()
            look = partial(context.run, lambda: seen.append(ambient_noise()))
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
        assert isinstance(seen[0], SecureNoise)

    def test_what_outlives_the_block_does_not_see_the_double(self):
        """A task that was started inside, for example."""
        with use_noise(SeededNoise(1)) as double:
            context = copy_context()
            assert context.run(ambient_noise) is double
        assert isinstance(context.run(ambient_noise), SecureNoise)

    def test_a_block_of_one_thread_does_not_reach_a_block_of_another(self):
        inside, seen = threading.Barrier(2, timeout=60), {}

        def look(seed):
            with use_noise(SeededNoise(seed)):
                inside.wait()
                seen[seed] = repr(ambient_noise())
                inside.wait()

        threads = [threading.Thread(target=look, args=(seed,)) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == {1: "SeededNoise(1)", 2: "SeededNoise(2)"}

    def test_what_is_not_a_source_is_refused(self):
        with pytest.raises(ParameterError, match="NoiseSource"), use_noise(42):
            pass


FORK = """
import os
import random
import numpy as np
from quorate.core.noise import SecureNoise, SeededNoise, ambient_noise, use_noise

secure, zeros = SecureNoise(), np.zeros(4, np.int64)

def draws():
    # Each of these has more than 200 bits of entropy.
    laplace = secure.discrete_laplace(zeros, scale=2.0**60).tolist()
    gaussian = secure.discrete_gaussian(zeros, sigma=2.0**60).tolist()
    geometric = secure.geometric(zeros, scale=2.0**60).tolist()
    choices = [secure.permute_and_flip(np.zeros(1000, np.int64), scale=1.0) for _ in range(20)]
    return laplace, gaussian, geometric, choices, secure.uniform_below(2**200)

draws()  # whatever keeps a state has one before the fork
ahead = secure.gaussian_ahead([2.0**40], size=4)
with use_noise(SeededNoise(0)):
    for _ in range(2):
        reader, writer = os.pipe()
        if os.fork() == 0:
            assert ahead.add(zeros, sigma=2.0**40) is None
            os.write(writer, repr((draws(), repr(ambient_noise()))).encode())
            os._exit(0)
        os.wait()
        os.close(writer)
        print(os.fdopen(reader).read())
    assert ahead.add(zeros, sigma=2.0**40) is not None
    print((draws(), repr(ambient_noise())))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_processes_draw_different_and_secure_noise():
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    (first, *rest), sources = zip(*map(ast.literal_eval, run.stdout.split("\n")[:3]), strict=True)
    assert sources == ("SecureNoise()", "SecureNoise()", "SeededNoise(0)")
    second, parent = rest
    for one, other in ((first, second), (first, parent), (second, parent)):
        assert all(mine != theirs for mine, theirs in zip(one, other, strict=True))


def test_importing_the_module_does_not_import_opendp():
    code = "import sys, quorate.core.noise; print('opendp' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


class TestEntropy:
    def test_nobody_can_seed_what_is_drawn(self):
        """Generators that can be seeded are for tests and for public choices."""
        seen = []
        for _ in range(2):
            random.seed(0)
            np.random.seed(0)  # noqa: NPY002 - the one that callers may have seeded
            noise = SecureNoise()
            zeros = np.zeros(20, np.int64)
            seen.append(
                [
                    noise.uniform_below(2**60),
                    *noise.uniform_words(3).tolist(),
                    *noise.discrete_gaussian(zeros, sigma=1e12).tolist(),
                    *noise.discrete_laplace(zeros[:1], scale=1e15).tolist(),
                ]
            )
        assert all(one != other for one, other in zip(*seen, strict=True))

    @pytest.mark.parametrize("end", [LARGEST, SMALLEST])
    def test_one_number_at_the_end_of_int64_stays_inside(self, end):
        noisy = [
            int(SecureNoise().discrete_laplace(np.array([end]), scale=1e9)[0]) for _ in range(20)
        ]
        assert end in noisy
        assert len(set(noisy)) > 1
