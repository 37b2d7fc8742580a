"""From batches to the files of parts: in order, few at a time, and with arrays used again."""

import errno
import threading

import numpy as np
import pyarrow as pa
import pytest

from quorate.data.engines import partition as partitions
from quorate.data.engines.layout import Layout
from quorate.data.engines.part_files import PartFiles
from quorate.data.engines.partition import ahead, partition
from quorate.data.engines.progress import Progress
from quorate.data.engines.spool import Spool
from quorate.exceptions import SchemaError


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    ids = pa.array([int(i) if i else None for i in rng.integers(0, 50, 5000)], pa.int64())
    return pa.table({"id": ids, "x": np.arange(5000.0), "y": rng.standard_normal(5000)})


def written(table, pieces, threads=2, n_parts=4, batches=None):
    layout, spool = Layout.of(table.schema, user="id"), Spool()
    files = [PartFiles(spool, str(i), layout.schema, layout) for i in range(n_parts)]
    with Progress(None, label="grouping", show=False) as bar:
        source = table.to_batches(pieces) if batches is None else batches
        partition(source, layout, files, threads=threads, bar=bar)
    return [np.fromfile(spool.path(f"{i}.raw"), layout.dtype) for i in range(n_parts)]


class TestOrder:
    @pytest.mark.parametrize("buffer", [1, 5000, 2**25])
    @pytest.mark.parametrize("pieces", [7, 300, 5000])
    def test_records_lie_in_the_order_of_the_source(self, table, buffer, pieces, monkeypatch):
        monkeypatch.setattr(partitions, "_BUFFER_BYTES", buffer)
        found = written(table, pieces)
        whole = Layout.of(table.schema, user="id").records(table.to_batches()[0])
        assert sum(map(len, found)) == len(whole) < 5000
        for records in found:
            assert (np.diff(records["x"][:, 0]) > 0).all(), "x counts the rows of the source"
        keys = np.concatenate([records["key"] for records in found])
        assert sorted(keys.tolist()) == sorted(whole["key"].tolist())

    def test_threads_do_not_matter(self, table):
        one, three = written(table, 100, threads=1), written(table, 100, threads=3)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(one, three, strict=True))


class TestMemory:
    def test_arrays_are_used_again(self, table, monkeypatch):
        made = []
        empty = np.empty

        def counting(size, *arguments, **options):
            made.append(size)
            return empty(size, *arguments, **options)

        monkeypatch.setattr(partitions.np, "empty", counting)
        monkeypatch.setattr(partitions, "_BUFFER_BYTES", 2**14)
        written(table, 50)
        assert sum(size == 64 for size in made) < 50, "for 100 batches of 50 rows, twice"

    def test_few_batches_are_under_way_at_once(self):
        now, most, lock = [0], [0], threading.Lock()

        def items():
            for number in range(40):
                with lock:
                    now[0] += 1
                    most[0] = max(most[0], now[0])
                yield number

        for number, result in enumerate(ahead(str, items(), threads=2)):
            assert result == str(number)
            with lock:
                now[0] -= 1
        assert most[0] <= 4


class TestFailure:
    def test_what_cannot_be_read_is_not_quoted(self, table):
        def broken():
            yield from table.to_batches(1000)
            raise ValueError("row 31337 of user 7 is odd")

        with pytest.raises(SchemaError, match="withheld") as caught:
            written(table, 1000, batches=broken())
        assert caught.value.__context__ is None

    def test_a_full_disk_is_told_by_whoever_writes(self, table, monkeypatch):
        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(partitions, "_BUFFER_BYTES", 1)
        monkeypatch.setattr(PartFiles, "append", full)
        with pytest.raises(OSError, match="No space"):
            written(table, 100)
