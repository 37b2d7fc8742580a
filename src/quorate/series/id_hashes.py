"""Keyed hashes of ids, by which a store recognises people.

A store must recognise a person next week without revealing who it is. Every id is converted to a
hash of 64 bits by a pseudorandom function with a secret key of 128 bits. Without the key nobody can
find the id of a hash, test guessed ids, or construct an id with the same hash as another person's.
Integers are hashed by SipHash-2-4 [1]_, many at once, and texts by BLAKE2b with a key (RFC 7693).

Two ids with the same hash would be treated as one person, whose length would depend on both. A
store holds fewer than 2^27 people (SQLite's largest value has 10^9 bytes). So the probability that
somebody has the same hash as another person is at most 2^-37, which is part of the guarantee's
delta.

References
----------
.. [1] Aumasson, Bernstein. SipHash: a fast short-input PRF. INDOCRYPT 2012.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.columns import kinds
from quorate.data.columns.ids import distinct_ids, id_columns
from quorate.data.tables import without_rows
from quorate.exceptions import ParameterError, SchemaError

__all__ = ["KEY_BYTES", "SHARED", "kind_of_ids", "numbers_for_texts", "siphash"]

Words = NDArray[np.uint64]

KEY_BYTES = 16

SHARED = 2.0**-37
"""With at most this probability somebody's word is also that of another person of the store."""


def siphash(words: Words, key: bytes) -> Words:
    """Return the SipHash-2-4 of each word, as eight bytes, the lowest first.

    A test vector of the authors, whose key is 00 01 ... 0f:

    >>> word = np.frombuffer(bytes(range(8)), "<u8")
    >>> siphash(word, bytes(range(16))).astype("<u8").tobytes().hex()
    '6224939a79f5f593'
    """
    if len(key) != KEY_BYTES:
        raise ParameterError(f"Expected a key of {KEY_BYTES} bytes, got {len(key)}.")
    first, second = np.frombuffer(key, "<u8").astype(np.uint64)
    shape = words.shape
    v0 = np.full(shape, first ^ np.uint64(0x736F6D6570736575))
    v1 = np.full(shape, second ^ np.uint64(0x646F72616E646F6D))
    v2 = np.full(shape, first ^ np.uint64(0x6C7967656E657261))
    v3 = np.full(shape, second ^ np.uint64(0x7465646279746573))
    # After the word comes a block that says that there were eight bytes.
    for block in (words.astype(np.uint64), np.full(shape, np.uint64(8 << 56))):
        v3 ^= block
        for _ in range(2):
            _round(v0, v1, v2, v3)
        v0 ^= block
    v2 ^= np.uint64(0xFF)
    for _ in range(4):
        _round(v0, v1, v2, v3)
    return np.asarray(v0 ^ v1 ^ v2 ^ v3)


def _round(v0: Words, v1: Words, v2: Words, v3: Words) -> None:
    for a, b, c, d, turns in ((v0, v1, v2, v3, (13, 16)), (v2, v1, v0, v3, (17, 21))):
        # The two halves of a round differ in which pairs meet and by how much they turn.
        a += b
        c += d
        _turn(b, turns[0])
        _turn(d, turns[1])
        b ^= a
        d ^= c
        _turn(a, 32)


def _turn(words: Words, bits: int) -> None:
    high = words << np.uint64(bits)
    words >>= np.uint64(64 - bits)
    words |= high


def numbers_for_texts(users: Any, key: bytes) -> Any:
    """Return ids that are text as an Arrow column of integers, their keyed hashes.

    >>> numbers_for_texts(["ann", None, "ann"], bytes(16)).to_pylist()
    [493168000223864171, None, 493168000223864171]
    """
    import pyarrow as pa

    codes, distinct = distinct_ids(id_columns(users)[0])
    hashes = [
        hashlib.blake2b(text, digest_size=8, key=key).digest() for text in distinct.to_pylist()
    ]
    words = np.frombuffer(b"".join(hashes) + bytes(8), "<i8").astype(np.int64)
    return pa.array(words[codes], mask=codes < 0)


def kind_of_ids(users: Any) -> str:
    """Return whether ids are integers or text, according to their type; refuse other types.

    An integer and the text of its digits have different hashes. So a series has to know the kind of
    its ids; otherwise one person could count as two.

    >>> kind_of_ids(np.array([7, 5])), kind_of_ids(["ann", "bob"])
    ('integers', 'text')
    """
    import pyarrow as pa

    empty = without_rows(users)
    columns = id_columns(users if empty is None else empty)
    if len(columns) != 1:
        raise ParameterError(
            "A series protects a person over time: expected one column of ids, got several."
        )
    [column] = columns
    if isinstance(column, np.ndarray):
        found = {"i": "integers", "u": "integers"}.get(column.dtype.kind, "text")
        if column.dtype.kind in "iuUSTO":
            return found
    else:
        kind = column.type
        while pa.types.is_dictionary(kind) or isinstance(kind, pa.BaseExtensionType):
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind.storage_type
        if pa.types.is_integer(kind):
            return "integers"
        if kinds.is_text(kind) or pa.types.is_null(kind):
            return "text"
    raise SchemaError("Expected ids that are integers or text; convert the column first.")
