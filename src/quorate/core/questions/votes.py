"""Votes for keys. Which user has which key is private, so no key may raise an error.

A key is an integer, a text or bytes. Any other value, a missing value, or one outside of a public
universe is no vote. Counted votes are in a canonical order of their keys, so that neither the order
of users nor that of a hash table affects an output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.exceptions import SchemaError

__all__ = ["Key", "count_votes", "plain", "sorted_votes"]

Key = int | str | bytes
"""A value for which users vote."""

_KINDS = "iuUSb"


def count_votes(keys: NDArray[Any] | Iterable[Any], *, size: int | None = None) -> dict[Key, int]:
    """Count one key per user.

    Parameters
    ----------
    keys : array or iterable
        The key of each user; ``None`` or any value that is not a key is no vote.
    size : int, optional
        If given, only the integers 0, ..., size - 1 are keys.

    Examples
    --------
    >>> count_votes(["b", "a", None, "b", 2.5])
    {'a': 1, 'b': 2}
    >>> count_votes(np.array([3, 3, -1, 9]), size=8)
    {3: 2}
    """
    counts: Mapping[Any, int]
    if isinstance(keys, np.ndarray) and keys.dtype.kind != "O":
        if keys.dtype.kind not in _KINDS or keys.ndim != 1:
            raise SchemaError(
                f"Expected one key a user (integers, text or bytes) in one axis, got "
                f"dtype={keys.dtype} with {keys.ndim} axes."
            )
        seen, numbers = np.unique(keys, return_counts=True)
        counts = dict(zip(seen.tolist(), numbers.tolist(), strict=True))
    else:
        counts = Counter(plain(key) for key in keys)
    return sorted_votes(counts, size=size)


def sorted_votes(votes: Mapping[Any, int], *, size: int | None = None) -> dict[Key, int]:
    """Return votes in the order of their keys, without invalid keys and keys without votes.

    >>> sorted_votes({"b": 2, "a": 0, None: 7, 4: 1})
    {4: 1, 'b': 2}
    """
    kept = [
        (plain(key), int(count))
        for key, count in votes.items()
        if count > 0 and _is_key(plain(key), size)
    ]
    # Integers, then text, then bytes: different kinds cannot be compared with each other.
    return dict(sorted(kept, key=lambda vote: (_KIND_ORDER[type(vote[0])], vote[0])))


_KIND_ORDER: dict[type, int] = {int: 0, str: 1, bytes: 2}


def plain(key: Any) -> Any:
    """Return a key as a Python integer, text or bytes, and None for anything else.

    >>> [plain(key) for key in (np.int64(5), "a", 2.5)]
    [5, 'a', None]
    """
    if isinstance(key, int | np.integer | np.bool_):
        return int(key)
    if isinstance(key, str):
        return str(key)
    return bytes(key) if isinstance(key, bytes) else None


def _is_key(key: Any, size: int | None) -> bool:
    if size is None:
        return key is not None
    return type(key) is int and 0 <= key < size
