"""How the error of each task depends on users and epsilon, with one task per file.

The catalogue (:mod:`quorate.app.catalogue`) says which estimator each task belongs to.
"""

from __future__ import annotations

from quorate.planning.tasks.base import ErrorModel, PlanTask

__all__ = ["ErrorModel", "PlanTask"]
