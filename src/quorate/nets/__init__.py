"""Neural networks trained on whole people: JAX and PyTorch, with exact noise.

``classification`` and ``regression`` the estimators · ``training`` the private steps ·
``networks`` what a network is to a step · ``jax_networks``, ``torch_networks`` the two back ends ·
``small`` the default network · ``linear_ends`` how one for numbers begins and ends · ``losses``
losses of one's own for :func:`~quorate.models.optimization.minimization.minimize`.

Neither JAX nor PyTorch is imported before a network is built.
"""

from __future__ import annotations

from quorate.nets.classification import NeuralClassifier
from quorate.nets.losses import jax_loss, torch_loss
from quorate.nets.regression import NeuralRegressor

__all__ = ["NeuralClassifier", "NeuralRegressor", "jax_loss", "torch_loss"]
