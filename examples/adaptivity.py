"""What a second round of questions is worth
=========================================

Masked parity with statistical queries. Two rounds of queries learn every rule exactly, against any
oracle that keeps its tolerance. One round does not: an oracle that keeps the same tolerance can
hide a bit that decides half of the predictions.
"""

# %%
# **Four learners, every rule.** The blinding oracle answers within the tolerance and hides as much
# as it can.

import matplotlib.pyplot as plt
import numpy as np

from quorate.learners.concepts.masked_parities import (
    MaskedParity,
    all_masked_parities,
    masked_inputs,
)
from quorate.papers.queries import Population
from quorate.papers.queries.local_masked_parity import LocalMaskedParity
from quorate.papers.queries.masked_parity import (
    BlindingOracle,
    GuessingMaskedParityQueries,
    MaskedParityQueries,
    WeakMaskedParityQueries,
    visible_rules,
)

FEATURES = 4
learners = {
    "two rounds": MaskedParityQueries(FEATURES),
    "one round, never guesses": WeakMaskedParityQueries(FEATURES),
    "one round, 4 guesses": GuessingMaskedParityQueries(FEATURES, guesses=4),
    "one round, 8 guesses": GuessingMaskedParityQueries(FEATURES, guesses=8),
}
rules = list(all_masked_parities(FEATURES))
inputs = masked_inputs(FEATURES)
errors = {}
for name, learner in learners.items():
    found = [learner.run(BlindingOracle(rule)) for rule in rules]
    errors[name] = np.array(
        [Population.uniform(inputs, r).error(h) for r, h in zip(rules, found, strict=True)]
    )
    exact, bad = np.sum(errors[name] == 0), np.sum(errors[name] >= 0.25)
    print(
        f"{name}: {learner.max_queries} queries, {exact} of {len(rules)} rules learned exactly, "
        f"{bad} with an error of 1/4 or more"
    )
best = max(
    len(visible_rules(query, FEATURES))
    for query in GuessingMaskedParityQueries(FEATURES, guesses=2**FEATURES).queries()
)
print(f"The best single query sees {best} of {len(rules)} rules.")

# %%
# **Without a trusted server.** The same two rounds work when every user adds noise on their own
# device.

rule = MaskedParity(FEATURES, secret=0b1010, flip=1)
users = Population.uniform(inputs, rule, records=16).draw(3000, random_state=0)
local = LocalMaskedParity(FEATURES, epsilon=1.0).learn(users, random_state=0)
print(f"3,000 users with their own noise, epsilon = 1: {local}")
print(f"The truth: {rule}")
if local != rule:
    print("The learned rule is wrong: with this noise that happens in some runs.")

# %%

shares = {
    name: [np.mean(e == 0), np.mean((e > 0) & (e < 0.25)), np.mean(e >= 0.25)]
    for name, e in errors.items()
}
figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
left = np.zeros(len(shares))
for place, label in enumerate(("exact", "error below 1/4", "error of 1/4 or more")):
    width = [100 * each[place] for each in shares.values()]
    axes.barh(list(shares), width, left=left, label=label)
    left += width
axes.invert_yaxis()
axes.set(xlabel="% of all rules", title="Rules learned against the blinding oracle")
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
