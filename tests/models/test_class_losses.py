"""Losses of labels: a margin, several classes, and classes that count differently."""

import numpy as np
import pytest

from quorate import LogisticRegression
from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.models.class_losses import ClassWeighted, SmoothedHingeLoss, SoftmaxLoss
from quorate.models.losses import LogisticLoss, by_user


def test_a_label_that_is_no_class_counts_as_no_label():
    people = UserData([[1.0]], [7.0], offsets=[0, 1])
    gradient = SoftmaxLoss(classes=2, intercept=False).user_gradients(people, np.zeros(2))
    np.testing.assert_allclose(gradient, [[0.5, 0.5]])


def test_a_width_must_be_positive():
    with pytest.raises(ParameterError, match="width"):
        SmoothedHingeLoss(width=0.0)


def test_the_number_of_classes_must_be_one():
    with pytest.raises(ParameterError, match="classes"):
        SoftmaxLoss(classes=0)


class TestWeights:
    @pytest.mark.parametrize(
        "inner",
        [LogisticLoss(), SmoothedHingeLoss(width=0.5, intercept=False), SoftmaxLoss(classes=2)],
        ids=lambda loss: type(loss).__name__,
    )
    def test_a_record_counts_as_much_as_its_label(self, inner):
        rng = np.random.default_rng(1)
        rows, theta = rng.normal(size=(6, 3)), rng.normal(size=inner.dimension(3))
        targets = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
        loss = ClassWeighted(intercept=inner.intercept, inner=inner, weights=(0.25, 1.0))
        each = UserData(rows, targets, offsets=np.arange(7))
        want = inner.user_gradients(each, theta) * np.where(targets == 0, 0.25, 1.0)[:, None]
        assert np.allclose(loss.user_gradients(each, theta), want)
        assert loss.dimension(3) == inner.dimension(3)
        assert loss.curvature == inner.curvature
        assert by_user(loss) is loss

    def test_without_weights_it_is_the_loss_itself(self):
        assert LogisticRegression()._loss() == LogisticLoss()
        assert LogisticRegression(class_weight={1: 2.0})._loss() == ClassWeighted(
            inner=LogisticLoss(), weights=(0.5, 1.0)
        )

    def test_a_user_is_moved_by_nobody_else(self):
        rng = np.random.default_rng(2)
        rows, targets = rng.normal(size=(9, 2)), rng.integers(0, 2, size=9).astype(float)
        loss = ClassWeighted(inner=LogisticLoss(), weights=(0.3, 1.0))
        users, theta = UserData(rows, targets, offsets=[0, 2, 5, 9]), rng.normal(size=3)
        alone = [loss.user_gradients(users.take([place]), theta)[0] for place in range(3)]
        assert np.array_equal(loss.user_gradients(users, theta), alone)
