"""Count the users with more than t mistakes, with t from exact binomial tails (L2).

Lemma 4.1 of Li, Wang, Ye, *Improved bounds for pure private agnostic learning*: some t separates
Bin(m, p) from Bin(m, q), that is P[Bin(m, q) > t] - P[Bin(m, p) > t] >= K/700. The best t is known
exactly. The difference grows with every j > t whose mass is larger under q than under p, and the
likelihood ratio rises with j, so the best t is the last j at which p is at least as likely as q.
It is ``floor(rate * m)`` with a rate that does not depend on m, so users with different numbers of
records each have their own best t. Over a grid of (m, p, q) the separation is never below K/3.04;
the tests check this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import ParameterError
from quorate.learners.scores.base import AdditiveScore, Integers

__all__ = ["MoreThan", "published_separation", "separating_rate", "separation"]


def separating_rate(p: float, q: float) -> float:
    """Return the rate at which Bin(m, p) and Bin(m, q), p < q, are equally likely.

    ``floor(rate * m)`` is the t that separates "more than t" best, for every m.

    >>> separating_rate(0.0, 0.1)
    0.0
    >>> round(separating_rate(0.1, 0.2), 4)
    0.1452
    """
    _validate.fraction(p=p, q=q)
    if not p < q:
        raise ParameterError(f"Expected p < q, got p={p!r} and q={q!r}.")
    if p == 0:
        return 0.0
    if q == 1:
        return math.nextafter(1.0, 0.0)
    fall = math.log1p(-p) - math.log1p(-q)
    return fall / (math.log(q) - math.log(p) + fall)


def separation(m: int, p: float, q: float) -> tuple[int, float]:
    """Return the best t and P[Bin(m, q) > t] - P[Bin(m, p) > t], from exact tails.

    >>> t, gap = separation(64, 0.1, 0.12)
    >>> t, round(gap, 3)
    (7, 0.2)
    """
    from scipy.stats import binom

    _validate.positive_integer(m=m)
    t = math.floor(separating_rate(p, q) * m)
    return t, float(binom.sf(t, m, q) - binom.sf(t, m, p))


def published_separation(m: int, p: float, q: float) -> float:
    """Return the K of Lemma 4.1; the paper proves a separation of K/700.

    >>> round(published_separation(64, 0.1, 0.12), 3)
    0.533
    """
    _validate.positive_integer(m=m)
    _validate.fraction(p=p, q=q)
    spread = math.sqrt(p * (1 - p))
    scaled = math.sqrt(m) * abs(q - p) / spread if spread > 0 else math.inf
    return min(m * abs(q - p), scaled, 1.0)


@dataclass(frozen=True, kw_only=True)
class MoreThan(AdditiveScore):
    """Loss: the number of users whose mistakes exceed their t = floor(``rate`` x records held).

    Privacy
    -------
    sensitivity : 1, under both relations; one more user only adds
    proof : A user contributes 0 or 1, decided by that user's own records alone; see
        :class:`AdditiveScore`. ``rate`` is public or was released before; a rate computed from the
        data would void the guarantee.

    Parameters
    ----------
    rate : float
        Share of mistakes above which a user counts; with 0 the score is :class:`AnyMistake`.

    Examples
    --------
    >>> score = MoreThan.separating(error_level=0.1, excess=0.02)
    >>> score.judged(np.array([[7, 8], [1, 2]]), np.array([64, 16])).tolist()
    [[False, True], [False, True]]
    """

    name = "more_than"
    rate: float

    def __post_init__(self) -> None:
        _validate.fraction(rate=self.rate)

    @classmethod
    def separating(cls, *, error_level: float, excess: float) -> MoreThan:
        """Choose the rate that best separates errors of ``error_level`` and of ``excess`` more."""
        _validate.fraction(error_level=error_level)
        _validate.positive(excess=excess)
        return cls(rate=separating_rate(error_level, min(1.0, error_level + excess)))

    @property
    def bound(self) -> int:
        """The bound of a contribution: one."""
        return 1

    def contribution(self, mistakes: NDArray[np.integer], held: Integers) -> NDArray[np.bool_]:
        """Return whether a user has more than t mistakes."""
        # In as many bits as the mistakes have: comparing is quicker then.
        most = np.iinfo(mistakes.dtype).max
        limits = np.minimum(np.floor(self.rate * held), most).astype(mistakes.dtype)
        return np.asarray(mistakes > limits)
