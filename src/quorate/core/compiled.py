r"""Gradients that are clipped, rounded and added up inside of a compiled program (JAX).

The caller gives the gradient of one user's records, with arrays in 32 bits. The gradient is mapped
over the positions of a micro-batch. The result of a position is clipped, gets its lift
(:mod:`quorate.core.bounds.lifted_ball`), is rounded towards zero, and is added to the integers of
all earlier micro-batches. Nothing of the size users x weights is ever stored. ``vmap`` keeps
positions apart, and integer sums do not depend on the order, so a sum moves by what one user adds.

Proof that every position adds a point of the set K of the lifted ball, whatever its contents. All
operations are those of IEEE 754 in 32 bits, with :math:`u = 2^{-24}`, in any order, fused or not,
and tiny numbers may count as zero. Let x be the gradient in steps; dividing by the step, a power of
two, is exact.

* A sum of W squares has a relative error of at most (W + 1) u, so that with
  :math:`s = (1 - (W + 8) u)^{-1/2} (1 + 2^{-20})` the computed U = s |x| is at least |x|. (Squares
  that count as zero matter for |x| < 1 only, where every coordinate is rounded to zero.)
* The factor is f = min(1, (R / U) (1 - 2^-20)), so the computed p = f x has |p| <= R.
* M = min(U f (1 + 2^-20), R) is at least |p|, and the lift is computed from M: a few roundings are
  made up for by another factor 1 - 2^-20, so it is at most that of |p|, which falls in |p|.
* R is rounded down to 32 bits. Rounding p and the lift towards zero does not leave K.

A position with a norm that is not finite, or without a user, adds zeros, which is in K. Sums over
the users of one call stay below 2^31 (:meth:`CompiledSums.together`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.grid import Grid
from quorate.core.bounds.lifted_ball import LiftedBall

__all__ = ["LARGEST_STEPS", "CompiledProgram", "CompiledSums"]

# A radius has at most so many steps, and so many users are added up at once: 31 bits hold their
# sums, lifts of up to root 3 radii among them.
LARGEST_STEPS, _MOST_USERS = 2**20, 2**10
# The clip loses a factor 1 - W 2^-25 of the radius; beyond, vectors are clipped in 64 bits.
_MOST_WEIGHTS = 2**21
# Numbers of records that are handed over at once: 16 megabytes.
_HANDED = 2**22
_ROUNDINGS = 2.0**-20
_UNIT = 2.0**-24


@contextmanager
def unwatched() -> Iterator[None]:
    """Run JAX without its checks for NaN and infinity, which would raise because of a record."""
    import jax

    with jax.debug_nans(False), jax.debug_infs(False):  # noqa: FBT003 - they take nothing else
        yield


@dataclass(frozen=True)
class CompiledSums:
    """The compiled programs of one network, one for each public shape.

    Parameters
    ----------
    gradient : callable
        ``gradient(weights, rows, targets, present)`` returns the gradient of one user's records,
        as a list of arrays, in JAX.
    sizes : sequence of int
        The number of entries of each array.
    """

    gradient: Callable[..., Any]
    sizes: Sequence[int]

    @cached_property
    def run(self) -> Any:
        """The program: from micro-batches to the integers of all their users."""
        import jax

        return jax.jit(self._summed, static_argnames=("width", "cone"))

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledSums, (self.gradient, self.sizes)  # another process compiles for itself

    def fits(self, grid: Grid, *, width: int) -> bool:
        """Return whether the proof covers a bound: a lifted ball around zero on a coarse grid."""
        bound = grid.bound
        return (
            width <= _MOST_USERS
            and isinstance(bound, LiftedBall)
            and bound.dimension == sum(self.sizes) + 1 <= _MOST_WEIGHTS
            and not bound.centre.any()
            and 1.0 <= bound.radius / grid.step <= LARGEST_STEPS
            and 2.0**-100 <= grid.step <= 2.0**100
        )

    @staticmethod
    def together(*, width: int, length: int, features: int) -> int:
        """Return how many micro-batches are processed per call; a function of public sizes.

        >>> CompiledSums.together(width=32, length=16, features=14)
        32
        """
        by_size = _HANDED // (width * length * features)
        return max(1, min(_MOST_USERS // width, by_size))

    def _summed(
        self,
        weights: Any,
        rows: Any,
        targets: Any,
        present: Any,
        taken: Any,
        count: Any,
        inverse_step: Any,
        reach: Any,
        *,
        width: int,
        cone: bool,
    ) -> Any:
        import jax
        import jax.numpy as jnp

        gradients = jax.vmap(self.gradient, in_axes=(None, 0, 0, 0))
        start = [jnp.zeros(size, jnp.int32) for size in (*self.sizes, 1)]

        def micro_batch(number: Any, sums: list[Any]) -> list[Any]:
            begin = number * width
            part = partial(jax.lax.dynamic_slice_in_dim, start_index=begin, slice_size=width)
            found = gradients(weights, part(rows), part(targets), part(present))
            added = _clipped(
                [each.reshape(width, -1).astype(jnp.float32) * inverse_step for each in found],
                part(taken),
                reach,
                cone=cone,
            )
            return [held + more for held, more in zip(sums, added, strict=True)]

        return jnp.concatenate(jax.lax.fori_loop(0, count, micro_batch, start))


def _clipped(steps: list[Any], taken: Any, reach: Any, *, cone: bool) -> list[Any]:
    """Return the sums over positions of clipped, rounded vectors and of their lifts."""
    import jax.numpy as jnp

    weights = sum(part.shape[1] for part in steps)
    # Up to 2^21 weights the root is at least that of 7/8.
    slack = (1.0 + _ROUNDINGS) / math.sqrt(1.0 - (weights + 8) * _UNIT)
    squares = sum(jnp.sum(part * part, axis=1) for part in steps)
    here = taken & jnp.isfinite(squares)
    length = jnp.sqrt(jnp.where(here, squares, 0.0)) * slack
    factor = jnp.minimum(1.0, reach / jnp.maximum(length, 1.0) * (1.0 - _ROUNDINGS))
    inside = jnp.minimum(length * factor * (1.0 + _ROUNDINGS), reach)
    below = reach - inside
    height = below if cone else jnp.sqrt(below * (3.0 * reach + inside))
    height = jnp.where(here, height * (1.0 - _ROUNDINGS), 0.0)
    kept = [jnp.where(here[:, None], part * factor[:, None], 0.0) for part in steps]
    return [
        each.astype(jnp.int32).sum(axis=0, dtype=jnp.int32) for each in (*kept, height[:, None])
    ]


@dataclass(frozen=True)
class CompiledProgram:
    """Compiled sums at some weights, and the same gradients row by row for other bounds.

    Parameters
    ----------
    sums : CompiledSums
    weights : list of arrays
    rows : callable
        Maps a batch to one vector per position.
    """

    sums: CompiledSums
    weights: Any = field(repr=False)
    rows: Callable[[Any], Any]

    def total(
        self, batch: Any, taken: NDArray[np.bool_], count: int, grid: Grid, *, width: int
    ) -> NDArray[np.int64]:
        """Return the sum over ``count`` micro-batches of ``width`` positions."""
        bound = grid.bound
        reach = np.float32(bound.radius / grid.step)  # type: ignore[attr-defined]
        if float(reach) > bound.radius / grid.step:  # type: ignore[attr-defined]
            reach = np.nextafter(reach, np.float32(0.0))
        with unwatched():
            found = self.sums.run(
                self.weights,
                batch.rows,
                batch.targets,
                batch.present,
                taken,
                count,
                np.float32(1.0 / grid.step),
                reach,
                width=width,
                cone=bound.cone,  # type: ignore[attr-defined]
            )
            return np.asarray(found).astype(np.int64)
