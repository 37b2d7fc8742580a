"""Private choices: one of finitely many candidates, or a point of a line.

``choose`` among listed candidates · ``ordered`` on huge ordered domains · ``exponential`` its exact
sampler · ``flips``, ``binomial`` permute-and-flip among 2^32 points · ``universe`` among very many
unordered keys (G8) · ``stable_choice`` popular keys among unknown ones (G9) · ``quantiles``,
``round_quantile`` quantiles of one value per user · ``noisy_rank`` the rank error of a released
quantile.
"""

from __future__ import annotations
