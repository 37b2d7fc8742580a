"""Checks of fitted attributes that were read from a model file."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["CHOICE", "ROUTE", "are_numbers", "are_shares"]

ROUTE = ("quorate.estimators:Route",)
"""The type of ``algorithm_`` in all estimators."""


CHOICE = ("quorate.mechanisms.choices.choose:ChoiceError",)
"""The type of ``error_`` of estimators that choose among candidates."""


def are_numbers(value: Any, shape: tuple[int, ...]) -> bool:
    """Return whether an array has this shape and contains finite floats.

    >>> are_numbers(np.zeros(2), (2,)), are_numbers(np.array([1, 2]), (2,))
    (True, False)
    """
    right = value.dtype.kind == "f" and value.shape == shape
    return bool(right and np.isfinite(value).all())


def are_shares(value: Any, size: int) -> bool:
    """Return whether an array contains shares that add up to 1, up to rounding.

    >>> are_shares(np.array([0.25, 0.75]), 2), are_shares(np.array([2.0, -1.0]), 2)
    (True, False)
    """
    right = are_numbers(value, (size,)) and bool((value >= 0.0).all())
    return right and abs(float(value.sum()) - 1.0) < 1e-6
