"""Private means, medians, variances and adaptive queries over users.

:class:`~quorate.means.user_mean.UserMean` is the estimator to start with. The published mechanisms
(U1 to U4 in ``docs/papers.md``) are in this package too.
"""

from __future__ import annotations

from quorate.estimators import Route
from quorate.means.covariance import UserCovariance
from quorate.means.mean_error import MeanError
from quorate.means.median import PrivateMedian, QuantileError, UserQuantiles
from quorate.means.queries import QueryAnswer, UserQueries
from quorate.means.scaler import UserScaler
from quorate.means.user_mean import UserMean
from quorate.means.variation import UserVariation
from quorate.mechanisms.means.private_range import PrivateRange
from quorate.mechanisms.means.rotation import Rotation
from quorate.mechanisms.means.winsorized import RotatedWinsorizedMean, WinsorizedMean

__all__ = [
    "MeanError",
    "PrivateMedian",
    "PrivateRange",
    "QuantileError",
    "QueryAnswer",
    "RotatedWinsorizedMean",
    "Rotation",
    "Route",
    "UserCovariance",
    "UserMean",
    "UserQuantiles",
    "UserQueries",
    "UserScaler",
    "UserVariation",
    "WinsorizedMean",
]
