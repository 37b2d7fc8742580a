"""One wording for every rejected parameter.

Each function takes keyword arguments, so that the message can name them. Pass parameters, sizes
and dtypes here, never records: the message quotes the value. Comparisons are written so that NaN
fails them.
"""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from typing import Any

import numpy as np

from quorate.exceptions import ParameterError, SchemaError

__all__ = [
    "delta",
    "finite",
    "fraction",
    "integer_dtype",
    "non_negative",
    "non_negative_integer",
    "one_of",
    "ordered",
    "positive",
    "positive_integer",
    "probability",
    "usual_epsilon",
]

_SMALLEST_EPSILON = 1e-9


def _shown(value: object) -> str:
    """Return a parameter as text; a whole array may be data in the wrong place."""
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


def _is_integer(value: object) -> bool:
    if type(value) is int:
        return True
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def positive_integer(**values: Any) -> None:
    """Reject a value that is not an integer greater than zero."""
    for name, value in values.items():
        if not (_is_integer(value) and value > 0):
            raise ParameterError(f"Expected an integer {name} > 0, got {name}={_shown(value)}.")


def non_negative_integer(**values: Any) -> None:
    """Reject a value that is not an integer of at least zero."""
    for name, value in values.items():
        if not (_is_integer(value) and value >= 0):
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


def usual_epsilon(**values: Any) -> None:
    """Reject a budget that hides every answer, and whose noise may not fit into 64 bits."""
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


def integer_dtype(**dtypes: np.dtype[Any]) -> None:
    """Reject an array whose dtype, which is public, is not an integer."""
    for name, dtype in dtypes.items():
        if dtype.kind not in "iu":
            raise SchemaError(f"Expected integers in {name}, got dtype={dtype}.")
