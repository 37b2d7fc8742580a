"""A released rule as a picture: its predictions over the plane, or the features it depends on.

Everything is computed from the released rule and from public ranges. A rule on one number is drawn
as a line with a segment for each prediction. For a rule on Boolean features the influence of each
feature is drawn: the share of the possible inputs on which the prediction changes if that feature
is flipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.app.reports.figures import Drawing, draw_named_bars, draw_segments
from quorate.core.public_randomness import public_generator

__all__ = ["influences", "rule_drawing", "segments"]

# machine: of up to so many features all 2^12 inputs are tried; of more, as many are drawn.
_ALL_INPUTS = 12


def rule_drawing(estimator: Any, features: Sequence[str]) -> Drawing | None:
    """Return the picture of a released rule; None for other forms of rules."""
    rule = estimator.concept_
    reach = _public_range(estimator)
    if len(features) == 1 and reach is not None:
        parts = segments(rule, *reach)
        return draw_segments(parts, title="The rule", x_label=features[0])
    if len(features) > 1 and _is_boolean(rule):
        shares = influences(rule, len(features))
        label = "share of inputs that it decides"
        return draw_named_bars(tuple(features), shares, title="The rule", x_label=label)
    return None


def segments(rule: Any, lower: float, upper: float) -> list[tuple[float, float, int]]:
    """Return the segments of a line from ``lower`` to ``upper``.

    Each has the prediction of the rule on it.

    >>> from quorate.learners.concepts.numeric.thresholds import CutOff
    >>> segments(CutOff(cut=30, above=True), 0, 100)
    [(0, 30, 0), (30, 100, 1)]
    """
    inner = sorted(cut for cut in _cuts(rule) if lower < cut < upper)
    ends = [lower, *inner, upper]
    starts = np.array([[float(start)] for start in ends[:-1]])
    labels = [int(label) for label in rule.predict(starts)]
    return [(a, b, label) for (a, b), label in zip(pairwise(ends), labels, strict=True)]


def influences(rule: Any, n_features: int) -> tuple[float, ...]:
    """Return for each Boolean feature the share of inputs on which flipping it matters.

    >>> from quorate.learners.concepts import Parities
    >>> influences(Parities(3).concept(0b101), 3)
    (1.0, 0.0, 1.0)
    """
    rows = _inputs(n_features)
    before = rule.predict(rows)
    shares = []
    for place in range(n_features):
        flipped = rows.copy()
        flipped[:, place] = 1.0 - flipped[:, place]
        shares.append(float(np.mean(rule.predict(flipped) != before)))
    return tuple(shares)


def _inputs(n_features: int) -> NDArray[np.float64]:
    if n_features <= _ALL_INPUTS:
        numbers = np.arange(2**n_features)[:, None] >> np.arange(n_features)
        return (numbers & 1).astype(np.float64)
    drawn = public_generator(0).random((2**_ALL_INPUTS, n_features)) < 0.5
    return drawn.astype(np.float64)


def _cuts(rule: Any) -> list[float]:
    """Return where a rule on one number changes its prediction."""
    from quorate.learners.concepts.numeric.intervals import IntervalConcept
    from quorate.learners.concepts.numeric.points import Point
    from quorate.learners.concepts.numeric.thresholds import CutOff

    if isinstance(rule, CutOff):
        return [rule.cut]
    if isinstance(rule, IntervalConcept):
        return [end for end in (rule.inside.lower, rule.inside.upper) if end is not None]
    if isinstance(rule, Point):
        value = rule.domain.value(rule.place)
        return [value, value + rule.domain.step]
    return []


def _public_range(estimator: Any) -> tuple[float, float] | None:
    domain = getattr(estimator, "domain", None)
    if isinstance(domain, tuple):
        return domain
    domain = getattr(getattr(estimator, "concepts", None), "domain", None)
    return None if domain is None else (domain.lower, domain.value(domain.points - 1))


def _is_boolean(rule: Any) -> bool:
    """Return whether a rule treats its features as booleans."""
    from quorate.learners.concepts.boolean.conjunctions import Literals
    from quorate.learners.concepts.boolean.decision_lists import DecisionList
    from quorate.learners.concepts.boolean.parities import Parity

    return isinstance(rule, Literals | DecisionList | Parity)
