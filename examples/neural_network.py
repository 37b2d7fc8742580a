"""A neural network on people
==========================

Train a small neural network on people, through the loss interface.

A loss only has to say what each user's gradient is. Here one hidden layer, in plain numpy, learns
a ring that no linear model can see; the private radius and the noise are Quorate's business.

Run ``python examples/neural_network.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.models import Adam, Loss, minimize
from quorate.models.losses import sigmoid
from quorate.models.vectorized import Vectorized
from quorate.users import UserData

HIDDEN = 8


@dataclass(frozen=True)
class TinyNetwork(Loss):
    """Log-loss of one hidden layer of tanh units."""

    hidden: int = HIDDEN

    def dimension(self, n_features):
        """Return how many weights and offsets there are."""
        return self.hidden * (n_features + 2) + 1

    def parts(self, theta, n_features):
        """Return weights and offsets of the hidden layer, and of the output."""
        cut = self.hidden * (n_features + 1)
        first = theta[:cut].reshape(self.hidden, n_features + 1)
        return first[:, :-1], first[:, -1], theta[cut:-1], theta[-1]

    def predict(self, rows, theta):
        """Return the probability of the label 1."""
        weights, offsets, output, offset = self.parts(theta, rows.shape[1])
        return sigmoid(np.tanh(rows @ weights.T + offsets) @ output + offset)

    def user_gradients(self, batch, theta):
        """Return the mean gradient over each user's records, by the chain rule."""
        rows = batch.X
        weights, offsets, output, offset = self.parts(theta, rows.shape[1])
        units = np.tanh(rows @ weights.T + offsets)
        slope = sigmoid(units @ output + offset) - batch.y
        back = slope[:, None] * output * (1.0 - units**2)
        inner = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
        first = (back[:, :, None] * inner[:, None, :]).reshape(len(rows), -1)
        each = np.concatenate([first, slope[:, None] * units, slope[:, None]], axis=1)
        return batch.user_sums(each) / np.maximum(batch.record_counts(), 1)[:, None]


def ring(n_users, records, rng):
    rows = rng.normal(size=(n_users * records, 2))
    inside = np.sum(rows**2, axis=1) < 1.4
    offsets = np.arange(0, n_users * records + 1, records)
    return UserData(rows, inside.astype(float), offsets=offsets)


def main() -> None:
    rng = np.random.default_rng(0)
    people, fresh = ring(8000, 5, rng), ring(2000, 5, rng)
    network = TinyNetwork()
    # The start is public: small random weights, drawn without looking at anybody.
    start = 0.5 * rng.normal(size=network.dimension(2))
    # A loss of one's own is called for one user at a time. Vectorized asks for all users at once,
    # which is quicker; the guarantee then says that floating-point rounding is not covered.
    minimum = minimize(
        people,
        Vectorized(network),
        epsilon=2.0,
        delta=1e-6,
        optimizer=Adam(learning_rate=0.1),
        steps=80,
        initial=start,
    )
    correct = (network.predict(fresh.X, minimum.theta) > 0.5) == (fresh.y > 0.5)
    constant = max(np.mean(fresh.y), 1 - np.mean(fresh.y))
    print(minimum.guarantee)
    print(f"accuracy on new people: {correct.mean():.3f}; of the best constant: {constant:.3f}")


if __name__ == "__main__":
    main()
