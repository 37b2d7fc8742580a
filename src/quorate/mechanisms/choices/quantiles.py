"""Private quantiles of one value per user, over integer domains of any size (L5).

Each user gives one integer, or a pair of limits: content with every point from the first to the
second. The release is a point that few users would want much lower and few much higher.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.accounting.account import Account
from quorate.core.sealed import SealedRows, check_rows, check_sealed, opened_rows
from quorate.exceptions import ParameterError, SchemaError, SealedError
from quorate.guarantees import Guarantee, Pure, Relation
from quorate.mechanisms.choices.choose import Selection
from quorate.mechanisms.choices.ordered import ChooseOrdered

__all__ = [
    "FloatQuantile",
    "PrivateQuantile",
    "check_denominator",
    "paid_pieces",
    "quantile_pieces",
    "rank_loss",
    "rank_sensitivity",
]

_LARGEST_DENOMINATOR = 10**6
"""Times a number of users that fits into memory, a loss stays below 2^62."""

_INT64 = np.iinfo(np.int64)


def quantile_pieces(
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    *,
    domain: tuple[int, int],
    quantile: Fraction,
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return lengths and losses of the 2n + 1 pieces into which n users cut the domain.

    User i minds a point u that is below ``lower[i]`` or above ``upper[i]``. With quantile a/b the
    loss of u is max(b * #{upper < u} - a * n, b * #{lower > u} - (b - a) * n): how many users too
    many mind on one side, times b. Values outside the domain count as its nearest end.

    >>> x = np.array([2, 2, 7])
    >>> lengths, losses = quantile_pieces(x, x, domain=(0, 9), quantile=Fraction(1, 2))
    >>> lengths.tolist()
    [2, 0, 1, 0, 4, 1, 2]
    >>> losses[lengths > 0].tolist()
    [3, -1, 1, 1, 3]
    """
    first, last = (int(end) for end in domain)
    n = len(lower)
    # Offsets from the first point; the differences wrap around to the right unsigned values.
    origin = np.array(first, dtype=np.int64).astype(np.uint64)
    no_lower = np.sort(np.clip(lower, first, last).astype(np.uint64) - origin)
    too_high = np.sort(np.clip(upper, first, last).astype(np.uint64) - origin) + np.uint64(1)
    cuts = np.concatenate([no_lower, too_high])
    order = np.argsort(cuts, kind="stable")
    size = np.array([last - first + 1], dtype=np.uint64)
    edges = np.concatenate([np.zeros(1, np.uint64), cuts[order], size])
    below = np.concatenate([[0], np.cumsum(order >= n)])
    above = n - np.concatenate([[0], np.cumsum(order < n)])
    a, b = quantile.numerator, quantile.denominator
    losses = np.maximum(b * below - a * n, b * above - (b - a) * n)
    return np.diff(edges), losses.astype(np.int64)


def rank_loss(
    lower: NDArray[np.int64], upper: NDArray[np.int64], *, point: int, quantile: Fraction
) -> int:
    """Return the loss of one point, as :func:`quantile_pieces` has it.

    >>> x = np.array([2, 2, 7])
    >>> [rank_loss(x, x, point=u, quantile=Fraction(1, 2)) for u in (1, 2, 5)]
    [3, -1, 1]
    """
    a, b, n = quantile.numerator, quantile.denominator, len(lower)
    below, above = int(np.count_nonzero(upper < point)), int(np.count_nonzero(lower > point))
    return max(b * below - a * n, b * above - (b - a) * n)


def check_denominator(quantile: Fraction) -> None:
    """Refuse a quantile whose ranks would not fit into 64 bits.

    >>> check_denominator(Fraction(9, 10))
    """
    if quantile.denominator > _LARGEST_DENOMINATOR:
        raise ParameterError(
            f"Expected a quantile with a denominator of at most {_LARGEST_DENOMINATOR}, got "
            f"quantile={quantile}. Round it or give a Fraction."
        )


def rank_sensitivity(quantile: Fraction, relation: Relation) -> int:
    """Return how far one user moves the loss of any point: see :class:`PrivateQuantile`.

    >>> [rank_sensitivity(Fraction(9, 10), relation) for relation in Relation]
    [10, 9]
    """
    a, b = quantile.numerator, quantile.denominator
    return b if relation is Relation.REPLACE else max(a, b - a)


@dataclass(frozen=True, kw_only=True)
class PrivateQuantile:
    r"""Release a point of an integer domain near a quantile of the users' values.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``domain``, ``quantile``, ``epsilon``; under ``Relation.REPLACE`` the number of users
    numerics : exact
    proof : For n users and quantile a/b the loss of point u is
        :math:`\max(b B(u) - a n, b A(u) - (b - a) n)`, where B(u) users have their upper limit
        below u and A(u) their lower limit above. *Replace:* n stays, B(u) and A(u) change by at
        most 1, the loss by at most b. *Add or remove:* a new user adds b - a or -a to the first
        term and a or -(b - a) to the second, so the loss changes by at most max(a, b - a). These
        are the sensitivities given to :class:`ChooseOrdered`, whose proof does the rest. Limits may
        be in any order and are clipped to the domain first. [1]_

    Utility
    -------
    With probability at least :math:`1 - \beta` at most :math:`qn + t` users lie below the released
    point and at most :math:`(1-q)n + t` above it, with t = ``error_bound(beta)`` =
    :math:`O(\log(N/\beta)/\varepsilon)` for N points. (For pairs of limits in reversed order, t is
    counted from the best point instead.)

    Complexity
    ----------
    Time :math:`O(n \log n)`, memory :math:`O(n)`, whatever the domain.

    Parameters
    ----------
    domain : tuple of int
        First and last point, inside int64 and fewer than 2**64 points; public.
    epsilon : float
    quantile : float or Fraction, default=0.5
        Between 0 and 1; a float is read as the decimal it prints as. Its denominator may be at most
        a million.
    relation : Relation, default=Relation.REPLACE
    selection : Selection, default=Selection.GUMBEL
        As for :class:`ChooseOrdered`; permute-and-flip takes time for each user.

    References
    ----------
    .. [1] Li, Wang, Ye. Improved bounds for pure private agnostic learning: item-level and
       user-level privacy. ICML 2024, Lemma 5.1.

    Examples
    --------
    >>> from quorate.core.by_hand import rows_by_hand
    >>> ages = rows_by_hand([31, 35, 38, 40, 41, 44, 52, 60] * 40)
    >>> median = PrivateQuantile(domain=(0, 120), epsilon=1.0)
    >>> 35 <= median.release(ages) <= 52
    True
    >>> median.error_bound(0.01)
    18.5
    """

    domain: tuple[int, int]
    epsilon: float | Fraction
    quantile: float | Fraction = Fraction(1, 2)
    relation: Relation = Relation.REPLACE
    selection: Selection = Selection.GUMBEL

    def __post_init__(self) -> None:
        _check_domain(self.domain)
        _validate.probability(quantile=self.quantile)
        check_denominator(self.exact_quantile)
        _ = self.choice

    @cached_property
    def exact_quantile(self) -> Fraction:
        """The quantile as a fraction.

        >>> PrivateQuantile(domain=(0, 9), epsilon=1.0, quantile=0.9).exact_quantile
        Fraction(9, 10)
        """
        given = self.quantile
        return Fraction(given) if isinstance(given, numbers.Rational) else Fraction(str(given))

    @property
    def sensitivity(self) -> int:
        """How far one user moves the loss of any point."""
        return rank_sensitivity(self.exact_quantile, self.relation)

    @cached_property
    def choice(self) -> ChooseOrdered:
        """The mechanism underneath."""
        return ChooseOrdered(
            epsilon=self.epsilon,
            sensitivity=self.sensitivity,
            relation=self.relation,
            selection=self.selection,
        )

    @property
    def event(self) -> Pure:
        """What the accountant prices."""
        return self.choice.event

    @property
    def guarantee(self) -> Guarantee:
        """The promise of one call of :meth:`release` or :meth:`release_between`."""
        return self.choice.guarantee

    def release(self, values: SealedRows, *, account: Account | None = None) -> int:
        """Return a point near the quantile of one integer per user."""
        return self.release_between(values, values, account=account)

    def release_between(
        self,
        lower: SealedRows,
        upper: SealedRows,
        *,
        account: Account | None = None,
    ) -> int:
        """Return a point that few users find below ``lower`` and few above ``upper``.

        >>> between = PrivateQuantile(domain=(0, 10**9), epsilon=1.0)
        >>> from quorate.core.by_hand import rows_by_hand
        >>> low, high = rows_by_hand([7] * 200), rows_by_hand([8] * 200)
        >>> 7 <= between.release_between(low, high) <= 8
        True
        """
        lengths, losses = paid_pieces(self, lower, upper, account)
        return self.choice.release(lengths, losses, lower=self.domain[0], account=account)

    def probabilities(
        self, lower: NDArray[np.int64], upper: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return the probability of each point of a small domain, in order; for audits.

        >>> median = PrivateQuantile(domain=(0, 2), epsilon=2.0)
        >>> median.probabilities(np.array([1])).round(3).tolist()
        [0.212, 0.576, 0.212]
        """
        lengths, losses = self.pieces(lower, lower if upper is None else upper)
        points = self.choice.probabilities(lengths, losses) / np.maximum(lengths, 1)
        return np.repeat(points, lengths.astype(np.int64))

    def error_bound(self, beta: float) -> float:
        """Return by how many users the rank may be off, except with probability ``beta``."""
        size = int(self.domain[1]) - int(self.domain[0]) + 1
        return self.choice.error_bound(size, beta) / self.exact_quantile.denominator

    def pieces(
        self, lower: NDArray[np.int64], upper: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return lengths and losses of the pieces of :func:`quantile_pieces`; for audits.

        Sealed rows are refused: of people the pieces are private numbers.
        """
        low, high = _values(lower), _values(upper)
        if low.shape != high.shape:
            raise SchemaError(
                "Expected as many lower as upper limits, one of each a user, got other numbers."
            )
        return quantile_pieces(low, high, domain=self.domain, quantile=self.exact_quantile)


def paid_pieces(
    quantile: PrivateQuantile,
    lower: SealedRows,
    upper: SealedRows,
    account: Account | None,
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the pieces for a release that pays for them; only the core imports this.

    Rows under another relation, or about other people than the account's, are refused.
    """
    for values in (lower, upper):
        check_sealed(values, SealedRows)
        check_rows(values, quantile.relation)
        if account is not None:
            account.check_seal(values)
        # Who comes or goes changes the row of a pair as a replacement would: see PairQuantile.
        if values.paired and quantile.sensitivity < quantile.exact_quantile.denominator:
            raise SealedError("Expected one row a user, got one a pair: use PairQuantile.")
    return quantile.pieces(opened_rows(lower), opened_rows(upper))


@dataclass(frozen=True, kw_only=True)
class FloatQuantile:
    r"""Release a number near a quantile of the users' real values, on a public grid.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``lower``, ``upper``, ``resolution``, ``quantile``, ``epsilon``; under
        ``Relation.REPLACE`` the number of users
    numerics : exact
    proof : Each value is moved to a grid point by a function of that value alone: outside the range
        to its end, NaN to the middle, otherwise to the nearest point up to rounding. What follows
        is :class:`PrivateQuantile` on the numbers of the grid points.

    Utility
    -------
    That of :class:`PrivateQuantile` for the values as moved to the grid: with probability at least
    :math:`1 - \beta` the rank is off by at most ``error_bound(beta)`` users.

    Complexity
    ----------
    That of :class:`PrivateQuantile`.

    Parameters
    ----------
    lower, upper : float
        Range of the answer; public.
    resolution : float
        Distance of grid points.
    epsilon : float
    quantile : float or Fraction, default=0.5
    relation : Relation, default=Relation.REPLACE

    References
    ----------
    See :class:`PrivateQuantile`.

    Examples
    --------
    >>> from quorate.core.by_hand import rows_by_hand
    >>> heights = rows_by_hand(np.linspace(1.5, 1.9, 400))
    >>> median = FloatQuantile(lower=0.0, upper=3.0, resolution=0.001, epsilon=1.0)
    >>> abs(median.release(heights) - 1.7) < 0.1
    True
    """

    lower: float
    upper: float
    resolution: float
    epsilon: float | Fraction
    quantile: float | Fraction = Fraction(1, 2)
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        _validate.ordered(self.lower, self.upper, name="range")
        _validate.positive(resolution=self.resolution)
        if not 1 <= (self.upper - self.lower) / self.resolution < 2**53:
            raise ParameterError(
                "Expected a resolution between (upper - lower) / 2**53 and upper - lower, got "
                f"resolution={self.resolution!r}."
            )
        _ = self.integers

    @cached_property
    def integers(self) -> PrivateQuantile:
        """The mechanism on the numbers of the grid points."""
        last = math.floor((self.upper - self.lower) / self.resolution)
        return PrivateQuantile(
            domain=(0, last),
            epsilon=self.epsilon,
            quantile=self.quantile,
            relation=self.relation,
        )

    @property
    def event(self) -> Pure:
        """What the accountant prices."""
        return self.integers.event

    @property
    def guarantee(self) -> Guarantee:
        """The promise of one call of :meth:`release`."""
        return self.integers.guarantee

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the number of each value's grid point.

        >>> grid = FloatQuantile(lower=0.0, upper=1.0, resolution=0.25, epsilon=1.0)
        >>> grid.encode(np.array([0.3, np.inf, -7.0, np.nan])).tolist()
        [1, 4, 0, 2]
        """
        values = np.asarray(values)
        if values.ndim != 1 or values.dtype.kind not in "fiu":
            raise SchemaError(
                f"Expected one real number per user in one axis, got {values.ndim} axes of "
                f"{values.dtype}."
            )
        last = self.integers.domain[1]
        with np.errstate(all="ignore"):
            offsets = values.astype(np.float64) - float(self.lower)
            steps = np.rint(offsets / float(self.resolution))
        return np.clip(np.where(np.isnan(steps), last // 2, steps), 0, last).astype(np.int64)

    def decode(self, point: int) -> float:
        """Return the number of a grid point."""
        return min(float(self.lower) + point * float(self.resolution), float(self.upper))

    def release(self, values: SealedRows, *, account: Account | None = None) -> float:
        """Return a number near the quantile of one real value per user."""
        check_sealed(values, SealedRows)
        points = values.map(self.encode)
        return self.decode(self.integers.release(points, account=account))

    def release_between(
        self,
        lower: SealedRows,
        upper: SealedRows,
        *,
        account: Account | None = None,
    ) -> int:
        """Return a grid point that few users find below ``lower`` and few above ``upper``."""
        return self.integers.release_between(lower, upper, account=account)

    def error_bound(self, beta: float) -> float:
        """Return by how many users the rank may be off, except with probability ``beta``."""
        return self.integers.error_bound(beta)


def _check_domain(domain: tuple[int, int]) -> None:
    pair = isinstance(domain, tuple) and len(domain) == 2
    if not (
        pair and all(isinstance(e, numbers.Integral) and not isinstance(e, bool) for e in domain)
    ):
        raise ParameterError(f"Expected domain to be a pair of integers, got domain={domain!r}.")
    first, last = (int(end) for end in domain)
    if not (_INT64.min <= first <= last <= _INT64.max and last - first + 1 < 2**64):
        raise ParameterError(
            "Expected domain ends inside int64, in order, and fewer than 2**64 points, got "
            f"domain={domain!r}."
        )


def _values(values: NDArray[np.int64]) -> NDArray[np.int64]:
    values = np.asarray(values)
    _validate.integer_dtype(values=values.dtype)
    if values.ndim != 1:
        raise SchemaError(f"Expected one value per user in one axis, got {values.ndim} axes.")
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(_INT64.max))
    return values.astype(np.int64)
