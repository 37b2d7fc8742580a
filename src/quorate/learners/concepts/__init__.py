"""Classes of rules, without privacy and without noise.

``base`` the contract · ``booleans`` patterns and transforms · ``thresholds`` (and the ordered
public domains) ``stumps`` ``intervals`` ``rectangles`` ``points`` numeric rules · ``conjunctions``
(and disjunctions) ``decision_lists`` ``parities`` ``halfspaces`` Boolean rules · ``tables``
``classifiers`` any finite list · ``mistake_events`` mistakes over huge ordered classes ·
``labelings`` a class on a finite domain · ``dimensions`` VC and Littlestone, exactly.
"""

from __future__ import annotations

from quorate.learners.concepts.base import (
    MAX_ENUMERATED,
    Concept,
    ConceptClass,
    Constant,
    OrderedConceptClass,
)
from quorate.learners.concepts.boolean.conjunctions import Conjunctions, Disjunctions, Literals
from quorate.learners.concepts.boolean.decision_lists import DecisionList, DecisionLists
from quorate.learners.concepts.boolean.parities import Parities, Parity
from quorate.learners.concepts.classifiers import Classifier, Classifiers
from quorate.learners.concepts.dimensions import littlestone_dimension, vc_dimension
from quorate.learners.concepts.labelings import Labelings, distinct_labelings
from quorate.learners.concepts.masked_parities import MaskedParity
from quorate.learners.concepts.mistake_events import BestRanges, MistakeEvents
from quorate.learners.concepts.numeric.halfspaces import Halfspace
from quorate.learners.concepts.numeric.intervals import IntervalConcept, Intervals
from quorate.learners.concepts.numeric.points import Point, PointFunctions
from quorate.learners.concepts.numeric.rectangles import Rectangle, Rectangles
from quorate.learners.concepts.numeric.stumps import Stump, Stumps
from quorate.learners.concepts.numeric.thresholds import (
    CutOff,
    Direction,
    OrderedDomain,
    Thresholds,
)
from quorate.learners.concepts.tables import FiniteTable, TableRow

__all__ = [
    "MAX_ENUMERATED",
    "BestRanges",
    "Classifier",
    "Classifiers",
    "Concept",
    "ConceptClass",
    "Conjunctions",
    "Constant",
    "CutOff",
    "DecisionList",
    "DecisionLists",
    "Direction",
    "Disjunctions",
    "FiniteTable",
    "Halfspace",
    "IntervalConcept",
    "Intervals",
    "Labelings",
    "Literals",
    "MaskedParity",
    "MistakeEvents",
    "OrderedConceptClass",
    "OrderedDomain",
    "Parities",
    "Parity",
    "Point",
    "PointFunctions",
    "Rectangle",
    "Rectangles",
    "Stump",
    "Stumps",
    "TableRow",
    "Thresholds",
    "distinct_labelings",
    "littlestone_dimension",
    "vc_dimension",
]
