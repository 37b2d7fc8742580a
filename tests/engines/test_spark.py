"""A crowd on Spark: the integers of the whole in memory, whatever happens to its workers."""

import os
import shutil
import sys
import traceback

import numpy as np
import pyarrow as pa
import pytest

from crowd_worlds import COLUMNS, ESTIMATORS, SOME, Reversed, digest, released, visits, write
from quorate.exceptions import ParameterError, SchemaError
from quorate.users import UserData

pyspark_sql = pytest.importorskip("pyspark.sql")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java (Debian: apt-get install default-jre)", allow_module_level=True)

from quorate.engines.spark import SparkCrowd  # noqa: E402 - after the look for the extra

EVERY = bool(os.environ.get("QUORATE_EVERY_ENGINE"))
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """Two cores of this machine; the tests can be imported by the Python workers."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    path = os.pathsep.join(p for p in sys.path if p)
    session = (
        pyspark_sql.SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.executorEnv.PYTHONPATH", path)
        .config("spark.local.dir", str(tmp_path_factory.mktemp("spark")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(write(visits(), tmp_path_factory.mktemp("visits")))


@pytest.fixture(scope="module")
def expected(folder):
    return digest(UserData.from_parquet(folder, **COLUMNS))


@pytest.fixture(scope="module")
def crowd(spark, folder):
    return SparkCrowd.from_frame(spark.read.parquet(folder), n_parts=4, **COLUMNS)


class TestEqual:
    def test_from_files_in_the_order_of_files_and_rows(self, crowd, expected):
        assert digest(crowd) == expected

    def test_without_the_order_of_the_source_it_would_differ(self, spark, folder, crowd, expected):
        """The control: the digest sees the order in which a user's records are added."""
        assert digest(crowd, Reversed) != expected
        shuffled = spark.read.parquet(folder).repartition(5).localCheckpoint()
        assert digest(SparkCrowd.from_frame(shuffled, n_parts=4, **COLUMNS)) != expected

    def test_a_stated_order_restores_it(self, spark, expected):
        table = visits().append_column("place", pa.array(np.arange(6000)))
        frame = spark.createDataFrame(table.to_pandas()).repartition(5)
        crowd = SparkCrowd.from_frame(frame, order="place", n_parts=4, **COLUMNS)
        assert digest(crowd) == expected

    def test_integer_and_several_ids_and_empty_parts(self, spark):
        table = pa.table({"p": [5, 5, 2, 9], "d": ["x", "y", "x", None], "a": [1.0, 2.0, 3.0, 4.0]})
        frame = spark.createDataFrame(table.to_pandas())
        for user in ("p", ["p", "d"]):
            whole = UserData.from_frame(table, user=user)
            crowd = SparkCrowd.from_frame(frame, user=user, n_parts=6)
            assert np.array_equal(crowd.keys(), np.sort(whole.keys()))
            assert 0 in crowd.sizes
            assert crowd.take([0]).n_users == 1


class TestEstimators:
    """A few by default, since a round takes a second; all of them with QUORATE_EVERY_ENGINE=1."""

    @pytest.mark.parametrize("name", list(ESTIMATORS) if EVERY else SOME)
    def test_releases_are_those_of_the_whole_in_memory(self, name, crowd, folder):
        whole = UserData.from_parquet(folder, **COLUMNS)
        assert released(name, crowd) == released(name, whole)


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
            SparkCrowd.from_frame(spark.read.parquet(folder), user="id", features=["age"])
