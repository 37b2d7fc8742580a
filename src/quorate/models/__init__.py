"""Models trained on people: linear models, losses, and private first-order optimisation."""

from __future__ import annotations

from quorate.models.classification import LinearSVC, LogisticRegression
from quorate.models.gradients import ClippedGradients, WinsorizedGradients
from quorate.models.grid_search import PrivateGridSearch
from quorate.models.losses import (
    HuberLoss,
    LogisticLoss,
    Loss,
    SmoothedHingeLoss,
    SoftmaxLoss,
    SquaredLoss,
)
from quorate.models.minimization import Minimum, minimize
from quorate.models.optimizers import (
    Adam,
    AveragedDescent,
    Optimizer,
    RandomIterateDescent,
    RestartedDescent,
)
from quorate.models.phased import PhasedMinimizer
from quorate.models.regression import HuberRegression, LinearRegression, Ridge
from quorate.models.runs import Feasibility, model_feasibility

__all__ = [
    "Adam",
    "AveragedDescent",
    "ClippedGradients",
    "Feasibility",
    "HuberLoss",
    "HuberRegression",
    "LinearRegression",
    "LinearSVC",
    "LogisticLoss",
    "LogisticRegression",
    "Loss",
    "Minimum",
    "Optimizer",
    "PhasedMinimizer",
    "PrivateGridSearch",
    "RandomIterateDescent",
    "RestartedDescent",
    "Ridge",
    "SmoothedHingeLoss",
    "SoftmaxLoss",
    "SquaredLoss",
    "WinsorizedGradients",
    "minimize",
    "model_feasibility",
]
