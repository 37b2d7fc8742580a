r"""Families of distributions that are hard to distinguish: lower bounds for all methods (F9, U8).

A packing is a family of W distributions such that no answer is good for two of them, while a single
record hardly distinguishes them (it has a small Kullback-Leibler divergence). For a packing the
user-level Fano inequality (:func:`~quorate.planning.limits.fano_users`) says how many users every
private method needs. The constructions are those of Theorems 40, 43, 45 and 46 of [F]_, with every
constant worked out (one of Theorem 44 is open, and no bound depends on it), and that of Theorem 8
of [U]_:

* words of a code that differ in many places come from the Gilbert-Varshamov bound, counted exactly;
* the printed packing of discrete distributions (Theorem 43) adds up to 1/2. Its factor should be
  1/k, not 1/(2k), and signs instead of 0 and 1 keep the sum of each pair constant;
* divergences are exact, not bounded by :math:`\chi^2`.

References
----------
.. [F] Ghazi et al. User-level differential privacy with few examples per user. NeurIPS 2023.
.. [U] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845.
.. [D] Devroye, Mehrabian, Reddad. The total variation distance between high-dimensional Gaussians
   with the same mean. arXiv:1810.08693v7, Theorem 1.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.planning.limits import fano_users

__all__ = [
    "Packing",
    "agnostic_packing",
    "covariance_packing",
    "discrete_packing",
    "finite_class_packing",
    "log_code_words",
    "normal_packing",
    "packing_floor",
]

# Perturbations larger than this leave the region in which the constructions are distributions.
_LARGEST = 0.9
# derived: members are more than twice the error apart, so that no answer is within it of two.
_APART = 2.0 * (1.0 + 1e-9)


@dataclass(frozen=True)
class Packing:
    """A family of distributions such that no answer is good for two of them.

    Attributes
    ----------
    log_alternatives : float
        Logarithm of the number of its members.
    divergence : float
        Largest Kullback-Leibler divergence of two members, for one record.
    """

    log_alternatives: float
    divergence: float


def log_code_words(length: int, distance: int) -> float:
    """Return the logarithm of the number of words that differ pairwise in ``distance`` bits.

    Gilbert and Varshamov: as long as balls of radius distance - 1 around the words do not cover all
    2^length words, another word can be added.

    >>> round(log_code_words(100, 25) / 100, 3)
    0.162
    """
    _validate.positive_integer(length=length, distance=distance)
    ball = sum(math.comb(int(length), i) for i in range(int(distance)))
    return max(0.0, int(length) * math.log(2.0) - _log(ball))


def _log(number: int) -> float:
    """Return the logarithm of an integer of any size, rounded up a little."""
    shift = max(0, number.bit_length() - 60)
    return math.log(number >> shift) + shift * math.log(2.0) + 1e-15


def _signed(length: int, strength: float) -> Packing | None:
    """Return the packing of pairs of cells, in each of which ``strength`` favours one cell.

    Members differ in a quarter of the pairs or more. In each pair that differs the divergence is
    its mass times strength ln((1 + strength) / (1 - strength)); all pairs together have mass 1.
    """
    if not 0 < strength <= _LARGEST:
        return None
    distance = max(1, math.ceil(length / 4))
    words = log_code_words(length, distance)
    if words < math.log(2.0):
        return None
    return Packing(words, strength * math.log((1.0 + strength) / (1.0 - strength)))


def discrete_packing(categories: int, error: float) -> Packing | None:
    """Return a packing of distributions over categories, for total variation ``error``.

    Theorem 43 of [F]_: categories come in k/2 pairs of mass 2/k, split (1 + g)/k : (1 - g)/k or the
    other way round. Two members that differ in h pairs are 2 g h / k apart; with h >= k/8 and
    g = 8 error they are 2 error apart, so that no answer is within ``error`` of both.

    >>> found = discrete_packing(100, 0.01)
    >>> round(found.log_alternatives, 2), round(found.divergence, 4)
    (8.79, 0.0119)
    """
    _validate.positive_integer(categories=categories)
    _validate.positive(error=error)
    pairs = int(categories) // 2
    if pairs == 0:
        return None
    # Exactly: 2 g h / (2 pairs) = 2 error for h differing pairs; an odd category stays empty.
    return _signed(pairs, _APART * error * pairs / max(1, math.ceil(pairs / 4)))


def agnostic_packing(vc: int, error: float) -> Packing | None:
    """Return a packing of noisy labels on shattered points, for excess error ``error``.

    Theorem 40 of [F]_: each of the d points has the label of the word with probability (1 + g)/2.
    For words that differ in h points the excess errors of any rule add up to at least g h / d. So
    with h >= d/4 and g = 8 error no rule is good for both.

    >>> agnostic_packing(100, 0.01) == discrete_packing(200, 0.01)
    True
    """
    _validate.positive_integer(vc=vc)
    _validate.positive(error=error)
    return _signed(int(vc), _APART * error * int(vc) / max(1, math.ceil(int(vc) / 4)))


def finite_class_packing(size: int, error: float, *, width: float) -> Packing | None:
    """Return a packing of losses of at most ``width`` for a choice among ``size`` candidates.

    Theorem 8 of [U]_ (U8): candidates are the words of d = log2(size) signs. A record is one of the
    d positions with a sign, which with probability (1 + g)/2 is that of the distribution's word. A
    candidate
    loses ``width`` if its sign at this position is that of the record. For two distributions whose
    words differ in h positions the excess losses of any candidate add up to at least width g h / d,
    as in :func:`agnostic_packing`.

    >>> finite_class_packing(2**100, 0.02, width=2.0) == agnostic_packing(100, 0.01)
    True
    """
    _validate.positive_integer(size=size)
    _validate.positive(error=error, width=width)
    places = int(size).bit_length() - 1
    return agnostic_packing(places, error / width) if places else None


def normal_packing(dimension: int, error: float) -> Packing | None:
    """Return a packing of normal distributions of covariance I, for total variation ``error``.

    Theorem 45 of [F]_: means are r times the signs of a word over the root of d. Words that differ
    in h places are 2 r sqrt(h/d) apart; two normal distributions at distance t have total variation
    2 Phi(t/2) - 1 and divergence t^2 / 2.

    >>> found = normal_packing(64, 0.01)
    >>> round(found.divergence / 0.01**2, 1)
    50.3
    """
    from scipy.special import ndtri

    _validate.positive_integer(dimension=dimension)
    _validate.positive(error=error)
    if error >= 0.5:
        return None
    distance = max(1, math.ceil(dimension / 4))
    words = log_code_words(dimension, distance)
    if words < math.log(2.0):
        return None
    apart = _APART * float(ndtri(0.5 + error))
    # The nearest members are this far apart, the farthest sqrt(d / distance) times as far.
    return Packing(words, 0.5 * apart**2 * dimension / distance)


def covariance_packing(dimension: int, error: float) -> Packing | None:
    """Return a packing of normal distributions of mean 0, for total variation ``error``.

    Theorem 46 of [F]_: covariances are I plus g times a symmetric matrix of signs off the diagonal.
    By [D]_ the total variation is at least a hundredth of the Frobenius norm of the relative
    difference; the divergence is at most half its square, for g up to 1 / (4 d).

    >>> covariance_packing(20, 1e-4).log_alternatives > 20
    True
    """
    _validate.positive_integer(dimension=dimension)
    _validate.positive(error=error)
    entries = int(dimension) * (int(dimension) - 1) // 2
    if entries < 2:
        return None
    distance = max(1, math.ceil(entries / 4))
    words = log_code_words(entries, distance)
    # With eigenvalues within 1/2 of 1 a relative difference is between 2/3 and 2 of the absolute.
    nearest = 100.0 * _APART * error * 1.5
    strength = nearest / (2.0 * math.sqrt(2.0 * distance))
    if words < math.log(2.0) or strength > 1.0 / (4.0 * dimension) or nearest > 1.0:
        return None
    farthest = 2.0 * 2.0 * strength * math.sqrt(2.0 * entries)
    return Packing(words, 0.5 * farthest**2)


def packing_floor(
    packing: Packing | None,
    *,
    records: int,
    epsilon: float,
    beta: float,
    relation: Relation = Relation.REPLACE,
) -> float:
    """Return the number of users that a packing requires under pure privacy; 0 without one.

    >>> known = dict(records=16, epsilon=1.0, beta=0.1)
    >>> packing_floor(discrete_packing(1000, 0.05), **known) > 15
    True
    >>> packing_floor(None, **known)
    0.0
    """
    if packing is None:
        return 0.0
    return fano_users(
        log_alternatives=packing.log_alternatives,
        divergence=packing.divergence,
        records=records,
        epsilon=epsilon,
        beta=beta,
        relation=relation,
    )
