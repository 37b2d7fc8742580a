"""Rows to records: what a row becomes is decided row by row, by the rules of UserData."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.users import UserData
from quorate.data.engines.layout import Layout, split_records
from quorate.exceptions import ParameterError, SchemaError

ODD = [None, np.nan, np.inf, -np.inf, 1e308, -0.0, 0.1]


def as_users(table, pieces=1, **options):
    layout = Layout.of(table.schema, **options)
    size = max(1, -(-table.num_rows // pieces))
    batches = [b for b in table.combine_chunks().to_batches(size) if b.num_rows]
    records = [layout.records(batch) for batch in batches]
    return layout.users(np.concatenate([np.empty(0, layout.dtype), *records]))


def assert_same(mine, expected):
    order = np.argsort(expected.keys())
    assert np.array_equal(mine.keys(), expected.keys()[order])
    assert np.array_equal(mine.record_counts(), expected.record_counts()[order])
    assert np.array_equal(mine.X, expected.take(order).X)
    if expected.has_target:
        assert np.array_equal(mine.y, expected.take(order).y)
    assert (mine.unit, mine.feature_names) == (expected.unit, expected.feature_names)


class TestSameAsUserData:
    @settings(max_examples=60)
    @given(
        rows=st.lists(
            st.tuples(
                st.sampled_from(["a", "b", "ä", "", None]),
                st.sampled_from(ODD),
                st.sampled_from([*ODD, 1.0]),
            ),
            max_size=30,
        ),
        pieces=st.integers(1, 4),
        missing=st.sampled_from(["drop", 0.5]),
        target=st.booleans(),
    )
    def test_whatever_stands_in_the_rows(self, rows, pieces, missing, target):
        ids, x, y = zip(*rows, strict=True) if rows else ((), (), ())
        table = pa.table(
            {
                "id": pa.array(ids, pa.string()),
                "x": pa.array(x, pa.float64()),
                "y": pa.array(y, pa.float64()),
            }
        )
        options = {"user": "id", "missing": missing, "target": "y" if target else None}
        expected = UserData.from_frame(table, **options)
        assert_same(as_users(table, pieces, **options), expected)

    @pytest.mark.parametrize(
        "ids",
        [
            pa.array([3, 1, 3, 2**62], pa.int64()),
            pa.array([3, None, 3, 7], pa.uint64()),
            pa.array(["x", "y", "x", None]).dictionary_encode(),
            pa.array([b"x", b"y", b"x", b""], pa.large_binary()),
            pa.array([0, 1, 0, 5], pa.date32()),
        ],
        ids=lambda a: str(a.type)[:10],
    )
    def test_ids_of_every_declared_type(self, ids):
        table = pa.table({"id": ids, "x": [1.0, 2.0, 3.0, 4.0]})
        assert_same(as_users(table, 2, user="id"), UserData.from_frame(table, user="id"))

    def test_several_id_columns_and_public_labels(self):
        table = pa.table(
            {
                "person": ["a", "a", "b", "a", None],
                "day": [1, 2, 1, 1, 1],
                "x": [1.0, 2.0, 3.0, 4.0, 5.0],
                "label": ["yes", "no", "maybe", "no", "no"],
            }
        )
        options = {"user": ["person", "day"], "target": "label", "classes": ("no", "yes")}
        mine = as_users(table, 3, **options)
        assert_same(mine, UserData.from_frame(table, **options))
        assert mine.unit == "person x day"


class TestNumbers:
    def test_declared_types_decide_how_many_bytes_a_number_takes(self):
        small = pa.schema({"id": pa.int64(), "a": pa.float32(), "b": pa.int16(), "c": pa.bool_()})
        assert Layout.of(small, user="id").single
        assert not Layout.of(small, user="id", missing=0.1).single
        assert not Layout.of(small.append(pa.field("d", pa.int32())), user="id").single

    def test_short_floats_keep_their_values(self):
        values = np.random.default_rng(0).standard_normal(50).astype(np.float32)
        table = pa.table({"id": np.arange(50) % 7, "x": values})
        assert_same(as_users(table, 3, user="id"), UserData.from_frame(table, user="id"))


class TestSplitting:
    def test_the_order_of_the_source_is_kept_within_a_part(self):
        table = pa.table({"id": np.arange(500) % 90, "x": np.arange(500.0)})
        layout = Layout.of(table.schema, user="id")
        ordered, cuts = split_records(layout.records(table.to_batches()[0]), 13)
        assert cuts[-1] == 500
        for i in range(13):
            part = ordered[cuts[i] : cuts[i + 1]]
            assert (np.diff(part["x"][:, 0]) > 0).all()

    def test_a_user_is_never_torn(self):
        table = pa.table({"id": np.arange(500) % 90, "x": np.arange(500.0)})
        layout = Layout.of(table.schema, user="id")
        ordered, cuts = split_records(layout.records(table.to_batches()[0]), 13)
        homes = [set(ordered[cuts[i] : cuts[i + 1]]["key"].tolist()) for i in range(13)]
        assert sum(map(len, homes)) == 90


class TestRefusals:
    def test_the_schema_alone_decides(self):
        schema = pa.schema({"id": pa.string(), "x": pa.float64(), "t": pa.string()})
        for wrong, match in (
            ({"user": "nobody"}, "'nobody'"),
            ({"user": "id", "features": ["t"]}, "text"),
            ({"user": "id", "target": "z"}, "'z'"),
        ):
            with pytest.raises(SchemaError, match=match):
                Layout.of(schema, **wrong)
        with pytest.raises(ParameterError, match="at least one column"):
            Layout.of(schema, user=())
        with pytest.raises(ParameterError, match="missing"):
            Layout.of(schema, user="id", missing="ignore")
