"""Questions to people whose answers have a shape of their own, each with how far one user moves it.

* :mod:`~quorate.core.questions.shares`: shares of a user's records in categories;
* :mod:`~quorate.core.questions.covers`: covers of the pairs of users that are far apart;
* :mod:`~quorate.core.questions.scores`: every user judges each of many candidates;
* :mod:`~quorate.core.questions.pairs`: every user compares each two of them;
* :mod:`~quorate.core.questions.lines`: both, for candidates along a line that nobody can list;
* :mod:`~quorate.core.questions.ballots`: one key a user, from a universe nobody can list.
"""

from __future__ import annotations
