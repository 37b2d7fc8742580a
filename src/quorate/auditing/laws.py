"""Exact output laws of the noise of mechanisms, independent of the code that draws it.

A :class:`Law` is the object that an audit compares: outputs and their probabilities. The functions
here give the laws of the discrete Laplace and the discrete Gaussian on the integers, of
permute-and-flip [1]_ and of the exponential mechanism. They use formulas alone, so that they are
independent of :mod:`quorate.core.noise`.

Two kinds of mass need special treatment. A *tail* outside a window is added to the window's last
point. The reported value is then a post-processing of the real one, which can only hide a loss, so
a violation found in it is a real violation. *Lost* mass belongs to no output; the audit assigns it
in favour of the claim. Both are recorded as :attr:`Law.coarse` and :attr:`Law.lost` and are part of
the audit's ``slack``.

Masses are correct to a relative 1e-12; audits compare with a tolerance of 1e-9.

References
----------
.. [1] McKenna, Sheldon. Permute-and-Flip: a new mechanism for differentially private selection.
   arXiv:2010.12603.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import ParameterError

__all__ = [
    "Law",
    "discrete_gaussian_mass",
    "discrete_laplace_mass",
    "gumbel_max_mass",
    "independent_laws",
    "permute_and_flip_mass",
]

TOTAL_TOLERANCE = 1e-9  # machine: above the rounding of masses
"""How far the masses of a law may be from adding up to one."""

MAX_DIRECT_TERMS = 4096
"""Sums over more integers than this use the Euler-Maclaurin formula, exact to 1e-15 for them."""


@dataclass(frozen=True, eq=False)
class Law(Mapping[Hashable, Any]):
    """Outputs and their probabilities, with the mass that is not exact.

    Parameters
    ----------
    masses : mapping from output to probability
        ``float`` or ``Fraction``. Probabilities below 1e-300 must be fractions, because a float
        would round them to zero, and an impossible output is an infinite loss.
    lost : float, default=0.0
        Probability that is assigned to no output.
    coarse : float, default=0.0
        Probability of outputs that are reported coarsely (a tail by its nearest point, a cell by
        its middle). It is part of ``masses``.

    Examples
    --------
    >>> coin = Law({"heads": 0.75, "tails": 0.25})
    >>> coin["heads"], len(coin), coin.slack
    (0.75, 2, 0.0)
    """

    masses: Mapping[Hashable, Any]
    lost: float = 0.0
    coarse: float = 0.0

    def __post_init__(self) -> None:
        _validate.fraction(lost=self.lost, coarse=min(self.coarse, 1.0))
        for mass in self.masses.values():
            if not 0 <= mass <= 1 + TOTAL_TOLERANCE:
                raise ParameterError(f"Expected probabilities between 0 and 1, got {mass!r}.")
        total = math.fsum(float(mass) for mass in self.masses.values()) + self.lost
        if not abs(total - 1.0) <= TOTAL_TOLERANCE:
            raise ParameterError(
                f"Expected probabilities that add up to 1, got a total of {total!r}. Mass that "
                f"belongs to no output is given as lost=."
            )

    @property
    def slack(self) -> float:
        """Probability of outcomes that this law does not state exactly."""
        return min(1.0, self.lost + self.coarse)

    def __getitem__(self, output: Hashable) -> Any:
        return self.masses[output]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.masses)

    def __len__(self) -> int:
        return len(self.masses)


def discrete_laplace_mass(centre: int, *, scale: float, window: tuple[int, int]) -> Law:
    """Return the law of ``centre`` plus discrete Laplace noise, tails at the ends of ``window``.

    The mass of ``centre + z`` is proportional to ``exp(-|z| / scale)``. If the window contains the
    centres of both neighbours, adding the tails to its ends loses nothing, because the likelihood
    ratio is constant beyond both centres.

    >>> law = discrete_laplace_mass(0, scale=1.0, window=(-2, 2))
    >>> round(law[0] / law[1], 12) == round(math.e, 12)
    True
    >>> round(law.coarse, 3)
    0.073
    """
    _validate.positive(scale=scale)
    low, high = _window(window)
    offsets = np.arange(low, high + 1, dtype=np.float64) - centre
    masses = math.tanh(0.5 / scale) * np.exp(-np.abs(offsets) / scale)
    below = laplace_interval(None, low - 1 - centre, scale=scale)
    above = laplace_interval(high + 1 - centre, None, scale=scale)
    return _with_tails(masses, low, below, above)


def discrete_gaussian_mass(centre: int, *, sigma: float, window: tuple[int, int]) -> Law:
    """Return the law of ``centre`` plus discrete Gaussian noise, tails at the ends of ``window``.

    The mass of ``centre + z`` is proportional to ``exp(-z**2 / (2 sigma**2))``; ``sigma`` is the
    parameter, which is slightly above the standard deviation.

    >>> law = discrete_gaussian_mass(0, sigma=1.0, window=(-5, 5))
    >>> round(law[0] / law[1], 12) == round(math.exp(0.5), 12)
    True
    >>> law.coarse < 2e-8
    True
    """
    _validate.positive(sigma=sigma)
    low, high = _window(window)
    offsets = np.arange(low, high + 1, dtype=np.float64) - centre
    masses = np.exp(-0.5 * (offsets / sigma) ** 2) / _gaussian_total(sigma)
    below = gaussian_interval(None, low - 1 - centre, sigma=sigma)
    above = gaussian_interval(high + 1 - centre, None, sigma=sigma)
    return _with_tails(masses, low, below, above)


def permute_and_flip_mass(scores: Sequence[int] | NDArray[Any], *, scale: float) -> Law:
    r"""Return the law of the index that permute-and-flip chooses.

    With :math:`w_j = e^{(s_j - \max s)/\text{scale}}`, candidate i wins with probability :math:`w_i
    \int_0^1 \prod_{j \ne i} (1 - t w_j)\,dt`: each candidate has a uniform position t in the
    permutation, the coin of i shows heads, and all coins before it show tails. The integrand is a
    polynomial of degree k - 1, which Gauss-Legendre integrates exactly, with positive terms only.

    >>> law = permute_and_flip_mass([0, 0], scale=1.0)
    >>> law[0], law[1]
    (0.5, 0.5)
    """
    weights = _relative_weights(scores, scale)
    nodes, node_weights = np.polynomial.legendre.leggauss(weights.size // 2 + 1)
    places = 0.5 * (nodes + 1.0)
    tails = 1.0 - places[:, np.newaxis] * weights
    masses: dict[Hashable, float] = {}
    for i, weight in enumerate(weights):
        others = np.prod(np.delete(tails, i, axis=1), axis=1)
        masses[i] = float(weight * 0.5 * (node_weights @ others))
    return Law(masses)


def gumbel_max_mass(scores: Sequence[int] | NDArray[Any], *, scale: float) -> Law:
    """Return the law of the index that the exponential mechanism chooses.

    >>> law = gumbel_max_mass([1, 0], scale=1.0)
    >>> round(law[0] / law[1], 12) == round(math.e, 12)
    True
    """
    weights = _relative_weights(scores, scale)
    total = math.fsum(weights)
    return Law({i: float(weight) / total for i, weight in enumerate(weights)})


def independent_laws(*laws: Law) -> Law:
    """Return the law of the tuple of independent outputs, one from each law.

    >>> coin = Law({0: 0.5, 1: 0.5})
    >>> independent_laws(coin, coin)[0, 1]
    0.25
    """
    masses: dict[Hashable, Any] = {
        tuple(output for output, _ in combination): math.prod(mass for _, mass in combination)
        for combination in product(*(law.items() for law in laws))
    }
    lost = 1.0 - math.prod(1.0 - law.lost for law in laws)
    return Law(masses, lost=lost, coarse=min(1.0, math.fsum(law.coarse for law in laws)))


def laplace_interval(low: int | None, high: int | None, *, scale: float) -> float:
    """Return the probability that discrete Laplace noise lies in ``[low, high]``.

    An end that is ``None`` is open. Small probabilities are computed from products and sums of
    positive terms, which keeps their relative precision.

    >>> laplace_interval(None, None, scale=3.0)
    1.0
    """
    if low is None:
        if high is None:
            return 1.0
        if high >= 0:
            return 1.0 - _laplace_one_side(high + 1, None, scale)
        return _laplace_one_side(-high, None, scale)
    if high is None or low >= 0:
        if low >= 0:
            return _laplace_one_side(low, high, scale)
        return 1.0 - _laplace_one_side(1 - low, None, scale)
    if high < 0:
        return _laplace_one_side(-high, -low, scale)
    return _laplace_one_side(0, -low, scale) + _laplace_one_side(1, high, scale)


def _laplace_one_side(low: int, high: int | None, scale: float) -> float:
    """Mass of ``low <= z <= high`` for ``low >= 0``: ``r^low (1 - r^length) / (1 + r)``."""
    if high is not None and high < low:
        return 0.0
    length = 1.0 if high is None else -math.expm1(-(high - low + 1) / scale)
    return math.exp(-low / scale) * length / (1.0 + math.exp(-1.0 / scale))


def gaussian_interval(low: int | None, high: int | None, *, sigma: float) -> float:
    """Return the probability that discrete Gaussian noise lies in ``[low, high]``.

    >>> round(gaussian_interval(None, -1, sigma=2.0) * 2 + gaussian_interval(0, 0, sigma=2.0), 12)
    1.0
    """
    # exp(-40^2 / 2) is below 1e-347: what lies further out is zero in floating point.
    reach = math.ceil(40.0 * sigma) + 1
    first = -reach if low is None else max(-reach, low)
    last = reach if high is None else min(reach, high)
    if first > last:
        return 0.0
    if last - first < MAX_DIRECT_TERMS:
        offsets = np.arange(first, last + 1, dtype=np.float64) / sigma
        return math.fsum(np.exp(-0.5 * offsets**2)) / _gaussian_total(sigma)
    return _euler_maclaurin(first - 0.5, last + 0.5, sigma) / _gaussian_total(sigma)


def geometric_interval(low: int | None, high: int | None, *, scale: float) -> float:
    """Return the probability that one-sided geometric noise lies in ``[low, high]``.

    >>> geometric_interval(None, None, scale=2.0), geometric_interval(None, -1, scale=2.0)
    (1.0, 0.0)
    """
    start = max(0, low or 0)
    if high is not None and high < start:
        return 0.0
    length = 1.0 if high is None else -math.expm1(-(high - start + 1) / scale)
    return math.exp(-start / scale) * length


def _euler_maclaurin(start: float, end: float, sigma: float) -> float:
    r"""Sum :math:`e^{-z^2/2\sigma^2}` over the integers in [start, end], both half-integers.

    It is the midpoint form: the integral, minus f'/24, plus 7 f'''/5760 at the ends. The next term
    is of order sigma^-6 relative to the integral's scale, and sigma is above 50 here because 4096
    integers fit into 80 sigma.
    """
    x, y = start / sigma, end / sigma
    root = math.sqrt(0.5)
    if x >= 0:
        area = math.erfc(x * root) - math.erfc(y * root)
    elif y <= 0:
        area = math.erfc(-y * root) - math.erfc(-x * root)
    else:
        area = math.erf(y * root) - math.erf(x * root)
    integral = sigma * math.sqrt(math.pi / 2) * area

    def correction(t: float) -> float:
        value = math.exp(-0.5 * t * t)
        slope = -t * value / sigma
        third = (3.0 * t - t**3) * value / sigma**3
        return -slope / 24.0 + 7.0 * third / 5760.0

    return integral + correction(y) - correction(x)


def _gaussian_total(sigma: float) -> float:
    """Sum of exp(-z^2 / 2 sigma^2) over all integers, by the faster side of Poisson's formula."""
    terms = range(1, 41)
    if sigma < 1.0:
        return 1.0 + 2.0 * math.fsum(math.exp(-0.5 * (z / sigma) ** 2) for z in terms)
    dual = 2.0 * math.fsum(math.exp(-2.0 * (math.pi * sigma * z) ** 2) for z in terms)
    return sigma * math.sqrt(2.0 * math.pi) * (1.0 + dual)


def _with_tails(masses: NDArray[np.float64], low: int, below: float, above: float) -> Law:
    masses[0] += below
    masses[-1] += above
    return Law({low + i: float(mass) for i, mass in enumerate(masses)}, coarse=below + above)


def _window(window: tuple[int, int]) -> tuple[int, int]:
    low, high = window
    if not low < high:
        raise ParameterError(f"Expected a window (low, high) with low < high, got {window!r}.")
    return int(low), int(high)


def _relative_weights(scores: Sequence[int] | NDArray[Any], scale: float) -> NDArray[np.float64]:
    _validate.positive(scale=scale)
    exact = [int(score) for score in scores]
    if not exact:
        raise ParameterError("Expected at least one score, got none.")
    best = max(exact)
    # Differences of Python integers: scores near the ends of int64 must not wrap around.
    return np.array([math.exp((s - best) / scale) for s in exact])
