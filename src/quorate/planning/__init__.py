"""Planning: how many users, which epsilon, what error, before any data are read.

``plan`` the result · ``questions`` solves for users, error or epsilon · ``tasks`` how the error of
each task depends on users and epsilon · ``limits`` lower bounds, and the cost of simpler methods ·
``advice`` what to change.
"""

from __future__ import annotations

from quorate.planning.plan import Baseline, Curve, Plan, PublishedBound
from quorate.planning.questions import TASKS, plan

__all__ = ["TASKS", "Baseline", "Curve", "Plan", "PublishedBound", "plan"]
