"""Clusters that several files of tests share: starting one takes seconds."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crowd_worlds import COLUMNS, digest, visits, write
from quorate.core.users import UserData
from workers import is_last_of_clusters

# Dask looks at itself fifty times a second, which costs a fifth of a core for as long as it lives.
CALM = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "60s",
}

# What ends a cluster, a client or a session that is running.
ENDINGS = []


def pytest_runtest_teardown(item, nextitem):
    """End clusters when nobody needs them any more: they are not idle when nothing is asked."""
    if is_last_of_clusters(item, nextitem):
        end_all()


def end_all():
    while ENDINGS:
        ENDINGS.pop()()
    # Spark leaves a handler behind that asks the session, which is gone, to end its jobs.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The world as a folder of Parquet files."""
    return write(visits(), tmp_path_factory.mktemp("visits"))


@pytest.fixture(scope="session")
def whole(folder):
    return UserData.from_parquet(folder, **COLUMNS)


@pytest.fixture(scope="session")
def expected(whole):
    return digest(whole)


class RealCluster:
    """A scheduler and three workers as processes of their own, as on three machines."""

    def __init__(self, folder):
        import distributed

        self.log = Path(folder) / "log"
        file = str(Path(folder) / "scheduler.json")
        self.processes = []
        self.start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", file)
        for _ in range(3):
            settings = ("--no-nanny", "--no-dashboard", "--nthreads", "1")
            self.start("worker", *settings, "--scheduler-file", file)
        self.client = distributed.Client(scheduler_file=file, set_as_default=False, timeout=60)
        self.client.wait_for_workers(3, timeout=60)

    @property
    def place(self):
        """The cluster as the command line names it."""
        return self.client.scheduler_info(n_workers=0)["address"].replace("tcp://", "dask://")

    def start(self, *arguments, hidden=()):
        """Start a process; modules in the folders ``hidden`` stand before all others."""
        path = [*map(str, hidden), *(p for p in sys.path if p)]
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path))
        for name, value in CALM.items():
            environment[f"DASK_{name.replace('.', '__').replace('-', '_').upper()}"] = str(value)
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "dask", *arguments]
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self.processes.append(process)
        return process

    def close(self):
        self.client.close()
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:  # a worker that waits for others who were killed
                process.kill()
                process.wait()


@pytest.fixture(scope="session")
def without_quorate(tmp_path_factory):
    """A folder in which ``python3`` is an interpreter that has everything but Quorate."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "quorate.py").write_text("raise ModuleNotFoundError(\"No module named 'quorate'\")")
    script = folder / "python3"
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec "{sys.executable}" "$@"\n'
    )
    script.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'quorate[dask]'")
    cluster = RealCluster(tmp_path_factory.mktemp("cluster"))
    ENDINGS.append(cluster.close)
    yield cluster
    end_all()


@pytest.fixture(scope="session")
def client():
    """A cluster in this process: workers are threads, so that no second is lost."""
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    with dask.config.set(CALM):
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        )
        client = distributed.Client(cluster, set_as_default=False)
    ENDINGS.extend([cluster.close, client.close])
    yield client
    end_all()


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """Two cores of this machine; the tests can be imported by the Python workers."""
    sql = pytest.importorskip("pyspark.sql", reason="Spark: pip install 'quorate[spark]'")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java (Debian: apt-get install default-jre)")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    path = os.pathsep.join(p for p in sys.path if p)
    session = (
        sql.SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        # Code that runs for seconds is not worth compiling well.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.executorEnv.PYTHONPATH", path)
        .config("spark.local.dir", str(tmp_path_factory.mktemp("spark")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    ENDINGS.append(session.stop)
    yield session
    end_all()
