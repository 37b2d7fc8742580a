"""Parities, statistical queries and the local model: what is reached at epsilon 1.

``python benchmarks/queries.py`` makes few runs; ``--full`` as many as the figures want.
"""

import itertools
import math
import sys
import time

import numpy as np

from quorate import ParityLearner, UserData
from quorate.learners.concepts import Literals
from quorate.learners.concepts.masked_parities import MaskedParity
from quorate.local.randomizers.known_laws import KaryResponse
from quorate.mechanisms.linear_equations import pack_bits
from quorate.mechanisms.parity import SolveParity
from quorate.papers.queries import Population
from quorate.papers.queries.algorithms import UniformConjunctionQueries
from quorate.papers.queries.local_masked_parity import LocalMaskedParity
from quorate.papers.queries.oracles import LocalQueryOracle, MovedOracle
from quorate.papers.queries.simulate import RecordRandomizer, Simulation

BITS = 16


def eliminate(rows, labels, unknowns):
    """Eliminate all rows by plain numpy bit operations: what one run is compared with."""
    table = np.zeros((len(rows), unknowns // 64 + 1), dtype=np.uint64)
    table[:, : rows.shape[1]] = rows
    table[:, -1] |= labels.astype(np.uint64) << np.uint64(unknowns % 64)
    done = 0
    for column in range(unknowns):
        word, bit = divmod(column, 64)
        hits = np.flatnonzero((table[done:, word] >> np.uint64(bit)) & np.uint64(1)) + done
        if hits.size:
            table[[done, hits[0]]] = table[[hits[0], done]]
            others = (table[:, word] >> np.uint64(bit)) & np.uint64(1) == 1
            others[done] = False
            table[others] ^= table[done]
            done += 1
    return done


def parity_time():
    """Return the time of one private run at d = 256 over that of plain elimination."""
    rng = np.random.default_rng(0)
    count = math.ceil(1.3 * 268 / math.tanh(0.5))
    X = rng.integers(0, 2, (count, 256)).astype(bool)
    labels = X[:, 3] ^ X[:, 200]
    rows, solver = pack_bits(X), SolveParity(features=256, epsilon=1.0)
    private, plain = [], []
    for _ in range(25):  # every fifth run stops at once and is fast
        start = time.perf_counter()
        solver.release(rows, labels)
        private.append(time.perf_counter() - start)
        start = time.perf_counter()
        eliminate(rows, labels, 256)
        plain.append(time.perf_counter() - start)
    return float(np.median(private) / np.min(plain))


def parity_runs(features, users, runs):
    found = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 2, (users, features))
        secret = rng.integers(0, 2, features)
        learner = ParityLearner(1.0, random_state=seed).fit(X, X @ secret % 2, users=range(users))
        chosen = getattr(learner.concept_, "chosen", ())
        found += chosen == tuple(np.flatnonzero(secret).tolist())
    return found


def conjunction_runs(records, users, runs):
    names = tuple(f"x{j}" for j in range(8))
    found = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.permutation(8)[: rng.integers(1, 4)]).tolist()
        rule = Literals(literals=tuple((j, True) for j in chosen), any_of=False, names=names)
        population = Population.uniform_cube(8, rule, records=records)
        people = population.draw(users, random_state=seed)
        oracle = LocalQueryOracle(people, epsilon=1.0, rounds=(8,), random_state=seed)
        found += UniformConjunctionQueries(8, records=records).run(oracle) == rule
    return found


def masked_runs(records, users, runs, *, hadamard):
    rows = [sum(((a & j).bit_count() % 2) << j for j in range(BITS)) for a in range(BITS)]
    found = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        secret = rows[int(rng.integers(BITS))] if hadamard else int(rng.integers(2**BITS))
        rule = MaskedParity(BITS, secret, int(rng.integers(2)))
        total = users * records
        X = np.column_stack(
            [
                rng.integers(0, 2, (total, BITS)),
                rng.integers(0, BITS, total),
                rng.integers(0, 2, total),
            ]
        ).astype(float)
        offsets = np.arange(0, total + 1, records)
        people = UserData(X, rule.predict(X), offsets=offsets, ids=range(users))
        found += LocalMaskedParity(BITS).learn(people, random_state=seed) == rule
    return found


def simulation_distance(calls=100, beta=0.1):
    """Return the worst total variation of one call over all signs of the oracle, times t / beta."""
    X = np.arange(4.0)[:, np.newaxis]
    world = Population(X, np.zeros(4), np.array([0.4, 0.3, 0.2, 0.1]))
    response = RecordRandomizer(lambda X, y: X[:, 0], KaryResponse(1.0, categories=3))
    truth = np.array([world.probabilities @ response.chances(w, X, world.y) for w in range(3)])
    worst = 0.0
    for signs in itertools.product((-1.0, 1.0), repeat=3):
        weights = []
        for answer, sign in enumerate(signs):
            simulation = Simulation(MovedOracle(world, moves=[sign]), calls=calls, beta=beta)
            weights.append(simulation.user().acceptance(response, answer))
        law = response.proposals() * weights
        worst = max(worst, np.abs(law / law.sum() - truth).sum() / 2)
    return worst * calls / beta


def figures(*, full):
    many, some = (30, 60) if full else (6, 8)
    yield "one parity run / plain elimination, d = 256", parity_time(), "<=", 3.0
    for features, users in ((64, 920), (256, 3100)):
        share = parity_runs(features, users, many) / many
        yield f"parity d = {features}, {users} users: recovered", share, ">=", 29 / 30
    for records, users in ((1, 25_600), (4, 3200), (16, 400), (64, 200)):
        runs = some if records == 1 else (400 if full else 120)
        share = conjunction_runs(records, users, runs) / runs
        yield f"conjunctions d = 8, m = {records}, {users} users", share, ">=", 0.95
    yield "simulated answer: worst distance / (beta / t)", simulation_distance(), "<=", 1.0
    for records, users in ((1, 36_000), (64, 2000)):
        for hadamard in (False, True):
            share = masked_runs(records, users, some, hadamard=hadamard) / some
            kind = "Hadamard rows" if hadamard else "random"
            yield f"masked parity d = 16, m = {records}, {users}, {kind}", share, ">=", 0.9


def main():
    missed = False
    for name, value, sign, limit in figures(full="--full" in sys.argv):
        print(f"{name}: measured {value:.3f} (goal {sign} {limit:.3f})", flush=True)
        missed |= not (value <= limit if sign == "<=" else value >= limit)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
