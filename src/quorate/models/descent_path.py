"""What a descent leaves behind at each of its steps: released numbers, for those who read them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["DescentStep"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class DescentStep:
    """Where one released gradient was asked for, what it was, and how the step was taken.

    ``curvature`` is what the length of the step was divided by, ``shrinkage`` the penalty that
    noise called for. All of it was released or follows from what was.

    >>> DescentStep(
    ...     theta=np.zeros(1), gradient=np.ones(1), noise=0.1, curvature=1.0, shrinkage=0.0
    ... ).curvature
    1.0
    """

    theta: Vector
    gradient: Vector
    noise: float
    curvature: float
    shrinkage: float
