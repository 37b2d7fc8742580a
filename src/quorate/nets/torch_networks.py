"""Networks in PyTorch: any ``torch.nn.Module`` that processes each record separately.

A step computes the gradient of each user's mean loss, mapped over the positions of a batch with
``torch.func.vmap``, on the CPU. The module itself is not changed: trained weights are in
``weights_``, and :func:`load_weights` puts them into a module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.placed import Batch
from quorate.data.engines.base import needs
from quorate.exceptions import ParameterError
from quorate.nets.networks import Network, word_of

__all__ = ["TorchNetwork", "load_weights"]

Vector = NDArray[np.float64]


class TorchNetwork(Network):
    """The parameters of a module as one vector, and its gradients.

    Parameters
    ----------
    module : torch.nn.Module
        A module on the CPU, with public initial weights.
    shape, head, frozen
        See :class:`~quorate.nets.jax_networks.JaxNetwork`. Parameters without ``requires_grad`` are
        also frozen.
    loss : callable, optional
        ``loss(outputs, targets)`` returns the loss of each record; for the head ``"own"``.
    """

    def __init__(
        self,
        module: Any,
        *,
        shape: tuple[int, ...],
        head: str,
        frozen: Sequence[str] = (),
        loss: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        torch = needs("torch", "torch")
        held = dict(module.named_parameters())
        if any(each.device.type != "cpu" for each in held.values()):
            raise ParameterError(
                "Expected a module on the processor: module.cpu(). Other devices do not promise "
                "the same bits for the same place of a batch."
            )
        unknown = [f for f in frozen if not any(name.startswith(f) for name in held)]
        if unknown:
            raise ParameterError(
                f"Expected frozen= to begin names of weights ({', '.join(held)}), got {unknown}."
            )
        fixed = {name: each.detach().clone() for name, each in held.items()}
        fixed |= {name: each.detach().clone() for name, each in module.named_buffers()}
        trained = [
            name
            for name, each in held.items()
            if each.requires_grad and not any(name.startswith(f) for f in frozen)
        ]
        if not trained:
            raise ParameterError("Expected a network with weights to train, got none.")
        self._torch, self._module, self._shape, self._head = torch, module, shape, head
        self._loss, self._fixed, self._trained = loss, fixed, trained
        self.frozen = word_of(
            {name: each.numpy() for name, each in fixed.items() if name not in trained}
        )
        flat = [fixed[name].double().flatten() for name in trained]
        self.initial = torch.cat(flat).numpy()
        gradient = torch.func.grad(self._mean_loss)
        self._mapped = torch.func.vmap(gradient, in_dims=(None, 0, 0, 0))

    def gradients(self, theta: Vector) -> Callable[[Batch], Any]:
        """Return the program at these weights."""
        return partial(self._user_gradients, self._torch.from_numpy(theta.astype(np.float32)))

    def outputs_of(self, theta: Vector, rows: NDArray[np.float32]) -> NDArray[Any]:
        """Return the outputs for a batch of records."""
        torch = self._torch
        with torch.no_grad():
            weights = torch.from_numpy(theta.astype(np.float32))
            found = self._forward(weights, torch.from_numpy(rows))
        return np.asarray(found.numpy())

    def _user_gradients(self, theta: Any, batch: Batch) -> NDArray[Any]:
        torch = self._torch
        found = self._mapped(
            theta,
            torch.from_numpy(batch.rows),
            torch.from_numpy(batch.targets),
            torch.from_numpy(batch.present),
        )
        return np.asarray(found.detach().numpy())

    def _weights(self, theta: Any) -> dict[str, Any]:
        weights, start = dict(self._fixed), 0
        for name in self._trained:
            held = self._fixed[name]
            part = theta[start : start + held.numel()]
            weights[name] = part.reshape(held.shape).to(held.dtype)
            start += held.numel()
        return weights

    def _forward(self, theta: Any, rows: Any) -> Any:
        held = rows.reshape(rows.shape[0], *self._shape)
        return self._torch.func.functional_call(self._module, self._weights(theta), (held,))

    def _mean_loss(self, theta: Any, rows: Any, targets: Any, present: Any) -> Any:
        torch = self._torch
        outputs = self._forward(theta, rows)
        if self._loss is not None:
            losses = self._loss(outputs, targets)
        elif self._head == "number":
            losses = 0.5 * (outputs.reshape(targets.shape) - targets) ** 2
        else:
            chances = torch.log_softmax(outputs.reshape(targets.shape[0], -1), dim=1)
            losses = -chances.gather(1, targets.long()[:, None])[:, 0]
        return torch.where(present, losses, 0.0).sum() / present.sum().clamp(min=1)


def load_weights(module: Any, weights: Vector, *, frozen: Sequence[str] = ()) -> None:
    """Write trained ``weights_`` into the parameters of a module of the same form."""
    torch = needs("torch", "torch")
    start = 0
    with torch.no_grad():
        for name, each in module.named_parameters():
            if each.requires_grad and not any(name.startswith(f) for f in frozen):
                part = torch.from_numpy(weights[start : start + each.numel()])
                each.copy_(part.reshape(each.shape).to(each.dtype))
                start += each.numel()
