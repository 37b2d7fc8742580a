"""Searches by noisy looks: each compares one number with a target.

``noisy_search`` where a count passes a target · ``private_compare`` whether a count exceeds its
share (L3) · ``rough_records`` how many records a user holds · ``random_restarts`` the best of a
secret number of looks (U7).
"""

from __future__ import annotations
