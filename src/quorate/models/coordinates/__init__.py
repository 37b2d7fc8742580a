"""Released coordinates of the features, in which steps need no tuning.

``released`` which of them users pay for · ``geometry`` centre and spread in three rounds, and the
records in them · ``one_round`` the same for fewer users · ``many_features`` scales and the largest
directions · ``scale`` one number for few users.
"""

from __future__ import annotations
