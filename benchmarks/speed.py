"""How long fits take, beside what numpy and scikit-learn take for the like of it, in one run.

Ratios and growth rates rather than seconds, because machines differ; processor time rather than
the clock, because others may be at work; each side several times in turns, and the best of each.
One thread of linear algebra everywhere. ``--full`` measures at full size (some minutes and two
gigabytes), the default at sizes that take a minute.

* A logistic fit over as many full-batch steps in numpy as it takes steps, a matrix product each way
  in 64 bits. Only the 40 steps of the descent are counted on numpy's side, though the fit also
  groups and orders the records, passes over them for their centre and their spread, whitens them
  into a table of 32 bits on which its steps work, and draws exact noise. 100 records a user.
* ``UserScaler`` of 24 features without delta over one sort of the table, column by column.
* Growth, as the slope on logarithmic scales: a logistic fit in the features, and in the users at a
  fixed number of records; a cut-off in the records.
* The first fit of ``UserMean`` in a fresh process over ``import sklearn.linear_model``.

``goal`` is what we want, ``held`` what this benchmark fails above: times of small fits vary by a
fifth on a machine that others use. The large fit asks for half as much memory again as its table;
where the system is slow to hand it out, as after somebody else's large fit, that may be a third of
its time.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

import quorate as qr

ROUNDS = 5
HELD_SMALL, HELD_LARGE = 1.5, 1.4
FIRST_USE = """
import numpy as np
from quorate import UserMean
UserMean(1.0, delta=1e-6, bounds=10.0).fit(np.zeros((1000, 1)), users=np.arange(1000))
"""


@dataclass(frozen=True)
class Line:
    """One thing that was measured."""

    name: str
    found: float
    goal: float
    held: float


def seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def best_ratio(ours, theirs, rounds=ROUNDS):
    """Return the best time of ours over the best of theirs, taken in turns."""
    times = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    return min(mine for mine, _ in times) / min(other for _, other in times)


def slope(sizes, work, rounds=2):
    """Return how times grow with sizes: the slope of a line through their logarithms."""
    times = [min(seconds(partial(work, size)) for _ in range(rounds)) for size in sizes]
    print("   ", ", ".join(f"{size:,}: {t:.3f} s" for size, t in zip(sizes, times, strict=True)))
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def labelled(records, features):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((records, features))
    w = rng.standard_normal(features) / features**0.5
    return X, (X @ w + rng.logistic(size=records) > 0).astype(np.float64)


def logistic_ratio(records, features, *, rounds=ROUNDS):
    X, y = labelled(records, features)
    users = np.arange(records) // 100
    steps = 40

    def ours():
        model = qr.LogisticRegression(1.0, delta=1e-6, steps=steps)
        model.fit(X, y, users=users)

    def theirs():
        w, b = np.zeros(features), 0.0
        for _ in range(steps):
            slopes = 1.0 / (1.0 + np.exp(-(X @ w + b))) - y
            w, b = w - X.T @ slopes / records, b - slopes.mean()

    return best_ratio(ours, theirs, rounds)


def scaler_ratio(records=100_000, features=24):
    X, _ = labelled(records, features)
    users = np.arange(records) // 100
    return best_ratio(
        lambda: qr.UserScaler(1.0, bounds=10.0).fit(X, users=users),
        lambda: np.sort(X, axis=0),
    )


def slope_in_features(records=20_000):
    tables = {d: labelled(records, d) for d in (10, 30, 100, 300, 1000)}
    users = np.arange(records) // 10
    model = qr.LogisticRegression(8.0, delta=1e-6, steps=20, hopeless="constant")
    return slope(list(tables), lambda d: model.fit(*tables[d], users=users))


def slope_in_users(records):
    X, y = labelled(records, 5)
    sizes = [10**k for k in range(3, 7) if 2 * 10**k <= records]
    model = qr.LogisticRegression(8.0, delta=1e-6, steps=20)
    return slope(
        sizes, lambda n: model.fit(X, y, users=np.arange(records) * n // records), rounds=1
    )


def slope_of_cut_off():
    values = np.random.default_rng(0).random(1_000_000)
    cut = qr.ThresholdLearner(1.0, domain=(0.0, 1.0), step=2.0**-30)
    return slope(
        [10_000, 100_000, 1_000_000],
        lambda n: cut.fit(values[:n], values[:n] >= 0.3, users=np.arange(n) // 20),
        rounds=3,
    )


def process_seconds(code):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_use_ratio(rounds=ROUNDS):
    times = [
        (process_seconds(FIRST_USE), process_seconds("import sklearn.linear_model"))
        for _ in range(rounds)
    ]
    return min(mine for mine, _ in times) / min(other for _, other in times)


def measured(full):
    X, y = labelled(4_000, 3)
    qr.LogisticRegression(8.0, delta=1e-6).fit(X, y, users=np.arange(4_000))  # imports
    yield Line("first use of UserMean / import sklearn.linear_model", first_use_ratio(), 1.3, 1.3)
    yield Line("UserScaler, 24 features / one sort", scaler_ratio(), 12.0, 12.0)
    yield Line("logistic 1e5 x 20 / numpy steps", logistic_ratio(100_000, 20), 1.3, HELD_SMALL)
    if full:
        ratio = logistic_ratio(1_000_000, 50, rounds=3)
        yield Line("logistic 1e6 x 50 / numpy steps", ratio, 1.3, HELD_LARGE)
    yield Line("slope: logistic in features, 10 to 1000", slope_in_features(), 1.3, 1.3)
    records = 2_000_000 if full else 200_000
    yield Line(f"slope: logistic in users, {records:,} rows", slope_in_users(records), 0.5, 0.5)
    yield Line("slope: cut-off in rows, 1e4 to 1e6", slope_of_cut_off(), 1.1, 1.1)


def main():
    failed = False
    with threadpool_limits(1):
        for line in measured("--full" in sys.argv):
            failed |= not line.found <= line.held
            word = "reached" if line.found <= line.goal else f"missed (held: {line.held})"
            print(f"{line.name:52s} {line.found:6.2f}   goal {line.goal:5.2f} {word}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
