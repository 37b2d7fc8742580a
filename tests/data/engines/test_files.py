"""A crowd in files: equal to the whole in memory, after kills and on full disks too."""

import os
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorate import Ledger, LogisticRegression
from quorate.core.bounds.grid import Ball
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.core.users.crowd import UserMeans
from quorate.data.engines import files
from quorate.data.engines.files import FileCrowd
from quorate.data.engines.layout import Layout
from quorate.data.engines.part_files import PartFiles
from quorate.exceptions import SchemaError
from quorate.means import UserMean
from quorate.mechanisms.sums import choose_grid
from sealing import crowd_counts, crowd_total


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("spools")))
    monkeypatch.setattr("tempfile.tempdir", None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five files of shuffled rows, decimal numbers, text ids, some of them missing."""
    place = tmp_path_factory.mktemp("visits")
    rng = np.random.default_rng(0)
    for number in range(5):
        users = rng.integers(0, 300, 2000)
        ids = pa.array([f"user {u}" if u else None for u in users])
        x = np.round(rng.standard_normal((2000, 3)), 1)
        x[rng.random(2000) < 0.02, 1] = np.nan
        columns = {
            "id": ids,
            "a": x[:, 0],
            "b": x[:, 1],
            "c": x[:, 2],
            "y": rng.integers(0, 2, 2000),
        }
        pq.write_table(pa.table(columns), place / f"{number}.parquet", row_group_size=700)
    return place


def order_dependent(users):
    """Sums in floats whose last bits depend on the order of a user's records."""
    index, size = users.user_index(), users.n_users
    columns = (users.X * 1.1 + users.y[:, None]).T
    return np.stack([np.bincount(index, column, minlength=size) for column in columns], 1)


def _themselves(users):
    return users


OPTIONS = {"user": "id", "features": ["a", "b", "c"], "target": "y"}


class TestEqual:
    @pytest.mark.parametrize("n_parts", [1, 8, 64])
    def test_the_users_are_those_of_the_whole_in_memory(self, folder, n_parts):
        whole = UserData.from_parquet(folder, **OPTIONS)
        crowd = FileCrowd.from_parquet(folder, n_parts=n_parts, **OPTIONS)
        by_key = whole.take_ranked(np.arange(whole.n_users))
        for _ in range(2):
            assert np.array_equal(
                np.concatenate(crowd.map(order_dependent)), order_dependent(by_key)
            )
        assert crowd.n_users == whole.n_users
        statistic = UserMeans(Ball(1.0, dimension=3))
        grid = choose_grid(statistic.bound, n_users=whole.n_users)
        assert (crowd_total(crowd, statistic, grid) == crowd_total(whole, statistic, grid)).all()

    def test_stored_and_fleeting_changes_are_equal(self, folder):
        whole = UserData.from_parquet(folder, **OPTIONS).cap(3, random_state=1)
        crowd = FileCrowd.from_parquet(folder, n_parts=8, **OPTIONS).cap(3, random_state=1)
        by_key = whole.take_ranked(np.arange(whole.n_users))
        assert np.array_equal(np.concatenate(crowd.map(order_dependent)), order_dependent(by_key))

    def test_without_the_order_of_the_source_it_would_differ(self, folder):
        """The control: the same records in another order give other last bits."""
        whole = UserData.from_parquet(folder, **OPTIONS)
        table = pq.read_table(folder)
        layout = Layout.of(table.schema, **OPTIONS)
        turned = table.take(np.arange(table.num_rows)[::-1])
        crowd = FileCrowd.from_batches(turned.to_batches(700), layout, n_parts=8)
        mine = np.concatenate(crowd.map(order_dependent))
        expected = order_dependent(whole.take_ranked(np.arange(whole.n_users)))
        assert not np.array_equal(mine, expected)
        assert np.allclose(mine, expected)

    def test_no_rows_are_no_users(self, tmp_path):
        pq.write_table(
            pa.table({"id": pa.array([], pa.string()), "a": pa.array([], pa.float64())}),
            tmp_path / "none.parquet",
        )
        crowd = FileCrowd.from_parquet(tmp_path, user="id", n_parts=3)
        assert crowd.n_users == 0
        grid = choose_grid(Ball(1.0, dimension=1), n_users=0)
        assert not crowd_total(crowd, UserMeans(grid.bound), grid).any()

    def test_one_giant_user(self, tmp_path):
        pq.write_table(
            pa.table({"id": np.zeros(50_000, int), "a": np.ones(50_000)}), tmp_path / "g.parquet"
        )
        crowd = FileCrowd.from_parquet(tmp_path, user="id", n_parts=16)
        assert crowd.n_users == 1
        few = crowd.cap(5, random_state=0)
        assert crowd_counts(few, UserData.record_counts, np.array([5.0])) == [1]


class TestFewPasses:
    def test_whether_anybody_is_there_is_known_without_reading(self, folder, tmp_path, monkeypatch):
        crowd = FileCrowd.from_parquet(folder, n_parts=4, **OPTIONS)
        empty = FileCrowd.from_parquet(folder, n_parts=4, **OPTIONS).take([])
        assert empty.is_empty
        monkeypatch.setattr(PartFiles, "load", None)
        assert not crowd.is_empty

    def test_nobody_is_there_if_no_row_has_an_id(self, tmp_path):
        table = pa.table({"id": pa.array([None, None], pa.string()), "a": [1.0, 2.0]})
        pq.write_table(table, tmp_path / "none.parquet")
        assert FileCrowd.from_parquet(tmp_path, user="id", n_parts=3).is_empty

    def test_users_are_counted_without_their_records(self, folder, monkeypatch):
        crowd = FileCrowd.from_parquet(folder, n_parts=4, **OPTIONS)
        monkeypatch.setattr(Layout, "users", None)
        assert crowd.n_users == UserData.from_parquet(folder, **OPTIONS).n_users

    def test_a_mean_reads_every_part_once(self, folder, monkeypatch):
        reads = []
        users = Layout.users

        def counting(layout, records):
            reads.append(len(records))
            return users(layout, records)

        crowd = FileCrowd.from_parquet(folder, n_parts=8, **OPTIONS)
        monkeypatch.setattr(Layout, "users", counting)
        UserMean(1.0, delta=1e-6, bounds=10.0).fit(crowd)
        assert len(reads) == 8

    def test_small_parts_are_kept_together_in_the_order_of_the_keys(self, folder, monkeypatch):
        crowd = FileCrowd.from_parquet(folder, n_parts=64, **OPTIONS)
        together = crowd.derive(_themselves, keep=True)
        monkeypatch.setattr(files, "_KEPT_BYTES", 30_000)
        apart = crowd.derive(_themselves, keep=True)
        assert (len(together.sizes), len(crowd.sizes)) == (1, 64)
        assert 1 < len(apart.sizes) < 64
        # How many they are follows from the records: it is not told.
        assert {derived.n_parts for derived in (together, apart, together.cap(1))} == {64}
        assert "n_parts=64" in repr(together)
        for derived in (together, apart):
            assert np.array_equal(derived.keys(), crowd.keys())
            assert sum(derived.sizes) == crowd.n_users
            mine = np.concatenate(derived.map(order_dependent))
            assert np.array_equal(mine, np.concatenate(crowd.map(order_dependent)))


class TestKept:
    def test_a_named_spool_is_used_again_for_the_same_files(self, folder, tmp_path, monkeypatch):
        kept = tmp_path / "kept"
        first = FileCrowd.from_parquet(folder, n_parts=4, spool=kept, **OPTIONS)
        before = first.map(order_dependent)
        del first
        changed = {file.name: file.stat().st_mtime_ns for file in kept.glob("*.npy")}
        monkeypatch.setattr(Layout, "records", None)  # nothing is read again
        again = FileCrowd.from_parquet(folder, n_parts=4, spool=kept, **OPTIONS)
        assert all(map(np.array_equal, again.map(order_dependent), before))
        assert changed == {file.name: file.stat().st_mtime_ns for file in kept.glob("*.npy")}

    def test_other_columns_or_files_are_grouped_anew(self, folder, tmp_path):
        kept = tmp_path / "kept"
        FileCrowd.from_parquet(folder, n_parts=4, spool=kept, **OPTIONS)
        fewer = FileCrowd.from_parquet(folder, n_parts=4, spool=kept, user="id", features=["a"])
        assert fewer.n_features == 1
        assert fewer.map(lambda part: part.X.shape[1]) == [1] * 4


PARTITION = """
import sys, time
import pyarrow.parquet as pq
from quorate.data.engines.files import FileCrowd
from quorate.data.engines.layout import Layout
file = pq.ParquetFile(sys.argv[1] + "/0.parquet")
def slowly():
    for batch in file.iter_batches(100):
        yield batch
        print("piece", flush=True)
        time.sleep(0.2)
layout = Layout.of(file.schema_arrow, user="id", features=["a", "b", "c"], target="y")
FileCrowd.from_batches(slowly(), layout, n_parts=4, spool={spool}, source={{"files": []}})
"""


FIT = """
import os, resource, sys, time
from quorate.app.cli import main
from quorate.data.engines import files, partition
from quorate.data.engines.layout import Layout
files._BATCH_ROWS, partition._BUFFER_BYTES = 100, 1
records = Layout.records
def slowly(layout, batch, **options):
    os.write(1, b"piece\\n")
    time.sleep(0.0 if sys.argv[1] else 0.1)
    return records(layout, batch, **options)
Layout.records = slowly
exec(sys.argv[1])
sys.exit(main(sys.argv[2:]))
"""


def fit_command(folder, tmp_path):
    given = f"fit {folder} --task mean --user id --features a,b,c --bounds -10,10 --epsilon 1"
    given += " --engine files"
    ledger = f"--delta 1e-5 --ledger {tmp_path / 'book.db'} --data-name visits --json"
    return [*given.split(), *ledger.split()]


def spools():
    return list(Path(os.environ["TMPDIR"]).glob("quorate-*/spool-*"))


class TestCrash:
    @pytest.mark.parametrize("named", [False, True])
    def test_a_kill_in_the_middle_leaves_nothing_that_is_trusted(self, folder, tmp_path, named):
        spool = repr(str(tmp_path / "kept")) if named else "None"
        code = PARTITION.format(spool=spool)
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        place = tmp_path / "kept" if named else None
        crowd = FileCrowd.from_parquet(folder, n_parts=4, spool=place, **OPTIONS)
        assert crowd.n_users == UserData.from_parquet(folder, **OPTIONS).n_users
        spools = list((tmp_path.parent / os.environ["TMPDIR"]).glob("quorate-*/spool-*"))
        assert len(spools) == (0 if named else 1)

    def test_a_killed_fit_stays_charged_and_leaves_nothing_that_is_trusted(self, folder, tmp_path):
        """The driver is killed while it groups: after the charge, before the release."""
        book = Ledger(tmp_path / "book.db")
        book.set_budget("visits", epsilon=1.0, delta=1e-5, unit="id")
        command = [sys.executable, "-c", FIT, "", *fit_command(folder, tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert [process.stdout.readline() for _ in range(8)] == ["piece\n"] * 8
        (left,) = spools()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert "epsilon" not in process.stdout.read()
        process.stdout.close()
        assert any(path.stat().st_size for path in left.glob("*.raw")), "records were half-written"
        assert left.stat().st_mode & 0o077 == 0
        assert book.remaining("visits").epsilon == 0.0
        crowd = FileCrowd.from_parquet(folder, n_parts=4, **OPTIONS)
        assert crowd.n_users == UserData.from_parquet(folder, **OPTIONS).n_users
        assert left not in spools()
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        assert again.returncode != 0
        assert "piece" not in again.stdout, "nothing is read that cannot be paid"

    def test_a_fit_on_a_full_disk_says_so_and_leaves_nothing(self, folder, tmp_path):
        book = Ledger(tmp_path / "book.db")
        book.set_budget("visits", epsilon=1.0, delta=1e-5, unit="id")
        limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))"
        run = subprocess.run(
            [sys.executable, "-c", FIT, limit, *fit_command(folder, tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode != 0
        assert "no space left" in run.stderr.lower()
        assert run.stderr.count("\n") == 1
        assert spools() == []
        assert book.remaining("visits").epsilon == 0.0

    def test_a_full_disk_is_a_clear_error_and_nothing_is_left(self, folder):
        """The kernel refuses files above a size, as a full disk would."""
        code = (
            "import resource, signal, sys, os, glob\n"
            "from quorate.data.engines.files import FileCrowd\n"
            "from quorate.exceptions import SpoolError\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
            "try:\n"
            "    FileCrowd.from_parquet(sys.argv[1], user='id', features=['a'], n_parts=2)\n"
            "except SpoolError as error:\n"
            "    print(error)\n"
            "print(glob.glob(os.environ['TMPDIR'] + '/quorate-*/spool-*'))\n"
        )
        run = subprocess.run(
            [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
        )
        assert "no space left" in run.stdout.lower()
        assert run.stdout.splitlines()[-1] == "[]"

    def test_a_table_that_cannot_be_read_says_nothing_about_rows(self, folder):
        def broken():
            yield from pq.ParquetFile(folder / "0.parquet").iter_batches(100)
            raise ValueError("row 31337 of user 7 is odd")

        schema = pq.read_schema(folder / "0.parquet")
        with pytest.raises(SchemaError, match="withheld") as caught:
            FileCrowd.from_batches(broken(), Layout.of(schema, **OPTIONS), n_parts=2)
        assert caught.value.__context__ is None


class TestMemory:
    def test_few_parts_are_in_memory_at_once(self, folder, monkeypatch):
        """Counted by the parts that somebody still holds when another one is read."""
        crowd = FileCrowd.from_parquet(folder, n_parts=40, **OPTIONS)
        alive, most = weakref.WeakSet(), []
        load = PartFiles.load

        def counting(part):
            most.append(len(alive) + 1)
            data = load(part)
            alive.add(data)
            return data

        monkeypatch.setattr(PartFiles, "load", counting)
        crowd.add_up(lambda part: np.array([part.n_users]))
        assert len(most) == 40
        assert max(most) <= 4


@pytest.fixture(scope="module")
def crowds(tmp_path_factory):
    place = tmp_path_factory.mktemp("products")
    rng = np.random.default_rng(0)
    users = rng.permutation(np.repeat(np.arange(200), rng.integers(30, 60, 200)))
    x = rng.standard_normal((len(users), 6))
    columns = {f"x{number}": column for number, column in enumerate(x.T)}
    table = {"id": users, **columns, "y": (x[:, 0] > rng.standard_normal(len(x))).astype(int)}
    pq.write_table(pa.table(table), place / "all.parquet")
    options = {"user": "id", "features": list(columns), "target": "y"}
    whole = UserData.from_parquet(place, **options)
    return whole, FileCrowd.from_parquet(place, n_parts=4, **options)


class TestProducts:
    """Gradients of users with many records are products, whose last bits follow the layout."""

    @staticmethod
    def fitted(crowd):
        with use_noise(SeededNoise(0)):
            return LogisticRegression(20.0, delta=1e-6, classes=[0, 1]).fit(crowd).coef_

    def test_a_model_is_that_of_the_whole_in_memory(self, crowds):
        whole, files = crowds
        assert np.array_equal(self.fitted(files), self.fitted(whole))

    def test_another_layout_would_be_seen(self, crowds, monkeypatch):
        whole, files = crowds
        expected = self.fitted(whole)
        monkeypatch.setattr("quorate.models.coordinates.geometry.is_settled", lambda users: False)
        assert not np.array_equal(self.fitted(files), expected)
