r"""The posterior of a minimum, given noisy gradients; it is used by all linear models.

Near the minimum :math:`\theta^*` a gradient is :math:`g_t = H(\theta_t - \theta^*) + \xi_t`. So
each released gradient is a noisy linear observation of the minimum. In released coordinates the
curvature H is nearly diagonal. In coordinate j it is :math:`c_ja_t` times an unknown factor. Here
:math:`c_ja_t` is the curvature for normal features, reduced by clipping. The prior of the
coefficients is normal around the constant model, with an unknown spread :math:`\tau`. Given both
unknowns everything is Gaussian, so the posterior is computed on a grid of them, weighted by the
evidence of all gradients. If gradients are noise, :math:`\tau` is estimated as small, and the
posterior mean is the constant model. If they agree with each other, nothing is shrunk. The
posterior variance includes the noise, the shrinkage and the unknown curvature.

The loss is not exactly quadratic, and the coordinates are not exactly the axes of its curvature.
Both change a gradient in proportion to its distance from the minimum. This change is treated as
noise, so points far away lose their weight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BENT", "Observed", "Posterior"]

Vector = NDArray[np.float64]

# Factors of the curvature that are thought of: from a direction that was hidden in the noise of the
# geometry, with a sixteenth of its unit spread, to one that was seen four times too short.
_FACTORS = 2.0 ** np.linspace(-4.0, 2.0, 19)
# Gradients err by this part of their change since the minimum: a logistic curve bends by a half on
# the first two standard deviations.
BENT = 0.5
"""Part of its change since the minimum by which a gradient errs."""
# Spreads of coefficients that are thought of, over the largest one: down to none.
_SPREADS = np.geomspace(2.0**-14, 1.0, 20)


class Observed(NamedTuple):
    """A released gradient: its point, its noise, and the expected curvature there."""

    theta: Vector
    gradient: Vector
    noise: Vector
    curvature: Vector


class _Moments(NamedTuple):
    mean: Vector
    variance: Vector
    chances: Vector  # of the spreads of coefficients


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """The distribution of a minimum, before the first gradient and after each of them.

    Parameters
    ----------
    start : array
        The prior mean.
    variance_before : array
        Known prior variances; infinite for coefficients whose spread is estimated.
    widest : float
        Upper end of the grid for the spread of coefficients.
    unsure : array
        Prior standard deviations of the logarithms of the curvature factors.
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
        return self.of((*self.seen, observed))

    def of(self, seen: tuple[Observed, ...]) -> Posterior:
        """Return the posterior of these gradients, near the minimum of the one before."""
        return replace(self, seen=seen, _near=self._moments)

    def along(self, lengths: Vector, likely: Vector) -> Vector:
        """Return the chances of lengths in one direction, from logarithms of what tells of them.

        How far coefficients spread is known already, and is not asked for again.
        """
        spread = self.widest * _SPREADS
        told = likely[:, None] - 0.5 * (lengths[:, None] / spread) ** 2
        each = np.exp(told - told.max(axis=0)) * lengths[:, None]
        return np.asarray(each / each.sum(axis=0) @ self._moments.chances)

    @property
    def spread(self) -> float:
        """How far coefficients are thought to lie from their start."""
        return float(np.sqrt(self._moments.chances @ (self.widest * _SPREADS) ** 2))

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
            even = np.full(_SPREADS.size, 1.0 / _SPREADS.size)
            return _Moments(self.start, np.where(known, self.variance_before, usual), even)
        with np.errstate(all="ignore"):  # public and released numbers, of any size
            found = self._weighed(self._near)
        # Numbers too large or too small for the arithmetic tell nothing new.
        fine = np.isfinite(found.mean) & np.isfinite(found.variance)
        chances = found.chances if np.all(np.isfinite(found.chances)) else self._near.chances
        return _Moments(
            np.where(fine, found.mean, self._near.mean),
            np.where(fine, found.variance, self._near.variance),
            chances,
        )

    def _weighed(self, near: _Moments) -> _Moments:
        theta, gradient, noise, curvature = map(np.array, zip(*self.seen, strict=True))
        away = BENT**2 * (((theta - near.mean) ** 2).mean(axis=1) + near.variance.mean())
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
        chances = chances / chances.sum()
        weights = weights / whole * chances[:, None, None]
        moved = left * along
        mean = (weights * moved).sum(axis=(0, 1))
        variance = (weights * (left + (moved - mean) ** 2)).sum(axis=(0, 1))
        return _Moments(self.start + mean, variance, chances)
