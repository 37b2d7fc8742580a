"""How the error of each task falls with users and epsilon, one task a file.

Which of them there are is said in the catalogue (:mod:`quorate.app.catalogue`), estimator by
estimator.
"""

from __future__ import annotations

from quorate.planning.tasks.base import ErrorModel, PlanTask

__all__ = ["ErrorModel", "PlanTask"]
