"""The interface between a network and a private step: a vector of weights, a gradient per user.

A back end (:mod:`quorate.nets.jax_networks`, :mod:`quorate.nets.torch_networks`) turns a module
into a :class:`Network`. Before anything is charged the network is tried on made-up users
(:func:`check_on_made_up_users`). A network that mixes records, as batch normalisation does, is
refused, because its predictions would depend on the other records of the batch.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.placed import Batch, Program
from quorate.core.public_randomness import public_generator
from quorate.exceptions import ParameterError

__all__ = ["HEADS", "Network", "check_on_made_up_users", "made_up_batch", "open_network", "word_of"]

Vector = NDArray[np.float64]

HEADS = ("classes", "number", "own")
"""The loss of the outputs: softmax, half a squared error, or a loss of the caller."""

# Rows that are predicted at once.
_ROWS = 4096
# Two ways to compute a gradient in 32 bits differ by less, relative to its length: 2^-24 in each of
# 2^14 numbers of a sum.
_ROUNDING = 2.0**-10


class Network(ABC):
    """A module whose weights are one vector.

    Attributes
    ----------
    initial : array
        The trained weights at the start; public.
    frozen : str
        A hash of the numbers that are not trained; empty where all are.
    module, shape
        The model from which the network was made, and the shape of one record.
    caveat : str or None
        Why gradients are not exact to the last bit, or None.
    """

    initial: Vector
    frozen: str = ""
    caveat: str | None = None
    module: Any = None
    shape: tuple[int, ...] = ()

    @abstractmethod
    def gradients(self, theta: Vector) -> Callable[[Batch], Any]:
        """Return the program that computes, at these weights, one mean gradient per position."""

    def program(self, theta: Vector) -> Program:
        """Return the program for the core; if the back end supports it, one that also adds up."""
        return self.gradients(theta)

    @abstractmethod
    def outputs_of(self, theta: Vector, rows: NDArray[np.float32]) -> NDArray[Any]:
        """Return the outputs for a batch of records: (records, outputs)."""

    def outputs(self, theta: Vector, rows: Vector) -> Vector:
        """Return the outputs for any number of records, in batches of one size."""
        with np.errstate(all="ignore"):
            single = rows.astype(np.float32)
        found = []
        for start in range(0, len(single), _ROWS):
            part = single[start : start + _ROWS]
            whole = np.zeros((min(_ROWS, _up(len(single))), rows.shape[1]), dtype=np.float32)
            whole[: len(part)] = part
            found.append(np.asarray(self.outputs_of(theta, whole), np.float64)[: len(part)])
        return np.concatenate(found) if found else np.zeros((0, 1))


def word_of(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return a hash of named arrays; nothing where there are none.

    >>> word_of({}), word_of({"w": np.zeros(2)})[:8], word_of({"w": np.ones(2)})[:8]
    ('', 'abe9bf3f', '8388363b')
    """
    if not arrays:
        return ""
    word = hashlib.sha256()
    for name, held in sorted(arrays.items()):
        word.update(repr((name, held.dtype.str, held.shape)).encode())
        word.update(np.ascontiguousarray(held).tobytes())
    return word.hexdigest()


def _up(count: int) -> int:
    """Return the power of two that is at least ``count``, so that few shapes are compiled."""
    return 1 << max(0, count - 1).bit_length()


def made_up_batch(*, users: int, records: int, features: int, classes: int) -> Batch:
    """Return artificial users: normal features in [-1, 1], and labels or limits in turn.

    >>> made_up_batch(users=2, records=3, features=4, classes=2).rows.shape
    (2, 3, 4)
    """
    rng = public_generator(0)
    rows = np.clip(0.5 * rng.standard_normal((users, records, features)), -1.0, 1.0)
    labels = np.arange(users * records).reshape(users, records) % max(2, classes)
    targets = labels if classes else 2.0 * labels - 1.0
    present = np.ones((users, records), dtype=np.bool_)
    return Batch(rows.astype(np.float32), targets.astype(np.float32), present)


def check_on_made_up_users(network: Network, *, features: int, classes: int) -> float:
    """Refuse a network that mixes records; return the typical length of a record's gradient.

    Both are found on made-up users, so no data about people are used, and the length is public.
    """
    try:
        return _checked(network, features=features, classes=classes)
    except ParameterError:
        raise
    except Exception as error:
        raise ParameterError(
            f"The network fails on made-up records: {type(error).__name__}: {error} Expected one "
            "that takes a batch of records and looks at one record at a time; batch normalisation "
            "does not."
        ) from error


def _checked(network: Network, *, features: int, classes: int) -> float:
    theta, users, records = network.initial, 4, 4
    batch = made_up_batch(users=users, records=records, features=features, classes=classes)
    together = _rows(network.outputs_of(theta, batch.rows.reshape(-1, features)))
    if classes and together.shape[1:] != (classes,):
        raise ParameterError(
            f"Expected a network with {classes} outputs, one for each class, got outputs of shape "
            f"{together.shape[1:]}."
        )
    if not classes and together.shape[1:] not in ((), (1,)):
        raise ParameterError(
            f"Expected a network with one output for a number, got outputs of shape "
            f"{together.shape[1:]}."
        )
    alone = np.concatenate(
        [_rows(network.outputs_of(theta, row[None])) for row in batch.rows.reshape(-1, features)]
    )
    full = _rows(network.gradients(theta)(batch))
    padded = Batch(
        np.concatenate([batch.rows, np.zeros_like(batch.rows)], axis=1),
        np.concatenate([batch.targets, np.zeros_like(batch.targets)], axis=1),
        np.concatenate([batch.present, np.zeros_like(batch.present)], axis=1),
    )
    longer = _rows(network.gradients(theta)(padded))
    if not (_alike(together, alone) and _alike(full, longer)):
        raise ParameterError(
            "This network mixes records: its output for one record depends on which others are in "
            "the batch, as with batch normalisation or dropout. One user would then move the "
            "gradients of others. Use a layer that looks at one record at a time, such as layer, "
            "group or instance normalisation, or freeze the statistics (eval mode)."
        )
    if not np.all(np.isfinite(full)):
        raise ParameterError(
            "Expected finite gradients on made-up records (features in [-1, 1]), got some that are "
            "not. Check the initial weights, and where a logarithm or a root is taken."
        )
    # One record of each user at a time, in a shape that is compiled already.
    which = np.broadcast_to(np.arange(records), batch.present.shape)
    singles = [
        _rows(network.gradients(theta)(replace(batch, present=which == own)))
        for own in range(records)
    ]
    length = float(np.median(np.linalg.norm(np.concatenate(singles), axis=1)))
    if not length > 0.0:
        raise ParameterError(
            "Expected gradients of some length at the initial weights on made-up records, got "
            "zeros, from which no step can be taken. Begin with random weights."
        )
    return length


def _rows(found: Any) -> Vector:
    return np.asarray(found, dtype=np.float64)


def _alike(one: Vector, other: Vector) -> bool:
    size = max(float(np.abs(one).max(initial=0.0)), 1e-6)
    if one.shape != other.shape or not np.all(np.isfinite(one) == np.isfinite(other)):
        return False
    return bool(np.nan_to_num(np.abs(one - other)).max(initial=0.0) <= _ROUNDING * size)


def open_network(
    module: Any,
    *,
    features: int,
    shape: tuple[int, ...] | None,
    head: str,
    outputs: int,
    hidden: int,
    frozen: tuple[str, ...],
    seed: int,
) -> Network:
    """Return the network of a module, with the back end for its type.

    ``None`` is the default network (:mod:`quorate.nets.small`).
    """
    import sys

    held = shape if shape is not None else (features,)
    if int(np.prod(held)) != features:
        raise ParameterError(
            f"Expected a shape of {features} numbers, one for each feature, got shape={shape!r}."
        )
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(module, torch.nn.Module):
        from quorate.nets.torch_networks import TorchNetwork

        return TorchNetwork(module, shape=held, head=head, frozen=frozen)
    from quorate.nets.jax_networks import JaxNetwork
    from quorate.nets.small import small_network

    if module is None:
        module = small_network(features=features, outputs=outputs, hidden=hidden)
    return JaxNetwork.of(module, shape=held, head=head, frozen=frozen, seed=seed)
