"""Descriptors: linear models by private descent, and the search for their best settings."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quorate.app.catalogue.answers import NOT_ASKED, Answer, algorithm_sentence, figure
from quorate.app.catalogue.checks import CHOICE, ROUTE, are_numbers
from quorate.app.catalogue.descriptor import Descriptor, Example, Target, Wish
from quorate.app.catalogue.examples import labelled, measured
from quorate.app.catalogue.options import number, whole

__all__ = ["DESCRIPTORS"]

_OPTIONS: dict[str, Callable[[str], Any]] = {
    "penalty": number,
    "steps": whole,
    "batch_rate": number,
}
_ERROR = ("quorate.models.coefficients:CoefficientError",)
_SMALL = {"epsilon": 4.0, "steps": 2, "progress": False}


def _bounds_and_classes(wish: Wish) -> dict[str, Any]:
    return {"bounds": wish.bounds(), "classes": wish.classes}


def _bounds_and_target(wish: Wish) -> dict[str, Any]:
    lower, upper = wish.ranges((str(wish.target),))
    return {"bounds": wish.bounds(), "target_bounds": (lower[0], upper[0])}


def _regression_fits(model: Any) -> bool:
    return are_numbers(model.coef_, (len(model.columns_),)) and math.isfinite(model.intercept_)


def _classifier_fits(model: Any) -> bool:
    places = len(model.classes_)
    rows = 1 if places == 2 else places
    shape = (rows, len(model.columns_))
    return are_numbers(model.coef_, shape) and are_numbers(model.intercept_, (rows,))


def _finish_classifier(model: Any) -> None:
    import numpy as np

    model.classes_ = np.asarray(model._check_classes())


def _rows(table: Any) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the header and the rows of a table of coefficients."""
    found = table.to_arrow()
    columns = [column.to_pylist() for column in found.columns]
    rows = tuple((name, *map(figure, values)) for name, *values in zip(*columns, strict=True))
    return tuple(found.column_names), rows


def _said(estimator: Any) -> str:
    """Return the stated error of the coefficients, and a note on the training error."""
    said = str(estimator.error_)
    return f"{said[0].upper()}{said[1:]} {NOT_ASKED}"


def _standard_errors(table: Any) -> dict[str, dict[str, float]]:
    """Return standard errors by output and name; empty if none are stated."""
    if table.errors is None:
        return {}
    return dict(replace(table, values=table.errors).to_dict())


def _say_regression(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    table = replace(estimator.coefficients_, features=features)
    header, rows = _rows(table)
    return Answer(
        sentence="A linear model: each feature times its coefficient, plus a constant.",
        caption="Coefficients",
        header=header,
        rows=rows,
        error=_said(estimator),
        algorithm=algorithm_sentence(estimator),
        values={
            "coefficients": {name: table[name] for name in features},
            "constant": table["constant"],
            "standard_errors": _standard_errors(table).get("coefficient"),
        },
    )


def _say_classifier(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    labels = [str(label) for label in estimator.classes_]
    table = replace(estimator.coefficients_, features=features)
    header, rows = _rows(table)
    return Answer(
        sentence=f"A linear classifier with the classes {', '.join(labels)}.",
        caption="Coefficients; a positive one makes the label above it more likely",
        header=header,
        rows=rows,
        error=_said(estimator),
        algorithm=algorithm_sentence(estimator),
        values={
            "classes": labels,
            "coefficients": {
                label: {name: table[name, label] for name in features} for label in table.outputs
            },
            "constant": {label: table["constant", label] for label in table.outputs},
            "standard_errors": _standard_errors(table) or None,
        },
    )


def _sizes(_: Any, wish: Wish) -> dict[str, Any]:
    return {"dimension": len(wish.coding.names)}


def _regression(
    name: str, task: str, sentence: str, *, plans: tuple[str, ...] = (), **options: Any
) -> Descriptor:
    return Descriptor(
        path=f"quorate.models.regression:{name}",
        task=task,
        sentence=sentence,
        releases={
            "coef_": ("ndarray",),
            "intercept_": ("float",),
            "error_": _ERROR,
            "algorithm_": ROUTE,
        },
        passing=("trace_",),
        target=Target.NUMBER,
        parameters=_bounds_and_target,
        options=_OPTIONS | options,
        fits=_regression_fits,
        answer=_say_regression,
        plans=plans,
        sizes=_sizes,
        example=lambda: measured(2, target_bounds=(0.0, 9.0), bounds=(0.0, 9.0), **_SMALL),
    )


def _classifier(
    name: str,
    task: str,
    sentence: str,
    *,
    most_classes: float,
    plans: tuple[str, ...] = (),
    **options: Any,
) -> Descriptor:
    return Descriptor(
        path=f"quorate.models.classification:{name}",
        task=task,
        sentence=sentence,
        releases={
            "coef_": ("ndarray",),
            "intercept_": ("ndarray",),
            "error_": _ERROR,
            "algorithm_": ROUTE,
        },
        follows=("classes_",),
        passing=("trace_",),
        target=Target.LABEL,
        most_classes=most_classes,
        named_classes=True,
        parameters=_bounds_and_classes,
        options=_OPTIONS | options,
        fits=_classifier_fits,
        finish=_finish_classifier,
        answer=_say_classifier,
        plans=plans,
        sizes=_sizes,
        example=lambda: labelled(2, bounds=(0.0, 9.0), **_SMALL),
    )


def _search_example() -> Example:
    from quorate.models.classification import LogisticRegression

    model = LogisticRegression(bounds=(0.0, 9.0), steps=2, progress=False)
    return labelled(2, estimator=model, param_grid={"penalty": [0.0, 1.0]}, epsilon=50.0)


DESCRIPTORS = (
    _classifier(
        "LogisticRegression",
        "logistic",
        "A linear rule with probabilities, for two or more classes.",
        most_classes=math.inf,
        plans=("quorate.planning.tasks.models:LogisticTask",),
    ),
    _classifier(
        "LinearSVC",
        "svc",
        "A linear rule with a wide margin.",
        most_classes=2,
        plans=("quorate.planning.tasks.other_models:MarginTask",),
        width=number,
    ),
    _regression(
        "LinearRegression",
        "linear",
        "A linear prediction of a number by least squares.",
        plans=("quorate.planning.tasks.models:LinearTask",),
    ),
    _regression(
        "Ridge",
        "ridge",
        "Least squares with a penalty on large coefficients.",
        plans=("quorate.planning.tasks.other_models:RidgeTask",),
    ),
    _regression(
        "HuberRegression",
        "huber",
        "A linear regression that is robust to outliers in the target.",
        plans=("quorate.planning.tasks.other_models:HuberTask",),
        width=number,
    ),
    Descriptor(
        path="quorate.models.grid_search:PrivateGridSearch",
        without_task="its grid is a dictionary of Python values",
        sentence="The best settings of a model by a private score, and the model fitted with them.",
        releases={
            "best_index_": ("int",),
            "best_params_": ("dict",),
            "error_": CHOICE,
            "algorithm_": ROUTE,
        },
        follows=("best_estimator_", "classes_"),
        target=Target.LABEL,
        most_classes=math.inf,
        example=_search_example,
    ),
)
