"""The last number of a classifier: what its predictions miss on average."""

from unittest import mock

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.auditing import replay
from quorate.guarantees import Relation
from quorate.models import LinearSVC, LogisticRegression, calibration
from quorate.models.calibration import Calibration, calibration_share, moved_intercept
from quorate.models.coordinates.geometry import Geometry
from quorate.models.coordinates.preconditioned import PreconditionedLoss
from quorate.models.losses import LogisticLoss, sigmoid
from quorate.noise import SeededNoise, use_noise
from quorate.releases.user_releases import ReleasedMean, UserReleases
from quorate.users import UserData
from sealing import start_run

AS_THEY_ARE = Geometry(np.zeros(5), np.ones(()))
RARE, COMMON = np.array([0.9, 0.1]), np.array([0.1, 0.9])


def people(share=0.1, n=2000, m=8, seed=0):
    """Return people who hold the second label in most of their records, or hardly ever."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n * m, 5))
    own = 4.0 * np.repeat(rng.normal(size=n), m)
    scores = X[:, 0] - 0.5 * X[:, 1] + own + rng.logistic(size=n * m)
    labels = (scores > np.quantile(scores, 1.0 - share)).astype(float)
    return UserData(X, labels, offsets=np.arange(n + 1) * m)


def predicted(data, seed, model=None, **told):
    with use_noise(SeededNoise(seed)):
        fitted = (model or LogisticRegression)(**told).fit(data)
    return fitted


def rates(data, seeds=range(4)):
    found = [predicted(data, seed).predict_proba(data.X)[:, 1].mean() for seed in seeds]
    return float(np.mean(found)) / float(data.y.mean())


class TestRareLabelsThatStay:
    data = people()

    def test_they_are_predicted_as_often_as_they_are_held(self):
        assert 0.85 < rates(self.data) < 1.15

    def test_without_the_last_number_they_were_not(self):
        with mock.patch.object(Calibration, "planned", return_value=None):
            assert rates(self.data) < 0.7

    def test_the_other_label_may_be_the_rare_one(self):
        turned = UserData(self.data.X, 1.0 - self.data.y, offsets=self.data.offsets)
        missed = [predicted(turned, seed).predict_proba(turned.X)[:, 0].mean() for seed in range(4)]
        assert 0.085 < np.mean(missed) < 0.115


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(
    ("model", "told"),
    [
        (LinearSVC, {}),
        (LogisticRegression, {}),
        (LogisticRegression, {"class_weight": {0: 1, 1: 4}}),
    ],
)
def test_every_classifier_ends_within_its_budget(model, told, relation):
    """A look that spent what is kept would leave nothing to ask with, and raise."""
    asked = []
    ask = Calibration.misses

    def watched(self, *args):
        asked.append(float(self.run.account.square_left) / float(self.run.account.square))
        found = ask(self, *args)
        asked.append(float(self.run.account.square_left))
        return found

    with mock.patch.object(Calibration, "misses", watched):
        fitted = predicted(people(0.2, n=1200), 1, model, relation=relation, **told)
    before, after = asked
    assert 4e-4 < before <= 0.081
    assert after < 1e-9
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(fitted.intercept_).all()


class TestAccount:
    """Others leave what it costs, and it takes all of it."""

    def test_nothing_is_kept_where_classes_are_not_shown_to_be_uneven(self):
        run = start_run(people(n=100), gaussian_account(0.2))
        assert Calibration.planned(run, np.array([0.4, 0.6]), noise=0.06) is None
        assert Calibration.planned(run, np.array([0.2, 0.8]), noise=0.06) is not None

    def test_many_users_pay_less(self):
        shares = [
            calibration_share(signal=signal, shares=RARE, noise=0.01)
            for signal in (1.0, 1e3, 1e4, 1e6)
        ]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] == 0.08

    @pytest.mark.parametrize("broken", [False, True])
    def test_it_is_paid_from_what_was_kept(self, broken):
        """A twin that leaves half of it is caught."""
        run = start_run(people(n=100), gaussian_account(0.2))
        kept = Calibration(run, RARE, 0.08)
        others = (Calibration(run, RARE, 0.04) if broken else kept).before(run)
        others.mean(UserData.user_means, dimension=5, radius=1.0, square=others.account.square_left)
        left = float(run.account.square_left / run.account.square)
        assert (left == pytest.approx(kept.share, rel=1e-6)) is not broken


def centred(self, users):
    """Twin: what one user gives depends on who else is there."""
    found = self.loss.user_gradients(users, self.theta)[:, -1:]
    return found - found.mean(axis=0)


@pytest.mark.parametrize("broken", [False, True])
def test_what_a_user_gives_follows_from_own_records_to_the_last_bit(broken):
    data = people(n=61, m=3)
    turned = PreconditionedLoss(LogisticLoss(), AS_THEY_ARE)
    slopes = calibration._Misses(turned, np.random.default_rng(1).normal(size=6))
    give = centred if broken else calibration._Misses.__call__
    together = give(slopes, data)
    alone = np.concatenate([give(slopes, user) for user in data.batches(users=1)])
    assert np.array_equal(together, alone) is not broken


def roomy(shares):
    """Twin: limits that do not bind; noise of the narrow ones would not hide a user."""
    return calibration.Interval(-9.0, 9.0, centre=0.0)


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("shares", [RARE, COMMON])
def test_nobody_gives_more_than_public_limits(shares, broken):
    narrow = calibration._limits(shares)
    limits = roomy(shares) if broken else narrow
    given = limits.clip([[-5.0], [5.0], [0.3], [np.nan]])
    assert (np.ptp(given) <= narrow.l2_diameter * (1.0 + 1e-12)) is not broken


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e308])
def test_no_value_is_told_of(bad):
    data = people(n=200)
    X = data.X.copy()
    X[::7] = bad
    run = start_run(UserData(X, data.y, offsets=data.offsets), gaussian_account(1.0))
    loss = PreconditionedLoss(LogisticLoss(), AS_THEY_ARE)
    with use_noise(SeededNoise(2)):
        found = Calibration(run, RARE, 0.05).misses(loss, run.data, np.full(6, 0.5))
    assert np.isfinite(found.value).all()


class TestMovedIntercept:
    def test_predictions_hit_the_share(self):
        weights, normal = np.array([1.0, 2.0]), np.random.default_rng(0).normal(size=(100_000, 2))
        before = sigmoid(normal @ weights - 4.0).mean()
        missed = ReleasedMean(np.array([before - 0.2]), noise=1e-9)
        intercept, _ = moved_intercept(LogisticLoss(), np.append(weights, -4.0), missed)
        assert sigmoid(normal @ weights + intercept).mean() == pytest.approx(0.2, abs=0.015)

    @pytest.mark.parametrize("value", [0.0, 0.1, -0.1])
    def test_noise_moves_nothing(self, value):
        missed = ReleasedMean(np.array([value]), noise=0.1)
        assert moved_intercept(LogisticLoss(), np.zeros(3), missed) == (0.0, 0.0)

    def test_what_noise_does_to_it_is_stated(self):
        """Of 200 draws; a half or the double would be seen."""
        rng, found, stated = np.random.default_rng(0), [], []
        for value in rng.normal(0.2, 0.01, 200):
            missed = ReleasedMean(np.array([value]), noise=0.01)
            intercept, error = moved_intercept(LogisticLoss(), np.zeros(3), missed)
            found.append(intercept)
            stated.append(error)
        assert 0.6 < np.std(found) / np.mean(stated) < 1.4

    def test_no_pace_is_longer_than_the_longest(self):
        missed = ReleasedMean(np.array([0.9]), noise=1e-3)
        intercept, _ = moved_intercept(LogisticLoss(), np.zeros(3), missed)
        assert -4.0 <= intercept < -2.0


def test_of_several_classes_nobody_asks():
    run = start_run(people(n=100), gaussian_account(0.2))
    assert Calibration.planned(run, np.array([0.8, 0.1, 0.1]), noise=0.01) is None


def test_what_is_missed_is_divided_by_the_number_that_was_bought():
    """Under addition and removal one more user is seen by the noisy sum alone."""
    loss = PreconditionedLoss(LogisticLoss(), AS_THEY_ARE)
    everybody = people(n=301)

    def run(data):
        account = gaussian_account(1.0, Relation.ADD_REMOVE)
        bought = UserReleases(data=data, account=account, n_users=280.0)
        return Calibration(bought, RARE, 0.05).misses(loss, data, np.full(6, 0.1))

    report = replay(run, everybody, everybody.take(range(300)))
    assert report.same, str(report)
