"""What a descent leaves behind is what it released."""

import itertools

import numpy as np

from quorate.accounting.account import Account
from quorate.models.descent_path import DescentStep
from quorate.models.gradients import ClippedGradients
from quorate.models.losses import SquaredLoss
from quorate.models.minimization import descend
from quorate.models.optimizers import AveragedDescent
from quorate.models.runs import open_run
from quorate.noise import SeededNoise, use_noise
from quorate.users import UserData


def test_the_path_leads_to_the_end():
    people = UserData(np.ones((400, 1)), np.full(400, 2.0), offsets=np.arange(401))
    with use_noise(SeededNoise(0)):
        minimum = descend(
            open_run(people, Account.open(epsilon=2.0, delta=1e-6)),
            SquaredLoss(intercept=False),
            steps=6,
            optimizer=AveragedDescent(step_size=1.0),
            gradients=ClippedGradients(),
            initial=np.zeros(1),
            curvature=1.0,
            penalty=0.1,
        )
    path = minimum.path
    assert all(isinstance(step, DescentStep) for step in path)
    assert [step.noise for step in path] == [step.noise for step in minimum.trace]
    for step, after in itertools.pairwise(path):
        pull = (0.1 + step.shrinkage) * step.theta
        moved = step.theta - (step.gradient + pull) / step.curvature
        np.testing.assert_allclose(after.theta, moved)
    assert (minimum.penalty, minimum.optimizer) == (0.1, AveragedDescent(step_size=1.0))
