"""A crowd on Spark: the integers of the whole in memory, whatever happens to its workers."""

import os
import pickle
import shutil
import traceback

import numpy as np
import pyarrow as pa
import pytest

from crowd_worlds import (
    COLUMNS,
    ESTIMATORS,
    EVERY,
    FAMILIES,
    Reversed,
    digest,
    known,
    released,
    visits,
)
from quorate.core.users import UserData, own_order
from quorate.data.engines import capping
from quorate.data.engines.capping import CappedRecords
from quorate.data.engines.layout import Layout
from quorate.exceptions import ParameterError, SchemaError

pytest.importorskip("pyspark.sql")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java (Debian: apt-get install default-jre)", allow_module_level=True)

from quorate.data.engines.spark import SparkCrowd, _batch, _PutTogether

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def crowd(spark, folder):
    return SparkCrowd.from_frame(spark.read.parquet(str(folder)), n_parts=4, **COLUMNS)


class TestEqual:
    def test_from_files(self, crowd, expected):
        assert digest(crowd) == expected

    def test_partitions_decide_nothing(self, spark, folder, crowd, expected):
        """The control: the digest sees in which order a user's records are added up."""
        assert digest(crowd, Reversed) != expected
        shuffled = spark.read.parquet(str(folder)).repartition(5).localCheckpoint()
        assert digest(SparkCrowd.from_frame(shuffled, n_parts=4, **COLUMNS)) == expected

    def test_a_stated_order_says_which_records_a_cap_keeps(self, spark):
        table = visits().append_column("place", pa.array(np.arange(6000)[::-1]))
        frame = spark.createDataFrame(table.to_pandas()).repartition(5)
        asked = {"order": "place", **COLUMNS}
        crowd = SparkCrowd.from_frame(frame, n_parts=4, cap=3, random_state=0, **asked)
        whole = UserData.from_frame(table, **asked).cap(3, random_state=0)
        assert digest(crowd) == digest(whole)

    def test_integer_and_several_ids_and_empty_parts(self, spark):
        table = pa.table({"p": [5, 5, 2, 9], "d": ["x", "y", "x", None], "a": [1.0, 2.0, 3.0, 4.0]})
        frame = spark.createDataFrame(table.to_pandas())
        for user in ("p", ["p", "d"]):
            whole = UserData.from_frame(table, user=user)
            crowd = SparkCrowd.from_frame(frame, user=user, n_parts=6)
            assert np.array_equal(crowd.keys(), np.sort(whole.keys()))
            assert 0 in crowd.sizes
            assert crowd.take([0]).n_users == 1

    def test_odd_cells_of_one_person_move_nobody_else(self, spark):
        """Spark declares its types; within them a cell may still be anything. 0 is the person."""
        from pyspark.sql import types

        schema = types.StructType(
            [
                types.StructField("who", types.LongType()),
                types.StructField("x", types.DoubleType()),
                types.StructField("label", types.StringType()),
            ]
        )

        def others(x, label):
            rows = [(0, x, label), (1, 2.5, "a"), (2, 3.5, "b"), (1, 4.5, "a"), (0, x, label)]
            crowd = SparkCrowd.from_frame(
                spark.createDataFrame(rows, schema),
                user="who",
                features=["x", "label"],
                categories={"label": ["a", "b"]},
                n_parts=2,
            )
            assert crowd.n_features == 3
            found = crowd.together()
            keys = np.repeat(found.keys(), found.record_counts())
            mine = UserData.from_arrays([[0.0]], users=np.array([0])).keys()[0]
            kept = [(k, tuple(row)) for k, row in zip(keys, found.X.tolist(), strict=True)]
            return sorted(each for each in kept if each[0] != mine)

        usual = others(1.5, "a")
        assert len(usual) == 3
        odd = [(float("nan"), None), (float("inf"), "\u0000"), (-1e308, "a" * 10_000), (None, "")]
        for x, label in odd:
            assert others(x, label) == usual


class TestGiantUsers:
    def test_a_cap_keeps_the_records_that_it_keeps_in_memory(self, spark, folder, whole):
        frame = spark.read.parquet(str(folder))
        crowd = SparkCrowd.from_frame(frame, n_parts=3, cap=4, random_state=1, **COLUMNS)
        assert digest(crowd) == digest(whole.cap(4, random_state=1))

    def test_pieces_pass_one_by_one(self, monkeypatch):
        """Between two pieces what the cap remembers of each user is held."""
        monkeypatch.setattr(own_order, "_REMEMBERED", 10)
        monkeypatch.setattr(capping, "_WAITING", 1)
        table = pa.table({"id": [1] * 500 + [2] * 3, "x": np.arange(503.0)})
        layout = Layout.of(table.schema, user="id", cap=10, random_state=0)
        held = []
        add = CappedRecords.add
        monkeypatch.setattr(
            CappedRecords,
            "add",
            lambda kept, piece: (add(kept, piece), held.append(kept._different)),
        )
        pieces = [layout.records(batch).tobytes() for batch in table.to_batches(50)]
        rows = [(0, False, piece) for piece in pieces]
        names = ("part", "refused", "piece")
        (blob,) = _PutTogether(layout)(_batch([row], names) for row in rows)
        counts = pickle.loads(blob.column("blob")[0].as_py()).value.record_counts()
        assert sorted(counts.tolist()) == [3, 10]
        assert len(held) == len(rows)
        assert max(map(len, held)) <= 13


class TestEstimators:
    """One of each family, since a round takes a second; all of them with QUORATE_EVERY_ENGINE=1."""

    @pytest.mark.parametrize("name", list(ESTIMATORS) if EVERY else FAMILIES)
    def test_releases_are_those_of_the_whole_in_memory(self, name, crowd, whole):
        assert released(name, crowd) == known(name, whole)


class TestWorkers:
    def test_killed_python_workers_change_nothing(self, crowd, folder, tmp_path):
        """Each part kills the process it runs in, the first time it is worked on."""
        place = str(tmp_path)

        def deadly(users):
            mark = f"{place}/{users.keys()[0]}"
            if not os.path.exists(mark):
                with open(mark, "w"):
                    os.kill(os.getpid(), 9)
            return np.array([users.n_records])

        records = sum(crowd.map(deadly))
        assert records.tolist() == [UserData.from_parquet(folder, **COLUMNS).n_records]
        assert len(os.listdir(place)) == 4, "every part was worked on twice"

    def test_what_a_task_raises_reaches_nobody(self, crowd, capfd):
        def quote(users):
            raise ValueError(f"SECRET {users.X.max()}")

        with pytest.raises(SchemaError, match="withheld") as caught:
            crowd.map(quote)
        assert "SECRET" not in "".join(traceback.format_exception(caught.value))
        assert "SECRET" not in "".join(capfd.readouterr())


class TestRefusals:
    def test_what_is_no_frame_is_refused(self):
        with pytest.raises(ParameterError, match="Spark DataFrame"):
            SparkCrowd.from_frame(visits(), **COLUMNS)

    def test_columns_that_are_not_there_are_refused(self, spark, folder):
        with pytest.raises(SchemaError, match="'age'"):
            SparkCrowd.from_frame(spark.read.parquet(str(folder)), user="id", features=["age"])
