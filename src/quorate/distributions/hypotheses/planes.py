r"""Normal distributions in the plane, and covers of their means and covariances together (F8).

Theorem 46 of Ghazi et al. [1]_ learns a normal distribution with :math:`\|\mu\| \le R` and
:math:`I \preceq \Sigma \preceq \kappa I` by *one* choice from *one* cover of all pairs
:math:`(\mu, \Sigma)`. In the plane such a cover has five parameters and is small enough if R and
:math:`\kappa` are small. On a line the cover is
:func:`~quorate.distributions.hypotheses.covers.gaussian_cover`.

How fine the grid is
--------------------
Let N(m, A) be a member, :math:`\lambda_1, \lambda_2` the eigenvalues of :math:`A^{-1/2} B
A^{-1/2}`, and t the length of :math:`A^{-1/2}(\mu - m)`. By Pinsker's inequality the total
variation of N(m, A) and :math:`N(\mu, B)` is at most :math:`\tfrac12\sqrt{\sum (\lambda_i - 1 -
\ln\lambda_i) + t^2}`. With :math:`r^2 = \sum \ln^2\lambda_i` the first sum is at most
:math:`(0.708\,r\,e^{r/5})^2` for r up to 1/2. So the *squares* of two parts add up. Three fifths of
:math:`(0.1\alpha)^2` are for the three parameters of the covariance and two fifths for the two of
the mean, which gives the fewest members. If R is 0, or :math:`\kappa` is 1, all of it is for the
other part.

* *Published*: a grid of :math:`\Sigma` itself. As :math:`A \succeq I`, r is at most
  :math:`\|A-B\|_F / (1 - \|A-B\|_F)`.
* *Calibrated*: a grid of :math:`\ln\Sigma`. The exponential map stretches a step by at most
  :math:`\sinh(x)/x` with x half the largest difference of two eigenvalues, at most
  :math:`\tfrac12\ln\kappa` and the reach beyond the bounds. Steps are relative, so a cover of large
  :math:`\kappa` has far fewer points.

A grid of step h in three orthogonal directions (both diagonal entries, and :math:`\sqrt 2` times
the other one) has a point within :math:`h\sqrt 3/2` of every matrix; points up to that far outside
of the bounds are included. Means lie on a grid in coordinates where their own covariance is I, so
every mean is within :math:`h/\sqrt 2` of one of them.

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
from quorate.core.public_randomness import RandomState, public_generator
from quorate.distributions.hypotheses.families import MAX_MEMBERS, DensityFamily
from quorate.exceptions import ParameterError

__all__ = ["PlaneFamily", "plane_cover"]

Floats = NDArray[np.float64]

# Chances are right to half a hundredth; a tenth of what a cover is wide.
_ANGLES = 128
_CELLS_AT_ONCE = 2**15
# Some eight of ten matrices of a box have an eigenvalue out of bounds.
_MOST_PROPOSED = 16 * MAX_MEMBERS
_PINSKER = 0.5 / math.sqrt(2.0)  # derived: Pinsker's inequality for the total variation
# derived: 3 / (3 + 2), the share of the squared radius for three numbers of a covariance beside
# the two of a mean.
_COVARIANCE_SHARE = 0.6


@dataclass(frozen=True, eq=False)
class PlaneFamily(DensityFamily):
    """Normal distributions in the plane with individual means and covariances.

    Parameters
    ----------
    covariances : array of shape (members, 2, 2)
        Symmetric and positive definite.
    means : array of shape (members, 2), optional
        All 0 by default.

    Examples
    --------
    >>> family = PlaneFamily([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]]])
    >>> family.size, family.n_features
    (2, 2)
    >>> family.scheffe.round(3).tolist()
    [[0.0, 0.75], [0.5, 0.0]]
    """

    covariances: ArrayLike
    means: ArrayLike | None = None

    def __post_init__(self) -> None:
        given = np.asarray(self.covariances, dtype=np.float64)
        if given.ndim != 3 or given.shape[1:] != (2, 2) or not np.all(np.isfinite(given)):
            raise ParameterError("Expected finite covariances of shape (members, 2, 2).")
        a, b, c = given[:, 0, 0], given[:, 0, 1], given[:, 1, 1]
        if not len(given) or np.any(b != given[:, 1, 0]) or not np.all((a > 0) & (a * c > b * b)):
            raise ParameterError("Expected covariances that are symmetric and positive definite.")
        if self._means.shape != (len(given), 2) or not np.all(np.isfinite(self._means)):
            raise ParameterError("Expected finite means of shape (members, 2).")

    @cached_property
    def _given(self) -> Floats:
        return np.asarray(self.covariances, dtype=np.float64)

    @cached_property
    def _means(self) -> Floats:
        if self.means is None:
            return np.zeros((len(self._given), 2))
        return np.asarray(self.means, dtype=np.float64)

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
        """Number of features of a record."""
        return 2

    @cached_property
    def scheffe(self) -> Floats:
        """P(W) for all pairs, by an integral over directions from the mean of P."""
        found = np.zeros((self.size, self.size))
        angles = (np.arange(_ANGLES) + 0.5) * (2.0 * math.pi / _ANGLES)
        circle = np.stack([np.cos(angles), np.sin(angles)])
        at_once = max(1, _CELLS_AT_ONCE // (self.size * _ANGLES))
        for start in range(0, self.size, at_once):
            rows = slice(start, min(start + at_once, self.size))
            found[rows] = _chances(*self._differences(rows, circle)).mean(axis=2)
        same = np.all(self._given[:, None] == self._given, axis=(2, 3))
        same &= np.all(self._means[:, None] == self._means, axis=2)
        return np.where(same, 0.0, np.clip(found, 0.0, 1.0))

    def _differences(self, rows: slice, circle: Floats) -> tuple[Floats, Floats, Floats]:
        """Return a, b, c of ln P - ln P' = a s^2 + b s + c, at distance s from the mean of P.

        This is computed for all P among some members, all P', and all directions. A record of P is
        its mean plus s times the image of a point on the circle under the root of its covariance.
        """
        logs = np.log(self._determinants)
        ways = np.linalg.cholesky(self._given[rows]) @ circle
        x, y = ways[:, None, 0], ways[:, None, 1]
        inverses = self._inverses[None, :, :, None]
        first, second, third = inverses[:, :, 0], inverses[:, :, 1], inverses[:, :, 2]
        off = self._means[rows, None] - self._means
        u, v = off[:, :, :1], off[:, :, 1:]
        a = 0.5 * (first * x * x + 2.0 * second * x * y + third * y * y - 1.0)
        b = (first * u + second * v) * x + (second * u + third * v) * y
        c = 0.5 * (first * u * u + 2.0 * second * u * v + third * v * v)
        return a, b, c + 0.5 * (logs - logs[rows, None])[:, :, None]

    def _heights(self, X: Floats) -> Floats:
        """Return the log densities of all members at some records: (records, members)."""
        a, b, c = self._inverses.T
        with np.errstate(all="ignore"):
            first, second = X[:, :1] - self._means[:, 0], X[:, 1:] - self._means[:, 1]
            lengths = a * first**2 + (2.0 * b) * (first * second) + c * second**2
        return np.asarray(-0.5 * (lengths + np.log(self._determinants)) - math.log(2.0 * math.pi))

    def mean(self, index: int) -> Floats:
        """Return the mean of one member."""
        return np.asarray(self._means[index])

    def log_density(self, X: ArrayLike, index: int) -> Floats:
        """Return the log density of one member at each record."""
        X = np.asarray(X, dtype=np.float64).reshape(-1, 2)
        one = slice(index, index + 1)
        return PlaneFamily(self._given[one], self._means[one])._heights(X)[:, 0]

    def sample(self, index: int, n: int, random_state: RandomState = None) -> Floats:
        """Draw records from one member."""
        drawn = public_generator(random_state).standard_normal((n, 2))
        return np.asarray(self._means[index] + drawn @ np.linalg.cholesky(self._given[index]).T)


def _chances(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return P(a s^2 + b s + c > 0), where s exceeds t with probability exp(-t^2 / 2).

    >>> _chances(*np.array([[1.0], [0.0], [-2.0]])).round(3)  # s^2 > 2
    array([0.368])
    """
    with np.errstate(all="ignore"):
        square = b * b - 4.0 * a * c
        root = np.sqrt(np.maximum(square, 0.0))
        # The stable form of both roots; one of them is infinite, or none, on a straight line.
        q = -0.5 * (b + np.where(b >= 0, root, -root))
        first, second = q / a, np.where(q == 0, 0.0, c / q)
        low = np.exp(-0.5 * np.maximum(np.minimum(first, second), 0.0) ** 2)
        high = np.exp(-0.5 * np.maximum(np.maximum(first, second), 0.0) ** 2)
        edge = np.exp(-0.5 * np.maximum(-c / b, 0.0) ** 2)
    between = np.where(square > 0, low - high, 0.0)
    straight = np.where(b > 0, edge, 1.0 - edge)
    level = np.where(b == 0, np.where(c > 0, 1.0, 0.0), straight)
    return np.where(a == 0, level, np.where(a > 0, 1.0 - between, between))


def plane_cover(
    radius: float, kappa: float, alpha: float, *, constants: str = "calibrated"
) -> PlaneFamily:
    r"""Return normal distributions in the plane, one within alpha / 10 of each with these bounds.

    Means are at most ``radius`` long, and covariances lie between I and kappa I. Both are chosen
    *together* by one choice, as in Theorem 46 of paper F.

    Parameters
    ----------
    radius : float
        Radius of the means; with 0 only the covariance is chosen.
    kappa : float
        Largest variance; with 1 only the mean is chosen.
    alpha : float
    constants : {"calibrated", "published"}
        Whether the grid is one of the logarithm of the covariance, or of the covariance itself.

    Examples
    --------
    >>> plane_cover(0.0, 2.0, 0.8).size, plane_cover(0.0, 2.0, 0.8, constants="published").size
    (72, 202)
    >>> plane_cover(0.5, 1.5, 0.9).size
    1321
    """
    _validate.probability(alpha=alpha)
    _validate.one_of(("calibrated", "published"), constants=constants)
    if not (math.isfinite(radius) and radius >= 0):
        raise ParameterError(f"Expected a finite radius >= 0, got radius={radius!r}.")
    if not (math.isfinite(kappa) and kappa >= 1):
        raise ParameterError(f"Expected a finite kappa >= 1, got kappa={kappa!r}.")
    share = 1.0 if radius == 0 else 0.0 if kappa == 1 else _COVARIANCE_SHARE
    covariances = _covariance_grid(kappa, 0.1 * alpha * math.sqrt(share), constants=constants)
    if radius == 0:
        if len(covariances) > MAX_MEMBERS:
            raise _too_many()
        return PlaneFamily(covariances)
    # Pinsker: half of a length t in the member's own coordinates.
    far = 2.0 * 0.1 * alpha * math.sqrt(1.0 - share)
    return _with_means(covariances, radius, far)


def _covariance_grid(kappa: float, near: float, *, constants: str) -> Floats:
    """Return covariances such that any within the bounds is within ``near`` in total variation."""
    if kappa == 1:
        return np.eye(2)[None]
    reach = _largest_ratio(near)
    if constants == "published":
        return _symmetric_grid(1.0, kappa, reach / (1.0 + reach))
    half = 0.5 * math.log(kappa) + reach
    grid = _symmetric_grid(0.0, math.log(kappa), reach * half / math.sinh(half))
    values, vectors = np.linalg.eigh(grid)
    members = np.einsum("mij,mj,mkj->mik", vectors, np.exp(values), vectors)
    return np.asarray(0.5 * (members + members.transpose(0, 2, 1)))


def _with_means(covariances: Floats, radius: float, far: float) -> PlaneFamily:
    """Return each covariance with means such that any mean in the ball is within ``far``."""
    step = math.sqrt(2.0) * far
    roots = np.linalg.cholesky(covariances)
    # The cells of the grid points that are kept cover the disc, so there are at least so many.
    areas = np.pi * radius**2 / (step**2 * roots[:, 0, 0] * roots[:, 1, 1])
    if areas.sum() > MAX_MEMBERS or len(covariances) > MAX_MEMBERS:
        raise _too_many()
    means, spreads = [], []
    for covariance, root in zip(covariances, roots, strict=True):
        low, high = np.sqrt(np.linalg.eigvalsh(covariance))
        rim = radius + high * far
        reach = math.ceil(rim / (low * step))
        line = step * np.arange(-reach, reach + 1)
        grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2) @ root.T
        grid = grid[np.hypot(grid[:, 0], grid[:, 1]) <= rim]
        means.append(grid)
        spreads.append(np.broadcast_to(covariance, (len(grid), 2, 2)))
    if sum(map(len, means)) > MAX_MEMBERS:
        raise _too_many()
    return PlaneFamily(np.concatenate(spreads), np.concatenate(means))


def _largest_ratio(radius: float) -> float:
    """Return the largest r whose total variation is at most ``radius``; see the module."""
    low, high = 0.0, 0.5
    for _ in range(60):
        middle = 0.5 * (low + high)
        fits = _PINSKER * middle * math.exp(middle / 5.0) <= radius
        low, high = (middle, high) if fits else (low, middle)
    return low


def _symmetric_grid(lowest: float, highest: float, far: float) -> Floats:
    """Return symmetric matrices such that any one within the bounds is within ``far``."""
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
        f"Expected a cover of at most {MAX_MEMBERS} normal distributions, got more. Take a larger "
        "alpha, a smaller radius or a smaller kappa."
    )
