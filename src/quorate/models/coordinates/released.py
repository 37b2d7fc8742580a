"""The choice of coordinates: as detailed as the number of users allows."""

from __future__ import annotations

import math

from quorate.core.people import People
from quorate.mechanisms.user_releases import UserReleases
from quorate.models.coordinates.geometry import Geometry, release_in_rounds, whitens_in_rounds
from quorate.models.coordinates.one_round import release_in_one_round
from quorate.models.coordinates.scale import release_scale
from quorate.models.optimization.gradients import signal_of

__all__ = ["release_coordinates"]

# Below this many users, n mu over the root of the parameters, the noise of a scale for each feature
# hides the scales.
_FEW = 35.0


def release_coordinates(
    run: UserReleases, *, centred: bool, by_count: bool
) -> tuple[Geometry, People]:
    """Release coordinates in which features have about unit spread, and the users in them."""
    features = run.data.n_features
    signal = signal_of(n_users=run.n_users, mu=run.account.mu, relation=run.relation)
    if signal < _FEW * math.sqrt(features + centred):
        return release_scale(run, centred=centred, by_count=by_count)
    if centred and whitens_in_rounds(n_users=run.n_users, mu=run.account.mu, n_features=features):
        return release_in_rounds(run, by_count=by_count)
    return release_in_one_round(run, centred=centred, by_count=by_count)
