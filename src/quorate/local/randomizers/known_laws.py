r"""Local randomizers: answers of a user's device, with a law that anybody can compute (K5).

A randomizer takes one bounded value per user and answers for each of them separately. It is
*transparent*: :meth:`Randomizer.probability` is the probability of every answer for every value. So
a privacy claim can be checked from a table of probabilities, and a simulation (K8) needs no data.
Values outside the declared inputs are replaced by a public default, never refused, because on a
device nobody may see an error.

All of them are exact: they use coins of :mod:`quorate.core.noise.coins` and integer noise of
:mod:`quorate.core.noise`. Nothing here charges a budget; the caller pays for each answer
(:class:`~quorate.local.oracle.LocalOracle`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate._validate import exact, float_up
from quorate.core.account.rounding import exp_down
from quorate.core.noise import NoiseSource
from quorate.core.noise.coins import Coin
from quorate.exceptions import ParameterError
from quorate.mechanisms.calibrate import gaussian_multiplier

__all__ = [
    "BinaryResponse",
    "BitVectorResponse",
    "FiniteRandomizer",
    "GaussianResponse",
    "KaryResponse",
    "LaplaceResponse",
    "Randomizer",
]

_WORD = 2.0**64
_LARGEST = 2.0**10
_SMALLEST = 2.0**-40


class Randomizer(ABC):
    """One answer per user, epsilon-indistinguishable for any two values (up to ``delta``).

    Definition 5.1 of paper K.
    """

    epsilon: float
    delta: float = 0.0

    numeric: ClassVar[bool] = True
    """Whether values are numbers."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one value; a number has none."""
        return ()

    @abstractmethod
    def draw(self, values: Any, noise: NoiseSource) -> NDArray[Any]:
        """Return one answer for each of ``values``, independently of each other."""

    @abstractmethod
    def probability(self, answer: Any, value: Any) -> float:
        """Return the probability of ``answer`` for ``value``."""

    @property
    def cost(self) -> Fraction:
        """The exact cost of one answer."""
        return exact(self.epsilon)

    @property
    def answers(self) -> tuple[Any, ...] | None:
        """All possible answers, if there are finitely many and few."""
        return None

    def _check_epsilon(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        if not _SMALLEST <= self.epsilon <= _LARGEST:
            raise ParameterError(
                f"Expected 2**-40 <= epsilon <= 2**10, got epsilon={self.epsilon!r}."
            )


@dataclass(frozen=True)
class BinaryResponse(Randomizer):
    r"""Answer 0 or 1: randomized response.

    A value v in [0, 1] is first rounded to 1 with probability v, then the true bit is reported with
    probability :math:`e^\varepsilon/(1+e^\varepsilon)`. Both answers have a probability between
    :math:`1/(1+e^\varepsilon)` and :math:`e^\varepsilon/(1+e^\varepsilon)` for every v, so the
    ratio is at most :math:`e^\varepsilon`.

    >>> response = BinaryResponse(1.0)
    >>> round(response.probability(1, 1.0), 4), round(response.probability(1, 0.25), 4)
    (0.7311, 0.3845)
    >>> response.estimate(np.array([1, 1, 0, 1]))
    1.0409...
    """

    epsilon: float

    def __post_init__(self) -> None:
        self._check_epsilon()

    @cached_property
    def _lie(self) -> Coin:
        return Coin(exact(self.epsilon), 0, 1, 1, 1)

    @property
    def contrast(self) -> float:
        """How much likelier 1 is for the value 1 than for the value 0: tanh(epsilon / 2)."""
        return 1 - 2 * self._lie.probability

    @property
    def answers(self) -> tuple[Any, ...]:
        """The two answers."""
        return (0, 1)

    def draw(self, values: Any, noise: NoiseSource) -> NDArray[np.int8]:
        """Return 0 or 1 for each value."""
        shares = _shares(values)
        # A share below 1 times 2^64 is below 2^64, and the product is exact.
        thresholds = np.where(shares < 1, shares, 0.0) * _WORD
        words = noise.uniform_words(len(shares))
        bits = (shares >= 1) | (words < thresholds.astype(np.uint64))
        return (bits ^ self._lie.throw(len(shares), noise)).astype(np.int8)

    def probability(self, answer: Any, value: Any) -> float:
        """Return the probability of ``answer`` for ``value``."""
        share = float(_shares([value])[0])
        share = share if share >= 1 else math.floor(share * _WORD) / _WORD
        one = self._lie.probability + self.contrast * share
        return one if answer == 1 else 1 - one

    def estimate(self, answers: ArrayLike) -> float:
        """Return the mean of the values, without bias."""
        lie = self._lie.probability
        return float((np.mean(np.asarray(answers, dtype=np.float64)) - lie) / self.contrast)

    def standard_error(self, users: int, *, mean: float = 0.5) -> float:
        """Return the standard deviation of :meth:`estimate` for bits of this mean.

        >>> round(BinaryResponse(1.0).standard_error(1), 2)
        1.08
        """
        lie = self._lie.probability
        return math.sqrt((lie * (1 - lie) / self.contrast**2 + mean * (1 - mean)) / users)


@dataclass(frozen=True)
class KaryResponse(Randomizer):
    r"""Answer one of k categories; the true one is the most likely.

    The true one has probability :math:`e^\varepsilon/(e^\varepsilon+k-1)`, every other
    :math:`1/(e^\varepsilon+k-1)`. Anything else counts as category 0.

    >>> response = KaryResponse(1.0, categories=4)
    >>> round(response.probability(2, 2) / response.probability(2, 0), 4)
    2.7183
    """

    epsilon: float
    categories: int

    def __post_init__(self) -> None:
        self._check_epsilon()
        _validate.positive_integer(categories=self.categories)
        if self.categories < 2:
            raise ParameterError(f"Expected at least 2 categories, got {self.categories}.")

    @cached_property
    def _other(self) -> Coin:
        # Some other category: (k - 1) q / (1 + (k - 1) q).
        return Coin(exact(self.epsilon), 0, self.categories - 1, 1, self.categories - 1)

    @property
    def answers(self) -> tuple[Any, ...]:
        """The categories."""
        return tuple(range(self.categories))

    def draw(self, values: Any, noise: NoiseSource) -> NDArray[np.int64]:
        """Return a category for each value."""
        places = self._places(values)
        others = np.flatnonzero(self._other.throw(len(places), noise))
        # A uniform step of 1 to k - 1 leads to a uniform other category.
        steps = [1 + noise.uniform_below(self.categories - 1) for _ in others]
        places[others] = (places[others] + np.array(steps, dtype=np.int64)) % self.categories
        return places

    def probability(self, answer: Any, value: Any) -> float:
        """Return the probability of ``answer`` for ``value``."""
        other = self._other.probability
        return 1 - other if answer == self._places([value])[0] else other / (self.categories - 1)

    def _places(self, values: Any) -> NDArray[np.int64]:
        numbers = np.nan_to_num(np.asarray(values, dtype=np.float64), posinf=-1, neginf=-1, nan=-1)
        good = (numbers >= 0) & (numbers < self.categories)
        return np.where(good, numbers, 0).astype(np.int64)


class _OnGrid(Randomizer):
    """A number of an interval in whole steps, plus integer noise."""

    low: float
    high: float
    steps: int

    def _check_range(self) -> None:
        _validate.ordered(self.low, self.high, name="range of values")
        _validate.positive_integer(steps=self.steps)
        if self.steps > 2**40 or not math.isfinite(self.high - self.low):
            raise ParameterError("Expected at most 2**40 steps and a range of finite width.")

    def _cells(self, values: Any) -> NDArray[np.int64]:
        numbers = np.asarray(values, dtype=np.float64)
        middle = self.low / 2 + self.high / 2
        clipped = np.clip(np.where(np.isnan(numbers), middle, numbers), self.low, self.high)
        share = (clipped - self.low) / (self.high - self.low)
        return np.clip(np.round(share * self.steps), 0, self.steps).astype(np.int64)

    def _decoded(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.low + (self.high - self.low) * (cells / self.steps)

    def cell_of(self, answer: float) -> int:
        """Return the integer of an answer."""
        return round((answer - self.low) / (self.high - self.low) * self.steps)


@dataclass(frozen=True)
class LaplaceResponse(_OnGrid):
    r"""Answer a number of [low, high] plus discrete Laplace noise (Lemma 5.6 of the paper).

    Values are rounded to one of ``steps`` + 1 points; two of them differ by at most ``steps``, and
    the noise has scale ``steps`` :math:`/\varepsilon`.

    >>> response = LaplaceResponse(1.0, low=-1.0, high=1.0)
    >>> ratio = response.probability(1.0, 1.0) / response.probability(1.0, -1.0)
    >>> round(math.log(ratio), 6)
    1.0
    """

    epsilon: float
    low: float = 0.0
    high: float = 1.0
    steps: int = 2**10

    def __post_init__(self) -> None:
        self._check_epsilon()
        self._check_range()

    @property
    def scale(self) -> float:
        """Scale of the noise in steps, rounded up."""
        return float_up(self.steps / exact(self.epsilon))

    def draw(self, values: Any, noise: NoiseSource) -> NDArray[np.float64]:
        """Return a noisy number for each value."""
        return self._decoded(noise.discrete_laplace(self._cells(values), scale=self.scale))

    def probability(self, answer: Any, value: Any) -> float:
        """Return the probability of ``answer``, a point of the unbounded grid, for ``value``."""
        distance = abs(self.cell_of(answer) - int(self._cells([value])[0]))
        return math.tanh(0.5 / self.scale) * math.exp(-distance / self.scale)


@dataclass(frozen=True)
class GaussianResponse(_OnGrid):
    r"""Answer a number of [low, high] plus discrete Gaussian noise: :math:`(\varepsilon, \delta)`.

    The standard deviation is the smallest that satisfies :math:`(\varepsilon, \delta)` for a
    difference of ``steps``, including the slack of ``docs/proofs/discrete_gaussian.md`` for
    discrete noise.

    >>> response = GaussianResponse(1.0, 1e-6, steps=2**10)
    >>> round(response.sigma / 2**10, 2)
    4.22
    """

    epsilon: float
    delta: float
    low: float = 0.0
    high: float = 1.0
    steps: int = 2**10

    def __post_init__(self) -> None:
        self._check_epsilon()
        self._check_range()
        _validate.probability(delta=self.delta)

    @cached_property
    def sigma(self) -> float:
        """Parameter of the noise in steps, rounded up."""
        multiplier = exact(gaussian_multiplier(float(self.epsilon), float(self.delta)))
        square = multiplier**2 * self.steps**2 + 4
        root = math.sqrt(float_up(square))
        while exact(root) ** 2 < square:
            root = math.nextafter(root, math.inf)
        return root

    def draw(self, values: Any, noise: NoiseSource) -> NDArray[np.float64]:
        """Return a noisy number for each value."""
        return self._decoded(noise.discrete_gaussian(self._cells(values), sigma=self.sigma))

    def probability(self, answer: Any, value: Any) -> float:
        """Return the probability of ``answer``, a point of the unbounded grid, for ``value``."""
        distance = self.cell_of(answer) - int(self._cells([value])[0])
        # By Poisson summation the normaliser is sigma sqrt(2 pi) to all digits from sigma = 1 on.
        return math.exp(-((distance / self.sigma) ** 2) / 2) / (self.sigma * math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class BitVectorResponse(Randomizer):
    r"""Answer a vector of bits with at most ``ones`` set bits, each bit by randomized response.

    Values are rows of Booleans; if more than ``ones`` bits are set, the first of them are kept. Two
    values then differ in at most c = min(2 ``ones``, ``length``) bits, and each bit pays
    :math:`\varepsilon / c`. With one set bit this is the basic one-time RAPPOR.

    >>> response = BitVectorResponse(1.0, length=8, ones=1)
    >>> nothing = response.probability((0,) * 8, np.zeros(8))
    >>> round(math.log(nothing / response.probability((0,) * 8, np.eye(8)[0])), 6)
    0.5
    """

    epsilon: float
    length: int
    ones: int = 1

    def __post_init__(self) -> None:
        self._check_epsilon()
        _validate.positive_integer(length=self.length, ones=self.ones)

    @property
    def shape(self) -> tuple[int, ...]:
        """A value is a row of this many bits."""
        return (self.length,)

    @property
    def each(self) -> Fraction:
        """The cost of one bit."""
        return self.cost / min(2 * self.ones, self.length)

    @cached_property
    def _lie(self) -> Coin:
        return Coin(self.each, 0, 1, 1, 1)

    def draw(self, values: Any, noise: NoiseSource) -> NDArray[np.int8]:
        """Return a row of bits for each row of ``values``."""
        bits = self._cut(values)
        lies = self._lie.throw(bits.size, noise).reshape(bits.shape)
        return (bits ^ lies).astype(np.int8)

    def probability(self, answer: Any, value: Any) -> float:
        """Return the probability of the row ``answer`` for the row ``value``."""
        lie = self._lie.probability
        wrong = int(np.sum(self._cut([value])[0] != np.asarray(answer, dtype=np.bool_)))
        return lie**wrong * (1 - lie) ** (self.length - wrong)

    def estimate(self, answers: ArrayLike) -> NDArray[np.float64]:
        """Return the mean of each bit, without bias."""
        lie = self._lie.probability
        means: NDArray[np.float64] = np.mean(np.asarray(answers, dtype=np.float64), axis=0)
        return (means - lie) / (1 - 2 * lie)

    def _cut(self, values: Any) -> NDArray[np.bool_]:
        rows = np.asarray(values, dtype=np.float64).reshape(-1, self.length) > 0.5
        kept: NDArray[np.bool_] = rows & (np.cumsum(rows, axis=1) <= self.ones)
        return kept


class FiniteRandomizer(Randomizer):
    r"""A randomizer of your own: a table of exact probabilities, which is checked.

    Parameters
    ----------
    table : mapping from value to mapping from answer to Fraction
        The law of the answer for every value; probabilities must add up to 1, exactly. Values that
        are not in the table are replaced by its first one.
    epsilon : float
        At least the largest logarithm of a ratio of two probabilities of one answer; this is
        compared in exact arithmetic, with :math:`e^\varepsilon` rounded down.

    Examples
    --------
    >>> third, two = Fraction(1, 3), Fraction(2, 3)
    >>> fair = FiniteRandomizer({0: {"a": two, "b": third}, 1: {"a": third, "b": two}}, epsilon=0.7)
    >>> fair.probability("a", 1)
    0.3333333333333333
    >>> FiniteRandomizer({0: {"a": two, "b": third}, 1: {"a": third, "b": two}}, epsilon=0.69)
    Traceback (most recent call last):
        ...
    quorate.exceptions.ParameterError: The answer 'a' is 2 times as likely for one value as for
    another, more than e^0.69: no guarantee of epsilon=0.69.
    """

    numeric = False

    def __init__(
        self, table: Mapping[Hashable, Mapping[Hashable, Fraction]], *, epsilon: float
    ) -> None:
        self.epsilon = epsilon
        self._check_epsilon()
        if not table:
            raise ParameterError("Expected the law of at least one value, got none.")
        self._answers = tuple(dict.fromkeys(answer for law in table.values() for answer in law))
        self._laws = {value: self._law(law) for value, law in table.items()}
        self._default = next(iter(self._laws))
        self._check_ratios()

    def _law(self, law: Mapping[Hashable, Fraction]) -> tuple[Fraction, ...]:
        found = tuple(law.get(answer, Fraction(0)) for answer in self._answers)
        if not all(isinstance(share, Fraction | int) and share >= 0 for share in found):
            raise ParameterError("Expected probabilities that are Fractions >= 0.")
        if sum(found) != 1:
            raise ParameterError("Expected probabilities that add up to 1 for every value.")
        return tuple(Fraction(share) for share in found)

    def _check_ratios(self) -> None:
        most = exp_down(min(exact(self.epsilon), Fraction(700)))
        for answer, shares in zip(
            self._answers, zip(*self._laws.values(), strict=True), strict=True
        ):
            low, high = min(shares), max(shares)
            if low == high:
                continue
            if low == 0 or high > most * low:
                times = "infinitely many" if low == 0 else f"{float(high / low):.4g}"
                raise ParameterError(
                    f"The answer {answer!r} is {times} times as likely for one value as for "
                    f"another, more than e^{self.epsilon:g}: no guarantee of "
                    f"epsilon={self.epsilon!r}."
                )

    @property
    def answers(self) -> tuple[Any, ...]:
        """All answers of the table."""
        return self._answers

    @property
    def values(self) -> tuple[Any, ...]:
        """All values of the table."""
        return tuple(self._laws)

    def draw(self, values: Any, noise: NoiseSource) -> NDArray[Any]:
        """Return an answer for each value."""
        found = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            law = self._of(value)
            whole = math.lcm(*(share.denominator for share in law))
            left = noise.uniform_below(whole)
            for answer, share in zip(self._answers, law, strict=True):
                left -= int(share * whole)
                if left < 0:
                    found[place] = answer
                    break
        return found

    def probability(self, answer: Any, value: Any) -> float:
        """Return the probability of ``answer`` for ``value``."""
        return float(self._of(value)[self._answers.index(answer)])

    def _of(self, value: Any) -> tuple[Fraction, ...]:
        try:
            return self._laws.get(value, self._laws[self._default])
        except TypeError:  # not hashable, so not in the table
            return self._laws[self._default]


def _shares(values: Any) -> NDArray[np.float64]:
    """Return values clipped to [0, 1]; NaN becomes 1/2."""
    numbers = np.asarray(values, dtype=np.float64)
    return np.clip(np.where(np.isnan(numbers), 0.5, numbers), 0.0, 1.0)
