"""The cap of a person's contribution: a private choice that weighs noise against clipping."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact, float_up
from quorate.accounting.account import Account
from quorate.core.sealed import Sealed, check_sealed
from quorate.exceptions import ParameterError, SchemaError
from quorate.guarantees import Relation
from quorate.mechanisms.pure import PureMechanism

__all__ = ["PrivateCap"]

# A person whose length is twice a cap or more counts so many parts.
_PARTS = 2**20
# Penalties stay far below what 64 bits hold.
_LARGEST_AIM = 2.0**36


@dataclass(frozen=True, kw_only=True)
class PrivateCap(PureMechanism):
    r"""Choose a cap among public ones that cuts about as much as it should.

    Noise grows with a cap c, and what is cut of longer contributions falls with it:
    :math:`A c + \sum_i (N_i - c)_+` is least where A people are longer than c. The score
    :math:`-\sum_i \min((N_i/c - 1)_+, 1) - A \ln c` has its top at the same place and hardly
    depends on any one person; it is chosen by permute-and-flip.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``caps``, ``aim``
    numerics : exact
    proof : One user's part of the score of c is
        :math:`s_c(N) = \lfloor u \min((N/c - 1)_+, 1) \rfloor`, an integer from 0 to u. Division,
        subtraction, limits and floor are monotone, rounding included, so :math:`s_c` grows with N
        for every c. Two users of lengths :math:`N \le N'` therefore differ by
        :math:`s_c(N') - s_c(N) \in [0, u]` for *all* c at once, whoever replaces whom; a user who
        comes or goes moves all scores one way by at most u. The difference of two scores moves by
        at most u under either relation, and permute-and-flip with scale
        :math:`s \ge u/\varepsilon` loses at most :math:`u/s \le \varepsilon` [1]_ (see
        :class:`~quorate.mechanisms.choices.choose.ChooseBest`).

    Utility
    -------
    With probability at least :math:`1 - \beta` the score is within
    :math:`\ln(k/\beta)/\varepsilon` people of the best one. Beyond everybody's length a cap that is
    x times longer is chosen with odds :math:`x^{-A\varepsilon}`.

    Complexity
    ----------
    Time :math:`O(nk)` for k caps; one message of k integers per engine worker.

    Parameters
    ----------
    caps : tuple of float
        Increasing and positive.
    aim : float
        A: how many people a cap should leave above it, more or less.
    epsilon : float
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    .. [1] McKenna, Sheldon. Permute-and-Flip: a new mechanism for differentially private selection.
       arXiv:2010.12603v1.
    .. [2] Amin, Kulesza, Munoz, Vassilvitskii. Bounding user contributions: a bias-variance
       trade-off in differential privacy. ICML 2019.

    Examples
    --------
    >>> from quorate.core.by_hand import sealed_by_hand
    >>> from quorate.core.moves import Moves
    >>> look = PrivateCap(caps=(1.0, 5.0, 20.0, 100.0), aim=20.0, epsilon=1.0)
    >>> moves = Moves.of_scores(look.sensitivity, coordinates=4, one_sided=True)
    >>> look.release(sealed_by_hand(look.excess(np.full(2000, 20.0)), moves))
    20.0
    >>> look.guarantee.epsilon
    1.0
    """

    caps: tuple[float, ...]
    aim: float
    epsilon: float | Fraction
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        _validate.non_negative(aim=self.aim)
        _validate.one_of(tuple(Relation), relation=self.relation)
        caps = np.array(self.caps, dtype=np.float64)
        if not (caps.ndim == 1 and caps.size and np.all(np.diff(caps) > 0) and caps[0] > 0):
            raise ParameterError("Expected increasing caps above 0, at least one.")
        if not (np.isfinite(caps).all() and self.aim <= _LARGEST_AIM):
            raise ParameterError("Expected finite caps and an aim of at most 2^36 people.")
        if self.scale == math.inf:
            raise ParameterError(f"Expected a larger epsilon, got epsilon={self.epsilon!r}.")

    @property
    def sensitivity(self) -> int:
        """How far one user moves a score, and the difference of two scores."""
        return _PARTS

    @property
    def scale(self) -> float:
        """Scale of the noise on the scores, rounded up."""
        return float_up(Fraction(self.sensitivity) / exact(self.epsilon))

    def excess(self, lengths: NDArray[np.float64]) -> NDArray[np.int64]:
        """Add up what each cap cuts of people of these lengths, in parts of a person.

        >>> PrivateCap(caps=(2.0, 4.0), aim=1.0, epsilon=1.0).excess(np.array([3.0, 9.0])) / 2**20
        array([1.5, 1. ])
        """
        # What is not a number is longer than everything.
        held = np.sort(np.where(np.isnan(lengths), np.inf, np.maximum(lengths, 0.0)))
        above = np.searchsorted(held, self.caps, side="right")
        # Who is twice as long, or more, counts one part: the quotient is rounded to 2 or more.
        twice = np.searchsorted(held, 2.0 * np.array(self.caps))
        found = (len(held) - twice) * _PARTS
        for place, cap in enumerate(self.caps):
            over = held[above[place] : twice[place]] / cap - 1.0
            found[place] += np.floor(np.minimum(over, 1.0) * _PARTS).astype(np.int64).sum()
        return np.asarray(found)

    def release(self, excess: Sealed, *, account: Account | None = None) -> float:
        """Return a cap, given what each of them cuts: the sum of :meth:`excess` over all users."""
        check_sealed(excess, Sealed)
        if excess.shape != (len(self.caps),):
            raise SchemaError(f"Expected one number for each of {len(self.caps)} caps.")
        paying = Account.of_release(account, self)
        chosen = paying.permute_and_flip(-excess - self._penalties, scale=self.scale)
        return float(self.caps[chosen])

    def error_bound(self, beta: float) -> float:
        """Return by how many people the score misses the best one, except with chance ``beta``."""
        _validate.probability(beta=beta)
        return self.scale / _PARTS * math.log(len(self.caps) / beta)

    @property
    def _penalties(self) -> NDArray[np.int64]:
        logs = np.log(np.array(self.caps) / self.caps[0])
        return np.rint(self.aim * logs * _PARTS).astype(np.int64)
