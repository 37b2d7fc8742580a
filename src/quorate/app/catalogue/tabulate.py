"""Descriptors: counts, sums, means over records and tables by group."""

from __future__ import annotations

import math
from typing import Any

from quorate.app.catalogue.answers import Answer, algorithm_sentence, figure
from quorate.app.catalogue.checks import ROUTE, are_numbers
from quorate.app.catalogue.descriptor import Descriptor, Wish
from quorate.app.catalogue.examples import numbers
from quorate.app.catalogue.left_out import (
    Weighing,
    people_counts_moved,
    record_cap,
    sum_cap,
    sums_moved,
    table_cap,
    tables_moved,
)
from quorate.app.catalogue.options import data, number, one_of, whole
from quorate.exceptions import ParameterError

__all__ = ["DESCRIPTORS"]

_ERROR = ("quorate.tabulate.user_count:StatisticError",)
_STATISTICS = {"visits": "count", "people": "users"}


def _bounds(wish: Wish) -> dict[str, Any]:
    return {"bounds": wish.ranges()}


def _nothing(_: Wish) -> dict[str, Any]:
    return {}


def _count_fits(count: Any) -> bool:
    return math.isfinite(count.count_) and bool(count.error_.bound > 0)


def _are_bounds(value: Any, shape: tuple[int, ...]) -> bool:
    # Infinite where too few people were seen to bound what a cap cuts.
    right = value.dtype.kind == "f" and value.shape == shape
    return bool(right and (value >= 0.0).all())


def _columns_fit(attribute: str) -> Any:
    def fits(estimator: Any) -> bool:
        shape = (estimator.n_features_in_,)
        found, bound = getattr(estimator, attribute), estimator.error_.bound
        return are_numbers(found, shape) and _are_bounds(bound, shape)

    return fits


def _noise(error: Any) -> str:
    return (
        f"With a probability of {error.confidence:.0%} each number is within its bound. "
        f"What the bounds cover: {error.covers[0].lower()}{error.covers[1:]}"
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
        algorithm=algorithm_sentence(estimator),
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
            algorithm=algorithm_sentence(estimator),
            values={
                word: dict(zip(features, found, strict=True)),
                "bound": dict(zip(features, bounds, strict=True)),
                "confidence": estimator.error_.confidence,
            },
        )

    return say


def _table_parameters(wish: Wish) -> dict[str, Any]:
    """Return the parameters of a table from options in text form.

    ``by`` names columns. ``keys`` is a list, for several columns a dictionary of lists, or the word
    popular. ``statistics`` are pairs such as ``visits=count`` or ``average=mean:price``.
    """
    from quorate.tabulate.requests import as_request

    options = wish.options
    by = data(options["by"]) if "by" in options else None
    if "statistics" not in options:
        raise ParameterError(
            "A table needs statistics, such as --count visits --sum price on the command line, or "
            "the option statistics=visits=count,price=sum."
        )
    statistics = {name: _asked(text) for name, text in _pairs(options["statistics"]).items()}
    found: dict[str, Any] = {
        "by": None if by is None else [str(name) for name in by],
        "keys": _keys_of(options.get("keys")),
        "statistics": statistics,
    }
    if "where" in options:
        found["where"] = _conditions_of(data(options["where"]))
    values = as_request(statistics).values
    if values:
        lower, upper = wish.ranges(values)
        pairs = zip(lower, upper, strict=True)
        found["bounds"] = dict(zip(values, pairs, strict=True))
    return found


def _asked(text: Any) -> Any:
    """Return ``mean:price`` as a pair, ``quantile:price:0.9`` as a triple, others unchanged."""
    if not isinstance(text, str) or ":" not in text:
        return text
    statistic, _, column = text.partition(":")
    if statistic != "quantile":
        return column, statistic
    column, _, fraction = column.rpartition(":")
    return column, statistic, number(fraction)


def _pairs(text: str) -> dict[str, Any]:
    found = data(text)
    if not isinstance(found, dict):
        raise ParameterError(f"Expected statistics such as visits=count,price=sum, got {text!r}.")
    return found


def _keys_of(text: str | None) -> Any:
    if text is None or text == "popular":
        return text
    return data(text)


def _conditions_of(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ParameterError(f"Expected conditions such as city=Bonn, got {found!r}.")
    return {name: _range_or_labels(held) for name, held in found.items()}


def _range_or_labels(held: Any) -> Any:
    """Return ``{"from": 18, "to": 30}`` as the range (18, 30); other values unchanged."""
    if isinstance(held, dict) and held and set(held) <= {"from", "to"}:
        return held.get("from"), held.get("to")
    return held


def _table_columns(wish: Wish) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from quorate.data.by_group.conditions import as_conditions
    from quorate.tabulate.requests import as_request

    asked = _table_parameters(wish)
    conditions = as_conditions(asked.get("where"))
    labels = [*(asked["by"] or ()), *(c.column for c in conditions if not c.is_range)]
    numbers = [
        *as_request(asked["statistics"]).values,
        *(c.column for c in conditions if c.is_range),
    ]
    return tuple(dict.fromkeys(labels)), tuple(dict.fromkeys(numbers))


def _table_fits(table: Any) -> bool:
    from quorate.tabulate.requests import as_request

    request = as_request(table.statistics)
    by = table.table_.column_names[: len(table.keys_[0]) if table.keys_ else 0]
    shape, sound = (len(table.keys_),), True
    for name in (each.name for each in request.requests):
        found, error, bound = (
            table.table_[f"{name}{end}"].to_numpy(zero_copy_only=False)
            for end in ("", "_error", "_bound")
        )
        sound &= are_numbers(found, shape) and are_numbers(error, shape)
        sound &= _are_bounds(bound, shape)
    rows = tuple(zip(*(table.table_[name].to_pylist() for name in by), strict=True))
    return sound and (rows == table.keys_ or not by)


def _say_table(estimator: Any, _: tuple[str, ...], __: Any) -> Answer:
    from quorate.tabulate.requests import as_request

    request, table = as_request(estimator.statistics), estimator.table_
    names = [each.name for each in request.requests]
    by = [name for name in table.column_names if name not in _all_of(names)]
    rows = []
    for row in table.to_pylist():
        cells = [str(row[name]) for name in by]
        for each in request.requests:
            cells += _said(row[each.name], row[f"{each.name}_bound"], each.statistic)
        rows.append(tuple(cells))
    header = [*by, *(text for name in names for text in (name, "bound"))]
    sentence = f"{', '.join(names)} {'by ' + ', '.join(by) if by else 'of all records'}."
    if estimator.error_.smallest_key is not None:
        sentence += (
            " The row without a name is about all other keys; a key of "
            f"{estimator.error_.smallest_key} people or more would have had its own."
        )
    if estimator.error_.behind is not None:
        sentence += (
            " The largest groups, and a last row about all others. Each is at most "
            f"{estimator.error_.behind} smaller than the group that truly has its place."
        )
    return Answer(
        sentence=sentence,
        caption=f"A row for each {' and '.join(by) if by else 'table'}",
        header=tuple(header),
        rows=tuple(rows),
        error=_noise(estimator.error_),
        algorithm=algorithm_sentence(estimator),
        values={"rows": table.to_pylist(), "confidence": estimator.error_.confidence},
    )


def _said(value: float, bound: float, statistic: str) -> list[str]:
    """Return a cell and its bound in words; "at most ..." for a count that may be zero."""
    if statistic in ("count", "users") and value <= bound:
        return [f"at most {figure(max(0.0, value) + bound)}", figure(bound)]
    return [figure(value), figure(bound)]


def _table_sizes(estimator: Any, _: Wish) -> dict[str, Any]:
    """Return the number of groups and of summed columns."""
    from quorate.tabulate.requests import as_request

    request = as_request(estimator.statistics)
    planned = request.counted and not (request.people or request.medians or estimator.largest)
    if not planned or estimator.cap != "auto":
        raise ParameterError("A plan is about counts, sums and means, their cap found privately.")
    return {"size": len(estimator.keys_), "dimension": len(request.added_up)}


def _count_sizes(estimator: Any, _: Wish) -> dict[str, Any]:
    if estimator.of != "users":
        raise ParameterError("A plan of a count is about people; records are planned as a sum.")
    return {}


def _sum_sizes(estimator: Any, _: Wish) -> dict[str, Any]:
    if estimator.cap != "auto":
        raise ParameterError("A plan is about sums whose cap is found privately.")
    return {"dimension": len(estimator.sum_)}


def _record_mean_sizes(estimator: Any, _: Wish) -> dict[str, Any]:
    if estimator.cap != "auto":
        raise ParameterError("A plan is about means whose cap is found privately.")
    return {"dimension": len(estimator.mean_)}


def _yes_or_no(text: str) -> bool:
    return one_of("yes", "no")(text) == "yes"


def _phrases_parameters(wish: Wish) -> dict[str, Any]:
    """Return the parameters of phrases from options in text form.

    ``column`` is the column of texts; ``lengths`` is a number such as 2, or a list such as 1,2,4.
    """
    options = wish.options
    found: dict[str, Any] = {"column": options["column"]}
    if "lengths" in options:
        lengths = [whole(part) for part in options["lengths"].split(",")]
        found["lengths"] = lengths[0] if len(lengths) == 1 else tuple(lengths)
    if "where" in options:
        found["where"] = _conditions_of(data(options["where"]))
    return found


def _phrases_columns(wish: Wish) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from quorate.data.by_group.conditions import as_conditions

    asked = _phrases_parameters(wish)
    conditions = as_conditions(asked.get("where"))
    labels = [asked["column"], *(c.column for c in conditions if not c.is_range)]
    numbers = [c.column for c in conditions if c.is_range]
    return tuple(dict.fromkeys(labels)), tuple(dict.fromkeys(numbers))


def _phrases_fit(phrases: Any) -> bool:
    return all(isinstance(each, str | int) for each in phrases.phrases_)


def _say_phrases(estimator: Any, _: tuple[str, ...], __: Any) -> Answer:
    found = list(estimator.phrases_)
    what = {"texts": "texts", "words": "phrases", "characters": "pieces of text"}[estimator.of]
    error = estimator.error_
    return Answer(
        sentence=f"{len(found)} {what} that many people use.",
        caption=f"{what.capitalize()} that many people use",
        header=(what,),
        rows=tuple((str(each),) for each in found),
        error=f"{str(error).capitalize()}.",
        algorithm=algorithm_sentence(estimator),
        values={"phrases": found, "people": dict(error.people), "confidence": error.confidence},
    )


def _phrases_sizes(estimator: Any, _: Wish) -> dict[str, Any]:
    from quorate.tabulate.phrases import as_lengths

    lengths = as_lengths(estimator.lengths, estimator.of)
    return {"size": estimator.most, "dimension": len(lengths)}


def _all_of(names: list[str]) -> set[str]:
    return {f"{name}{end}" for name in names for end in ("", "_error", "_bound")}


DESCRIPTORS = (
    Descriptor(
        path="quorate.tabulate.user_count:UserCount",
        task="count",
        sentence="The number of users, or of their records.",
        releases={"count_": ("float",), "error_": _ERROR, "algorithm_": ROUTE},
        parameters=_nothing,
        options={"of": one_of("users", "records"), "cap": number},
        fits=_count_fits,
        answer=_say_count,
        weighing=Weighing.ROWS,
        moved_by=people_counts_moved,
        row_cap=record_cap,
        plans=("quorate.planning.tasks.everyday:CountTask",),
        sizes=_count_sizes,
        example=lambda: numbers(2),
    ),
    Descriptor(
        path="quorate.tabulate.user_sum:UserSum",
        task="sum",
        sentence="The sum of each column over all records.",
        releases={"sum_": ("ndarray",), "error_": _ERROR, "algorithm_": ROUTE},
        parameters=_bounds,
        options={"cap": number},
        fits=_columns_fit("sum_"),
        answer=_say_columns("sum", "The sum of each column over all records.", "sum_"),
        weighing=Weighing.ROWS,
        moved_by=sums_moved,
        row_cap=sum_cap,
        plans=("quorate.planning.tasks.everyday:SumTask",),
        sizes=_sum_sizes,
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
        weighing=Weighing.ROWS,
        row_cap=record_cap,
        plans=("quorate.planning.tasks.everyday:RecordMeanTask",),
        sizes=_record_mean_sizes,
        example=lambda: numbers(2, bounds=(0.0, 9.0)),
    ),
    Descriptor(
        path="quorate.tabulate.user_table:UserTable",
        task="table",
        sentence="Counts of records and users, sums, means and quantiles by group.",
        releases={
            "table_": ("Table",),
            "keys_": ("tuple",),
            "error_": ("quorate.tabulate.released:TableError",),
            "algorithm_": ROUTE,
        },
        parameters=_table_parameters,
        frame=_table_columns,
        options={
            "by": data,
            "keys": _keys_of,
            "statistics": _pairs,
            "where": data,
            "cap": number,
            "groups": number,
            "others": _yes_or_no,
            "levels": _yes_or_no,
            "largest": whole,
            "largest_by": one_of("users", "count"),
        },
        asks={"statistics": "visits=count,price=sum,average=mean:price"},
        fits=_table_fits,
        answer=_say_table,
        weighing=Weighing.ROWS,
        moved_by=tables_moved,
        row_cap=table_cap,
        plans=("quorate.planning.tasks.table:TableTask",),
        sizes=_table_sizes,
        example=lambda: numbers(2, statistics=_STATISTICS, delta=1e-6),
    ),
    Descriptor(
        path="quorate.tabulate.phrases:PopularPhrases",
        task="phrases",
        sentence="Texts, words or phrases that many users use, without a list of them.",
        releases={
            "phrases_": ("tuple",),
            "error_": ("quorate.tabulate.phrases:PhrasesError",),
            "algorithm_": ROUTE,
        },
        parameters=_phrases_parameters,
        frame=_phrases_columns,
        options={
            "column": str,
            "of": one_of("texts", "words", "characters"),
            "lengths": data,
            "start": _yes_or_no,
            "most": whole,
            "where": data,
        },
        asks={"column": "column"},
        fits=_phrases_fit,
        answer=_say_phrases,
        plans=("quorate.planning.tasks.phrases:PhrasesTask",),
        sizes=_phrases_sizes,
        example=lambda: numbers(1, most=10),
    ),
)
