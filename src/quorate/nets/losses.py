"""Losses of your own, in JAX or PyTorch, for private minimisation.

They are losses like those of :mod:`quorate.models.losses`. Gradients are computed in batches of
fixed public shapes, so the guarantee is exact although the code is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.placed import Places
from quorate.core.users import UserData
from quorate.core.users.public_choices import in_own_order
from quorate.models.losses import Loss
from quorate.nets.jax_networks import JaxNetwork
from quorate.nets.networks import Network
from quorate.nets.training import places_for

__all__ = ["NetworkLoss", "jax_loss", "torch_loss"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class NetworkLoss(Loss):
    """The loss of a network's weights, for :func:`~quorate.models.minimize`.

    Attributes
    ----------
    network : Network
    places : Places
        The public shapes of batches; the position of a user follows from a hash of the id.
    """

    _answers_for = True
    network: Network = field(repr=False)
    places: Places

    @property
    def initial(self) -> Vector:
        """The initial weights: pass them to ``minimize(..., initial=loss.initial)``."""
        return self.network.initial

    def dimension(self, n_features: int) -> int:
        """Return the number of trained weights."""
        del n_features
        return self.network.initial.size

    def user_gradients(self, batch: UserData, theta: Vector) -> Vector:
        """Return the mean gradient of each user; zeros for a user without records."""
        found = np.zeros((batch.n_users, theta.size))
        program = self.network.gradients(theta)
        held = Places(width=self.places.width, lengths=self.places.lengths)
        for numbers, laid in held.batches(in_own_order(batch), None, 0):
            own = numbers >= 0
            found[numbers[own]] = np.asarray(program(laid))[own]
        return found

    @property
    def caveat(self) -> str | None:
        """Why the guarantee is only idealized.

        None unless the arithmetic of the device is inexact.
        """
        return self.network.caveat


def jax_loss(
    function: Callable[[Any, Any, Any], Any],
    weights: Any,
    *,
    features: int,
    shape: tuple[int, ...] | None = None,
    records: int = 64,
    frozen: tuple[str, ...] = (),
) -> NetworkLoss:
    """Return a loss from ``function(weights, rows, targets)``, which gives one number per record.

    Parameters
    ----------
    function : callable
        It gets the records of one user, in single precision, padded with zeros. The loss of a
        record must not depend on the other rows.
    weights : tree of arrays
        Public initial weights.
    features : int
        Number of features of a record.
    shape : tuple of int, optional
        The shape of one record.
    records : int, default=64
        If a user has more records, that many of them are used.
    frozen : tuple of str, default=()
        Prefixes of the names of weights that are not trained.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> loss = jax_loss(
    ...     lambda w, rows, y: jnp.abs(rows @ w["slope"] - y),
    ...     {"slope": jnp.zeros(2)},
    ...     features=2,
    ... )
    >>> people = UserData([[1.0, 2.0], [3.0, 4.0]], [1.0, -1.0], offsets=[0, 1, 2])
    >>> loss.user_gradients(people, loss.initial)
    array([[-1., -2.],
           [ 3.,  4.]])
    """
    held = (features,) if shape is None else tuple(shape)
    network = JaxNetwork(function, weights, shape=held, head="own", frozen=frozen)
    size = network.initial.size
    return NetworkLoss(network, places_for(weights=size, users_of_step=2.0**10, records=records))


def torch_loss(
    module: Any,
    loss: Callable[[Any, Any], Any],
    *,
    features: int,
    shape: tuple[int, ...] | None = None,
    records: int = 64,
    frozen: tuple[str, ...] = (),
) -> NetworkLoss:
    """Return a loss from ``loss(outputs, targets)``: one number per record of a PyTorch module.

    The parameters are as for :func:`jax_loss`.

    Examples
    --------
    >>> import importlib.util
    >>> if importlib.util.find_spec("torch"):
    ...     import torch
    ...
    ...     squares = lambda outputs, targets: (outputs[:, 0] - targets) ** 2
    ...     loss = torch_loss(torch.nn.Linear(3, 1), squares, features=3)
    ...     assert loss.network.initial.shape == (4,)
    """
    from quorate.nets.torch_networks import TorchNetwork

    held = (features,) if shape is None else tuple(shape)
    network = TorchNetwork(module, shape=held, head="own", frozen=frozen, loss=loss)
    size = network.initial.size
    return NetworkLoss(network, places_for(weights=size, users_of_step=2.0**10, records=records))
