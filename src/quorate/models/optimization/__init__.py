"""Private gradient descent: released gradients, and the steps that use them.

``descent`` the steps of every fit (U5) · ``gradients`` the released gradients · ``descent_noise``
what their noise made of them · ``few_users``, ``lifted_gradients`` the plan for few users ·
``optimizers``, ``minimization`` other losses and other optimisers · ``minibatches`` secret samples
· ``winsorized_gradients`` gradients as published · ``phased`` stochastic convex optimisation (U6).
"""

from __future__ import annotations
