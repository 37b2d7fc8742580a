"""Laws that need several draws of a source, sampled exactly.

They are: noise whose coordinates depend on each other, truncated noise, a coin of probability
exp(-x) (Algorithm 1 of Canonne, Kamath and Steinke, arXiv:2004.00010), and samplers whose inner
draws differ in number and range. A source gives independent noise and uniform integers; the
functions here combine them without changing the law.
"""

from __future__ import annotations

import hashlib
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from itertools import count as turns
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import int64_vector, scale_of
from quorate.core.noise.exact_decisions import LARGEST_SCALE
from quorate.exceptions import ParameterError

if TYPE_CHECKING:
    from quorate.core.noise.sources import NoiseSource

__all__ = [
    "JOINT_LAWS",
    "SECRETS",
    "ComposedLaws",
    "Sampler",
    "block_integers",
    "cube_integers",
    "secret_order",
]

Integers = NDArray[np.int64]
_SMALLEST, _LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

JOINT_LAWS = {
    "balanced_laplace": "_balanced",
    "blocks_laplace": "_blocks",
    "cube_laplace": "_cube",
}
"""Laws whose coordinates depend on each other, and the methods that draw them."""

SECRETS = 2**256
"""As many as the states of what the operating system itself draws from."""

Sampler = Callable[["NoiseSource"], int]
"""Makes all draws of one outcome from the source it is given."""


def cube_integers(
    count: int, *, steps: Callable[[int], list[int]], below: Callable[[int], int]
) -> list[int]:
    r"""Return integers z with mass proportional to exp(-max(abs(z)) / scale), exactly.

    That mass is a mixture of cubes: :math:`e^{-r/s}` is :math:`(1 - e^{-1/s})` times the sum of
    :math:`e^{-K/s}` over :math:`K \ge r`. So a half-width K is drawn with mass proportional to
    :math:`(2K + 1)^d e^{-K/s}`, and the integers uniformly from :math:`-K, \dots, K`. The sum of d
    + 1 geometric integers has mass proportional to :math:`\binom{K + d}{d} e^{-K/s}`. It is
    accepted with probability :math:`\prod_{j=1}^d (2K + 1) / (2K + 2j)`, the ratio of the two
    masses up to a factor that does not depend on K.

    Parameters
    ----------
    count : int
    steps : callable
        Returns this many independent geometric integers of the scale.
    below : callable
        Returns a uniform integer below another.

    Examples
    --------
    >>> cube_integers(3, steps=lambda count: [5] * count, below=lambda upper: upper // 2)
    [0, 0, 0]
    """
    while True:
        half = sum(steps(count + 1))
        side = 2 * half + 1
        if all(below(side - 1 + 2 * j) < side for j in range(1, count + 1)):
            return [below(side) - half for _ in range(count)]


def block_integers(
    count: int,
    size: int,
    *,
    steps: Callable[[int], list[int]],
    below: Callable[[int], int],
) -> list[list[int]]:
    r"""Return vectors z of integers with mass proportional to exp(-max_b sum(abs(z_b)) / scale).

    As for a cube, this mass is a mixture over :math:`K \ge \max_b \|z_b\|_1` with mass proportional
    to :math:`e^{-K/s}`, of integer points in a product of b balls of radius K in the L1 norm, each
    in g coordinates. A point of one ball is a point of the simplex :math:`z \ge 0, \sum z \le K`,
    of which there are :math:`\binom{K+g}{g}`, with a sign for each coordinate; a point in which a
    zero has a minus sign is rejected.

    So K is drawn with mass proportional to :math:`\binom{K+g}{g}^b e^{-K/s}`, then points of
    simplices and signs. Everything is drawn again if a zero has a minus sign. So for every
    :math:`K \ge \max_b \|z_b\|_1` the pair (K, z) has mass proportional to :math:`e^{-K/s}`. The
    sum of bg + 1 geometric integers has mass proportional to :math:`\binom{K+bg}{bg} e^{-K/s}`. It
    is accepted with probability :math:`\prod_{i=1}^{b-1} \prod_{j=1}^g (K+j)/(K+ig+j)`, the ratio
    of the two masses up to a factor that does not depend on K.

    Parameters
    ----------
    count, size : int
        The number of vectors, and of coordinates of each.
    steps : callable
        Returns this many independent geometric integers of the scale.
    below : callable
        Returns a uniform integer below another.

    Examples
    --------
    >>> from random import Random
    >>> draw = Random(0).randrange
    >>> block_integers(2, 3, steps=lambda count: [5] * count, below=draw)
    [[-16, 14, 0], [-19, 5, 4]]
    """
    later = [(first, j) for first in range(size, count * size, size) for j in range(1, size + 1)]
    while True:
        reach = sum(steps(count * size + 1))
        if all(below(reach + first + j) < reach + j for first, j in later):
            points = [_simplex_point(reach, size, below) for _ in range(count)]
            minus = [[below(2) == 1 for _ in point] for point in points]
            signed = [list(zip(*both, strict=True)) for both in zip(points, minus, strict=True)]
            if all(z or not negative for point in signed for z, negative in point):
                return [[-z if negative else z for z, negative in point] for point in signed]


def _simplex_point(reach: int, size: int, below: Callable[[int], int]) -> list[int]:
    """Return uniform integers >= 0 with a sum of at most ``reach``: the gaps of a uniform subset.

    >>> _simplex_point(4, 2, lambda upper, draws=[5, 1]: draws.pop())
    [1, 3]
    """
    while True:
        bars = sorted(below(reach + size) for _ in range(size))
        if len(set(bars)) == size:
            return [bar - before - 1 for bar, before in zip(bars, [-1, *bars], strict=False)]


def secret_order(size: int, *, secret: int) -> Integers:
    """Return the permutation of ``size`` numbers given by a secret below :data:`SECRETS`.

    If privacy depends on an average over all orders, all orders must be equally likely. A random
    generator for simulations does not guarantee this. Here words of SHAKE256 are sorted, and drawn
    again if two of them are equal.

    >>> secret_order(4, secret=7).tolist()
    [1, 0, 2, 3]
    """
    for turn in turns():
        stream = hashlib.shake_256(secret.to_bytes(32, "little") + turn.to_bytes(8, "little"))
        words = np.frombuffer(stream.digest(8 * size), "<u8")
        order = np.argsort(words)
        if np.all(np.diff(words[order])):
            break
    return order


class ComposedLaws(ABC):
    """Methods of a source that need several draws; inputs are checked as in every source."""

    def balanced_laplace(self, values: Integers, *, scale: float) -> Integers:
        """Add integers z with mass proportional to exp(-(sum(abs(z)) + abs(sum(z))) / scale).

        >>> from quorate.core.noise import SecureNoise
        >>> SecureNoise().balanced_laplace(np.array([10, -10, 0]), scale=1.0).shape
        (3,)
        """
        return self._add("balanced_laplace", int64_vector(values), _joint_scale(scale))

    def cube_laplace(self, values: Integers, *, scale: float) -> Integers:
        """Add integers z with mass proportional to exp(-max(abs(z)) / scale).

        >>> from quorate.core.noise import SecureNoise
        >>> SecureNoise().cube_laplace(np.array([10, -10, 0]), scale=1.0).shape
        (3,)
        """
        return self._add("cube_laplace", int64_vector(values), _joint_scale(scale))

    def blocks_laplace(self, values: Integers, *, scale: float) -> Integers:
        """Add integers z with mass proportional to exp(-max(sum(abs(z), axis=1)) / scale).

        >>> from quorate.core.noise import SecureNoise
        >>> SecureNoise().blocks_laplace(np.array([[10, -10], [0, 7]]), scale=1.0).shape
        (2, 2)
        """
        if values.ndim != 2:
            raise ParameterError("Expected one row a block.")
        flat = int64_vector(values.ravel())
        return self._add("blocks_laplace", flat.reshape(values.shape), _joint_scale(scale))

    def truncated_laplace(self, values: Integers, *, scale: float, reach: int) -> Integers:
        """Add independent integers z with mass proportional to exp(-abs(z) / scale), |z| <= reach.

        Larger noise is drawn again, which gives the law conditional on being within reach.

        >>> from quorate.core.noise import SecureNoise
        >>> noisy = SecureNoise().truncated_laplace(np.array([9, 9]), scale=3.0, reach=2)
        >>> bool(np.all(abs(noisy - 9) <= 2))
        True
        """
        _validate.positive_integer(reach=reach)
        values = int64_vector(values)
        return self._saturating(values, self._truncated(values.size, scale_of(scale=scale), reach))

    def bernoulli_exp(self, x: Fraction) -> bool:
        """Return True with probability exp(-x), exactly.

        >>> from quorate.core.noise import SecureNoise
        >>> SecureNoise().bernoulli_exp(Fraction(0))
        True
        """
        if not (isinstance(x, numbers.Rational) and not isinstance(x, bool) and x >= 0):
            raise ParameterError(f"Expected x to be a Fraction >= 0, got x={x!r}.")
        return self._bernoulli_exp(Fraction(int(x.numerator), int(x.denominator)))

    def sample(
        self,
        method: str,
        draw: Sampler,
        *,
        held: Any,
        **public: Any,
    ) -> int:
        """Return the outcome of a sampler whose inner draws differ in number and range.

        The release is the outcome of the draws together, so a recording or an audit sees one call
        of ``method`` with its ``public`` parameters. Here ``draw`` is run. A source of an audit
        needs all possible outcomes: it computes their exact law from ``held``, or calls ``held``.

        >>> from quorate.core.noise import SecureNoise
        >>> throw = lambda noise: 1 + noise.uniform_below(6)
        >>> SecureNoise().sample("die", throw, held=6) in range(1, 7)
        True
        """
        return self._sample(method, public, draw, held)

    @abstractmethod
    def _add(self, law: str, values: Integers, scale: float) -> Integers: ...

    @abstractmethod
    def _uniform_below(self, upper: int) -> int: ...

    @staticmethod
    @abstractmethod
    def _saturating(values: Integers, noise: Integers) -> Integers: ...

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
                return self._saturating(values, noise)

    def _cube(self, values: Integers, scale: float) -> Integers:
        def steps(count: int) -> list[int]:
            return [int(z) for z in self._add("geometric", np.zeros(count, np.int64), scale)]

        return _added(values, cube_integers(values.size, steps=steps, below=self._uniform_below))

    def _blocks(self, values: Integers, scale: float) -> Integers:
        def steps(count: int) -> list[int]:
            return [int(z) for z in self._add("geometric", np.zeros(count, np.int64), scale)]

        noise = block_integers(*values.shape, steps=steps, below=self._uniform_below)
        return _added(values.ravel(), [z for block in noise for z in block]).reshape(values.shape)

    def _sample(self, method: str, public: dict[str, Any], draw: Sampler, held: Any) -> int:
        return draw(cast("NoiseSource", self))

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


def _added(values: Integers, noise: list[int]) -> Integers:
    totals = (int(value) + z for value, z in zip(values, noise, strict=True))
    return np.array([min(max(t, _SMALLEST), _LARGEST) for t in totals], dtype=np.int64)


def _joint_scale(scale: float) -> float:
    """Return a scale whose integers cannot saturate before they are combined."""
    if not scale_of(scale=scale) <= LARGEST_SCALE:
        raise ParameterError(f"Expected scale <= 2^48 for joint noise, got scale={scale!r}.")
    return scale_of(scale=scale)
