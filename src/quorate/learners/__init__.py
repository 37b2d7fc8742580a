"""Learners of rules and cut-offs: pure differential privacy from few users.

``concept_learner`` any class of rules · ``threshold`` cut-offs on ordered domains ·
``private_threshold`` the paper's binary search · ``min_error`` the smallest reachable error ·
``losses`` the best of many candidates by a bounded loss · ``scores`` what users contribute ·
``automatic`` which score when · ``records`` a rough private count of records ·
``selection`` from losses to a hypothesis · ``generalization`` the papers' bounds.
"""

from __future__ import annotations

from quorate.learners.concept_learner import ConceptLearner
from quorate.learners.min_error import PrivateMinError
from quorate.learners.threshold import ThresholdLearner

__all__ = ["ConceptLearner", "PrivateMinError", "ThresholdLearner"]
