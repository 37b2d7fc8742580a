"""The mean target that a regression begins at."""

from unittest import mock

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.guarantees import Relation
from quorate.models import LinearRegression, LogisticRegression, base
from quorate.models.first_constant import (
    FirstConstant,
    as_far_as_shown,
    mean_of_both,
    release_first_constant,
)
from quorate.models.optimization import descent_noise, gradients
from quorate.noise import SeededNoise, use_noise
from quorate.releases.user_releases import ReleasedMean
from quorate.users import UserData
from sealing import start_run

RNG = np.random.default_rng(0)


def people(middle, spread, n=2000, m=3):
    own = RNG.normal(middle, spread, n)
    targets = np.repeat(own, m) + RNG.normal(0.0, spread, n * m)
    return UserData(np.zeros((n * m, 1)), targets, offsets=np.arange(0, n * m + 1, m))


def found(data, reach, relation=Relation.REPLACE, mu=0.25, few=False):
    with use_noise(SeededNoise(3)):
        run = start_run(data, gaussian_account(mu, relation=relation))
        before = run.account.square_left
        constant = release_first_constant(run, reach=reach, few=few)
    return constant.value, float((before - run.account.square_left) / run.account.square)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("middle", [-0.95, 0.0, 0.3])
def test_people_are_found_wherever_they_are_in_the_range(middle, relation):
    constant, _ = found(people(middle, 0.02), 1.0, relation)
    assert abs(constant - middle) < 0.05


@pytest.mark.parametrize("middle", [3e-4, -5.0, 7e5])
def test_without_a_range_they_are_looked_for(middle):
    constant, _ = found(people(middle, abs(middle) / 10.0), None)
    assert constant == pytest.approx(middle, rel=0.3)


def test_its_noise_is_that_of_the_last_round():
    """Of 40 draws, errors in units of the stated noise; a tenth of it would be seen at once."""
    data = people(0.2, 0.05, n=400)
    truth = float(np.mean([np.mean(own) for own in np.split(data.y, data.n_users)]))
    errors = []
    for seed in range(40):
        with use_noise(SeededNoise(seed)):
            constant = release_first_constant(start_run(data, gaussian_account(0.25)), reach=1.0)
        errors.append((constant.value - truth) / constant.error)
    assert 0.4 < np.sqrt(np.mean(np.square(errors))) < 2.0


class TestLaterConstants:
    first = FirstConstant(1.0, 0.1)

    def test_the_surer_one_is_kept(self):
        assert self.first.or_later(1.2, error=0.05) == 1.2
        assert self.first.or_later(1.2, error=0.1) == 1.0
        assert self.first.or_later(1.2, error=np.inf) == 1.0

    @pytest.mark.parametrize("later", [50.0, -50.0])
    def test_one_that_noise_carried_away_is_not_believed(self, later):
        kept = self.first.or_later(later, error=0.01)
        assert abs(kept - 1.0) == pytest.approx(0.35)
        assert (kept > 1.0) == (later > 1.0)


def _at_the_end(*_, halfway=False, **__):
    return not halfway


def test_a_regression_that_ends_as_a_constant_asks_which_one_is_surer():
    data = people(0.4, 0.1, n=400)
    first = FirstConstant(0.3, 0.01)
    with (
        use_noise(SeededNoise(6)),
        mock.patch.object(base, "release_first_constant", return_value=first),
        mock.patch.object(base, "are_only_noise", side_effect=_at_the_end),
        mock.patch.object(base, "parameter_noise", return_value="Nobody can tell."),
    ):
        model = LinearRegression(target_bounds=(-1.0, 1.0)).fit(data)
    assert (model.algorithm_.name, model.intercept_) == ("constant", 0.3)


@pytest.mark.parametrize("told", [{}, {"target_bounds": (-40.0, 40.0)}])
def test_half_of_the_budget_buys_a_better_constant_than_the_first(told):
    data = people(7.0, 0.5, n=400)
    truth = float(np.mean([np.mean(own) for own in np.split(data.y, data.n_users)]))
    first, last = [], []
    for seed in range(12):
        account = gaussian_account(0.25)
        with use_noise(SeededNoise(seed)):
            run = start_run(data, account)
            found = release_first_constant(run, reach=40.0 if told else None)
            first.append(found.value - truth)
            last.append(found.last(run) - truth)
        assert account.square_left < 1e-9 * float(account.square)
    assert np.std(last) < 0.5 * np.std(first)
    noise = mock.patch.object(descent_noise, "are_only_noise", return_value=True)
    with use_noise(SeededNoise(2)), noise:
        model = LinearRegression(**told).fit(data)
    assert model.algorithm_.name == "constant"
    assert "by released numbers" in model.algorithm_.reason
    assert abs(model.intercept_ - truth) < 0.3


@pytest.mark.parametrize("batch_rate", [None, 0.5])
def test_a_clip_that_went_wrong_is_seen_at_the_first_step(batch_rate):
    """Nine in ten labels are 1; with a radius of 40,000 their intercept was off by thousands."""
    n, m = 2000, 2
    labels = (np.arange(n * m) % 10 > 0).astype(float)
    data = UserData(RNG.normal(size=(n * m, 3)), labels, offsets=np.arange(0, n * m + 1, m))
    with use_noise(SeededNoise(3)), mock.patch.object(gradients, "_TIGHTER", 1e5):
        model = LogisticRegression(batch_rate=batch_rate, records=m).fit(data)
    assert model.algorithm_.name == "constant"
    assert not model.coef_.any()
    # The rest of the budget buys the constant; samples of users are not asked for one.
    wanted = 0.0 if batch_rate else np.log(9.0)
    assert abs(model.intercept_[0] - wanted) < 0.2


def test_it_costs_a_few_percent_at_most_or_a_fifth_where_no_clips_are_searched_for():
    """With four rounds of 1.5 % the intervals of 150 users never shrank."""
    assert found(people(0.2, 0.1, n=100), 1.0)[1] == pytest.approx(0.06)
    assert found(people(0.2, 0.1, n=100), 1.0, few=True)[1] == pytest.approx(0.2)
    assert found(people(0.2, 0.1, n=400), 1.0, few=True)[1] < 0.08
    assert found(people(0.2, 0.1, n=20_000), 1.0)[1] < 0.003


@pytest.mark.parametrize("scale", [1e-9, 1e3, 1e9])
@pytest.mark.parametrize(("n", "m"), [(150, 1), (290, 2), (310, 2), (330, 8)])
def test_few_users_always_have_enough_left_for_their_descent(n, m, scale):
    """However far a target is from what is guessed first."""
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n * m, 2)) + 5.0
    target = scale * (rows[:, 0] + rng.normal(size=n * m) + 30.0)
    data = UserData(rows, target, offsets=np.arange(0, n * m + 1, m))
    for seed in range(4):
        with use_noise(SeededNoise(seed)):
            assert LinearRegression().fit(data).guarantee_.epsilon <= 1.0


def test_values_that_are_no_numbers_move_nobody_else():
    data = people(0.3, 0.02)
    targets = data.y.copy()
    targets[:3], targets[3:6], targets[6:9] = np.nan, np.inf, 1e308
    constant, _ = found(UserData(data.X, targets, offsets=data.offsets), 1.0)
    assert abs(constant - 0.3) < 0.05


def test_a_narrow_target_in_a_wide_range_is_fitted():
    """The noise of first gradients that all point to the mean would drown this."""
    n, m = 400, 8
    rows = RNG.normal(size=(n * m, 10)) * np.repeat([1.0, 0.15], 5)
    targets = 0.9 + 0.015 * rows[:, 0] + 0.012 * RNG.normal(size=n * m)
    people = UserData(rows, targets, offsets=np.arange(0, n * m + 1, m))
    with use_noise(SeededNoise(2)):
        model = LinearRegression(1.0, delta=1e-6, target_bounds=(-1.0, 1.0)).fit(people)
    assert model.algorithm_.name == "few"
    assert np.mean((model.predict(rows) - targets) ** 2) < 0.5 * np.var(targets)


@pytest.mark.parametrize("model", [LinearRegression, LogisticRegression])
@pytest.mark.parametrize("relation", list(Relation))
def test_a_constant_is_that_of_those_who_are_there(model, relation):
    """Half of 600 people have no record; taken for the middle they would halve the answer."""
    counts = np.tile([2, 0], 300)
    data = UserData(np.zeros((600, 600)), np.ones(600), offsets=np.r_[0, np.cumsum(counts)])
    told = {"target_bounds": (-2.0, 2.0)} if model is LinearRegression else {}
    with use_noise(SeededNoise(0)):
        fitted = model(hopeless="constant", records=2, relation=relation, **told).fit(data)
    assert fitted.algorithm_.name == "constant"
    if model is LinearRegression:
        assert abs(fitted.intercept_ - 1.0) < 0.2
    else:
        assert fitted.predict_proba(np.zeros((1, 600)))[0, 1] > 0.9


def constant_of(share, seed, classes=(0, 1), n=130):
    """Return the shares that a constant model gives to classes; too few users for anything else."""
    labels = (np.arange(n) < share * n).astype(float)
    data = UserData(np.zeros((n, 2)), labels, offsets=np.arange(n + 1))
    with use_noise(SeededNoise(seed)):
        model = LogisticRegression(hopeless="constant", classes=classes).fit(data)
    assert model.algorithm_.name == "constant"
    return model.predict_proba(np.zeros((1, 2)))[0]


class TestEvenClasses:
    """Noise of a share is a fortieth or so of 130 users; so much is not shown."""

    def test_classes_that_are_not_shown_to_be_uneven_are_even(self):
        """Two thirds of the draws of noise are shorter than its standard deviation."""
        assert sum(constant_of(0.5, seed)[1] == 0.5 for seed in range(20)) >= 10

    @pytest.mark.parametrize("share", [0.1, 0.8])
    def test_what_is_shown_is_kept(self, share):
        found = [constant_of(share, seed)[1] for seed in range(20)]
        assert abs(np.mean(found) - share) < 0.03

    def test_of_three_classes_too(self):
        even = UserData(np.zeros((300, 2)), np.arange(300) % 3, offsets=np.arange(301))
        found = []
        for seed in range(10):
            with use_noise(SeededNoise(seed)):
                model = LogisticRegression(0.3, hopeless="constant", classes=(0, 1, 2)).fit(even)
            found.append(model.predict_proba(np.zeros((1, 2))))
        assert sum(np.allclose(each, 1.0 / 3.0, rtol=1e-12) for each in found) >= 4

    def test_the_difference_grows_evenly_with_what_is_seen(self):
        seen = np.linspace(0.0, 10.0, 101)
        kept = [
            float(as_far_as_shown(ReleasedMean(np.array([value]), noise=1.0), usual=0.0)[0])
            for value in seen
        ]
        assert kept == sorted(kept)
        assert kept[9] == 0.0
        assert np.array_equal(kept[30:], seen[30:])

    @pytest.mark.parametrize("dimension", [1, 2, 9])
    def test_nothing_is_moved_by_more_than_noise_moves_it(self, dimension):
        rng = np.random.default_rng(dimension)
        for away in rng.normal(size=(50, dimension)) * rng.uniform(0.0, 5.0, size=(50, 1)):
            kept = as_far_as_shown(ReleasedMean(away, noise=1.0), usual=0.0)
            assert np.linalg.norm(kept - away) <= dimension**0.5 * (1.0 + 1e-12)

    def test_two_releases_are_better_than_one(self):
        both = mean_of_both(
            ReleasedMean(np.zeros(1), noise=1.0), ReleasedMean(np.ones(1), noise=1.0)
        )
        assert (both.value[0], both.noise) == (pytest.approx(0.5), pytest.approx(0.5**0.5))


def test_few_users_who_go_a_part_of_the_way_take_that_part_of_their_intercept():
    """It is as noisy as any coefficient, and the constant that they leave is an even one."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(600, 20))
    data = UserData(rows, rng.integers(2, size=600), offsets=np.arange(0, 601, 3))
    part = mock.patch.object(base.LastLook, "reach", return_value=base.Reach(0.5, 0.1))
    whole = mock.patch.object(base.LastLook, "reach", return_value=base.Reach(1.0, 0.0))
    found = []
    for reach in (part, whole):
        with reach, use_noise(SeededNoise(1)):
            found.append(LogisticRegression().fit(data))
    assert found[0].algorithm_.name == "few"
    assert found[0].intercept_[0] == pytest.approx(0.5 * found[1].intercept_[0])
