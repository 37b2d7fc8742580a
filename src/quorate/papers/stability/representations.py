r"""Small random classes that represent large ones (G2).

A *probabilistic representation* of a class C is a random finite class H. For every target c in C
and every distribution of records, H contains a hypothesis of error at most :math:`\alpha`, except
with probability :math:`\beta` over the draw of H. The draw is public and made before any data are
seen. The cost of pure privacy depends on its size, not on that of C. [1]_

Sizes are stated in bits (log2, as in [1]_) and in nats (ln, as in papers on pure learning).

References
----------
.. [1] Beimel, Nissim, Stemmer. Characterizing the sample complexity of pure private learners. JMLR
   2019. Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling. NeurIPS
   2021, Definition 9 and Lemma 10.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept, ConceptClass, LabelledRecords, as_features
from quorate.learners.concepts.numeric.thresholds import OrderedDomain
from quorate.papers.stability.shared_seed import SharedSeed

__all__ = [
    "LARGEST_DRAWN",
    "HashedPoints",
    "ListedConcepts",
    "Majorities",
    "Majority",
    "PointCells",
    "Representation",
    "Union",
    "WholeClass",
]

LARGEST_DRAWN = 2**20
"""Larger classes are not drawn."""


class Representation(ABC):
    """A public random class; subclasses give ``size``, ``alpha``, ``beta`` and ``draw``."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of hypotheses of a draw, including equal ones."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of columns of ``X``."""

    @property
    @abstractmethod
    def alpha(self) -> float:
        """The error of the best hypothesis of a draw."""

    @property
    @abstractmethod
    def beta(self) -> float:
        """The probability of a draw without such a hypothesis."""

    @abstractmethod
    def draw(self, seed: SharedSeed) -> ConceptClass:
        """Return the class drawn with this seed."""

    @property
    def caveat(self) -> str | None:
        """Why a guarantee for this class would only be idealized; None if it is exact."""
        return None

    @property
    def bits(self) -> float:
        """The size as log2."""
        return math.log2(self.size)

    @property
    def nats(self) -> float:
        """The size as ln."""
        return math.log(self.size)

    def boosted(self, *, beta: float) -> Representation:
        r"""Return a representation that fails with probability at most ``beta``.

        It is the union of :math:`k = \lceil \ln(1/\beta') / \ln(1/\beta) \rceil` draws.

        >>> points = HashedPoints(2**32, alpha=0.25, beta=0.25)
        >>> points.boosted(beta=0.01).size
        64
        """
        _validate.probability(beta=beta)
        if self.beta <= beta:
            return self
        return Union(self, math.ceil(math.log(beta) / math.log(self.beta) - 1e-12))

    def sharpened(self, *, alpha: float, beta: float) -> Representation:
        r"""Return a representation of error ``alpha`` from this one of error at most 1/4.

        It consists of majorities of one hypothesis from each of :math:`T = \lceil 8 \ln(1/\alpha)
        \rceil` draws, each boosted to :math:`\beta/T`: boosting has an edge of 1/4, and its
        majority has an error of at most :math:`e^{-T/8}`.
        """
        _validate.probability(alpha=alpha, beta=beta)
        if self.alpha <= alpha:
            return self.boosted(beta=beta)
        if self.alpha > 0.25:
            raise ParameterError(
                f"Expected a representation of error at most 1/4, got alpha={self.alpha!r}."
            )
        rounds = math.ceil(8 * math.log(1 / alpha))
        return Majorities(self.boosted(beta=beta / rounds), rounds)


@dataclass(frozen=True)
class WholeClass(Representation):
    """A class that represents itself.

    >>> from quorate.learners.concepts import Thresholds
    >>> WholeClass(Thresholds(0, 6)).bits
    3.0
    """

    concepts: ConceptClass

    @property
    def caveat(self) -> str | None:
        """The caveat of the class."""
        return self.concepts.caveat

    @property
    def size(self) -> int:
        """The size of the class."""
        return self.concepts.size

    @property
    def n_features(self) -> int:
        """The number of columns of ``X``."""
        return self.concepts.n_features

    @property
    def alpha(self) -> float:
        """Zero: a class represents itself without error."""
        return 0.0

    @property
    def beta(self) -> float:
        """Nothing fails."""
        return 0.0

    def draw(self, seed: SharedSeed) -> ConceptClass:
        """Return the class, for any seed."""
        del seed
        return self.concepts


@dataclass(frozen=True)
class InHashCell(Concept):
    """Predict 1 if the point of the domain falls into one cell of a hash.

    >>> cells = HashedPoints(8, alpha=0.5, beta=0.5).draw(SharedSeed(0))
    >>> print(cells.concept(2))
    Predict 1 if the hash of x is 2 (of 4), else 0.
    """

    cells: PointCells
    cell: int

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``, which has one column."""
        place = self.cells.cell_of(as_features(X, n_features=1)[:, 0])
        here: NDArray[np.bool_] = place == self.cell
        return here.astype(np.int64)

    def __str__(self) -> str:
        return f"Predict 1 if the hash of x is {self.cell} (of {self.cells.size}), else 0."


@dataclass(frozen=True)
class PointCells(ConceptClass):
    """The rules "x falls into cell j" for a linear hash of the points of a domain.

    Output bit i is the parity of the bits of x under mask i, plus a constant bit. For two different
    points all pairs of cells are equally likely over the draw of masks and constant.

    Parameters
    ----------
    domain : OrderedDomain
    masks : tuple of int
        One mask per output bit.
    constant : int
    """

    domain: OrderedDomain
    masks: tuple[int, ...]
    constant: int

    @property
    def size(self) -> int:
        """The number of cells."""
        return 1 << len(self.masks)

    @property
    def n_features(self) -> int:
        """One column."""
        return 1

    def concept(self, index: int) -> InHashCell:
        """Return the rule "x falls into cell number ``index``"."""
        return InHashCell(self, self._check_index(index))

    def cell_of(self, values: NDArray[np.generic]) -> NDArray[np.int64]:
        """Return the cell of each value."""
        place = self.domain.position(values)
        cells = np.full(len(place), self.constant, dtype=np.int64)
        for bit, mask in enumerate(self.masks):
            parity = np.bitwise_count(place & np.uint64(mask)) & 1
            cells ^= parity.astype(np.int64) << bit
        return cells

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        votes = records.count_by_cell(self.cell_of(records.X[:, 0]), n_cells=self.size)
        return records.positives()[:, np.newaxis] - votes


@dataclass(frozen=True)
class HashedPoints(Representation):
    """Point functions on a domain of any size, represented by a few cells.

    A random hash maps the target point to one of M >= 1 / (alpha beta) cells. The other points of
    its cell have mass at most 1/M on average, hence at most alpha except with probability beta
    (Markov). At (1/4, 1/4) there are 16 hypotheses for every domain.

    Parameters
    ----------
    points : int
        Number of points of the domain, at most 2^63.
    alpha, beta : float, default=0.25
    lower : int, default=0
        The first point.

    Examples
    --------
    >>> representation = HashedPoints(2**32)
    >>> representation.size, representation.bits, round(representation.nats, 3)
    (16, 4.0, 2.773)
    """

    points: int
    alpha: float = 0.25
    beta: float = 0.25
    lower: int = 0

    def __post_init__(self) -> None:
        _validate.probability(alpha=self.alpha, beta=self.beta)
        _ = self.domain
        if self.size > LARGEST_DRAWN:
            raise ParameterError("Expected alpha x beta of at least 2^-20.")

    @cached_property
    def domain(self) -> OrderedDomain:
        """The points."""
        return OrderedDomain(lower=self.lower, points=self.points)

    @property
    def size(self) -> int:
        """The smallest power of two that is at least 1 / (alpha beta)."""
        return 1 << max(0, math.ceil(math.log2(1 / (self.alpha * self.beta)) - 1e-12))

    @property
    def n_features(self) -> int:
        """One column."""
        return 1

    def draw(self, seed: SharedSeed) -> PointCells:
        """Return the cells of a random hash."""
        width = self.size.bit_length() - 1
        words = seed.words("hash", np.arange(width + 1))
        masks = tuple(int(word) for word in words[:width])
        return PointCells(self.domain, masks, int(words[width]) % self.size)


@dataclass(frozen=True)
class ListedConcepts(ConceptClass):
    """Several classes, concatenated to one.

    >>> from quorate.learners.concepts import Thresholds
    >>> ListedConcepts((Thresholds(0, 3), Thresholds(5, 9))).size
    11
    """

    parts: tuple[ConceptClass, ...]

    @property
    def keeps_users_apart(self) -> bool:
        """Whether all parts keep users apart."""
        return super().keeps_users_apart and all(each.keeps_users_apart for each in self.parts)

    @property
    def size(self) -> int:
        """The sum of the sizes."""
        return sum(part.size for part in self.parts)

    @property
    def n_features(self) -> int:
        """The number of columns of ``X``."""
        return self.parts[0].n_features

    def concept(self, index: int) -> Concept:
        """Return hypothesis number ``index`` of the concatenated classes."""
        left = self._check_index(index)
        for part in self.parts:
            if left < part.size:
                return part.concept(left)
            left -= part.size
        raise AssertionError  # pragma: no cover - the index was checked

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        return np.concatenate([part._count_mistakes(records) for part in self.parts], axis=1)


@dataclass(frozen=True)
class Union(Representation):
    """The union of several draws: it fails only if all of them do.

    >>> Union(HashedPoints(100), 3).beta
    0.015625
    """

    part: Representation
    draws: int

    def __post_init__(self) -> None:
        _validate.positive_integer(draws=self.draws)

    @property
    def caveat(self) -> str | None:
        """The caveat of the underlying representation."""
        return self.part.caveat

    @property
    def size(self) -> int:
        """The size of one draw times the number of draws."""
        return self.draws * self.part.size

    @property
    def n_features(self) -> int:
        """The number of columns of ``X``."""
        return self.part.n_features

    @property
    def alpha(self) -> float:
        """The error of one draw."""
        return self.part.alpha

    @property
    def beta(self) -> float:
        """The probability that all draws fail."""
        return self.part.beta**self.draws

    def draw(self, seed: SharedSeed) -> ConceptClass:
        """Return all draws, concatenated."""
        draws = (self.part.draw(seed.child(f"draw {i}")) for i in range(self.draws))
        return ListedConcepts(tuple(draws))


@dataclass(frozen=True)
class Majority(Concept):
    """Predict the majority vote of some rules; a tie is 0.

    >>> from quorate.learners.concepts import Constant
    >>> print(Majority((Constant(1), Constant(0), Constant(1))))
    Predict what most of 3 rules predict.
    """

    rules: tuple[Concept, ...]

    @property
    def keeps_users_apart(self) -> bool:
        """Whether all rules keep users apart."""
        return super().keeps_users_apart and all(each.keeps_users_apart for each in self.rules)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``."""
        ones = np.sum([rule.predict(X) for rule in self.rules], axis=0)
        most: NDArray[np.bool_] = 2 * ones > len(self.rules)
        return most.astype(np.int64)

    def __str__(self) -> str:
        return f"Predict what most of {len(self.rules)} rules predict."


@dataclass(frozen=True)
class Majorities(Representation):
    """Majorities of one hypothesis from each of several draws (Lemma 10).

    It is enumerated, so more than 2^20 hypotheses are refused; ``bits`` still returns its size.

    >>> boosted = HashedPoints(2**32).sharpened(alpha=0.1, beta=0.1)
    >>> boosted.rounds, boosted.bits > 100
    (19, True)
    """

    part: Representation
    rounds: int

    def __post_init__(self) -> None:
        _validate.positive_integer(rounds=self.rounds)

    @property
    def caveat(self) -> str | None:
        """The caveat of the underlying representation."""
        return self.part.caveat

    @property
    def size(self) -> int:
        """The number of ways to choose one hypothesis from each draw."""
        return int(self.part.size**self.rounds)

    @property
    def n_features(self) -> int:
        """The number of columns of ``X``."""
        return self.part.n_features

    @property
    def alpha(self) -> float:
        """The error after boosting with an edge of 1/4."""
        return math.exp(-self.rounds / 8)

    @property
    def beta(self) -> float:
        """The probability that some draw fails."""
        return min(1.0, self.rounds * self.part.beta)

    def draw(self, seed: SharedSeed) -> ConceptClass:
        """Return all majorities, in the order of their first rules."""
        if self.size > LARGEST_DRAWN:
            raise ParameterError(
                f"Expected at most 2^20 hypotheses, got 2^{self.bits:.1f}: majorities of so many "
                "draws cannot be listed. Use a larger alpha."
            )
        draws = [self.part.draw(seed.child(f"round {i}")) for i in range(self.rounds)]
        return _AllMajorities(tuple(draws))


@dataclass(frozen=True)
class _AllMajorities(ConceptClass):
    """Majorities over all choices of one hypothesis per draw."""

    draws: tuple[ConceptClass, ...]

    @property
    def keeps_users_apart(self) -> bool:
        return super().keeps_users_apart and all(each.keeps_users_apart for each in self.draws)

    @property
    def size(self) -> int:
        return int(math.prod(part.size for part in self.draws))

    @property
    def n_features(self) -> int:
        return self.draws[0].n_features

    def concept(self, index: int) -> Majority:
        """Return the majority for one choice."""
        left, rules = self._check_index(index), []
        for part in reversed(self.draws):
            left, place = divmod(left, part.size)
            rules.append(part.concept(place))
        return Majority(tuple(reversed(rules)))

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        predictions = [part.predictions(records.X).astype(np.int64) for part in self.draws]
        mistakes = np.zeros((records.n_users, self.size), dtype=np.int64)
        for index, choice in enumerate(product(*(range(part.size) for part in self.draws))):
            ones = sum(p[:, place] for p, place in zip(predictions, choice, strict=True))
            wrong = (2 * ones > len(self.draws)) != records.y
            mistakes[:, index] = np.bincount(records.user[wrong], minlength=records.n_users)
        return mistakes
