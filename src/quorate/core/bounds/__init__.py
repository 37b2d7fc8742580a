"""Bounds beyond an interval, a box and a ball: each clips, rounds and knows how far one user moves.

``or_absent`` an offset or a vote for "absent" · ``diamond`` an L1 ball · ``lifted_ball`` a ball
whose users also say how near to its centre they are · ``simplices`` several sets of shares ·
``trimmed`` an offset from a centre, or shares outside.
"""

from __future__ import annotations
