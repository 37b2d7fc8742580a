"""Losses of one's own, in JAX or PyTorch, for private minimisation.

They are losses like those of :mod:`quorate.models.losses`: gradients are computed in batches of
fixed public shapes, so that the promise is exact although the code is the caller's.
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
        The public shapes of batches; users take their places by a hash of their ids.
    """

    _answers_for = True
    network: Network = field(repr=False)
    places: Places

    @property
    def initial(self) -> Vector:
        """The weights to begin at: pass them to ``minimize(..., initial=loss.initial)``."""
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
        """Why the promise is only idealized, on devices whose bits are not fixed."""
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
    """Return a loss of one's own: ``function(weights, rows, targets)``, one number a record.

    Parameters
    ----------
    function : callable
        It sees the records of one user, in single precision, padded with zeros: the loss of a
        record must not depend on the other rows.
    weights : tree of arrays
        Public initial weights.
    features : int
        Numbers of a record.
    shape : tuple of int, optional
        The shape of one record.
    records : int, default=64
        Of a user with more records so many are used.
    frozen : tuple of str, default=()
        Beginnings of the names of weights that stay as they are.

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
    """Return a loss of one's own: ``loss(outputs, targets)`` of a PyTorch module, one a record.

    The parameters are those of :func:`jax_loss`.

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
