"""The smallest noise that stays within a budget, rounded to the safe side.

Gaussian noise is calibrated in closed form up to one root (in milliseconds, without heavy imports);
other noise by bisection on :func:`quorate.core.account.compose.price`. The result is priced once
more before it is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from quorate import _validate
from quorate._validate import float_down
from quorate.core.account.compose import price
from quorate.core.account.costs import gdp_mu
from quorate.core.account.gaussian_dp import total_mu
from quorate.core.guarantees import Event, Relation
from quorate.exceptions import NumericalFailure, ParameterError

__all__ = ["calibrate", "gaussian_multiplier", "split_epsilon"]


def gaussian_multiplier(epsilon: float, delta: float, *, count: int = 1) -> float:
    """Return the smallest noise multiplier for ``count`` Gaussian releases, rounded up.

    The multiplier is the standard deviation over the L2 sensitivity of one release.

    Examples
    --------
    >>> round(gaussian_multiplier(1.0, 1e-6), 4)
    4.2247
    >>> ratio = gaussian_multiplier(1.0, 1e-6, count=100) / gaussian_multiplier(1.0, 1e-6)
    >>> round(ratio, 6)
    10.0
    """
    _validate.positive_integer(count=count)
    mu, slack = gdp_mu(epsilon, delta), 2.0**-48
    while slack < 1:
        multiplier = math.sqrt(count) / mu * (1 + slack)
        if total_mu([(multiplier, int(count))]) <= mu:
            return multiplier
        slack *= 4
    raise NumericalFailure(
        f"Expected a budget of ordinary size, got mu={mu!r}: no multiplier can be represented."
    )


def split_epsilon(epsilon: float, shares: Sequence[float]) -> tuple[float, ...]:
    """Divide ``epsilon`` in the ratio of ``shares``, so that the exact sum is at most ``epsilon``.

    In floating point ten times 0.1 can exceed 1; ten equal shares from this function never do.

    Examples
    --------
    >>> split_epsilon(1.0, [1, 3])
    (0.25, 0.75)
    >>> sum(map(Fraction, split_epsilon(1.0, [1] * 10))) <= 1
    True
    """
    _validate.positive(epsilon=epsilon)
    total = _total_share(shares)
    return tuple(float_down(Fraction(epsilon) * Fraction(share) / total) for share in shares)


def calibrate(
    make_event: Callable[[float], Event],
    *,
    epsilon: float,
    delta: float = 0.0,
    relation: Relation = Relation.REPLACE,
    lower: float,
    upper: float,
    tolerance: float = 1e-6,
) -> float:
    """Return the smallest noise parameter in [``lower``, ``upper``] within the budget.

    Parameters
    ----------
    make_event : callable
        Takes a noise parameter (larger means more noise), and returns the event whose cost is
        computed.
    epsilon, delta, relation
        The budget.
    lower, upper : float
        A bracket: with ``upper`` the cost must be within the budget. If ``lower`` is within it too,
        ``lower`` is returned.
    tolerance : float, default=1e-6
        The result is at most this fraction above the smallest.

    Returns
    -------
    float
        A parameter whose computed privacy cost is at most ``epsilon``.

    Raises
    ------
    NumericalFailure
        ``upper`` exceeds the budget, or more noise was found to cost more.

    Examples
    --------
    >>> from quorate.core.guarantees import Gaussian, Pure, Composed
    >>> round(calibrate(lambda scale: Pure(2 / scale), epsilon=1.0, lower=0.1, upper=100.0), 4)
    2.0
    """
    _validate.positive(epsilon=epsilon, lower=lower, upper=upper, tolerance=tolerance)
    _validate.delta(delta=delta)
    if not lower < upper:
        raise ParameterError(f"Expected lower < upper, got lower={lower!r} and upper={upper!r}.")

    def cost(parameter: float) -> float:
        return price(make_event(parameter), delta=delta, relation=relation)

    low, high = float(lower), float(upper)
    cost_low, cost_high = cost(low), cost(high)
    if not cost_high <= epsilon:
        raise NumericalFailure(
            f"Expected upper={upper!r} to keep epsilon={epsilon!r}, but it costs {cost_high!r}; "
            "raise upper or the budget."
        )
    if cost_low <= epsilon:
        return low
    while high - low > tolerance * low:
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        cost_middle = cost(middle)
        if not cost_high <= cost_middle <= cost_low:
            raise NumericalFailure(
                f"Expected more noise to cost less, but {low!r}, {middle!r}, {high!r} cost "
                f"{cost_low!r}, {cost_middle!r}, {cost_high!r}; make_event must raise the noise "
                "with its parameter."
            )
        if cost_middle <= epsilon:
            high, cost_high = middle, cost_middle
        else:
            low, cost_low = middle, cost_middle
    return high


def _total_share(shares: Sequence[float]) -> Fraction:
    if not len(shares):
        raise ParameterError("Expected at least one share, got shares=().")
    for share in shares:
        _validate.positive(share=share)
    return sum((Fraction(share) for share in shares), Fraction(0))
