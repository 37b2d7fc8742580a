"""Quorate: learning with user-level differential privacy.

The names most people need are imported here; everything else is in its subpackage. A module is
imported when one of its names is first used, so ``import quorate`` is fast.

>>> import quorate as qr
>>> qr.Relation.REPLACE.value
'replace all records of one user'
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from quorate.core.guarantees import Guarantee, Relation

if TYPE_CHECKING:
    from quorate.core.bounds.grid import Ball, Box, Interval
    from quorate.core.users import UserData
    from quorate.distributions.categories.discrete import DiscreteDistribution
    from quorate.distributions.categories.product import ProductDistribution
    from quorate.distributions.hypotheses.selection import HypothesisSelector
    from quorate.distributions.normal.gaussian import GaussianDistribution
    from quorate.distributions.numeric.cdf import EmpiricalCDF
    from quorate.distributions.numeric.histogram import Histogram
    from quorate.learners.concept_learner import ConceptLearner
    from quorate.learners.concise_learner import ConciseLearner
    from quorate.learners.loss_selector import LossSelector
    from quorate.learners.min_error import PrivateMinError
    from quorate.learners.parity_learner import ParityLearner
    from quorate.learners.private_threshold import PrivateThreshold
    from quorate.learners.threshold import ThresholdLearner
    from quorate.ledger.ledger import Ledger
    from quorate.means.covariance import UserCovariance
    from quorate.means.median import PrivateMedian, UserQuantiles
    from quorate.means.queries import UserQueries
    from quorate.means.scaler import UserScaler
    from quorate.means.user_mean import UserMean
    from quorate.means.variation import UserVariation
    from quorate.models.classification import LinearSVC, LogisticRegression
    from quorate.models.grid_search import PrivateGridSearch
    from quorate.models.regression import HuberRegression, LinearRegression, Ridge
    from quorate.models.sampling_error import sampling_error
    from quorate.nets.classification import NeuralClassifier
    from quorate.nets.regression import NeuralRegressor
    from quorate.papers.queries.private_score import private_cross_val_score, private_score
    from quorate.papers.queries.query_learner import QueryLearner
    from quorate.papers.stability.stable_learner import StableLearner
    from quorate.pipelines import total_guarantee
    from quorate.planning.questions import plan
    from quorate.series.user_series import UserSeries
    from quorate.synth.user_synthesizer import UserSynthesizer
    from quorate.tabulate.phrases import PopularPhrases
    from quorate.tabulate.record_mean import RecordMean
    from quorate.tabulate.user_count import UserCount
    from quorate.tabulate.user_sum import UserSum
    from quorate.tabulate.user_table import UserTable

    __version__: str

# Estimators are found in the catalogue.
_HOME = {
    "Ball": "quorate.core.bounds.grid",
    "Box": "quorate.core.bounds.grid",
    "Interval": "quorate.core.bounds.grid",
    "Ledger": "quorate.ledger.ledger",
    "UserData": "quorate.core.users",
    "UserSeries": "quorate.series.user_series",
    "plan": "quorate.planning",
    "private_cross_val_score": "quorate.papers.queries.private_score",
    "private_score": "quorate.papers.queries.private_score",
    "sampling_error": "quorate.models.sampling_error",
    "total_guarantee": "quorate.pipelines",
}
_FOLDERS = (
    "app",
    "auditing",
    "core",
    "data",
    "distributions",
    "learners",
    "ledger",
    "local",
    "means",
    "mechanisms",
    "models",
    "nets",
    "papers",
    "planning",
    "series",
    "synth",
    "tabulate",
)

__all__ = [
    "Ball",
    "Box",
    "ConceptLearner",
    "ConciseLearner",
    "DiscreteDistribution",
    "EmpiricalCDF",
    "GaussianDistribution",
    "Guarantee",
    "Histogram",
    "HuberRegression",
    "HypothesisSelector",
    "Interval",
    "Ledger",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "LossSelector",
    "NeuralClassifier",
    "NeuralRegressor",
    "ParityLearner",
    "PopularPhrases",
    "PrivateGridSearch",
    "PrivateMedian",
    "PrivateMinError",
    "PrivateThreshold",
    "ProductDistribution",
    "QueryLearner",
    "RecordMean",
    "Relation",
    "Ridge",
    "StableLearner",
    "ThresholdLearner",
    "UserCount",
    "UserCovariance",
    "UserData",
    "UserMean",
    "UserQuantiles",
    "UserQueries",
    "UserScaler",
    "UserSeries",
    "UserSum",
    "UserSynthesizer",
    "UserTable",
    "UserVariation",
    "plan",
    "private_cross_val_score",
    "private_score",
    "sampling_error",
    "total_guarantee",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib import metadata

        # Of what is installed; sources that nobody installed have none.
        with suppress(metadata.PackageNotFoundError):
            return metadata.version("quorate")
        return "0+unknown"
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _FOLDERS:
        return importlib.import_module(f"quorate.{name}")
    if not name.startswith("_"):
        from quorate.app.catalogue import CATALOGUE

        if name in CATALOGUE:
            return CATALOGUE[name].kind
    raise AttributeError(f"module 'quorate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_FOLDERS, "__version__"])
