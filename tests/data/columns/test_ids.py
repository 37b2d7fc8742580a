"""Ids of every kind become numbers and keys, by public rules, and never raise for a row."""

import datetime
import uuid
from enum import Enum
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.users.grouping import mix, order_by_user, ranges
from quorate.data.columns.ids import _near, group
from quorate.exceptions import SchemaError

NAMES = ["eve", "ann", "eve", "bob", "ann", ""]
CODES = [3, 1, 3, 2, 1, 0]


def partition(codes):
    """Return which records belong together, whatever the numbers are."""
    return {frozenset(np.flatnonzero(codes == c).tolist()) for c in set(codes.tolist()) if c >= 0}


class TestKinds:
    @pytest.mark.parametrize(
        "users",
        [
            NAMES,
            np.array(NAMES),
            np.array(NAMES, dtype=object),
            np.array(NAMES, dtype=np.dtypes.StringDType()),
            np.array([name.encode() for name in NAMES]),
            pd.Series(NAMES),
            pd.Series(NAMES, dtype=object),
            pd.Series(NAMES, dtype="category"),
            pl.Series(NAMES),
            pl.Series(NAMES, dtype=pl.Categorical),
            pa.array(NAMES),
            pa.chunked_array([NAMES[:2], NAMES[2:]]),
            pa.array(NAMES).dictionary_encode(),
        ],
        ids=lambda users: f"{type(users).__module__}.{type(users).__name__}",
    )
    def test_text_in_any_container_gives_the_same_numbers_and_keys(self, users):
        groups = group(users)
        assert groups.codes.tolist() == CODES
        assert (groups.keys == group(NAMES).keys).all()

    @pytest.mark.parametrize("dtype", ["i1", "i8", "u2", "u8", ">i4", ">u8"])
    def test_integers_of_any_width_and_byte_order(self, dtype):
        groups = group(np.array([9, 4, 9, 7], dtype=dtype))
        assert groups.codes.tolist() == [2, 0, 2, 1]
        assert (groups.keys == group(np.array([4, 7, 9])).keys).all()

    def test_extreme_integers(self):
        ids = np.array([2**63 - 1, -(2**63), 0, -(2**63)])
        assert group(ids).codes.tolist() == [2, 0, 1, 0]

    def test_strided_ids(self):
        assert group(np.arange(10)[::-3]).codes.tolist() == [3, 2, 1, 0]

    @pytest.mark.parametrize("unit", ["D", "h", "s", "ns"])
    def test_dates_with_gaps(self, unit):
        days = np.array(["2024-01-02", "NaT", "2024-01-01"], dtype=f"M8[{unit}]")
        assert group(days).codes.tolist() == [1, -1, 0]
        assert group(pa.array([datetime.date(2024, 1, 2), None])).codes.tolist() == [0, -1]
        assert group(pl.Series([datetime.datetime(2024, 1, 2), None])).codes.tolist() == [0, -1]

    def test_plain_objects(self):
        first, second = uuid.UUID(int=1), uuid.UUID(int=2)
        ids = np.array([second, first, second, datetime.date(2024, 1, 1)], dtype=object)
        assert partition(group(ids).codes) == {frozenset({0, 2}), frozenset({1}), frozenset({3})}

    def test_a_range_is_an_array_of_integers(self):
        assert group(range(3)).codes.tolist() == [0, 1, 2]


class TestPublicRules:
    def test_objects_are_compared_as_text_so_that_nobody_becomes_two(self):
        ids = np.array(["1", 1, np.int32(1), b"1", "2"], dtype=object)
        assert partition(group(ids).codes) == {frozenset({0, 1, 2, 3}), frozenset({4})}

    def test_what_has_no_text_counts_as_no_id(self):
        ids = [None, np.nan, 1.5, (1, 2), float("inf"), pd.NA, pd.NaT, 10**5000, "x"]
        assert group(ids).codes.tolist() == [-1] * 8 + [0]

    def test_text_that_is_no_unicode_is_still_an_id(self):
        assert group(np.array(["\ud800", "a", "\ud800"])).codes.tolist() == [1, 0, 1]
        assert group(np.array([b"\xff", b"a", b"\xff"])).codes.tolist() == [1, 0, 1]

    def test_nobody_has_an_id(self):
        groups = group(pa.nulls(3))
        assert groups.codes.tolist() == [-1, -1, -1]
        assert len(groups.keys) == 0

    def test_an_empty_column_is_no_error(self):
        for empty in ([], np.empty(0, int), np.empty(0, "U3"), pa.array([], pa.string())):
            assert len(group(empty).codes) == len(group(empty).keys) == 0

    @given(st.lists(st.one_of(st.text(), st.integers(), st.none(), st.floats(), st.binary())))
    @settings(max_examples=100)
    def test_no_list_raises(self, ids):
        codes = group(ids).codes
        assert len(codes) == len(ids)
        for i, mine in enumerate(ids):
            fraction = isinstance(mine, float) and not mine.is_integer()
            assert (codes[i] < 0) == (mine is None or fraction)

    @pytest.mark.parametrize(
        "users",
        [
            [0.0, 7.0, 0.0],
            [0, 7.0, "0"],
            np.array([0.0, np.float32(7), 0.0], dtype=object),
            pd.Series([0.0, 7.0, 0.0], dtype=object),
        ],
    )
    def test_whole_floats_without_a_declared_type_are_ids(self, users):
        groups = group(users)
        assert groups.codes.tolist() == [0, 1, 0]
        assert (groups.keys == group(["0", "7"]).keys).all()

    def test_what_is_masked_has_no_id(self):
        for dtype in ("i8", "U3", "M8[D]"):
            ids = np.ma.array(np.array([3, 4, 3]).astype(dtype), mask=[False, False, True])
            assert group(ids).codes.tolist() == [0, 1, -1]


class TestSeveralColumns:
    def test_a_list_of_rows_is_a_table(self):
        assert group([[7], [5], [7]]).codes.tolist() == [1, 0, 1]
        assert group([[7], [5], [7]]).n_columns == 1
        assert group([(1, "a"), (1, "b"), (1, "a")]).codes.tolist() == [0, 1, 0]
        assert group([(1, "a"), (1, "b")]).n_columns == 2
        assert group([[7], [5, 3], [7], 7]).codes.tolist() == [0, -1, 0, -1]
        with pytest.raises(SchemaError, match="rows without any"):
            group([[], []])

    def test_records_share_a_user_if_all_columns_agree(self):
        people, days = ["ann", "bob", "ann", "ann"], np.array([1, 1, 2, 1])
        groups = group((people, days))
        assert groups.codes.tolist() == [0, 2, 1, 0]
        frame = pd.DataFrame({"person": people, "day": days}, index=[5, 6, 7, 8])
        for table in (frame, pl.DataFrame(frame.to_dict("list")), pa.table(frame.to_dict("list"))):
            assert group(table).codes.tolist() == [0, 2, 1, 0]
            assert (group(table).keys == groups.keys).all()

    def test_a_matrix_holds_one_id_column_per_column(self):
        assert group(np.array([[1, 1], [1, 2], [1, 1]])).codes.tolist() == [0, 1, 0]

    def test_a_gap_in_one_column_is_a_gap(self):
        assert group((["a", None, "a"], [1, 1, None])).codes.tolist() == [0, -1, -1]

    def test_ambiguous_concatenations_stay_apart(self):
        assert group((["a", "ab"], ["bc", "c"])).codes.tolist() == [0, 1]

    @given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=30))
    @settings(max_examples=60)
    def test_three_columns_are_numbered_in_lexicographic_order(self, rows):
        places = {row: i for i, row in enumerate(sorted(set(rows)))}
        columns = tuple(np.array(column) for column in zip(*rows, strict=True))
        assert group(columns).codes.tolist() == [places[row] for row in rows]


class TestNumbersAndKeys:
    @given(st.lists(st.integers(0, 9), min_size=1), st.randoms(use_true_random=False))
    @settings(max_examples=60)
    def test_the_order_of_rows_changes_nobody_s_number(self, ids, random):
        shuffled = random.sample(ids, len(ids))
        mine = dict(zip(ids, group(np.array(ids)).codes.tolist(), strict=True))
        theirs = dict(zip(shuffled, group(np.array(shuffled)).codes.tolist(), strict=True))
        assert mine == theirs

    def test_a_key_depends_on_the_id_alone(self):
        few = group(["bob", "a name that is much longer than the others"]).keys
        many = group([f"user {i}" for i in range(70_000)] + ["bob"])
        assert many.keys[many.codes[-1]] in few

    def test_a_key_of_an_integer_is_not_its_place(self):
        assert group(np.array([7, 900])).keys[0] == group(np.arange(8)).keys[7]

    def test_keys_of_many_users_differ(self):
        texts = group([f"user {i}" for i in range(100_000)]).keys
        assert len(np.unique(texts)) == 100_000
        assert len(np.unique(group((np.arange(1000), np.arange(1000) % 7)).keys)) == 1000
        assert len(np.unique(group(["", "\x00", "\x00\x00", "0"]).keys)) == 4

    def test_mix_spreads_its_outputs(self):
        bits = np.unpackbits(mix(np.arange(4096, dtype=np.uint64)).view(np.uint8))
        # 262,144 fair bits: six standard deviations are 0.006, a false alarm has chance 2e-9.
        assert abs(bits.mean() - 0.5) < 0.006


class TestRefusals:
    @pytest.mark.parametrize(
        "users",
        [
            np.array([1.0, 2.0]),
            np.array([True, False]),
            np.array([1j]),
            np.array([1], "m8[s]"),
            pd.Series([1.0, np.nan]),
            pl.Series([1.5]),
            pa.array([1.5]),
            pa.array([[1]]),
        ],
        ids=lambda users: str(getattr(users, "dtype", getattr(users, "type", ""))),
    )
    def test_ids_that_are_no_ids_are_refused_by_type(self, users):
        with pytest.raises(SchemaError, match="integers, text or dates"):
            group(users)

    def test_no_ids_are_refused_with_what_to_do(self):
        with pytest.raises(SchemaError, match="Pass users="):
            group(None)
        with pytest.raises(SchemaError, match="at least one id column"):
            group(())

    def test_a_single_name_or_too_many_axes_are_refused(self):
        for users in ("ann", np.zeros((2, 2, 2), int), 7):
            with pytest.raises(SchemaError, match="one id per row"):
                group(users)

    def test_columns_of_different_lengths_are_refused(self):
        with pytest.raises(SchemaError, match="one length"):
            group(([1, 2], [1]))


class TestKernels:
    @given(st.lists(st.integers(0, 5), max_size=40))
    @settings(max_examples=60)
    def test_the_counting_sort_is_a_stable_sort(self, codes):
        codes = np.array(codes, dtype=np.int32)
        assert order_by_user(codes, 6).tolist() == np.argsort(codes, kind="stable").tolist()

    def test_ranges_without_a_loop(self):
        assert ranges(np.array([5, 9, 1]), np.array([2, 0, 3])).tolist() == [5, 6, 1, 2, 3]
        assert ranges(np.empty(0, int), np.empty(0, int)).tolist() == []


class Colour(str, Enum):  # noqa: UP042 - a StrEnum prints its value
    """Text that prints itself by another name."""

    RED = "red"


class TestIdsOfOneUserAreReadAlone:
    """How an id is read must not depend on the type of another user's id."""

    ODD = (
        7,
        b"x",
        b"\xff",
        Fraction(1, 2),
        "\ud800",
        1.5,
        None,
        bytearray(b"y"),
        Colour.RED,
        ("a",),
    )

    @pytest.mark.parametrize("own", ["red", Colour.RED, b"red", bytearray(b"red"), np.str_("red")])
    @pytest.mark.parametrize("other", ODD, ids=repr)
    def test_the_key_is_the_same_beside_whatever_id(self, own, other):
        expected = group(["red"]).keys[0]
        ids = np.empty(3, dtype=object)
        ids[:] = [own, other, own]
        found = group(ids)
        assert found.codes[0] == found.codes[2] >= 0
        assert found.keys[found.codes[0]] == expected

    def test_the_broken_twin_reads_an_enum_by_its_name_if_another_id_is_odd(self):
        assert str(Colour.RED) != str.__str__(Colour.RED)

    def test_the_key_of_an_integer_is_neither_its_value_nor_its_place(self):
        many = group(np.array([3, 5, 7, 11]))
        for place, own in enumerate([3, 5, 7, 11]):
            alone = group(np.array([own])).keys[0]
            assert many.keys[place] == alone
            assert alone not in (own, place)
        shifted = group(np.array([5, 7, 11]))
        assert (shifted.keys == many.keys[1:]).all()


def test_what_was_grouped_is_not_grouped_again():
    groups = group(["ann", "bob", "ann"])
    assert group(groups) is groups


@given(
    st.sampled_from(["i1", "u1", "i2", "i4", "u4", "i8", "u8"]),
    st.lists(st.integers(0, 30), min_size=1, max_size=60),
    st.integers(0, 2),
)
def test_near_integers_are_numbered_like_any_others(dtype, steps, end):
    """At both ends of each type, where differences wrap around."""
    kind = np.iinfo(dtype)
    start = (kind.min, 5, kind.max - 30)[end]
    ids = (np.array(steps, dtype=object) + start).astype(dtype)
    quick, slow = group(ids), group(np.array([*ids.tolist(), None], dtype=object))
    assert _near(np.tile(ids, 10)) is not None
    assert partition(quick.codes) == partition(slow.codes[:-1])
    distinct = sorted(set(ids.tolist()))
    assert quick.codes.tolist() == [distinct.index(own) for own in ids.tolist()]
    assert (quick.keys == group(np.array(distinct, dtype=dtype)).keys).all()


def test_far_integers_are_not_laid_out_in_a_table():
    far = np.array([-(2**63), 2**63 - 1, 0])
    assert _near(far) is None
    assert group(far).codes.tolist() == [0, 2, 1]


def test_integers_across_a_whole_type_are_numbered_in_order():
    """Their differences do not fit into the type itself."""
    ids = np.tile(np.array([-128, -1, 0, 127], dtype=np.int8), 40)
    found = _near(ids)
    assert found is None or found[1].tolist() == [-128, -1, 0, 127]
    ids = np.tile(np.arange(-100, 101).astype(np.int8), 2)
    assert _near(ids)[0].tolist() == list(range(201)) * 2
    assert group(ids).codes.tolist() == list(range(201)) * 2


@given(
    st.sampled_from(["i1", "u1", "i4", "i8", "u8"]),
    st.lists(st.integers(0, 9), max_size=30),
    st.randoms(use_true_random=False),
)
def test_ids_that_lie_in_order_are_numbered_like_those_that_do_not(dtype, counts, random):
    """However far they are from each other, and also if there are none."""
    kind = np.iinfo(dtype)
    many = np.linspace(float(kind.min), float(kind.max) / 2, len(counts)).astype(dtype)
    ids = np.repeat(many, counts)
    places = random.sample(range(len(ids)), len(ids))
    ordered, turned = group(ids), group(ids[places])
    assert ordered.codes.dtype == turned.codes.dtype == np.int32
    assert (ordered.codes[places] == turned.codes).all()
    assert (ordered.keys == turned.keys).all()
