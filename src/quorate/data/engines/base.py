"""The common part of all engines: crowds in several parts.

An engine knows where its parts are stored and how to run a task on each of them; everything else is
in this module. A part has whole users in the order of their keys, and the parts follow each other
in that order. So the users of a crowd have the same numbers, however many parts there are.

A task on a part returns a result and the arithmetic fingerprint of the process that computed it, or
a refusal. An exception that a task raises does not leave the worker: neither its text nor its
traceback is logged or sent, because both may quote records. Only errors of Quorate, whose texts
mention parameters only, are raised again by the caller.
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.users.closed import WITHHELD
from quorate.core.users.crowd import Crowd, arguments_of, call_quietly
from quorate.core.users.data import UserData
from quorate.data.engines.arithmetic import arithmetic_fingerprint
from quorate.exceptions import (
    MissingExtraError,
    MixedArithmeticError,
    ParameterError,
    QuorateError,
    WithheldError,
)

__all__ = [
    "DescribedCrowd",
    "Outcome",
    "PartWork",
    "PartedCrowd",
    "Schema",
    "added_outcomes",
    "guarded",
    "needs",
    "part_numbers",
    "results_of",
]

Result = TypeVar("Result")
Arguments = tuple[tuple[Any, ...], ...]


def part_numbers(keys: NDArray[np.uint64], n_parts: int) -> NDArray[np.int64]:
    """Return the part of each key; parts are equal ranges of keys.

    >>> part_numbers(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64), 3)
    array([0, 1, 2])
    """
    high = keys >> np.uint64(32)
    return ((high * np.uint64(n_parts)) >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True)
class Schema:
    """The public description of a crowd, known before any record is read.

    >>> Schema(n_features=2, has_target=True).nobody()
    UserData(n_features=2, target=True, unit='user')
    """

    n_features: int
    has_target: bool = False
    unit: str = "user"
    feature_names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, data: Crowd) -> Schema:
        """Return the description of ``data``."""
        return cls(data.n_features, data.has_target, data.unit, data.feature_names)

    def nobody(self) -> UserData:
        """Return an empty data set with this description."""
        return UserData(
            np.empty((0, self.n_features)),
            np.empty(0) if self.has_target else None,
            offsets=[0],
            unit=self.unit,
            feature_names=self.feature_names,
            ids=np.empty(0, np.int64),
        )


@dataclass(frozen=True)
class Outcome:
    """The result of a task on a part: a value, or an exception instead."""

    value: Any = None
    refusal: tuple[type[QuorateError], str] | None = None
    fingerprint: str = ""


def guarded(work: Callable[[], Any]) -> Outcome:
    """Return the result of ``work``; of exceptions keep only Quorate's own messages.

    >>> guarded(lambda: {}["31337"]).refusal[0].__name__
    'WithheldError'
    """

    def attempt() -> Outcome:
        try:
            return Outcome(work())
        except QuorateError as error:
            return Outcome(refusal=(type(error), str(error)))

    return call_quietly(attempt) or Outcome(refusal=(WithheldError, WITHHELD))


def added_outcomes(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the sum of integer arrays, or the first exception.

    >>> added_outcomes([Outcome(np.array([1])), Outcome(np.array([2]))]).value
    array([3])
    """
    for outcome in outcomes:
        if outcome.refusal is not None:
            return outcome
    kinds = sorted({outcome.fingerprint for outcome in outcomes})
    return Outcome(sum(outcome.value for outcome in outcomes), fingerprint=", ".join(kinds))


def needs(module: str, extra: str) -> Any:
    """Import an optional dependency; if it is missing, say how to install it.

    >>> needs("numpy", "none").__name__
    'numpy'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        pass
    raise MissingExtraError(
        f"This needs {module}, which is not installed: pip install 'quorate[{extra}]'."
    )


@dataclass(frozen=True)
class PartWork:
    """The work on one part: transformations, then a function; only its result is returned.

    >>> PartWork((), UserData.record_counts)(Schema(n_features=1).nobody(), ()).value
    array([], dtype=int64)
    """

    changes: tuple[Callable[..., UserData], ...]
    work: Callable[..., Any]

    def __call__(self, part: UserData, arguments: Arguments) -> Outcome:
        """Return the outcome for ``part``, with the arguments of each change and of the work."""
        found = guarded(lambda: self._value(part, arguments))
        return replace(found, fingerprint=arithmetic_fingerprint())

    def _value(self, part: UserData, arguments: Arguments) -> Any:
        for change, own in zip(self.changes, arguments, strict=False):
            part = change(part, *own)
        return self.work(part, *(arguments[-1] if arguments else ()))


def results_of(outcomes: Iterable[Outcome]) -> list[Any]:
    """Return the values; raise exceptions of workers; refuse results of different arithmetic.

    >>> results_of([Outcome(1, fingerprint="a"), Outcome(2, fingerprint="a")])
    [1, 2]
    """
    found = list(outcomes)
    for outcome in found:
        if outcome.refusal is not None:
            kind, text = outcome.refusal
            raise kind(text)
    kinds = {outcome.fingerprint for outcome in found}
    if len(kinds) > 1 or any("," in kind for kind in kinds):
        raise MixedArithmeticError(
            "The parts were computed by processes whose floating-point functions differ in their "
            "last bits (other processors or other versions of numpy): results would depend on "
            "which of them computed what. Use workers of one kind."
        )
    return [outcome.value for outcome in found]


class DescribedCrowd(Crowd):
    """A crowd whose description is known before any record is read."""

    _schema: Schema

    @property
    def is_empty(self) -> bool:
        """Whether there are no users; public if the number of users is."""
        return self.n_users == 0

    @property
    def n_features(self) -> int:
        """Number of features; public."""
        return self._schema.n_features

    @property
    def has_target(self) -> bool:
        """Whether there are targets; public."""
        return self._schema.has_target

    @property
    def unit(self) -> str:
        """The word for the protected unit; it is part of the guarantee."""
        return self._schema.unit

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if the table had any; public."""
        return self._schema.feature_names


class PartedCrowd(DescribedCrowd):
    """A crowd in several parts; each engine defines how a task runs on them.

    ``changes`` are applied to the stored parts each time they are used; ``arguments`` has one list
    per part.
    """

    def __init__(
        self,
        schema: Schema,
        n_parts: int,
        changes: tuple[Callable[..., UserData], ...] = (),
        arguments: tuple[Arguments, ...] | None = None,
    ) -> None:
        self._schema, self._n_parts, self._changes = schema, n_parts, changes
        self._arguments = ((),) * n_parts if arguments is None else arguments

    @abstractmethod
    def _run(self, task: PartWork, arguments: Sequence[Arguments]) -> Iterable[Outcome]:
        """Run ``task`` on every stored part; return results in the order of the parts."""

    @abstractmethod
    def _stored(self, task: PartWork, arguments: Sequence[Arguments], schema: Schema) -> Self:
        """Return a crowd whose stored parts are the values of ``task``."""

    @abstractmethod
    def _changed(
        self,
        schema: Schema,
        changes: tuple[Callable[..., UserData], ...],
        arguments: tuple[Arguments, ...],
    ) -> Self:
        """Return the same stored parts with further changes."""

    @property
    def n_parts(self) -> int:
        """Number of parts; public."""
        return self._n_parts

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of users of each part; as public as their sum."""
        return tuple(self.map(_size))

    @property
    def n_users(self) -> int:
        """Number of users; public under ``Relation.REPLACE``, private under add/remove."""
        return sum(self.sizes)

    def map(self, work: Callable[..., Result], each: Sequence[Any] | None = None) -> list[Result]:
        """Return ``work(part)``, or ``work(part, argument)``, for every part, in order."""
        task = PartWork(self._changes, work)
        own = arguments_of(each, self._n_parts)
        arguments = [(*before, last) for before, last in zip(self._arguments, own, strict=True)]
        return results_of(self._run(task, arguments))

    def derive(
        self,
        change: Callable[..., UserData],
        each: Sequence[Any] | None = None,
        *,
        keep: bool = False,
    ) -> Self:
        """Return the crowd of ``change(part)``, which stays where the parts are stored."""
        schema = self._schema
        if each is None:
            schema = Schema.of(change(self.nobody()))
        own = arguments_of(each, self._n_parts)
        arguments = tuple(
            (*before, last) for before, last in zip(self._arguments, own, strict=True)
        )
        if keep:
            return self._stored(PartWork(self._changes, change), arguments, schema)
        return self._changed(schema, (*self._changes, change), arguments)

    @cached_property
    def _keys(self) -> NDArray[np.uint64]:
        return np.concatenate([np.empty(0, np.uint64), *self.map(UserData.keys)])

    def keys(self) -> NDArray[np.uint64]:
        """Return the key of each user, in increasing order, which is the order of the crowd."""
        return self._keys

    def take(self, user_indices: ArrayLike) -> Self:
        """Return the users with these indices, in the order of the crowd."""
        places = np.asarray(user_indices)
        places = places.astype(np.int64) if places.size == 0 else places
        _validate.integer_dtype(user_indices=places.dtype)
        places = np.sort(places)
        if places.ndim != 1 or np.any(places < 0) or np.any(places >= self.n_users):
            raise ParameterError("Expected numbers of users from 0 to n_users - 1.")
        if np.any(places[1:] == places[:-1]):
            raise ParameterError("Expected every user at most once, got some user_indices twice.")
        starts = np.concatenate([[0], np.cumsum(self.sizes)])
        cuts = np.searchsorted(places, starts)
        each = [places[cuts[i] : cuts[i + 1]] - starts[i] for i in range(self._n_parts)]
        return self.derive(UserData.take, each)

    def take_ranked(self, ranks: NDArray[np.int64]) -> Self:
        """Return the users with these indices in the order of keys, which is that of the crowd."""
        return self.take(ranks)

    def nobody(self) -> UserData:
        """Return an empty data set with the same description."""
        return self._schema.nobody()

    def __repr__(self) -> str:
        # Without n_users, which is private under addition and removal.
        return (
            f"{type(self).__name__}(n_features={self.n_features}, target={self.has_target}, "
            f"unit={self.unit!r}, n_parts={self.n_parts})"
        )


def _size(part: UserData) -> int:
    return part.n_users
