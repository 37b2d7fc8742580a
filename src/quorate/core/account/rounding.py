"""Results of numerical searches and series, rounded in a stated direction.

:func:`~quorate._validate.float_up` and :func:`~quorate._validate.float_down` differ from exact
arithmetic by one float at most. A search ends only near its root, so its safe end is rounded to a
decimal here.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import SupportsFloat

from quorate._validate import exact, float_down, float_up
from quorate.core.noise.exact_decisions import exp_enclosure
from quorate.exceptions import ParameterError

__all__ = ["decimal_down", "decimal_up", "exp_down"]

DIGITS = 9
"""Significant decimal digits of an epsilon that comes out of a numerical search."""

_LARGEST_EXPONENT = 700


def exp_down(value: SupportsFloat) -> Fraction:
    """Return a rational number that is below exp(``value``) by less than 2**-120.

    >>> float(exp_down(1)) == math.e
    True
    """
    rational = exact(value)
    if not 0 <= rational <= _LARGEST_EXPONENT:
        raise ParameterError(f"Expected 0 <= value <= {_LARGEST_EXPONENT}, got value={value!r}.")
    # exp(-value) is known to as many digits as it has zeros, and 160 more.
    bits = 160 + 2 * math.ceil(rational)
    return Fraction(1 << bits, exp_enclosure(rational, bits=bits)[1])


def decimal_up(value: SupportsFloat) -> float:
    """Return a float of at least ``value`` that is written with nine significant digits.

    A search for a root ends somewhere near the root. Rounding its safe end to a decimal makes the
    result independent of the steps of the search, and gives ``1.0`` again for noise calibrated to
    ``1.0``.

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

    The float nearest to a decimal may lie on either side of it, so two candidates on each side are
    needed.
    """
    exponent = math.floor(math.log10(rational.numerator) - math.log10(rational.denominator))
    unit = Fraction(10) ** (DIGITS - 1 - exponent)
    steps = math.floor(rational * unit)
    return [float((steps + more) / unit) for more in (-1, 0, 1, 2)]
