"""Private quantiles of one value per user, over integer domains of any size (L5).

Each user gives one integer, or a pair of limits and accepts every point from the first to the
second. The released point has about the desired fraction of the users below it and the others
above.
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
from quorate.core.account.account import Account
from quorate.core.guarantees import Guarantee, Pure, Relation
from quorate.core.questions.lines import SealedLine
from quorate.core.questions.ranks import (
    check_domain,
    quantile_pieces,
    rank_line,
    rank_sensitivity,
)
from quorate.core.sealed import SealedRows, check_rows, check_sealed
from quorate.exceptions import ParameterError, SchemaError, SealedError
from quorate.mechanisms.choices.choose import Selection
from quorate.mechanisms.choices.ordered import ChooseOrdered

__all__ = ["FloatQuantile", "PrivateQuantile"]


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
    proof : For n users and quantile a/b the loss of point u is :math:`\max(b B(u) - a n, b A(u) -
        (b - a) n)`, where B(u) users have their upper limit below u and A(u) their lower limit
        above. Replacing a user changes it by at most b, a new user by at most max(a, b - a)
        (:mod:`quorate.core.questions.ranks`). The sealed losses carry this sensitivity to
        :class:`ChooseOrdered`, whose proof completes this one. Limits may be in either order and
        are first clipped to the domain. [1]_

    Utility
    -------
    With probability at least :math:`1 - \beta` at most :math:`qn + t` users lie below the released
    point and at most :math:`(1-q)n + t` above it, with t = ``error_bound(beta)`` =
    :math:`O(\log(N/\beta)/\varepsilon)` for N points. (For pairs of limits in reversed order, t is
    counted from the best point instead.)

    Complexity
    ----------
    Time :math:`O(n \log n)`, memory :math:`O(n)`, for any domain.

    Parameters
    ----------
    domain : tuple of int
        First and last point, within int64, with fewer than 2**64 points; public.
    epsilon : float
    quantile : float or Fraction, default=0.5
        Between 0 and 1; a float counts as the decimal that it prints as. Its denominator may be at
        most a million.
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
        check_domain(self.domain)
        _validate.probability(quantile=self.quantile)
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
        """The largest change of the loss of any point by one user."""
        return rank_sensitivity(self.exact_quantile, self.relation)

    @cached_property
    def choice(self) -> ChooseOrdered:
        """The choice of a point that this mechanism uses."""
        return ChooseOrdered(
            epsilon=self.epsilon,
            sensitivity=self.sensitivity,
            relation=self.relation,
            selection=self.selection,
        )

    @property
    def event(self) -> Pure:
        """The event for the accountant."""
        return self.choice.event

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one call of :meth:`release` or :meth:`release_between`."""
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
        """Return a point that is outside of few users' intervals [``lower``, ``upper``].

        >>> between = PrivateQuantile(domain=(0, 10**9), epsilon=1.0)
        >>> from quorate.core.by_hand import rows_by_hand
        >>> low, high = rows_by_hand([7] * 200), rows_by_hand([8] * 200)
        >>> 7 <= between.release_between(low, high) <= 8
        True
        """
        losses = self.losses(lower, upper)
        return self.choice.release(losses, lower=self.domain[0], account=account)

    def losses(self, lower: SealedRows, upper: SealedRows) -> SealedLine:
        """Return the sealed loss of every point of the domain."""
        for values in (lower, upper):
            check_sealed(values, SealedRows)
            check_rows(values, self.relation)
            # Who comes or goes changes the row of a pair as a replacement would: see PairQuantile.
            if values.paired and self.sensitivity < self.exact_quantile.denominator:
                raise SealedError("Expected one row a user, got one a pair: use PairQuantile.")
        return rank_line(lower, upper, domain=self.domain, quantile=self.exact_quantile)

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
        """Bound the error of the rank, in users, except with probability ``beta``."""
        size = int(self.domain[1]) - int(self.domain[0]) + 1
        return self.choice.error_bound(size, beta) / self.exact_quantile.denominator

    def pieces(
        self, lower: NDArray[np.int64], upper: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return lengths and losses of the pieces into which unsealed values divide the domain.

        It is for audits: sealed rows are refused, because their pieces are private numbers.
        """
        return quantile_pieces(lower, upper, domain=self.domain, quantile=self.exact_quantile)


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
        to its end, NaN to the middle, otherwise to the nearest point up to rounding. The rest is
        :class:`PrivateQuantile` on the indices of the grid points.

    Utility
    -------
    As for :class:`PrivateQuantile`, for the values rounded to the grid: with probability at least
    :math:`1 - \beta` the rank is off by at most ``error_bound(beta)`` users.

    Complexity
    ----------
    As for :class:`PrivateQuantile`.

    Parameters
    ----------
    lower, upper : float
        Range of the answer; public.
    resolution : float
        Distance between grid points.
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
        """The mechanism on the indices of the grid points."""
        last = math.floor((self.upper - self.lower) / self.resolution)
        return PrivateQuantile(
            domain=(0, last),
            epsilon=self.epsilon,
            quantile=self.quantile,
            relation=self.relation,
        )

    @property
    def event(self) -> Pure:
        """The event for the accountant."""
        return self.integers.event

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of one call of :meth:`release`."""
        return self.integers.guarantee

    def encode(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the index of each value's grid point.

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
        """Return the real number at a grid point."""
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
        """Return a grid point that is outside of few users' intervals [``lower``, ``upper``]."""
        return self.integers.release_between(lower, upper, account=account)

    def error_bound(self, beta: float) -> float:
        """Bound the error of the rank, in users, except with probability ``beta``."""
        return self.integers.error_bound(beta)
