"""Statistics: plans before data, intervals that hold, tables and quantiles with their errors.

Run by ``benchmarks/walk.py`` in an environment that has the wheel and its dependencies.
"""

import numpy as np
import pyarrow as pa

import quorate as qr

rng = np.random.default_rng(5)
PEOPLE, EACH = 2000, 10
who = np.repeat(np.arange(PEOPLE), EACH)
level = rng.normal(120.0, 12.0, PEOPLE)
pressure = np.repeat(level, EACH) + rng.normal(0.0, 8.0, len(who))
city = np.repeat(rng.choice(["Ulm", "Bonn", "Kiel"], PEOPLE, p=[0.5, 0.3, 0.2]), EACH)
table = pa.table({"person": who, "pressure": pressure, "city": city})
numbers = table.select(["person", "pressure"])

# How many people does an error take, before anybody is asked?
plan = qr.plan("mean", users=PEOPLE, records=EACH, epsilon=1.0, delta=1e-6, bounds=(50.0, 250.0))
assert 0 < plan.error_expected < 10, plan
print(plan.sentence)

# The stated bound of a mean holds as often as it says, about the people of this table.
own = np.array([pressure[who == person].mean() for person in range(PEOPLE)])
inside = 0
for _ in range(20):
    mean = qr.UserMean(1.0, delta=1e-6, bounds={"pressure": (50, 250)}).fit(numbers, users="person")
    inside += abs(mean.mean_[0] - own.mean()) <= mean.error_.bound
assert inside >= 14, inside  # fewer than 14 of 20 at 95 % has a chance of 3 in 100,000
print(f"{inside} of 20 intervals hold the mean; {mean.error_.covers}")

quartiles = qr.UserQuantiles(
    2.0, quantiles=(0.25, 0.5, 0.75), bounds={"pressure": (50, 250)}, each_user="mean"
).fit(numbers, users="person")
exact = np.quantile(own, [0.25, 0.5, 0.75])
assert np.abs(quartiles.quantiles_.ravel() - exact).max() < 3, (quartiles.quantiles_, exact)

by_city = qr.UserTable(
    2.0,
    delta=1e-6,
    by="city",
    keys=np.array(["Bonn", "Kiel", "Ulm"]),
    statistics={"people": "users", "rows": "count", "pressure": "mean"},
    bounds={"pressure": (50, 250)},
).fit(table, users="person")
for row in by_city.table_.to_pylist():
    held = city == row["city"]
    # Bounds hold in 19 of 20 cells; three times as far is nobody's bad luck.
    assert abs(row["rows"] - held.sum()) <= 3 * row["rows_bound"], row
    assert abs(row["pressure"] - pressure[held].mean()) <= 3 * row["pressure_bound"], row

spread = qr.UserCovariance(2.0, bounds={"pressure": (50, 250)}).fit(numbers, users="person")
assert 50 < float(spread.covariance_[0, 0]) < 400, spread.covariance_
shape = qr.Histogram(2.0, bins=12, bounds=(60.0, 180.0)).fit(numbers, users="person")
assert abs(shape.pmf_.sum() - 1) < 1e-6
print(by_city.guarantee_)
