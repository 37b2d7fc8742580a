"""What sampling does to coefficients: near the truth, paid for, and about nobody's record."""

import math
import warnings

import numpy as np
import pytest

from quorate import Ledger, LinearRegression, LogisticRegression, Relation, Ridge, sampling_error
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.exceptions import BudgetExceededError, ParameterError
from quorate.models.sampling_error import _Curvatures, _Scores, _Told

N, RECORDS, D = 2500, 5, 2


def world(seed, *, label):
    """Return people whose records have something in common that no feature tells."""
    rng = np.random.default_rng(seed)
    rows = 0.7 * rng.normal(size=(N, 1, D)) + 0.7 * rng.normal(size=(N, RECORDS, D))
    X, people = rows.reshape(-1, D), np.repeat(np.arange(N), RECORDS)
    z = X @ np.full(D, 1 / math.sqrt(D)) + 0.6 * rng.normal(size=N)[people]
    if label:
        return X, (z + rng.logistic(size=len(z)) > 0).astype(int), people
    return X, z + rng.normal(size=len(z)), people


def model(*, label):
    if label:
        return LogisticRegression(2.0, delta=1e-6, bounds=8.0)
    return LinearRegression(2.0, delta=1e-6, bounds=8.0, target_bounds=8.0)


def exact(X, y, *, label):
    """Return coefficients without privacy; Newton's steps for labels."""
    rows = np.column_stack([X, np.ones(len(X))])
    if not label:
        return np.linalg.lstsq(rows, y, rcond=None)[0]
    found = np.zeros(D + 1)
    for _ in range(8):
        shares = 1 / (1 + np.exp(-rows @ found))
        steep = rows.T @ (rows * (shares * (1 - shares))[:, None])
        found -= np.linalg.solve(steep, rows.T @ (shares - y))
    return found


@pytest.mark.parametrize("label", [False, True])
def test_standard_errors_are_those_over_many_crowds(label):
    crowds = [exact(*world(9000 + seed, label=label)[:2], label=label) for seed in range(50)]
    true = np.std(crowds, axis=0, ddof=1)
    for seed in range(2):
        X, y, people = world(seed, label=label)
        with use_noise(SeededNoise(seed)):
            fitted = model(label=label).fit(X, y, users=people)
            found = sampling_error(fitted, X, y, users=people, epsilon=2.0)
        assert np.all(np.abs(np.log(found.standard_errors / true)) < math.log(1.5))
        noise = fitted.coefficients_.errors[:, 0]
        both = found.coefficients.errors[:, 0]
        assert both == pytest.approx(np.hypot(noise, found.standard_errors))
        assert found.of_rows(np.zeros((1, D))) == pytest.approx(found.standard_errors[-1:])
        # Records that were taken for independent people would be stated too precisely.
        assert found.standard_errors[-1] > 1.2 * true[-1] / math.sqrt(RECORDS)


def test_it_is_charged_before_records_are_read(tmp_path):
    X, y, people = world(0, label=False)
    with use_noise(SeededNoise(0)):
        fitted = model(label=False).fit(X, y, users=people)
    ledger = Ledger(tmp_path / "book.db")
    ledger.set_budget("visits", epsilon=1.0, delta=1e-5)
    given = {"users": people, "ledger": ledger, "data_name": "visits"}
    found = sampling_error(fitted, X, y, epsilon=0.8, **given)
    assert found.guarantee.epsilon == 0.8
    assert found.guarantee.relation is Relation.REPLACE
    assert ledger.spent("visits").epsilon == 0.8
    with pytest.raises(BudgetExceededError):
        sampling_error(fitted, X, y, epsilon=0.8, **given)


def test_mistakes_cost_nothing(tmp_path):
    X, y, people = world(0, label=False)
    ledger = Ledger(tmp_path / "book.db")
    ledger.set_budget("visits", epsilon=1.0, delta=1e-5)
    given = {"users": people, "ledger": ledger, "data_name": "visits", "epsilon": 0.5}
    with use_noise(SeededNoise(0)):
        fitted = model(label=False).fit(X, y, users=people)
        ridge = Ridge(2.0, bounds=8.0, target_bounds=8.0).fit(X, y, users=people)
    for wrong in (ridge, LinearRegression(), "a model"):
        with pytest.raises(ParameterError):
            sampling_error(wrong, X, y, **given)
    for change in ({"epsilon": -1.0}, {"delta": 0.0}, {"delta": 2.0}):
        with pytest.raises(ParameterError):
            sampling_error(fitted, X, y, **given | change)
    assert ledger.spent("visits").epsilon == 0.0


@pytest.mark.parametrize("vectors", [_Curvatures, _Scores])
@pytest.mark.parametrize("label", [False, True])
def test_a_user_depends_on_their_own_records_and_stays_within_the_bound(vectors, label):
    rng = np.random.default_rng(0)
    told = _Told(
        weights=np.array([1.0, -2.0, 0.5]),
        offset=0.3,
        turn=np.linalg.cholesky(np.diag([1.0, 4.0, 0.2, 1.0])),
        unit=2.0,
        is_label=label,
    )
    X = rng.normal(size=(60, 3)) * 10.0 ** rng.integers(-3, 300, size=(60, 1)).clip(-3, 12)
    y = rng.integers(0, 2, 60).astype(float)
    users = np.repeat(np.arange(12), 5)
    asked = vectors(told)
    longest = 16.0 * 4 * (1.0 if label else 4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = asked(UserData.from_arrays(X, y, users=users))
        for user in range(12):
            mine = users == user
            alone = asked(UserData.from_arrays(X[mine], y[mine], users=users[mine]))
            assert alone[0].tobytes() == whole[user].tobytes()
        assert np.linalg.norm(whole, axis=1).max() <= longest * (1 + 1e-9)
        X[0] = 1e300
        asked(UserData.from_arrays(X, y, users=users))
