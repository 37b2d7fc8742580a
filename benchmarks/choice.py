"""What a private choice costs: ratios within one run, best of several repetitions."""

import sys
import time
from fractions import Fraction

import numpy as np

from quorate.core.by_hand import line_by_hand, rows_by_hand, sealed_by_hand
from quorate.core.moves import Moves
from quorate.mechanisms import ChooseBest, ChooseOrdered, PrivateQuantile

N = 10**6
REPETITIONS = 7


def best_times(*jobs):
    """Run the jobs in turn, so that a busy machine disturbs all of them, and keep the best."""
    times = [[] for _ in jobs]
    for _ in range(REPETITIONS):
        for job, taken in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def bare_opendp(epsilon):
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    vectors = vector_domain(atom_domain(T="i64"))
    return make_noisy_max(vectors, linf_distance(T="i64"), max_divergence(), scale=2 / epsilon)


def ratios():
    rng = np.random.default_rng(0)
    floats = rng.random(N)
    cuts = np.sort(rng.integers(0, 2**63, size=N - 1, dtype=np.uint64))
    ends = np.array([0, 2**63], dtype=np.uint64)
    lengths = np.diff(np.concatenate([ends[:1], cuts, ends[1:]]))
    losses = np.abs(np.arange(N) - N // 2)
    values = rng.integers(0, 2**62, size=N // 2)
    scores = rng.integers(0, 1000, size=N)

    ordered = ChooseOrdered(epsilon=1.0)
    median = PrivateQuantile(domain=(0, 2**63 - 1), quantile=Fraction(1, 2), epsilon=1.0)
    choose = ChooseBest(candidates=N, epsilon=1.0)
    bare, moves = bare_opendp(1.0), Moves.of_scores(1, coordinates=N, one_sided=False)

    sort, pieces, quantile, ours, theirs = best_times(
        lambda: np.sort(floats),
        lambda: ordered.release(line_by_hand(lengths, losses)),
        lambda: median.release(rows_by_hand(values)),
        lambda: choose.release(sealed_by_hand(scores, moves)),
        lambda: bare(scores),
    )
    return [
        ("2^63 points in 10^6 pieces / sort of 10^6 floats", pieces / sort, 10.0),
        ("median of 5 * 10^5 users over 2^63 points / sort of 10^6 floats", quantile / sort, 20.0),
        ("10^6 candidates / bare OpenDP noisy max", ours / theirs, 2.0),
    ]


def main():
    missed = False
    for name, ratio, limit in ratios():
        print(f"{name}: measured {ratio:.2f} (limit {limit:g})")
        missed |= not ratio <= limit
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
