"""The outcomes of one noise call, their probabilities, and the cells in which they are reported.

An exact choice over a huge domain is a rejection loop. The number and size of its draws depend on
the data, but only the chosen point is released. So an audit follows the *outcome* of the loop, in
cells of the public domain, and not its draws: such a sampler calls its source once, through
:meth:`quorate.core.noise.NoiseSource.sample`, and passes its law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from quorate.mechanisms.laws import PiecewiseLaw

__all__ = ["Outcomes", "cell_outcomes", "uniform_cells"]


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of one draw, their probabilities, and the share reported exactly.

    >>> Outcomes.possible(["a", "b"], [1.0, 0.0]).values
    ('a',)
    """

    values: tuple[Any, ...]
    masses: tuple[float, ...]
    exact: tuple[float, ...]

    @classmethod
    def possible(
        cls, values: Sequence[Any], masses: Sequence[float], exact: Sequence[float] | None = None
    ) -> Outcomes:
        """Leave out impossible outcomes; without ``exact`` every value counts as exact."""
        shares = [1.0] * len(masses) if exact is None else exact
        kept = [i for i, mass in enumerate(masses) if mass > 0]
        return cls(
            tuple(values[i] for i in kept),
            tuple(float(masses[i]) for i in kept),
            tuple(min(1.0, float(shares[i])) for i in kept),
        )


def uniform_cells(size: int, max_cells: int) -> list[tuple[int, int]]:
    """Divide 0, ..., size - 1 into at most ``max_cells`` runs [low, high) of about equal length.

    >>> uniform_cells(7, 3)
    [(0, 2), (2, 4), (4, 7)]
    """
    n_cells = min(size, max_cells)
    return list(pairwise(size * i // n_cells for i in range(n_cells + 1)))


def cell_outcomes(law: PiecewiseLaw, max_cells: int) -> Outcomes:
    """Return the probability of each cell of the domain; cells are public, although pieces are not.

    >>> import numpy as np
    >>> cell_outcomes(PiecewiseLaw(5, np.array([1, 3]), np.array([0.25, 0.75])), 2)
    Outcomes(values=(6, 8), masses=(0.5, 0.5), exact=(0.5, 0.5))
    """
    sizes = [int(length) for length in law.lengths]
    pieces = [
        (end - size, end, float(mass) / size)
        for size, end, mass in zip(sizes, accumulate(sizes), law.probabilities, strict=True)
        if size
    ]
    values, chances, shares = [], [], []
    for low, high in uniform_cells(law.size, max_cells):
        middle = low + (high - low) // 2
        chance = sum(
            density * (min(high, end) - max(low, start))
            for start, end, density in pieces
            if start < high and low < end
        )
        here = next(density for start, end, density in pieces if start <= middle < end)
        values.append(law.lower + middle)
        chances.append(chance)
        shares.append(here / chance if chance > 0 else 1.0)
    return Outcomes.possible(values, chances, shares)
