"""Means of users who lie close together: locate them, then average there.

``private_range`` a short interval around the users (U1) · ``winsorized`` means inside it (U2, U3).
"""

from __future__ import annotations
