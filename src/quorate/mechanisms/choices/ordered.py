"""Private choice over huge ordered domains.

A loss that depends on users' values is constant between neighbouring values, so a domain of 2^63
points falls into few pieces. The exponential mechanism chooses a piece by its size and its loss and
then a point inside; this is the same law as choosing among all points, and nothing grows with the
size of the domain. Permute-and-flip over all points never errs more; it counts, for each loss, how
many of its points would come up with heads, and takes time for each different loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from operator import index

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import exact
from quorate.accounting.account import Account, sample_for
from quorate.core.questions.lines import SealedLine, opened_line
from quorate.exceptions import ParameterError, SchemaError
from quorate.guarantees import Relation
from quorate.mechanisms.choices.choose import ExponentialMechanism, Selection
from quorate.mechanisms.choices.exponential import (
    check_pieces,
    choose_weighted,
    weighted_probabilities,
)
from quorate.mechanisms.choices.flips import first_heads, flip_probabilities
from quorate.noise import NoiseSource
from quorate.noise.composed_laws import PiecewiseLaw

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
        if a user moves all losses in the same direction, by at most :math:`e^{\lambda\Delta}`. The
        rational :math:`\lambda = \varepsilon/2\Delta` (one-sided :math:`\varepsilon/\Delta`) is
        used as it is. A piece of L points with loss s has weight :math:`L e^{-\lambda s}` and its
        points are equally likely, so how the domain is cut does not matter. Permute-and-flip at the
        same rate has the same loss (:class:`~quorate.mechanisms.choices.choose.ChooseBest`). Exact
        sampling: ``docs/proofs/ordered_choice.md``. [1]_ [2]_

    Utility
    -------
    With probability at least :math:`1 - \beta` the released point's loss is at most
    ``error_bound(domain_size, beta)`` above the smallest: :math:`\ln(N/\beta)/\lambda` for N
    points, the smallest integer for which this holds for all losses. Permute-and-flip keeps it too.

    Complexity
    ----------
    Time and memory :math:`O(J)` for J pieces, some three sorts of J numbers; some 130 random bits.
    Permute-and-flip: integers of some 200 digits for each different loss, as well.

    Parameters
    ----------
    epsilon : float
    sensitivity : int or Fraction, default=1
        How far one user may move the loss of any one point.
    relation : Relation, default=Relation.REPLACE
    one_sided : bool, default=False
        Whether a user can only move all losses in the same direction; ``Relation.ADD_REMOVE`` only.
    selection : Selection, default=Selection.GUMBEL
        The exponential mechanism, or permute-and-flip, which is for few different losses.

    References
    ----------
    .. [1] McSherry, Talwar. Mechanism design via differential privacy. FOCS 2007.
    .. [2] McKenna, Sheldon. Permute-and-Flip: a new mechanism for differentially private selection.
       arXiv:2010.12603v1.

    Examples
    --------
    Losses 50, 0, 50 on pieces of 2^62, 1000 and 2^62 points that begin at -2^62:

    >>> lengths = np.array([2**62, 1000, 2**62], dtype=np.uint64)
    >>> choice = ChooseOrdered(epsilon=4.0)
    >>> 0 <= choice.release(lengths, np.array([50, 0, 50]), lower=-(2**62)) < 1000
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

    def release(
        self,
        lengths: SealedLine | NDArray[np.uint64],
        losses: NDArray[np.int64] | None = None,
        *,
        lower: int = 0,
        account: Account | None = None,
    ) -> int:
        """Return a point of {lower, lower + 1, ..., lower + sum(lengths) - 1}.

        Parameters
        ----------
        lengths : SealedLine or array of integers >= 0
            Losses along a line, of which one user moves none further than the seal says. Or sizes
            of consecutive pieces, fewer than 2**64 points in all; empty pieces are allowed.
        losses : array of int64, optional
            Loss of each piece, if these are plain numbers; smaller is better. One user is
            believed to move them by no more than the sensitivity.
        lower : int, default=0
            The first point of the domain.
        account : Account, optional
            What pays for the choice; by default one that holds just this release.
        """
        paying = Account.of_release(account, self)
        spread = self.spread
        if isinstance(lengths, SealedLine):
            paying.check_seal(lengths)
            spread = exact(lengths.moves.spread)
            lengths, losses = opened_line(lengths)
        elif losses is None:
            raise SchemaError("Expected a sealed line, or lengths and losses of its pieces.")
        sizes, losses = check_pieces(lengths, losses)
        first = index(lower)

        def draw(noise: NoiseSource) -> int:
            if self.selection is Selection.PERMUTE_AND_FLIP:
                return first + _flipped(sizes, losses, rate=self.rate, noise=noise)
            piece = choose_weighted(sizes, losses, rate=self.rate, noise=noise)
            before = int(np.sum(sizes[:piece]))
            return first + before + noise.uniform_below(int(sizes[piece]))

        flips = self.selection is Selection.PERMUTE_AND_FLIP
        return sample_for(
            paying,
            "ordered_flips" if flips else "ordered_choice",
            draw,
            law=lambda: PiecewiseLaw(first, sizes, self.probabilities(sizes, losses)),
            loss=self.rate * spread,
            rate=self.rate,
            lower=first,
            size=int(np.sum(sizes)),
        )

    def probabilities(
        self, lengths: NDArray[np.uint64], losses: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the probability of each *piece* in floating point; for audits, not for release.

        >>> choice = ChooseOrdered(epsilon=2.0)
        >>> choice.probabilities(np.array([1, 1]), np.array([0, 1])).round(4).tolist()
        [0.7311, 0.2689]
        """
        if self.selection is Selection.PERMUTE_AND_FLIP:
            sizes, losses = check_pieces(lengths, losses)
            return flip_probabilities(
                sizes.astype(np.float64), losses.astype(np.float64) * -float(self.rate)
            )
        return weighted_probabilities(lengths, losses, rate=self.rate)

    def error_bound(self, domain_size: int, beta: float, *, optimal_points: int = 1) -> int:
        """Return how far the loss is above the smallest, except with probability ``beta``.

        ``optimal_points`` is how many points are known to have the smallest loss.
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


def _flipped(
    sizes: NDArray[np.uint64], losses: NDArray[np.int64], *, rate: Fraction, noise: NoiseSource
) -> int:
    """Return the point, counted from the first, that permute-and-flip over all points takes."""
    covered = np.flatnonzero(sizes)
    levels, level = np.unique(losses[covered], return_inverse=True)
    held = [covered[level == each] for each in range(len(levels))]
    points = [int(np.sum(sizes[pieces])) for pieces in held]
    # Python's own integers: gaps may span all of 64 bits.
    gaps = [int(loss) - int(levels[0]) for loss in levels]
    pieces = held[first_heads(points, gaps, rate=rate, noise=noise)]
    # The pieces of the level laid end to end; they are fewer than 2**64 points.
    ends = np.cumsum(sizes[pieces])
    place = noise.uniform_below(int(ends[-1]))
    which = int(np.searchsorted(ends, np.uint64(place), side="right"))
    inside = place - (int(ends[which - 1]) if which else 0)
    return int(np.sum(sizes[: pieces[which]])) + inside
