"""Tables over time for whole people: one promise for everything a person does over a horizon.

``user_series`` what people call · ``design``, ``factors``, ``calendar`` what is fixed in public
before the first period · ``period``, ``spending``, ``store``, ``id_hashes`` where rows meet noise
and what is remembered of people, privately · ``curves`` what is computed from releases.
"""

from __future__ import annotations

from quorate.series.user_series import UserSeries

__all__ = ["UserSeries"]
