"""Private means, medians, variances and adaptive queries over users.

:class:`~quorate.means.user_mean.UserMean` is the estimator to start with.
"""

from __future__ import annotations

from quorate.means.user_mean import UserMean

__all__ = ["UserMean"]
