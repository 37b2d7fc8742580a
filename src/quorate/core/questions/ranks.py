r"""Users' intervals on a line: how many of them lie below a point, above it, or contain it.

Each user has an interval of points, perhaps a single one. At a point u some intervals lie below,
some above, and the others contain it. These three numbers are constant between the ends of
intervals, so a domain of 2^63 points is divided into 2n + 1 pieces.

Proof of the moves
------------------
*Ranks.* For n users and the quantile a/b the loss of u is :math:`\max(b B - a n, b A - (b - a) n)`
with B intervals below u and A above it. *Replace:* n is constant, B and A change by at most 1, the
loss by at most b. *Add or remove:* a new user adds b - a or -a to the first term and a or -(b - a)
to the second, so the loss changes by at most max(a, b - a). The interval of a pair of users may be
replaced even if one user is added or removed; then the sensitivity is b under either relation.
The two limits may be in any order: an upper limit counts for B alone, and a lower one for A alone.
A user may even lack one of the two, because n is the number of upper limits in the first term and
of lower limits in the second. If a user with a limit is replaced by one without it, a term changes
by a or b - a, which is at most b.

*Covers.* For coverage the loss of u is minus the number of intervals that contain it, which one
interval changes by at most 1.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.moves import Moves
from quorate.core.questions.lines import SealedLine, line_of_pieces
from quorate.core.sealed import Sealed, SealedRows, check_sealed, opened, seal
from quorate.exceptions import ParameterError, RelationMismatchError, SchemaError

__all__ = [
    "check_domain",
    "covered_line",
    "covered_pieces",
    "quantile_pieces",
    "rank_line",
    "rank_loss",
    "rank_of",
    "rank_sensitivity",
]

Integers = NDArray[np.int64]
Pieces = tuple[NDArray[np.uint64], Integers]

_LARGEST_DENOMINATOR = 10**6  # machine: 10^6 < 2^20, and 2^42 users fill memory
"""Times a number of users that fits into memory, a loss stays below 2^62."""

_INT64 = np.iinfo(np.int64)


def rank_line(
    lower: SealedRows, upper: SealedRows, *, domain: tuple[int, int], quantile: Fraction
) -> SealedLine:
    """Return the loss of every point of a public domain as a quantile of the users' intervals.

    Values outside of the domain count as its nearest end.

    >>> from quorate.core.by_hand import rows_by_hand
    >>> held = rows_by_hand([2, 2, 7])
    >>> rank_line(held, held, domain=(0, 9), quantile=Fraction(1, 2))
    SealedLine(size=10, one user moves a loss by at most 2)
    """
    reach = _reach(lower, quantile)
    pieces = quantile_pieces(*_opened(lower, upper), domain=domain, quantile=quantile)
    return _line(pieces, reach, lower)


def covered_line(intervals: SealedRows, *, domain: tuple[int, int]) -> SealedLine:
    """Return minus the number of users' intervals that contain each point of a public domain.

    A row has both ends of one interval, because two separate answers might have different orders of
    users.

    >>> from quorate.core.by_hand import rows_by_hand
    >>> covered_line(rows_by_hand([[2, 4], [2, 5], [7, 9]]), domain=(0, 9))
    SealedLine(size=10, one user moves a loss by at most 1)
    """
    ends = _opened(intervals.column(0), intervals.column(1))
    return _line(covered_pieces(*ends, domain=domain), 1, intervals)


def rank_of(lower: SealedRows, upper: SealedRows, *, point: int, quantile: Fraction) -> Sealed:
    """Return the loss of one public point, as in :func:`rank_line`.

    >>> from quorate.core.by_hand import rows_by_hand
    >>> held = rows_by_hand([2, 2, 7])
    >>> rank_of(held, held, point=5, quantile=Fraction(1, 2))
    Sealed(shape=(1,), one user moves a coordinate by at most 2)
    """
    reach = _reach(lower, quantile)
    loss = rank_loss(*_opened(lower, upper), point=point, quantile=quantile)
    return seal([loss], Moves(reach, reach**2, reach, reach), lower.relation, lower.among)


def rank_sensitivity(quantile: Fraction, relation: Relation) -> int:
    """Return the largest change of any point's loss by one interval.

    >>> [rank_sensitivity(Fraction(9, 10), relation) for relation in Relation]
    [10, 9]
    """
    _validate.fraction(quantile=quantile)
    a, b = quantile.numerator, quantile.denominator
    if b > _LARGEST_DENOMINATOR:
        raise ParameterError(
            f"Expected a quantile with a denominator of at most {_LARGEST_DENOMINATOR}, got "
            f"quantile={quantile}. Round it or give a Fraction."
        )
    return b if relation is Relation.REPLACE else max(a, b - a)


def check_domain(domain: tuple[int, int]) -> None:
    """Refuse ends that do not describe a domain of at most 2^64 points.

    >>> check_domain((0, 9))
    """
    pair = isinstance(domain, tuple) and len(domain) == 2
    if not (pair and all(_validate.is_integer(end) for end in domain)):
        raise ParameterError(f"Expected domain to be a pair of integers, got domain={domain!r}.")
    first, last = (int(end) for end in domain)
    if not (_INT64.min <= first <= last <= _INT64.max and last - first + 1 < 2**64):
        raise ParameterError(
            "Expected domain ends inside int64, in order, and fewer than 2**64 points, got "
            f"domain={domain!r}."
        )


# What is found of plain intervals: for audits, and above for sealed ones.


def quantile_pieces(
    lower: Integers, upper: Integers, *, domain: tuple[int, int], quantile: Fraction
) -> Pieces:
    """Return lengths and losses of the 2n + 1 pieces into which n users divide the domain.

    >>> x = np.array([2, 2, 7])
    >>> lengths, losses = quantile_pieces(x, x, domain=(0, 9), quantile=Fraction(1, 2))
    >>> lengths.tolist()
    [2, 0, 1, 0, 4, 1, 2]
    >>> losses[lengths > 0].tolist()
    [3, -1, 1, 1, 3]
    """
    lengths, below, above = _sides(lower, upper, domain)
    a, b = quantile.numerator, quantile.denominator
    return lengths, np.maximum(b * below - a * len(upper), b * above - (b - a) * len(lower))


def covered_pieces(lower: Integers, upper: Integers, *, domain: tuple[int, int]) -> Pieces:
    """Return lengths of pieces, and minus the number of intervals that contain each.

    >>> lengths, losses = covered_pieces(np.array([2, 6]), np.array([4, 9]), domain=(0, 9))
    >>> lengths.tolist(), losses.tolist()
    ([2, 3, 1, 4, 0], [0, -1, 0, -1, 0])
    """
    if np.shape(lower) != np.shape(upper):
        raise SchemaError("Expected both ends of each interval, got other numbers of them.")
    lengths, below, above = _sides(lower, np.maximum(lower, upper), domain)
    return lengths, below + above - len(lower)


def rank_loss(lower: Integers, upper: Integers, *, point: int, quantile: Fraction) -> int:
    """Return the loss of one point, as in :func:`quantile_pieces`.

    >>> x = np.array([2, 2, 7])
    >>> [rank_loss(x, x, point=u, quantile=Fraction(1, 2)) for u in (1, 2, 5)]
    [3, -1, 1]
    """
    a, b = quantile.numerator, quantile.denominator
    below, above = int(np.count_nonzero(upper < point)), int(np.count_nonzero(lower > point))
    return max(b * below - a * len(upper), b * above - (b - a) * len(lower))


def _sides(
    lower: Integers, upper: Integers, domain: tuple[int, int]
) -> tuple[NDArray[np.uint64], Integers, Integers]:
    """Return the lengths of the pieces, and how many intervals lie below and above each piece."""
    lower, upper = _integers(lower), _integers(upper)
    check_domain(domain)
    first, last = (int(end) for end in domain)
    # Offsets from the first point; the differences wrap around to the right unsigned values.
    origin = np.array(first, dtype=np.int64).astype(np.uint64)
    no_lower = np.sort(np.clip(lower, first, last).astype(np.uint64) - origin)
    too_high = np.sort(np.clip(upper, first, last).astype(np.uint64) - origin) + np.uint64(1)
    cuts = np.concatenate([no_lower, too_high])
    order = np.argsort(cuts, kind="stable")
    size = np.array([last - first + 1], dtype=np.uint64)
    edges = np.concatenate([np.zeros(1, np.uint64), cuts[order], size])
    below = np.concatenate([[0], np.cumsum(order >= len(lower))])
    above = len(lower) - np.concatenate([[0], np.cumsum(order < len(lower))])
    return np.diff(edges), below.astype(np.int64), above.astype(np.int64)


def _reach(rows: SealedRows, quantile: Fraction) -> int:
    check_sealed(rows, SealedRows)
    return rank_sensitivity(quantile, Relation.REPLACE if rows.paired else rows.relation)


def _opened(lower: SealedRows, upper: SealedRows) -> tuple[Integers, Integers]:
    check_sealed(lower, SealedRows)
    check_sealed(upper, SealedRows)
    if lower.relation is not upper.relation or lower.among is not upper.among:
        raise RelationMismatchError("Expected lower and upper limits of the same people.")
    if lower.paired is not upper.paired:
        raise RelationMismatchError("Expected lower and upper limits of users, or both of pairs.")
    # How many there are of each is private: it may follow from who is absent.
    return _integers(opened(lower)), _integers(opened(upper))


def _integers(values: NDArray[np.generic]) -> Integers:
    values = np.asarray(values)
    _validate.integer_dtype(values=values.dtype)
    if values.ndim != 1:
        raise SchemaError(f"Expected one value per user in one axis, got {values.ndim} axes.")
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(_INT64.max))
    return values.astype(np.int64, copy=False)


def _line(pieces: Pieces, reach: int, rows: SealedRows) -> SealedLine:
    lengths, losses = pieces
    moves = Moves.of_scores(reach, coordinates=int(np.sum(lengths)), one_sided=False)
    return line_of_pieces(lengths, losses, moves, rows.relation, rows.among)
