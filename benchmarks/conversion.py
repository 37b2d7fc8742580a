"""Item level made user level, hypothesis selection, perfect generalisation: figures and goals.

Each line says what was measured, the figure, and the goal it is held to (if any). ``--full`` takes
more repetitions. Laws are averaged where they can be computed, so that few worlds are enough.
"""

import math
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from conversion_graphs import greedy_cover, jump_graphs
from quorate.auditing import SmallWorld, audit_exactly
from quorate.core.guarantees import Relation
from quorate.core.noise.truncated_laplace import smallest_reach
from quorate.core.users import UserData
from quorate.core.vertex_cover import half_integral_cover
from quorate.distributions import Clip, DiscreteFamily, HypothesisSelector, Votes, simplex_cover
from quorate.mechanisms.choices.choose import permute_and_flip_probabilities
from quorate.papers.conversion import Base, BaseKind, CertifiedItemToUser, PerfectGeneralisation
from quorate.papers.conversion.alike import certify_by_sorting, differences
from quorate.papers.conversion.perfect_generalisation import calibrated_radius, published_radius
from quorate.papers.conversion.translation import crossover_records, deletion_reach, item_to_user

FULL = "--full" in sys.argv


def best_times(*jobs, repetitions=5):
    """Run the jobs in turn, so that a busy machine disturbs all of them, and keep the best."""
    times = [[] for _ in jobs]
    for _ in range(repetitions):
        for job, taken in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def densities(rng, size, k=20):
    """Return a truth, and members at all distances from it."""
    truth = rng.dirichlet(np.ones(k))
    share = np.linspace(0.02, 1.0, size)[:, None]
    return truth, (1 - share) * truth + share * rng.dirichlet(np.ones(k), size)


def people(rng, truth, n, m):
    X = rng.choice(len(truth), size=(n * m, 1), p=truth).astype(float)
    return UserData.from_arrays(X, users=np.arange(n * m) // m)


def expected_variation(family, data, pmf, truth, clip, epsilon=1.0, price=1.0):
    """Return the mean total variation of the choice, over its law."""
    losses = family.worst(family.tally(data, clip))
    scale = 2 * price * clip.sensitivity(family.unit, Relation.REPLACE) / epsilon
    law = permute_and_flip_probabilities(-losses / scale)
    return float(law @ (0.5 * np.abs(pmf - truth).sum(axis=1)))


def selection_lines():
    n, m, runs = 50, 64, 40 if FULL else 12
    ways = {
        "ours: votes": (Votes(), 1.0),
        "ours: clipped Scheffe counts, the default": (Clip(0.5), 1.0),
        "clip as published": (Clip.published(m, alpha=0.05), 1.0),
        "group privacy, sensitivity as it is": (Clip.none(m), 1.0),
        "group privacy as published (tau = m)": (Clip.none(m), 2.0),
        "not private, Scheffe counts": (Clip.none(m), 1e-9),
    }
    found = {name: [] for name in [*ways, "not private, likelihood", "nearest member"]}
    many = {size: [] for size in (100, 200, 400)}
    for run in range(runs):
        rng = np.random.default_rng(run)
        truth, pmf = densities(rng, 200)
        family, data = DiscreteFamily(pmf), people(rng, truth, n, m)
        for name, (clip, price) in ways.items():
            found[name].append(expected_variation(family, data, pmf, truth, clip, price=price))
        distances = 0.5 * np.abs(pmf - truth).sum(axis=1)
        likely = family.counts(data).sum(axis=0) @ np.log(np.maximum(pmf, 1e-12)).T
        found["not private, likelihood"].append(distances[np.argmax(likely)])
        found["nearest member"].append(distances.min())
        for size, errors in many.items():
            more = people(rng, truth, size, m)
            errors.append(expected_variation(family, more, pmf, truth, Clip.none(m)))
    mean = {name: float(np.mean(values)) for name, values in found.items()}
    setting = f"200 densities, n={n}, m={m}, epsilon 1, {runs} worlds"
    yield f"TV among {setting}: ours, by votes", mean["ours: votes"], 0.02, "<="
    for name in list(mean)[1:]:
        yield f"  {name}", mean[name], None, ""
    printed = mean["group privacy as published (tau = m)"] / mean["ours: votes"]
    yield "group privacy as published / ours", printed, 4.0, ">="
    tight = mean["group privacy, sensitivity as it is"]
    yield "group privacy at its true sensitivity / ours", tight / mean["ours: votes"], 4.0, ">="
    # What the records themselves allow: no choice of these people's goes beyond.
    yield (
        "  the same for likelihood without privacy",
        tight / mean["not private, likelihood"],
        None,
        "",
    )
    enough = [size for size, errors in many.items() if np.mean(errors) <= mean["ours: votes"]]
    users = min(enough, default=400) / n
    yield (
        "users that group privacy at its true sensitivity needs / ours, at least",
        users,
        4.0,
        ">=",
    )


def selection_time_lines():
    rng = np.random.default_rng(0)
    truth, pmf = densities(rng, 2000)
    family, data = DiscreteFamily(pmf), people(rng, truth, 50, 64)
    counts = family.counts(data).astype(float)
    inside = (family.masses[0][:, None] > family.masses.T).astype(float)
    product = np.empty((len(counts), family.size))

    def bare():
        # One set for all members and one result: all of it stays in the cache, which flatters it.
        for _ in range(family.size):
            np.matmul(counts, inside, out=product)

    fit, vote, multiply = best_times(
        lambda: HypothesisSelector(family).fit(data),
        lambda: HypothesisSelector(family, clip=Votes()).fit(data),
        bare,
        repetitions=5 if FULL else 3,
    )
    yield "2,000 densities: whole fit / bare pairwise matrix product", fit / multiply, 3.0, "<="
    yield "  by votes", vote / multiply, 3.0, "<="
    yield "  seconds of the fit", fit, None, ""


def cover_lines():
    truth = np.array([0.45, 0.3, 0.15, 0.1])
    cover, runs = simplex_cover(4, 0.5), 20 if FULL else 6
    pmf = cover.masses / cover.steps
    found, laplace = [], []
    for run in range(runs):
        rng = np.random.default_rng(run)
        data = people(rng, truth, 50, 64)
        losses = cover.worst(cover.tally(data, Clip(0.5)))
        scale = 2 * Clip(0.5).sensitivity(cover.unit, Relation.REPLACE)
        # 1771 members: the exponential mechanism's law, which errs a little more.
        weights = np.exp(-(losses - losses.min()) / scale)
        found.append(weights @ (0.5 * np.abs(pmf - truth).sum(axis=1)) / weights.sum())
        shares = np.bincount(data.X[:, 0].astype(int), minlength=4) / 3200
        noisy = np.maximum(shares + rng.laplace(0, 2 / 50, 4), 0)
        laplace.append(0.5 * np.abs(noisy / noisy.sum() - truth).sum())
    yield "TV by a cover (k=4, 1771 members), n=50, m=64", float(np.mean(found)), None, ""
    yield "  Laplace on the shares", float(np.mean(laplace)), None, ""


def audit_lines():
    alphabets = [
        ((0, 0, 0), (1, 0, 0), (9, 0, 0)),
        ((0, 0, 0), (2, 0, -2), (0, 3, 3)),
        ((5, 0, 0), (0, 5, 0), (0, 0, 5)),
    ]
    worst, worlds = 0.0, 0
    for n, reach, width in [(9, 1, 3), (10, 1, 3), (17, 2, 3), (5, 1, 2), (8, 1, 2), (10, 2, 2)]:
        for scale in (8.0, 30.0, 70.0, 200.0, 600.0) if FULL else (8.0, 70.0, 200.0):
            for alphabet in alphabets:
                records = tuple(dict.fromkeys(each[:width] for each in alphabet))
                if len(records) < 2:
                    continue
                convert = CertifiedItemToUser(
                    base=Base(BaseKind.EXPONENTIAL, scale=scale),
                    n_users=n,
                    width=width,
                    bound=100,
                    delta=0.5,
                    reach=reach,
                )
                world = SmallWorld(records=records, n_users=n, ordered=False)
                law = lambda users, convert=convert: convert.law(np.array(users))  # noqa: E731
                found = audit_exactly(law, world, convert.guarantee)
                worst = max(worst, found.delta / float(convert.stable.limit.tail))
                worlds += 1
    yield f"{worlds} exhaustive audits: largest delta / P[R = 0]", worst, 1.0 + 1e-9, "<="


def converter_time_lines():
    rng = np.random.default_rng(0)
    for name, scores in [
        ("counts of 64 records", rng.binomial(64, 0.3, (1000, 50))),
        ("counts of 10^6 records", rng.binomial(10**6, 0.3, (1000, 50))),
    ]:
        table = differences(scores, BaseKind.EXPONENTIAL)
        gaps = rng.permutation(table.astype(float).ravel())
        # The hardest graphs lie between "all alike" and "all different".
        middle = float(np.quantile(table, 0.999))
        convert = CertifiedItemToUser(
            base=Base(BaseKind.EXPONENTIAL, scale=middle * 800),
            n_users=1000,
            width=50,
            bound=10**6,
        )
        release, sort = best_times(
            lambda c=convert, s=scores: c.release(s), lambda g=gaps: np.sort(g)
        )
        yield f"n=1000, 50 scores ({name}): release / sort of distances", release / sort, 30.0, "<="
        yield "  seconds of the release", release, None, ""


def greedy_lines():
    before, after = jump_graphs()
    greedy = abs(int(greedy_cover(before).sum()) - int(greedy_cover(after).sum()))
    relaxed = abs(half_integral_cover(before).value - half_integral_cover(after).value)
    yield "one user moves the greedy cover by", greedy, 3, "=="
    yield "one user moves the relaxed cover by (at most)", relaxed, 1, "<="


def generalisation_lines():
    def law(sample):
        points, labels = np.asarray(sample).T
        errors = ((points[:, None] >= np.arange(16)) != labels[:, None]).sum(axis=0)
        weights = np.exp(-0.05 * (errors - errors.min()))
        return weights / weights.sum()

    values = [(x, y) for x in range(16) for y in (0, 1)]
    chances = [(0.9 if (x >= 8) == bool(y) else 0.1) / 16 for x, y in values]
    for n in (25, 100, 400):
        lab = PerfectGeneralisation(law=law, values=values, probabilities=chances, records=n)
        found = lab.radius(beta=0.05, delta=0.0, repetitions=2000 if FULL else 300, random_state=0)
        bound = calibrated_radius(epsilon=0.1, records=n, outputs=16, beta=0.05)
        yield f"16 thresholds, epsilon .1, n={n}: eps' at beta .05", found, bound, "<="
        printed = published_radius(epsilon=0.1, delta=1e-6, records=n, beta=0.05)[0]
        yield f"  calibrated {bound:.2f}, published (capped by group privacy)", printed, None, ""


def crossover_lines():
    """From how many records a user on the converter needs less noise a user than group privacy."""
    yield (
        "crossover by formula (constants 1), records a user",
        crossover_records(epsilon=1.0, delta=1e-6),
        4231,
        "==",
    )
    rng, n, reach = np.random.default_rng(0), 1000, smallest_reach(0.5, 1e-6)
    m = 10**6
    scores = rng.binomial(m, 0.5, (n, 50))
    widest = float(differences(scores, BaseKind.EXPONENTIAL).max())
    # Noise over the number of users summed; it grows with sqrt(m), group privacy's 2 m / n with m.
    cover = 4 * 8 * reach * widest / (n - 8 * reach)
    yield "certified, 50 scores: crossover, records", m * (cover * n / (2 * m)) ** 2, None, ""
    # One difference: the smallest closeness at which nobody has to go.
    values = scores[:, 1] - scores[:, 0]
    low, high = 0, 10**12
    while high - low > 1:
        middle = (low + high) // 2
        alike = certify_by_sorting(values, closeness_squared=middle**2, reach=reach)
        low, high = (low, middle) if alike.distance == 0 else (middle, high)
    one = 4 * high / (n - 4 * reach)
    yield "certified, one difference: crossover, records", m * (one * n / (2 * m)) ** 2, None, ""
    # A clip of sqrt(m) on each user's scores costs 2 x 2 sqrt(m) and sums everybody.
    clipped = 4 * math.sqrt(m) / n
    yield "certified, one difference: noise / that of clipped scores", one / clipped, None, ""
    yield "certified, 50 scores: noise / that of clipped scores", cover / clipped, None, ""
    yield (
        "users set aside at (1, 1e-6): published",
        4 * deletion_reach(epsilon=1.0, delta=1e-6),
        None,
        "",
    )
    yield "  certified, several scores", 8 * reach, None, ""
    yield "  certified, one difference", 4 * reach, None, ""
    yield (
        "item-level epsilon at m=10^4 by formula",
        item_to_user(epsilon=1.0, delta=1e-6, records=10**4)[0],
        None,
        "",
    )


PARTS = [
    selection_lines,
    selection_time_lines,
    cover_lines,
    audit_lines,
    converter_time_lines,
    greedy_lines,
    generalisation_lines,
    crossover_lines,
]


def keeps(figure, goal, sign):
    if goal is None:
        return True
    return figure <= goal if sign == "<=" else figure >= goal if sign == ">=" else figure == goal


def main():
    missed = 0
    for part in PARTS:
        for name, figure, goal, sign in part():
            kept = keeps(figure, goal, sign)
            missed += not kept
            stated = (
                "" if goal is None else f"   (goal {sign} {goal:.4g}){'' if kept else '  MISSED'}"
            )
            print(f"{name}: {figure:.4g}{stated}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
