"""Distributions of numbers.

``histogram`` shares of intervals · ``cdf`` distribution functions, ``cumulative`` their release ·
``edges`` ends of intervals · ``hierarchy`` sums over nested intervals.
"""

from __future__ import annotations
