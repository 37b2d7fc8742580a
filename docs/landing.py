"""Draw the picture of the first page: what more records per user buy, measured.

Run ``python docs/landing.py``; it writes ``docs/_static/landing-light.svg`` and
``landing-dark.svg``, which are kept in the repository. The error of a private mean of 1,000 users
is measured for four methods at the same user-level budget, 40 runs each.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import quorate as qr

USERS, EPSILON, DELTA, BOUND, RUNS = 1000, 1.0, 1e-6, 1000.0, 40
MEAN, SPREAD = 7.0, 10.0
RECORDS = (1, 4, 16, 64, 256)
COLOURS = {
    "light": ("#0b6b5d", "#b4490f", "#4a4fb0", "#9a1f5c", "#1c2430", "#8a93a0"),
    "dark": ("#5fd0ba", "#ff9d66", "#a3a8ff", "#ff8fc2", "#e8ecf1", "#6b7583"),
}


def errors(records: int, seed: int) -> tuple[float, float, float, float]:
    """Return the errors of four methods on one data set of users who are alike."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(MEAN, SPREAD, size=(USERS * records, 1))
    users = np.repeat(np.arange(USERS), records)
    budget = {"epsilon": EPSILON, "delta": DELTA, "bounds": BOUND}
    # Group privacy: each record is protected, records times as strongly.
    group = {"epsilon": EPSILON / records, "delta": DELTA / records, "bounds": BOUND}
    fits = (
        qr.UserMean(**budget).fit(rows, users=users),
        qr.UserMean(**budget).fit(rows[::records], users=users[::records]),
        qr.UserMean(**budget, algorithm="clip").fit(rows, users=users),
        qr.UserMean(**group, algorithm="clip").fit(rows, users=users),
    )
    return tuple(float(abs(fit.mean_[0] - MEAN)) for fit in fits)


def draw(measured: np.ndarray, theme: str, path: Path) -> None:
    """Write the figure in the colours of a theme."""
    *series, ink, muted = COLOURS[theme]
    style = {
        "font.size": 12,
        "text.color": ink,
        "axes.labelcolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "axes.edgecolor": muted,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.hashsalt": theme,
    }
    names = ("Quorate", "one record per user", "clip to the public range", "group privacy")
    # Names stand beside the last point of their line: above it or below it.
    shifts = (26, 10, -16, 10)
    with mpl.rc_context(style):
        figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        for place, (name, colour) in enumerate(zip(names, series, strict=True)):
            line = measured[:, place]
            axes.loglog(RECORDS, line, "o-", color=colour, linewidth=3 if place == 0 else 1.8)
            axes.annotate(
                name,
                (RECORDS[-1], line[-1]),
                xytext=(0, shifts[place]),
                textcoords="offset points",
                ha="right",
                va="center",
                color=colour,
                weight="bold" if place == 0 else "normal",
            )
        axes.set_xticks(RECORDS, labels=map(str, RECORDS))
        axes.minorticks_off()
        axes.set(xlabel="records per user", ylabel="error of the private mean")
        axes.grid(visible=True, axis="y", color=muted, alpha=0.25)
        figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    """Measure, print and draw."""
    runs = np.array([[errors(m, seed) for seed in range(RUNS)] for m in RECORDS])
    measured = np.sqrt((runs**2).mean(axis=1))
    for records, line in zip(RECORDS, measured, strict=True):
        print(records, *(f"{value:.4g}" for value in line))
    for theme in COLOURS:
        path = Path(__file__).parent / "_static" / f"landing-{theme}.svg"
        draw(measured, theme, path)


if __name__ == "__main__":
    main()
