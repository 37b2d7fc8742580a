"""Questions to people beyond totals, counts and tallies, each with how far one user moves it.

``shares`` of records in categories · ``covers`` of the pairs of users that are far apart.
"""

from __future__ import annotations
