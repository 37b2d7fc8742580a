r"""Covers: finitely many distributions, one of which is near any distribution of a family (F8).

Learning a distribution through a cover of radius :math:`0.1\alpha` is a choice among its points
(Theorem 42 of Ghazi et al. [1]_). Covers are public and deterministic, and large: they suit small
alphabets and few users.

* :func:`simplex_cover`: all distributions on k points whose masses are multiples of 1/I. The paper
  takes :math:`I = \lceil 10k/\alpha \rceil`; rounding by largest remainders is off by at most
  :math:`k/(4I)` in total variation, so :math:`\lceil 2.5k/\alpha \rceil` is enough. (In print the
  masses are "a multiple of :math:`\lfloor 10k/\alpha \rfloor`"; its reciprocal is meant.)
* :func:`product_cover`: one such cover for each coordinate, at :math:`0.1\alpha/d`;
  ``ProductDistribution(algorithm="cover")`` chooses from them.
* :func:`gaussian_mean_cover`: means in a ball, known covariance.
* :func:`gaussian_cover`: mean and scale on a line, together.
* :func:`~quorate.distributions.hypotheses.planes.plane_cover`: mean and covariance in the plane,
  together. ``GaussianDistribution(algorithm="cover")`` chooses from these three.

References
----------
.. [1] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
   examples per user. NeurIPS 2023. Theorems 42 to 46.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.users.data import UserData
from quorate.distributions.hypotheses.clip import Clip
from quorate.distributions.hypotheses.families import (
    MAX_MEMBERS,
    Family,
    GaussianFamily,
    Said,
    capped,
    counts_at,
    in_blocks,
    largest_remainders,
)
from quorate.exceptions import ParameterError

__all__ = [
    "MAX_POINTS",
    "SimplexGrid",
    "gaussian_cover",
    "gaussian_mean_cover",
    "product_cover",
    "simplex_cover",
    "simplex_steps",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_POINTS = 2_000_000  # machine: time and memory
"""A larger cover is refused."""

MAX_CATEGORIES = 12  # machine: time and memory
"""A user's records are counted in all sets of categories, of which there are 2^k."""


@dataclass(frozen=True, eq=False)
class SimplexGrid(Family):
    r"""All distributions on k categories whose masses are multiples of 1/steps.

    Duels are computed without a table of all pairs. A Scheffe set is one of :math:`2^k` sets W of
    categories. A user's contribution depends on W and on P(W), a multiple of 1/steps. A member P
    has duels with exactly the sets W that are not empty, not everything, and inside its support:
    move one step of mass from each category of W to a category outside, and W is the set where P is
    larger than the result.

    Parameters
    ----------
    categories : int
        At most 12.
    steps : int
    points : sequence of numbers, optional
        The values that records may have; 0, 1, 2, ... by default. Records with other values are
        ignored.
    column : int, default=0
        The index of the feature.

    Examples
    --------
    >>> grid = SimplexGrid(3, steps=2)
    >>> grid.size
    6
    >>> grid.probabilities(grid.nearest([0.6, 0.4, 0.0])).tolist()
    [0.5, 0.5, 0.0]
    """

    categories: int
    steps: int
    points: Sequence[float] | None = None
    column: int = 0

    def __post_init__(self) -> None:
        _validate.positive_integer(categories=self.categories, steps=self.steps)
        if not 2 <= self.categories <= MAX_CATEGORIES:
            raise ParameterError(
                f"Expected 2 to {MAX_CATEGORIES} categories, got {self.categories}."
            )
        if self.size > MAX_POINTS:
            raise ParameterError(
                f"Expected a cover of at most {MAX_POINTS} points, got {self.size}. Take a larger "
                "alpha or fewer categories."
            )
        if self._values.shape != (self.categories,) or len(set(self._values)) != self.categories:
            raise ParameterError("Expected points, all different, one for each category.")

    @property
    def size(self) -> int:
        """The number of members."""
        return math.comb(self.steps + self.categories - 1, self.categories - 1)

    @property
    def unit(self) -> int:
        """Masses are multiples of 1 / unit."""
        return self.steps

    @cached_property
    def masses(self) -> NDArray[np.int32]:
        """The masses of all members in steps: (members, categories)."""
        rows = np.arange(self.steps + 1, dtype=np.int32)[:, None]
        for _ in range(self.categories - 2):
            left = self.steps - rows.sum(axis=1)
            repeated = np.repeat(rows, left + 1, axis=0)
            starts = np.repeat(np.cumsum(left + 1) - (left + 1), left + 1)
            last = np.arange(len(repeated)) - starts
            rows = np.column_stack([repeated, last.astype(np.int32)])
        return np.column_stack([rows, self.steps - rows.sum(axis=1)]).astype(np.int32)

    @cached_property
    def _values(self) -> Floats:
        points = np.arange(self.categories) if self.points is None else self.points
        return np.asarray(points, dtype=np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Every set W that is neither empty nor everything, and every P(W)."""
        return 2**self.categories - 2, self.steps + 1

    @property
    def promised(self) -> Integers:
        """P(W) in steps."""
        return np.broadcast_to(np.arange(self.steps + 1), self.shape)

    @cached_property
    def _sets(self) -> list[list[int]]:
        """The categories of each set W."""
        numbers = range(1, 2**self.categories - 1)
        return [[z for z in range(self.categories) if members >> z & 1] for members in numbers]

    def terms(self, users: UserData, clip: Clip) -> Iterator[Said]:
        """Yield the users' contributions for one set W after the other."""
        promised = np.arange(self.steps + 1)
        for some in in_blocks(users):
            counts = capped(counts_at(some, self._values, self.column), clip.records)
            held = counts.sum(axis=1)
            weights = clip.weights(held)[:, None]
            for place, chosen in enumerate(self._sets):
                inside = counts[:, chosen].sum(axis=1)
                yield place, weights * (held[:, None] * promised - self.steps * inside[:, None])

    def duels(self) -> Iterator[Integers]:
        """Yield for each set W the number of each member's duel about it; -1 without a duel."""
        for place, chosen in enumerate(self._sets):
            parts = self.masses[:, chosen]
            duel = place * (self.steps + 1) + parts.sum(axis=1)
            yield np.where((parts > 0).all(axis=1), duel, -1)

    def nearest(self, pmf: ArrayLike) -> int:
        """Return the nearest member, by largest remainders; it is within categories / (4 steps)."""
        rounded = largest_remainders(np.asarray(pmf, dtype=np.float64)[None, :], self.steps)[0]
        index, left = 0, self.steps
        for z, mass in enumerate(rounded[:-1]):
            rest = self.categories - 1 - z
            # Members with a smaller mass here come first: left - s steps for the other categories.
            index += sum(math.comb(left - s + rest - 1, rest - 1) for s in range(int(mass)))
            left -= int(mass)
        return index

    def probabilities(self, index: int) -> Floats:
        """Return the masses of one member."""
        return np.asarray(self.masses[index] / self.steps)

    def log_density(self, X: ArrayLike, index: int) -> Floats:
        """Return the log mass of one member at each record; -inf outside of the points."""
        values = np.asarray(X, dtype=np.float64).reshape(-1)
        logs = np.full(len(values), -np.inf)
        for value, mass in zip(self._values, self.probabilities(index), strict=True):
            logs[values == value] = math.log(mass) if mass > 0 else -math.inf
        return logs

    def sample(self, index: int, n: int, random_state: RandomState = None) -> Floats:
        """Draw records from one member."""
        rng = public_generator(random_state)
        drawn = rng.choice(self._values, size=n, p=self.probabilities(index))
        return np.asarray(drawn, dtype=np.float64)[:, None]


def simplex_steps(k: int, alpha: float, *, constants: str = "calibrated") -> int:
    """Return how many steps the masses of a cover of radius alpha / 10 need.

    >>> simplex_steps(4, 0.5), simplex_steps(4, 0.5, constants="published")
    (20, 80)
    """
    _validate.positive_integer(k=k)
    _validate.probability(alpha=alpha)
    _validate.one_of(("calibrated", "published"), constants=constants)
    return math.ceil((2.5 if constants == "calibrated" else 10) * k / alpha)


def simplex_cover(
    k: int,
    alpha: float,
    *,
    constants: str = "calibrated",
    points: Sequence[float] | None = None,
    column: int = 0,
) -> SimplexGrid:
    """Return a cover of all distributions on k points, of radius alpha / 10 in total variation.

    ``column`` is the index of the feature with the points.

    It is used for Theorem 43 of paper F.

    >>> simplex_cover(4, 0.5).size
    1771
    """
    return SimplexGrid(k, simplex_steps(k, alpha, constants=constants), points, column=column)


def product_cover(
    sizes: Sequence[int], alpha: float, *, constants: str = "calibrated"
) -> tuple[SimplexGrid, ...]:
    """Return a cover for each coordinate of a product distribution; coordinates are features.

    ``sizes`` are the numbers of points of the coordinates. Total variation adds up over
    coordinates, so each radius is alpha / (10 d). The theorem uses the product of these covers,
    which has too many members to compare. Here each coordinate is chosen separately with epsilon /
    d. It is used for Theorem 44 of paper F.

    >>> [(cover.column, cover.steps) for cover in product_cover([2, 2, 3], 0.5)]
    [(0, 30), (1, 30), (2, 45)]
    """
    _validate.positive_integer(d=len(sizes))
    _validate.probability(alpha=alpha)
    return tuple(
        simplex_cover(k, alpha / len(sizes), constants=constants, column=column)
        for column, k in enumerate(sizes)
    )


def gaussian_mean_cover(radius: float, d: int, alpha: float) -> GaussianFamily:
    r"""Return normal distributions of scale 1 whose means cover a ball, within alpha / 10.

    Total variation is :math:`2\Phi(|\mu-\mu'|/2) - 1 \le 0.4|\mu-\mu'|`, so means may be off by
    :math:`\alpha/4`: a grid of step :math:`\alpha/(2\sqrt d)`. It is used for Theorem 45 of paper
    F.

    >>> gaussian_mean_cover(2.0, 1, 0.2).size
    41
    """
    _validate.positive(radius=radius)
    _validate.positive_integer(d=d)
    _validate.probability(alpha=alpha)
    step = alpha / (2 * math.sqrt(d))
    reach = math.ceil(radius / step)
    if d * math.log(2 * reach + 1) > math.log(MAX_POINTS):
        raise ParameterError(f"Expected a cover of at most {MAX_POINTS} points, got more.")
    line = step * np.arange(-reach, reach + 1)
    grid = np.stack(np.meshgrid(*[line] * d, indexing="ij"), axis=-1).reshape(-1, d)
    # The nearest grid point of a mean at the rim may lie half a cell outside.
    inside = np.sqrt((grid**2).sum(axis=1)) <= radius + alpha / 4
    _check_pairwise_size(int(inside.sum()))
    return GaussianFamily(grid[inside])


def gaussian_cover(radius: float, kappa: float, alpha: float) -> GaussianFamily:
    r"""Return normal distributions on a line: means within ``radius``, variances from 1 to kappa.

    Half of the radius :math:`0.1\alpha` is for the mean, in steps of :math:`\sigma\alpha/4`, and
    half for the scale, in ratios of :math:`1 + 0.2\alpha` (total variation is at most 0.49 times a
    relative change of the scale). It is used for Theorem 46 of paper F, on a line.

    >>> gaussian_cover(1.0, 2.0, 0.5).size
    77
    """
    _validate.positive(radius=radius)
    _validate.probability(alpha=alpha)
    if not (math.isfinite(kappa) and kappa >= 1):
        raise ParameterError(f"Expected a finite kappa >= 1, got kappa={kappa!r}.")
    ratio = math.log1p(0.2 * alpha)
    many = math.ceil(0.5 * math.log(kappa) / ratio) + 1
    _check_pairwise_size(many)
    scales = np.exp(np.linspace(0.0, 0.5 * math.log(kappa), many))
    reaches = [math.ceil(radius / (scale * alpha / 4)) for scale in scales]
    _check_pairwise_size(sum(2 * reach + 1 for reach in reaches))
    means, spreads = [], []
    for scale, reach in zip(scales, reaches, strict=True):
        means.append(scale * alpha / 4 * np.arange(-reach, reach + 1))
        spreads.append(np.full(2 * reach + 1, scale))
    return GaussianFamily(np.concatenate(means)[:, None], np.concatenate(spreads))


def _check_pairwise_size(members: int) -> None:
    if members > MAX_MEMBERS:
        raise ParameterError(
            f"Expected a cover of at most {MAX_MEMBERS} normal distributions, got {members}. "
            "Take a larger alpha or a smaller radius."
        )
