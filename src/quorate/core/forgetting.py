"""Functions that are asked about users keep nothing of what they saw.

A statistic that stores rows on itself, or in a list that it closes over, would carry them out of
the core. So what a function holds is looked at before and after it is asked: whoever holds
something else, or more, is refused. Globals, files and devices are beyond this: the rule stops
honest mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

from quorate.exceptions import SealedError

__all__ = ["forgetting"]

# What may grow without being replaced.
_GROWING = (list, dict, set, bytearray)
# Functions hold others (partial, bound methods, callables as attributes), to this depth.
_DEEP = 4
# Longer containers are told apart by their length alone.
_MANY = 2**12


@contextmanager
def forgetting(*functions: object) -> Iterator[None]:
    """Refuse functions that hold something else after the block than before.

    >>> seen = []
    >>> with forgetting(partial(list.append, seen)):
    ...     seen.append("31337")
    Traceback (most recent call last):
        ...
    quorate.exceptions.SealedError: A statistic kept something of what it was shown. Return all that
    is needed as the user's row, and let a question release it.
    """
    before = [_held(function, _DEEP) for function in functions]
    yield
    if [_held(function, _DEEP) for function in functions] != before:
        raise SealedError(
            "A statistic kept something of what it was shown. Return all that is needed as the "
            "user's row, and let a question release it."
        )


def _held(thing: Any, depth: int) -> Any:
    """Return the identity of a thing and of what it holds; of what may grow also its content."""
    if type(thing) in _GROWING:
        held = thing.values() if isinstance(thing, dict) else thing
        return id(thing), len(thing), tuple(map(id, held)) if len(thing) < _MANY else ()
    if depth == 0 or isinstance(thing, type | ModuleType):
        return id(thing)
    if isinstance(thing, partial):
        inside: list[Any] = [thing.func, *thing.args, *thing.keywords.values()]
    elif isinstance(thing, MethodType):
        return _held(thing.__self__, depth)
    elif isinstance(thing, FunctionType):
        inside = [*map(_content, thing.__closure__ or ()), *(thing.__defaults__ or ())]
        inside += vars(thing).values()
    elif hasattr(thing, "__dict__"):
        # What is computed once from public parameters may be kept.
        inside = [
            value
            for name, value in vars(thing).items()
            if not isinstance(getattr(type(thing), name, None), cached_property)
        ]
        shared = vars(type(thing)).items()
        inside += [value for name, value in shared if name[:2] != "__" and not callable(value)]
    else:
        return id(thing)
    return id(thing), tuple(_held(each, depth - 1) for each in inside)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return None
