"""Private gradient descent: released gradients, and the steps that use them.

``training`` every linear model: ``posterior`` what gradients say of the minimum, ``clips`` how long
they are · ``descent`` steps on a loss of one's own (U5) · ``gradients`` its released gradients ·
``optimizers``, ``minimization`` other losses and other optimisers · ``minibatches`` secret samples
· ``winsorized_gradients`` gradients as published · ``phased`` stochastic convex optimisation (U6).
"""

from __future__ import annotations
