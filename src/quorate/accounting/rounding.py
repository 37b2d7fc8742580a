"""Numbers that carry privacy, rounded in a named direction.

Exact arithmetic happens in :class:`fractions.Fraction`; these functions leave it again without
ever making a cost smaller or a noise larger than it is.
"""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Rational
from typing import SupportsFloat

from quorate.exceptions import ParameterError

__all__ = [
    "decimal_down",
    "decimal_up",
    "exact",
    "exp_down",
    "float_down",
    "float_up",
    "ratio_root_down",
    "ratio_root_up",
    "root_down",
    "root_up",
]

DIGITS = 9
"""Significant decimal digits of an epsilon that comes out of a numerical search."""

_CUT = 1 << 160
_LARGEST_EXPONENT = 700


def exact(value: SupportsFloat) -> Fraction:
    """Return the rational number that a finite ``value`` is.

    >>> exact(0.5)
    Fraction(1, 2)
    """
    if type(value) is Fraction:  # the two common kinds first: asking for Rational is slow
        return value
    if type(value) is not float and isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(float(value))


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


def exp_down(value: SupportsFloat) -> Fraction:
    """Return a rational number of at most exp(``value``), and less than 2**-120 of it below.

    The series of exp on [0, 1/2] has positive terms, so what is cut off only lowers it; so does
    each squaring, which is rounded down to 160 bits.

    >>> float(exp_down(1)) == math.e
    True
    """
    rational = exact(value)
    if not 0 <= rational <= _LARGEST_EXPONENT:
        raise ParameterError(f"Expected 0 <= value <= {_LARGEST_EXPONENT}, got value={value!r}.")
    halvings = max(0, math.ceil(rational).bit_length() + 1)
    top, bottom = rational.numerator, rational.denominator << halvings
    # In units of 2**-160: whole numbers are far faster than fractions.
    term = total = _CUT
    for k in range(1, 60):
        term = term * top // (bottom * k)
        total += term
    for _ in range(halvings):
        total = total * total // _CUT
    return Fraction(total, _CUT)


def decimal_up(value: SupportsFloat) -> float:
    """Return a float of at least ``value`` that is written with nine significant digits.

    A search for a root ends somewhere near the root. Rounding its safe end to a decimal makes
    the result independent of the path, and gives back ``1.0`` for noise calibrated to ``1.0``.

    >>> decimal_up(0.9999999999)
    1.0
    >>> decimal_up(0.3)
    0.3
    """
    rational = exact(value)
    if rational <= 0:
        return float_up(rational)
    return min(decimal for decimal in _decimals_near(rational) if Fraction(decimal) >= rational)


def decimal_down(value: SupportsFloat) -> float:
    """Return a float of at most ``value`` that is written with nine significant digits.

    >>> decimal_down(0.3)
    0.3
    >>> decimal_down(0.12345678919)
    0.123456789
    """
    rational = exact(value)
    if rational <= 0:
        return float_down(rational)
    return max(decimal for decimal in _decimals_near(rational) if Fraction(decimal) <= rational)


def _decimals_near(rational: Fraction) -> list[float]:
    """Return the floats of the nine-digit decimals around a positive number.

    The float nearest to a decimal may lie on either side of it, so two on each side are needed.
    """
    exponent = math.floor(math.log10(rational.numerator) - math.log10(rational.denominator))
    unit = Fraction(10) ** (DIGITS - 1 - exponent)
    steps = math.floor(rational * unit)
    return [float((steps + more) / unit) for more in (-1, 0, 1, 2)]


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
    """Tell whether the exact square of a float is at least ``top / bottom``, in integers."""
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
