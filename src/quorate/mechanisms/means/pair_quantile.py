"""A private quantile of numbers that belong to pairs of users, such as distances."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.mechanisms.choices.quantiles import PrivateQuantile

__all__ = ["PairQuantile"]


@dataclass(frozen=True, kw_only=True)
class PairQuantile(PrivateQuantile):
    r"""Release a point near a quantile of one integer for each of some disjoint pairs of users.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``domain``, ``quantile``, ``epsilon``; the number of pairs is private
    numerics : exact
    proof : The pairs are uniformly random, disjoint and secret. Let D' be D without
        the user p, or with p replaced by another, present or absent. Pair D at random. A random
        pairing of D' is obtained from it by changing one pair: if p is replaced, the other user
        takes the place of p; if p is removed and somebody was left over, that user takes it,
        otherwise the partner of p is left over; if p was left over, nothing changes. By symmetry
        each pairing of D' is equally likely. So for every pairing of D there is one of D' in which
        the integers are the same except for one that is replaced, added or removed. With the
        quantile a/b and k pairs the loss of a point is :math:`\max(b B - a k, b A - (b-a) k)`, B of
        the integers below and A above it: it moves by at most b if one is replaced and by at most
        max(a, b - a) if one is added or removed, hence always by at most b. The rest is
        :class:`~quorate.mechanisms.choices.ordered.ChooseOrdered` with this sensitivity. If
        probabilities differ by a factor of at most :math:`e^\varepsilon` for each pairing, so do
        their averages over pairings.

    Utility
    -------
    As for :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`, in pairs.

    Complexity
    ----------
    As for :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`.

    Parameters
    ----------
    domain : tuple of int
        First and last point; public.
    epsilon : float
    quantile : float or Fraction, default=0.5
    relation : Relation, default=Relation.REPLACE
    selection : Selection, default=Selection.GUMBEL
        As for :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`.

    References
    ----------
    See :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.core.by_hand import rows_by_hand
    >>> apart = PairQuantile(domain=(0, 40), epsilon=1.0)
    >>> 5 <= apart.release(rows_by_hand(np.arange(300) % 20)) <= 15
    True
    """

    @property
    def sensitivity(self) -> int:
        """The largest change of any point's loss by one user; a pair may change arbitrarily."""
        return self.exact_quantile.denominator
