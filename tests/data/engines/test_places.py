"""The command line end to end, wherever the users lie: one command, the same release."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from crowd_worlds import EVERY, visits
from quorate import Ledger
from quorate.app.cli import main
from quorate.app.tasks import crowds
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData

pytestmark = pytest.mark.filterwarnings("ignore")

MEAN = "--task mean --user id --features a,b,c --bounds -10,10 --epsilon 9 --delta 1e-5 --json"
MODEL = (
    "--task logistic --user id --features a,c --target y --bounds -5,5 "
    "--epsilon 9 --delta 1e-5 --json"
)


def fitted(table, capsys, *more, task=MEAN):
    """Return what a command printed, with seeded noise.

    How much of the table could be read is left out, and so is the error that follows from it: rows
    are counted where the table is read at once, people elsewhere.
    """
    with use_noise(SeededNoise(0)):
        code = main(["fit", str(table), *task.split(), *map(str, more)])
    said = capsys.readouterr()
    assert code == 0, said.err
    return without_readable(said.out)


def without_readable(printed):
    said = {name: value for name, value in json.loads(printed).items() if name != "readable"}
    follows = ("worst", "covers", "with_rows_left_out")
    return said | {"error": {k: v for k, v in said["error"].items() if k not in follows}}


@pytest.fixture(autouse=True)
def connections(monkeypatch):
    """A command ends with its process, and with it the connection; here the process goes on."""
    opened, connect = [], crowds._client
    monkeypatch.setattr(crowds, "_client", lambda name: opened.append(connect(name)) or opened[-1])
    yield
    for client in opened:
        client.close()


@pytest.fixture(scope="module")
def csv_folder(tmp_path_factory):
    """The same world as a folder of CSV files."""
    folder = tmp_path_factory.mktemp("csv")
    table = visits()
    cuts = np.linspace(0, table.num_rows, 5).astype(int)
    for number, (start, stop) in enumerate(pairwise(cuts)):
        piece = table.slice(start, stop - start)
        pyarrow.csv.write_csv(piece, folder / f"{number}.csv")
    return folder


@pytest.mark.parametrize("task", [MEAN, MODEL], ids=["mean", "model"])
def test_a_folder_is_grouped_on_disk(folder, capsys, task):
    expected = fitted(folder, capsys, task=task)
    assert fitted(folder, capsys, "--engine", "files", task=task) == expected


def test_a_folder_of_csv_is_grouped_on_disk(csv_folder, folder, capsys, monkeypatch):
    expected = fitted(csv_folder, capsys)
    grouped = []
    group = crowds.TableFile.group
    monkeypatch.setattr(
        crowds.TableFile, "group", lambda *given: grouped.append(1) or group(*given)
    )
    assert fitted(csv_folder, capsys, "--engine", "files") == expected
    assert grouped == [1]
    # Ids, order and numbers are those of the Parquet files; a release of text also counts its rows.
    columns = {"user": "id", "features": ["a", "b", "c"]}
    both = UserData.from_csv(csv_folder, **columns), UserData.from_parquet(folder, **columns)
    text, typed = (people.take(np.argsort(people.keys())) for people in both)
    assert np.array_equal(text.keys(), typed.keys())
    assert np.array_equal(text.X, typed.X)


@pytest.mark.slow
@pytest.mark.parametrize("task", [MEAN, MODEL], ids=["mean", "model"])
def test_a_dask_scheduler_by_its_address(cluster, folder, capsys, task):
    expected = fitted(folder, capsys, task=task)
    found = fitted(folder, capsys, "--engine", cluster.place, task=task)
    assert found == expected


@pytest.mark.slow
def test_spark_by_the_name_of_its_master(spark, folder, capsys):
    found = fitted(folder, capsys, "--engine", "local[2]")
    assert found == fitted(folder, capsys)


SEEDED = """
import sys
from quorate.app.cli import main
from quorate.core.noise import SeededNoise, use_noise
with use_noise(SeededNoise(0)):
    sys.exit(main(sys.argv[1:]))
"""


def free_port():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


@pytest.fixture
def standalone(tmp_path):
    """The address of a Spark master with one worker, each a process of its own."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java (Debian: apt-get install default-jre)")
    if not EVERY:
        pytest.skip("three Java machines take long: with QUORATE_EVERY_ENGINE=1")
    home = Path(pytest.importorskip("pyspark").__file__).parent
    place, doors = f"spark://127.0.0.1:{free_port()}", ["--webui-port", "0"]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}

    def start(name, *arguments):
        command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}", *arguments]
        log = (tmp_path / name).open("w")
        with log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    port = place.rpartition(":")[2]
    running = [start("master.Master", "--host", "127.0.0.1", "--port", port, *doors)]
    work = ["--cores", "2", "--memory", "1g", "--work-dir", tmp_path / "work", *doors]
    running.append(start("worker.Worker", *work, place))
    for _ in range(300):
        if "Registering worker" in (tmp_path / "master.Master").read_text():
            break
        time.sleep(0.2)
    yield place, environment
    for process in running[::-1]:
        process.terminate()
        process.wait()


@pytest.mark.slow
def test_a_spark_master_of_its_own_by_its_address(standalone, folder, capsys):
    place, environment = standalone
    run = subprocess.run(
        [sys.executable, "-c", SEEDED, "fit", folder, *MEAN.split(), "--engine", place],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert without_readable(run.stdout) == fitted(folder, capsys)


@pytest.mark.slow
def test_a_ledger_is_charged_before_a_cluster_reads(cluster, folder, capsys, tmp_path):
    book = Ledger(tmp_path / "book.db")
    book.set_budget("visits", epsilon=9.0, delta=1e-5, unit="id")
    more = ("--ledger", tmp_path / "book.db", "--data-name", "visits", "--engine", cluster.place)
    command = ["fit", str(folder), *MEAN.split(), *map(str, more)]
    assert main(command) == 0
    assert book.remaining("visits").epsilon == 0.0
    capsys.readouterr()
    assert main(command) != 0
    assert "Nothing was charged" in capsys.readouterr().err


@pytest.fixture
def book(tmp_path):
    """A ledger that holds exactly one fit, and the words that name it."""
    ledger = Ledger(tmp_path / "book.db")
    ledger.set_budget("visits", epsilon=9.0, delta=1e-5, unit="id")
    return ledger, ["--ledger", str(tmp_path / "book.db"), "--data-name", "visits"]


COUNTED = """
import sys
from quorate.data.files.table_files import Columns, TableFile
from quorate.app.tasks.crowds import Place
place, table = Place("local[2]"), TableFile(sys.argv[1])
columns = Columns(user=("id",), features=("a",))
print(place.crowd(table, columns, place.connect()).n_users)
"""


@pytest.mark.slow
def test_spark_workers_run_the_interpreter_of_the_driver(spark, folder, whole, without_quorate):
    # In a virtual environment that is not activated, python3 is another interpreter.
    environment = {name: v for name, v in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment["PATH"] = f"{without_quorate}{os.pathsep}{environment['PATH']}"
    run = subprocess.run(
        [sys.executable, "-c", COUNTED, folder],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert int(run.stdout) == whole.n_users


@pytest.mark.slow
def test_spark_workers_without_quorate_are_refused_for_free(
    spark, folder, capfd, without_quorate, monkeypatch, book
):
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(without_quorate / "python3"))
    ledger, named = book
    assert main(["fit", str(folder), *MEAN.split(), *named, "--engine", "local[2]"]) != 0
    said = capfd.readouterr()
    assert "No module named 'quorate'" in said.err
    assert "PYSPARK_PYTHON" in said.err
    assert "Nothing was charged" in said.err
    assert said.err.count("\n") == 1
    assert ledger.remaining("visits").epsilon == 9.0


@pytest.mark.slow
def test_every_dask_worker_is_probed_before_the_charge(
    cluster, folder, capsys, without_quorate, book
):
    # Other tests may have ended a worker: whoever is there will do.
    cluster.client.wait_for_workers(1, timeout=60)
    before = set(cluster.client.scheduler_info(n_workers=-1)["workers"])
    settings = ("--no-nanny", "--no-dashboard", "--nthreads", "1")
    address = cluster.place.replace("dask://", "tcp://")
    bare = cluster.start("worker", *settings, address, hidden=[without_quorate])
    cluster.client.wait_for_workers(len(before) + 1, timeout=60)
    ledger, named = book
    try:
        code = main(["fit", str(folder), *MEAN.split(), *named, "--engine", cluster.place])
    finally:
        bare.terminate()
        bare.wait()
        cluster.processes.remove(bare)
    said = capsys.readouterr()
    assert code != 0
    assert "No module named 'quorate'" in said.err
    assert "Nothing was charged" in said.err
    assert said.err.count("\n") == 1
    assert ledger.remaining("visits").epsilon == 9.0


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("dask://127.0.0.1:8786", "distributed", "dask"),
        ("spark://127.0.0.1:7077", "pyspark", "spark"),
        ("local[2]", "pyspark", "spark"),
    ],
)
def test_a_missing_extra_is_one_line_with_the_command_that_installs_it(
    folder, capsys, monkeypatch, name, module, extra
):
    monkeypatch.setitem(sys.modules, module, None)
    assert main(["fit", str(folder), *MEAN.split(), "--engine", name]) != 0
    said = capsys.readouterr()
    assert f"pip install 'quorate[{extra}]'" in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_scheduler_that_is_not_there_is_one_line_and_nothing_is_charged(folder, capsys, tmp_path):
    dask = pytest.importorskip("dask")
    book = Ledger(tmp_path / "book.db")
    book.set_budget("visits", epsilon=9.0, delta=1e-5, unit="id")
    more = ["--ledger", str(tmp_path / "book.db"), "--data-name", "visits"]
    with dask.config.set({"distributed.comm.timeouts.connect": "0.3s"}):
        code = main(["fit", str(folder), *MEAN.split(), *more, "--engine", "dask://127.0.0.1:9"])
    said = capsys.readouterr()
    assert code != 0
    assert said.err.count("\n") == 1
    assert "dask://127.0.0.1:9" in said.err
    assert book.remaining("visits").epsilon == 9.0
