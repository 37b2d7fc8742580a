"""Parameters and gradients turned into released coordinates, records left as they are."""

import numpy as np
import pytest

from quorate.models.class_losses import SoftmaxLoss
from quorate.models.coordinates.geometry import Geometry
from quorate.models.coordinates.preconditioned import PreconditionedLoss, inward
from quorate.models.regression_losses import SquaredLoss
from quorate.users import UserData

RNG = np.random.default_rng(1)


@pytest.mark.parametrize(
    "loss", [SquaredLoss(), SoftmaxLoss(classes=3), SquaredLoss(intercept=False)]
)
def test_inward_undoes_outward(loss):
    centre = np.array([1.0, -2.0]) if loss.intercept else np.zeros(2)
    shape = Geometry(centre, np.array([[2.0, 0.5], [0.5, 1.0]]))
    theta = RNG.normal(size=loss.dimension(2))
    np.testing.assert_allclose(inward(shape, shape.outward(theta, loss), loss), theta)


@pytest.mark.parametrize("loss", [SquaredLoss(), SoftmaxLoss(classes=2)])
def test_gradients_follow_the_chain_rule(loss):
    shape = Geometry(np.array([1.0, -2.0]), np.array([[2.0, 0.5], [0.5, 1.0]]))
    people = UserData(RNG.normal(size=(4, 2)), np.ones(4), offsets=[0, 1, 4])
    theta = RNG.normal(size=loss.dimension(2))
    inner = PreconditionedLoss(loss, shape)
    moved = UserData((people.X - shape.centre) @ shape.whitening, people.y, offsets=people.offsets)
    np.testing.assert_allclose(
        inner.user_gradients(people, theta), loss.user_gradients(moved, theta), atol=1e-12
    )
