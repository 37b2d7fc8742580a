"""Checks of parameters, and exact arithmetic for numbers that carry privacy.

The functions that refuse a parameter take keyword arguments, so that the message can name the
parameter. Pass parameters, sizes and dtypes to them, never records, because the message quotes the
value. Comparisons are written so that NaN fails them.

A number that carries privacy is converted to exactly the rational number that it is. It becomes a
float or a root again only with a stated rounding direction, so that no cost becomes smaller on the
way.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, wraps
from typing import Any, ParamSpec, SupportsFloat, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.exceptions import ParameterError, SchemaError

__all__ = [
    "LARGEST_SIZE",
    "LONGEST_VECTOR",
    "all_finite",
    "boolean",
    "delta",
    "described",
    "exact",
    "exact_ratio",
    "finite",
    "finite_rows",
    "float_down",
    "float_up",
    "fraction",
    "int64_vector",
    "integer_dtype",
    "is_frame",
    "is_of_caller",
    "non_negative",
    "non_negative_integer",
    "one_of",
    "ordered",
    "positive",
    "positive_integer",
    "probability",
    "public_vector",
    "pure_loss",
    "ratio_root_down",
    "ratio_root_up",
    "readonly",
    "remembered",
    "root_down",
    "root_up",
    "scale_of",
    "useful_epsilon",
]

P = ParamSpec("P")
T = TypeVar("T")

_SMALLEST_EPSILON = 1e-9
# Longer lists than this are data rather than parameters.
_SHORT = 4
_SCALARS = (str, bytes, numbers.Number, np.generic)
_BLOCK_ROWS = 2**16

LARGEST_SIZE, LONGEST_VECTOR = 2.0**256, 2**30
"""The largest public number in a vector, and the greatest length of a vector."""


def _shown(value: object) -> str:
    """Return a parameter as text; an array is not quoted, because it may hold data."""
    if isinstance(value, np.ndarray) or (hasattr(value, "__len__") and not isinstance(value, str)):
        return f"<{type(value).__name__}>"
    return repr(value)


def _is_real(value: object) -> bool:
    if type(value) in (float, int, Fraction):  # first, as asking an abstract class is slow
        return True
    return isinstance(value, numbers.Real | Fraction) and not isinstance(value, bool | np.bool_)


def positive(**values: Any) -> None:
    """Reject a value that is not a finite number greater than zero."""
    for name, value in values.items():
        if not (_is_real(value) and 0 < value < math.inf):
            raise ParameterError(f"Expected a finite {name} > 0, got {name}={_shown(value)}.")


def non_negative(**values: Any) -> None:
    """Reject a value that is not a finite number of at least zero."""
    for name, value in values.items():
        if not (_is_real(value) and 0 <= value < math.inf):
            raise ParameterError(f"Expected a finite {name} >= 0, got {name}={_shown(value)}.")


def finite(**values: Any) -> None:
    """Reject a value that is not a finite number."""
    for name, value in values.items():
        if not (_is_real(value) and -math.inf < value < math.inf):
            raise ParameterError(f"Expected a finite {name}, got {name}={_shown(value)}.")


def is_integer(value: object) -> bool:
    """Return whether a value is a whole number and not a boolean."""
    if type(value) is int:
        return True
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def positive_integer(**values: Any) -> None:
    """Reject a value that is not an integer greater than zero."""
    for name, value in values.items():
        if not (is_integer(value) and value > 0):
            raise ParameterError(f"Expected an integer {name} > 0, got {name}={_shown(value)}.")


def non_negative_integer(**values: Any) -> None:
    """Reject a value that is not an integer of at least zero."""
    for name, value in values.items():
        if not (is_integer(value) and value >= 0):
            raise ParameterError(f"Expected an integer {name} >= 0, got {name}={_shown(value)}.")


def probability(**values: Any) -> None:
    """Reject a value outside the open interval (0, 1)."""
    for name, value in values.items():
        if not (_is_real(value) and 0 < value < 1):
            raise ParameterError(f"Expected 0 < {name} < 1, got {name}={_shown(value)}.")


def fraction(**values: Any) -> None:
    """Reject a value outside the closed interval [0, 1]."""
    for name, value in values.items():
        if not (_is_real(value) and 0 <= value <= 1):
            raise ParameterError(f"Expected 0 <= {name} <= 1, got {name}={_shown(value)}.")


def delta(**values: Any) -> None:
    """Reject a value outside the half-open interval [0, 1)."""
    for name, value in values.items():
        if not (_is_real(value) and 0 <= value < 1):
            raise ParameterError(f"Expected 0 <= {name} < 1, got {name}={_shown(value)}.")


def useful_epsilon(**values: Any) -> None:
    """Reject an epsilon so small that noise hides every answer and may not fit into 64 bits."""
    for name, value in values.items():
        if not (_is_real(value) and _SMALLEST_EPSILON <= value < math.inf):
            raise ParameterError(
                f"Expected {name} >= {_SMALLEST_EPSILON}, got {name}={_shown(value)}: the noise of "
                "a smaller one hides every answer, and may not fit into sums of 64 bits."
            )


def ordered(lower: Any, upper: Any, *, name: str) -> None:
    """Reject bounds that are not finite or not in order."""
    if not (_is_real(lower) and _is_real(upper) and -math.inf < lower < upper < math.inf):
        raise ParameterError(
            f"Expected finite {name} with lower < upper, got lower={_shown(lower)} "
            f"and upper={_shown(upper)}."
        )


def one_of(choices: tuple[Any, ...], **values: Any) -> None:
    """Reject a value that is not among ``choices``."""
    for name, value in values.items():
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            wording = ", ".join(repr(choice) for choice in choices)
            raise ParameterError(
                f"Expected {name} to be one of {wording}, got {name}={_shown(value)}."
            )


def boolean(**values: Any) -> None:
    """Accept True and False."""
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise ParameterError(f"Expected {name} to be True or False, got {name}={value!r}.")


def public_vector(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return a copy of a public vector; refuse values that are not finite and absurd sizes.

    >>> public_vector([1, 2], "centre")
    array([1., 2.])
    """
    vector = np.array(values, dtype=np.float64)
    if vector.ndim != 1 or not 0 < vector.size <= LONGEST_VECTOR:
        raise ParameterError(f"Expected {name} to be a vector, got {vector.ndim} axes.")
    if not np.all(np.abs(vector) <= LARGEST_SIZE):
        raise ParameterError(
            f"Expected {name} to be finite and at most 2^256, got {described(values)}."
        )
    return vector


def integer_dtype(**dtypes: np.dtype[Any]) -> None:
    """Reject an array whose dtype, which is public, is not an integer."""
    for name, dtype in dtypes.items():
        if dtype.kind not in "iu":
            raise SchemaError(f"Expected integers in {name}, got dtype={dtype}.")


def exact(value: SupportsFloat) -> Fraction:
    """Return a finite ``value`` as an exact fraction.

    >>> exact(0.5)
    Fraction(1, 2)
    """
    if type(value) is Fraction:  # the common kinds first: asking for Rational is slow
        return value
    if type(value) is int:
        return Fraction(value)
    if type(value) is not float and isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(float(value))


def exact_ratio(value: SupportsFloat) -> tuple[int, int]:
    """Return the numerator and the denominator of :func:`exact`, without a Fraction.

    >>> exact_ratio(0.75)
    (3, 4)
    """
    return value.as_integer_ratio() if type(value) is float else exact(value).as_integer_ratio()


def float_up(value: SupportsFloat) -> float:
    """Return the smallest float of at least ``value``.

    >>> float_up(Fraction(1, 10)) >= Fraction(1, 10)
    True
    """
    if type(value) is float and math.isfinite(value):
        return value
    rational = exact(value)
    try:
        nearest = float(rational)
    except OverflowError:
        return math.inf if rational > 0 else -math.nextafter(math.inf, 0.0)
    top, bottom = nearest.as_integer_ratio()
    enough = top * rational.denominator >= rational.numerator * bottom
    return nearest if enough else math.nextafter(nearest, math.inf)


def float_down(value: SupportsFloat) -> float:
    """Return the largest float of at most ``value``.

    >>> float_down(Fraction(1, 10)) <= Fraction(1, 10)
    True
    """
    if type(value) is float and math.isfinite(value):
        return value
    return -float_up(-exact(value))


def pure_loss(sensitivity: int | Fraction, scale: float) -> Fraction:
    """Return the exact epsilon of Laplace noise of this scale, or of an exponential mechanism.

    >>> pure_loss(2, 6.0)
    Fraction(1, 3)
    """
    positive(scale=scale)
    if not Fraction(sensitivity) > 0:
        raise ParameterError(f"Expected a sensitivity > 0, got sensitivity={sensitivity!r}.")
    return Fraction(sensitivity) / exact(scale)


def root_up(square: Fraction) -> float:
    """Return the smallest float whose exact square is at least ``square``.

    >>> root_up(Fraction(9, 4))
    1.5
    """
    return ratio_root_up(square.numerator, square.denominator)


def ratio_root_up(top: int, bottom: int) -> float:
    """Return :func:`root_up` of ``top / bottom``, which need not be reduced; ``bottom`` > 0.

    >>> ratio_root_up(18, 8)
    1.5
    """
    try:
        root = math.sqrt(top / bottom)
    except OverflowError:
        return math.inf
    while root > 0 and _is_root_of(math.nextafter(root, 0.0), top, bottom):
        root = math.nextafter(root, 0.0)
    while not _is_root_of(root, top, bottom):
        root = math.nextafter(root, math.inf)
    return root


def _is_root_of(root: float, top: int, bottom: int) -> bool:
    """Return whether the exact square of a float is at least ``top / bottom``, in integers."""
    if root == math.inf:
        return True
    above, below = root.as_integer_ratio()
    return above * above * bottom >= top * (below * below)


def root_down(square: Fraction) -> float:
    """Return the largest float whose exact square is at most ``square``.

    >>> Fraction(root_down(Fraction(2))) ** 2 <= 2
    True
    """
    return ratio_root_down(square.numerator, square.denominator)


def ratio_root_down(top: int, bottom: int) -> float:
    """Return :func:`root_down` of ``top / bottom``, which need not be reduced; ``bottom`` > 0.

    >>> ratio_root_down(18, 8)
    1.5
    """
    root = ratio_root_up(top, bottom)
    if root == math.inf:
        return math.nextafter(root, 0.0)
    above, below = root.as_integer_ratio()
    is_exact = above * above * bottom == top * (below * below)
    return root if is_exact else math.nextafter(root, 0.0)


def is_frame(value: Any) -> bool:
    """Return whether ``value`` is a table that supports the Arrow interface.

    >>> is_frame(np.zeros((2, 2)))
    False
    """
    return not isinstance(value, np.ndarray) and hasattr(value, "__arrow_c_stream__")


def is_of_caller(thing: object) -> bool:
    """Return whether an object's class is defined outside this package.

    Its code is then not reviewed.

    >>> is_of_caller(object()), is_of_caller(ParameterError())
    (True, False)
    """
    return not type(thing).__module__.startswith("quorate.")


def int64_vector(values: Any) -> NDArray[np.int64]:
    """Return integers as a native, contiguous vector; refuse other types and shapes.

    >>> int64_vector(np.array([1, 2], dtype=np.int8)).dtype
    dtype('int64')
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise SchemaError(f"Expected an array of int64, got dtype={array.dtype}.")
    if array.ndim != 1:
        raise SchemaError(f"Expected one axis, got an array of {array.ndim} axes; ravel it first.")
    # OpenDP reads the buffer as native, contiguous int64.
    return np.ascontiguousarray(array, dtype=np.int64)


def scale_of(**given: Any) -> float:
    """Return a noise scale as a float, rounded up.

    >>> scale_of(sigma=Fraction(1, 3)) > Fraction(1, 3)
    True
    """
    positive(**given)
    ((name, value),) = given.items()
    if type(value) is float:
        return value
    rational = exact(value)
    if rational > sys.float_info.max:
        raise ParameterError(f"Expected a {name} that a float can hold, got {name}={value!r}.")
    return float_up(rational)


def all_finite(array: NDArray[np.float64]) -> bool:
    """Return whether an array is free of NaN and infinities, in one pass and almost no memory.

    >>> all_finite(np.array([1.0, np.inf]))
    False
    """
    with np.errstate(all="ignore"):
        # A sum of finite numbers can overflow, but then only time is lost. A product would have
        # threads of its own, which wait for those of others.
        return bool(np.isfinite(array.sum()) or finite_rows(array).all())


def finite_rows(array: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return for each row whether it is free of NaN and infinities.

    >>> finite_rows(np.array([[1.0, np.nan], [1.0, 2.0]]))
    array([False,  True])
    """
    found = np.empty(len(array), dtype=np.bool_)
    for start in range(0, len(array), _BLOCK_ROWS):
        block = array[start : start + _BLOCK_ROWS]
        found[start : start + _BLOCK_ROWS] = np.isfinite(block).reshape(len(block), -1).all(axis=1)
    return found


def described(value: Any) -> str:
    """Return a description of a parameter for messages, which quotes no data passed by mistake.

    Neither entries nor lengths are quoted, because the number of records is private.

    >>> described((0, 9)), described([[1.5], [2.5]]), described(np.zeros((3, 2)))
    ('(0, 9)', 'a list', 'a ndarray of 2 axes')
    """
    if shape := getattr(value, "shape", ()):
        axes = "1 axis" if len(shape) == 1 else f"{len(shape)} axes"
        return f"a {type(value).__name__} of {axes}"
    parts = value if isinstance(value, list | tuple) else [value]
    if len(parts) <= _SHORT and all(isinstance(p, _SCALARS) or p is None for p in parts):
        return repr(value)
    return f"a {type(value).__name__}"


def readonly(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view.

    >>> readonly(np.zeros(2)).flags.writeable
    False
    """
    view = array.view()
    view.flags.writeable = False
    return view


def remembered(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function of numbers that caches its results.

    Arguments of different types are cached apart, so a type that is refused stays refused even if
    it equals a cached number.
    """
    kept = lru_cache(maxsize=1024, typed=True)(function)

    @wraps(function)
    def ask(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return kept(*args, **kwargs)  # type: ignore[arg-type]
        except TypeError:  # a list cannot be kept
            return function(*args, **kwargs)

    return ask
