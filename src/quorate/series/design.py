r"""The public design of a series: cells, units, the clipping radius, the noise.

It consists of public numbers only.

A person's numbers in one period (records, presence, sums of columns, by group) are one vector. Each
part has its own unit, the largest contribution that counts fully in one period. With P parts
everything is divided by the root of P, so that a person with one unit of each part has length one.
The radius is the length of a person who has this in ``touched`` consecutive periods.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.grid import Grid
from quorate.core.guarantees import Approximate, Guarantee, Relation, compose_events
from quorate.mechanisms.calibrate import gaussian_multiplier
from quorate.mechanisms.sums import GaussianSum
from quorate.series.factors import Factor
from quorate.series.id_hashes import SHARED
from quorate.series.spending import HorizonBall

__all__ = ["KEPT", "Design", "SeriesPart"]

Floats = NDArray[np.float64]

# The square that is kept to count who is cut, as a part of what a person may add: noise rises by
# a twentieth.
KEPT = 10
# Squares of lengths in steps stay below this, and sums of them in 64 bits.
_LARGEST_SQUARE = 2**60


@dataclass(frozen=True)
class SeriesPart:
    """One number of each cell: records, users, the sum of a column, or records by label.

    Attributes
    ----------
    kind : {"records", "people", "sum", "labels"}
    unit : float
        The largest contribution of a person that counts fully in one period.
    cells : int
    column : str or None
    centre : float
        The centre to which a sum is relative.
    signed : bool

    Examples
    --------
    >>> SeriesPart("people", 1.0, 8).signed
    False
    """

    kind: str
    unit: float
    cells: int
    column: str | None = None
    centre: float = 0.0
    signed: bool = False


@dataclass(frozen=True, kw_only=True)
class Design:
    """The public numbers of a series.

    >>> design = Design(
    ...     parts=(SeriesPart("people", 1.0, 8),),
    ...     factor=Factor("independent", 52),
    ...     touched=4,
    ...     epsilon=1.0,
    ...     delta=1e-6,
    ... )
    >>> round(design.noise(design.parts[0]), 2), design.radius == 2 * design.steps
    (8.45, True)
    """

    parts: tuple[SeriesPart, ...]
    factor: Factor
    touched: int
    epsilon: float
    delta: float
    relation: Relation = Relation.ADD_REMOVE
    count_cut: bool = False

    @property
    def dimension(self) -> int:
        """Number of values in a period; the last value may count people who are clipped."""
        return sum(part.cells for part in self.parts) + self.count_cut

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The index of the first cell of each part."""
        ends = np.cumsum([0, *(part.cells for part in self.parts)])
        return tuple(ends[:-1].tolist())

    @cached_property
    def _square(self) -> int:
        return self.factor.person(self.touched)

    @cached_property
    def steps(self) -> int:
        """Number of steps of the integer grid per unit of length, a power of two."""
        largest = self._square * (1 + self.count_cut)
        return 1 << ((_LARGEST_SQUARE // largest).bit_length() - 1) // 2

    @cached_property
    def radius(self) -> int:
        """The largest change of all releases together by one person, in steps."""
        return math.isqrt(self._square * self.steps**2 + self._kept)

    @cached_property
    def flag(self) -> int:
        """The weight in steps of a clipped person, who is counted once in the horizon."""
        peak = int(self.factor.gram(0)[0])
        return math.isqrt(self._square * self.steps**2 // (KEPT * peak)) if self.count_cut else 0

    @property
    def _kept(self) -> int:
        """The squared length reserved for this count, in whichever period it happens."""
        return int(self.factor.gram(0)[0]) * self.flag**2

    def cut_errors(self) -> Floats:
        """Return the standard deviation of the noise in the number of people clipped so far."""
        return self.mechanism.sigma / self.flag * self.factor.spread("running")

    def step(self, part: SeriesPart) -> float:
        """Return the value of one step of a part."""
        return part.unit * math.sqrt(len(self.parts)) / self.steps

    @property
    def ball(self) -> HorizonBall:
        """The bound on a person's contributions over the whole horizon."""
        signed = any(part.signed for part in self.parts)
        return HorizonBall(
            self.radius, self.dimension, self.factor.horizon, signed, self.flag, self._kept
        )

    @cached_property
    def mechanism(self) -> GaussianSum:
        """The mechanism that adds noise in each period; its cost covers all periods together."""
        return GaussianSum(
            grid=Grid(self.ball, step=1.0),
            noise_multiplier=gaussian_multiplier(self.epsilon, self.delta - SHARED),
            relation=self.relation,
            delta=self.delta,
        )

    def noise(self, part: SeriesPart) -> float:
        """Return the standard deviation of the noise of a part in one release."""
        return self.mechanism.sigma * self.step(part)

    def errors(self, part: SeriesPart, view: str) -> Floats:
        """Return the standard deviation of the noise of a part in a view, by period."""
        return self.noise(part) * self.factor.spread(view)

    def guarantee(self, declared: Guarantee) -> Guarantee:
        """Return the guarantee of the whole horizon.

        Its delta includes the chance of hash collisions.
        """
        return Guarantee(
            epsilon=declared.epsilon,
            delta=declared.delta,
            unit=declared.unit,
            relation=declared.relation,
            trust=declared.trust,
            numerics=declared.numerics,
            events=(compose_events([self.mechanism.event, Approximate(0.0, SHARED)]),),
        )

    def digest(self, parameters: Mapping[str, Any]) -> str:
        """Return a hash of the design and its parameters, to recognise another design."""
        numbers = [self.radius, self.steps, repr(self.mechanism.sigma), list(self.starts)]
        numbers += [self.factor.coefficients.tolist(), dict(parameters)]
        text = json.dumps(numbers, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
