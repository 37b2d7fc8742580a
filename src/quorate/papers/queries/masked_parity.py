r"""Masked parity by statistical queries: two rounds learn it, one round cannot (K9).

The first round finds the secret from the inputs that reveal it. The second round asks one parity
query, which depends on the secret. A learner of one round has to guess the parity beforehand.
Queries of tolerance :math:`2^{-d/3}` distinguish at most :math:`2^{2d/3-1}` of the :math:`2^{d+1}`
rules each, so an oracle within its tolerance can hide the flip of nearly all of them:
:class:`BlindingOracle`. [1]_

References
----------
.. [1] Kasiviswanathan et al. What can we learn privately? SIAM J. Comput. 40(3), 2011, Section 5.3,
   Theorem 5.16 and Proposition 5.18.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.public_randomness import public_generator
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept
from quorate.learners.concepts.boolean.booleans import walsh
from quorate.learners.concepts.masked_parities import MaskedParity, masked_inputs, split_masked
from quorate.papers.queries.statistical import (
    NonAdaptive,
    QueryAlgorithm,
    QueryOracle,
    StatisticalQuery,
)

__all__ = [
    "BlindingOracle",
    "GuessingMaskedParityQueries",
    "MaskedParityQueries",
    "WeakMaskedParityQueries",
    "likely_secrets",
    "visible_rules",
]

Floats = NDArray[np.float64]

# Secrets differ from the likeliest one in some of this many least certain bits.
_UNCERTAIN_BITS = 10


@dataclass(frozen=True)
class TellsBit:
    """Bit j of the secret if a record reveals it: 1 or 0, or signed: -1 or +1; else 0."""

    features: int
    bit: int
    signed: bool
    row_wise: ClassVar[bool] = True

    def __call__(self, X: Floats, y: Floats) -> Floats:
        _, index, mask = split_masked(X, features=self.features)
        relevant = mask & (index == self.bit)
        if self.signed:
            return np.where(relevant, np.where(y == 1, -1.0, 1.0), 0.0)
        return np.where(relevant & (y == 1), 1.0, 0.0)


@dataclass(frozen=True)
class MissesParity:
    """Whether a record with b = 0 has another label than the parity of a secret."""

    features: int
    secret: int
    row_wise: ClassVar[bool] = True

    def __call__(self, X: Floats, y: Floats) -> NDArray[np.bool_]:
        x, _, mask = split_masked(X, features=self.features)
        chosen = [j for j in range(self.features) if self.secret >> j & 1]
        odd = x[:, chosen].sum(axis=1, dtype=np.int64) % 2 == 1
        missed: NDArray[np.bool_] = ~mask & (odd != (y == 1))
        return missed


def likely_secrets(margins: Floats, count: int) -> list[int]:
    """Return the most likely secrets, given for each bit a number that is positive if the bit is 1.

    They are the secrets whose bits disagree with the signs of these numbers by the smallest total
    amount.

    >>> [bin(secret) for secret in likely_secrets(np.array([0.5, -0.1, -0.9]), 3)]
    ['0b1', '0b11', '0b0']
    """
    sizes = np.abs(margins)
    least = np.argsort(sizes, kind="stable")[:_UNCERTAIN_BITS]
    best = sum(1 << j for j in np.flatnonzero(margins > 0).tolist())
    flips = [(0.0, 0)]
    for bit in least.tolist():
        flips += [(cost + sizes[bit], flip | 1 << bit) for cost, flip in flips]
    ordered = sorted(flips, key=lambda each: each[0])
    return [best ^ flip for _, flip in islice(ordered, count)]


def _bit_queries(features: int, *, signed: bool) -> tuple[StatisticalQuery, ...]:
    # The means are r_j / 2d, or +-1 / 2d: half their distance is 1 / 4d, or 1 / 2d.
    return tuple(
        StatisticalQuery(
            function=TellsBit(features, bit, signed),
            tolerance=1 / ((2 if signed else 4) * features + 1),
            low=-1.0 if signed else 0.0,
            boolean=not signed,
            name=f"bit {bit}",
        )
        for bit in range(features)
    )


def _parity_query(features: int, secret: int, tolerance: float) -> StatisticalQuery:
    return StatisticalQuery(
        function=MissesParity(features, secret),
        tolerance=tolerance,
        boolean=True,
        name=f"parity of {secret:b}",
    )


def _margins(answers: Floats, features: int, *, signed: bool) -> Floats:
    return -answers if signed else answers - 1 / (4 * features)


@dataclass(frozen=True)
class MaskedParityQueries(QueryAlgorithm):
    r"""Learn a masked parity exactly, in two rounds of d + 1 queries (Proposition 5.18 of K).

    Round one queries for each bit "i = j, b = 1 and the label is 1", with mean :math:`r_j/(2d)`.
    Round two queries "b = 0 and the label is not the parity of the secret found", with mean a/2.

    Parameters
    ----------
    features : int
        Number d of bits.
    signed : bool, default=False
        Use the values +1, -1 and 0 instead of 0 and 1 in round one. This doubles the distance, for
        oracles that accept values in [-1, 1].
    candidates : int, default=1
        Query this many of the most likely secrets in round two. The right one can be recognised,
        because the answers of all others are 1/4. So errors of a noisy round one are tolerated.

    Examples
    --------
    >>> from quorate.papers.queries.oracles import ExactOracle
    >>> from quorate.papers.queries.populations import Population
    >>> rule = MaskedParity(4, secret=0b1010, flip=1)
    >>> oracle = ExactOracle(Population.uniform(masked_inputs(4), rule))
    >>> MaskedParityQueries(4).run(oracle) == rule, oracle.n_rounds, oracle.n_queries
    (True, 2, 5)
    """

    features: int
    signed: bool = False
    candidates: int = 1

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features, candidates=self.candidates)

    @property
    def n_features(self) -> int:
        """Number of columns: the bits, the index and the mask."""
        return self.features + 2

    @property
    def rounds(self) -> tuple[int, ...]:
        """One query for each bit, then one for each candidate."""
        return self.features, self.candidates

    def run(self, oracle: QueryOracle) -> Concept:
        """Make two rounds of queries."""
        answers = oracle.answer(_bit_queries(self.features, signed=self.signed))
        margins = _margins(answers, self.features, signed=self.signed)
        secrets = likely_secrets(margins, self.candidates)
        # One candidate: is it 0 or 1/2? Several: which one is not 1/4?
        tolerance = 1 / 5 if self.candidates == 1 else 1 / 9
        found = oracle.answer([_parity_query(self.features, s, tolerance) for s in secrets])
        best = int(np.argmax(np.abs(found - 0.25)))
        return MaskedParity(self.features, secrets[best], int(found[best] > 0.25))


@dataclass(frozen=True)
class WeakMaskedParityQueries(NonAdaptive):
    """Learn the secret of a masked parity in one round, but not its flip: the error is exactly 1/4.

    >>> from quorate.papers.queries.oracles import ExactOracle
    >>> from quorate.papers.queries.populations import Population
    >>> population = Population.uniform(masked_inputs(4), MaskedParity(4, secret=5, flip=1))
    >>> population.error(WeakMaskedParityQueries(4).run(ExactOracle(population)))
    0.25
    """

    features: int
    signed: bool = False

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features)

    @property
    def n_features(self) -> int:
        """Number of columns: the bits, the index and the mask."""
        return self.features + 2

    def queries(self) -> tuple[StatisticalQuery, ...]:
        """Query each bit."""
        return _bit_queries(self.features, signed=self.signed)

    def conclude(self, answers: Floats) -> Concept:
        """Return the rule without a flip."""
        margins = _margins(answers, self.features, signed=self.signed)
        return MaskedParity(self.features, likely_secrets(margins, 1)[0], None)


@dataclass(frozen=True)
class GuessingMaskedParityQueries(NonAdaptive):
    """Guess some parities beforehand; one of them may be the secret.

    Parameters
    ----------
    features : int
    guesses : int
        Number of different secrets to guess.
    random_state : int, default=0
        Public seed of the guesses.

    Examples
    --------
    >>> from quorate.papers.queries.oracles import ExactOracle
    >>> from quorate.papers.queries.populations import Population
    >>> population = Population.uniform(masked_inputs(4), MaskedParity(4, secret=5, flip=1))
    >>> population.error(GuessingMaskedParityQueries(4, guesses=16).run(ExactOracle(population)))
    0.0
    """

    features: int
    guesses: int
    random_state: int = 0

    def __post_init__(self) -> None:
        _validate.positive_integer(features=self.features, guesses=self.guesses)
        if self.guesses > 2**self.features:
            raise ParameterError(f"Expected at most 2**{self.features} guesses.")

    @property
    def n_features(self) -> int:
        """Number of columns: the bits, the index and the mask."""
        return self.features + 2

    @cached_property
    def _guessed(self) -> list[int]:
        order = public_generator(self.random_state).permutation(2**self.features)
        return [int(secret) for secret in order[: self.guesses]]

    def queries(self) -> tuple[StatisticalQuery, ...]:
        """Query each bit and each guess."""
        guessed = [_parity_query(self.features, secret, 1 / 5) for secret in self._guessed]
        return (*_bit_queries(self.features, signed=False), *guessed)

    def conclude(self, answers: Floats) -> Concept:
        """Return the rule, without a flip if the secret was not guessed."""
        margins = _margins(answers[: self.features], self.features, signed=False)
        secret = likely_secrets(margins, 1)[0]
        flip = None
        if secret in self._guessed:
            answer = answers[self.features + self._guessed.index(secret)]
            flip = int(answer > 0.25)
        return MaskedParity(self.features, secret, flip)


class BlindingOracle(QueryOracle):
    r"""Answer within the tolerance, and hide the flip if this is possible (Theorem 5.16 of K).

    Write the mean of a query g under the rule c, with values :math:`\pm 1`, as
    :math:`C_g + \langle f_g, c \rangle` with :math:`f_g = (g(\cdot, 1) - g(\cdot, -1))/2`. The part
    with b = 0 is left out whenever it is smaller than the tolerance; otherwise the true answer is
    given. Then the answers do not depend on the flip, and no algorithm can recover it.

    Parameters
    ----------
    rule : MaskedParity

    Examples
    --------
    >>> rule = MaskedParity(4, secret=0b1010, flip=1)
    >>> MaskedParityQueries(4).run(BlindingOracle(rule)) == rule
    True
    >>> print(GuessingMaskedParityQueries(4, guesses=1).run(BlindingOracle(rule)))
    Predict 0 where b = 0, and whether i is in (x1, x3) where b = 1.
    """

    def __init__(self, rule: MaskedParity) -> None:
        super().__init__(rule.features + 2)
        self._inputs = masked_inputs(rule.features)
        # In signs, label 1 is -1.
        self._signs = 1.0 - 2.0 * rule.predict(self._inputs)
        self._masked = split_masked(self._inputs, features=rule.features)[2]

    def _answer(self, queries: tuple[StatisticalQuery, ...]) -> Floats:
        return np.array([self._one(query) for query in queries])

    def _one(self, query: StatisticalQuery) -> float:
        plus = query.on_records(self._inputs, np.zeros(len(self._inputs)))
        minus = query.on_records(self._inputs, np.ones(len(self._inputs)))
        correlations = (plus - minus) / 2 * self._signs
        label_free = float(np.mean((plus + minus) / 2))
        hidden = float(np.sum(correlations[~self._masked]) / len(correlations))
        given = float(np.sum(correlations[self._masked]) / len(correlations))
        return label_free + given + (0.0 if abs(hidden) < query.tolerance else hidden)


def visible_rules(query: StatisticalQuery, features: int) -> list[tuple[int, int]]:
    r"""Return the (secret, flip) of the rules that a query reveals in spite of the blinding oracle.

    By Parseval a query with values in [-1, 1] reveals at most :math:`\tau^{-2}/2` secrets, both
    flips of each: at :math:`\tau = 2^{-d/3}` at most a share of :math:`2^{-d/3-2}` of all rules.

    >>> visible_rules(_parity_query(4, 0b11, 1 / 5), 4)
    [(3, 0), (3, 1)]
    """
    inputs = masked_inputs(features)
    plus = query.on_records(inputs, np.zeros(len(inputs)))
    minus = query.on_records(inputs, np.ones(len(inputs)))
    half = ((plus - minus) / 2)[: len(inputs) // 2].reshape(features, 2**features)
    # Summed over i, in units that keep whole numbers whole.
    spectrum = walsh_of(half.sum(axis=0)) / len(inputs)
    seen = np.flatnonzero(np.abs(spectrum) >= query.tolerance)
    return [(int(secret), flip) for secret in seen for flip in (0, 1)]


def walsh_of(values: Floats) -> Floats:
    """Return the sums of real ``values`` with the signs of all parities, to 40 binary digits.

    >>> walsh_of(np.array([1.0, 0.5]))
    array([1.5, 0.5])
    """
    scaled = np.round(values * 2.0**30).astype(np.int64)
    return np.asarray(walsh(scaled[np.newaxis, :])[0] / 2.0**30)
