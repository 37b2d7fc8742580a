"""What can be predicted: classes of rules, without privacy and without noise.

``base`` the contract · ``domains`` ordered public domains · ``thresholds`` cut-offs ·
``mistake_events`` mistakes over huge ordered classes.
"""

from __future__ import annotations

from quorate.concepts.base import Concept, ConceptClass, Constant, OrderedConceptClass
from quorate.concepts.domains import OrderedDomain
from quorate.concepts.mistake_events import BestRanges, MistakeEvents
from quorate.concepts.thresholds import CutOff, Direction, Thresholds

__all__ = [
    "BestRanges",
    "Concept",
    "ConceptClass",
    "Constant",
    "CutOff",
    "Direction",
    "MistakeEvents",
    "OrderedConceptClass",
    "OrderedDomain",
    "Thresholds",
]
