"""Scores: they turn users' mistakes into one integer loss for every hypothesis.

There is one score per file; each proves its sensitivity for both neighbouring relations.

* :class:`Mistakes`: item level, a bounded number of records per user (K1).
* :class:`AnyMistake`: realizable data (F4).
* :class:`MoreThan`: more than t mistakes, t from exact binomial tails (L2).
* :class:`Crossing`: a private choice of that t.
* :class:`KolmogorovSmirnov`: all t at once.
* :class:`CappedRegret`: errors beyond a user's own fewest; the default if users may differ.
* :class:`OwnBest`: users vote for their own best cut-offs on a line; for users who are alike.
* :class:`Duels`, :class:`ClippedPairwise`: users compare pairs (F5, F6); for users who are alike.
* :class:`Surrogate`: representations (L1, L4).
* :class:`ClippedDifference`: differences to a private reference, for bounded losses.
* :class:`TrustedScore`: a score of the caller that cannot be called for one user at a time.
"""

from __future__ import annotations

from quorate.learners.scores.any_mistake import AnyMistake
from quorate.learners.scores.base import AdditiveScore, MistakeLine, MistakeTable, Score
from quorate.learners.scores.caller_scores import TrustedScore
from quorate.learners.scores.capped_regret import CappedRegret
from quorate.learners.scores.crossing import Crossing
from quorate.learners.scores.kolmogorov_smirnov import KolmogorovSmirnov
from quorate.learners.scores.mistakes import Mistakes
from quorate.learners.scores.more_than import MoreThan
from quorate.learners.scores.own_best import OwnBest
from quorate.learners.scores.pairwise import ClippedPairwise, Duels
from quorate.learners.scores.reference import ClippedDifference
from quorate.learners.scores.surrogate import Surrogate

__all__ = [
    "AdditiveScore",
    "AnyMistake",
    "CappedRegret",
    "ClippedDifference",
    "ClippedPairwise",
    "Crossing",
    "Duels",
    "KolmogorovSmirnov",
    "MistakeLine",
    "MistakeTable",
    "Mistakes",
    "MoreThan",
    "OwnBest",
    "Score",
    "Surrogate",
    "TrustedScore",
]
