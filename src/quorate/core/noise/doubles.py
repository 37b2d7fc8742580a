"""Doubles of the source of noise, for tests and audits: they void every guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from quorate.core.noise.composed_laws import JOINT_LAWS
from quorate.core.noise.sources import BLOCK, Block, Integers, NoiseSource, Words, here
from quorate.exceptions import ParameterError

__all__ = ["SeededNoise", "use_noise"]

_WORDS = 1 << 64


class SeededNoise(NoiseSource):
    """Repeatable noise for tests, accurate up to floating point; it voids every guarantee.

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
        if law in JOINT_LAWS:
            return self._joint(law, values, scale)
        draw = {
            "discrete_laplace": self._discrete_laplace,
            "discrete_gaussian": self._discrete_gaussian,
            "geometric": self._floor_of_exponential,
        }[law]
        # Beyond 2**100 everything saturates. 2**63 - 1024 is the largest float below 2**63.
        noise = draw(values.size, min(max(scale, 2.0**-100), 2.0**100))
        noise = np.clip(noise, -(2.0**63), 2.0**63 - 1024)
        return self._saturating(values, noise.astype(np.int64))

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


@contextmanager
def use_noise(source: NoiseSource) -> Iterator[NoiseSource]:
    """Make everything that is built inside the block draw from ``source``; for tests and audits.

    It applies to this thread only; see :func:`~quorate.core.noise.sources.ambient_noise`.

    >>> from quorate.core.noise import ambient_noise
    >>> with use_noise(SeededNoise(0)):
    ...     ambient_noise()
    SeededNoise(0)
    >>> ambient_noise()
    SecureNoise()
    """
    if not isinstance(source, NoiseSource):
        raise ParameterError(f"Expected source to be a NoiseSource, got source={source!r}.")
    block = Block(source, here())
    token = BLOCK.set(block)
    try:
        yield source
    finally:
        block.running = False
        BLOCK.reset(token)
