"""Models trained on people: linear models, losses, and private first-order optimisation."""

from __future__ import annotations

from quorate.models.class_losses import SmoothedHingeLoss, SoftmaxLoss
from quorate.models.classification import LinearSVC, LogisticRegression
from quorate.models.grid_search import PrivateGridSearch
from quorate.models.losses import LogisticLoss, Loss
from quorate.models.optimization.descent import AveragedDescent, Minimum, Optimizer
from quorate.models.optimization.gradients import ClippedGradients, Feasibility, model_feasibility
from quorate.models.optimization.minimization import minimize
from quorate.models.optimization.optimizers import Adam, RandomIterateDescent, RestartedDescent
from quorate.models.optimization.phased import PhasedMinimizer
from quorate.models.optimization.winsorized_gradients import WinsorizedGradients
from quorate.models.regression import HuberRegression, LinearRegression, Ridge
from quorate.models.regression_losses import HuberLoss, SquaredLoss

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
