"""Private choice on huge ordered domains, and a bound on its error.

The choice itself is a closed operation (:mod:`quorate.core.account.along_a_line`); its cost follows
from the sensitivity of the sealed losses. Permute-and-flip over all points never errs more than the
exponential mechanism. It counts, for each distinct loss, how many points come up with heads, and
takes time for each distinct loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.account.along_a_line import EVERY_POINT, Scale, choose_point
from quorate.core.guarantees import Relation
from quorate.core.questions.lines import SealedLine
from quorate.exceptions import ParameterError
from quorate.mechanisms.choices.choose import ExponentialMechanism, Selection
from quorate.mechanisms.laws import point_law

__all__ = ["ChooseOrdered"]


@dataclass(frozen=True, kw_only=True)
class ChooseOrdered(ExponentialMechanism):
    r"""Choose a point of an ordered integer domain whose loss is close to the smallest.

    The domain is given as consecutive pieces of equal loss. Point u is released with probability
    proportional to :math:`e^{-\lambda s(u)}` for its loss :math:`s(u)`, or by permute-and-flip.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : the domain and all parameters; where the pieces begin is private
    numerics : exact
    proof : Let :math:`|s(u) - s'(u)| \le \Delta` = ``sensitivity`` for neighbours and every point
        u. Then :math:`e^{-\lambda s(u)}` and its sum over the domain change by factors of at most
        :math:`e^{\lambda\Delta}`, and the probability of u by at most :math:`e^{2\lambda\Delta}`;
        if a user changes all losses in the same direction, by at most :math:`e^{\lambda\Delta}`.
        The rational :math:`\lambda = \varepsilon/2\Delta` (one-sided :math:`\varepsilon/\Delta`) is
        used exactly. A piece of L points with loss s has weight :math:`L e^{-\lambda s}` and its
        points are equally likely, so the division of the domain into pieces does not change the
        law. Permute-and-flip at the same rate has the same loss
        (:class:`~quorate.mechanisms.choices.choose.ChooseBest`). The cost is the rate times the
        sensitivity of the sealed losses: :mod:`quorate.core.account.along_a_line`. [1]_ [2]_

    Utility
    -------
    With probability at least :math:`1 - \beta` the released point's loss is at most
    ``error_bound(domain_size, beta)`` above the smallest: :math:`\ln(N/\beta)/\lambda` for N
    points, the smallest integer for which this holds for all losses. Permute-and-flip satisfies the
    same bound.

    Complexity
    ----------
    Time and memory :math:`O(J)` for J pieces, about three sorts of J numbers; about 130 random
    bits. Permute-and-flip also needs integers of about 200 digits for each distinct loss.

    Parameters
    ----------
    epsilon : float
    sensitivity : int or Fraction, default=1
        The most by which one user changes the loss of any one point.
    relation : Relation, default=Relation.REPLACE
    one_sided : bool, default=False
        Whether a user can only move all losses in the same direction; ``Relation.ADD_REMOVE`` only.
    selection : Selection, default=Selection.GUMBEL
        The exponential mechanism, or permute-and-flip, which is suitable for few distinct losses.

    References
    ----------
    .. [1] McSherry, Talwar. Mechanism design via differential privacy. FOCS 2007.
    .. [2] McKenna, Sheldon. Permute-and-Flip: a new mechanism for differentially private selection.
       arXiv:2010.12603v1.

    Examples
    --------
    The example has the losses 50, 0, 50 on pieces of 2^62, 1000 and 2^62 points, beginning at
    -2^62:

    >>> from quorate.core.by_hand import line_by_hand
    >>> lengths = np.array([2**62, 1000, 2**62], dtype=np.uint64)
    >>> choice = ChooseOrdered(epsilon=4.0)
    >>> 0 <= choice.release(line_by_hand(lengths, np.array([50, 0, 50])), lower=-(2**62)) < 1000
    True
    >>> choice.error_bound(2**63, beta=1e-6)
    28
    """

    epsilon: float | Fraction
    sensitivity: int | Fraction = 1
    relation: Relation = Relation.REPLACE
    one_sided: bool = False
    selection: Selection = Selection.GUMBEL

    def __post_init__(self) -> None:
        _validate.one_of(tuple(Selection), selection=self.selection)
        _ = self.rate

    def release(self, losses: SealedLine, *, lower: int = 0, account: Account | None = None) -> int:
        """Return a point of {lower, ..., lower + size - 1} with a loss close to the smallest.

        Parameters
        ----------
        losses : SealedLine
            Losses of ordered points, with their sensitivity.
        lower : int, default=0
            The first point of the domain.
        account : Account, optional
            The account to charge; by default a new one for this release.
        """
        return self.release_among(EVERY_POINT, losses, lower=lower, account=account)

    def release_among(
        self,
        scales: Sequence[Scale],
        losses: SealedLine,
        *,
        lower: int = 0,
        account: Account | None = None,
    ) -> int:
        """Return a point; candidates are the points of several grids, each with a multiplicity."""
        return choose_point(
            losses,
            rate=self.rate,
            account=Account.of_release(account, self),
            lower=lower,
            scales=scales,
            flips=self._flips,
        )

    @property
    def _flips(self) -> bool:
        return self.selection is Selection.PERMUTE_AND_FLIP

    def probabilities(
        self, lengths: NDArray[np.uint64], losses: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the probability of each *piece* in floating point; for audits, not for release.

        >>> choice = ChooseOrdered(epsilon=2.0)
        >>> choice.probabilities(np.array([1, 1]), np.array([0, 1])).round(4).tolist()
        [0.7311, 0.2689]
        """
        return point_law(lengths, losses, rate=self.rate, flips=self._flips)

    def error_bound(self, domain_size: int, beta: float, *, optimal_points: int = 1) -> int:
        """Bound how far the loss is above the smallest, except with probability ``beta``.

        ``optimal_points`` is a number of points known to have the smallest loss.
        """
        _validate.positive_integer(domain_size=domain_size, optimal_points=optimal_points)
        _validate.probability(beta=beta)
        if optimal_points > domain_size:
            raise ParameterError(
                f"Expected at most domain_size={domain_size} optimal points, got "
                f"optimal_points={optimal_points}."
            )
        if optimal_points == domain_size:
            return 0
        # Worst case: all other points have loss t + 1. They win with chance at most beta if
        # exp(-rate (t + 1)) others / optimal <= beta / (1 - beta).
        odds = math.log(domain_size - optimal_points) - math.log(optimal_points)
        odds += math.log1p(-beta) - math.log(beta)
        return max(0, math.ceil(Fraction(odds) / self.rate) - 1)
