r"""One answer of a few bits that hides which of very many candidates a user has (G7).

The user draws s public masks of d bits, and hashes the candidate v to the s bits :math:`h_a(v) =
(\langle a_1, v \rangle, \dots, \langle a_s, v \rangle)`. The answer is these bits, except that with
probability 1 - ``keep`` it is s fair coins. One bit (s = 1) is Hadamard response [1]_; more bits
are better as epsilon grows [2]_. Two different candidates have the same hash with probability
exactly 2^-s, so the number of answers that agree with a candidate, minus what chance explains,
estimates its votes without bias.

All randomness consists of bits: masks and coins are bits of secure words, and ``keep`` is a
multiple of 2^-32 that is rounded down. So the law is known exactly, without floating point.

References
----------
.. [1] Acharya, Sun, Zhang. Hadamard response. arXiv:1802.04705.
.. [2] Cormode, Maddock, Maple. Frequency estimation under local differential privacy.
   arXiv:2103.16640.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import float_up
from quorate.core.account.account import Account, noise_for
from quorate.core.account.rounding import exp_down
from quorate.core.guarantees import Guarantee, Pure, Relation, Trust
from quorate.core.noise import ambient_noise
from quorate.exceptions import ParameterError, SchemaError

__all__ = [
    "COIN_BITS",
    "MAX_BITS",
    "MAX_WIDTH",
    "WORD_BITS",
    "HashedResponse",
    "Reports",
    "best_width",
    "keep_threshold",
]

COIN_BITS = 32
"""Bits of the coin that decides whether the hash is kept; ``keep`` is a multiple of 2^-32."""

MAX_WIDTH = 8
"""An answer is one byte at most."""

WORD_BITS = 63  # machine: what an int64 holds beside its sign
"""Candidates of this many bits are int64; what is negative is nobody's candidate."""

MAX_BITS = 256
"""Longer candidates are Python integers, and masks have several words."""

_WORD = 64
_PREFIX_BITS = 20  # machine: time and memory of one transform
"""Counts of 2^20 prefixes at once are a transform of 70 ms; of 2^24, of seconds."""


def keep_threshold(epsilon: float, width: int) -> int:
    r"""Return for how many of the 2^32 coin values the hash is reported, rounded down.

    If the hash is reported with probability k, the likeliest answer is :math:`1 + 2^s k / (1 - k)`
    times as likely as any other. This is at most :math:`e^\varepsilon` for :math:`k \le
    (e^\varepsilon - 1) / (e^\varepsilon + 2^s - 1)`.

    >>> keep_threshold(1.0, 1) / 2**32
    0.462117157...
    """
    grown = exp_down(epsilon)
    share = (grown - 1) / (grown + 2**width - 1)
    return int(share.numerator * 2**COIN_BITS // share.denominator)


@cache
def best_width(epsilon: float) -> int:
    """Return the number of answer bits with the smallest variance of a rare candidate's count.

    >>> [best_width(epsilon) for epsilon in (0.5, 1.0, 2.0, 4.0)]
    [1, 2, 3, 6]
    """
    return min(range(1, MAX_WIDTH + 1), key=lambda width: _rare_variance(epsilon, width))


def _rare_variance(epsilon: float, width: int) -> float:
    kept = keep_threshold(epsilon, width) / 2**COIN_BITS
    answers = 2.0**width
    return math.inf if kept == 0 else 1 / (answers - 1) / kept**2


@dataclass(frozen=True)
class Reports:
    """The reports of n users: public masks, answers, and the prefix that each answer is about.

    Parameters
    ----------
    masks : array of uint64, shape (s, n)
        Or (s, n, words), the lowest word first, if candidates have more than 63 bits.
    answers : array of uint8, shape (n,)
    levels : array of uint8, shape (n,)
        All 0, unless there are too many candidates to count at once.

    Examples
    --------
    >>> reports = HashedResponse(candidates=2**14, epsilon=1.0).respond(np.arange(5))
    >>> reports.masks.shape, len(reports)
    ((2, 5), 5)
    """

    masks: NDArray[np.uint64]
    answers: NDArray[np.uint8]
    levels: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.answers)

    def at(self, level: int) -> Reports:
        """Return the reports about the prefixes of one level."""
        chosen = self.levels == level
        if bool(np.all(chosen)):
            return self
        return Reports(self.masks[:, chosen], self.answers[chosen], self.levels[chosen])


@dataclass(frozen=True, kw_only=True)
class HashedResponse:
    r"""Report one of many candidates in one short message, hiding which one it is.

    Every user sends one report: masks, an answer, and a level. Up to 2^20 candidates there is one
    level. For more candidates each user draws one of 2, 4, 8 or 16 levels by fair coins and answers
    about the first bits of the candidate only, more bits at a higher level. The server then extends
    the most popular prefixes level by level (:mod:`quorate.local.randomizers.prefixes`).

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP for one user's report, with :math:`\varepsilon` = ``epsilon``
    neighbours : replace all records of one user
    trust : local
    public : all parameters, how many users there are, and who sent which report
    numerics : exact
    proof : Masks and level are drawn without looking at the candidate. Given them an answer y has
        probability :math:`k [y = h] + (1 - k) 2^{-s}` with k = ``keep``, so two candidates' laws
        differ by a factor of at most :math:`1 + 2^s k/(1-k)`, and k is the largest multiple of
        :math:`2^{-32}` for which a lower bound of :math:`e^\varepsilon` is not exceeded. A user
        without a candidate sends the same with k = 0, a mixture of the above.

    Utility
    -------
    A user's answer agrees with the candidate they name with probability :math:`2^{-s} + k(1 -
    2^{-s})` and with any other with :math:`2^{-s}`, so matches estimate votes without bias; a user
    who names another candidate adds :math:`1/((2^s - 1) k^2)` to the variance (:meth:`variance`).
    The best width is within 3 % of the optimum :math:`4 e^\varepsilon/(e^\varepsilon-1)^2` at
    :math:`\varepsilon` = 1 and 2 and within 7 % at 1/2. A dishonest user changes the difference of
    two candidates by at most :attr:`influence` votes.

    Complexity
    ----------
    One word of 64 random bits per user for 2^14 candidates; one message, one round.

    Parameters
    ----------
    candidates : int
        Number of candidates, at most 2^256; a candidate is one of 0, ..., ``candidates`` - 1.
    epsilon : float
        Privacy loss of one report, at most 700.
    width : int or None, default=None
        Bits s of an answer, 1 to 8; ``None`` takes :func:`best_width`.

    Examples
    --------
    >>> response = HashedResponse(candidates=2**14, epsilon=1.0)
    >>> response.width, response.words, float(response.influence)
    (2, 1, 4.437...)
    >>> response.guarantee.trust.name
    'LOCAL'
    """

    candidates: int
    epsilon: float
    width: int | None = None

    def __post_init__(self) -> None:
        _validate.positive_integer(candidates=self.candidates)
        _validate.positive(epsilon=self.epsilon)
        if not 2 <= self.candidates <= 2**MAX_BITS:
            raise ParameterError(
                f"Expected 2 to 2**{MAX_BITS} candidates, got candidates={self.candidates!r}."
            )
        width = best_width(float(self.epsilon)) if self.width is None else self.width
        _validate.one_of(tuple(range(1, MAX_WIDTH + 1)), width=width)
        object.__setattr__(self, "width", width)
        if self.threshold == 0:
            raise ParameterError(
                f"Expected an epsilon large enough for an informative answer, got "
                f"epsilon={self.epsilon!r}."
            )

    @cached_property
    def threshold(self) -> int:
        """Number of values of the 32-bit coin for which the hash is kept."""
        return keep_threshold(self.epsilon, self._width)

    @property
    def _width(self) -> int:
        return int(self.width or 0)

    @property
    def keep(self) -> Fraction:
        """Probability that the answer is the true hash instead of random coins."""
        return Fraction(self.threshold, 2**COIN_BITS)

    @property
    def likelihood_ratio(self) -> Fraction:
        """The largest ratio of two candidates' probabilities of a report, exactly."""
        answers: int = 2**self._width
        return 1 + answers * self.keep / (1 - self.keep)

    @property
    def relation(self) -> Relation:
        """The neighbouring relation: the number of users is public."""
        return Relation.REPLACE

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one report."""
        return Guarantee(
            epsilon=float_up(self.epsilon),
            relation=Relation.REPLACE,
            trust=Trust.LOCAL,
            numerics=ambient_noise().numerics,
            events=(self.event,),
        )

    @property
    def event(self) -> Pure:
        """The privacy cost of one report for its user."""
        return Pure(float_up(self.epsilon))

    @property
    def bits(self) -> int:
        """Bits d of a candidate."""
        return (self.candidates - 1).bit_length()

    @property
    def levels(self) -> int:
        """The number of prefix lengths: 1, 2, 4, 8 or 16."""
        levels = 1
        while self.bits > levels * _PREFIX_BITS:
            levels *= 2
        return levels

    @property
    def wide(self) -> bool:
        """Whether candidates have more than 63 bits, so that masks have several words."""
        return self.bits > WORD_BITS

    @property
    def prefix_bits(self) -> tuple[int, ...]:
        """The number of leading bits at each level; the last level uses all of them.

        >>> HashedResponse(candidates=2**32, epsilon=1.0).prefix_bits
        (16, 32)
        """
        return tuple(-(-self.bits * level // self.levels) for level in range(1, self.levels + 1))

    @property
    def prefix_masks(self) -> tuple[int, ...]:
        """The bits that a mask of each level may have."""
        return tuple((2**length - 1) << (self.bits - length) for length in self.prefix_bits)

    @property
    def words(self) -> int:
        """The number of 64-bit random words for one report."""
        return -(-(self._level_place + self.levels.bit_length() - 1 + COIN_BITS) // _WORD)

    @property
    def _level_place(self) -> int:
        return self._width * (self.bits + 1)

    def respond(self, values: NDArray[np.int64], *, account: Account | None = None) -> Reports:
        """Return one report for each user; users without a candidate report random bits.

        Every user answers once, so all reports together cost each user :attr:`event`.
        """
        values = candidates_of(values, wide=self.wide)
        noise = noise_for(Account.of_release(account, self), self.event)
        return self.from_words(values, noise.uniform_words(len(values) * self.words))

    def from_words(self, values: NDArray[np.int64], words: NDArray[np.uint64]) -> Reports:
        """Return the reports for given random words, which :meth:`respond` draws.

        From the lowest bit of a user's words: s masks of d bits, s coins, the level; the highest
        32 bits are compared with ``threshold``.

        >>> response = HashedResponse(candidates=4, epsilon=1.0, width=1)
        >>> response.from_words(np.array([3]), np.array([0b010], dtype=np.uint64)).answers
        array([1], dtype=uint8)
        """
        values = candidates_of(values, wide=self.wide)
        table = np.asarray(words, dtype=np.uint64).reshape(len(values), self.words)
        present = np.asarray((values >= 0) & (values < self.candidates), dtype=bool)
        named = self.as_words(np.where(present, values, 0))
        levels = _field(table, self._level_place, self.levels.bit_length() - 1).astype(np.uint8)
        taken = wide_field if self.wide else _field
        masks = np.stack([taken(table, i * self.bits, self.bits) for i in range(self._width)])
        if self.levels > 1:
            masks &= self.as_words(np.array(self.prefix_masks, dtype=object))[levels]
        coins = _field(table, self._width * self.bits, self._width).astype(np.uint8)
        kept = (table[:, -1] >> np.uint64(_WORD - COIN_BITS)) < np.uint64(self.threshold)
        return Reports(masks, np.where(kept & present, hashes(masks, named), coins), levels)

    def as_words(self, values: NDArray[Any]) -> NDArray[np.uint64]:
        """Return numbers of at most ``bits`` bits as words, with an axis of words if ``wide``.

        >>> HashedResponse(candidates=2**70, epsilon=1.0).as_words(np.array([2**64 + 3]))
        array([[3, 1]], dtype=uint64)
        """
        if not self.wide:
            return np.asarray(values).astype(np.uint64)
        places = range(0, self.bits, _WORD)
        rows = [[int(v) >> place & (2**_WORD - 1) for place in places] for v in values]
        return np.array(rows, dtype=np.uint64).reshape(len(values), len(places))

    def law(self, value: int) -> dict[tuple[tuple[int, ...], int, int], Fraction]:
        """Return the exact law of one user's (masks, answer, level); for audits of few bits.

        >>> law = HashedResponse(candidates=4, epsilon=1.0, width=1).law(3)
        >>> len(law), sum(law.values())
        (8, Fraction(1, 1))
        """
        law: dict[tuple[tuple[int, ...], int, int], Fraction] = {}
        for level, allowed in enumerate(self.prefix_masks):
            every = [mask for mask in range(2**self.bits) if mask & ~allowed == 0]
            share = Fraction(1, self.levels * len(every) ** self._width)
            for masks in product(every, repeat=self._width):
                hashed = sum(((m & value).bit_count() & 1) << i for i, m in enumerate(masks))
                for answer in range(2**self._width):
                    kept = self.keep if 0 <= value < self.candidates else Fraction(0)
                    chance = (1 - kept) / 2**self._width + kept * (answer == hashed)
                    law[masks, answer, level] = share * chance
        return law

    @property
    def influence(self) -> Fraction:
        """The largest change of the difference of two candidates by any one message, in votes."""
        return 1 / self.gain

    @property
    def gain(self) -> Fraction:
        """How much more likely an answer agrees with its user's candidate than with another."""
        return self.keep * (1 - Fraction(1, 2**self._width))

    def variance(self, *, others: float, supporters: float = 0.0) -> float:
        """Return the variance of a candidate's estimated votes, given who names it.

        Parameters
        ----------
        others : float
            Users of the level who name another candidate, or none.
        supporters : float, default=0.0
            Users of the level who name this one.

        Examples
        --------
        >>> HashedResponse(candidates=2**14, epsilon=1.0).variance(others=1.0)
        3.69...
        """
        chance = 0.5**self._width
        agree = chance + float(self.gain)
        spread = others * chance * (1 - chance) + supporters * agree * (1 - agree)
        return spread / float(self.gain) ** 2


def candidates_of(values: NDArray[Any], *, wide: bool = False) -> NDArray[Any]:
    """Return candidates as an array with one axis; refuse other types and shapes.

    Those of more than 63 bits are Python integers; a value that is no integer counts as no
    candidate, because an error would reveal something about a user.

    >>> candidates_of(np.array([2**80, None, 0.5], dtype=object), wide=True).tolist()
    [1208925819614629174706176, -1, -1]
    """
    array = np.asarray(values)
    if wide and array.dtype == object and array.ndim == 1:
        whole = [int(v) if isinstance(v, (int, np.integer)) else -1 for v in array.tolist()]
        return np.array([*whole, None], dtype=object)[:-1]
    if array.dtype.kind not in "iu" or array.dtype == np.uint64 or array.ndim != 1:
        raise SchemaError(
            f"Expected one axis of int64 candidates, got dtype={array.dtype} with {array.ndim} "
            "axes."
        )
    return array.astype(object if wide else np.int64, copy=False)


def hashes(masks: NDArray[np.uint64], values: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return the parities of the masked values as the bits of one number; words are a last axis.

    >>> hashes(np.array([[3], [1]], dtype=np.uint64), np.array([1], dtype=np.uint64))
    array([3], dtype=uint8)
    """
    hashed = np.zeros(masks.shape[1], dtype=np.uint8)
    for i, mask in enumerate(masks):
        hashed |= parities(mask, values) << np.uint8(i)
    return hashed


def parities(mask: NDArray[np.uint64], values: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return the parity of each masked value; masks of several words have them as a second axis.

    >>> parities(np.array([[1, 1], [1, 0]], dtype=np.uint64), np.array([3, 1], dtype=np.uint64))
    array([0, 1], dtype=uint8)
    """
    ones = np.bitwise_count(mask & values)
    if mask.ndim == 2:
        ones = np.bitwise_xor.reduce(ones, axis=1)
    return np.asarray(ones & np.uint8(1), dtype=np.uint8)


def wide_field(table: NDArray[np.uint64], place: int, length: int) -> NDArray[np.uint64]:
    """Return ``length`` bits from bit ``place`` of each row as words, the lowest first.

    >>> wide_field(np.array([[0, 5, 1]], dtype=np.uint64), 64, 65)
    array([[5, 1]], dtype=uint64)
    """
    places = range(0, length, _WORD)
    return np.stack([_field(table, place + i, min(_WORD, length - i)) for i in places], axis=1)


def _field(table: NDArray[np.uint64], place: int, length: int) -> NDArray[np.uint64]:
    """Return ``length`` bits from bit ``place`` of each row of words, lowest first."""
    if length == 0:
        return np.zeros(len(table), dtype=np.uint64)
    word, shift = divmod(place, _WORD)
    found = table[:, word] >> np.uint64(shift)
    if shift + length > _WORD:
        found = found | table[:, word + 1] << np.uint64(_WORD - shift)
    return found & np.uint64(2**length - 1)
