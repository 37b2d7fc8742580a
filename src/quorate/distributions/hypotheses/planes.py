r"""Normal distributions in the plane that differ in their covariance, and covers of them (F8).

Theorem 46 of Ghazi et al. [1]_ learns a normal distribution with
:math:`I \preceq \Sigma \preceq \kappa I` through a grid of symmetric matrices. In the plane such a
grid is small enough to be chosen from: three numbers. Means are found coordinate by coordinate, or
taken out: half of the differences of a user's records, two by two and divided by the root of 2,
have mean 0 and covariance :math:`\Sigma`.

How fine the grid is
--------------------
Let :math:`\lambda_1, \lambda_2` be the eigenvalues of
:math:`A^{-1/2} B A^{-1/2}`. By Pinsker's inequality the total variation of N(0, A) and N(0, B) is
at most :math:`\tfrac12\sqrt{\sum (\lambda_i - 1 - \ln\lambda_i)}`, and with :math:`r^2 = \sum
\ln^2\lambda_i` that is at most :math:`0.354\,r\,e^{r/5}` for r up to 1/2.

* *Published*: a grid of :math:`\Sigma` itself. As :math:`A \succeq I`, r is at most
  :math:`\|A-B\|_F / (1 - \|A-B\|_F)`.
* *Calibrated*: a grid of :math:`\ln\Sigma`. The exponential map stretches a step by at most
  :math:`\sinh(x)/x` with x half the largest difference of two eigenvalues, at most
  :math:`\tfrac12\ln\kappa` and the reach beyond the bounds. Steps are relative, and a cover of
  large :math:`\kappa` has far fewer points.

A grid of step h in three orthogonal directions (both diagonal entries, and :math:`\sqrt 2` times
the other one) leaves nobody farther away than :math:`h\sqrt 3/2`; points up to that far outside of
the bounds are kept.

References
----------
.. [1] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
   examples per user. NeurIPS 2023. Theorem 46.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.distributions.hypotheses.families import MAX_MEMBERS, DensityFamily
from quorate.exceptions import ParameterError
from quorate.public_randomness import RandomState, public_generator

__all__ = ["CovarianceFamily", "covariance_cover"]

Floats = NDArray[np.float64]

# The integrand is smooth and periodic, so that equal weights converge fast.
_ANGLES = 256
_CELLS_AT_ONCE = 2**21
# Some eight of ten matrices of a box have an eigenvalue out of bounds.
_MOST_PROPOSED = 16 * MAX_MEMBERS
_PINSKER = 0.5 / math.sqrt(2.0)


@dataclass(frozen=True, eq=False)
class CovarianceFamily(DensityFamily):
    """Normal distributions in the plane with mean 0 and covariances of their own.

    Parameters
    ----------
    covariances : array of shape (members, 2, 2)
        Symmetric and positive definite.

    Examples
    --------
    >>> family = CovarianceFamily([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]]])
    >>> family.size, family.n_features
    (2, 2)
    >>> family.scheffe.round(3).tolist()
    [[0.0, 0.75], [0.5, 0.0]]
    """

    covariances: ArrayLike

    def __post_init__(self) -> None:
        given = np.asarray(self.covariances, dtype=np.float64)
        if given.ndim != 3 or given.shape[1:] != (2, 2) or not np.all(np.isfinite(given)):
            raise ParameterError("Expected finite covariances of shape (members, 2, 2).")
        a, b, c = given[:, 0, 0], given[:, 0, 1], given[:, 1, 1]
        if not len(given) or np.any(b != given[:, 1, 0]) or not np.all((a > 0) & (a * c > b * b)):
            raise ParameterError("Expected covariances that are symmetric and positive definite.")

    @cached_property
    def _given(self) -> Floats:
        return np.asarray(self.covariances, dtype=np.float64)

    @cached_property
    def _determinants(self) -> Floats:
        return self._given[:, 0, 0] * self._given[:, 1, 1] - self._given[:, 0, 1] ** 2

    @cached_property
    def _inverses(self) -> Floats:
        """The three numbers of each inverse: for x^2, for 2 x y, for y^2."""
        given = self._given
        return (
            np.stack([given[:, 1, 1], -given[:, 0, 1], given[:, 0, 0]], axis=1)
            / (self._determinants[:, None])
        )

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self._given)

    @property
    def n_features(self) -> int:
        """How many numbers a record has."""
        return 2

    @cached_property
    def scheffe(self) -> Floats:
        """P(W) for all pairs, by an integral over directions."""
        found = np.zeros((self.size, self.size))
        angles = np.arange(_ANGLES) * (2.0 * math.pi / _ANGLES)
        circle = np.stack([np.cos(angles), np.sin(angles)])
        logs = np.log(self._determinants)
        at_once = max(1, _CELLS_AT_ONCE // (self.size * _ANGLES))
        for start in range(0, self.size, at_once):
            rows = slice(start, min(start + at_once, self.size))
            # A record of P is s times a direction, s^2 exponential with mean 2.
            ways = np.linalg.cholesky(self._given[rows]) @ circle
            squares = np.stack([ways[:, 0] ** 2, 2 * ways[:, 0] * ways[:, 1], ways[:, 1] ** 2], 1)
            heights = np.einsum("mj,pja->pma", self._inverses, squares) - 1.0
            # P > P' where s^2 times this height exceeds that difference.
            needed = (logs[rows, None] - logs)[:, :, None]
            with np.errstate(all="ignore"):
                tails = np.exp(-needed / (2.0 * heights))
            beyond = np.where(needed <= 0, 1.0, tails)
            below = np.where(needed < 0, 1.0 - tails, 0.0)
            level = np.where(needed < 0, 1.0, 0.0)
            chances = np.where(heights > 0, beyond, np.where(heights < 0, below, level))
            found[rows] = chances.mean(axis=2)
        same = np.all(self._given[:, None] == self._given, axis=(2, 3))
        return np.where(same, 0.0, np.clip(found, 0.0, 1.0))

    def _heights(self, X: Floats) -> Floats:
        """Return the log densities of all members at some records: (records, members)."""
        first, second = X[:, :1], X[:, 1:]
        a, b, c = self._inverses.T
        with np.errstate(all="ignore"):
            lengths = a * first**2 + (2.0 * b) * (first * second) + c * second**2
        return np.asarray(-0.5 * (lengths + np.log(self._determinants)) - math.log(2.0 * math.pi))

    def log_density(self, X: ArrayLike, index: int) -> Floats:
        """Return the log density of one member at each record."""
        X = np.asarray(X, dtype=np.float64).reshape(-1, 2)
        return CovarianceFamily(self._given[index : index + 1])._heights(X)[:, 0]

    def sample(self, index: int, n: int, random_state: RandomState = None) -> Floats:
        """Draw records from one member."""
        drawn = public_generator(random_state).standard_normal((n, 2))
        return np.asarray(drawn @ np.linalg.cholesky(self._given[index]).T)


def covariance_cover(
    kappa: float, alpha: float, *, constants: str = "calibrated"
) -> CovarianceFamily:
    r"""Return normal distributions in the plane, one within alpha / 10 of each with these bounds.

    Mean 0, covariance between I and kappa I. For Theorem 46 of paper F, in the plane.

    Parameters
    ----------
    kappa : float
        At least 1.
    alpha : float
    constants : {"calibrated", "published"}
        A grid of the logarithm of the covariance, or of the covariance itself.

    Examples
    --------
    >>> covariance_cover(2.0, 0.8).size, covariance_cover(2.0, 0.8, constants="published").size
    (72, 202)
    """
    _validate.probability(alpha=alpha)
    _validate.one_of(("calibrated", "published"), constants=constants)
    if not (math.isfinite(kappa) and kappa >= 1):
        raise ParameterError(f"Expected a finite kappa >= 1, got kappa={kappa!r}.")
    reach = _largest_ratio(0.1 * alpha)
    if constants == "calibrated":
        half = 0.5 * math.log(kappa) + reach
        far = reach * half / math.sinh(half)
        grid = _symmetric_grid(0.0, math.log(kappa), far)
        values, vectors = np.linalg.eigh(grid)
        members = np.einsum("mij,mj,mkj->mik", vectors, np.exp(values), vectors)
        members = 0.5 * (members + members.transpose(0, 2, 1))
    else:
        members = _symmetric_grid(1.0, kappa, reach / (1.0 + reach))
    if len(members) > MAX_MEMBERS:
        raise _too_many()
    return CovarianceFamily(members)


def _largest_ratio(radius: float) -> float:
    """Return the largest r whose total variation is at most ``radius``; see the top."""
    low, high = 0.0, 0.5
    for _ in range(60):
        middle = 0.5 * (low + high)
        fits = _PINSKER * middle * math.exp(middle / 5.0) <= radius
        low, high = (middle, high) if fits else (low, middle)
    return low


def _symmetric_grid(lowest: float, highest: float, far: float) -> Floats:
    """Return symmetric matrices, one within ``far`` of each with eigenvalues between the bounds."""
    step = 2.0 * far / math.sqrt(3.0)
    if (highest - lowest) / step > MAX_MEMBERS:
        raise _too_many()
    diagonal = lowest + step * np.arange(math.ceil((highest - lowest) / step) + 1)
    count = math.ceil((highest - lowest) / (math.sqrt(2.0) * step))
    if len(diagonal) ** 2 * (2 * count + 1) > _MOST_PROPOSED:
        raise _too_many()
    across = step / math.sqrt(2.0) * np.arange(-count, count + 1)
    a, b, c = (axis.ravel() for axis in np.meshgrid(diagonal, across, diagonal, indexing="ij"))
    middle, half = 0.5 * (a + c), np.hypot(0.5 * (a - c), b)
    near = (middle - half >= lowest - far) & (middle + half <= highest + far)
    rows = np.stack([np.stack([a, b], axis=1), np.stack([b, c], axis=1)], axis=1)
    return np.asarray(rows[near])


def _too_many() -> ParameterError:
    return ParameterError(
        f"Expected a cover of at most {MAX_MEMBERS} covariances, got more. Take a larger alpha or "
        "a smaller kappa, or GaussianDistribution."
    )
