"""What the planner expects of a fit, from public numbers and from what was released.

Nothing here looks at the data: the number of users is public under replacement (there is no
forecast under addition and removal, where it is not), and how much users differ is known only if
the fit released it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from quorate.exceptions import QuorateError
from quorate.learners.threshold import threshold_class
from quorate.planning import TASKS, Plan, plan
from quorate.tasks.fitting import Fit

__all__ = ["forecast"]


def forecast(fit: Fit) -> Plan | None:
    """Return the error to expect of ``fit``, or None if public numbers do not tell.

    Without a stated number of records the planner takes each user's own mean as one record.
    """
    name = fit.request.task
    if fit.n_users is None or fit.n_users == 0 or name not in _SIZES or name not in TASKS:
        return None
    # A release that is paid for is worth more than its forecast, which is left out if it fails.
    with suppress(QuorateError, ArithmeticError):
        return plan(
            name,
            users=fit.n_users,
            records=fit.request.records or 1,
            epsilon=fit.request.epsilon,
            delta=fit.request.delta,
            relation=fit.request.relation,
            **_SIZES[name](fit),
        )
    return None


def _half_width(fit: Fit) -> float:
    lower, upper = fit.request.ranges(fit.columns.features)
    return max(high - low for low, high in zip(lower, upper, strict=True)) / 2


def _mean(fit: Fit) -> dict[str, Any]:
    dimension, bound = len(fit.columns.features), _half_width(fit)
    spread = fit.estimator.algorithm_.spread
    # Users who fill the range evenly, unless the fit found out how far they are apart.
    deviation = bound / math.sqrt(3) if not spread else spread / math.sqrt(dimension)
    scale = deviation * math.sqrt(fit.request.records or 1)
    return {"dimension": dimension, "bounds": bound, "scale": scale}


def _median(fit: Fit) -> dict[str, Any]:
    bound = _half_width(fit)
    return {
        "dimension": len(fit.columns.features),
        "bounds": bound,
        "scale": bound / math.sqrt(3),
    }


def _threshold(fit: Fit) -> dict[str, Any]:
    learner = fit.estimator
    concepts = threshold_class(learner.domain, step=learner.step, direction=learner.direction)
    return {"domain": max(2, concepts.domain.points)}


def _model(fit: Fit) -> dict[str, Any]:
    return {"dimension": len(fit.columns.features)}


_SIZES: dict[str, Callable[[Fit], dict[str, Any]]] = {
    "linear": _model,
    "logistic": _model,
    "mean": _mean,
    "median": _median,
    "threshold": _threshold,
}
