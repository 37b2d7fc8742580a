"""User-level private learning via correlated sampling
===================================================

Theorems 1, 2 and 3 of Ghazi, Kumar, Manurangsi (2021) in one figure: how many users are needed to
find the one of :math:`2^d` hypotheses on which most of them agree.
"""

# %%
# **Three models of trust.** With a trusted server and a delta the number of users does not depend
# on d. With pure privacy it is of order d / epsilon. Without a trusted server it is of order d /
# epsilon squared.

import matplotlib.pyplot as plt
import numpy as np

from quorate.core.guarantees import Relation
from quorate.learners.concepts import FiniteTable
from quorate.local import local_choice
from quorate.local.randomizers.bucket_counts import BucketCounts
from quorate.local.reliability import users_needed
from quorate.local.shuffling.count_noise import histogram_bound
from quorate.papers.queries.algorithms import ConjunctionQueries
from quorate.papers.stability import ListLearner, ListRule, QueryRule
from quorate.papers.stability.correlated_sampling import agreement_probability, choose_together
from quorate.papers.stability.shared_seed import SharedSeed
from quorate.papers.stability.stable_learner import choose_selection

EPSILON, SHARE = 1.0, 0.8
BITS = (8, 16, 32, 64, 96, 128, 192, 256)


def votes(bits, *, delta):
    """Return the votes that a trusted server needs, over the share of users who agree."""
    found = choose_selection(
        size=2**bits, seeds=1, epsilon=EPSILON, delta=delta, relation=Relation.REPLACE
    )
    return found.votes / SHARE


pure = [votes(bits, delta=0.0) for bits in BITS]
stable = [min(votes(bits, delta=1e-6), votes(256, delta=1e-6)) for bits in BITS]
local = [users_needed(candidates=2**bits, epsilon=EPSILON, plurality=SHARE) for bits in BITS]
for bits, *users in zip(BITS, stable, pure, local, strict=True):
    print(f"2^{bits}: delta 1e-6 {users[0]:.0f}, pure {users[1]:.0f}, local {users[2]} users")

# %%
# **The hardest case, run once**: nobody is trusted, and there are :math:`2^{256}` hypotheses.

rng = np.random.default_rng(0)
named = [int.from_bytes(rng.bytes(32), "little") for _ in range(local[-1] // 5)]
keys = np.array([named[0]] * (local[-1] - len(named)) + named, dtype=object)
chosen = local_choice(keys, candidates=2**256, epsilon=EPSILON)
right = chosen.key == named[0]
print(f"{len(keys)} users, no trusted server: the {'right' if right else 'wrong'} one was found")

# %%

plt.loglog(BITS, local, "o-", label="no trusted server (Theorem 2)")
plt.loglog(BITS, pure, "s-", label="trusted server, delta = 0 (Theorem 3)")
plt.loglog(BITS, stable, "^-", label="trusted server, delta = 1e-6 (Theorem 1)")
plt.title("Users needed if four of five agree, epsilon = 1", fontsize=10)
plt.xticks(BITS, BITS)
plt.minorticks_off()
plt.xlabel("bits d of a hypothesis")
plt.ylabel("users")
plt.ylim(top=3e4)  # room for the legend
plt.legend()
plt.show()

# %%
# **How often users agree.** Two users whose samples give them different laws draw the same
# hypothesis with the same seed: Theorem 8 promises 1 - 2 TV, the exponential race does better.

p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
drawn = [choose_together(np.log([p, q]), np.arange(3), SharedSeed(s)) for s in range(500)]
same = np.mean([len(set(pair)) == 1 for pair in drawn])
exact = agreement_probability(dict(enumerate(p)), dict(enumerate(q)))
print(f"distance 0.1: {same:.3f} agree, exactly {exact:.3f}; Theorem 8 says at least 0.8")

# %%
# **The paper's constants.** Records by Theorem 20 and Lemma 32 and the error of shuffled counts by
# Lemma 37, beside the calibrated ones.

learner = ListLearner(FiniteTable(np.tri(8, 7, -1)), alpha=0.05)
printed = ListRule.published(learner, chunk=64, eta=0.09, beta=0.05).records_needed
print(f"lists: {printed:.0e} records by Theorem 20, {ListRule(learner).records_needed} calibrated")
rule = QueryRule(ConjunctionQueries(4, tolerance=0.05), fresh=True)
known = {"tolerance": 0.05, "beta": 0.1}
records = rule.records_needed(constants="published", **known), rule.records_needed(**known)
print(f"conjunctions: {records[0]:.0e} records by Lemma 32, {records[1]:.0e} by Hoeffding")
counts = BucketCounts(buckets=64, users=100, epsilon=1.0, delta=1e-6, complement=True)
wide = histogram_bound(1.0, 1e-6, beta=0.05, users=100)
print(f"shuffled counts: off by {wide:.0f} by Lemma 37, by {counts.histogram_bound(0.05)} exactly")
