"""A check that functions of users give a user the same row, whoever else is in the data.

If a statistic divides by the largest of all values, subtracts the mean of all, or ranks users, then
one user's row depends on all other users. One user then moves more than one row, and no sensitivity
bound holds. So each function is first tried on made-up users, before any record is read: its rows
for all of them together must equal its rows for each of them separately.

This detects honest mistakes only. A function that raises an error on made-up users passes, and one
that depends on others only for real records is not detected. Differences in the last bits, from
rounding in a product over several users' rows, are not detected either. Tests of each statistic
check for them, and if code of the caller may cause them, the guarantee is marked as idealized.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.core.forgetting import content_of, is_of_caller
from quorate.core.users.crowd import call_quietly
from quorate.core.users.data import UserData
from quorate.exceptions import SchemaError, SealedError

__all__ = ["records_of", "refuse_company", "refuse_neighbours", "refuse_other_rows"]

# Records of the made-up users: one of them holds a single record.
_COUNTS = (1, 3, 2)
# Functions hold others (partial, bound methods, callables as attributes), to this depth.
_DEEP = 3
# Far above the rounding errors of 32-bit floats, far below any influence that matters.
_ROUNDING = 2.0**-10
# What was tried: definitions, of which a program has finitely many.
_TRIED: set[Hashable] = set()

# From some users to one row a user, or to integers that add up over users.
Work = Callable[[UserData], NDArray[Any]]


def refuse_company(function: Any, work: Work, like: UserData, *, added: bool = False) -> None:
    """Refuse a function whose results for a user depend on other users; try each function once.

    Parameters
    ----------
    function : callable
        The function of the caller; functions with the same definition are tried once.
    work : callable
        Applies the function to some users: one row per user or, if ``added``, sums over users.
    like : UserData
        An empty data set with the same columns.
    added : bool

    Examples
    --------
    >>> nobody = UserData([[0.0]], offsets=[0, 1]).nobody()
    >>> refuse_company(UserData.user_means, UserData.user_means, nobody)
    >>> ranks = lambda users: np.argsort(users.user_means()[:, 0])
    >>> refuse_company(ranks, ranks, nobody)
    Traceback (most recent call last):
        ...
    quorate.exceptions.SealedError: The result of a function for one user depends on other users:
    on made-up users, the results for all users together differed from those for each user alone.
    Use this user's records and public numbers only; a number about all users has to be released
    first.
    """
    tried = (_definition(function, _DEEP), like.n_features, like.has_target, added)

    def asked() -> tuple[NDArray[Any], NDArray[Any]]:
        users = _made_up(like)
        alone = [np.asarray(work(users.take([i]))) for i in range(len(_COUNTS))]
        each = sum(alone[1:], start=alone[0]) if added else np.concatenate(alone)
        return np.asarray(work(users)), each

    _try_once(tried, asked)


def refuse_other_rows(
    function: Callable[[NDArray[Any]], NDArray[Any]], shape: tuple[int, ...]
) -> None:
    """Refuse a function of rows of this shape in which one row's result depends on other rows.

    >>> refuse_other_rows(np.abs, ())
    >>> refuse_other_rows(np.cumsum, ())
    Traceback (most recent call last):
        ...
    quorate.exceptions.SealedError: The result of a function for one user depends on other users:
    on made-up users, the results for all users together differed from those for each user alone.
    Use this user's records and public numbers only; a number about all users has to be released
    first.
    """

    def asked() -> tuple[NDArray[Any], NDArray[Any]]:
        rows = _made_up_numbers((len(_COUNTS), *shape))
        alone = [np.asarray(function(rows[i : i + 1])) for i in range(len(rows))]
        together = np.asarray(function(rows))
        if together.dtype.kind not in "fiub" or together.shape[:1] != rows.shape[:1]:
            raise SchemaError("What is no row of numbers for each row is refused when asked.")
        return together, np.concatenate(alone)

    _try_once((_definition(function, _DEEP), shape), asked)


def refuse_neighbours(
    program: Any,
    batch_of: Callable[[NDArray[Any], NDArray[Any]], Any],
    shape: tuple[int, int, int],
) -> None:
    """Refuse a program if, in a batch of this shape, one place's result depends on other places.

    ``batch_of`` makes a batch from rows and from marks of the rows that are records.
    """

    def asked() -> tuple[NDArray[Any], NDArray[Any]]:
        rows, few = _made_up_numbers(shape), min(len(_COUNTS), shape[0])

        def result(taken: NDArray[np.bool_]) -> NDArray[Any]:
            present = np.broadcast_to(taken[:, None], shape[:2])
            return np.asarray(program(batch_of(rows * present[:, :, None], present)))

        alone = [result(np.arange(shape[0]) == i)[i] for i in range(few)]
        return result(np.ones(shape[0], np.bool_))[:few], np.stack(alone)

    _try_once((_definition(program, _DEEP), shape), asked)


def _try_once(tried: Hashable, asked: Callable[[], tuple[NDArray[Any], NDArray[Any]]]) -> None:
    if tried in _TRIED:
        return
    found = call_quietly(asked)
    if found is not None and not _alike(*found):
        raise SealedError(
            "The result of a function for one user depends on other users: on made-up users, the "
            "results for all users together differed from those for each user alone. Use this "
            "user's records and public numbers only; a number about all users has to be released "
            "first."
        )
    _TRIED.add(tried)


def records_of(change: Callable[[UserData], UserData], users: UserData) -> NDArray[Any]:
    """Return users' records after a change, one row per record, with the owner of each."""
    changed = change(users)
    place = {key: number for number, key in enumerate(users.keys().tolist())}
    order = np.argsort([place[key] for key in changed.keys().tolist()], kind="stable")
    inside = changed.take(order)
    targets = np.zeros(inside.n_records) if inside.y is None else inside.y
    # Whose a record is stands beside it as a small number, lest it set the scale of what is alike.
    owners = np.repeat(inside.keys() % np.uint64(7), inside.record_counts()) / 7.0
    return np.column_stack([owners, targets, inside.X])


def _alike(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two tables are equal up to the rounding of 32-bit programs."""
    if one.shape != other.shape:
        return False
    if one.dtype.kind == other.dtype.kind == "O":
        return bool(one.tolist() == other.tolist())
    reach = np.abs(other[np.isfinite(other)]).max(initial=0) * _ROUNDING
    return np.allclose(one, other, rtol=0.0, atol=reach, equal_nan=True)


def _made_up(like: UserData) -> UserData:
    """Return a few users with different records, and labels 0 and 1."""
    rows = _made_up_numbers((sum(_COUNTS), like.n_features))
    labels = np.arange(sum(_COUNTS)) % 2 if like.has_target else None
    owners = np.repeat(np.arange(len(_COUNTS)), _COUNTS)
    return UserData.from_arrays(rows, labels, users=owners)


def _made_up_numbers(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return different numbers of either sign."""
    places = np.arange(np.prod(shape, dtype=np.int64))
    return np.asarray(np.sin(1 + places**2.0).reshape(shape), dtype=np.float64)


def _definition(thing: Any, depth: int) -> Hashable:
    """Return what identifies a definition: its code, its types, and the types of its attributes."""
    if isinstance(thing, FunctionType):
        held = [*map(content_of, thing.__closure__ or ()), *(thing.__defaults__ or ())]
        return thing.__code__, _switches(thing, held), _definitions(held, depth)
    if isinstance(thing, MethodType):
        return _definition(thing.__func__, depth), _definition(thing.__self__, depth - 1)
    if isinstance(thing, partial):
        held = [thing.func, *thing.args, *thing.keywords.values()]
        return partial, _switches(thing.func, held), _definitions(held, depth)
    if isinstance(thing, type | BuiltinFunctionType | MethodDescriptorType | np.ufunc):
        return thing
    held = list(getattr(thing, "__dict__", {}).values())
    return type(thing), _switches(thing, held), _definitions(held, depth)


def _switches(thing: Any, held: list[Any]) -> Hashable:
    """Return what distinguishes two functions of the caller: flags, names, axis numbers."""
    plain = [(type(each), each) for each in held if isinstance(each, bool | int | str)]
    return tuple(plain) if is_of_caller(thing) else ()


def _definitions(held: list[Any], depth: int) -> Hashable:
    if depth == 0:
        return ()
    return tuple(_definition(each, depth - 1) for each in held if callable(each))
