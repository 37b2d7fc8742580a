"""Learners that use statistical queries only.

``conjunctions`` (and disjunctions) · ``halfspaces`` · ``intervals`` in one round;
``decision_lists`` in one round per rule; ``separators`` in some rounds per error found; masked
parities in two rounds (:mod:`quorate.papers.queries.masked_parity`).
"""

from __future__ import annotations

from quorate.papers.queries.algorithms.conjunctions import (
    ConjunctionQueries,
    DisjunctionQueries,
    UniformConjunctionQueries,
)
from quorate.papers.queries.algorithms.decision_lists import DecisionListQueries
from quorate.papers.queries.algorithms.halfspaces import HalfspaceQueries
from quorate.papers.queries.algorithms.intervals import IntervalQueries
from quorate.papers.queries.algorithms.separators import SeparatorQueries

__all__ = [
    "ConjunctionQueries",
    "DecisionListQueries",
    "DisjunctionQueries",
    "HalfspaceQueries",
    "IntervalQueries",
    "SeparatorQueries",
    "UniformConjunctionQueries",
]
