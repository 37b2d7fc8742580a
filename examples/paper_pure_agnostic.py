"""Improved bounds for pure private agnostic learning
==================================================

Theorem 5.2 of Li, Wang, Ye (2024). A cut-off over a domain is learned with pure user-level privacy,
whatever the labels are, and the domain costs only a logarithm of its size.
"""

# %%
# **The experiment.** One label in ten is wrong, and the domain grows from :math:`2^8` to
# :math:`2^{60}` points.

import matplotlib.pyplot as plt
import numpy as np

from quorate.learners.private_threshold import PrivateThreshold
from quorate.learners.scores.more_than import published_separation, separation

EPSILON, RECORDS, RUNS = 1.0, 20, 10
BITS = (8, 20, 32, 44, 60)
USERS = (100, 400, 1600)


def excess(bits, users, seed):
    """Return how much more the learned cut-off errs than the best one."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2**bits, users * RECORDS)
    wrong = rng.random(len(x)) < 0.1
    learner = PrivateThreshold(EPSILON, domain=(0, 2**bits - 1), records=RECORDS)
    learner.fit(x, (x >= 2**bits // 3) ^ wrong, users=np.repeat(np.arange(users), RECORDS))
    # Between the two cut-offs the rules differ, and there one label in ten speaks for the wrong
    # one.
    return 0.8 * abs(learner.threshold_ / 2**bits - 1 / 3)


# %%

for users in USERS:
    kept = [np.mean([excess(bits, users, run) for run in range(RUNS)]) for bits in BITS]
    print(f"{users} users:", ", ".join(f"2^{b}: {k:.3f}" for b, k in zip(BITS, kept, strict=True)))
    plt.semilogy(BITS, kept, "o-", label=f"{users} users with {RECORDS} records")
plt.title(
    "Excess error of a pure private cut-off, one label in ten wrong, epsilon = 1", fontsize=10
)
plt.xlabel("bits of the domain")
plt.ylabel("mean excess over the best error")
plt.ylim(bottom=5e-5)  # room for the legend
plt.legend(loc="lower left")
plt.show()

# %%
# **More than t mistakes.** What tells a rule of error 0.10 from one of 0.15: the share of users
# with more than t mistakes, for the best t by exact tails, beside the K/700 of Lemma 4.1.

for m in (1, 16, 256):
    t, gap = separation(m, 0.1, 0.15)
    proved = published_separation(m, 0.1, 0.15) / 700
    print(f"records {m}, mistakes above {t}: shares differ by {gap:.3f}, proved {proved:.5f}")
