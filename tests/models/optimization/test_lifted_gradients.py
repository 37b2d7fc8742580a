"""Clips that follow from free lifts, and steps of one's own."""

import numpy as np
import pytest

from drawing import gaussian_account
from quorate.core.people import People
from quorate.exceptions import ParameterError
from quorate.guarantees import Relation
from quorate.models.class_losses import SoftmaxLoss
from quorate.models.coordinates.geometry import Geometry
from quorate.models.coordinates.preconditioned import PreconditionedLoss
from quorate.models.losses import LogisticLoss
from quorate.models.optimization import lifted_gradients as module
from quorate.models.optimization.lifted_gradients import LiftedGradients, LocalSteps
from quorate.models.regression_losses import SquaredLoss
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData
from quorate.users.store import row_lengths
from sealing import start_run

RNG = np.random.default_rng(0)
PLAIN = Geometry(np.zeros(2), np.asarray(1.0))


def people(n=500, m=4):
    rows = RNG.normal(size=(n * m, 2))
    return UserData(rows, (rows[:, 0] > 0) * 1.0, offsets=np.arange(0, n * m + 1, m))


def radii(first, relation=Relation.REPLACE, steps=12):
    with use_noise(SeededNoise(1)):
        run = start_run(people(), gaussian_account(1.0, relation=relation))
        gradients = LiftedGradients(radius=first).start(run, LogisticLoss(), steps=steps)
        found = [gradients.release(np.zeros(3), step).radius for step in range(steps)]
    return run, found


class TestClips:
    @pytest.mark.parametrize("relation", list(Relation))
    @pytest.mark.parametrize("first", [0.05, 20.0])
    def test_they_find_the_size_of_gradients_from_either_side(self, first, relation):
        """Norms of these users' gradients are about .6."""
        _, found = radii(first, relation)
        assert 0.2 < found[-1] < 1.0

    def test_they_leave_room_for_rare_labels(self):
        """A clip near the middle cuts those of the rarer label most."""

        def last(intercept):
            loss = LocalSteps(LogisticLoss(), PLAIN)
            with use_noise(SeededNoise(1)):
                run = start_run(people(), gaussian_account(5.0))
                gradients = LiftedGradients(radius=0.6).start(run, loss, steps=8)
                theta = np.array([0.0, 0.0, intercept])
                clips = [gradients.release(theta, step).radius for step in range(8)]
            return clips[-1], np.median(row_lengths(loss.user_gradients(people(), theta)))

        (even, size), (uneven, longer) = last(0.0), last(-2.5)
        assert 1.3 * even / size < uneven / longer

    def test_they_are_roomier_where_noise_is_small(self):
        def last(mu):
            with use_noise(SeededNoise(1)):
                run = start_run(people(), gaussian_account(mu))
                gradients = LiftedGradients(radius=0.6).start(run, LogisticLoss(), steps=8)
                return [gradients.release(np.zeros(3), step).radius for step in range(8)][-1]

        # 500 users of three parameters: n mu / sqrt 3 = 26 at mu = .09.
        assert last(1.0) > 1.5 * last(0.08)

    def test_they_change_slowly(self):
        _, found = radii(20.0)
        ratios = np.divide(found[1:], found[:-1])
        assert np.all(ratios <= 2.0)
        assert np.all(ratios >= 0.5)

    def test_all_of_the_account_is_spent_and_no_more(self):
        run, _ = radii(1.0)
        assert float(run.account.square_left / run.account.square) == pytest.approx(0, abs=1e-6)

    def test_the_mean_is_that_of_clipped_gradients(self):
        data = people()
        with use_noise(SeededNoise(1)):
            run = start_run(data, gaussian_account(50.0))
            gradients = LiftedGradients(radius=0.3).start(run, LogisticLoss(), steps=1)
            found = gradients.release(np.zeros(3), 0)
        rows = LogisticLoss().user_gradients(data, np.zeros(3))
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        wanted = (rows * np.minimum(1.0, 0.3 / norms)).mean(axis=0)
        np.testing.assert_allclose(found.value, wanted, atol=6 * found.noise)

    def test_minibatches_are_refused(self):
        from quorate.accounting.account import Account
        from quorate.models.optimization.minibatches import open_sampled_run

        run = open_sampled_run(
            People(people(), Relation.REPLACE),
            Account.open(epsilon=1.0, delta=1e-6),
            rate=0.1,
            steps=3,
        )
        with pytest.raises(ParameterError, match="full batches"):
            LiftedGradients(radius=1.0).start(run, LogisticLoss(), steps=3)


class TestOwnSteps:
    @pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(classes=3), SquaredLoss()])
    def test_one_step_is_the_gradient(self, loss):
        data = UserData(RNG.normal(size=(9, 2)), RNG.integers(0, 2, 9) * 1.0, offsets=[0, 2, 2, 9])
        geometry = Geometry(np.array([0.3, -0.2]), np.asarray(0.7))
        theta = RNG.normal(size=loss.dimension(2))
        np.testing.assert_allclose(
            LocalSteps(loss, geometry, count=1).user_gradients(data, theta),
            PreconditionedLoss(loss, geometry).user_gradients(data, theta),
            atol=1e-12,
        )

    def test_more_steps_are_the_way_to_where_a_user_would_go(self):
        """The same as four steps of plain descent for a single user."""
        data = UserData(RNG.normal(size=(8, 2)), RNG.integers(0, 2, 8) * 1.0, offsets=[0, 8])
        theta, own = np.zeros(3), np.zeros(3)
        for _ in range(4):
            own = own - PreconditionedLoss(LogisticLoss(), PLAIN).user_gradients(data, own)[0]
        way = LocalSteps(LogisticLoss(), PLAIN).user_gradients(data, theta)[0]
        np.testing.assert_allclose(way, -own / 4.0, atol=1e-12)

    def test_nobody_moves_anybody_else(self):
        data = people(n=6, m=3)
        theta = np.array([0.5, -0.2, 0.1])
        together = LocalSteps(LogisticLoss(), PLAIN).user_gradients(data, theta)
        alone = [
            LocalSteps(LogisticLoss(), PLAIN).user_gradients(user, theta)[0]
            for user in data.batches(users=1)
        ]
        np.testing.assert_array_equal(together, alone)

    @pytest.mark.parametrize("value", [1e308, np.inf, np.nan])
    def test_extreme_records_make_no_noise(self, value):
        data = UserData(np.full((2, 2), value), np.ones(2), offsets=[0, 1, 2])
        assert LocalSteps(LogisticLoss(), PLAIN).user_gradients(data, np.ones(3)).shape == (2, 3)


def test_a_twin_whose_lift_costs_nothing_by_decree_is_caught():
    """Twice the lift moves a sum farther than the ball alone allows."""
    ball = module.LiftedBall(1.0, centre=np.zeros(1))
    high = 2.0 * np.sqrt(3.0)
    assert high**2 > ball.change(Relation.REPLACE)[1] ** 2


def test_labels_are_uneven_where_the_constant_says_so():
    loss = LocalSteps(LogisticLoss(), PLAIN)
    assert loss.unevenness(np.array([1.0, 1.0, 0.0])) == pytest.approx(0.0)
    assert loss.unevenness(np.array([1.0, 1.0, np.log(4.0)])) == pytest.approx(0.6)
    many = LocalSteps(SoftmaxLoss(classes=3), PLAIN)
    assert many.unevenness(np.zeros(9)) == pytest.approx(0.0)
    assert many.unevenness(np.array([0, 0, 2.0, 0, 0, 0, 0, 0, 0])) > 0.3
    assert LocalSteps(LogisticLoss(intercept=False), PLAIN).unevenness(np.ones(2)) == 0.0


def test_steps_of_ones_own_follow_from_ones_own_records():
    """Alone and among others who hold more or fewer records: the same way, to the last bit."""
    counts = np.array([1, 2, 3, 40, 5])
    offsets = np.r_[0, np.cumsum(counts)]
    rows = np.random.default_rng(3).normal(size=(counts.sum(), 2))
    users = UserData(rows, (rows[:, 0] > 0) * 1.0, offsets=offsets)
    loss, theta = LocalSteps(LogisticLoss(), PLAIN), np.array([0.3, -0.2, 0.1])
    together = loss.user_gradients(users, theta)
    for user in range(len(counts)):
        assert np.array_equal(loss.user_gradients(users.take([user]), theta)[0], together[user])
