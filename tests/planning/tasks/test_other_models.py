"""Plans for ridge, Huber's loss and margins, held against fits."""

import numpy as np
import pytest
from scipy.optimize import minimize

from quorate import HuberRegression, LinearSVC, Ridge
from quorate.core.noise import SeededNoise, use_noise
from quorate.planning.tasks.other_models import HuberTask, MarginTask, RidgeTask

N, RECORDS, D, BOUND = 1500, 10, 4, 8.0
AIM = np.array([0.5, -0.5, 0.5, 0.5])


def squares(away, _):
    return away**2 / 2


def huber(away, _):
    return np.where(np.abs(away) <= 1, away**2 / 2, np.abs(away) - 0.5)


def hinge(_, margin):
    missed = 1 - margin
    return np.where(missed <= 0, 0, np.where(missed >= 0.5, missed - 0.25, missed**2))


# A penalty is about features in half widths of their range.
CASES = {
    "ridge": (Ridge, RidgeTask, squares, 0.01 * BOUND**2),
    "huber": (HuberRegression, HuberTask, huber, 0.0),
    "svc": (LinearSVC, MarginTask, hinge, 0.001 * BOUND**2),
}


@pytest.mark.parametrize("name", CASES)
def test_the_excess_is_kept_as_often_as_planned(name):
    kind, task, loss, penalty = CASES[name]
    planned = task(dimension=D, records=RECORDS, delta=1e-6, between=0.0).error(N, 1.0)
    kept = []
    for seed in range(8):
        rng = np.random.default_rng(70 + seed)
        X, far = rng.normal(size=(N * RECORDS, D)), rng.normal(size=(60_000, D))
        y, truth = (2 * rows @ AIM + rng.logistic(size=len(rows)) for rows in (X, far))
        given = {"delta": 1e-6, "bounds": BOUND}
        if name == "svc":
            y, truth = (y > 0).astype(int), truth > 0
        else:
            # Lengths of coefficients are one in the formula, and so are residuals.
            y, truth = (X @ AIM + rng.normal(size=len(X)), far @ AIM + rng.normal(size=len(far)))
            given["target_bounds"] = BOUND
        with use_noise(SeededNoise(seed)):
            model = kind(1.0, **given).fit(X, y, users=np.repeat(np.arange(N), RECORDS))
        rows = np.column_stack([far, np.ones(len(far))])

        def risk(weights, rows=rows, truth=truth):
            found = rows @ weights
            away, margin = truth - found, (2.0 * truth - 1.0) * found
            return loss(away, margin).mean() + penalty / 2 * (weights[:-1] ** 2).sum()

        released = np.append(model.coef_, model.intercept_)
        kept.append(risk(released) - minimize(risk, np.zeros(D + 1)).fun <= planned)
    assert np.mean(kept) >= 0.85
