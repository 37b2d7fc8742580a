r"""Gaussian differential privacy: the exact cost of any number of Gaussian releases.

A release is :math:`\mu`-GDP if distinguishing two neighbours is at least as hard as distinguishing
:math:`N(0,1)` from :math:`N(\mu,1)`. Gaussian noise of multiplier :math:`z` is :math:`1/z`-GDP;
releases compose by :math:`\mu^2=\sum_i\mu_i^2`, adaptively and exactly (Corollary 3.3 of [1]_); and
:math:`\mu`-GDP is :math:`(\varepsilon,\delta)`-DP precisely when

.. math:: \delta \ge \Phi(-t) - e^{\varepsilon}\,\Phi(-x),\qquad
          t = \varepsilon/\mu - \mu/2,\quad x = \varepsilon/\mu + \mu/2

(Theorem 8 of [2]_, Corollary 2.13 of [1]_).

Floating point. Since :math:`x^2/2 = t^2/2+\varepsilon`, the subtrahend is
:math:`\varphi(t)R(x)` with Mills' ratio :math:`R`. Let :math:`u=2^{-53}`. Both :math:`t` and
:math:`x` are computed to within :math:`3ux`, because :math:`\varepsilon/\mu` and :math:`\mu/2` are
at most :math:`x`. A shift of :math:`s` changes :math:`\Phi(-t)` by a factor within :math:`1\pm
s(x+1)`, :math:`\varphi(t)` by one within :math:`1\pm sx` and :math:`R(x)` by one within :math:`1\pm
s`. If ``erfc`` and ``exp`` are accurate to two units in the last place, each of the two terms
therefore has a relative error of at most :math:`20u(1+x^2)`; :func:`delta_bound` assumes
:math:`64u(1+x^2)` in the unfavourable direction for each of them. For tiny :math:`\mu` the two
terms cancel. There :math:`R(t)-R(x)=\int_t^x(1-sR(s))\,ds` is bounded by the trapezoidal rule
instead, because the integrand is convex (:math:`R` is completely monotone).

References
----------
.. [1] Dong, Roth, Su. Gaussian differential privacy. J. R. Stat. Soc. B 84(1), 2022,
   arXiv:1905.02383v3.
.. [2] Balle, Wang. Improving the Gaussian mechanism for differential privacy: analytical
   calibration and optimal denoising. ICML 2018, arXiv:1805.06530v2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from quorate._validate import float_up
from quorate.core.account.rounding import decimal_up
from quorate.exceptions import NumericalFailure

__all__ = ["delta_bound", "epsilon_bound", "total_mu"]

_MARGIN = 64 * 2.0**-53
_FAR_TAIL = 37.0
_FAR_TAIL_MASS = 1e-290
_CONTINUED_FRACTION_FROM = 20.0
_SMALL_MU = 1e-4

DISCRETE_SLACK = Fraction(1, 10**18)
"""The most that discrete noise instead of continuous noise adds to epsilon over a whole chain of
releases, up to 10**15 coordinates in total: see ``docs/proofs/discrete_gaussian.md``."""


def total_mu(multipliers: Iterable[tuple[float, int]]) -> float:
    """Return the GDP parameter of Gaussian releases, given as (noise multiplier, count).

    Every square, their sum and its root are rounded up; ``math.fsum`` makes the order irrelevant.

    >>> round(total_mu([(5.0, 9), (10.0, 64)]), 9)
    1.0
    """
    squares = [float_up(Fraction(count) / Fraction(z) ** 2) for z, count in multipliers if count]
    if not squares:
        return 0.0
    if math.inf in squares:
        return math.inf
    square = math.fsum(squares)
    if len(squares) > 1:
        square = math.nextafter(square, math.inf)
    root = math.sqrt(square)
    return root if Fraction(root) ** 2 >= Fraction(square) else math.nextafter(root, math.inf)


def delta_bound(epsilon: float, mu: float) -> float:
    """Return an upper bound on the delta of ``mu``-GDP at ``epsilon``, tight to rounding.

    >>> round(delta_bound(1.0, 0.236702), 9)
    1e-06
    """
    if mu == 0:
        return 0.0
    if not 0 < mu < math.inf:
        return 1.0
    ratio, half = epsilon / mu, mu / 2
    t, x = ratio - half, ratio + half
    if t - _MARGIN * x > _FAR_TAIL:
        return _FAR_TAIL_MASS
    margin = _MARGIN * (1 + x * x)
    if not margin < 1:
        # Only noise far below the sensitivity gets here: give up the subtrahend.
        return min(1.0, 0.51 * math.erfc((t - _MARGIN * x) / math.sqrt(2)))
    if mu < _SMALL_MU:
        # The difference would cancel. It is the integral of 1 - sR(s) from t to x over a convex
        # function, hence at most the trapezoid.
        heights = [1 - s * _mills_ratio(s) for s in (t, x)]
        mean = (sum(heights) / 2) * (1 + margin) + margin
        return min(1.0, max(_density(t) * mu * mean * (1 + margin), _FAR_TAIL_MASS))
    minuend = 0.5 * math.erfc(t / math.sqrt(2))
    subtrahend = _density(t) * _mills_ratio(x)
    bound = minuend * (1 + margin) - subtrahend * (1 - margin)
    if math.isnan(bound):
        raise NumericalFailure(
            f"The Gaussian profile has no value at epsilon={epsilon!r}, mu={mu!r}; no guarantee "
            "is claimed. Use a noise multiplier and an epsilon of ordinary size."
        )
    return min(1.0, max(bound, _FAR_TAIL_MASS))


def _density(t: float) -> float:
    return math.exp(-t * t / 2) / math.sqrt(2 * math.pi)


def _mills_ratio(x: float) -> float:
    """Return the upper tail of the standard normal divided by its density, for x > -1."""
    if x < _CONTINUED_FRACTION_FROM:
        return math.sqrt(math.pi / 2) * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))
    # Laplace's continued fraction 1/(x+1/(x+2/(x+...))); cut after 40 terms it is right to
    # far less than one unit in the last place for x >= 20.
    tail = 0.0
    for k in range(40, 0, -1):
        tail = k / (x + tail)
    return 1 / (x + tail)


def epsilon_bound(delta: float, mu: float) -> float:
    """Return the smallest epsilon at which ``mu``-GDP has at most ``delta``, rounded up.

    The result covers :data:`DISCRETE_SLACK` and has nine significant digits.

    >>> epsilon_bound(1e-6, 0.2367)
    0.999980053
    >>> epsilon_bound(0.0, 0.2367)
    inf
    """
    if mu == 0:
        return 0.0
    if not delta > _FAR_TAIL_MASS or not mu < math.inf:
        return math.inf
    epsilon = _smallest_epsilon(delta, mu)
    return decimal_up(Fraction(epsilon) + DISCRETE_SLACK) if epsilon < math.inf else math.inf


def _smallest_epsilon(delta: float, mu: float) -> float:
    """Find the smallest epsilon with at most this delta by bisection, rounded up."""
    if delta_bound(0.0, mu) <= delta:
        return 0.0
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    while delta_bound(high, mu) > delta:
        high *= 2
        if not high < math.inf:
            return math.inf
    while high - low > 2.0**-50 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_bound(middle, mu) <= delta else (middle, high)
    return high
