"""Distributions of numbers.

``histogram`` shares of intervals · ``cdf`` distribution functions, ``cumulative`` the ways to them
· ``edges`` where intervals begin · ``hierarchy`` sums over intervals of all sizes.
"""

from __future__ import annotations
