"""Neural networks trained on whole people: JAX and PyTorch, with exact noise.

``classification`` and ``regression`` the estimators · ``training`` the private steps · ``networks``
the interface between a network and a step · ``jax_networks``, ``torch_networks`` the two back ends
· ``small`` the default network · ``linear_ends`` linear models at the start and the end of
regression · ``losses`` losses of your own for
:func:`~quorate.models.optimization.minimization.minimize`.

JAX or PyTorch is imported only when a network is built.
"""

from __future__ import annotations

from quorate.nets.classification import NeuralClassifier
from quorate.nets.losses import jax_loss, torch_loss
from quorate.nets.regression import NeuralRegressor

__all__ = ["NeuralClassifier", "NeuralRegressor", "jax_loss", "torch_loss"]
