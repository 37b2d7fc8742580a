"""What a second round of questions is worth
=========================================

What a second round of questions is worth: masked parity with statistical queries.

Two rounds learn every rule exactly, against any oracle that keeps its tolerance. One round does
not: an oracle that keeps the same tolerance can hide a bit that decides half of the predictions.
The same two rounds work when every user adds the noise on their own device.

Run ``python examples/adaptivity.py``.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from quorate.concepts.masked_parities import MaskedParity, all_masked_parities, masked_inputs
from quorate.queries import Population
from quorate.queries.local_masked_parity import LocalMaskedParity
from quorate.queries.masked_parity import (
    BlindingOracle,
    GuessingMaskedParityQueries,
    MaskedParityQueries,
    WeakMaskedParityQueries,
    visible_rules,
)

FEATURES = 4
LEARNERS = {
    "two rounds": MaskedParityQueries(FEATURES),
    "one round, never guesses": WeakMaskedParityQueries(FEATURES),
    "one round, guesses 4 parities": GuessingMaskedParityQueries(FEATURES, guesses=4),
    "one round, guesses 8 parities": GuessingMaskedParityQueries(FEATURES, guesses=8),
}


def main() -> None:
    """Run all learners on all rules against the blinding oracle, then one of them locally."""
    console = Console()
    rules = list(all_masked_parities(FEATURES))
    inputs = masked_inputs(FEATURES)
    table = Table("learner", "queries", "rules learned exactly", "rules with error of 1/4 or more")
    for name, learner in LEARNERS.items():
        found = [learner.run(BlindingOracle(rule)) for rule in rules]
        errors = np.array(
            [Population.uniform(inputs, r).error(h) for r, h in zip(rules, found, strict=True)]
        )
        exact, bad = int(np.sum(errors == 0)), int(np.sum(errors >= 0.25))
        table.add_row(name, str(learner.max_queries), f"{exact} of {len(rules)}", str(bad))
    console.print(table)
    best = max(
        len(visible_rules(query, FEATURES))
        for query in GuessingMaskedParityQueries(FEATURES, guesses=2**FEATURES).queries()
    )
    console.print(f"The best single query sees {best} of {len(rules)} rules.")

    rule = MaskedParity(FEATURES, secret=0b1010, flip=1)
    users = Population.uniform(inputs, rule, records=16).draw(3000, random_state=0)
    local = LocalMaskedParity(FEATURES, epsilon=1.0).learn(users, random_state=0)
    console.print(f"3,000 users with their own noise, epsilon = 1: {local}")
    console.print(f"The truth: {rule}")


if __name__ == "__main__":
    main()
