"""Searches by noisy looks: each compares one number with a target.

``private_compare`` whether a count exceeds its share (L3) · ``rough_records`` how many records a
user holds · ``random_restarts`` the best of a secret number of looks (U7). Where a count passes a
target is searched for in :mod:`quorate.mechanisms.sums`.
"""

from __future__ import annotations
