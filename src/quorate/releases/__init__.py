"""What means, models and learners release alike: how many users, a radius, a mean, records.

``user_releases`` the number of users, radii and clipped means of one run · ``records`` how many
records a typical user holds.
"""

from __future__ import annotations
