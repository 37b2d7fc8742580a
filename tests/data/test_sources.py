"""Tables that are read at once: names are checked, nobody loses a place."""

import numpy as np
import pyarrow as pa
import pytest

from quorate.core.users import UserData
from quorate.data.columns.ids import group
from quorate.data.sources import asked_columns
from quorate.exceptions import ParameterError, SchemaError


class TestNames:
    def test_each_column_is_asked_for_once(self):
        assert asked_columns(["id", "day"], ["x", "y"], "y") == ["x", "y", "id", "day"]
        assert asked_columns("id", None, "y") is None

    @pytest.mark.parametrize("wrong", [[], 3, [None], None, b"id", [["id"]]])
    def test_what_is_no_name_is_refused(self, wrong):
        with pytest.raises(ParameterError, match="names of columns"):
            asked_columns(wrong, ["x"], None)
        with pytest.raises(ParameterError, match="names of columns"):
            UserData._loaded(pa.table({"id": [1], "x": [1.0]}), user=wrong)


class TestUsers:
    def test_several_ids_name_the_unit(self):
        table = pa.table({"who": ["a", "a", "b"], "day": [1, 2, 1], "x": [1.0, 2.0, 3.0]})
        people = UserData._loaded(table, user=("who", "day"), features=["x"])
        assert (people.unit, people.n_users) == ("who x day", 3)
        assert people.feature_names == ("x",)

    def test_columns_that_are_not_there_are_refused(self):
        with pytest.raises(SchemaError, match="'y'"):
            UserData._loaded(pa.table({"id": [1], "x": [1.0]}), user="id", features=["y"])

    def test_who_loses_every_record_keeps_a_place(self):
        rows, targets = np.array([[1.0], [np.nan], [3.0]]), np.array([0.0, 1.0, np.nan])
        groups = group(["ann", "bob", "cid"])
        people = UserData._grouped(rows, targets, groups, missing="drop", unit="user", names=None)
        assert people.record_counts().tolist() == [1, 0, 0]
        assert people.y.tolist() == [0.0]

    def test_it_is_how_arrays_become_users(self):
        rng = np.random.default_rng(0)
        rows, ids = rng.normal(size=(60, 2)), rng.integers(0, 9, 60)
        direct = UserData.from_arrays(rows, users=ids)
        made = UserData._grouped(rows, None, group(ids), missing="drop", unit="user", names=None)
        assert np.array_equal(direct.X, made.X)
        assert np.array_equal(direct.keys(), made.keys())
