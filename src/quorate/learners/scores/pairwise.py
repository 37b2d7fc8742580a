"""Let each user judge every pair of hypotheses by their own records (F5, F6).

Theorems 37 and 40 of Ghazi et al., *User-level differential privacy with few examples per user*:
compare h with h' on each user's records by psi = 1[h errs] - 1[h' errs] (the paper prints the
opposite sign in Theorem 40), clip the user's sum to [-tau, tau], add up over users, and give h the
worst of its duels. The paper needs tau of order sqrt(m). A much smaller clip is better: let a user
only say which of the two errs more on their records. There is no clipping bias, because the more
probable side of a trinomial count is the side with the larger rate, and no noise level is needed.

:class:`Duels` counts a lost duel ``loss`` and a won one ``-gain``. With (1, 1) it is the sign score
(tau = 1). The default (2, 1) gives ties one third: in between the sign score and counting defeats
only (1, 0). It is the better bargain because a loss that ignores ties needs half the noise, and a
loss that counts victories tells near-equals apart; measured in ``benchmarks/learners.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.learners.scores.base import Integers, MistakeLine, Score

__all__ = [
    "MAX_DUELLISTS",
    "ClippedPairwise",
    "Duels",
    "check_duellists",
    "count_defeats",
    "published_clip",
]

MAX_DUELLISTS = 4096
"""More hypotheses than this are refused: the table of duels would pass 128 MB."""

# Users whose duels are added up in bytes before they move on to wider integers.
_BYTE_USERS = 255


def count_defeats(mistakes: NDArray[np.integer]) -> NDArray[np.int32]:
    """Count, for every pair (row h, column h'), the users on whose records h errs more than h'.

    Time O(n |H|^2), memory O(|H|^2): one user is compared at a time, and the comparisons are
    added up in bytes, 255 users at a time.

    >>> count_defeats(np.array([[0, 1, 1], [2, 0, 2]]))
    array([[0, 1, 0],
           [1, 0, 0],
           [1, 1, 0]], dtype=int32)
    """
    size = mistakes.shape[1]
    narrow = _narrow(mistakes)
    defeats = np.zeros((size, size), dtype=np.int32)
    worse = np.empty((size, size), dtype=np.bool_)
    votes = worse.view(np.uint8)
    count = np.empty((size, size), dtype=np.uint8)
    for start in range(0, len(narrow), _BYTE_USERS):
        count[...] = 0
        for errors in narrow[start : start + _BYTE_USERS]:
            np.greater(errors[:, np.newaxis], errors, out=worse)
            np.add(count, votes, out=count)
        defeats += count
    return defeats


def published_clip(m: int, alpha: float) -> int:
    """Return the order of the clip of Theorem 37, alpha m + sqrt(m ln(1/alpha)), rounded up.

    The paper's constant in front is "sufficiently large"; here it is 1.

    >>> published_clip(64, 0.05)
    18
    """
    _validate.positive_integer(m=m)
    _validate.probability(alpha=alpha)
    return int(np.ceil(alpha * m + np.sqrt(m * np.log(1 / alpha))))


def _narrow(mistakes: NDArray[np.integer]) -> NDArray[np.integer]:
    """Compare in 8 or 16 bits; only a user's order matters, so ranks do where counts are wide."""
    highest = mistakes.max(initial=0)
    if highest < 2**15:
        return mistakes.astype(np.uint8 if highest < 2**8 else np.int16)
    ranks = np.empty(mistakes.shape, dtype=np.int16)
    for row, errors in enumerate(mistakes):
        ranks[row] = np.unique(errors, return_inverse=True)[1]
    return ranks


class _Pairwise(Score):
    """A table of duels, and for each hypothesis its worst one."""

    @property
    @abstractmethod
    def highest(self) -> int:
        """The most that one user can add to a duel."""

    @property
    @abstractmethod
    def lowest(self) -> int:
        """The least that one user can add to a duel (at most zero)."""

    @abstractmethod
    def judge(self, first: Integers, second: Integers) -> Integers:
        """Return what a user adds to duels, given the user's mistakes of both sides."""

    def sensitivity(self, relation: Relation) -> int:
        """Return twice the width of a contribution, or the width under addition or removal."""
        width = self.highest - self.lowest
        return 2 * width if relation is Relation.REPLACE else width

    def losses(self, tally: Integers, *, n_users: int) -> Integers:
        """Return twice the worst duel with another hypothesis, less the middle of users' ranges."""
        alone = np.ones(len(tally), dtype=np.bool_)
        return self._worst_duels(tally, alone, n_users=n_users)

    def _worst_duels(
        self, table: NDArray[np.integer], alone: NDArray[np.bool_], *, n_users: int
    ) -> Integers:
        """Leave out the duels with oneself of rows that stand for a single hypothesis."""
        worst = np.zeros(len(table), dtype=np.int64)
        if len(table) > 1:
            ignored = np.flatnonzero(alone)
            oneself = table[ignored, ignored]
            # No duel is lower than this; the table is large, so it is changed and put right again.
            table[ignored, ignored] = n_users * self.lowest
            worst = table.max(axis=1).astype(np.int64)
            table[ignored, ignored] = oneself
        return 2 * worst - (self.highest + self.lowest) * n_users

    def losses_on_line(self, line: MistakeLine) -> Integers:
        """Return the loss of every piece of an ordered class with at most 4096 pieces.

        A user's duels are constant on the rectangles between that user's own records, so each
        adds O(k^2) corners for k records; two running sums then fill the table.
        """
        if line.in_parts:
            # Few users with few records, whose numbers are public and were checked.
            return self.losses_on_line(replace(line, users=line.users.together()))
        events = line.events
        pieces = events.n_pieces
        if pieces > MAX_DUELLISTS:
            raise ParameterError(
                f"Expected at most {MAX_DUELLISTS} pieces for the score {self.name!r}. State "
                "records= such that users x records stays below, or use the median of cut-offs."
            )
        corners = np.zeros((pieces, pieces), dtype=np.int32)
        order = np.argsort(events.user, kind="stable")
        ends = np.cumsum(np.bincount(events.user, minlength=events.n_users))
        for user, stop in enumerate(ends):
            own = order[ends[user - 1] if user else 0 : stop]
            piece, errors = events.piece[own], events.after[own]
            last = np.r_[piece[1:] != piece[:-1], True][: piece.size]
            place = np.r_[0, piece[last]]
            errors = np.r_[events.initial[user], errors[last]]
            duels = self.judge(errors[:, np.newaxis], errors[np.newaxis, :])
            jumps = np.diff(np.diff(duels, axis=0, prepend=0), axis=1, prepend=0)
            corners[np.ix_(place, place)] += jumps.astype(np.int32)
        np.cumsum(corners, axis=0, out=corners)
        np.cumsum(corners, axis=1, out=corners)
        alone = events.lengths == 1
        return self._worst_duels(corners, alone, n_users=events.n_users)


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
    """Loss: the worst duel, where each user whose records speak against h counts ``loss``.

    A duel of h against h' adds, over users, ``loss`` if h errs more often on the user's records,
    ``-gain`` if it errs less often, and nothing if they tie. ``Duels(loss=1, gain=1)`` is the sign
    score, F5 with tau = 1.

    Privacy
    -------
    sensitivity : ``2 (loss + gain)`` under replacement, ``loss + gain`` under addition or removal
    proof : A user's term in a duel lies in [-gain, loss]. Replacing the user moves each duel by at
        most w = loss + gain, hence the worst duel of h by at most w and the loss, which is twice
        it, by 2 w. With one more user the worst duel moves by something in [-gain, loss] and n by
        1, so 2 x worst - (loss - gain) x n moves by something in [-w, w]; the second term is the
        same for all hypotheses and does not change what is chosen.

    Complexity
    ----------
    Time O(n |H|^2), memory O(|H|^2).

    Parameters
    ----------
    loss : int, default=2
    gain : int, default=1

    Examples
    --------
    >>> mistakes = np.array([[0, 1, 1], [2, 0, 2]])
    >>> score = Duels(loss=1, gain=1)
    >>> score.losses(score.tally(mistakes, np.array([3, 3])), n_users=2)
    array([0, 0, 2])
    """

    name = "duels"
    loss: int = 2
    gain: int = 1

    def __post_init__(self) -> None:
        _validate.positive_integer(loss=self.loss)
        _validate.non_negative_integer(gain=self.gain)

    @property
    def highest(self) -> int:
        """A lost duel."""
        return self.loss

    @property
    def lowest(self) -> int:
        """A won duel."""
        return -self.gain

    def judge(self, first: Integers, second: Integers) -> Integers:
        """Return ``loss`` where the first errs more, ``-gain`` where it errs less, else 0."""
        verdict: Integers = self.loss * (first > second) - self.gain * (first < second)
        return verdict

    def tally(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Add up some users' duels, every hypothesis (rows) against every other (columns)."""
        del held
        check_duellists(mistakes.shape[1], self.name)
        defeats = count_defeats(mistakes)
        table = self.loss * defeats - self.gain * defeats.T
        return table.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class ClippedPairwise(_Pairwise):
    """Loss: the worst duel, where a user's difference of mistakes is clipped to [-tau, tau].

    The mechanism of Theorem 37 as published, up to a factor of two in loss and sensitivity alike.

    Privacy
    -------
    sensitivity : ``4 tau`` under replacement, ``2 tau`` under addition or removal
    proof : A user's term lies in [-tau, tau], so the worst duel moves by at most 2 tau when the
        user is replaced and by tau when one is added; the loss is twice the worst duel.

    Parameters
    ----------
    tau : int
        Clip; :func:`published_clip` gives the paper's order of magnitude.

    Examples
    --------
    >>> score = ClippedPairwise(tau=2)
    >>> score.losses(score.tally(np.array([[0, 5], [1, 0]]), np.array([5, 5])), n_users=2)
    array([-2,  2])
    """

    name = "clipped_pairwise"
    tau: int

    def __post_init__(self) -> None:
        _validate.positive_integer(tau=self.tau)

    @property
    def highest(self) -> int:
        """The clip."""
        return self.tau

    @property
    def lowest(self) -> int:
        """The clip on the other side."""
        return -self.tau

    def judge(self, first: Integers, second: Integers) -> Integers:
        """Return the clipped difference of mistakes."""
        return np.asarray(np.clip(first - second, -self.tau, self.tau))

    def tally(self, mistakes: NDArray[np.integer], held: Integers) -> Integers:
        """Add up some users' duels, every hypothesis (rows) against every other (columns)."""
        del held
        size = mistakes.shape[1]
        check_duellists(size, self.name)
        table = np.zeros((size, size), dtype=np.int64)
        for errors in mistakes.astype(np.int64):
            table += self.judge(errors[:, np.newaxis], errors[np.newaxis, :])
        return table
