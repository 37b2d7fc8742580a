r"""The outputs of a private learner on public data represent its class (G12, Algorithm 6).

By group privacy over all n users, an output of a private learner on its own data also appears on
any other data, for example public data. Its probability there is smaller by a factor of at most
:math:`e^{\varepsilon n}`. So :math:`100 \lceil e^{\varepsilon n} \rceil` outputs on public data
contain a good hypothesis for every target. Hence no class can be learned privately by fewer users
than its representation dimension allows; see :func:`quorate.planning.limits.representation_users`.
[1]_

References
----------
.. [1] Ghazi, Kumar, Manurangsi. User-level private learning via correlated sampling. NeurIPS 2021,
   Lemma 4 and Algorithm 6. Beimel, Nissim, Stemmer. JMLR 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.noise import NoiseSource, SeededNoise
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import Concept, ConceptClass, LabelledRecords
from quorate.papers.stability.representations import LARGEST_DRAWN, Representation
from quorate.papers.stability.shared_seed import SharedSeed

__all__ = ["FixedConcepts", "LearnerRepresentation"]


@dataclass(frozen=True, eq=False)
class FixedConcepts(ConceptClass):
    """A list of rules, possibly with repetitions, as a class.

    >>> from quorate.learners.concepts import CutOff
    >>> FixedConcepts((CutOff(3, above=True), CutOff(5, above=True)), n_features=1).size
    2
    """

    concepts: tuple[Concept, ...]
    n_features: int = 1

    @property
    def size(self) -> int:
        """The number of rules, including repetitions."""
        return len(self.concepts)

    @property
    def keeps_users_apart(self) -> bool:
        """Whether all rules keep users apart."""
        return super().keeps_users_apart and all(each.keeps_users_apart for each in self.concepts)

    def concept(self, index: int) -> Concept:
        """Return rule number ``index``."""
        return self.concepts[self._check_index(index)]

    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        different = list(dict.fromkeys(self.concepts))
        place = {concept: i for i, concept in enumerate(different)}
        counts = np.zeros((records.n_users, len(different)), dtype=np.int64)
        for i, concept in enumerate(different):
            wrong = concept.predict(records.X) != records.y
            counts[:, i] = np.bincount(records.user[wrong], minlength=records.n_users)
        return counts[:, [place[concept] for concept in self.concepts]]


@dataclass(frozen=True, eq=False)
class LearnerRepresentation(Representation):
    r"""Outputs of a private learner on public data, as a representation of its class.

    No private records are used: the learner runs on public data (without users, under add or
    remove) with random bits from the public seed.

    Parameters
    ----------
    sample : callable
        ``sample(noise)`` runs the learner once on public data with the given randomness and returns
        the rule.
    epsilon : float
        Its privacy.
    users : int
        The number of users for which the learner is accurate.
    alpha : float, default=0.25
        Its error, reached with probability at least 1/2.
    delta : float, default=0.0
    n_features : int, default=1

    Examples
    --------
    >>> from quorate.core.account.account import Account
    >>> from quorate.learners.concepts import PointFunctions
    >>> from quorate.core.by_hand import sealed_by_hand
    >>> from quorate.core.moves import Moves
    >>> from quorate.mechanisms import ChooseBest
    >>> points = PointFunctions(16)
    >>> def run(noise):
    ...     account = Account.open(epsilon=1.0, noise=noise)
    ...     choice = ChooseBest(candidates=16, epsilon=1.0)
    ...     losses = sealed_by_hand([0] * 16, Moves.of_counts(16))  # of people who err nowhere
    ...     return points.concept(choice.release(losses, account=account))
    >>> outputs = LearnerRepresentation(run, epsilon=1.0, users=3)
    >>> outputs.size, outputs.holds
    (2100, True)
    >>> len(set(outputs.draw(SharedSeed(0)).concepts))
    16
    """

    sample: Callable[[NoiseSource], Concept]
    epsilon: float
    users: int
    alpha: float = 0.25
    delta: float = 0.0
    n_features: int = 1

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        _validate.positive_integer(users=self.users, n_features=self.n_features)
        _validate.probability(alpha=self.alpha)
        _validate.delta(delta=self.delta)
        if self.epsilon * self.users > math.log(LARGEST_DRAWN):
            raise ParameterError(
                f"Expected epsilon x users of at most {math.log(LARGEST_DRAWN):.1f}, got "
                f"{self.epsilon * self.users:.1f}: e^(epsilon users) outputs cannot be drawn."
            )
        if self.size > LARGEST_DRAWN:
            raise ParameterError(f"Expected at most 2^20 outputs, got {self.size}.")

    @property
    def size(self) -> int:
        """100 ceil(e^(epsilon users)) outputs."""
        return 100 * math.ceil(math.exp(self.epsilon * self.users) - 1e-9)

    @property
    def beta(self) -> float:
        """The probability of a draw without a good rule; 1 if the lemma does not apply."""
        return 0.01 if self.holds else 1.0

    @property
    def holds(self) -> bool:
        """Whether delta is small enough for the lemma."""
        group = self.epsilon * self.users
        lost = self.delta * math.expm1(group) / math.expm1(self.epsilon)
        return math.exp(-group) * (0.5 - lost) >= 10 / self.size

    def draw(self, seed: SharedSeed) -> FixedConcepts:
        """Return all outputs for the random bits of a seed."""
        noise = SeededNoise(list(seed.keys("outputs")))
        outputs = tuple(self.sample(noise) for _ in range(self.size))
        return FixedConcepts(outputs, n_features=self.n_features)
