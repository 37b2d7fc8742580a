"""From a request to an answer: which estimator a task means, its fit, its forecast.

``fitting`` a request becomes a fitted estimator · ``unread`` users that no fit has read yet ·
``forecast`` what the planner says about it.
"""

from __future__ import annotations
