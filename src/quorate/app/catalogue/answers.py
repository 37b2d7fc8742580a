"""The answer of a fit: a sentence and a table for people, and plain data for programs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["NOT_ASKED", "Answer", "algorithm_sentence", "figure"]

NOT_ASKED = "Training error is not reported: it would cost budget. Use private_score."


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was released, for people and for programs.

    Attributes
    ----------
    sentence : str
    caption : str
        What the rows contain.
    header : tuple of str
    rows : tuple of tuples
    error : str
        How large the error may be, in one sentence.
    algorithm : str
        Which algorithm was used, and why.
    values : dict
        The answer as plain data.

    Examples
    --------
    >>> said = Answer(sentence="The mean.", caption="Mean", header=("feature", "mean"),
    ...               rows=(("age", "41"),), error="", algorithm="clip.", values={"age": 41.0})
    >>> said.rows[0]
    ('age', '41')
    """

    sentence: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    error: str
    algorithm: str
    values: dict[str, Any]


def figure(value: float) -> str:
    """Format a number for reading: five significant digits, with thousands separators.

    >>> figure(1234567.891), figure(0.000123456), figure(2**40)
    ('1,234,567.9', '0.00012346', '1,099,511,627,776')
    """
    if isinstance(value, int) or (math.isfinite(value) and value == round(value, 0)):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 10_000 else f"{value:,.5g}"


def algorithm_sentence(estimator: Any) -> str:
    """Return the algorithm of a fit and the reason for it, as a sentence.

    >>> from types import SimpleNamespace
    >>> from quorate.estimators import Route
    >>> algorithm_sentence(SimpleNamespace(algorithm_=Route(name="clip", reason="too few users")))
    'clip: too few users.'
    """
    text = str(estimator.algorithm_)
    return text if text.endswith(".") else f"{text}."
