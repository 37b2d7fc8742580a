"""Released coordinates of the features, in which step sizes need no tuning.

``released`` chooses among the following · ``geometry`` centre and spread in three rounds, and the
records in these coordinates · ``one_round`` the same for fewer users · ``many_features`` scales and
the largest directions · ``scale`` one number for few users.
"""

from __future__ import annotations
