"""Networks in JAX: an Equinox module, or a pair of functions (init, apply).

A step computes the gradient of each user's mean loss, mapped over the positions of a batch
(``vmap``); the program is compiled once for each public shape. ``vmap`` keeps users apart: the
contents of one position are never operands in the arithmetic of another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from quorate.core.compiled import CompiledProgram, CompiledSums, unwatched
from quorate.core.placed import Batch
from quorate.data.engines.base import needs
from quorate.exceptions import ParameterError
from quorate.nets.networks import Network, word_of

__all__ = ["JaxNetwork"]

Vector = NDArray[np.float64]

_GPU = (
    "The gradients were computed on a device that does not promise the same bits for the same "
    "place of a batch ({platform})."
)
_FAST = "XLA was asked for fast arithmetic, which the proof of the clip does not cover (XLA_FLAGS)."


class JaxNetwork(Network):
    """Weights, and a function of the weights and of the records of one user.

    Parameters
    ----------
    apply : callable
        ``apply(weights, rows)`` returns the outputs of some records, one row for each.
    weights : tree of arrays
    shape : tuple of int
        The shape of one record.
    head : str
        The loss: one of ``HEADS``. With ``"own"``, ``apply(weights, rows, targets)`` returns the
        loss of each record.
    frozen : sequence of str
        Prefixes of the names of weights that are not trained.
    """

    def __init__(
        self,
        apply: Callable[..., Any],
        weights: Any,
        *,
        shape: tuple[int, ...],
        head: str,
        frozen: Sequence[str] = (),
    ) -> None:
        jax = needs("jax", "jax")
        self._apply, self._shape, self._head = apply, shape, head
        named, self._tree = jax.tree_util.tree_flatten_with_path(weights)
        held = [np.asarray(leaf) for _, leaf in named]
        # Numbers of 64 bits become 32, without a warning at each step, as JAX is set up.
        self._leaves = [leaf.astype(jax.dtypes.canonicalize_dtype(leaf.dtype)) for leaf in held]
        names = [jax.tree_util.keystr(path).strip(".[]'\"") for path, _ in named]
        unknown = [f for f in frozen if not any(name.startswith(f) for name in names)]
        if unknown:
            raise ParameterError(
                f"Expected frozen= to begin names of weights ({', '.join(names)}), got {unknown}."
            )
        self._trained = [
            place
            for place, (name, leaf) in enumerate(zip(names, self._leaves, strict=True))
            if leaf.dtype.kind == "f" and not any(name.startswith(f) for f in frozen)
        ]
        if not self._trained:
            raise ParameterError("Expected a network with weights to train, got none.")
        self.frozen = word_of(
            {
                name: leaf
                for place, (name, leaf) in enumerate(zip(names, self._leaves, strict=True))
                if place not in self._trained
            }
        )
        trained = [self._leaves[place].astype(np.float64).ravel() for place in self._trained]
        self.initial = np.concatenate(trained)
        platform = jax.default_backend()
        self.caveat = None if platform == "cpu" else _GPU.format(platform=platform)
        if "fast_math=true" in os.environ.get("XLA_FLAGS", ""):
            self.caveat = _FAST

    @classmethod
    def of(
        cls, module: Any, *, shape: tuple[int, ...], head: str, frozen: Sequence[str], seed: int
    ) -> Self:
        """Return the network of an Equinox module or of a pair of functions (init, apply)."""
        jax = needs("jax", "jax")
        equinox = sys.modules.get("equinox")
        if equinox is not None and isinstance(module, equinox.Module):
            weights, static = equinox.partition(module, equinox.is_array)

            def apply(weights: Any, rows: Any) -> Any:
                return jax.vmap(equinox.combine(weights, static))(rows)

            return cls(apply, weights, shape=shape, head=head, frozen=frozen)
        pair = isinstance(module, tuple) and len(module) == 2 and all(map(callable, module))
        if not pair:
            raise ParameterError(
                "Expected a module of Equinox or PyTorch, a pair of functions (init, apply) or "
                f"None for the default network, got {type(module).__name__}."
            )
        init, apply = module
        return cls(apply, init(jax.random.key(seed)), shape=shape, head=head, frozen=frozen)

    def __getstate__(self) -> dict[str, Any]:
        # Another process compiles for itself.
        compiled = ("_compiled", "_compiled_outputs", "_sums")
        return {name: held for name, held in vars(self).items() if name not in compiled}

    def gradients(self, theta: Vector) -> Callable[[Batch], Any]:
        """Return the compiled program at these weights."""
        single = theta.astype(np.float32)
        return partial(self._user_gradients, single)

    def program(self, theta: Vector) -> CompiledProgram:
        """Return the program that also clips, rounds and adds up."""
        single = self._leaves_at(theta.astype(np.float32))
        return CompiledProgram(self._sums, single, self.gradients(theta))

    def outputs_of(self, theta: Vector, rows: NDArray[np.float32]) -> NDArray[Any]:
        """Return the outputs for a batch of records."""
        return np.asarray(self._compiled_outputs(theta.astype(np.float32), rows))

    def _user_gradients(self, theta: NDArray[np.float32], batch: Batch) -> Any:
        with unwatched():
            return self._compiled(theta, batch.rows, batch.targets, batch.present)

    def _leaves_at(self, theta: Any) -> list[Any]:
        """Return the trained arrays that one vector encodes."""
        found, start = [], 0
        for place in self._trained:
            leaf = self._leaves[place]
            found.append(theta[start : start + leaf.size].reshape(leaf.shape).astype(leaf.dtype))
            start += leaf.size
        return found

    def _weights(self, trained: list[Any]) -> Any:
        import jax

        leaves = list(self._leaves)
        for place, leaf in zip(self._trained, trained, strict=True):
            leaves[place] = leaf
        return jax.tree_util.tree_unflatten(self._tree, leaves)

    def _forward(self, trained: list[Any], rows: Any) -> Any:
        return self._apply(self._weights(trained), rows.reshape(rows.shape[0], *self._shape))

    def _mean_loss(self, trained: list[Any], rows: Any, targets: Any, present: Any) -> Any:
        import jax.numpy as jnp

        losses = self._losses(trained, rows, targets)
        return jnp.where(present, losses, 0.0).sum() / jnp.maximum(present.sum(), 1)

    def _losses(self, trained: list[Any], rows: Any, targets: Any) -> Any:
        import jax
        import jax.numpy as jnp

        if self._head == "own":
            held = rows.reshape(rows.shape[0], *self._shape)
            return self._apply(self._weights(trained), held, targets)
        outputs = self._forward(trained, rows)
        if self._head == "number":
            return 0.5 * (outputs.reshape(targets.shape) - targets) ** 2
        chances = jax.nn.log_softmax(outputs.reshape(targets.shape[0], -1))
        labels = targets.astype(jnp.int32)[:, None]
        return -jnp.take_along_axis(chances, labels, axis=1)[:, 0]

    @cached_property
    def _sums(self) -> CompiledSums:
        import jax

        sizes = [self._leaves[place].size for place in self._trained]
        return CompiledSums(jax.grad(self._mean_loss), sizes)

    @cached_property
    def _compiled(self) -> Any:
        import jax
        import jax.numpy as jnp

        def gradient(theta: Any, rows: Any, targets: Any, present: Any) -> Any:
            found = jax.grad(self._mean_loss)(self._leaves_at(theta), rows, targets, present)
            return jnp.concatenate([part.ravel().astype(jnp.float32) for part in found])

        return jax.jit(jax.vmap(gradient, in_axes=(None, 0, 0, 0)))

    @cached_property
    def _compiled_outputs(self) -> Any:
        import jax

        return jax.jit(lambda theta, rows: self._forward(self._leaves_at(theta), rows))
