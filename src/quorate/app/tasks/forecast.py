"""The planner's forecast for a fit, from public and released numbers.

Nothing here reads the data. The number of users is public under replacement (under add or remove it
is not, and there is no forecast), and how much users differ is known only if the fit released it.
"""

from __future__ import annotations

from contextlib import suppress

from quorate.app.catalogue import TASKS
from quorate.app.tasks.fitting import Fit
from quorate.exceptions import QuorateError
from quorate.planning import Plan, plan

__all__ = ["forecast"]


def forecast(fit: Fit) -> Plan | None:
    """Return the expected error of ``fit``, or None if public numbers do not determine it.

    If the number of records is not stated, the planner treats each user's mean as one record.
    """
    descriptor = TASKS[fit.request.task]
    if fit.n_users is None or fit.n_users == 0 or not descriptor.plans or descriptor.sizes is None:
        return None
    wish = fit.request.wish(fit.columns)
    # A release that is paid for is worth more than its forecast, which is left out if it fails.
    with suppress(QuorateError, ArithmeticError):
        return plan(
            fit.request.task,
            users=fit.n_users,
            records=fit.request.records or 1,
            # A part of the budget counted the rows that could be read.
            epsilon=fit.estimator.epsilon,
            delta=fit.request.delta,
            relation=fit.request.relation,
            **descriptor.sizes(fit.estimator, wish),
        )
    return None
