"""A neural network on people
==========================

Train a small neural network with user-level privacy, through the loss interface. A loss only has to
say what the gradient of each user is. Clipping, noise and accounting are done by ``minimize``.
"""

# %%
# **A loss of your own.** One hidden layer in plain numpy, with gradients by the chain rule.

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from quorate.core.users import UserData
from quorate.models import Adam, Loss, minimize
from quorate.models.losses import sigmoid
from quorate.models.vectorized import Vectorized


@dataclass(frozen=True)
class TinyNetwork(Loss):
    """Log-loss of one hidden layer of tanh units."""

    hidden: int = 8

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


# %%
# **People.** 8,000 users with five records each. The label says whether a record lies inside a
# ring, which no linear model can see.


def ring(n_users, records, rng):
    rows = rng.normal(size=(n_users * records, 2))
    inside = np.sum(rows**2, axis=1) < 1.4
    offsets = np.arange(0, n_users * records + 1, records)
    return UserData(rows, inside.astype(float), offsets=offsets)


rng = np.random.default_rng(0)
people, fresh = ring(8000, 5, rng), ring(2000, 5, rng)

# %%
# **Training.** The start is public: small random weights. A loss of your own is called for one user
# at a time. ``Vectorized`` asks for all users at once, which is faster; the guarantee then says
# that rounding errors of floating-point numbers are not covered.

network = TinyNetwork()
start = 0.5 * rng.normal(size=network.dimension(2))
minimum = minimize(
    people,
    Vectorized(network),
    epsilon=2.0,
    delta=1e-6,
    optimizer=Adam(learning_rate=0.1),
    steps=80,
    initial=start,
)
print(minimum.guarantee)
correct = (network.predict(fresh.X, minimum.theta) > 0.5) == (fresh.y > 0.5)
constant = max(np.mean(fresh.y), 1 - np.mean(fresh.y))
print(f"accuracy on new people: {correct.mean():.3f}; of the best constant: {constant:.3f}")

# %%

side = np.linspace(-3, 3, 121)
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
chance = network.predict(plane, minimum.theta).reshape(len(side), len(side))
figure, axes = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
shade = axes.contourf(side, side, chance, levels=11, cmap="viridis", vmin=0, vmax=1)
figure.colorbar(shade, label="predicted probability")
angle = np.linspace(0, 2 * np.pi, 200)
axes.plot(np.sqrt(1.4) * np.cos(angle), np.sqrt(1.4) * np.sin(angle), "w--", label="the true ring")
axes.set(title="Learned with epsilon = 2", aspect="equal")
axes.legend(loc="upper right", facecolor="0.2", labelcolor="w")
plt.show()
