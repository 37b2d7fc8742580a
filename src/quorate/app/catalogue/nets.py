"""Descriptors: neural networks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from quorate.app.catalogue.answers import NOT_ASKED, Answer, algorithm_sentence
from quorate.app.catalogue.checks import ROUTE, are_numbers
from quorate.app.catalogue.descriptor import Descriptor, Target, Wish
from quorate.app.catalogue.examples import labelled, measured
from quorate.app.catalogue.options import number, whole

__all__ = ["DESCRIPTORS"]

_OPTIONS: dict[str, Callable[[str], Any]] = {
    "hidden": whole,
    "records_per_step": whole,
    "steps": whole,
    "batch_rate": number,
    "learning_rate": number,
    "checkpoint": str,
}
_RELEASES: dict[str, tuple[str, ...]] = {
    "weights_": ("ndarray",),
    "frozen_": ("str",),
    "limits_": ("ndarray",),
    "shape_": ("tuple",),
    "algorithm_": ROUTE,
}
_SMALL = {"epsilon": 4.0, "steps": 2, "hidden": 2, "progress": False}


def _bounds_and_classes(wish: Wish) -> dict[str, Any]:
    return {"bounds": wish.bounds(), "classes": wish.classes}


def _bounds_and_target(wish: Wish) -> dict[str, Any]:
    lower, upper = wish.ranges((str(wish.target),))
    return {"bounds": wish.bounds(), "target_bounds": (lower[0], upper[0])}


def _fits(model: Any) -> bool:
    columns = len(model.columns_)
    if math.prod(model.shape_) != columns:
        return False
    network, _ = model._opened_network(columns, model._outputs(), model.shape_)
    width = 0 if model.bounds is None else columns
    return are_numbers(model.weights_, network.initial.shape) and are_numbers(
        model.limits_, (2, width)
    )


def _finish_classifier(model: Any) -> None:
    import numpy as np

    model.classes_ = np.asarray(model._check_classes())


def _say(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    size = len(estimator.weights_)
    inside = f"with {estimator.hidden} hidden units beside a linear path, "
    inputs = "1 feature" if len(features) == 1 else f"{len(features)} features"
    return Answer(
        sentence=(
            f"A neural network of {size} weights "
            f"{inside if estimator.module is None else ''}on {inputs}."
        ),
        caption="Network",
        header=("part", "size"),
        rows=(
            ("features", str(len(features))),
            ("hidden units", str(estimator.hidden)),
            ("weights", str(size)),
        ),
        error=f"A network has no error that noise alone explains. {NOT_ASKED}",
        algorithm=algorithm_sentence(estimator),
        values={"weights": size, "hidden": int(estimator.hidden)},
    )


def _sizes(model: Any, wish: Wish) -> dict[str, Any]:
    return {"dimension": len(wish.coding.names), "hidden": int(model.hidden)}


DESCRIPTORS = (
    Descriptor(
        path="quorate.nets.classification:NeuralClassifier",
        task="net",
        sentence="A neural network with probabilities, for two or more classes.",
        releases=_RELEASES,
        code=("module",),
        follows=("classes_",),
        passing=("history_",),
        target=Target.LABEL,
        most_classes=math.inf,
        named_classes=True,
        parameters=_bounds_and_classes,
        options=_OPTIONS,
        fits=_fits,
        finish=_finish_classifier,
        answer=_say,
        plans=("quorate.planning.tasks.nets:NetTask",),
        sizes=_sizes,
        example=lambda: labelled(2, bounds=(0.0, 9.0), **_SMALL),
    ),
    Descriptor(
        path="quorate.nets.regression:NeuralRegressor",
        task="net-number",
        sentence="A neural network that predicts a number.",
        releases=_RELEASES,
        code=("module",),
        passing=("history_",),
        target=Target.NUMBER,
        parameters=_bounds_and_target,
        options=_OPTIONS,
        fits=_fits,
        answer=_say,
        plans=("quorate.planning.tasks.nets:NetNumberTask",),
        sizes=_sizes,
        example=lambda: measured(2, target_bounds=(0.0, 9.0), bounds=(0.0, 9.0), **_SMALL),
    ),
)
