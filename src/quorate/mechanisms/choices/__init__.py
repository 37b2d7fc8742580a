"""Private choices: one of finitely many candidates, or a point of a line.

``choose`` among listed candidates · ``ordered`` over huge ordered domains · ``exponential`` the
exact sampler under it · ``flips``, ``binomial`` permute-and-flip among 2^32 points · ``universe``
among very many keys that stand in no order (G8) · ``stable_choice`` popular keys among unknown ones
(G9) · ``quantiles``, ``round_quantile`` quantiles of one value per user · ``noisy_rank`` by how
many users a released quantile is off.
"""

from __future__ import annotations
