"""Searches by noisy comparisons of one number with a target.

``private_compare`` whether a count exceeds its share (L3) · ``rough_records`` a rough estimate of
records per user · ``random_restarts`` the best of a secret number of evaluations (U7). The search
for the threshold at which a count reaches a target is in :mod:`quorate.mechanisms.sums`.
"""

from __future__ import annotations
