"""Everything observable of a run except its noise: result, errors, warnings, logs, prints.

:mod:`quorate.auditing.replay` observes a program twice and compares. Results are compared piece by
piece: types, names of attributes, shapes, dtypes and, if nothing may differ, values.
"""

from __future__ import annotations

import inspect
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from quorate.core.noise import NoiseSource
from quorate.exceptions import AuditError

__all__ = ["Observation", "observe"]

MAX_DEPTH = 6  # machine: time
"""How deep attributes of attributes are compared."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """Everything that can be observed of a run.

    Examples
    --------
    >>> quiet = observe(lambda: np.zeros(2))
    >>> print(quiet.differences(observe(lambda: np.zeros(3)), values=True)[0])
    The result has shape (2,) and dtype float64; for the neighbour (3,) and float64.
    """

    result: Any
    error: Exception | None
    warned: tuple[str, ...]
    logged: tuple[str, ...]
    printed: str

    def differences(self, other: Observation, *, values: bool) -> list[str]:
        """Return one sentence for each difference between two runs.

        >>> loud = observe(lambda: print("17 users", end=""))
        >>> loud.differences(observe(lambda: None), values=True)
        ["The run printed '17 users'; for the neighbour ''."]
        """
        differences = [
            f"The run {verb} {mine!r}; for the neighbour {theirs!r}."
            for verb, mine, theirs in (
                ("raised", _name_of(self.error), _name_of(other.error)),
                ("warned", self.warned, other.warned),
                ("logged", self.logged, other.logged),
                ("printed", self.printed, other.printed),
            )
            if mine != theirs
        ]
        if self.error is None and other.error is None:
            comparison = _Comparison(values=values)
            differences += comparison.of("result", self.result, other.result, MAX_DEPTH)
        return differences


def observe(run: Callable[[], Any]) -> Observation:
    """Run a program and record everything observable; exceptions are recorded, not raised.

    >>> observe(lambda: 1 / 0).error
    ZeroDivisionError('division by zero')
    """
    result, error = None, None
    printed = io.StringIO()
    with (
        _collected_logs() as logged,
        warnings.catch_warnings(record=True) as warned,
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        try:
            result = run()
        except AuditError:
            raise
        except Exception as raised:
            # Whatever is raised is seen, so it is compared and not passed on.
            error = raised
    return Observation(
        result=result,
        error=error,
        warned=tuple(f"{each.category.__name__}: {each.message}" for each in warned),
        logged=tuple(logged),
        printed=printed.getvalue(),
    )


@contextmanager
def _collected_logs() -> Iterator[list[str]]:
    """Collect log messages, those of Quorate at every level."""
    messages: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(f"{record.name} {record.levelname}: {record.getMessage()}")

    root, own = logging.getLogger(), logging.getLogger("quorate")
    collector, level = Collector(), own.level
    root.addHandler(collector)
    own.setLevel(logging.DEBUG)
    try:
        yield messages
    finally:
        own.setLevel(level)
        root.removeHandler(collector)


def _name_of(error: Exception | None) -> str:
    return "nothing" if error is None else f"{type(error).__name__}: {error}"


@dataclass(frozen=True)
class _Comparison:
    values: bool

    def of(self, name: str, mine: Any, theirs: Any, depth: int) -> list[str]:
        if type(mine) is not type(theirs):
            return [
                f"The {name} is a {type(mine).__name__}; for the neighbour a "
                f"{type(theirs).__name__}."
            ]
        if isinstance(mine, np.ndarray):
            return self._of_arrays(name, mine, theirs, depth)
        if (parts := _parts(mine)) is not None:
            return self._of_parts(name, parts, _parts(theirs) or {}, depth)
        # Without its own notion of equality an object would differ from its twin by its address.
        comparable = isinstance(mine, Enum) or any(
            "__eq__" in vars(kind) for kind in type(mine).__mro__[:-1]
        )
        both_nan = mine is not None and mine != mine and theirs != theirs
        if self.values and comparable and mine != theirs and not both_nan:
            return [f"The {name} is {mine!r}; for the neighbour {theirs!r}."]
        return []

    def _of_arrays(
        self, name: str, mine: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], depth: int
    ) -> list[str]:
        if (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
            return [
                f"The {name} has shape {mine.shape} and dtype {mine.dtype}; for the neighbour "
                f"{theirs.shape} and {theirs.dtype}."
            ]
        if mine.dtype == object:
            return self.of(name, mine.ravel().tolist(), theirs.ravel().tolist(), depth)
        if self.values and not np.array_equal(mine, theirs, equal_nan=mine.dtype.kind in "fc"):
            return [f"The {name} has other values for the neighbour."]
        return []

    def _of_parts(
        self, name: str, mine: Mapping[str, Any], theirs: Mapping[str, Any], depth: int
    ) -> list[str]:
        if mine.keys() != theirs.keys():
            return [
                f"The {name} has {_only(mine, theirs)}; for the neighbour {_only(theirs, mine)}."
            ]
        if depth == 0:
            return []
        found = (self.of(f"{name}.{part}", mine[part], theirs[part], depth - 1) for part in mine)
        return [difference for each in found for difference in each]


def _parts(value: Any) -> Mapping[str, Any] | None:
    """Return the parts of an object, or None for a plain value."""
    if isinstance(value, Mapping):
        return {str(key): part for key, part in value.items()}
    if isinstance(value, list | tuple):
        return {str(i): part for i, part in enumerate(value)}
    if isinstance(value, NoiseSource):
        return {}  # the two runs have different sources on purpose
    atomic = isinstance(value, Enum | type) or inspect.isroutine(value)
    if hasattr(value, "__dict__") and not atomic:
        return dict(vars(value))
    return None


def _only(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    extra = [part for part in mine if part not in theirs]
    return f"{len(mine)} parts" + (f", among them {', '.join(extra)}" if extra else "")
