r"""The combinations of periods that get noise: a public matrix of integers.

Let :math:`x_t` be the sum of all contributions in period t, a vector of integers. The releases are
:math:`y_t = \sum_{s \le t} C_{t-s}\, x_s + z_t` with *independent* discrete Gaussian noise z and a
public lower triangular Toeplitz matrix C of integers :math:`\ge 0`. Everything else is computed
from y: the periods are :math:`C^{-1} y`, running totals are their sums, and the noise in either is
a known combination of independent draws, hence correlated. As C is applied to the data and not to
the noise, noise is added to integers only, and the release is as exact as one without C. The proof
is in ``docs/proofs/series.md``.

With C = 1 every period has its own noise, and running totals accumulate it. The square root of the
triangular matrix of ones, whose coefficients are :math:`\binom{2k}{k} / 4^k` [1]_, spreads every
period over all later releases. Then a person in few periods has little effect on each release, and
running totals have far less noise. A person in many periods has a large effect, and then
independent noise is better.

References
----------
.. [1] Fichtenberger, Henzinger, Upadhyay. Constant matters: fine-grained complexity of
   differentially private continual observation. arXiv:2202.11205v5; Henzinger, Upadhyay,
   Upadhyay. Almost tight error bounds on differentially private continual counting. SODA 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.exceptions import ParameterError

__all__ = ["NAMES", "VIEWS", "Factor", "best_factor"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NAMES = ("independent", "square-root")
VIEWS = ("periods", "running")

# Coefficients of the square root are rounded to so many parts of one: any integers are private, and
# the smallest one of 5200 periods, 1/128, is still rounded to one of them.
_PARTS = 64


@dataclass(frozen=True)
class Factor:
    """The matrix C of a horizon.

    >>> Factor("square-root", 3).matrix.tolist()
    [[64, 0, 0], [32, 64, 0], [24, 32, 64]]
    >>> Factor("independent", 3).person(2)
    2
    """

    name: str
    horizon: int

    def __post_init__(self) -> None:
        _validate.one_of(NAMES, name=self.name)
        _validate.positive_integer(horizon=self.horizon)
        if self.horizon > 5200:
            raise ParameterError(
                f"Expected a horizon of at most 5200 periods, got horizon={self.horizon}."
            )

    @property
    def independent(self) -> bool:
        """Whether every period has noise of its own."""
        return self.name == "independent"

    @cached_property
    def coefficients(self) -> Integers:
        """The first column of C."""
        if self.independent:
            return np.asarray(np.eye(1, self.horizon, dtype=np.int64)[0])
        ages = np.arange(1, self.horizon)
        falling = np.cumprod(np.concatenate([[1.0], (2 * ages - 1) / (2 * ages)]))
        return np.asarray(np.rint(_PARTS * falling), dtype=np.int64)

    @cached_property
    def matrix(self) -> Integers:
        """C itself."""
        ages = np.arange(self.horizon)[:, None] - np.arange(self.horizon)[None, :]
        return np.where(ages >= 0, self.coefficients[np.maximum(ages, 0)], 0)

    def gram(self, place: int) -> Integers:
        """Return the squared effect of a person on all releases, by periods up to ``place``.

        It is a row of C transposed times C, up to its diagonal. With independent noise all entries
        except the diagonal are zero.

        >>> Factor("square-root", 2).gram(1).tolist(), Factor("independent", 2).gram(1).tolist()
        ([2048, 4096], [1])
        """
        if self.independent:
            return np.ones(1, dtype=np.int64)
        own = self.coefficients[: self.horizon - place]
        ages = range(place, -1, -1)
        found = [int(own @ self.coefficients[age : age + len(own)]) for age in ages]
        return np.array(found, dtype=np.int64)

    def person(self, touched: int) -> int:
        """Return the largest squared length of a person who is in this many consecutive periods.

        The person has the value one in each of them.

        It is reached in the first periods, because later periods are part of fewer releases.
        """
        sums = np.cumsum(self.coefficients)
        sums[touched:] -= np.cumsum(self.coefficients)[:-touched]
        return int(sums @ sums)

    @cached_property
    def inverse(self) -> Floats:
        """The first column of the inverse of C, computed as a power series."""
        first = float(self.coefficients[0])
        found = np.zeros(self.horizon)
        found[0] = 1.0 / first
        for age in range(1, self.horizon):
            found[age] = -(self.coefficients[1 : age + 1] @ found[age - 1 :: -1]) / first
        return found

    def weights(self, view: str) -> Floats:
        """Return the first column of the matrix that converts releases to a view.

        >>> Factor("independent", 3).weights("running")
        array([1., 1., 1.])
        """
        _validate.one_of(VIEWS, view=view)
        return self.inverse if view == "periods" else np.cumsum(self.inverse)

    def spread(self, view: str) -> Floats:
        """Return the standard deviation of the noise of a view, by period, for noise of one step.

        >>> Factor("independent", 4).spread("running")
        array([1.        , 1.41421356, 1.73205081, 2.        ])
        """
        return np.sqrt(np.cumsum(self.weights(view) ** 2))

    def view(self, released: Floats, view: str) -> Floats:
        """Return a view of releases, one row per period starting with the first.

        >>> Factor("independent", 3).view(np.array([[5.0], [2.0]]), "running").tolist()
        [[5.0], [7.0]]
        """
        weights, found = self.weights(view), np.zeros(released.shape)
        for age in range(len(released)):
            found[age:] += weights[age] * released[: len(released) - age]
        return found

    def error(self, view: str, touched: int) -> float:
        """Return the root mean square over the horizon of the noise of a view.

        It is in units of a person's largest contribution in a period, for a noise multiplier of
        one.

        >>> [round(Factor(n, 52).error("running", 1), 2) for n in NAMES]
        [5.15, 2.16]
        >>> [round(Factor(n, 52).error("running", 13), 1) for n in NAMES]
        [18.6, 21.2]
        """
        scale = math.sqrt(self.person(touched))
        return scale * math.sqrt(float(np.mean(self.spread(view) ** 2)))


@lru_cache(maxsize=64)
def best_factor(view: str, *, horizon: int, touched: int) -> Factor:
    """Return the matrix with the least noise in a view, for people in ``touched`` periods.

    >>> best_factor("running", horizon=52, touched=4).name
    'square-root'
    >>> best_factor("running", horizon=52, touched=52).name
    'independent'
    >>> best_factor("periods", horizon=52, touched=1).name
    'independent'
    """
    # Where every period is asked for by itself, whatever else a release holds only adds noise.
    names = NAMES if view == "running" else NAMES[:1]
    factors = [Factor(name, horizon) for name in names]
    return min(factors, key=lambda factor: factor.error(view, touched))
