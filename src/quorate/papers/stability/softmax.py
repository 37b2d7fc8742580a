r"""A softmax choice by the error of every hypothesis, with shared Gumbel numbers (G6).

All users draw the same finite class from a probabilistic representation. Each user chooses the
hypothesis with the largest Gumbel number minus :math:`\gamma` times its error on the user's
records. Errors of different users are close to each other, hence the weights are close, and most
users make the same choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept, ConceptClass, OrderedConceptClass
from quorate.papers.stability.correlated_sampling import choose_best
from quorate.papers.stability.gumbel_tree import GumbelTree, staircases
from quorate.papers.stability.representations import Representation, WholeClass
from quorate.papers.stability.rules import Keys, StableRule, key_array
from quorate.papers.stability.shared_seed import SharedSeed

__all__ = ["SoftmaxRule", "published_records", "published_sharpness"]

LISTED = 2**16
"""Ordered classes beyond this size are searched by a tree and not listed; public."""


@dataclass(frozen=True)
class SoftmaxRule(StableRule):
    r"""Choose by weights :math:`e^{-\gamma\,\mathrm{err}(h)}` and shared Gumbel numbers.

    The rule itself is not private; the private selection after it is charged.

    Parameters
    ----------
    concepts : ConceptClass or Representation
        The hypotheses, or a random class of few hypotheses that represents them.
    sharpness : float, default=8.0
        :math:`\gamma = c\sqrt{m}` for a user of m records. A larger value is more accurate, but
        users agree less often. Infinity allows only hypotheses of smallest error, with shared
        tie-breaking.
    gamma : float, optional
        :math:`\gamma` itself, the same for all users, instead of ``sharpness``.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> x = np.tile(np.arange(20), 3)
    >>> users = UserData.from_arrays(x[:, None], x >= 7, users=np.repeat([1, 2, 3], 20))
    >>> rule = SoftmaxRule(Thresholds(0, 19), sharpness=math.inf)
    >>> rule.decide(users, SharedSeed(1))
    array([7, 7, 7])
    """

    concepts: ConceptClass | Representation
    sharpness: float = 8.0
    gamma: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.concepts, ConceptClass | Representation):
            raise ParameterError(
                f"Expected a ConceptClass or a Representation, got {type(self.concepts).__name__}."
            )
        for name in ("sharpness", "gamma"):
            value = getattr(self, name)
            if value is not None and value != math.inf:
                _validate.positive(**{name: value})

    @property
    def caveat(self) -> str | None:
        """The caveat of the hypotheses."""
        return self.concepts.caveat

    @property
    def representation(self) -> Representation:
        """The representation from which the shared class is drawn."""
        if isinstance(self.concepts, Representation):
            return self.concepts
        return WholeClass(self.concepts)

    @property
    def size(self) -> int:
        """The number of hypotheses of the shared class."""
        return self.representation.size

    @property
    def n_features(self) -> int:
        """The number of columns of ``X``."""
        return self.representation.n_features

    def concept(self, key: int, seed: SharedSeed) -> Concept:
        """Return hypothesis number ``key`` of the class that the seed draws."""
        return self.representation.draw(seed).concept(key)

    def decide(self, users: UserData, seed: SharedSeed) -> Keys:
        """Return the hypothesis of each user."""
        drawn = self.representation.draw(seed)
        rates = self._rates(users)
        if isinstance(drawn, OrderedConceptClass) and drawn.size > LISTED:
            tree = GumbelTree(drawn.size, seed)
            steps = staircases(drawn.events_of(users))
            found = [tree.choose(each, rate=r) for each, r in zip(steps, rates, strict=True)]
            return key_array(found, size=drawn.size)
        ids = np.arange(drawn.size)
        keys = np.zeros(users.n_users, dtype=np.int64)
        gumbels = None if self._is_sharp else seed.gumbels("choice", ids)
        for block, mistakes in drawn.mistakes_in_batches(users):
            if gumbels is None:
                keys[block] = choose_best(mistakes, ids, seed)
            else:
                keys[block] = _largest(mistakes, rates[block], gumbels)
        return keys

    @property
    def _is_sharp(self) -> bool:
        return (self.sharpness if self.gamma is None else self.gamma) == math.inf

    def _rates(self, users: UserData) -> NDArray[np.float64]:
        """Return gamma / m for each user: the cost of one mistake."""
        records = np.maximum(users.record_counts(), 1).astype(np.float64)
        if self._is_sharp:
            return np.full(users.n_users, math.inf)
        if self.gamma is not None:
            return np.asarray(self.gamma / records)
        return np.asarray(self.sharpness / np.sqrt(records))


def _largest(
    mistakes: NDArray[Any], rates: NDArray[np.float64], gumbels: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the index of the largest Gumbel number minus rate x mistakes in each row."""
    # Float32 would be faster and would make ties; sums of one row never meet another row.
    scores = mistakes * -rates[:, np.newaxis]
    scores += gumbels
    best: NDArray[np.int64] = np.argmax(scores, axis=1)
    return best


def published_sharpness(*, log2_size: float, alpha: float, beta: float) -> float:
    """Return the gamma of Theorem 26: 2 (d + ln(1/beta) + 10) / alpha for d bits.

    >>> round(published_sharpness(log2_size=8, alpha=0.1, beta=0.1))
    406
    """
    _validate.probability(alpha=alpha, beta=beta)
    return 2.0 * (log2_size + math.log(1.0 / beta) + 10.0) / alpha


def published_records(*, log2_size: float, alpha: float, beta: float) -> float:
    """Return the records a user needs by Theorem 26: 10^6 gamma^2 d ln(1/beta) / beta^4.

    >>> published_records(log2_size=8, alpha=0.1, beta=0.1) > 1e16
    True
    """
    gamma = published_sharpness(log2_size=log2_size, alpha=alpha, beta=beta)
    return 1e6 * gamma**2 * log2_size * math.log(1.0 / beta) / beta**4
