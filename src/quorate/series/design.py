r"""What is fixed before the first period: cells, units, the radius, the noise. Public numbers only.

A person's numbers in one period (records, presence, sums of columns, by group) are one vector, each
part of it in its own unit: what somebody counts for fully in one period. With P parts everything is
divided by the root of P, so that who holds one unit of each part has length one. The radius is the
length of somebody who does so in ``touched`` periods in a row.
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
    """One number a cell: records, people, the sum of a column, or records by label.

    Attributes
    ----------
    kind : {"records", "people", "sum", "labels"}
    unit : float
        What somebody counts for fully in one period.
    cells : int
    column : str or None
    centre : float
        What a sum is taken about.
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
        """How many numbers a period has; the last may count people who are cut."""
        return sum(part.cells for part in self.parts) + self.count_cut

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where the cells of each part begin."""
        ends = np.cumsum([0, *(part.cells for part in self.parts)])
        return tuple(ends[:-1].tolist())

    @cached_property
    def _square(self) -> int:
        return self.factor.person(self.touched)

    @cached_property
    def steps(self) -> int:
        """How many steps a length of one has, a power of two."""
        largest = self._square * (1 + self.count_cut)
        return 1 << ((_LARGEST_SQUARE // largest).bit_length() - 1) // 2

    @cached_property
    def radius(self) -> int:
        """How far one person can move all releases, in steps."""
        return math.isqrt(self._square * self.steps**2 + self._kept)

    @cached_property
    def flag(self) -> int:
        """How many steps somebody who is cut counts for, once in the horizon."""
        peak = int(self.factor.gram(0)[0])
        return math.isqrt(self._square * self.steps**2 // (KEPT * peak)) if self.count_cut else 0

    @property
    def _kept(self) -> int:
        """The square that the flag can cost, in whichever period."""
        return int(self.factor.gram(0)[0]) * self.flag**2

    def cut_errors(self) -> Floats:
        """Return the standard deviation of the noise of how many people were cut so far."""
        return self.mechanism.sigma / self.flag * self.factor.spread("running")

    def step(self, part: SeriesPart) -> float:
        """Return what one step of a part is worth."""
        return part.unit * math.sqrt(len(self.parts)) / self.steps

    @property
    def ball(self) -> HorizonBall:
        """The bound on what one person adds over the whole horizon."""
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
        """Return the promise with what the whole horizon is: one event, unless hashes collide."""
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
        """Return a digest of the design and its parameters, to recognise another design."""
        numbers = [self.radius, self.steps, repr(self.mechanism.sigma), list(self.starts)]
        numbers += [self.factor.coefficients.tolist(), dict(parameters)]
        text = json.dumps(numbers, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()
