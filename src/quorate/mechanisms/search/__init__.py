"""Searches by noisy comparisons of one number with a target.

``private_compare`` whether a count exceeds its share (L3) · ``rough_records`` how many records a
user holds · ``random_restarts`` the best of a secret number of evaluations (U7). Where a count
passes a target is searched for in :mod:`quorate.mechanisms.sums`.
"""

from __future__ import annotations
