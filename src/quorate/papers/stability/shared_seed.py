"""Public seeds that all users share: named streams of numbers, the same bits on every machine.

They protect nobody, as all public randomness (:mod:`quorate.core.public_randomness`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.public_randomness import Generator, keyed_generator

__all__ = ["SharedSeed", "hash_word", "hash_words"]

# public: splitmix64 (Steele, Lea, Flood, 2014), whose numbers clients of all versions share.
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_WORD = 2**64 - 1


@dataclass(frozen=True)
class SharedSeed:
    """A seed that all users share, and the streams of numbers they all read from it.

    Streams are named, so that two uses of one seed never read the same numbers. A number belongs to
    an *id* and not to a position: the number of a hypothesis does not depend on which other
    hypotheses there are. The same bits come out on every machine.

    The seed is public and must be fixed before any data exist: a seed chosen after a look at the
    data could be one under which a certain person's records decide.

    Parameters
    ----------
    seed : int
        Public; at least 0.
    task : str, default=""
        What the numbers are for; different tasks read different numbers from one seed.

    Examples
    --------
    >>> seed = SharedSeed(7, task="cut-offs")
    >>> seed.words("ties", np.array([3, 10**6], dtype=np.uint64)).tolist()
    [..., ...]
    >>> bool(seed.words("ties", np.array([3]))[0] == seed.words("ties", np.array([1, 2, 3]))[2])
    True
    >>> seed.uniforms("offsets", np.arange(2)).shape
    (2,)
    """

    seed: int
    task: str = ""

    def __post_init__(self) -> None:
        _validate.non_negative_integer(seed=self.seed)

    def keys(self, stream: str) -> tuple[int, int]:
        """Return the two 64-bit keys of a stream."""
        parts = (b"quorate shared seed 1", str(int(self.seed)), self.task, stream)
        texts = [part if isinstance(part, bytes) else part.encode() for part in parts]
        framed = b"".join(len(text).to_bytes(8, "big") + text for text in texts)
        digest = hashlib.sha256(framed).digest()
        return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")

    def words(self, stream: str, ids: NDArray[np.generic]) -> NDArray[np.uint64]:
        """Return a uniform 64-bit word for each id (integers below 2^64)."""
        return hash_words(ids, self.keys(stream))

    def uniforms(self, stream: str, ids: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return a uniform number strictly between 0 and 1 for each id."""
        return _open_uniform(self.words(stream, ids))

    def gumbels(self, stream: str, ids: NDArray[np.generic]) -> NDArray[np.float64]:
        """Return a standard Gumbel number, -ln(-ln U), for each id.

        >>> ids = np.arange(10_000)
        >>> bool(abs(SharedSeed(0).gumbels("g", ids).mean() - 0.5772) < 0.05)
        True
        """
        uniforms = self.uniforms(stream, ids)
        np.log(uniforms, out=uniforms)
        np.negative(uniforms, out=uniforms)
        np.log(uniforms, out=uniforms)
        return np.negative(uniforms, out=uniforms)

    def child(self, name: str) -> SharedSeed:
        """Return the seed of a part of the task, whose streams are its own."""
        return SharedSeed(self.seed, task=f"{self.task}/{name}")

    def generator(self, stream: str) -> Generator:
        """Return a generator for public draws that need no ids."""
        first, second = self.keys(stream)
        return keyed_generator(first | second << 64)


def hash_words(ids: NDArray[np.generic], keys: tuple[int, int]) -> NDArray[np.uint64]:
    """Return a 64-bit word for each id under two keys: two rounds of splitmix64.

    >>> hash_words(np.array([0, 1]), (1, 2)).dtype
    dtype('uint64')
    """
    words = np.asarray(ids).astype(np.uint64)
    for key in keys:
        words ^= np.uint64(key)
        words += np.uint64(_STEP)
        words ^= words >> np.uint64(30)
        words *= np.uint64(_FIRST)
        words ^= words >> np.uint64(27)
        words *= np.uint64(_SECOND)
        words ^= words >> np.uint64(31)
    return words


def hash_word(identity: int, keys: tuple[int, int]) -> int:
    """Return the word of one id, as :func:`hash_words` does, without an array.

    >>> hash_word(5, (1, 2)) == int(hash_words(np.array([5]), (1, 2))[0])
    True
    """
    word = identity
    for key in keys:
        word = ((word ^ key) + _STEP) & _WORD
        word = (word ^ word >> 30) * _FIRST & _WORD
        word = (word ^ word >> 27) * _SECOND & _WORD
        word ^= word >> 31
    return word


def _open_uniform(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    # 52 bits and a half: never 0 and never 1.
    uniforms = (words >> np.uint64(12)).astype(np.float64)
    uniforms += 0.5
    uniforms *= 2.0**-52
    return uniforms
