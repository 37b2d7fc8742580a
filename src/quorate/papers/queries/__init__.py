"""Statistical queries, and the local model, which can learn the same classes (K5 to K9).

``statistical`` queries, algorithms, oracles · ``algorithms`` learners that use only queries ·
``oracles`` that answer them · ``populations`` known distributions · ``simulate`` local answers
simulated by queries · ``masked_parity`` a class that two rounds learn and one round cannot,
``local_masked_parity`` the same in the local model.
"""

from __future__ import annotations

from quorate.papers.queries.populations import Population
from quorate.papers.queries.statistical import (
    NonAdaptive,
    OneRound,
    QueryAlgorithm,
    QueryOracle,
    Reduction,
    StatisticalQuery,
    binary_digits,
    from_binary_digits,
)

__all__ = [
    "NonAdaptive",
    "OneRound",
    "Population",
    "QueryAlgorithm",
    "QueryOracle",
    "Reduction",
    "StatisticalQuery",
    "binary_digits",
    "from_binary_digits",
]
