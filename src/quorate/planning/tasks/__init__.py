"""How the error of each task falls with users and epsilon, one task a file."""

from __future__ import annotations

from quorate.planning.tasks.agreement import (
    AgreementTask,
    LocalAgreementTask,
    ShuffleAgreementTask,
)
from quorate.planning.tasks.base import ErrorModel, Task
from quorate.planning.tasks.concept import ConceptTask
from quorate.planning.tasks.distribution import CdfTask, NormalTask, SharesTask
from quorate.planning.tasks.mean import MeanTask
from quorate.planning.tasks.median import MedianTask
from quorate.planning.tasks.models import LinearTask, LogisticTask
from quorate.planning.tasks.select import SelectTask
from quorate.planning.tasks.threshold import ThresholdTask

__all__ = [
    "AgreementTask",
    "CdfTask",
    "ConceptTask",
    "ErrorModel",
    "LinearTask",
    "LocalAgreementTask",
    "LogisticTask",
    "MeanTask",
    "MedianTask",
    "NormalTask",
    "SelectTask",
    "SharesTask",
    "ShuffleAgreementTask",
    "Task",
    "ThresholdTask",
]
