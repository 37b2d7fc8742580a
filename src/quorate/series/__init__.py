"""Tables over time: one guarantee for everything a person does over a horizon.

``user_series`` the estimator · ``design``, ``factors``, ``calendar`` the public choices before the
first period · ``period``, ``spending``, ``store``, ``id_hashes`` private: where rows meet noise,
and the state kept about people · ``curves`` tables computed from releases.
"""

from __future__ import annotations

from quorate.series.user_series import UserSeries

__all__ = ["UserSeries"]
