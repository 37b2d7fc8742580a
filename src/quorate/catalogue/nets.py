"""Neural networks by private training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from quorate.catalogue.answers import NOT_ASKED, Answer, way
from quorate.catalogue.checks import ROUTE, are_numbers
from quorate.catalogue.descriptor import Descriptor, Target, Wish
from quorate.catalogue.examples import labelled, measured
from quorate.catalogue.options import number, whole

__all__ = ["DESCRIPTORS"]

_OPTIONS: dict[str, Callable[[str], Any]] = {
    "hidden": whole,
    "records_per_step": whole,
    "steps": whole,
    "batch_rate": number,
    "learning_rate": number,
    "checkpoint": str,
}
_SMALL = {"epsilon": 4.0, "steps": 2, "hidden": 2, "progress": False}


def _bounds_and_classes(wish: Wish) -> dict[str, Any]:
    return {"bounds": wish.bounds(), "classes": wish.classes}


def _bounds_and_target(wish: Wish) -> dict[str, Any]:
    lower, upper = wish.ranges((str(wish.target),))
    return {"bounds": wish.bounds(), "target_bounds": (lower[0], upper[0])}


def _fits(model: Any) -> bool:
    from quorate.nets.small import small_size

    # Files hold numbers: a network of one's own is code, and only its weights are saved.
    if model.module is not None:
        return False
    size = small_size(
        features=len(model.columns_), outputs=model._outputs(), hidden=int(model.hidden)
    )
    width = 0 if model.bounds is None else len(model.columns_)
    return are_numbers(model.weights_, (size,)) and are_numbers(model.limits_, (2, width))


def _finish_classifier(model: Any) -> None:
    import numpy as np

    model.classes_ = np.asarray(model._check_classes())


def _say(estimator: Any, features: tuple[str, ...], _: Any) -> Answer:
    size = len(estimator.weights_)
    return Answer(
        sentence=(
            f"A neural network of {size} weights with {estimator.hidden} hidden units beside a "
            f"linear path, on {len(features)} features."
        ),
        caption="Network",
        header=("part", "size"),
        rows=(
            ("features", str(len(features))),
            ("hidden units", str(estimator.hidden)),
            ("weights", str(size)),
        ),
        error=f"A network has no error that noise alone explains. {NOT_ASKED}",
        way=way(estimator),
        values={"weights": size, "hidden": int(estimator.hidden)},
    )


def _sizes(model: Any, wish: Wish) -> dict[str, Any]:
    return {"dimension": len(wish.coding.names), "hidden": int(model.hidden)}


DESCRIPTORS = (
    Descriptor(
        path="quorate.nets.classification:NeuralClassifier",
        task="net",
        sentence="A neural network with probabilities, for two or more classes.",
        releases={"weights_": ("ndarray",), "limits_": ("ndarray",), "algorithm_": ROUTE},
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
        releases={"weights_": ("ndarray",), "limits_": ("ndarray",), "algorithm_": ROUTE},
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
