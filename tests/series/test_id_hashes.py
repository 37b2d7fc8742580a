"""Keyed hashes: the published function, and ids whose kind is known."""

import hashlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from quorate.exceptions import ParameterError, SchemaError
from quorate.series.id_hashes import kind_of_ids, numbers_for_texts, siphash

MASK = 2**64 - 1


def slow_siphash(word, key):
    """SipHash-2-4 of eight bytes, line by line as it is published."""
    k0, k1 = (int.from_bytes(part, "little") for part in (key[:8], key[8:]))
    v = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]

    def turn(x, b):
        return ((x << b) | (x >> (64 - b))) & MASK

    def sip_round():
        v[0] = (v[0] + v[1]) & MASK
        v[1] = turn(v[1], 13) ^ v[0]
        v[0] = turn(v[0], 32)
        v[2] = (v[2] + v[3]) & MASK
        v[3] = turn(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & MASK
        v[3] = turn(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & MASK
        v[1] = turn(v[1], 17) ^ v[2]
        v[2] = turn(v[2], 32)

    for block in (word, 8 << 56):
        v[3] ^= block
        sip_round(), sip_round()
        v[0] ^= block
    v[2] ^= 0xFF
    for _ in range(4):
        sip_round()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def test_hashes_are_those_of_the_published_function():
    rng = np.random.default_rng(0)
    words, key = rng.integers(0, 2**64, 200, dtype=np.uint64), rng.bytes(16)
    assert siphash(words, key).tolist() == [slow_siphash(int(w), key) for w in words]


def test_another_key_gives_other_words():
    words = np.arange(1000, dtype=np.uint64)
    one, other = siphash(words, bytes(16)), siphash(words, bytes(15) + b"\1")
    assert len({*one.tolist(), *other.tolist()}) == 2000


def test_texts_have_the_numbers_of_the_standard_function():
    """However they are given; who has none is nobody."""
    key = bytes(range(16))
    expected = [
        int.from_bytes(hashlib.blake2b(b, digest_size=8, key=key).digest(), "little", signed=True)
        for b in (b"bob", "J\u00f8rgen".encode())
    ]
    given = ["bob", None, "J\u00f8rgen", "bob"]
    for ids in (given, pa.array(given), pa.array(given).dictionary_encode(), pd.Series(given)):
        found = numbers_for_texts(ids, key).to_pylist()
        assert found == [expected[0], None, expected[1], expected[0]]
    assert numbers_for_texts(pa.array([], pa.string()), key).to_pylist() == []


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (np.array([1, 2]), "integers"),
        (pa.array([1, None]), "integers"),
        (pd.Series([3, 4], dtype="int8"), "integers"),
        (["ann"], "text"),
        ([1, 2], "text"),  # a list declares no type: its entries are read as text
        (pa.array(["ann"]).dictionary_encode(), "text"),
        (pd.Series(["ann"], dtype=object), "text"),
        (pa.array([b"ann"]), "text"),
    ],
)
def test_the_kind_of_ids_is_seen_from_their_type(ids, kind):
    assert kind_of_ids(ids) == kind


def test_other_ids_are_refused():
    for ids in (np.array([1.5]), pa.array([True]), np.array(["2026-01-01"], "datetime64[D]")):
        with pytest.raises((SchemaError, ParameterError)):
            kind_of_ids(ids)
    with pytest.raises(ParameterError, match="one column of ids"):
        kind_of_ids((np.array([1]), np.array([2])))
