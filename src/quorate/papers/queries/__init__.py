"""Learning from statistical queries, and the local model in which it is the same thing (K5 to K9).

``statistical`` queries, algorithms, oracles · ``algorithms`` learners that only ask · ``oracles``
who answers · ``populations`` known distributions · ``simulate`` local answers by queries ·
``masked_parity`` what two rounds learn and one cannot, ``local_masked_parity`` the same by users'
own noise.
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
