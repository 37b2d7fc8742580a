"""User-level privacy with few examples per user
=============================================

Theorem 4 of Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang (2023). Suppose that some rule of the
class makes no mistake. Then a pure private learner needs of order d / (epsilon min(1, alpha m))
users with m records each, where d is the logarithm of the size of the class. At a fixed number of
users the error therefore falls as 1/m, faster than the square root that averaging gives.
"""

# %%
# **The experiment.** 100 users, a cut-off among 4,096, epsilon 1, the mean of 20 runs.

import matplotlib.pyplot as plt
import numpy as np

from quorate.core.account.account import Account
from quorate.core.by_hand import rows_by_hand
from quorate.core.guarantees import Pure
from quorate.learners import ConceptLearner
from quorate.learners.concepts import Thresholds
from quorate.mechanisms import ChooseBest
from quorate.papers.conversion import SubsampledMechanism
from quorate.papers.conversion.perfect_generalisation import (
    calibrated_radius,
    from_samples_to_simulator,
    from_simulator_to_samples,
    group_radius,
    perfect_radius,
    published_radius,
)
from quorate.papers.conversion.translation import (
    crossover_records,
    local_deletion,
    one_record_each,
    solved_users,
    subsampled,
    super_users,
)

SIZE, USERS, EPSILON, RUNS = 2**12, 100, 1.0, 20
RECORDS = (1, 2, 4, 8, 16, 32)


def error(records, algorithm, seed):
    """Return the error of a rule that was learned from users with so many records each."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, SIZE, USERS * records)
    learner = ConceptLearner(Thresholds(0, SIZE - 1), EPSILON, algorithm=algorithm, records=records)
    learner.fit(x[:, None], x >= SIZE // 3, users=np.repeat(np.arange(USERS), records))
    every = np.arange(SIZE)
    return float(np.mean(learner.predict(every[:, None]) != (every >= SIZE // 3)))


# %%
# **Two scores.** In the paper a user counts against a rule when *any* of the records is
# misclassified. The classical score counts the share of misclassified records.

scores = {
    "any_mistake": "a user counts once (Theorem 4)",
    "mistakes": "share of all records, as in 2011",
}
for algorithm, label in scores.items():
    kept = [np.mean([error(m, algorithm, run) for run in range(RUNS)]) for m in RECORDS]
    print(f"{label}:", ", ".join(f"m={m}: {k:.4f}" for m, k in zip(RECORDS, kept, strict=True)))
    plt.loglog(RECORDS, kept, "o-", label=label)
    if algorithm == "any_mistake":
        plt.loglog(RECORDS, [kept[0] / m for m in RECORDS], "k--", label="1 / m")
plt.title(f"Mean error of a cut-off among {SIZE}, {USERS} users, epsilon = 1", fontsize=10)
plt.xticks(RECORDS, RECORDS)
plt.minorticks_off()
plt.xlabel("records m of a user")
plt.ylabel("error")
plt.legend()
plt.show()

# %%
# **From records to users.** The other half of the paper turns a method that hides records into one
# that hides users. The first step: its answers on two samples are close (Theorems 13 and 31, Lemma
# 30, Theorem 17).

method = {"epsilon": 1e-6, "records": 10**6, "beta": 0.05}
radii = {
    "Theorem 13": published_radius(delta=1e-9, **method)[0],
    "McDiarmid, 16 outputs": calibrated_radius(outputs=16, **method),
    "group privacy": group_radius(epsilon=1e-6, records=10**6),
}
print("two samples:", ", ".join(f"e^{radius:.2f} by {name}" for name, radius in radii.items()))
near = perfect_radius(epsilon=1e-6, delta=1e-9, records=100, beta=0.05)
there = from_samples_to_simulator(epsilon=0.1, delta=1e-6, beta=1e-4)
back = from_simulator_to_samples(epsilon=0.1, delta=1e-6, beta=1e-4)
print(f"Theorem 31: {near[0]:.1e}; Lemma 30: fails {there[0]:.2g} one way, {back[0]:.2g} the other")
crowd = {"epsilon": 1e-8, "delta": 1e-12, "users": 1000, "records": 10**5, "beta": 0.01}
print(f"any 64 of 1,000 users left out: {local_deletion(deleted=64, **crowd)[0]:.1e}")

# %%
# **What it costs.** Theorem 10, solved for a task of 1,030 records, beside two simple ways, and a
# sample that costs less than the whole (Theorem 7).

budget = {"epsilon": 1.0, "delta": 1e-6}
print(f"Theorem 10 beats group privacy from {crossover_records(**budget)} records on")
solved = solved_users(lambda e, d: 30 / e + 1000, records=50, **budget)
simple = one_record_each(1030.0), super_users(1030.0, records=50)
print(
    f"{solved} users of 50 records; {simple[0]:.0f} with one each, {simple[1]} hidden from nobody"
)


def choose(rows, account):
    """Return the label that most records of a sample have, privately."""
    return ChooseBest(candidates=2, epsilon=1.0).release(rows.tally(2), account=account)


poll = SubsampledMechanism(run=choose, inner=Pure(1.0), sample=10, population=1000)
records = rows_by_hand(np.repeat([0, 1], [300, 700]))
said = poll.release(records, account=Account.open(epsilon=0.1))
formula = subsampled(epsilon=1.0, rate=0.01)[0]
print(
    f"10 of 1,000 records: cost {poll.guarantee.epsilon:.4f}, Theorem 7 {formula:.4f}, say {said}"
)
