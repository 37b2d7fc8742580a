"""Counts, sums, means over records and tables by group."""

from __future__ import annotations

import math
from typing import Any

from quorate.catalogue.answers import Answer, figure, way
from quorate.catalogue.checks import ROUTE, are_numbers
from quorate.catalogue.descriptor import Descriptor, Wish
from quorate.catalogue.examples import numbers
from quorate.catalogue.options import number, one_of

__all__ = ["DESCRIPTORS"]

_ERROR = ("quorate.tabulate.user_count:StatisticError",)
_STATISTICS = {"visits": "count", "people": "users"}


def _bounds(wish: Wish) -> dict[str, Any]:
    return {"bounds": wish.ranges()}


def _nothing(_: Wish) -> dict[str, Any]:
    return {}


def _count_fits(count: Any) -> bool:
    return math.isfinite(count.count_) and bool(count.error_.bound > 0)


def _columns_fit(attribute: str) -> Any:
    def fits(estimator: Any) -> bool:
        shape = (estimator.n_features_in_,)
        values = getattr(estimator, attribute), estimator.error_.bound
        return all(are_numbers(each, shape) for each in values)

    return fits


def _noise(error: Any) -> str:
    return (
        f"With a probability of {error.confidence:.0%} each number is within its bound of what "
        "people hold up to the cap; what a few of them hold beyond it is missing."
    )


def _say_count(estimator: Any, _: tuple[str, ...], __: Any) -> Answer:
    what = "people who hold a record" if estimator.of == "users" else "records"
    count, bound = float(estimator.count_), float(estimator.error_.bound)
    return Answer(
        sentence=f"How many {what} there are.",
        caption=f"Number of {what}",
        header=("count", "bound"),
        rows=((figure(count), figure(bound)),),
        error=_noise(estimator.error_),
        way=way(estimator),
        values={"count": count, "bound": bound, "confidence": estimator.error_.confidence},
    )


def _say_columns(word: str, sentence: str, attribute: str) -> Any:
    def say(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
        found = getattr(estimator, attribute).tolist()
        bounds = estimator.error_.bound.tolist()
        triples = list(zip(features, found, bounds, strict=True))
        return Answer(
            sentence=sentence,
            caption=f"{word.capitalize()} of each column",
            header=("feature", word, "bound"),
            rows=tuple((name, figure(value), figure(bound)) for name, value, bound in triples),
            error=_noise(estimator.error_),
            way=way(estimator),
            values={
                word: dict(zip(features, found, strict=True)),
                "bound": dict(zip(features, bounds, strict=True)),
                "confidence": estimator.error_.confidence,
            },
        )

    return say


DESCRIPTORS = (
    Descriptor(
        path="quorate.tabulate.user_count:UserCount",
        task="count",
        sentence="How many people there are, or how many records they hold.",
        releases={"count_": ("float",), "error_": _ERROR, "algorithm_": ROUTE},
        parameters=_nothing,
        options={"of": one_of("users", "records"), "cap": number},
        fits=_count_fits,
        answer=_say_count,
        example=lambda: numbers(2),
    ),
    Descriptor(
        path="quorate.tabulate.user_sum:UserSum",
        task="sum",
        sentence="The sum of each column over all that people hold.",
        releases={"sum_": ("ndarray",), "error_": _ERROR, "algorithm_": ROUTE},
        parameters=_bounds,
        options={"cap": number},
        fits=_columns_fit("sum_"),
        answer=_say_columns("sum", "The sum of each column over all records.", "sum_"),
        example=lambda: numbers(2, bounds=(0.0, 9.0)),
    ),
    Descriptor(
        path="quorate.tabulate.record_mean:RecordMean",
        task="record-mean",
        sentence="The mean of each column over all records.",
        releases={
            "mean_": ("ndarray",),
            "count_": ("float",),
            "error_": _ERROR,
            "algorithm_": ROUTE,
        },
        parameters=_bounds,
        options={"cap": number},
        fits=_columns_fit("mean_"),
        answer=_say_columns("mean", "The mean of each column over all records.", "mean_"),
        example=lambda: numbers(2, bounds=(0.0, 9.0)),
    ),
    Descriptor(
        path="quorate.tabulate.user_table:UserTable",
        without_task="its keys and statistics are dictionaries",
        sentence="Counts, people, sums, means and medians by group.",
        releases={
            "table_": ("Table",),
            "keys_": ("tuple",),
            "error_": ("quorate.tabulate.released:TableError",),
            "algorithm_": ROUTE,
        },
        example=lambda: numbers(2, statistics=_STATISTICS, delta=1e-6),
    ),
)
