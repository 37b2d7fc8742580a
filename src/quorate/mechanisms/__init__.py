"""Private releases: noisy sums and private choices, as frozen dataclasses that know their cost.

* :mod:`quorate.mechanisms.sums`: sums on a public grid with Gaussian noise, and where a noisy count
  passes a target.
* :mod:`quorate.mechanisms.laplace`: sums with Laplace noise or, in a box, with noise of the largest
  coordinate.
* :mod:`quorate.mechanisms.noisy_count`: noisy counts of users.
* :mod:`quorate.mechanisms.balanced`: noisy sums of shares, whose noise adds up to zero.
* :mod:`quorate.mechanisms.choices.choose`: choice among finitely many candidates.
* :mod:`quorate.mechanisms.choices.ordered`: choice over huge ordered domains.
* :mod:`quorate.mechanisms.choices.quantiles`: quantiles of one value per user.
* :mod:`quorate.mechanisms.choices.round_quantile`: the same where people share round numbers.
* :mod:`quorate.mechanisms.choices.noisy_rank`: by how many users a released quantile is off.
* :mod:`quorate.core.noise.exponential`: the exact sampler under the last two.
* :mod:`quorate.mechanisms.pure`: price and promise of all that are purely private.
* :mod:`quorate.mechanisms.noisy_numbers`: whatever was computed from sealed sums.
* :mod:`quorate.mechanisms.gaussian`: price and promise of all that have Gaussian noise.
* :mod:`quorate.mechanisms.search.private_compare`: whether a count exceeds its share of the users.
* :mod:`quorate.mechanisms.search.rough_records`: how many records a typical user holds, roughly.
* :mod:`quorate.mechanisms.means.private_range`: a short interval that holds the users' values.
* :mod:`quorate.mechanisms.means.winsorized`: means inside such an interval.
* :mod:`quorate.mechanisms.search.random_restarts`: the best of a secret number of noisy
  evaluations.
* :mod:`quorate.mechanisms.user_sample`: means over a secret sample of the users.
* :mod:`quorate.core.noise.coins`: exact coins whose chance is made of exponentials.
* :mod:`quorate.mechanisms.parity`: solutions of linear equations, one of each user.
* :mod:`quorate.local.randomizers.known_laws`: what a user's own device answers.
* :mod:`quorate.local.oracle`: questions to such devices, charged first.
* :mod:`quorate.mechanisms.wrappers.subsampled`: any mechanism on a secret sample of fixed size.
* :mod:`quorate.core.noise.truncated_laplace`: the noisy limit of a test.
* :mod:`quorate.mechanisms.wrappers.stable_release`: sums of users who are alike, or nothing.
* :mod:`quorate.mechanisms.wrappers.mixture_release`: a mixture of finite laws behind such a limit.
* :mod:`quorate.mechanisms.stated_error`: how far a release may be off, in one form.
"""

from __future__ import annotations

from quorate.core.noise.exponential import choose_weighted
from quorate.mechanisms.choices.choose import ChooseBest, Selection
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.choices.quantiles import FloatQuantile, PrivateQuantile
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.sums import GaussianSum

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
