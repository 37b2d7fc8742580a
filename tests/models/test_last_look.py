"""The last question after a descent: how far to go from a constant to the model."""

from unittest import mock

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.guarantees import Relation
from quorate.models import LinearRegression, LogisticRegression, base, last_look
from quorate.models.class_losses import SoftmaxLoss
from quorate.models.coordinates.geometry import Geometry
from quorate.models.coordinates.preconditioned import PreconditionedLoss
from quorate.models.last_look import LastLook, Reach, look_share, reach_of, shortened_noise
from quorate.models.losses import LogisticLoss
from quorate.models.optimization.descent import descend
from quorate.models.optimization.gradients import is_worth_measuring
from quorate.models.regression_losses import SquaredLoss
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData
from sealing import start_run

FEATURES = 4
AS_THEY_ARE = Geometry(centre=np.zeros(FEATURES), whitening=np.ones(()))
MODEL = np.array([0.5, -0.5, 0.5, 0.5, 0.0])


def crowd(slope, n=600, m=5, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n * m, FEATURES))
    y = slope * (X @ MODEL[:-1]) + noise * rng.normal(size=n * m)
    return UserData(X, y, offsets=np.arange(n + 1) * m)


def asked(data, relation=Relation.REPLACE, shown=1.0, seed=1):
    with use_noise(SeededNoise(seed)):
        run = start_run(data, gaussian_account(1.0, relation=relation))
        return LastLook(run).reach(
            PreconditionedLoss(SquaredLoss(), AS_THEY_ARE),
            run.data,
            constant=np.zeros(FEATURES + 1),
            model=MODEL,
            radius=1.0,
            steepest=None,
            shown=shown,
        )


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("slope", [1.0, 0.5, 0.3])
def test_the_way_ends_where_the_loss_is_least(slope, relation):
    assert asked(crowd(slope), relation).part == pytest.approx(slope, abs=0.15)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("slope", [0.0, -1.0])
def test_a_model_of_noise_stays_at_the_constant(slope, relation):
    assert asked(crowd(slope), relation) == Reach(0.0, 0.0)


def test_nobody_goes_beyond_the_model():
    assert asked(crowd(3.0)).part == 1.0


def test_people_without_records_change_nothing():
    data = crowd(0.5)
    half = UserData(data.X, data.y, offsets=np.repeat(data.offsets, 2)[1:])
    assert asked(half).part == pytest.approx(asked(data).part, abs=0.1)


KNOWN = {"top": 2.0, "clipped": False}


class TestDecision:
    """What a slope and a rise say, and what was known before."""

    def test_noise_gives_way_to_what_is_known(self):
        sure = [reach_of(0.5, 0.5, noise=0.01, shown=s, **KNOWN).part for s in (0.5, 50.0)]
        blind = [reach_of(0.5, 0.5, noise=9.0, shown=s, **KNOWN).part for s in (0.5, 50.0)]
        assert abs(sure[0] - sure[1]) < 0.1
        assert blind[0] == 0.0
        assert blind[1] > 0.9

    def test_it_falls_with_the_slope_at_the_end(self):
        parts = [
            reach_of(end, 0.4, noise=0.05, shown=1.0, **KNOWN).part
            for end in (-0.5, 0.0, 0.2, 0.4, 0.55, 0.71)
        ]
        assert parts == sorted(parts, reverse=True)
        assert parts[0] == 1.0
        assert parts[-1] == 0.0

    def test_it_is_never_beyond_what_anything_released_allows(self):
        rng = np.random.default_rng(0)
        for end, risen, noise, shown in rng.lognormal(0.0, 4.0, size=(300, 4)):
            reach = reach_of(end - 1.0, risen - 1.0, noise=noise, shown=shown, **KNOWN)
            assert 0.0 <= reach.part <= 1.0
            assert np.isfinite(reach.error)

    def test_extremes_are_answers_too(self):
        for shown in (0.0, 1e300, np.inf):
            assert 0.0 <= reach_of(0.0, 0.0, noise=0.1, shown=shown, **KNOWN).part <= 1.0


class TestAccount:
    """The descent leaves what the look costs, and the look takes all of it."""

    def test_few_users_keep_more_than_many(self):
        shares = [look_share(signal=signal) for signal in (10.0, 100.0, 300.0, 1e5)]
        assert shares == sorted(shares, reverse=True)

    def test_very_many_are_not_asked(self):
        known = {"n_users": 600, "mu": 1.0, "relation": Relation.REPLACE}
        assert is_worth_measuring(dimension=21, **known)
        assert not is_worth_measuring(dimension=5, **known)
        # Under add/remove half of the noise is needed.
        assert not is_worth_measuring(dimension=11, **known | {"relation": Relation.ADD_REMOVE})

    def test_where_it_is_not_wanted_the_descent_has_all_and_goes_the_whole_way(self):
        seen = []

        def watched(run, loss, **known):
            seen.append(run.account)
            return descend(run, loss, **known)

        never = mock.patch.object(base, "LastLook", side_effect=AssertionError)
        watching = mock.patch.object(base, "descend", watched)
        with never, watching, use_noise(SeededNoise(0)):
            model = LinearRegression(8.0, delta=1e-6).fit(crowd(1.0, n=2000))
        assert model.algorithm_.name == "descent"
        assert "of the way" not in model.algorithm_.reason
        assert 0 <= seen[0].square_left < 1e-6 * float(seen[0].square)

    def test_it_is_paid_from_what_was_kept(self):
        run = start_run(crowd(0.5), gaussian_account(0.2))
        look = LastLook(run)
        descent = look.descent()
        kept = run.account.square - descent.account.square
        assert float(kept / run.account.square) == pytest.approx(look.share, rel=1e-6)
        descent.mean(UserData.user_means, dimension=FEATURES, radius=1.0, square=kept)
        assert float(run.account.square_left) > 0.9 * float(descent.account.square)


def by_product(self, users):
    """Turn everybody at once: a product whose bits follow from all of its rows."""
    way = self.model - self.constant
    last, first = (self.loss.user_gradients(users, at) for at in (self.model, self.constant))
    return np.column_stack([last @ way, (last - first) @ way])


@pytest.mark.parametrize("broken", [False, True])
def test_what_a_user_gives_follows_from_own_records_to_the_last_bit(broken):
    """A product over everybody's rows, which rounds by the place of a row, would be seen."""
    rng = np.random.default_rng(0)
    rows, n = rng.normal(size=(2, 40)), 61
    X, y = rng.normal(size=(n * 3, 39)), rng.normal(size=n * 3)
    people = UserData(X, y, offsets=np.arange(n + 1) * 3)
    loss = PreconditionedLoss(SquaredLoss(), Geometry(np.zeros(39), np.ones(())))
    slopes = last_look._SlopesAlong(loss, *rows, cut=1.0, top=1.0)
    give = by_product if broken else last_look._SlopesAlong.__call__
    together = give(slopes, people)
    alone = np.concatenate([give(slopes, user) for user in people.batches(users=1)])
    assert np.array_equal(together, alone) is not broken


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e308])
@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss(), SoftmaxLoss(classes=3)])
def test_no_value_is_told_of(loss, bad):
    data = crowd(0.5)
    X, y = data.X.copy(), (np.abs(data.y) % 3).round()
    X[::7] = bad
    size = loss.dimension(FEATURES)
    people = UserData(X, y, offsets=data.offsets)
    with use_noise(SeededNoise(2)):
        run = start_run(people, gaussian_account(1.0))
        reach = LastLook(run).reach(
            PreconditionedLoss(loss, AS_THEY_ARE),
            run.data,
            constant=np.zeros(size),
            model=np.linspace(-1.0, 1.0, size),
            radius=1.0,
            steepest=0.5,
            shown=1.0,
        )
    assert 0.0 <= reach.part <= 1.0


def test_noise_shrinks_with_the_way_and_that_of_the_look_is_added():
    noise, way = np.diag([1.0, 4.0]), np.array([2.0, 0.0])
    assert np.array_equal(shortened_noise(noise, way, Reach(1.0, 0.0)), noise)
    shorter = shortened_noise(noise, way, Reach(0.5, 0.1))
    assert np.allclose(shorter, np.diag([0.29, 1.0]), rtol=1e-12)
    assert shortened_noise("Nobody knows.", way, Reach(0.5, 0.1)) == "Nobody knows."


def lengths(kind, look, seeds=range(8)):
    """Return how long coefficients are that should be none, and whether a look was taken."""
    taken = []
    whole = mock.patch.object(base, "is_worth_measuring", return_value=False)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(600, 12))
        y = rng.normal(size=600) if kind is LinearRegression else rng.integers(0, 2, 600)
        people = UserData(X, y.astype(float), offsets=np.arange(601))
        with use_noise(SeededNoise(seed)):
            if look:
                model = kind(1.0, delta=1e-6).fit(people)
            else:
                with whole:
                    model = kind(1.0, delta=1e-6).fit(people)
        taken.append(float(np.sum(model.coef_**2)))
    return np.mean(taken)


@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
def test_labels_that_nothing_explains_leave_little_of_the_way(kind):
    assert lengths(kind, look=True) < 0.5 * lengths(kind, look=False)


@pytest.mark.parametrize("kind", [LinearRegression, LogisticRegression])
def test_what_features_explain_is_not_shrunk_away(kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 5))
    y = 2.0 * X[:, 0] + rng.normal(size=4000)
    people = UserData(
        X, y if kind is LinearRegression else (y > 0) * 1.0, offsets=np.arange(0, 4001, 8)
    )
    with use_noise(SeededNoise(0)):
        model = kind(1.0, delta=1e-6).fit(people)
    assert model.algorithm_.name != "constant"
    assert np.ravel(model.coef_)[0] > 1.0


def test_a_loss_of_the_caller_sees_one_user_at_a_time():
    seen = []

    class Mine(SquaredLoss):
        def user_gradients(self, batch, theta):
            seen.append(batch.n_users)
            return super().user_gradients(batch, theta)

    seen_by = PreconditionedLoss(Mine(), AS_THEY_ARE)
    slopes = last_look._SlopesAlong(seen_by, np.zeros(5), MODEL, cut=1.0, top=1.0)
    assert slopes(crowd(1.0, n=3)).shape == (3, 2)
    assert seen == [1] * 6
