"""A private quantile of numbers that belong to pairs of users: how far apart people are."""

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
        the user p, or with p replaced by another, present or absent. Pair D at random; a random
        pairing of D' is got from it by changing one pair: if p is replaced, the other user takes
        p's place; if p goes and somebody was left over, that one takes it, otherwise p's partner is
        left over; and if p itself was left over nothing changes. By symmetry each pairing of D' is
        as likely as any other. So for every pairing of D there is one of D' in which the integers
        are the same except for one that is replaced, added or removed. With the quantile a/b and k
        pairs the loss of a point is :math:`\max(b B - a k, b A - (b-a) k)`, B of the integers below
        and A above it: it moves by at most b if one is replaced and by at most max(a, b - a) if one
        is added or removed, hence always by at most b. The rest is
        :class:`~quorate.mechanisms.choices.ordered.ChooseOrdered` with this sensitivity; averages
        over pairings of probabilities that differ by a factor of :math:`e^\varepsilon` differ by
        it.

    Utility
    -------
    As that of :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`, in pairs.

    Complexity
    ----------
    That of :class:`~quorate.mechanisms.choices.quantiles.PrivateQuantile`.

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
        """How far one user moves the loss of any point; a pair may change arbitrarily."""
        return self.exact_quantile.denominator
