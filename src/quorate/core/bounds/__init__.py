"""Bounds beyond an interval, a box and a ball: each clips, rounds and knows how far one user moves.

``simplices`` several sets of shares · ``trimmed`` an offset from a centre, or shares outside.
"""

from __future__ import annotations
