"""From a request to an answer: the estimator of a task, its fit, its forecast.

``fitting`` fits the estimator of a request · ``unread`` users whose data were not read yet ·
``forecast`` the planner's forecast for the fit.
"""

from __future__ import annotations
