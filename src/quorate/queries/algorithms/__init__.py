"""Learners that ask statistical queries and nothing else.

``conjunctions`` (and disjunctions) · ``halfspaces`` · ``intervals`` in one round;
``decision_lists`` in one round per rule; ``separators`` in some rounds for each error found;
masked parities in two (:mod:`quorate.queries.masked_parity`).
"""

from __future__ import annotations

from quorate.queries.algorithms.conjunctions import (
    ConjunctionQueries,
    DisjunctionQueries,
    UniformConjunctionQueries,
)
from quorate.queries.algorithms.decision_lists import DecisionListQueries
from quorate.queries.algorithms.halfspaces import HalfspaceQueries
from quorate.queries.algorithms.intervals import IntervalQueries
from quorate.queries.algorithms.separators import SeparatorQueries

__all__ = [
    "ConjunctionQueries",
    "DecisionListQueries",
    "DisjunctionQueries",
    "HalfspaceQueries",
    "IntervalQueries",
    "SeparatorQueries",
    "UniformConjunctionQueries",
]
