"""A check that functions of users store nothing about the records that they get.

A statistic that stores rows in an attribute, or in a list of its closure, would carry them out of
the core. So the state of a function is compared before and after it is called; a function whose
state changed is refused. The state of a function of the caller includes the globals that it names,
and the functions that it calls by name; of an array it includes the numbers. Files and devices are
not checked: the rule detects honest mistakes only.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from quorate.exceptions import SealedError

__all__ = ["content_of", "forgetting", "is_of_caller"]

# What may grow without being replaced.
_GROWING = (list, dict, set, bytearray, deque)
# Functions hold others (partial, bound methods, callables as attributes), to this depth.
_DEEP = 4
# Longer containers are told apart by their length alone.
_MANY = 2**12
# Of longer arrays so many numbers are looked at, evenly spread.
_LOOKED_AT = 2**20


@contextmanager
def forgetting(*functions: object) -> Iterator[None]:
    """Refuse functions whose state changed during the block.

    >>> seen = []
    >>> with forgetting(partial(list.append, seen)):
    ...     seen.append("31337")
    Traceback (most recent call last):
        ...
    quorate.exceptions.SealedError: A statistic stored something about the records that it
    got. Return everything that is needed as the user's row, and release it by a query.
    """
    before = [_held(function, _DEEP) for function in functions]
    try:
        yield
    finally:  # code that raises may have stored something first
        if [_held(function, _DEEP) for function in functions] != before:
            raise SealedError(
                "A statistic stored something about the records that it got. Return everything "
                "that is needed as the user's row, and release it by a query."
            )


class _Same:
    """An object that is equal to itself alone.

    It is kept alive, because the id of a deleted object may be used again.
    """

    __slots__ = ("thing",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.thing is other.thing


def _held(thing: Any, depth: int, *, numbers: bool = False) -> Any:
    """Return the identity of an object and of its state; of containers also their contents.

    With ``numbers`` the entries of arrays are included; statistics of this package may write to
    arrays of their own.
    """
    look = _itself if numbers else _Same
    if isinstance(thing, _GROWING):
        held = thing.values() if isinstance(thing, dict) else thing
        return _Same(thing), len(thing), tuple(map(look, held)) if len(thing) < _MANY else ()
    if depth == 0 or isinstance(thing, type | ModuleType | np.ndarray):
        return look(thing)
    numbers = is_of_caller(thing)
    if isinstance(thing, partial):
        inside: list[Any] = [thing.func, *thing.args, *thing.keywords.values()]
        numbers = is_of_caller(thing.func)
    elif isinstance(thing, MethodType):
        return _held(thing.__self__, depth), _held(thing.__func__, depth)
    elif isinstance(thing, FunctionType):
        inside = [*map(content_of, thing.__closure__ or ()), *(thing.__defaults__ or ())]
        inside += vars(thing).values()
        named = _globals_of(thing, depth) if numbers else ()
        return (
            _Same(thing),
            named,
            tuple(_held(each, depth - 1, numbers=numbers) for each in inside),
        )
    elif hasattr(thing, "__dict__") or _slots_of(type(thing)):
        # What is computed once from public parameters may be kept.
        inside = [
            value
            for name, value in getattr(thing, "__dict__", {}).items()
            if not isinstance(getattr(type(thing), name, None), cached_property)
        ]
        inside += [getattr(thing, name, None) for name in _slots_of(type(thing))]
        shared = vars(type(thing))
        inside += [v for name, v in shared.items() if name[:2] != "__" and not callable(v)]
        inside.append(shared.get("__call__") if numbers else None)
    else:
        return _Same(thing)
    return _Same(thing), tuple(_held(each, depth - 1, numbers=numbers) for each in inside)


def _itself(thing: Any) -> Any:
    """Return the identity of an object; of an array also a hash of its entries."""
    if not isinstance(thing, np.ndarray):
        return _Same(thing)
    spread = np.ravel(thing)[:: 1 + thing.size // _LOOKED_AT]
    return _Same(thing), thing.shape, zlib.crc32(spread.tobytes())


def _slots_of(kind: type) -> tuple[str, ...]:
    """Return the attributes that a class stores in slots instead of a dictionary."""
    owners = [each for each in kind.__mro__ if "__slots__" in vars(each) and is_of_caller(each)]
    found = [name for each in owners for name, value in vars(each).items() if _is_slot(value)]
    return tuple(name for name in found if name[:2] != "__")


def _is_slot(value: Any) -> bool:
    return isinstance(value, MemberDescriptorType)


def is_of_caller(thing: Any) -> bool:
    """Return whether a function, or the class of an object, is not one of this library."""
    return str(getattr(thing, "__module__", "")).split(".")[0] != "quorate"


def _globals_of(function: FunctionType, depth: int) -> tuple[Any, ...]:
    """Return the values of the globals that a function names, and helpers of its module."""
    found = [function.__globals__.get(name) for name in _named(function.__code__)]
    return tuple(
        _held(
            value,
            depth - 1 if getattr(value, "__module__", "") == function.__module__ else 0,
            numbers=True,
        )
        for value in found
    )


@cache
def _named(code: CodeType) -> tuple[str, ...]:
    """Return the names that a function, or one inside of it, reads or writes as globals."""
    inner = (_named(part) for part in code.co_consts if isinstance(part, CodeType))
    return tuple({*code.co_names, *(name for names in inner for name in names)})


def content_of(cell: Any) -> Any:
    """Return the content of a closure's cell; None if it is still empty.

    >>> [content_of(cell) for cell in (lambda x: lambda: x)(7).__closure__]
    [7]
    """
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return None
