"""Learners of rules and cut-offs, with pure differential privacy and few users.

``concept_learner`` any class of rules · ``threshold`` cut-offs on ordered domains ·
``private_threshold`` the paper's binary search · ``min_error`` the smallest possible error, by the
``smallest_error_search`` · ``loss_selector`` the best of many candidates by a bounded loss,
``covers`` of a box · ``scores`` the contributions of users · ``automatic`` the choice of a score ·
``selection`` the private choice by a score · ``parity_learner`` parities by linear equations,
planned by ``parity_plan`` · ``concise_learner`` short rules first, with the bounds of ``occam`` ·
``generalization`` the papers' bounds.
"""

from __future__ import annotations

from quorate.learners.concept_learner import ConceptLearner
from quorate.learners.concise_learner import ConciseLearner
from quorate.learners.covers import box_cover
from quorate.learners.loss_selector import LossSelector
from quorate.learners.min_error import PrivateMinError
from quorate.learners.parity_learner import ParityLearner
from quorate.learners.private_threshold import PrivateThreshold
from quorate.learners.threshold import ThresholdLearner

__all__ = [
    "ConceptLearner",
    "ConciseLearner",
    "LossSelector",
    "ParityLearner",
    "PrivateMinError",
    "PrivateThreshold",
    "ThresholdLearner",
    "box_cover",
]
