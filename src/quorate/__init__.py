"""Quorate: learning with user-level differential privacy.

The names most people need; everything else stands under its folder. Heavy imports wait until a
name is asked for, so ``import quorate`` is fast.

>>> import quorate as qr
>>> qr.Relation.REPLACE.value
'replace all records of one user'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from quorate.guarantees import Guarantee, Relation

if TYPE_CHECKING:
    from quorate.accounting.ledger import Ledger
    from quorate.distributions.cdf import EmpiricalCDF
    from quorate.distributions.discrete import DiscreteDistribution
    from quorate.distributions.gaussian import GaussianDistribution
    from quorate.distributions.histogram import Histogram
    from quorate.distributions.selection import HypothesisSelector
    from quorate.learners.concept_learner import ConceptLearner
    from quorate.learners.parity_learner import ParityLearner
    from quorate.learners.threshold import ThresholdLearner
    from quorate.means.median import PrivateMedian
    from quorate.means.user_mean import UserMean
    from quorate.models.classification import LinearSVC, LogisticRegression
    from quorate.models.regression import LinearRegression
    from quorate.planning.questions import plan
    from quorate.queries.private_score import private_cross_val_score, private_score
    from quorate.queries.query_learner import QueryLearner
    from quorate.stability.stable_learner import StableLearner
    from quorate.users import UserData

__version__ = "0.1.0"

_HOME = {
    "ConceptLearner": "quorate.learners.concept_learner",
    "DiscreteDistribution": "quorate.distributions",
    "EmpiricalCDF": "quorate.distributions",
    "GaussianDistribution": "quorate.distributions",
    "Histogram": "quorate.distributions",
    "HypothesisSelector": "quorate.distributions",
    "Ledger": "quorate.accounting.ledger",
    "LinearRegression": "quorate.models",
    "LinearSVC": "quorate.models",
    "LogisticRegression": "quorate.models",
    "ParityLearner": "quorate.learners.parity_learner",
    "PrivateMedian": "quorate.means.median",
    "QueryLearner": "quorate.queries.query_learner",
    "StableLearner": "quorate.stability.stable_learner",
    "ThresholdLearner": "quorate.learners.threshold",
    "UserData": "quorate.users",
    "UserMean": "quorate.means.user_mean",
    "plan": "quorate.planning",
    "private_cross_val_score": "quorate.queries.private_score",
    "private_score": "quorate.queries.private_score",
}
_FOLDERS = (
    "accounting",
    "auditing",
    "concepts",
    "conversion",
    "distributions",
    "engines",
    "learners",
    "means",
    "mechanisms",
    "models",
    "planning",
    "queries",
    "stability",
)

__all__ = [
    "ConceptLearner",
    "DiscreteDistribution",
    "EmpiricalCDF",
    "GaussianDistribution",
    "Guarantee",
    "Histogram",
    "HypothesisSelector",
    "Ledger",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "ParityLearner",
    "PrivateMedian",
    "QueryLearner",
    "Relation",
    "StableLearner",
    "ThresholdLearner",
    "UserData",
    "UserMean",
    "plan",
    "private_cross_val_score",
    "private_score",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _FOLDERS:
        return importlib.import_module(f"quorate.{name}")
    raise AttributeError(f"module 'quorate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_FOLDERS, "__version__"])
