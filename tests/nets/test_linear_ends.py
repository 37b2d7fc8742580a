"""A network for numbers begins and ends with linear regression, and is one where the truth is."""

import numpy as np
import pytest

from quorate import LinearRegression, NeuralRegressor
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.nets.linear_ends import LinearEnds
from quorate.nets.networks import open_network
from quorate.nets.small import folded, linear_path, said_of, small_size

RNG = np.random.default_rng(0)
PEOPLE = np.repeat(np.arange(4000), 2)
X = RNG.uniform(-1.0, 1.0, (8000, 3))
Y = X @ [0.5, -0.3, 0.1] + 0.1 * RNG.normal(size=8000)
HIDDEN = 4
SIZE = small_size(features=3, outputs=1, hidden=HIDDEN)


def error(model, rows, target):
    return float(np.mean((model.predict(rows) - target) ** 2))


class TestLinearTruth:
    """Steps that wander around it are put right."""

    def fitted(self, kind, **settings):
        given = {"epsilon": 4.0, "bounds": 1.0, "target_bounds": (-1.0, 1.0), "random_state": 0}
        with use_noise(SeededNoise(1)):
            return kind(**given | settings).fit(X, Y, users=PEOPLE)

    def test_it_is_found(self):
        fresh = RNG.uniform(-1.0, 1.0, (4000, 3))
        truth = fresh @ [0.5, -0.3, 0.1]
        linear = error(self.fitted(LinearRegression), fresh, truth)
        found = error(self.fitted(NeuralRegressor, hidden=HIDDEN, steps=20), fresh, truth)
        assert found < 8.0 * linear + 1e-5

    def test_it_is_not_without_them(self, monkeypatch):
        monkeypatch.setattr(NeuralRegressor, "_ends", lambda _: None)
        fresh = RNG.uniform(-1.0, 1.0, (4000, 3))
        truth = fresh @ [0.5, -0.3, 0.1]
        linear = error(self.fitted(LinearRegression), fresh, truth)
        found = error(self.fitted(NeuralRegressor, hidden=HIDDEN, steps=20), fresh, truth)
        assert found > 30.0 * linear


class TestOneNetwork:
    WEIGHTS = RNG.normal(size=SIZE)

    def test_it_says_what_the_compiled_one_says(self):
        network = open_network(
            None,
            features=3,
            shape=None,
            head="number",
            outputs=1,
            hidden=HIDDEN,
            frozen=(),
            seed=0,
        )
        said = said_of(X[:50], self.WEIGHTS, hidden=HIDDEN)
        assert said == pytest.approx(network.outputs(self.WEIGHTS, X[:50])[:, 0], abs=1e-4)

    def test_it_is_folded_into_its_weights(self):
        whole = folded(
            self.WEIGHTS, features=np.array([1.0, 2.0, 3.0]), outputs=0.5, offset=4.0, hidden=HIDDEN
        )
        wanted = 0.5 * said_of(X, self.WEIGHTS, hidden=HIDDEN) + X @ [1.0, 2.0, 3.0] + 4.0
        assert said_of(X, whole, hidden=HIDDEN) == pytest.approx(wanted, abs=1e-12)

    def test_nobody_moves_a_bit_of_what_is_said_of_another(self):
        whole = said_of(X, self.WEIGHTS, hidden=HIDDEN)
        for first in (1, 3, 8, 4001):
            assert np.array_equal(said_of(X[first:], self.WEIGHTS, hidden=HIDDEN), whole[first:])

    def test_the_end_takes_of_start_and_steps_what_is_best(self):
        """Steps that found the truth are taken whole, and steps that found nothing are left out."""
        ends = LinearEnds(hidden=HIDDEN, bounded=True, within=True)
        start = folded(
            np.zeros(SIZE), features=np.full(3, 0.1), outputs=1.0, offset=0.2, hidden=HIDDEN
        )
        slopes, offset = linear_path(start, features=3, hidden=HIDDEN)
        assert (slopes.tolist(), offset) == ([0.1, 0.1, 0.1], 0.2)
        moved = start + 0.3 * np.sin(np.arange(SIZE))
        for target, wanted in ((start, start), (moved, moved)):
            truth = said_of(X, target, hidden=HIDDEN)
            users = UserData(X, np.clip(truth, -1.0, 1.0), offsets=np.arange(0, 8001, 2))
            account = Account.open(epsilon=50.0, delta=1e-6)
            found = ends.ended(start, moved, People(users, Relation.REPLACE), account)
            said = said_of(X, found, hidden=HIDDEN)
            assert np.sqrt(np.mean((said - said_of(X, wanted, hidden=HIDDEN)) ** 2)) < 0.03


class TestBudget:
    def test_a_whole_training_spends_its_account(self):
        model = NeuralRegressor(epsilon=4.0, hidden=2, steps=3, progress=False)
        model.fit(X, Y, users=PEOPLE)
        square = float(Account.open(epsilon=4.0, delta=1e-6).square)
        (event,) = model.guarantee_.events
        parts = getattr(event, "events", (event,))
        spent = sum(
            getattr(each, "count", 1) / getattr(each, "event", each).noise_multiplier ** 2
            for each in parts
        )
        assert 0.9 * square < spent <= square * (1 + 1e-9)

    @pytest.mark.parametrize("way", ["a secret sample", "public weights"])
    def test_secret_samples_and_weights_of_ones_own_have_none(self, monkeypatch, way):
        monkeypatch.delattr(LinearEnds, "begun")
        start = np.zeros(small_size(features=3, outputs=1, hidden=2))
        settings = {"batch_rate": 0.5} if way == "a secret sample" else {"warm_start": start}
        model = NeuralRegressor(epsilon=8.0, hidden=2, steps=3, progress=False, **settings)
        assert len(model.fit(X, Y, users=PEOPLE).history_) == 3
