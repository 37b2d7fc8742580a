"""Releases: noise added to sums, or one of many chosen; frozen, priced and exact.

* :mod:`quorate.mechanisms.sums`: noisy sums and counts on a public grid.
* :mod:`quorate.mechanisms.choose`: choice among finitely many candidates.
* :mod:`quorate.mechanisms.intervals`: choice over huge ordered domains.
* :mod:`quorate.mechanisms.quantiles`: quantiles of one value per user.
* :mod:`quorate.mechanisms.exponential`: the exact sampler under the last two.
* :mod:`quorate.mechanisms.pure`: price and promise of all that are purely private.
"""

from __future__ import annotations

from quorate.mechanisms.choose import ChooseBest, Selection
from quorate.mechanisms.exponential import choose_weighted
from quorate.mechanisms.intervals import ChooseOrdered
from quorate.mechanisms.quantiles import FloatQuantile, PrivateQuantile
from quorate.mechanisms.sums import GaussianSum, LaplaceSum, NoisyCount

__all__ = [
    "ChooseBest",
    "ChooseOrdered",
    "FloatQuantile",
    "GaussianSum",
    "LaplaceSum",
    "NoisyCount",
    "PrivateQuantile",
    "Selection",
    "choose_weighted",
]
