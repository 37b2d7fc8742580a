"""Further bounds; each clips, rounds and knows its sensitivity.

``blocks`` several bounds side by side · ``simplex`` shares of a whole · ``or_absent`` an offset
or a vote for "absent" · ``lifted_ball`` a ball with a lift, a number that shows how near to the
centre users are · ``trimmed`` an offset from a centre, or shares outside.
"""

from __future__ import annotations
