"""All steps of a strategy that releases gradients, on a small crowd."""

import numpy as np

from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.models.optimization.minibatches import open_sampled_run
from quorate.models.regression_losses import SquaredLoss
from sealing import start_run

RNG = np.random.default_rng(0)
BUDGET = {"epsilon": 1.0}
LOSS = SquaredLoss(intercept=False)


def people(n=5000):
    """Return users with one record each, whose targets are the difference of two features."""
    rows = RNG.normal(size=(n, 2))
    return UserData(rows, rows @ [1.0, -1.0], offsets=np.arange(n + 1))


def all_steps(strategy, *, budget=BUDGET, steps=6, data=None, theta=(0.0, 0.0), noise=None):
    """Return a run, the gradients that a strategy began for it, and all of its releases."""
    with use_noise(noise or SeededNoise(7)):
        rate = budget.get("rate")
        relation = budget.get("relation", Relation.REPLACE)
        account = Account.open(epsilon=budget["epsilon"], delta=1e-6, relation=relation)
        data = people() if data is None else data
        if rate is None:
            run = start_run(data, account)
        else:
            run = open_sampled_run(People(data, relation), account, rate=rate, steps=steps)
        gradients = strategy.start(run, LOSS, steps=steps)
        return run, gradients, [gradients.release(np.array(theta), t) for t in range(steps)]
