"""UserData: every user keeps their own records, and nothing else depends on them."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate import UserData
from quorate.core.users.data import numbered_users, ordered_users
from quorate.exceptions import ParameterError, SchemaError
from recognised_records import ids_of_records, records_by_user, table_of


class TestGrouping:
    @given(ids_of_records)
    @settings(max_examples=60)
    def test_every_user_holds_exactly_their_records_in_their_order(self, ids):
        X, users = table_of(ids)
        data = UserData.from_arrays(X, X[:, 0], users=users)
        assert records_by_user(data) == [X[users == u].tolist() for u in np.unique(users)]
        assert (data.y == data.X[:, 0]).all()
        assert (
            users[np.argsort(users, kind="stable")] == np.unique(users)[data.user_index()]
        ).all()

    @given(ids_of_records)
    @settings(max_examples=60)
    def test_means_and_sums_need_no_order(self, ids):
        X, users = table_of(ids)
        data = UserData.from_arrays(X, users=users)
        means = data.user_means()
        assert np.allclose(means, [X[users == u].mean(axis=0) for u in np.unique(users)])
        _ = data.X
        assert (data.user_means() == means).all()

    def test_weighted_sums_follow_the_order_of_x(self):
        X, users = table_of([2, 0, 2, 1, 0])
        data = UserData.from_arrays(X, users=users)
        weights = data.X[:, 0]
        expected = [(X[users == u] * X[users == u][:, :1]).sum(axis=0) for u in range(3)]
        assert np.allclose(data.user_sums(weights=weights), expected)
        assert np.allclose(
            data.user_sums(data.X[:, :1], weights=weights), [e[:1] for e in expected]
        )
        for wrong in ({"values": np.ones((2, 1))}, {"values": np.ones(5)}, {"weights": np.ones(4)}):
            with pytest.raises(SchemaError, match="per record"):
                data.user_sums(**wrong)

    def test_rows_sorted_by_user_are_not_copied(self):
        X, users = table_of([0, 0, 1, 5])
        assert np.shares_memory(UserData.from_arrays(X, users=users).X, X)

    def test_ids_that_come_back_in_another_block_are_the_same_user(self):
        X, users = table_of([1, 1, 2, 1])
        assert UserData.from_arrays(X, users=users).record_counts().tolist() == [3, 1]

    def test_the_constructor_takes_records_that_lie_user_by_user(self):
        data = UserData(np.ones((3, 2)), [0, 1, 0], offsets=[0, 2, 2, 3], unit="patient")
        assert data.record_counts().tolist() == [2, 0, 1]
        for offsets in ([0, 2], [1, 3], [0, 3, 2, 3], [[0, 3]], []):
            with pytest.raises(SchemaError):
                UserData(np.ones((3, 2)), offsets=np.array(offsets, dtype=int))
        with pytest.raises(SchemaError, match="lengths"):
            UserData(np.ones((3, 2)), [1], offsets=[0, 3])

    def test_it_travels_to_another_process(self):
        X, users = table_of([3, 1, 3])
        again = pickle.loads(pickle.dumps(UserData.from_arrays(X, X[:, 0], users=users)))
        assert records_by_user(again) == [[[2, 3]], [[0, 1], [4, 5]]]

    def test_arrays_cannot_be_written_through_it(self):
        X, users = table_of([0, 1])
        data = UserData.from_arrays(X, X[:, 0], users=users)
        for array in (data.X, data.y, data.offsets):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
        X[0, 0] = 7.0


class TestFrames:
    @pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
    def test_a_frame_knows_its_columns(self, make):
        frame = make(
            {"who": ["b", "a", "b"], "x": [1, 2, 3], "z": [0.5, 0.25, 0.125], "t": [1, 0, 1]}
        )
        data = UserData.from_frame(frame, user="who", target="t")
        assert data.feature_names == ("x", "z")
        assert data.unit == "who"
        assert data.X.tolist() == [[2, 0.25], [1, 0.5], [3, 0.125]]
        assert data.y.tolist() == [0, 1, 1]
        narrow = UserData.from_frame(frame, user=["who", "x"], features=["z"], unit="visit")
        assert narrow.n_users == 3
        assert narrow.unit == "visit"
        assert narrow.feature_names == ("z",)

    def test_several_id_columns_name_the_unit(self):
        frame = pa.table({"person": [1, 1, 1], "day": [1, 2, 1], "x": [1.0, 2.0, 3.0]})
        data = UserData.from_frame(frame, user=("person", "day"))
        assert data.unit == "person x day"
        assert data.n_users == 2

    def test_several_id_arrays_are_not_called_a_user(self):
        data = UserData.from_arrays(np.ones((3, 1)), users=([1, 1, 2], [1, 2, 1]))
        assert data.unit == "combination of 2 ids"
        days = UserData.from_arrays([[1.0]], users=([1], [1]), unit="person x day")
        assert days.unit == "person x day"

    def test_labels_become_numbers_through_public_classes(self):
        frame = pa.table({"u": [1, 1, 2], "x": [1.0, 2.0, 3.0], "t": ["yes", "?", "no"]})
        data = UserData.from_frame(frame, user="u", target="t", classes=("no", "yes"))
        assert data.y.tolist() == [1, 0]
        with pytest.raises(SchemaError, match="classes="):
            UserData.from_frame(frame, user="u", target="t")

    def test_parquet_files_and_folders(self, tmp_path):
        rng = np.random.default_rng(0)
        whole = pa.table({"u": rng.integers(0, 9, 1000), "x": rng.standard_normal(1000)})
        for i in range(4):
            pq.write_table(whole.slice(250 * i, 250), tmp_path / f"{i}.parquet", row_group_size=60)
        from_folder = UserData.from_parquet(tmp_path, user="u")
        expected = UserData.from_frame(whole, user="u")
        assert (from_folder.X == expected.X).all()
        one_file = UserData.from_parquet(tmp_path / "0.parquet", user="u", features=["x"])
        assert one_file.n_records == 250

    def test_wrong_names_are_refused(self):
        frame = pa.table({"u": [1], "x": [1.0]})
        for user in ([], 3, [None], None):
            with pytest.raises(ParameterError, match="names of columns"):
                UserData.from_frame(frame, user=user)


class TestMissingValues:
    def test_a_record_with_a_gap_is_dropped_and_its_user_keeps_a_place(self):
        X = [[1.0, 2.0], [np.nan, 0.0], [3.0, np.inf], [5.0, 6.0]]
        data = UserData.from_arrays(X, users=[1, 2, 1, 3])
        assert data.record_counts().tolist() == [1, 0, 1]
        assert np.isnan(data.user_means()[1]).all()

    def test_a_number_may_stand_in(self):
        data = UserData.from_arrays([[1.0], [np.nan]], users=[1, 2], missing=-1.0)
        assert data.X.ravel().tolist() == [1.0, -1.0]

    def test_the_caller_s_table_stays_as_it_was(self):
        X = np.array([[1.0], [np.nan]])
        UserData.from_arrays(X, users=[1, 2], missing=0.0)
        assert np.isnan(X[1, 0])

    def test_a_record_without_id_or_target_is_dropped(self):
        data = UserData.from_arrays([[1.0], [2.0], [3.0]], [0, None, 1], users=["a", "b", None])
        assert data.X.tolist() == [[1.0]]
        assert data.n_users == 2

    def test_an_empty_table_has_no_users_and_is_no_error(self):
        data = UserData.from_arrays(np.empty((0, 2)), users=np.empty(0, int))
        assert data.n_users == 0
        assert data.user_means().shape == (0, 2)
        assert list(data.batches(5)) == []
        assert data.cap(1).n_users == 0
        assert [side.n_users for side in data.split(0.5)] == [0, 0]

    def test_the_mean_of_huge_records_neither_warns_nor_raises(self):
        data = UserData.from_arrays([[1.7e308], [1.7e308]], users=[1, 1])
        assert data.user_means().shape == (1, 1)


class TestPrivacyOfCounts:
    def test_what_is_printed_does_not_count_records(self):
        few = UserData.from_arrays(np.ones((3, 2)), users=[1, 2, 1])
        many = UserData.from_arrays(np.ones((99, 2)), users=[1, 2] + [1] * 97)
        assert repr(few) == repr(many)

    def test_errors_count_no_records_either(self):
        with pytest.raises(SchemaError) as caught:
            UserData.from_arrays(np.ones((37, 1)), users=np.arange(38))
        assert "37" not in str(caught.value)

    def test_no_users_are_refused_with_what_to_do(self):
        with pytest.raises(SchemaError, match="Pass users="):
            UserData.from_arrays(np.ones((3, 1)), users=None)
        with pytest.raises(ParameterError, match="an array with one entry per row as users="):
            UserData.from_arrays(np.ones((3, 1)), users="ann")

    @pytest.mark.parametrize("unit", ["  ", 5])
    def test_the_unit_is_a_word(self, unit):
        with pytest.raises(ParameterError, match="unit"):
            UserData.from_arrays([[1.0]], users=[1], unit=unit)


class TestWhatIsPrinted:
    def test_the_number_of_users_is_not(self):
        data = UserData.from_arrays(np.zeros(31337), users=np.arange(31337))
        assert "31337" not in repr(data)
        with pytest.raises(ParameterError) as caught:
            data.take([99999])
        assert "31336" not in str(caught.value)

    def test_ids_in_place_of_a_column_name_are_not(self):
        table = pa.table({"id": [1], "a": [1.0]})
        for ids in (pd.Series([31337, 2]), np.array([31337])):
            with pytest.raises(ParameterError, match="names of columns") as caught:
                UserData.from_frame(table, user=ids)
            assert "31337" not in str(caught.value)


class TestTakeAndBatches:
    def test_users_are_taken_in_the_order_asked_for(self):
        X, users = table_of([2, 0, 1, 0, 2])
        data = UserData.from_arrays(X, X[:, 0], users=users)
        everybody = records_by_user(data)
        taken = data.take([2, 0])
        assert records_by_user(taken) == [everybody[2], everybody[0]]
        assert data.take([]).n_users == 0

    @pytest.mark.parametrize("wrong", [[3], [-1], [0, 0], [0.5], [[0]]])
    def test_nobody_is_taken_twice_or_out_of_range(self, wrong):
        data = UserData.from_arrays(np.zeros(3), users=[0, 1, 2])
        with pytest.raises((ParameterError, SchemaError)):
            data.take(wrong)

    @given(ids_of_records, st.integers(1, 12))
    @settings(max_examples=60)
    def test_batches_hold_whole_users_in_order(self, ids, size):
        X, users = table_of(ids)
        data = UserData.from_arrays(X, X[:, 0], users=users)
        everybody = records_by_user(data)
        for options in ({"max_records": size}, {"users": size}):
            parts = list(data.batches(**options))
            assert [records for part in parts for records in records_by_user(part)] == everybody
            assert (
                all(part.n_users == 1 or part.n_records <= size for part in parts)
                or "users" in options
            )
            assert all(part.n_users <= size for part in parts) or "max_records" in options

    def test_batches_are_views(self):
        data = UserData.from_arrays(np.zeros((6, 1)), users=[0, 0, 1, 1, 2, 2])
        assert all(np.shares_memory(part.X, data.X) for part in data.batches(2))

    @pytest.mark.parametrize("wrong", [{}, {"max_records": 1, "users": 1}, {"max_records": 0}])
    def test_a_batch_needs_one_size(self, wrong):
        with pytest.raises(ParameterError):
            list(UserData.from_arrays([[1.0]], users=[1]).batches(**wrong))


def test_numbered_and_ordered_users_are_those_of_the_table():
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((60, 2)), rng.integers(0, 9, 60)
    expected = UserData.from_arrays(X, X[:, 0], users=codes)
    mine = numbered_users(X, X[:, 0], codes, expected.keys(), "user", None)
    again = ordered_users(mine.X, mine.y, mine.offsets, mine.keys(), "user", None)
    for data in (mine, again):
        assert np.array_equal(data.X, expected.X)
        assert np.array_equal(data.y, expected.y)
        assert np.array_equal(data.user_means(), expected.user_means())
    assert np.array_equal(again.public_draws(3), expected.public_draws(3))


def test_users_without_records_keep_their_places():
    keys = np.array([3, 5, 9], dtype=np.uint64)
    data = numbered_users(np.ones((2, 1)), None, np.array([2, 0]), keys, "patient", ("a",))
    assert data.record_counts().tolist() == [1, 0, 1]
    assert data.offsets.dtype == np.int64
    assert (data.unit, data.feature_names) == ("patient", ("a",))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("counts", [[], [0], [0, 2, 0, 0, 3, 1, 0], [4]])
def test_records_that_lie_in_order_need_not_be_counted(counts, dtype):
    codes, keys = np.repeat(np.arange(len(counts)), counts).astype(dtype), np.arange(len(counts))
    data = numbered_users(
        np.ones((len(codes), 1)), None, codes, keys.astype(np.uint64), "user", None
    )
    assert data.in_order
    assert data.record_counts().tolist() == counts
    assert data.offsets.dtype == np.int64
