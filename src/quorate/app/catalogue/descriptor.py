"""The description of an estimator, from which commands, reports and tests are generated.

It is used by the tasks of the command line, model files, reports, the list of the planner, the
names of the package and the contract tests. To add an estimator, add a :class:`Descriptor` to the
file of its subpackage.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from quorate.app.catalogue.answers import Answer
from quorate.app.catalogue.left_out import MovedBy, RowCap, Weighing
from quorate.core.guarantees import Relation
from quorate.data.coding import Coding, coded_columns
from quorate.exceptions import ParameterError
from quorate.ranges import Limit, coded_bounds, half_width, limits_by_name

__all__ = ["Descriptor", "Example", "Target", "Wish", "open_path"]

Number = int | float


class Target(Enum):
    """What an estimator needs for each record besides the features.

    >>> Target.LABEL.value
    'a label among public classes'
    """

    NONE = "nothing"
    LABEL = "a label among public classes"
    NUMBER = "a number in a public range"


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Public information about a fit, from which the parameters of an estimator are made.

    Parameters
    ----------
    features : tuple of str
        Names of the columns.
    target : str or None, default=None
    classes : tuple or None, default=None
        Public labels of the target.
    limits : tuple of Limit, default=()
        Public ranges of columns.
    records : int or None, default=None
        Number of records of a typical user, if it is public.
    options : mapping from str to str, default={}
        Further options, as text.
    categories : mapping from str to tuple, default={}
        Public values of columns.

    Examples
    --------
    >>> Wish(features=("age", "bmi"), limits=(Limit(0, 120, "age"), Limit(0, 99))).ranges()
    ([0, 0], [120, 99])
    """

    features: tuple[str, ...]
    target: str | None = None
    classes: tuple[Any, ...] | None = None
    limits: tuple[Limit, ...] = ()
    records: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    categories: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def coding(self) -> Coding:
        """How the features are encoded as numbers."""
        dates = {
            str(each.column): (each.lower, each.upper)
            for each in self.limits
            if each.is_date and each.column != self.target
        }
        return Coding.of(self.features, coded_columns(self.categories, dates))

    def bounds(self) -> Any:
        """Return the ranges of the features in the form that estimators accept.

        >>> wish = Wish(features=("age", "visit"), limits=(
        ...     Limit(0, 120, "age"), Limit.parse("visit=2020-01-01,2020-12-31")))
        >>> sorted(wish.bounds())
        ['age', 'visit']
        """
        if self.coding.is_plain:
            return self.ranges()
        names = [name for name in self.features if name not in self.categories]
        lower, upper = self.ranges(names) if names else ((), ())
        return dict(zip(names, zip(lower, upper, strict=True), strict=True))

    def ranges(self, names: Sequence[str] | None = None) -> tuple[list[Number], list[Number]]:
        """Return the lower and upper limits of columns; of all features if none are named."""
        own = {limit.column: limit for limit in self.limits}
        others = () if self.target is None else (self.target,)
        if names is not None:
            others = (*self.features, *others)
        found = limits_by_name(own, self.features if names is None else names, others=others)
        return [limit.lower for limit in found], [limit.upper for limit in found]

    @property
    def widths(self) -> dict[str, float]:
        """The width of the range of each encoded feature.

        >>> Wish(features=("age",), limits=(Limit(0, 120, "age"),)).widths
        {'age': 120.0}
        """
        coding = self.coding
        if not coding.is_plain:
            coded = coded_bounds(self.bounds(), coding)
            return {name: 2.0 * half_width(each) for name, each in coded.items()}
        lower, upper = self.ranges()
        found = [float(high) - float(low) for low, high in zip(lower, upper, strict=True)]
        return dict(zip(self.features, found, strict=True))

    @property
    def half_width(self) -> float:
        """Half of the widest range of the features."""
        return max(self.widths.values()) / 2


@dataclass(frozen=True)
class Example:
    """Parameters and a small data set on which an estimator gives a sensible answer.

    ``X`` has one row per record, and ``users`` identifies the user of each row. ``y`` is None
    without a target.

    >>> from quorate.app.catalogue import describe
    >>> example = describe("UserMean").example()
    >>> example.X.shape, example.y, sorted(example.parameters)
    ((1200, 2), None, ['bounds', 'delta'])
    """

    parameters: dict[str, Any]
    X: Any
    y: Any
    users: Any


Parameters = Callable[[Wish], dict[str, Any]]
Say = Callable[[Any, tuple[str, ...], Any], Answer]


def open_path(path: str) -> Any:
    """Import the object ``"module:name"``; the module must be part of this library.

    >>> open_path("quorate.core.guarantees:Relation").__name__
    'Relation'
    """
    home, _, name = path.partition(":")
    return getattr(importlib.import_module(home), name)


@dataclass(frozen=True, kw_only=True)
class Descriptor:
    """One estimator: where it is, what it needs, what it releases, how results are described.

    Parameters
    ----------
    path : str
        ``"module:class"``; it is imported only when needed.
    sentence : str
        The purpose of the estimator, in one sentence.
    releases : mapping from str to tuple of str
        All fitted attributes that are releases, each with the types it may have, as names of
        builtin types, ``"ndarray"``, or ``"module:class"``. A fit may set no other attributes.
    follows : tuple of str, default=()
        Attributes that are computed from releases and parameters; they are not stored.
    passing : tuple of str, default=()
        Releases that are shown after the fit but not stored.
    task : str or None, default=None
        Its name on the command line.
    without_task : str or None, default=None
        Why it has no task on the command line, if it has none.
    target : Target, default=Target.NONE
    one_feature : bool, default=False
        Whether there must be exactly one feature.
    most_classes : float, default=0
        The largest number of classes of the target.
    named_classes : bool, default=False
        Whether the estimator takes the labels as a parameter and predicts them.
    weighing : Weighing, default=Weighing.SHARE
        How the answer weights rows; it determines which number of dropped rows is released as well.
    moved_by : callable, optional
        Bounds the effect of dropped rows on the answer, if released numbers limit it
        (:mod:`quorate.app.catalogue.left_out`).
    row_cap : callable, optional
        How many rows of one person the answer takes; needed where every row counts.
    parameters : callable, optional
        Returns the parameters that depend on columns, from a :class:`Wish`.
    options : mapping from str to callable, default={}
        Further parameters that the command line can set, and how each is read from text.
    labels_option : str or None, default=None
        The option that lists the public labels of the feature, if there is one.
    asks : mapping from str to str, default={}
        Options that must be set, each with an example value.
    code : tuple of str, default=()
        Parameters that may be code, which is not stored in files; it must be passed when a model
        file is read.
    fits : callable, optional
        Checks that stored releases are consistent; without it the estimator is not stored.
    finish : callable, optional
        Sets the derived attributes.
    answer : callable, optional
        Describes what was released, in words and rows.
    plans : tuple of str, default=()
        The planner's tasks that forecast its error.
    sizes : callable, optional
        Returns the numbers that the planner needs, from a fitted estimator and a wish.
    frame : callable, optional
        Returns the label columns and the number columns to read, for an estimator that takes a
        table with ``users=`` instead of records grouped by user.
    example : callable
        A small table with parameters.

    Examples
    --------
    >>> from quorate.app.catalogue import describe
    >>> describe("UserMean").task, describe("UserMean").name
    ('mean', 'UserMean')
    """

    path: str
    sentence: str
    releases: Mapping[str, tuple[str, ...]]
    example: Callable[[], Example]
    follows: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    task: str | None = None
    without_task: str | None = None
    target: Target = Target.NONE
    one_feature: bool = False
    most_classes: float = 0
    named_classes: bool = False
    weighing: Weighing = Weighing.SHARE
    moved_by: MovedBy | None = None
    row_cap: RowCap | None = None
    parameters: Parameters | None = None
    options: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    labels_option: str | None = None
    asks: Mapping[str, str] = field(default_factory=dict)
    fits: Callable[[Any], bool] | None = None
    finish: Callable[[Any], None] | None = None
    answer: Say | None = None
    plans: tuple[str, ...] = ()
    sizes: Callable[[Any, Wish], dict[str, Any]] | None = None
    frame: Callable[[Wish], tuple[tuple[str, ...], tuple[str, ...]]] | None = None

    def __post_init__(self) -> None:
        if (self.task is None) is (self.without_task is None):
            raise ParameterError(f"Expected a task for {self.name}, or why there is none.")
        if self.task is not None and (self.parameters is None or self.answer is None):
            raise ParameterError(f"Expected parameters and an answer for the task {self.task!r}.")
        if (self.weighing is Weighing.ROWS) is (self.row_cap is None):
            raise ParameterError(f"Expected a row cap of {self.name} if and only if rows count.")

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.path.rpartition(":")[2]

    @property
    def kind(self) -> Any:
        """The class itself, imported now."""
        return open_path(self.path)

    @property
    def supervised(self) -> bool:
        """Whether a target is needed."""
        return self.target is not Target.NONE

    @property
    def default_delta(self) -> float:
        """The default delta: 0 if the estimator supports pure privacy."""
        return float(inspect.signature(self.kind).parameters["delta"].default)

    @property
    def default_relation(self) -> Relation:
        """The default neighbouring relation."""
        found = inspect.signature(self.kind).parameters.get("relation")
        return Relation.REPLACE if found is None else Relation(found.default)

    @property
    def stored(self) -> bool:
        """Whether model files can store it."""
        return self.fits is not None

    def build(self, wish: Wish, **common: Any) -> Any:
        """Return the estimator for a wish; refuse options that it does not have.

        ``common`` are parameters that do not depend on columns, such as ``epsilon``.
        """
        if self.parameters is None:
            raise ParameterError(f"Expected an estimator with a task, got {self.name}.")
        if self.one_feature and len(wish.features) != 1:
            raise ParameterError(
                f"The task {self.task!r} takes one feature, got {len(wish.features)}: "
                f"{', '.join(wish.features)}."
            )
        if not (self.kind._codes_columns or wish.coding.is_plain):
            raise ParameterError(
                f"The task {self.task!r} takes numbers: it has no categories and no dates."
            )
        known, given = set(self.kind._get_param_names()), dict(common)
        for name in given:
            if name not in known:
                raise ParameterError(f"The task {self.task!r} has no {name}: leave it out.")
        for name, text in self.asks.items():
            if name not in wish.options:
                raise ParameterError(
                    f"The task {self.task!r} needs the option {name!r}, such as {name}={text}."
                )
        own = self.parameters(wish)
        if wish.categories:
            given["categories"] = dict(wish.categories)
        for name, text in wish.options.items():
            if name not in self.options:
                options = ", ".join(self.options) or "none"
                raise ParameterError(
                    f"The task {self.task!r} has no option {name!r}; it has {options}."
                )
            value = self.options[name](text)
            if name not in own:
                given[name] = value
        # Elsewhere the number of records is public knowledge for the forecast, and no parameter.
        if wish.records is not None and self.supervised and "records" in known:
            given["records"] = wish.records
        if "progress" in known:
            given["progress"] = False  # whoever asked for the fit shows that it is going on
        return self.kind(**own | given)
