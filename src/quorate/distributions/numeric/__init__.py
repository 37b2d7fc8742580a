"""Distributions of numbers.

``histogram`` shares of intervals · ``cdf`` distribution functions, ``cumulative`` how they are
released · ``edges`` where intervals begin · ``hierarchy`` sums over intervals of all sizes.
"""

from __future__ import annotations
