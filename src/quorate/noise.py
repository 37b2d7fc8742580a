"""The only randomness that carries privacy, and its doubles for tests.

Uniform integers come from the operating system's entropy (:mod:`secrets`, or whole words of it).
Additive noise is made of those words by :mod:`quorate.exact_draws`, exactly: a scale given as a
float means its exact rational value, and no rounding error decides a draw. Bernoulli(exp(-x)) is
the rational sampler of Canonne, Kamath and Steinke (2020), Algorithm 1. Noisy maxima, and noise of
enormous scales, come from OpenDP, which samples integer noise in big integers, adds, and only then
saturates at 64 bits; its noisy maximum is permute-and-flip with exact flips on rationals (with
replacement, the exponential mechanism, for zero-concentrated privacy). [1]_ [2]_ [3]_

OpenDP checks nothing when it is called, so every input is guarded here. How long a draw takes
depends on the values: whoever can time a release is outside the threat model.

References
----------
.. [1] Canonne, Kamath, Steinke. The discrete Gaussian for differential privacy. arXiv:2004.00010.
.. [2] McKenna, Sheldon. Permute-and-Flip: a new mechanism for differentially private selection.
   arXiv:2010.12603.
.. [3] OpenDP, ``measurements/noise`` and ``measurements/noisy_top_k`` with their proofs, as
   published at docs.rs/crate/opendp. The noisy maximum was read in version 0.14.2; for the
   installed version the tests check the laws, by sampling.
"""

from __future__ import annotations

import math
import numbers
import os
import secrets
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exact_draws import LARGEST_SCALE, exact_integers
from quorate.exceptions import ParameterError, SchemaError
from quorate.guarantees import Numerics

__all__ = [
    "NoiseSource",
    "PiecewiseLaw",
    "SecureNoise",
    "SeededNoise",
    "ambient_noise",
    "use_noise",
]

_SMALLEST, _LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_WORDS = 1 << 64

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class PiecewiseLaw:
    """The law of an integer that is uniform on each of consecutive pieces; for audits.

    Parameters
    ----------
    lower : int
        The first integer of the first piece.
    lengths : array of integers
        How many integers each piece has; none is allowed.
    probabilities : array of float
        How likely each piece is.

    Examples
    --------
    >>> PiecewiseLaw(0, np.array([3, 1]), np.array([0.75, 0.25])).size
    4
    """

    lower: int
    lengths: NDArray[Any]
    probabilities: NDArray[np.float64]

    @property
    def size(self) -> int:
        """How many integers there are in all."""
        return sum(int(length) for length in self.lengths)


class NoiseSource(ABC):
    """Where noise comes from; mechanisms know nothing else about randomness.

    The public methods guard their inputs and hand them to three hooks, so that no source can forget
    a guard: add noise of a named law, choose by a named law, draw a uniform integer. Samplers made
    of several draws go through :meth:`sample`. ``numerics`` goes into the guarantee of every
    release.
    """

    numerics: Numerics = Numerics.VOID

    def discrete_laplace(self, values: Integers, *, scale: float) -> Integers:
        """Add independent integers z with mass proportional to exp(-abs(z) / scale).

        The sum saturates at the ends of int64, which is post-processing.

        >>> SecureNoise().discrete_laplace(np.array([10, -10]), scale=1.0).shape
        (2,)
        """
        return self._add("discrete_laplace", _integers(values), _scale(scale=scale))

    def discrete_gaussian(self, values: Integers, *, sigma: float) -> Integers:
        """Add independent integers z with mass proportional to exp(-z**2 / (2 sigma**2)).

        >>> SecureNoise().discrete_gaussian(np.array([10, -10]), sigma=3.0).dtype
        dtype('int64')
        """
        return self._add("discrete_gaussian", _integers(values), _scale(sigma=sigma))

    def balanced_laplace(self, values: Integers, *, scale: float) -> Integers:
        """Add integers z with mass proportional to exp(-(sum(abs(z)) + abs(sum(z))) / scale).

        >>> SecureNoise().balanced_laplace(np.array([10, -10, 0]), scale=1.0).shape
        (3,)
        """
        if not _scale(scale=scale) <= LARGEST_SCALE:
            raise ParameterError(f"Expected scale <= 2^48 for balanced noise, got scale={scale!r}.")
        return self._add("balanced_laplace", _integers(values), _scale(scale=scale))

    def geometric(self, values: Integers, *, scale: float) -> Integers:
        """Add independent integers z >= 0 with mass proportional to exp(-z / scale).

        One-sided: the two-sided geometric is :meth:`discrete_laplace`.

        >>> bool(np.all(SecureNoise().geometric(np.array([5, 7]), scale=2.0) >= [5, 7]))
        True
        """
        return self._add("geometric", _integers(values), _scale(scale=scale))

    def truncated_laplace(self, values: Integers, *, scale: float, reach: int) -> Integers:
        """Add independent integers z with mass proportional to exp(-abs(z) / scale), |z| <= reach.

        Noise that comes out larger is drawn again, which is the law given that it is not.

        >>> noisy = SecureNoise().truncated_laplace(np.array([9, 9]), scale=3.0, reach=2)
        >>> bool(np.all(abs(noisy - 9) <= 2))
        True
        """
        _validate.positive_integer(reach=reach)
        values = _integers(values)
        return _add_saturating(values, self._truncated(values.size, _scale(scale=scale), reach))

    def bernoulli_exp(self, x: Fraction) -> bool:
        """Return True with probability exp(-x), exactly.

        >>> SecureNoise().bernoulli_exp(Fraction(0))
        True
        """
        if not (isinstance(x, numbers.Rational) and not isinstance(x, bool) and x >= 0):
            raise ParameterError(f"Expected x to be a Fraction >= 0, got x={x!r}.")
        return self._bernoulli_exp(Fraction(int(x.numerator), int(x.denominator)))

    def uniform_below(self, upper: int) -> int:
        """Return a uniform integer among 0, ..., upper - 1, however large.

        >>> SecureNoise().uniform_below(2**200) < 2**200
        True
        """
        _validate.positive_integer(upper=upper)
        return self._uniform_below(int(upper))

    def uniform_words(self, count: int) -> Words:
        """Return ``count`` independent uniform words of 64 bits: the bits of many draws at once.

        A randomizer compares bits of a word with an integer threshold, so that a million exact
        draws take one call.

        >>> SecureNoise().uniform_words(3).dtype
        dtype('uint64')
        """
        _validate.non_negative_integer(count=count)
        return self._uniform_words(int(count))

    def permute_and_flip(self, scores: Integers, *, scale: float) -> int:
        """Return the index of the largest of ``scores[i] / scale`` plus exponential noise.

        >>> SecureNoise().permute_and_flip(np.array([0, 10**6, 0]), scale=1.0)
        1
        """
        return self._choose("permute_and_flip", _candidates(scores), _scale(scale=scale))

    def gumbel_max(self, scores: Integers, *, scale: float) -> int:
        """Return index i with probability proportional to exp(scores[i] / scale).

        >>> SecureNoise().gumbel_max(np.array([0, 10**6, 0]), scale=1.0)
        1
        """
        return self._choose("gumbel_max", _candidates(scores), _scale(scale=scale))

    def sample(
        self,
        method: str,
        draw: Sampler,
        *,
        law: Callable[[], PiecewiseLaw],
        **public: Any,
    ) -> int:
        """Return the outcome of a sampler whose inner draws differ in number and range.

        The release is the outcome of the draws together, so a recording or an audit sees one call
        of ``method`` with its ``public`` parameters. Here ``draw`` is run; a source that needs to
        know what could have come out asks for the exact ``law`` instead.

        >>> die = PiecewiseLaw(1, np.array([6]), np.array([1.0]))
        >>> throw = lambda noise: 1 + noise.uniform_below(6)
        >>> SecureNoise().sample("die", throw, law=lambda: die) in range(1, 7)
        True
        """
        return self._sample(method, public, draw, law)

    @abstractmethod
    def _add(self, law: str, values: Integers, scale: float) -> Integers: ...

    @abstractmethod
    def _choose(self, law: str, scores: Integers, scale: float) -> int: ...

    @abstractmethod
    def _uniform_below(self, upper: int) -> int: ...

    def _uniform_words(self, count: int) -> Words:
        words = (self._uniform_below(_WORDS) for _ in range(count))
        return np.fromiter(words, np.uint64, count=count)

    def _truncated(self, size: int, scale: float, reach: int) -> Integers:
        noise = np.full(size, _LARGEST)
        while (outside := np.flatnonzero((noise < -reach) | (noise > reach))).size:
            zeros = np.zeros(outside.size, dtype=np.int64)
            noise[outside] = self._add("discrete_laplace", zeros, scale)
        return noise

    def _balanced(self, values: Integers, scale: float) -> Integers:
        # Independent noise is kept with the chance that the coordinate which is not drawn adds.
        while True:
            noise = self._add("discrete_laplace", np.zeros_like(values), scale)
            if self._bernoulli_exp(abs(sum(noise.tolist())) / Fraction(scale)):
                return _add_saturating(values, noise)

    def _sample(
        self, method: str, public: dict[str, Any], draw: Sampler, law: Callable[[], PiecewiseLaw]
    ) -> int:
        return draw(self)

    def _bernoulli_exp(self, x: Fraction) -> bool:
        whole, rest = divmod(x, 1)
        for _ in range(whole):
            if not self._bernoulli_exp_below_one(Fraction(1)):
                return False
        return self._bernoulli_exp_below_one(rest)

    def _bernoulli_exp_below_one(self, x: Fraction) -> bool:
        # The first k with a failed flip of probability x/k is odd with probability exp(-x).
        k = 1
        while self._uniform_below(x.denominator * k) < x.numerator:
            k += 1
        return k % 2 == 1


Sampler = Callable[[NoiseSource], int]
"""Makes all draws of one outcome from the source it is given."""


class SecureNoise(NoiseSource):
    """Exact noise from the operating system's entropy; the source of every real release.

    >>> SecureNoise().numerics.value
    'exact'
    """

    numerics = Numerics.EXACT

    def _add(self, law: str, values: Integers, scale: float) -> Integers:
        if law == "balanced_laplace":
            return self._balanced(values, scale)
        if scale <= LARGEST_SCALE:
            words = self._uniform_words
            return _add_saturating(
                values, exact_integers(law, len(values), scale=scale, words=words)
            )
        if law == "geometric":
            totals = (int(value) + self._one_geometric(Fraction(scale)) for value in values)
            return np.fromiter((min(t, _LARGEST) for t in totals), np.int64, count=len(values))
        given = [int(values[0])] if len(values) == 1 else values  # a list crosses over sooner
        return np.array(_opendp()[law](scale=scale)(given), dtype=np.int64)

    def _choose(self, law: str, scores: Integers, scale: float) -> int:
        return int(_opendp()[law](scale=scale)(scores))

    def _uniform_below(self, upper: int) -> int:
        return secrets.randbelow(upper)

    def _uniform_words(self, count: int) -> Words:
        # Little-endian on every machine, so that recorded bytes mean the same words everywhere.
        return np.frombuffer(os.urandom(8 * count), "<u8").astype(np.uint64, copy=False)

    def _one_geometric(self, scale: Fraction) -> int:
        # With scale = s/t, x = u + s*v has mass proportional to exp(-x/s), hence x // t the mass
        # exp(-z*t/s) that is wanted.
        s, t = scale.numerator, scale.denominator
        u = self._uniform_below(s)
        while not self._bernoulli_exp(Fraction(u, s)):
            u = self._uniform_below(s)
        v = 0
        while self._bernoulli_exp(Fraction(1)):
            v += 1
        return (u + s * v) // t

    def __repr__(self) -> str:
        return "SecureNoise()"


class SeededNoise(NoiseSource):
    """Repeatable noise, right up to floating point; for tests, as it voids every guarantee.

    >>> SeededNoise(7).discrete_laplace(np.zeros(4, np.int64), scale=2.0).shape
    (4,)
    >>> SeededNoise(7).uniform_below(10**30) == SeededNoise(7).uniform_below(10**30)
    True
    >>> SeededNoise(7).numerics.value
    'void'
    """

    def __init__(self, seed: int | list[int]) -> None:
        self._seed = seed
        self._generator = np.random.default_rng(seed)

    def _add(self, law: str, values: Integers, scale: float) -> Integers:
        if law == "balanced_laplace":
            return self._balanced(values, scale)
        draw = {
            "discrete_laplace": self._discrete_laplace,
            "discrete_gaussian": self._discrete_gaussian,
            "geometric": self._floor_of_exponential,
        }[law]
        # Beyond 2**100 everything saturates. 2**63 - 1024 is the largest float below 2**63.
        noise = draw(values.size, min(max(scale, 2.0**-100), 2.0**100))
        noise = np.clip(noise, -(2.0**63), 2.0**63 - 1024)
        return _add_saturating(values, noise.astype(np.int64))

    def _choose(self, law: str, scores: Integers, scale: float) -> int:
        noise = self._generator.gumbel if law == "gumbel_max" else self._generator.exponential
        # The gap to the best score always fits into uint64, so no precision is lost before
        # dividing.
        unsigned = scores.astype(np.uint64)
        gaps = unsigned[np.argmax(scores)] - unsigned
        with np.errstate(over="ignore"):
            return int(np.argmax(noise(size=scores.size) - gaps / scale))

    def _uniform_below(self, upper: int) -> int:
        # The same variate scaled to different ranges couples the draws of neighbouring data.
        n_bytes = 24 + (upper.bit_length() // 128) * 16
        variate = int.from_bytes(self._generator.bytes(n_bytes), "big")
        return (variate * upper) >> (8 * n_bytes)

    def _uniform_words(self, count: int) -> Words:
        return self._generator.integers(0, _WORDS, size=count, dtype=np.uint64)

    def _floor_of_exponential(self, size: int, scale: float) -> NDArray[np.float64]:
        return np.floor(self._generator.exponential(size=size) * scale)

    def _discrete_laplace(self, size: int, scale: float) -> NDArray[np.float64]:
        return self._floor_of_exponential(size, scale) - self._floor_of_exponential(size, scale)

    def _discrete_gaussian(self, size: int, sigma: float) -> NDArray[np.float64]:
        noise = np.zeros(size)
        missing = np.arange(size)
        width = math.floor(sigma) + 1.0
        while missing.size:
            proposal = self._discrete_laplace(missing.size, width)
            excess = np.minimum(np.abs(proposal) / sigma - sigma / width, 60.0)
            accepted = self._generator.random(missing.size) < np.exp(-(excess**2) / 2)
            noise[missing[accepted]] = proposal[accepted]
            missing = missing[~accepted]
        return noise

    def __repr__(self) -> str:
        return f"SeededNoise({self._seed!r})"


_SECURE = SecureNoise()


@dataclass
class _Block:
    """A block of ``use_noise``: its source, its process and thread, and whether it runs."""

    source: NoiseSource
    owner: tuple[int, int]
    running: bool = True


_BLOCK: ContextVar[_Block | None] = ContextVar("quorate_noise", default=None)


def ambient_noise() -> NoiseSource:
    """Return the source that a mechanism uses when none is given: secure, outside of tests.

    A block of :func:`use_noise` holds for the thread that opened it and until it is left. Other
    threads, forked processes and whatever outlives the block draw secure noise, even where they
    are given a copy of the context.

    >>> ambient_noise()
    SecureNoise()
    """
    block = _BLOCK.get()
    return block.source if block and block.running and block.owner == _here() else _SECURE


@contextmanager
def use_noise(source: NoiseSource) -> Iterator[NoiseSource]:
    """Let everything built inside the block draw from ``source``; for tests and audits.

    In this thread only; see :func:`ambient_noise`.

    >>> with use_noise(SeededNoise(0)):
    ...     ambient_noise()
    SeededNoise(0)
    >>> ambient_noise()
    SecureNoise()
    """
    if not isinstance(source, NoiseSource):
        raise ParameterError(f"Expected source to be a NoiseSource, got source={source!r}.")
    block = _Block(source, _here())
    token = _BLOCK.set(block)
    try:
        yield source
    finally:
        block.running = False
        _BLOCK.reset(token)


def _here() -> tuple[int, int]:
    return os.getpid(), threading.get_ident()


def _integers(values: Integers) -> Integers:
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise SchemaError(f"Expected an array of int64, got dtype={array.dtype}.")
    if array.ndim != 1:
        raise SchemaError(f"Expected one axis, got an array of {array.ndim} axes; ravel it first.")
    # OpenDP reads the buffer as native, contiguous int64.
    return np.ascontiguousarray(array, dtype=np.int64)


def _candidates(scores: Integers) -> Integers:
    array = _integers(scores)
    if array.size == 0:
        raise SchemaError("Expected at least one candidate, got none.")
    return array


def _scale(**given: Any) -> float:
    """Return the scale as a float that is at least as large."""
    _validate.positive(**given)
    ((name, value),) = given.items()
    if type(value) is float:
        return value
    exact = Fraction(value if isinstance(value, numbers.Rational) else float(value))
    if exact > sys.float_info.max:
        raise ParameterError(f"Expected a {name} that a float can hold, got {name}={value!r}.")
    scale = float(exact)
    return scale if scale >= exact else math.nextafter(scale, math.inf)


def _add_saturating(values: Integers, noise: Integers) -> Integers:
    total = values + noise
    overflown = ((values ^ total) & (noise ^ total)) < 0
    return np.where(overflown, np.where(values < 0, _SMALLEST, _LARGEST), total)


@cache
def _opendp() -> dict[str, Callable[..., Any]]:
    """Import OpenDP by submodule (its prelude drags scikit-learn in), once and only when used."""
    from opendp import domains, measurements, measures, metrics
    from opendp.mod import enable_features

    enable_features("contrib")
    # OpenDP reads T=int as 32 bits.
    vectors = domains.vector_domain(domains.atom_domain(T="i64"))
    noisy_max = partial(measurements.make_noisy_max, vectors, metrics.linf_distance(T="i64"))
    l1, l2 = metrics.l1_distance(T="i64"), metrics.l2_distance(T="f64")
    return {
        "discrete_laplace": partial(measurements.make_laplace, vectors, l1),
        "discrete_gaussian": partial(measurements.make_gaussian, vectors, l2),
        "permute_and_flip": partial(noisy_max, measures.max_divergence()),
        "gumbel_max": partial(noisy_max, measures.zero_concentrated_divergence()),
    }
