"""How many users, which epsilon, what error: questions to ask before any data are read.

``plan`` asks · ``questions`` turns the question round · ``tasks`` say how the error of each task
falls with users and epsilon · ``limits`` what no method can beat, and what simpler ways cost ·
``advice`` what to change.
"""

from __future__ import annotations

from quorate.planning.plan import Baseline, Curve, Plan, PublishedBound
from quorate.planning.questions import TASKS, plan

__all__ = ["TASKS", "Baseline", "Curve", "Plan", "PublishedBound", "plan"]
