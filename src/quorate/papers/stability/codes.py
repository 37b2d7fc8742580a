"""Hypotheses as integers, so that users can vote for them (G10).

A code maps every rule that a learner can return to a number below a public size, and back. Equal
rules have equal numbers. A number without a rule is decoded as "always 0".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import combinations, product

from quorate import _validate
from quorate.learners.concepts.base import Concept, Constant, feature_names
from quorate.learners.concepts.boolean.conjunctions import Literals
from quorate.learners.concepts.boolean.decision_lists import DecisionList
from quorate.learners.concepts.numeric.halfspaces import Halfspace

__all__ = ["Code", "DecisionListCode", "HalfspaceCode", "LiteralsCode"]


class Code(ABC):
    """Numbers for the rules of one kind."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The numbers of the rules are smaller than this."""

    @abstractmethod
    def encode(self, concept: Concept) -> int:
        """Return the number of a rule."""

    @abstractmethod
    def decode(self, key: int) -> Concept:
        """Return the rule with this number."""


def _digits(key: int, base: int) -> list[int]:
    digits = []
    while key:
        key, digit = divmod(key, base)
        digits.append(digit)
    return digits


@dataclass(frozen=True)
class DecisionListCode(Code):
    """Decision lists of at most ``length`` rules over ``features`` Boolean features.

    A list is encoded as its default and, beginning at its end, digits in a base, with one digit per
    rule.

    >>> code = DecisionListCode(4, length=2)
    >>> rule = DecisionList(rules=((3, True, 1), (0, False, 0)), default=1, names=tuple("abcd"))
    >>> key = code.encode(rule)
    >>> key < code.size, code.decode(key).rules == rule.rules
    (True, True)
    """

    features: int
    length: int = 5

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features, length=self.length)

    @property
    def size(self) -> int:
        """The number of defaults, two, times the number of digit sequences."""
        return int(2 * (4 * self.features + 1) ** self.length)

    def encode(self, concept: Concept) -> int:
        """Return the number of a list or a constant."""
        if isinstance(concept, Constant):
            return concept.label
        if not isinstance(concept, DecisionList) or len(concept.rules) > self.length:
            return 0
        key = 0
        for feature, value, label in reversed(concept.rules):
            key = key * (4 * self.features + 1) + 1 + 4 * feature + 2 * value + label
        return 2 * key + concept.default

    def decode(self, key: int) -> Concept:
        """Return the decision list of a number; a digit 0 means no rule."""
        names = feature_names(None, n_features=self.features)
        digits = [digit - 1 for digit in _digits(key >> 1, 4 * self.features + 1) if digit]
        rules = tuple((d >> 2, bool(d & 2), d & 1) for d in digits)
        if not rules:
            return Constant(key & 1)
        return DecisionList(rules=rules, default=key & 1, names=names)


@dataclass(frozen=True)
class LiteralsCode(Code):
    """Conjunctions (or disjunctions) of literals: each feature is free, positive or negated.

    >>> code = LiteralsCode(3)
    >>> rule = Literals(literals=((0, True), (2, False)), any_of=False, names=("x0", "x1", "x2"))
    >>> code.decode(code.encode(rule)) == rule
    True
    """

    features: int
    any_of: bool = False

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features)

    @property
    def size(self) -> int:
        """Three states per feature, plus one constant that is not a conjunction."""
        return int(3**self.features) + 1

    def encode(self, concept: Concept) -> int:
        """Return the number of a conjunction or a constant."""
        if isinstance(concept, Constant):
            return 0 if concept.label != self.any_of else self.size - 1
        if not isinstance(concept, Literals):
            return 0
        # Both literals of a feature make the other constant.
        if len({feature for feature, _ in concept.literals}) < len(concept.literals):
            return self.size - 1
        return sum(int((1 if wanted else 2) * 3**feature) for feature, wanted in concept.literals)

    def decode(self, key: int) -> Concept:
        """Return the conjunction of a number."""
        if key == self.size - 1:
            return Constant(int(self.any_of))
        literals = tuple(
            (feature, digit == 1) for feature, digit in enumerate(_digits(key, 3)) if digit
        )
        if not literals:
            return Constant(int(not self.any_of))
        names = feature_names(None, n_features=self.features)
        return Literals(literals=literals, any_of=self.any_of, names=names)


@dataclass(frozen=True)
class HalfspaceCode(Code):
    """Halfspaces whose offset and weights are multiples of ``resolution`` up to ``largest``.

    >>> code = HalfspaceCode(2, resolution=0.25)
    >>> rule = Halfspace(weights=(0.5, -0.25), offset=1.0, names=("x0", "x1"))
    >>> code.decode(code.encode(rule)) == rule
    True
    """

    features: int
    resolution: float = 0.125
    largest: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features)
        _validate.positive(resolution=self.resolution, largest=self.largest)

    @property
    def levels(self) -> int:
        """Number of multiples between minus and plus ``largest``."""
        return int(2 * round(self.largest / self.resolution) + 1)

    @property
    def size(self) -> int:
        """One level for each weight and the offset."""
        return int(self.levels ** (self.features + 1))

    def encode(self, concept: Concept) -> int:
        """Return the number of a halfspace."""
        if not isinstance(concept, Halfspace):
            return 0
        key, half = 0, self.levels // 2
        for number in reversed((concept.offset, *concept.weights)):
            digit = min(max(round(number / self.resolution), -half), half) + half
            key = key * self.levels + digit
        return key

    def decode(self, key: int) -> Concept:
        """Return the halfspace of a number."""
        digits = _digits(key, self.levels)
        digits += [0] * (self.features + 1 - len(digits))
        numbers = [(digit - self.levels // 2) * self.resolution + 0.0 for digit in digits]
        names = feature_names(None, n_features=self.features)
        return Halfspace(weights=tuple(numbers[1:]), offset=numbers[0], names=names)


def conjunctions_up_to(features: int, width: int) -> tuple[tuple[tuple[int, bool], ...], ...]:
    """List the conjunctions of one to ``width`` literals of different features.

    >>> len(conjunctions_up_to(3, 1)), len(conjunctions_up_to(3, 2))
    (6, 18)
    """
    return tuple(
        tuple(zip(chosen, values, strict=True))
        for held in range(1, width + 1)
        for chosen in combinations(range(features), held)
        for values in product((True, False), repeat=held)
    )
