"""Noise sources for audits, and samplers of many draws that audits see as one.

An exact choice over a huge domain is a rejection loop: how many draws it makes, and of which size,
depends on the data, while only the chosen point is released. An audit must therefore follow or
force the *outcome* of the loop and not its draws. While :func:`audited` is active, such a sampler
asks the audit's source once, giving its public parameters, a way to draw, and the exact law over
cells of the public domain.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.exceptions import QuorateError
from quorate.guarantees import Numerics
from quorate.mechanisms.intervals import ChooseOrdered
from quorate.noise import NoiseSource, use_noise

__all__ = ["AuditError", "AuditSource", "Outcomes", "audited", "uniform_cells"]


@dataclass(frozen=True)
class Outcomes:
    """What one draw can give, how likely, and which share of that is the value itself.

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
        """Leave out what cannot happen; without ``exact`` every value is meant literally."""
        shares = [1.0] * len(masses) if exact is None else exact
        kept = [i for i, mass in enumerate(masses) if mass > 0]
        return cls(
            tuple(values[i] for i in kept),
            tuple(float(masses[i]) for i in kept),
            tuple(min(1.0, float(shares[i])) for i in kept),
        )


class AuditError(QuorateError, RuntimeError):
    """A program cannot be audited as it is; never an output of the program.

    >>> issubclass(AuditError, QuorateError)
    True
    """


class AuditSource(NoiseSource):
    """A source that also answers for samplers made of many draws; it voids every guarantee."""

    numerics = Numerics.VOID
    _inside_sampler = False

    @contextmanager
    def sampling(self, method: str, **parameters: Any) -> Iterator[None]:
        """Refuse a sampler of many draws that :func:`audited` does not know."""
        if not self._inside_sampler:
            raise AuditError(
                f"The sampler {method!r} makes draws that depend on the data; audits see its "
                f"outcome only after quorate.auditing.composite has learnt its law."
            )
        yield

    @abstractmethod
    def sample(
        self,
        method: str,
        draw: Callable[[], int],
        law: Callable[[int], Outcomes],
        **parameters: Any,
    ) -> int:
        """Return an outcome of the sampler ``method``.

        ``draw`` runs the real sampler; ``law`` gives its outcomes in at most so many cells of the
        public domain; ``parameters`` are public.
        """


@contextmanager
def audited(source: AuditSource) -> Iterator[None]:
    """Let everything built inside the block draw from ``source``, composite samplers at once.

    Mechanisms with another source are left alone. Not for several threads at a time.
    """
    original = ChooseOrdered.release

    def release(
        self: ChooseOrdered,
        lengths: NDArray[np.uint64],
        losses: NDArray[np.int64],
        *,
        lower: int = 0,
    ) -> int:
        if self.noise is not source:
            return original(self, lengths, losses, lower=lower)
        sizes = [int(length) for length in lengths]

        def law(max_cells: int) -> Outcomes:
            masses = self.probabilities(lengths, losses)
            return _ordered_outcomes(lower, sizes, masses, max_cells)

        return source.sample(
            "ordered_choice",
            lambda: original(self, lengths, losses, lower=lower),
            law,
            rate=self.rate,
            lower=lower,
            size=sum(sizes),
        )

    ChooseOrdered.release = release  # type: ignore[method-assign]
    try:
        with use_noise(source):
            yield
    finally:
        ChooseOrdered.release = original  # type: ignore[method-assign]


def uniform_cells(size: int, max_cells: int) -> list[tuple[int, int]]:
    """Cut 0, ..., size - 1 into at most ``max_cells`` runs [low, high) of about equal length.

    >>> uniform_cells(7, 3)
    [(0, 2), (2, 4), (4, 7)]
    """
    n_cells = min(size, max_cells)
    return list(pairwise(size * i // n_cells for i in range(n_cells + 1)))


def _ordered_outcomes(
    lower: int, sizes: list[int], masses: NDArray[np.float64], max_cells: int
) -> Outcomes:
    """Chance of each cell of the domain; cells are public although pieces are not."""
    ends = list(accumulate(sizes))
    pieces = [
        (end - size, end, float(mass) / size)
        for size, end, mass in zip(sizes, ends, masses, strict=True)
        if size
    ]
    values, chances, shares = [], [], []
    for low, high in uniform_cells(ends[-1], max_cells):
        middle = low + (high - low) // 2
        chance = sum(
            density * (min(high, end) - max(low, start))
            for start, end, density in pieces
            if start < high and low < end
        )
        here = next(density for start, end, density in pieces if start <= middle < end)
        values.append(lower + middle)
        chances.append(chance)
        shares.append(here / chance if chance > 0 else 1.0)
    return Outcomes.possible(values, chances, shares)
