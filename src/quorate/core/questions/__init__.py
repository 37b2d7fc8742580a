"""Queries with answers of a special shape, each with its sensitivity.

* :mod:`~quorate.core.questions.shares`: shares of a user's records in categories;
* :mod:`~quorate.core.questions.covers`: covers of the pairs of users that are far apart;
* :mod:`~quorate.core.questions.scores`: every user scores each of many candidates;
* :mod:`~quorate.core.questions.pairs`: every user compares all pairs of candidates;
* :mod:`~quorate.core.questions.lines`: both, for candidates on a line that cannot be listed;
* :mod:`~quorate.core.questions.ballots`: one key per user, from a universe that cannot be listed.
"""

from __future__ import annotations
