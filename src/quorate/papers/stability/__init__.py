"""Stable learners: most users arrive at the same result, so a private choice costs little.

Read :mod:`~quorate.papers.stability.rules` first: a stable rule maps one user's records, and a seed
that all users share, to the key of a hypothesis. ``softmax`` is the rule for finite and ordered
classes, ``list_stable`` the one for classes of small Littlestone dimension (``proved_lists`` has a
theorem), ``query_rule`` makes a rule from any algorithm of statistical queries, and
``decision_lists`` is the best rule for lists. They are based on ``correlated_sampling`` and
``gumbel_tree``. ``stable_learner`` is the estimator.
"""

from __future__ import annotations

from quorate.papers.stability.correlated_sampling import agreement_probability
from quorate.papers.stability.decision_lists import DecisionListRule
from quorate.papers.stability.from_learner import LearnerRepresentation
from quorate.papers.stability.list_stable import ListLearner, ListRule
from quorate.papers.stability.proved_lists import ProvedListLearner
from quorate.papers.stability.query_rule import QueryRule
from quorate.papers.stability.representations import HashedPoints, Representation, WholeClass
from quorate.papers.stability.reproducible import AmplifiedRule, HeavyHitterRule
from quorate.papers.stability.rules import StableRule, plurality
from quorate.papers.stability.softmax import SoftmaxRule
from quorate.papers.stability.stable_learner import StableLearner

__all__ = [
    "AmplifiedRule",
    "DecisionListRule",
    "HashedPoints",
    "HeavyHitterRule",
    "LearnerRepresentation",
    "ListLearner",
    "ListRule",
    "ProvedListLearner",
    "QueryRule",
    "Representation",
    "SoftmaxRule",
    "StableLearner",
    "StableRule",
    "WholeClass",
    "agreement_probability",
    "plurality",
]
