r"""The posterior of a minimum, from noisy gradients: what is used wherever one is asked for.

Near the minimum :math:`\theta^*` a gradient is :math:`g_t = H(\theta_t - \theta^*) + \xi_t`, so
that each released one is a noisy linear observation of it. In released coordinates the curvature H
is nearly diagonal: in coordinate j it is :math:`c_ja_t`, what normal features would have and
clipping leaves, times a factor that nobody knows. Coefficients are normal around the constant model
with a spread :math:`\tau` that nobody knows either. Over a grid of both everything is Gaussian, and
the evidence of all gradients weighs the grid: gradients that are noise make :math:`\tau` small, and
the mean of the posterior is the constant model; where they agree, nothing is shrunk. Its variance
holds what noise did, what shrinkage may have taken, and what is not known of the curvature.

A curve that is not a parabola, and coordinates that are not quite those of the curvature, move a
gradient by a part of how far it is from the minimum. That counts as noise, so that points far away
are forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Observed", "Posterior"]

Vector = NDArray[np.float64]

# Factors of the curvature that are thought of: from a direction that was hidden in the noise of the
# geometry, with a sixteenth of its unit spread, to one that was seen four times too short.
_FACTORS = 2.0 ** np.linspace(-4.0, 2.0, 19)
# Gradients err by this part of their change since the minimum: a logistic curve bends by a half on
# the first two standard deviations.
_BENT = 0.5
# Spreads of coefficients that are thought of, over the largest one: down to none.
_SPREADS = np.geomspace(2.0**-14, 1.0, 20)


class Observed(NamedTuple):
    """A released gradient: where it was asked for, its noise, and the curvature expected there."""

    theta: Vector
    gradient: Vector
    noise: Vector
    curvature: Vector


class _Moments(NamedTuple):
    mean: Vector
    variance: Vector


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """What is known of a minimum before the first gradient and after each of them.

    Parameters
    ----------
    start : array
        The mean before.
    variance_before : array
        Known variances before, infinite where the spread of coefficients is asked for.
    widest : float
        The largest spread of coefficients that is thought of.
    unsure : array
        Standard deviations of the logarithm of the factors of the curvature.
    pull : array
        Curvature of a public penalty around zero.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> belief = Posterior(
    ...     start=np.zeros(3), variance_before=np.full(3, np.inf), widest=3.0,
    ...     unsure=np.full(3, 0.5), pull=np.zeros(3),
    ... )
    >>> for _ in range(12):
    ...     theta, noise = belief.mean, np.full(3, 0.01)
    ...     gradient = 0.8 * (theta - 1.0) + noise * rng.normal(size=3)
    ...     belief = belief.after(Observed(theta, gradient, noise, np.ones(3)))
    >>> bool(np.abs(belief.mean - 1.0).max() < 0.02), bool(belief.variance.max() < 1e-3)
    (True, True)
    """

    start: Vector
    variance_before: Vector
    widest: float
    unsure: Vector
    pull: Vector
    seen: tuple[Observed, ...] = ()
    _near: _Moments | None = None

    def after(self, observed: Observed) -> Posterior:
        """Return the posterior with one more gradient."""
        return replace(self, seen=(*self.seen, observed), _near=self._moments)

    @property
    def mean(self) -> Vector:
        """The mean of the posterior."""
        return self._moments.mean

    @property
    def variance(self) -> Vector:
        """The variances of the posterior."""
        return self._moments.variance

    @cached_property
    def _moments(self) -> _Moments:
        if self._near is None:
            usual = float(np.mean((self.widest * _SPREADS) ** 2))
            known = np.isfinite(self.variance_before)
            return _Moments(self.start, np.where(known, self.variance_before, usual))
        with np.errstate(all="ignore"):  # public and released numbers, of any size
            found = self._weighed(self._near)
        # Numbers too large or too small for the arithmetic tell nothing new.
        fine = np.isfinite(found.mean) & np.isfinite(found.variance)
        return _Moments(
            np.where(fine, found.mean, self._near.mean),
            np.where(fine, found.variance, self._near.variance),
        )

    def _weighed(self, near: _Moments) -> _Moments:
        theta, gradient, noise, curvature = map(np.array, zip(*self.seen, strict=True))
        away = _BENT**2 * (((theta - near.mean) ** 2).mean(axis=1) + near.variance.mean())
        steep = _FACTORS[:, None, None] * curvature
        doubt = noise**2 + steep**2 * away[:, None]
        steep = steep + self.pull
        # Observations of steep x (minimum - start), for each factor: (factors, steps, coordinates).
        said = steep * (theta - self.start) - (gradient + self.pull * theta)
        told = (steep**2 / doubt).sum(axis=1)
        along = (steep * said / doubt).sum(axis=1)
        likely = -0.5 * (np.log(doubt) + said**2 / doubt).sum(axis=1)
        likely = likely - 0.5 * (np.log(_FACTORS)[:, None] / self.unsure) ** 2
        asked = np.isinf(self.variance_before)
        # A direction whose spread was seen too long has longer coefficients in these coordinates.
        spread = (self.widest * _SPREADS[:, None, None]) ** 2 / _FACTORS[:, None]
        before = np.where(asked, spread, self.variance_before)
        left = 1.0 / (told + 1.0 / before)  # (spreads, factors, coordinates)
        likely = likely + 0.5 * along**2 * left - 0.5 * np.log1p(before * told)
        top = likely.max(axis=1, keepdims=True)
        weights = np.exp(likely - top)
        whole = weights.sum(axis=1, keepdims=True)
        evidence = ((np.log(whole) + top)[:, 0] * asked).sum(axis=1)
        chances = np.exp(evidence - evidence.max())
        weights = weights / whole * (chances / chances.sum())[:, None, None]
        moved = left * along
        mean = (weights * moved).sum(axis=(0, 1))
        variance = (weights * (left + (moved - mean) ** 2)).sum(axis=(0, 1))
        return _Moments(self.start + mean, variance)
