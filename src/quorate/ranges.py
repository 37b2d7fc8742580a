"""Public limits of the values, ``bounds=``, and the forms in which callers may write them.

Every estimator and the command line read limits here, and refuse a wrong one before it costs
anything. A caller may write

* a number b: every column lies in [-b, b];
* a pair ``(lower, upper)``, each a number or a sequence with one number per column;
* a dictionary from the names of the columns to numbers or pairs, such as ``{"age": (0, 120)}``, or
  to pairs of dates, ``{"visit": ("2020-01-01", "2024-12-31")}``; a boolean column lies in [0, 1]
  unless it is named;
* an :class:`~quorate.core.bounds.grid.Interval`, a :class:`~quorate.core.bounds.grid.Box` or a
  :class:`~quorate.core.bounds.grid.Ball`.

Limits come from public knowledge, never from the data. Messages name types, shapes and columns and
quote single numbers only: data that are passed by mistake do not appear in an error.
"""

from __future__ import annotations

import datetime
import math
import numbers
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate._validate import described
from quorate.core.bounds.grid import Bound, Box, Interval
from quorate.core.users.crowd import Crowd
from quorate.data.coding import Coding, Days, Plain
from quorate.data.dates import days_of
from quorate.data.tables import NO_FEATURES, declared_names
from quorate.exceptions import ParameterError, SchemaError, UnboundedContributionError

__all__ = [
    "Limit",
    "as_bound",
    "as_limits",
    "coded_bounds",
    "dates_among",
    "declared_bound",
    "declared_features",
    "declared_limits",
    "for_squares",
    "half_width",
    "half_widths",
    "limits_by_name",
]

Vector = NDArray[np.float64]
Number = int | float


# Balls from 2^-256 to 2^256 can be made, and routes make smaller and larger ones than the range.
_LARGEST, _SMALLEST = 2.0**240, 2.0**-200
_LARGEST_SQUARED, _SMALLEST_SQUARED = 2.0**110, 2.0**-90


@dataclass(frozen=True)
class Limit:
    """The public range of one column, or of every column that has no range of its own.

    >>> Limit.parse("age=0,120")
    Limit(lower=0, upper=120, column='age')
    >>> Limit.parse("2.5")
    Limit(lower=-2.5, upper=2.5, column=None)
    >>> Limit.parse("visit=2020-01-01,2024-12-31").is_date
    True
    """

    lower: Any
    upper: Any
    column: str | None = None

    @property
    def is_date(self) -> bool:
        """Whether it is a range of dates."""
        return isinstance(self.lower, datetime.date)

    def __post_init__(self) -> None:
        if isinstance(self.lower, datetime.date) or isinstance(self.upper, datetime.date):
            if self.column is None:
                raise ParameterError(
                    "Expected the column that a range of dates is about, such as "
                    "visit=2020-01-01,2024-12-31."
                )
            Days(self.column, self.lower, self.upper)
        elif not (self.lower < self.upper and _is_finite(self.lower, self.upper)):
            raise ParameterError(
                "Expected a finite range with lower < upper, within what 64-bit floats can hold."
            )

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Read ``"column=lower,upper"``, ``"lower,upper"`` or ``"b"`` for [-b, b]."""
        column, _, written = text.rpartition("=")
        try:
            values = [_number_or_date(part) for part in written.split(",")]
        except ValueError:
            values = []
        if any(isinstance(value, datetime.date) for value in values):
            return cls(values[0], values[-1], column or None)
        if len(values) == 1:
            values = [-values[0], values[0]]
        if len(values) != 2 or not (values[0] < values[1] and _is_finite(*values)):
            raise ParameterError(
                "Expected bounds as 'lower,upper', 'b' or 'column=lower,upper', in finite numbers "
                f"or in dates such as 2020-01-01, got {text!r}."
            )
        return cls(values[0], values[1], column or None)


def limits_by_name(
    bounds: Mapping[str | None, Any], names: Sequence[str], *, others: Sequence[str] = ()
) -> list[Any]:
    """Return the entry of a dictionary for each of ``names``, in their order.

    The key ``None`` stands for all columns without limits of their own; ``others`` are names that
    are allowed but not returned.

    >>> limits_by_name({"age": (0, 120), None: 9}, ["bmi", "age"])
    [9, (0, 120)]
    """
    unknown = [str(key) for key in bounds if key is not None and key not in (*names, *others)]
    if unknown:
        raise ParameterError(
            f"Expected bounds for columns among {', '.join(names)}, got bounds for "
            f"{', '.join(sorted(unknown))}."
        )
    found = [bounds.get(name, bounds.get(None)) for name in names]
    for name, limits in zip(names, found, strict=True):
        if limits is None:
            raise UnboundedContributionError(
                f"Expected public bounds for the column {name!r}: they must not be taken from "
                f"the data. State them, such as {name}=0,100, or for text its public values in "
                "categories=."
            )
    return found


def dates_among(bounds: Any) -> dict[str, tuple[Any, Any]]:
    """Return the ranges of a dictionary of bounds that are ranges of dates.

    >>> dates_among({"age": (0, 120), "visit": ("2020-01-01", "2024-12-31")})
    {'visit': ('2020-01-01', '2024-12-31')}
    """
    if not isinstance(bounds, Mapping):
        return {}
    return {
        str(name): (pair[0], pair[1])
        for name, pair in bounds.items()
        if name is not None
        and isinstance(pair, tuple | list)
        and len(pair) == 2
        and any(days_of(end) is not None for end in pair)
    }


def coded_bounds(bounds: Any, coding: Coding) -> Any:
    """Return the limits of the encoded columns of a table.

    Zeros and ones lie in [0, 1], and days between 0 and the length of their range. Numbers have the
    limits stated for their column or for all columns. Without ``bounds`` there are no limits for
    numbers, and None is returned if the table has any.

    >>> from quorate.data.coding import Category
    >>> coding = Coding.of(["age", "region"], {"region": Category("region", ("n", "s"))})
    >>> coded_bounds({"age": (0, 120)}, coding)
    {'age': (0, 120), 'region=n': (0.0, 1.0), 'region=s': (0.0, 1.0)}
    """
    plain = [column.name for column in coding.columns if isinstance(column, Plain)]
    if len(plain) == len(coding.columns) or (bounds is None and plain):
        return bounds
    own: dict[str, Any] = {}
    if isinstance(bounds, Mapping):
        coded = [column.name for column in coding.columns if isinstance(column, Days)]
        plain_limits = {name: limits for name, limits in bounds.items() if name not in coded}
        own = dict(zip(plain, limits_by_name(plain_limits, plain), strict=True))
    elif bounds is not None:
        lower, upper = as_limits(bounds, 1)
        own = dict.fromkeys(plain, (float(lower[0]), float(upper[0])))
    found: dict[str, Any] = {}
    for column in coding.columns:
        for name in column.names:
            if isinstance(column, Plain):
                found[name] = own[name]
            else:
                found[name] = (0.0, column.length if isinstance(column, Days) else 1.0)
    return found


def as_limits(
    bounds: Any, dimension: int, names: Sequence[str] | None = None, *, name: str = "bounds"
) -> tuple[Vector, Vector]:
    """Return the lower and the upper limit of each column.

    >>> as_limits((0.0, [1.0, 5.0]), 2)
    (array([0., 0.]), array([1., 5.]))
    >>> as_limits({"b": 3.0, "a": (0.0, 1.0)}, 2, names=["a", "b"])
    (array([ 0., -3.]), array([1., 3.]))
    """
    if isinstance(bounds, Box | Interval):
        lower, upper = np.atleast_1d(bounds.lower), np.atleast_1d(bounds.upper)
        _check_dimension(lower.size, dimension, name)
        return lower.astype(np.float64), upper.astype(np.float64)
    if isinstance(bounds, Bound):
        raise ParameterError(
            f"Expected {name} with limits for each column, got a {type(bounds).__name__}: use a "
            "pair (lower, upper), a Box or an Interval."
        )
    if isinstance(bounds, Mapping):
        lower, upper = _limits_of_names(bounds, dimension, names, name)
    elif isinstance(bounds, tuple | list) and len(bounds) == 2:
        lower, upper = (_limits(limit, dimension, name) for limit in bounds)
    else:
        upper = _limits(bounds, dimension, name) if _is_number(bounds) else np.zeros(0)
        lower = -upper
    finite = np.all(np.isfinite(np.concatenate([lower, upper])))
    if not (lower.size and finite and np.all(lower < upper)):
        raise ParameterError(
            f"Expected {name} to be a finite number > 0, a pair (lower, upper) of finite limits "
            "with lower < upper in every coordinate, a dictionary of these by column, or a Bound, "
            f"got {described(bounds)}."
        )
    return lower, upper


def as_bound(bounds: Any, dimension: int, names: Sequence[str] | None = None) -> Bound:
    """Return a public bound for vectors of ``dimension`` coordinates.

    A :class:`~quorate.core.bounds.grid.Bound` is returned unchanged; anything else becomes a box.

    >>> as_bound(2.0, 2).l2_radius.__round__(6)
    2.828427
    >>> as_bound(([0.0, -1.0], 1.0), 2).centre
    array([0.5, 0. ])
    """
    if bounds is None:
        raise UnboundedContributionError(
            "A private mean or quantile needs bounds=, a loose public range of the values; it must "
            "not be taken from the data. Pass a number b for [-b, b], or a pair (lower, upper)."
        )
    if isinstance(bounds, Bound):
        _check_dimension(bounds.dimension, dimension, "bounds")
        return _of_common_size(bounds, _SMALLEST, _LARGEST)
    lower, upper = as_limits(bounds, dimension, names)
    # In this order: a width beyond floats would warn.
    if not (np.all(np.maximum(upper, -lower) <= _LARGEST) and np.all(upper - lower >= _SMALLEST)):
        raise ParameterError(_unusual(_SMALLEST, _LARGEST))
    return _of_common_size(Box(lower, upper), _SMALLEST, _LARGEST)


def for_squares(bound: Bound) -> Bound:
    """Return the bound; refuse one so large that squares would overflow.

    >>> for_squares(Interval(-1.0, 1.0)).dimension
    1
    """
    return _of_common_size(bound, _SMALLEST_SQUARED, _LARGEST_SQUARED)


def half_widths(bound: Bound) -> Vector:
    """Return the half-width of the bound in each coordinate.

    >>> half_widths(Interval(0.0, 4.0))
    array([2.])
    """
    if isinstance(bound, Box | Interval):
        lower, upper = np.atleast_1d(bound.lower), np.atleast_1d(bound.upper)
        return np.asarray(np.maximum(upper - bound.centre, bound.centre - lower))
    return np.full(bound.dimension, bound.largest_offset)


def half_width(bounds: Any) -> float:
    """Return half of the width of a range that is the same for every column.

    >>> half_width((0.0, 120.0)), half_width(5)
    (60.0, 5.0)
    """
    if type(bounds) is float and 0.0 < bounds < _LARGEST:
        return bounds  # what follows gives the same, a thousand times slower; plans ask often
    lower, upper = as_limits(bounds, 1)
    return float(upper[0] - lower[0]) / 2.0


def declared_features(X: Any) -> int | None:
    """Return the number of features according to the shape of ``X``, or ``None``.

    >>> declared_features(np.zeros((5, 2))), declared_features([[1.0, 2.0]])
    (2, None)
    """
    if isinstance(X, Crowd):
        return X.n_features
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple) or len(shape) not in (1, 2):
        return None
    return 1 if len(shape) == 1 else int(shape[1])


def declared_bound(bounds: Any, X: Any) -> Bound:
    """Return the bound before the data are read; refuse an invalid one.

    If ``X`` does not state its number of features, the bounds determine it; otherwise it is 1.

    >>> declared_bound(([0.0, 1.0], 5.0), [[1.0, 2.0]]).dimension
    2
    """
    return as_bound(bounds, _declared_dimension(bounds, X), declared_names(X))


def declared_limits(bounds: Any, X: Any, *, name: str = "bounds") -> tuple[Vector, Vector]:
    """Return the limits before the data are read, as :func:`declared_bound` returns the bound.

    >>> declared_limits(5.0, np.zeros((9, 2)))
    (array([-5., -5.]), array([5., 5.]))
    """
    return as_limits(bounds, _declared_dimension(bounds, X), declared_names(X), name=name)


def _declared_dimension(bounds: Any, X: Any) -> int:
    dimension = declared_features(X)
    if dimension == 0:
        raise SchemaError(NO_FEATURES)
    if dimension is None:
        dimension = bounds.dimension if isinstance(bounds, Bound) else 1
        if isinstance(bounds, tuple | list) and len(bounds) == 2:
            dimension = max([len(limit) for limit in bounds if hasattr(limit, "__len__")] or [1])
    return dimension


def _limits_of_names(
    bounds: Mapping[Any, Any], dimension: int, names: Sequence[str] | None, name: str
) -> tuple[Vector, Vector]:
    if names is None:
        raise ParameterError(
            f"Expected a table with names of columns for {name} by column, got none: pass a frame, "
            "or a pair (lower, upper)."
        )
    _check_dimension(len(names), dimension, name)
    each = [as_limits(limits, 1, name=name) for limits in limits_by_name(bounds, list(names))]
    return np.array([low[0] for low, _ in each]), np.array([high[0] for _, high in each])


def _check_dimension(found: int, dimension: int, name: str) -> None:
    if found != dimension:
        raise ParameterError(
            f"Expected {name} of {dimension} dimensions, one for each feature, got {found}."
        )


def _of_common_size(bound: Bound, smallest: float, largest: float) -> Bound:
    reach = max(bound.l2_radius, float(np.abs(bound.centre).max()))
    if not (smallest <= bound.l2_radius and reach <= largest):
        raise ParameterError(_unusual(smallest, largest))
    return bound


def _unusual(smallest: float, largest: float) -> str:
    return (
        f"Expected bounds between {smallest:.0e} and {largest:.0e} in size; use other units, such "
        "as thousands or thousandths."
    )


def _limits(limit: Any, dimension: int, name: str) -> Vector:
    if _is_number(limit):
        return np.full(dimension, float(limit))
    is_vector = isinstance(limit, list | tuple) or (isinstance(limit, np.ndarray) and limit.ndim)
    if not (is_vector and len(limit) == dimension and all(map(_is_number, limit))):
        raise ParameterError(
            f"Expected limits of {name} as numbers or vectors of length {dimension}, one number "
            f"for each feature, got {described(limit)}."
        )
    return np.array([float(number) for number in limit])


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def _is_finite(lower: Number, upper: Number) -> bool:
    """Return whether both limits and their distance are finite as floats."""
    try:
        return math.isfinite(float(upper) - float(lower))
    except OverflowError:
        return False


def _number_or_date(text: str) -> Any:
    for read in (int, float, datetime.date.fromisoformat):
        with suppress(ValueError):
            return read(text.strip())
    return datetime.datetime.fromisoformat(text.strip())
