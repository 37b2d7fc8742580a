"""Pairwise comparisons of hypotheses on each user's own records (F5, F6).

Theorems 37 and 40 of Ghazi et al., *User-level differential privacy with few examples per user*,
compare h with h' on each user's records by psi = 1[h errs] - 1[h' errs] (the paper prints the
opposite sign in Theorem 40). The user's sum is clipped to [-tau, tau] and added up over users, and
h gets the worst of its comparisons (*duels*). The paper needs tau of order sqrt(m). A much smaller
clip is better: each user only says which of the two has more mistakes on the user's records. There
is no clipping bias, because the more probable side of a trinomial count is the side with the larger
rate, and no noise level has to be known.

:class:`Duels` counts ``loss`` for a lost duel and ``-gain`` for a won one. With (1, 1) it is the
sign score (tau = 1). The default (2, 1) is between the sign score and counting defeats only (1, 0);
a tie then costs one third. It is more accurate, because a loss that ignores ties needs half the
noise, and a loss that counts victories distinguishes hypotheses of nearly equal quality; measured
in ``benchmarks/learners.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.questions.lines import SealedLine, Walk
from quorate.core.questions.pairs import ByDifference, BySign, Verdict
from quorate.core.sealed import Sealed
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts.base import ConceptClass
from quorate.learners.scores.base import Score

__all__ = [
    "MAX_DUELLISTS",
    "ClippedPairwise",
    "Duels",
    "check_duellists",
    "published_clip",
]

MAX_DUELLISTS = 4096
"""More hypotheses than this are refused: the table of duels would pass 128 MB."""


def published_clip(m: int, alpha: float) -> int:
    """Return the order of the clip of Theorem 37, alpha m + sqrt(m ln(1/alpha)), rounded up.

    The paper's leading constant is only "sufficiently large"; here it is 1.

    >>> published_clip(64, 0.05)
    18
    """
    _validate.positive_integer(m=m)
    _validate.probability(alpha=alpha)
    return int(np.ceil(alpha * m + np.sqrt(m * np.log(1 / alpha))))


class _Pairwise(Score):
    """What the two pairwise scores share: the loss of h is its worst duel."""

    @property
    @abstractmethod
    def verdict(self) -> Verdict:
        """Return the result of a duel for one user."""

    def sensitivity(self, relation: Relation) -> int:
        """Return the sensitivity of a loss; the loss is twice the result of the worst duel."""
        return self.verdict.sensitivity(relation)

    def check_class(self, concepts: ConceptClass, *, walked: bool) -> None:
        """Refuse a class whose table of duels would be too large."""
        if not walked:
            check_duellists(concepts.size, self.name)

    def losses_over(self, people: People, concepts: ConceptClass) -> Sealed:
        """Return the loss of every hypothesis of a finite class."""
        check_duellists(concepts.size, self.name)
        return people.duels(MistakesOf(concepts), concepts.size, self.verdict)

    def losses_along(self, walk: Walk) -> SealedLine:
        """Return the loss of every hypothesis of an ordered class, along its line."""
        return walk.duels(self.verdict, most_pieces=MAX_DUELLISTS)


@dataclass(frozen=True)
class MistakesOf:
    """The mistakes of some users with every hypothesis, in blocks."""

    concepts: ConceptClass
    batched: ClassVar[bool] = False

    def __call__(self, users: UserData) -> Iterator[NDArray[np.int32]]:
        """Yield one row per user."""
        for _, mistakes in self.concepts.mistakes_in_batches(users):
            yield mistakes


def check_duellists(size: int, name: str) -> None:
    """Refuse a class whose table of duels would be too large.

    >>> check_duellists(729, "duels")
    """
    if size > MAX_DUELLISTS:
        raise ParameterError(
            f"Expected at most {MAX_DUELLISTS} hypotheses for the score {name!r}, got {size}. Use "
            "'crossing' or 'kolmogorov_smirnov'."
        )


@dataclass(frozen=True, kw_only=True)
class Duels(_Pairwise):
    """Loss: the worst duel, in which each user with more mistakes under h counts ``loss``.

    A duel of h against h' adds, over users, ``loss`` if h errs more often on the user's records,
    ``-gain`` if it errs less often, and nothing if they tie. ``Duels(loss=1, gain=1)`` is the sign
    score, F5 with tau = 1.

    Privacy
    -------
    sensitivity : ``2 (loss + gain)`` under replacement, ``loss + gain`` under addition or removal
    proof : A user's term in a duel lies in [-gain, loss]. Replacing the user changes each duel by
        at most w = loss + gain, hence the worst duel of h by at most w, and the loss, which is
        twice the worst duel, by at most 2 w. With one more user the worst duel moves by something
        in [-gain, loss] and n by 1, so 2 x worst - (loss - gain) x n moves by something in [-w, w].
        The second term is the same for all hypotheses and does not change the choice.

    Complexity
    ----------
    Time O(n |H|^2), memory O(|H|^2).

    Parameters
    ----------
    loss : int, default=2
    gain : int, default=1
    """

    name = "duels"
    loss: int = 2
    gain: int = 1

    def __post_init__(self) -> None:
        _validate.positive_integer(loss=self.loss)
        _validate.non_negative_integer(gain=self.gain)

    @property
    def verdict(self) -> Verdict:
        """Which of two hypotheses has more mistakes on a user's own records."""
        return BySign(self.loss, self.gain)


@dataclass(frozen=True, kw_only=True)
class ClippedPairwise(_Pairwise):
    """Loss: the worst duel, where a user's difference of mistakes is clipped to [-tau, tau].

    The mechanism of Theorem 37 as published, except that loss and sensitivity are both doubled.

    Privacy
    -------
    sensitivity : ``4 tau`` under replacement, ``2 tau`` under addition or removal
    proof : A user's term lies in [-tau, tau], so the worst duel moves by at most 2 tau when the
        user is replaced and by tau when one is added; the loss is twice the worst duel.

    Parameters
    ----------
    tau : int
        Clip; :func:`published_clip` gives the paper's order of magnitude.
    """

    name = "clipped_pairwise"
    tau: int

    def __post_init__(self) -> None:
        _validate.positive_integer(tau=self.tau)

    @property
    def verdict(self) -> Verdict:
        """The difference in mistakes of two hypotheses on a user's own records, clipped."""
        return ByDifference(self.tau)
