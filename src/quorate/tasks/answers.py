"""What a fitted estimator says, in words, rows and plain data; releases only, never the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from quorate.concepts.numeric.thresholds import CutOff
from quorate.exceptions import ParameterError

__all__ = ["Answer", "answer", "figure"]

_NOT_ASKED = (
    "How often the model errs is itself a question about people; it was not asked, so it is not "
    "answered. The forecast says how much worse than the best one it may be."
)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was released, for people and for programs.

    Attributes
    ----------
    sentence : str
    caption : str
        What the rows show.
    header : tuple of str
    rows : tuple of tuples
    error : str
        How wrong the answer may be, in one sentence.
    way : str
        Which algorithm was taken, and why.
    values : dict
        The same as plain data.
    """

    sentence: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    error: str
    way: str
    values: dict[str, Any]


def figure(value: float) -> str:
    """Write a number for people: five digits that matter, thousands apart.

    >>> figure(1234567.891), figure(0.000123456), figure(2**40)
    ('1,234,567.9', '0.00012346', '1,099,511,627,776')
    """
    if isinstance(value, int) or (math.isfinite(value) and value == round(value, 0)):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 10_000 else f"{value:,.5g}"


def answer(estimator: Any, features: tuple[str, ...], labels: tuple[Any, ...] | None) -> Answer:
    """Describe what ``estimator`` released.

    >>> import numpy as np
    >>> from quorate import PrivateMedian
    >>> ages = np.tile(np.arange(20.0, 60.0), 50)[:, None]
    >>> median = PrivateMedian(epsilon=3.0, bounds=(0.0, 120.0)).fit(ages, users=range(2000))
    >>> print(answer(median, ("age",), None).caption)
    Median over users of each user's median
    """
    name = type(estimator).__name__
    if name not in _ANSWERS:
        raise ParameterError(f"Expected one of {', '.join(_ANSWERS)}, got {name}.")
    return _ANSWERS[name](estimator, features, labels)


def _mean(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    error = estimator.error_
    pairs = list(zip(features, map(float, estimator.mean_), strict=True))
    return Answer(
        sentence="The mean over users of each user's mean record.",
        caption="Mean over users of each user's mean",
        header=("feature", "mean"),
        rows=tuple((name, figure(value)) for name, value in pairs),
        error=(
            f"The privacy noise has a typical length (L2, over all features) of "
            f"{figure(error.standard_error)} and stays below {figure(error.bound)} in "
            f"{error.confidence:.0%} of all runs. That people differ adds the sampling error of "
            "any mean."
        ),
        way=str(estimator.algorithm_),
        values={
            "mean": dict(pairs),
            "standard_error": float(error.standard_error),
            "bound": float(error.bound),
            "confidence": float(error.confidence),
        },
    )


def _median(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    error = estimator.error_
    pairs = list(zip(features, map(float, estimator.median_), strict=True))
    kept = {"median": "median", "mean": "mean", "middle half": "middle half"}[estimator.each_user]
    return Answer(
        sentence="The median over users: half of them lie on either side.",
        caption=f"Median over users of each user's {kept}",
        header=("feature", "median"),
        rows=tuple((name, figure(value)) for name, value in pairs),
        error=(
            f"For each feature at most {figure(error.rank)} users more than half lie on either "
            f"side of the answer, with a probability of {error.confidence:.0%}."
        ),
        way="private quantile: chosen by how few users would want it moved.",
        values={
            "median": dict(pairs),
            "rank_error": float(error.rank),
            "confidence": float(error.confidence),
        },
    )


def _threshold(estimator: Any, features: tuple[str, ...], labels: Any) -> Answer:
    rule = estimator.concept_
    if isinstance(rule, CutOff):
        rule = replace(rule, name=features[0])
    sentence = str(rule)
    if labels is not None:
        sentence += f" (0 means {labels[0]!r}, 1 means {labels[1]!r}.)"
    rows = [("cut-off", figure(estimator.threshold_))]
    if estimator.records_ is not None:
        rows.append(("records of a typical user", str(estimator.records_)))
    return Answer(
        sentence=sentence,
        caption=f"Cut-off on {features[0]}",
        header=("released", "value"),
        rows=tuple(rows),
        error=_NOT_ASKED,
        way=f"{estimator.algorithm_}.",
        values={
            "threshold": estimator.threshold_,
            "rule": sentence,
            "algorithm": estimator.algorithm_.name,
            "reason": estimator.algorithm_.reason,
        },
    )


def _regression(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    pairs = list(zip(features, map(float, estimator.coef_), strict=True))
    constant = float(estimator.intercept_)
    return Answer(
        sentence="A sum of the features, each times its coefficient, and a constant.",
        caption="Coefficients",
        header=("feature", "coefficient"),
        rows=(*((name, figure(value)) for name, value in pairs), ("constant", figure(constant))),
        error=_NOT_ASKED,
        way=f"private descent on users' gradients, {len(estimator.trace_)} steps.",
        values={"coefficients": dict(pairs), "constant": constant},
    )


def _classifier(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    labels = [str(label) for label in estimator.classes_]
    # Two classes share one row of coefficients, which speaks for the second.
    shown = labels if len(estimator.coef_) > 1 else labels[1:]
    rows = [
        (name, *(figure(float(value)) for value in column))
        for name, column in zip(features, estimator.coef_.T, strict=True)
    ]
    rows.append(("constant", *(figure(float(value)) for value in estimator.intercept_)))
    return Answer(
        sentence=f"A linear rule that tells {', '.join(labels)} apart.",
        caption="Coefficients: a positive one speaks for the label above it",
        header=("feature", *shown),
        rows=tuple(rows),
        error=_NOT_ASKED,
        way=f"private descent on users' gradients, {len(estimator.trace_)} steps.",
        values={
            "classes": labels,
            "coefficients": {
                label: dict(zip(features, map(float, row), strict=True))
                for label, row in zip(shown, estimator.coef_, strict=True)
            },
            "constant": dict(zip(shown, map(float, estimator.intercept_), strict=True)),
        },
    )


_ANSWERS: dict[str, Callable[[Any, tuple[str, ...], Any], Answer]] = {
    "HuberRegression": _regression,
    "LinearRegression": _regression,
    "LinearSVC": _classifier,
    "LogisticRegression": _classifier,
    "PrivateMedian": _median,
    "Ridge": _regression,
    "ThresholdLearner": _threshold,
    "UserMean": _mean,
}
