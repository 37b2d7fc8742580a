"""What can be predicted: classes of rules, without privacy and without noise.

``base`` the contract · ``booleans`` patterns and transforms · ``thresholds`` (and the ordered
public domains) ``stumps`` ``intervals`` ``rectangles`` ``points`` numeric rules · ``conjunctions``
(and disjunctions) ``decision_lists`` ``parities`` ``halfspaces`` Boolean rules · ``tables``
``classifiers`` any finite list · ``mistake_events`` mistakes over huge ordered classes ·
``labelings`` a class on a finite domain · ``dimensions`` VC and Littlestone, exactly.
"""

from __future__ import annotations

from quorate.concepts.base import (
    MAX_ENUMERATED,
    Concept,
    ConceptClass,
    Constant,
    OrderedConceptClass,
)
from quorate.concepts.boolean.conjunctions import Conjunctions, Disjunctions, Literals
from quorate.concepts.boolean.decision_lists import DecisionList, DecisionLists
from quorate.concepts.boolean.parities import Parities, Parity
from quorate.concepts.classifiers import Classifier, Classifiers
from quorate.concepts.dimensions import littlestone_dimension, vc_dimension
from quorate.concepts.labelings import Labelings, distinct_labelings
from quorate.concepts.masked_parities import MaskedParity
from quorate.concepts.mistake_events import BestRanges, MistakeEvents
from quorate.concepts.numeric.halfspaces import Halfspace
from quorate.concepts.numeric.intervals import IntervalConcept, Intervals
from quorate.concepts.numeric.points import Point, PointFunctions
from quorate.concepts.numeric.rectangles import Rectangle, Rectangles
from quorate.concepts.numeric.stumps import Stump, Stumps
from quorate.concepts.numeric.thresholds import CutOff, Direction, OrderedDomain, Thresholds
from quorate.concepts.tables import FiniteTable, TableRow

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
