"""Losses give the mean gradient over each user's own records."""

from itertools import pairwise

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from quorate.core.users import UserData
from quorate.core.users.store import settled_users
from quorate.models import losses
from quorate.models.class_losses import SmoothedHingeLoss, SoftmaxLoss
from quorate.models.losses import LogisticLoss, sigmoid
from quorate.models.regression_losses import HuberLoss, SquaredLoss

RNG = np.random.default_rng(0)
OFFSETS = np.array([0, 3, 3, 4, 9])
X = RNG.normal(size=(9, 2))


def value(loss, predictions, y):
    """The losses themselves, written down independently, for one record."""
    z = predictions
    if isinstance(loss, SquaredLoss):
        return 0.5 * (z[0] - y) ** 2
    if isinstance(loss, HuberLoss):
        error = abs(z[0] - y)
        return 0.5 * error**2 if error <= loss.width else loss.width * (error - loss.width / 2)
    if isinstance(loss, LogisticLoss):
        return np.logaddexp(0, z[0]) - y * z[0]
    if isinstance(loss, SmoothedHingeLoss):
        gap = 1 - (2 * y - 1) * z[0]
        if gap <= 0:
            return 0.0
        return gap**2 / (2 * loss.width) if gap <= loss.width else gap - loss.width / 2
    return np.logaddexp.reduce(z) - z[int(y)]


LOSSES = [
    SquaredLoss(),
    SquaredLoss(intercept=False),
    HuberLoss(width=0.7),
    LogisticLoss(),
    SmoothedHingeLoss(),
    SoftmaxLoss(classes=3),
    SoftmaxLoss(classes=3, intercept=False),
]


def targets_for(loss):
    if isinstance(loss, SoftmaxLoss):
        return RNG.integers(0, 3, size=9).astype(float)
    if isinstance(loss, LogisticLoss | SmoothedHingeLoss):
        return RNG.integers(0, 2, size=9).astype(float)
    return RNG.normal(size=9)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestGradients:
    def test_they_are_the_derivatives_of_the_users_mean_losses(self, loss):
        y = targets_for(loss)
        people = UserData(X, y, offsets=OFFSETS)
        theta = RNG.normal(size=loss.dimension(2))

        def mean_losses(at):
            rows = at.reshape(loss.outputs, -1)
            z = X @ rows[:, :2].T + (rows[:, 2] if loss.intercept else 0.0)
            each = np.array([value(loss, z[i], y[i]) for i in range(9)])
            return np.array([each[a:b].mean() if b > a else 0.0 for a, b in pairwise(OFFSETS)])

        gradients = loss.user_gradients(people, theta)
        step = 1e-6
        for k in range(theta.size):
            change = np.zeros(theta.size)
            change[k] = step
            numeric = (mean_losses(theta + change) - mean_losses(theta - change)) / (2 * step)
            np.testing.assert_allclose(gradients[:, k], numeric, atol=1e-6)

    def test_a_user_without_records_has_a_zero_gradient(self, loss):
        people = UserData(X, targets_for(loss), offsets=OFFSETS)
        assert not loss.user_gradients(people, np.ones(loss.dimension(2)))[1].any()

    def test_a_users_gradient_does_not_depend_on_others(self, loss):
        y = targets_for(loss)
        theta = RNG.normal(size=loss.dimension(2))
        together = loss.user_gradients(UserData(X, y, offsets=OFFSETS), theta)
        alone = loss.user_gradients(UserData(X[4:], y[4:], offsets=[0, 5]), theta)
        np.testing.assert_allclose(together[3], alone[0], rtol=1e-12)

    def test_slopes_grow_no_faster_than_the_curvature_says(self, loss):
        y = targets_for(loss)
        z = RNG.normal(size=(9, loss.outputs)) * 2
        d = RNG.normal(size=z.shape) * 1e-4
        change = loss.slopes(z + d, y) - loss.slopes(z, y)
        assert np.all(
            np.linalg.norm(change, axis=1) <= 1.001 * loss.curvature * np.linalg.norm(d, axis=1)
        )

    def test_an_empty_batch_is_fine(self, loss):
        nobody = UserData(np.empty((0, 2)), np.empty(0), offsets=[0])
        assert loss.user_gradients(nobody, np.zeros(loss.dimension(2))).shape == (
            0,
            loss.dimension(2),
        )

    def test_intercepts_are_not_penalized(self, loss):
        assert loss.unpenalized(2).sum() == loss.outputs * loss.intercept


HELD = [1, 0, 40, 31, 32, 33, 40, 7, 100, 40, 32, 700, 2, 31]


class Mixing(SquaredLoss):
    """The broken twin: one product over the records of everybody in the batch."""

    def user_gradients(self, batch, theta):
        errors = batch.X @ theta[:-1] + theta[-1] - batch.y
        sums = np.column_stack(
            [batch.user_sums(weights=errors), batch.user_sums(errors[:, None])[:, 0]]
        )
        return sums / np.maximum(batch.record_counts(), 1)[:, None]


class TestNobodyElse:
    """To the last bit, whoever else is there, in which order, and however records lie."""

    def people(self, features, seed=5):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(sum(HELD), features))
        return UserData(rows, rng.integers(0, 2, sum(HELD)) * 1.0, offsets=np.cumsum([0, *HELD]))

    def everywhere(self, loss, features):
        """Return gradients of the same users, each time among others; in the first place alone."""
        people, theta = self.people(features), RNG.normal(size=loss.dimension(features))
        among = loss.user_gradients(people, theta)
        alone = [loss.user_gradients(people.take([user]), theta)[0] for user in range(len(HELD))]
        yield np.array(alone), among
        some = np.array([8, 2, 11, 4, 0, 9])
        yield among[some], loss.user_gradients(people.take(some), theta)
        settled = settled_users(people, lambda rows, _: rows, lambda targets: targets)
        yield among, loss.user_gradients(settled, theta)
        # The same records elsewhere in memory, eight bytes further each time.
        for shift in range(8):
            room = np.empty(people.X.size + 16)
            moved = room[shift : shift + people.X.size].reshape(people.X.shape)
            moved[:] = people.X
            again = UserData(moved, people.y, offsets=people.offsets)
            yield among, loss.user_gradients(again, theta)

    @pytest.mark.parametrize("features", [1, 3, 20])
    @pytest.mark.parametrize("loss", LOSSES, ids=repr)
    def test_a_users_gradient_has_the_same_bits(self, loss, features):
        for expected, found in self.everywhere(loss, features):
            assert expected.tobytes() == found.tobytes()

    def test_a_product_over_everybody_is_caught(self):
        pairs = list(self.everywhere(Mixing(), 20))
        assert any(expected.tobytes() != found.tobytes() for expected, found in pairs)

    def with_threads(self):
        """Return the gradient of one giant user among others, by threads of the arithmetic."""
        rows = np.random.default_rng(5).normal(size=(5040, 300))
        people = UserData(rows, (rows[:, 0] > 0) * 1.0, offsets=[0, 5000, 5040])
        theta = np.full(301, 0.1)
        for threads in (1, 2):
            with threadpool_limits(threads):
                yield LogisticLoss().user_gradients(people, theta).tobytes()

    def test_a_giant_users_gradient_does_not_depend_on_threads(self):
        assert len(set(self.with_threads())) == 1

    def test_a_product_shared_out_among_threads_is_caught(self, monkeypatch):
        if not any(library["internal_api"] == "openblas" for library in threadpool_info()):
            pytest.skip("How another library than OpenBLAS shares out a product is not known.")
        monkeypatch.setattr(losses, "_LARGEST_PRODUCT", 2**62)
        assert len(set(self.with_threads())) == 2

    @pytest.mark.parametrize("loss", LOSSES, ids=repr)
    def test_parts_of_all_sizes_give_what_one_record_at_a_time_gives(self, loss, monkeypatch):
        monkeypatch.setattr(losses, "_BLOCK", 150)
        people, theta = self.people(3), RNG.normal(size=loss.dimension(3))
        rows = theta.reshape(loss.outputs, -1)
        slopes = loss.slopes(
            people.X @ rows[:, :3].T + (rows[:, 3] if loss.intercept else 0.0), people.y
        )
        ones = np.column_stack([people.X, np.ones(people.n_records)])[:, : 3 + loss.intercept]
        wanted = [
            (slopes[a:b].T @ ones[a:b] / max(b - a, 1)).ravel() for a, b in pairwise(people.offsets)
        ]
        np.testing.assert_allclose(loss.user_gradients(people, theta), wanted, atol=1e-12)

    def test_what_targets_add_is_added_up_for_the_users_who_hold_them(self):
        people, loss = self.people(3), LogisticLoss()
        turned = UserData(people.X, 1.0 - people.y, offsets=people.offsets)
        for theta in (np.zeros(4), RNG.normal(size=4)):
            # With labels turned and records seen from behind, nothing changes but the sign.
            behind = loss.user_gradients(turned, -theta)
            np.testing.assert_allclose(loss.user_gradients(people, theta), -behind, atol=2.0**-22)


class TestOfTheCaller:
    def test_slopes_of_a_subclass_are_asked_whatever_its_users_hold(self):
        class Tenfold(LogisticLoss):
            def slopes(self, predictions, targets):
                return 10.0 * super().slopes(predictions, targets)

        counts = [3, 40, 40, 1200]
        rows = RNG.normal(size=(sum(counts), 8))
        people = UserData(
            rows, RNG.integers(0, 2, len(rows)), offsets=np.append(0, np.cumsum(counts))
        )
        theta = RNG.normal(size=9)
        wanted = 10.0 * LogisticLoss().user_gradients(people, theta)
        found = Tenfold().user_gradients(people, theta)
        np.testing.assert_allclose(found, wanted, atol=1e-6)


class TestEdges:
    def test_sigmoid_is_calm_at_both_ends(self):
        assert sigmoid(np.array([-1e308, 1e308])).tolist() == [0.0, 1.0]

    def test_logistic_slopes_are_right_to_seven_digits_and_follow_from_one_prediction(self):
        rng = np.random.default_rng(11)
        predictions = (
            rng.normal(size=(1001, 1)) * np.repeat([1.0, 30.0, 1e3], [401, 400, 200])[:, None]
        )
        targets = rng.integers(0, 2, 1001).astype(float)
        slopes = LogisticLoss().slopes(predictions, targets)
        assert np.abs(slopes[:, 0] - (sigmoid(predictions[:, 0]) - targets)).max() < 1e-7
        alone = [
            LogisticLoss().slopes(predictions[i : i + 1], targets[i : i + 1]) for i in range(1001)
        ]
        assert np.concatenate(alone).tobytes() == slopes.tobytes()

    def test_logistic_slopes_are_calm_at_both_ends(self):
        ends = np.array([-np.inf, -1e308, -200.0, 0.0, 200.0, 1e308, np.inf, np.nan])[:, None]
        with np.errstate(all="ignore"):
            found = LogisticLoss().slopes(ends, np.zeros(8))[:, 0]
        assert found[:-1].tolist() == [0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.0]
        assert np.isnan(found[-1])
