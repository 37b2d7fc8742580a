"""The catalogue of all estimators, each described once.

``descriptor`` the description of one estimator · ``means``, ``models``, ``nets``, ``learners``,
``distributions``, ``tabulate``, ``synth`` the estimators of each subpackage · ``answers`` texts
after a fit · ``examples`` small tables for all of them · ``left_out`` bounds on the effect of
dropped rows · ``options`` parameters as text · ``checks`` of stored releases.

>>> describe("UserMean").sentence
"The mean over users of each user's mean record."
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorate.app.catalogue import distributions, learners, means, models, nets, synth, tabulate
from quorate.app.catalogue.answers import Answer, figure
from quorate.app.catalogue.descriptor import Descriptor, Example, Target, Wish, open_path
from quorate.app.catalogue.left_out import LeftOut, Weighing
from quorate.exceptions import ParameterError

__all__ = [
    "CATALOGUE",
    "TASKS",
    "Answer",
    "Descriptor",
    "Example",
    "LeftOut",
    "Target",
    "Weighing",
    "Wish",
    "answer",
    "describe",
    "figure",
    "open_path",
    "value_types",
]

_ROOMS = (means, models, nets, learners, distributions, tabulate, synth)

CATALOGUE: Mapping[str, Descriptor] = {
    each.name: each for room in _ROOMS for each in room.DESCRIPTORS
}
"""All estimators, by the names of their classes."""

TASKS: Mapping[str, Descriptor] = {
    each.task: each for each in CATALOGUE.values() if each.task is not None
}
"""The estimators that can be fitted from a table, by the name of their task."""


def describe(estimator: Any) -> Descriptor:
    """Return the descriptor of an estimator, or of the class with this name.

    >>> describe("Ridge").task
    'ridge'
    """
    name = estimator if isinstance(estimator, str) else type(estimator).__name__
    if name not in CATALOGUE:
        raise ParameterError(f"Expected one of {', '.join(sorted(CATALOGUE))}, got {name}.")
    return CATALOGUE[name]


def answer(estimator: Any, features: tuple[str, ...], labels: tuple[Any, ...] | None) -> Answer:
    """Describe what ``estimator`` released; categories and dates appear as their encoded columns.

    >>> import numpy as np
    >>> from quorate import PrivateMedian
    >>> ages = np.tile(np.arange(20.0, 60.0), 50)[:, None]
    >>> median = PrivateMedian(epsilon=3.0, bounds=(0.0, 120.0)).fit(ages, users=range(2000))
    >>> print(answer(median, ("age",), None).caption)
    Median over users of each user's median
    """
    say = describe(estimator).answer
    if say is None:
        known = ", ".join(sorted(each.name for each in TASKS.values()))
        raise ParameterError(f"Expected one of {known}, got {type(estimator).__name__}.")
    coding = estimator._coding
    return say(estimator, features if coding is None else coding.names, labels)


def value_types() -> dict[str, str]:
    """Return the module of each class of this library that a release may contain, by class name.

    >>> value_types()["MeanError"]
    'quorate.means.mean_error'
    """
    paths = {
        kind.partition(":")
        for each in CATALOGUE.values()
        for kinds in each.releases.values()
        for kind in kinds
        if ":" in kind
    }
    return {name: home for home, _, name in paths}
