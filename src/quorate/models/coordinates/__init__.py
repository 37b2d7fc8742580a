"""Released coordinates of the features, in which steps need no tuning.

``geometry`` centre and spread in three rounds, and the records in them · ``one_round`` the same for
fewer users · ``preconditioned`` gradients and parameters turned, records left where they lie.
"""

from __future__ import annotations
