"""What can we learn privately?
============================

Theorem 3.4 of Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith (2011). Any finite class is
learned privately from O((d + ln 1/beta) max(1/(epsilon alpha), 1/alpha^2)) people with one record
each, where d is the logarithm of the size of the class.
"""

# %%
# **The experiment.** The class grows from 128 to 65,536 cut-offs. The error that nine of ten runs
# keep stays below the bound of the theorem with a constant of one (dashed).

import math

import matplotlib.pyplot as plt
import numpy as np

from quorate.learners import ConceptLearner
from quorate.learners.concepts import Conjunctions, Thresholds
from quorate.learners.parity_plan import published_plan, uniform_plan
from quorate.mechanisms.parity import SolveParity
from quorate.papers.queries import Population, binary_digits, from_binary_digits
from quorate.papers.queries.algorithms import UniformConjunctionQueries
from quorate.papers.queries.oracles import MovedOracle, against_all_signs
from quorate.papers.queries.oracles.local import published_users, users_for_tolerance
from quorate.papers.queries.statistical import StatisticalQuery

EPSILON, BETA, RUNS = 0.25, 0.1, 20
SIZES = (2**7, 2**10, 2**13, 2**16)
PEOPLE = (50, 100, 200, 400, 800)


def error(size, people, seed):
    """Return the error of a rule learned from people with one record each; the best makes none."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, size, people)
    learner = ConceptLearner(Thresholds(0, size - 1), EPSILON, algorithm="mistakes", records=1)
    learner.fit(x[:, None], x >= size // 3, users=np.arange(people))
    every = np.arange(size)
    return float(np.mean(learner.predict(every[:, None]) != (every >= size // 3)))


# %%

for size in SIZES:
    kept = [
        np.quantile([error(size, people, run) for run in range(RUNS)], 1 - BETA)
        for people in PEOPLE
    ]
    shown = ", ".join(f"{people}: {k:.3f}" for people, k in zip(PEOPLE, kept, strict=True))
    print(f"{size:6d} cut-offs: {shown}")
    line = plt.loglog(PEOPLE, kept, "o-", label=f"{size} cut-offs")[0]
    bits = math.log(size + 1) + math.log(1 / BETA)
    theorem = [max(bits / (EPSILON * people), math.sqrt(bits / people)) for people in PEOPLE]
    plt.loglog(PEOPLE, theorem, "--", color=line.get_color(), linewidth=1)
plt.title("Error that 9 of 10 private runs keep (dashed: Theorem 3.4, constant 1)", fontsize=10)
plt.xlabel("people with one record each")
plt.ylabel("error of the learned cut-off")
plt.xticks(PEOPLE, PEOPLE)
plt.minorticks_off()
plt.legend()
plt.show()

# %%
# **The paper's constants.** What the proofs ask for beside what an exact calculation needs: a
# parity of 20 bits (Section 4) and one of eight statistical queries (Lemma 5.6).

printed = published_plan(
    SolveParity(features=20, epsilon=0.5, published=True), alpha=0.1, beta=BETA
)
needed = uniform_plan(SolveParity(features=20, epsilon=0.5), beta=BETA)
print(f"parity of 20 bits: {printed.users} people as published, {needed.users} for fair bits")
known = {"tolerance": 0.05, "epsilon": 1.0, "queries": 8, "beta": BETA}
users = published_users(**known), users_for_tolerance(**known)
print(f"a query within 0.05: {users[0]} people by Lemma 5.6, {users[1]} by randomized response")

# %%
# **Statistical queries.** A learner of conjunctions gives the same rule against every oracle that
# moves its answers by their whole tolerance, and a real-valued query is a few yes-no queries.

people = Population.uniform_cube(3, Conjunctions(3).concept(1 + 9))
print(*set(against_all_signs(UniformConjunctionQueries(3, literals=2), people)))
ones = StatisticalQuery(function=lambda X, y: X.sum(axis=1), tolerance=0.1, high=3.0)
digits = binary_digits(ones)
answers = MovedOracle(people, moves=[-1.0] * len(digits)).answer(digits)
print(f"a mean of 1.5 by {len(digits)} yes-no queries: {from_binary_digits(ones, answers):.2f}")
