"""Data science: a table in memory, a model, its score, and what a pipeline promises.

Run by ``benchmarks/walk.py`` in an environment that has the wheel and its dependencies.
"""

import warnings

import numpy as np
import pyarrow as pa
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import quorate as qr

rng = np.random.default_rng(1)
PEOPLE, EACH = 3000, 6
who = np.repeat(np.arange(PEOPLE), EACH)
age = np.repeat(rng.integers(20, 80, PEOPLE), EACH)
region = np.repeat(rng.choice(["north", "south"], PEOPLE), EACH)
score = 0.08 * (age - 50) + np.where(region == "north", 1.0, -1.0) + rng.normal(size=len(who))
table = pa.table(
    {"patient": who, "age": age, "region": region, "ill": np.where(score > 0, "yes", "no")}
)
settings = {
    "delta": 1e-6,
    "classes": ("no", "yes"),
    "bounds": {"age": (18, 90)},
    "categories": {"region": ["north", "south"]},
}

# Features, target and ids from one table, by name.
model = qr.LogisticRegression(2.0, **settings).fit(table, "ill", users="patient")
accuracy = np.mean(model.predict(table.select(["age", "region"])) == np.array(table["ill"]))
assert accuracy > 0.8, accuracy
held = qr.private_score(model, table, "ill", users="patient", epsilon=0.5)
assert abs(held.value - accuracy) <= 5 * held.error, (held, accuracy)
print(f"accuracy {held.value:.3f} +- {held.error:.3f}; {model.guarantee_}")

# A column of text without categories= is refused before anything is spent, with what to do.
try:
    qr.LogisticRegression(2.0, delta=1e-6, classes=("no", "yes")).fit(table, "ill", users="patient")
except ValueError as refusal:
    assert "categories=" in str(refusal), refusal
else:
    raise AssertionError("text was taken for numbers")

# Choosing among settings once, for one price.
numbers = table.select(["patient", "age"])
search = qr.PrivateGridSearch(
    qr.LogisticRegression(classes=("no", "yes"), bounds={"age": (18, 90)}),
    {"penalty": [0.0, 1.0]},
    epsilon=3.0,
    random_state=0,
).fit(numbers, np.array(table["ill"]), users="patient")
assert search.guarantee_.epsilon == 3.0

# scikit-learn's own search spends anew with every fit, and says so before the first.
plain = np.column_stack([age, region == "north"]).astype(float)
grid = GridSearchCV(qr.Ridge(1.0, delta=1e-6, target_bounds=(-9, 9)), {"penalty": [1.0]}, cv=2)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    grid.fit(plain, score, users=who)
assert any("every fit spends epsilon=1 again" in str(each.message) for each in said), said

# A scaler that is not private leaves no guarantee; a private one adds its price.
careless = make_pipeline(StandardScaler(), qr.Ridge(1.0, delta=1e-6, target_bounds=(-9, 9)))
careless.fit(plain, score, ridge__users=who)
promise = str(qr.total_guarantee(careless))
assert "no guarantee" in promise.lower(), promise
assert "StandardScaler" in promise, promise
print(promise)
