"""Private descents: gradients that an account buys, and the steps that follow from them.

``descent`` the steps of every fit (U5) · ``gradients`` what its account buys · ``descent_noise``
what their noise made of them · ``few_users``, ``lifted_gradients`` the plan for few users ·
``optimizers``, ``minimization`` other losses and other optimisers · ``minibatches`` secret samples
· ``winsorized_gradients`` gradients as published · ``phased`` stochastic convex optimisation (U6).
"""

from __future__ import annotations
