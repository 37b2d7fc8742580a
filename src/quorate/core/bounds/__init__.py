"""Further bounds; each clips, rounds and knows its sensitivity.

``or_absent`` an offset or a vote for "absent" · ``diamond`` an L1 ball · ``lifted_ball`` a ball
with a lift, a number that shows how near to the centre users are · ``simplices`` several sets of
shares · ``trimmed`` an offset from a centre, or shares outside.
"""

from __future__ import annotations
