"""Synthetic people."""

from __future__ import annotations

import itertools
import math
from typing import Any

from quorate.app.catalogue.answers import Answer, algorithm_sentence, figure
from quorate.app.catalogue.checks import ROUTE
from quorate.app.catalogue.descriptor import Descriptor, Wish
from quorate.app.catalogue.examples import numbers
from quorate.app.catalogue.options import whole
from quorate.exceptions import QuorateError

__all__ = ["DESCRIPTORS"]

_MODEL = (
    "quorate.synth.released:SyntheticModel",
    "quorate.synth.columns:SynthColumn",
    "quorate.synth.tree:Tree",
    "quorate.synth.tree:Forest",
    "quorate.synth.released:PairError",
)
_ERROR = ("quorate.synth.released:SynthError",)
_REPEATS = ("tuple", "quorate.synth.released:RepeatRate")


def _parameters(wish: Wish) -> dict[str, Any]:
    numbers = [name for name in wish.features if name not in wish.categories]
    return {"bounds": wish.bounds() if numbers else None}


def _fits(estimator: Any) -> bool:
    try:
        asked = [column.name for column in estimator.model_.checked().columns]
    except (QuorateError, ValueError, TypeError, IndexError, AttributeError):
        return False
    pairs = [pair.columns for pair in estimator.error_.pairs]
    return (
        set(estimator.categories or {}) <= set(asked)
        and [rate.column for rate in estimator.repeats_] == asked
        and pairs == list(itertools.combinations(asked, 2))
    )


def _say(estimator: Any, _: tuple[str, ...], __: Any) -> Answer:
    pairs, repeats = estimator.error_.pairs, estimator.repeats_
    rows = [(" and ".join(p.columns), figure(p.distance), figure(p.bound)) for p in pairs]
    again = "; ".join(
        f"{each.column} {each.people:.0%} (synthetic people {each.model:.0%}, by chance "
        f"{each.chance:.0%})"
        for each in repeats
        if math.isfinite(each.people)
    )
    said = f" How often two records of a person agree: {again}." if again else ""
    return Answer(
        sentence=(
            f"A model of about {figure(estimator.model_.n_users)} people with several records "
            f"each, from which synthetic people are drawn.{said}"
        ),
        caption="How far tables of two columns lie from those of all records (total variation)",
        header=("columns", "distance", "bound"),
        rows=tuple(rows),
        error=(
            f"All bounds hold together with a probability of {estimator.error_.confidence:.0%}. "
            f"What they cover: {estimator.error_.covers[0].lower()}{estimator.error_.covers[1:]}"
        ),
        algorithm=algorithm_sentence(estimator),
        values={
            "people": estimator.model_.n_users,
            "pairs": [
                {"columns": list(p.columns), "distance": p.distance, "bound": p.bound}
                for p in pairs
            ],
            "repeats": [
                {
                    "column": each.column,
                    "people": each.people if math.isfinite(each.people) else None,
                    "synthetic": each.model,
                    "chance": each.chance,
                }
                for each in repeats
            ],
            "bound": estimator.error_.bound,
            "confidence": estimator.error_.confidence,
        },
    )


DESCRIPTORS = (
    Descriptor(
        path="quorate.synth.user_synthesizer:UserSynthesizer",
        task="synth",
        sentence="Synthetic people who hold several records each, from a private model.",
        releases={"model_": _MODEL, "repeats_": _REPEATS, "error_": _ERROR, "algorithm_": ROUTE},
        parameters=_parameters,
        options={"target": str, "bins": whole},
        fits=_fits,
        answer=_say,
        example=lambda: numbers(2, bounds=(0.0, 9.0), bins=3),
    ),
)
