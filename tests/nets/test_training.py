"""What a step asks for follows from released numbers, and who is asked from ids alone."""

import numpy as np
import pytest

from quorate import NeuralClassifier
from quorate.core.account.parts import SampleAccount
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.nets.training import Training

RNG = np.random.default_rng(0)
PEOPLE = np.arange(160) // 2
X = RNG.uniform(-1.0, 1.0, (160, 2))
Y = (X[:, 0] > 0).astype(int)


def fit(rows=X, labels=Y, users=PEOPLE, **settings):
    given = {"epsilon": 4.0, "bounds": 1.0, "hidden": 2, "steps": 4, "progress": False}
    return NeuralClassifier(**given | {"random_state": 0} | settings).fit(rows, labels, users=users)


class TestRadius:
    def moved(self):
        """Tell whether one user moves a radius, or anything else, while releases stay the same."""
        found = []
        for first in (0.0, 1.0):
            rows = X.copy()
            rows[PEOPLE == 0] = first
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(
                    "quorate.nets.training.GaussianSum.release",
                    lambda self, total, **_: np.linspace(1.0, 2.0, total.shape[0]),
                )
                model = fit(rows)
            found.append((model.history_, model.weights_.tolist(), str(model.algorithm_)))
        return found[0] != found[1]

    def test_everything_follows_from_what_was_released(self):
        assert not self.moved()

    def test_a_radius_read_from_the_data_is_caught(self, monkeypatch):
        released = Training._released

        def reading(self, theta, step):
            rows = self.people._held_crowd().X
            self.radius = float(np.linalg.norm(rows, axis=1).max())
            return released(self, theta, step)

        monkeypatch.setattr(Training, "_released", reading)
        assert self.moved()


class TestSample:
    def moved(self):
        """Tell whether the order in which people arrived moves what is released."""
        people = UserData.from_arrays(X, Y, users=PEOPLE)
        order = np.random.default_rng(1).permutation(people.n_users)
        found = []
        for arrived in (people, people.take(order)):
            with use_noise(SeededNoise(1)):
                found.append(fit(arrived, None, None, batch_rate=0.3).weights_)
        return not np.array_equal(*found)

    def test_it_does_not_follow_who_came_first(self):
        assert not self.moved()

    def test_sampling_by_arrival_is_caught(self, monkeypatch):
        def by_arrival(self, whole):
            chosen = self.members(whole._held_crowd().n_users)
            return whole._some_of(chosen, self.relation, self, ranked=False)

        monkeypatch.setattr(SampleAccount, "people", by_arrival)
        assert self.moved()
