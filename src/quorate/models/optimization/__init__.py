"""Private gradient descent: released gradients, and the steps that use them.

``training`` trains every linear model: ``posterior`` estimates the minimum from gradients,
``clips`` estimates gradient lengths · ``descent`` is for losses of your own (U5) · ``gradients``
has its released gradients · ``optimizers``, ``minimization`` other losses and other optimisers ·
``minibatches`` secret samples · ``winsorized_gradients`` gradients as published · ``phased``
stochastic convex optimisation (U6).
"""

from __future__ import annotations
