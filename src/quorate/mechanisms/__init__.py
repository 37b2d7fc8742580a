"""Private releases: noisy sums and private choices, as frozen dataclasses with their privacy cost.

* :mod:`quorate.mechanisms.sums`: sums on a public grid with Gaussian noise, and searches by noisy
  counts.
* :mod:`quorate.mechanisms.laplace`: sums with Laplace noise or, in a box, with noise calibrated to
  the largest coordinate.
* :mod:`quorate.mechanisms.noisy_count`: noisy counts of users.
* :mod:`quorate.mechanisms.balanced`: noisy sums of shares, whose noise adds up to zero.
* :mod:`quorate.mechanisms.choices.choose`: choice among finitely many candidates.
* :mod:`quorate.mechanisms.choices.ordered`: choice over huge ordered domains.
* :mod:`quorate.mechanisms.choices.quantiles`: quantiles of one value per user.
* :mod:`quorate.mechanisms.choices.round_quantile`: quantiles that can be round numbers shared by
  many people.
* :mod:`quorate.mechanisms.choices.noisy_rank`: the rank error of a released quantile.
* :mod:`quorate.core.noise.exponential`: the exact sampler of the exponential mechanism.
* :mod:`quorate.mechanisms.pure`: event and guarantee of all pure mechanisms.
* :mod:`quorate.mechanisms.noisy_numbers`: numbers computed from sealed sums, with Gaussian noise.
* :mod:`quorate.mechanisms.gaussian`: event and guarantee of all mechanisms with Gaussian noise.
* :mod:`quorate.mechanisms.search.private_compare`: whether a count exceeds its share of the users.
* :mod:`quorate.mechanisms.search.rough_records`: a rough estimate of the records per user.
* :mod:`quorate.mechanisms.means.private_range`: a short interval that contains the users' values.
* :mod:`quorate.mechanisms.means.winsorized`: means inside such an interval.
* :mod:`quorate.mechanisms.search.random_restarts`: the best of a secret number of noisy
  evaluations.
* :mod:`quorate.mechanisms.user_sample`: means over a secret sample of the users.
* :mod:`quorate.core.noise.coins`: exact coins whose probability is a fraction of exponentials.
* :mod:`quorate.mechanisms.parity`: solutions of linear equations, with one equation per user.
* :mod:`quorate.local.randomizers.known_laws`: answers of a user's own device.
* :mod:`quorate.local.oracle`: queries to such devices, charged first.
* :mod:`quorate.mechanisms.wrappers.subsampled`: any mechanism on a secret sample of fixed size.
* :mod:`quorate.core.noise.truncated_laplace`: the noisy limit of a test.
* :mod:`quorate.mechanisms.wrappers.stable_release`: sums over similar users, or nothing.
* :mod:`quorate.mechanisms.wrappers.mixture_release`: a mixture of finite laws with such a limit.
* :mod:`quorate.mechanisms.stated_error`: the common fields of all stated errors.
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
