"""One part in files: as it came, then in order, and the same users either way."""

import errno
import os

import numpy as np
import pyarrow as pa
import pytest

from quorate.core.users import UserData
from quorate.data.engines.base import PartWork, Schema
from quorate.data.engines.layout import Layout
from quorate.data.engines.part_files import PartFiles
from quorate.data.engines.spool import Spool


@pytest.fixture(params=[pa.float32(), pa.float64()], ids=str)
def part(request):
    rng = np.random.default_rng(0)
    x = pa.array(rng.standard_normal(200), pa.float64()).cast(request.param)
    table = pa.table({"id": rng.integers(0, 30, 200), "x": x, "y": rng.standard_normal(200)})
    layout = Layout.of(table.schema, user="id", target="y")
    part = PartFiles(Spool(), "00000", layout.schema, layout)
    batches = table.to_batches(70)
    part.append([layout.records(batches[0]), layout.records(batches[1])])
    part.append([layout.records(batch) for batch in batches[2:]])
    part.expected = UserData.from_frame(table, user="id", target="y")
    return part


def files(part):
    return sorted(path.suffix for path in part.spool.folder.iterdir() if path.suffix != ".lock")


def assert_same(data, expected):
    expected = expected.take_ranked(np.arange(expected.n_users))
    for name in ("X", "y", "offsets"):
        assert np.array_equal(getattr(data, name), getattr(expected, name))


class TestOrder:
    def test_what_came_in_pieces_comes_out_whole(self, part):
        assert_same(part.load(), part.expected)

    def test_means_leave_the_records_as_they_came(self, part):
        part.run(PartWork((), UserData.user_means), ((),))
        assert files(part) == [".raw"]

    def test_the_order_is_written_down_when_it_was_needed(self, part):
        part.run(PartWork((), lambda users: users.X.sum()), ((),))
        assert files(part) == [".npy"] * 4
        assert_same(part.load(), part.expected)
        assert part.load().in_order

    def test_users_are_counted_before_and_after_they_lie_in_order(self, part):
        assert part.has_arrivals
        assert part.count_users() == part.expected.n_users
        part.settle()
        assert not part.has_arrivals
        assert part.count_users() == part.expected.n_users

    def test_the_system_may_take_less_than_all_at_a_time(self, part, monkeypatch):
        taken = []

        def few(file, pieces):
            taken.append(os.write(file, memoryview(np.asarray(pieces[0]).view(np.uint8))[:37]))
            return taken[-1]

        before = part._path("raw").read_bytes()
        again = PartFiles(part.spool, "00001", part._schema, part._layout)
        monkeypatch.setattr(os, "writev", few)
        records = np.frombuffer(before, part._layout.dtype)
        again.append([records[:50], records[50:50], records[50:]])
        assert again._path("raw").read_bytes() == before
        assert len(taken) >= len(before) // 37

    def test_nobody_else_can_read_what_came(self, part):
        assert part._path("raw").stat().st_mode & 0o077 == 0

    def test_a_part_without_records_has_no_users(self, part):
        empty = PartFiles(part.spool, "00001", Schema.of(part.expected))
        assert empty.load().n_users == 0

    def test_without_room_the_part_stays_as_it_came(self, part, monkeypatch):
        def full(*_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(np.lib.format, "write_array", full)
        part.settle()
        assert files(part) == [".raw"]
        assert_same(part.load(), part.expected)

    def test_many_threads_can_map_a_part_at_once(self, part, monkeypatch):
        """numpy reads a header as Python code, which is not safe in threads."""
        part.settle()

        def unsafe(*_):
            raise SystemError("AST constructor recursion depth mismatch")

        monkeypatch.setattr("ast.literal_eval", unsafe)
        monkeypatch.setattr("ast.parse", unsafe)
        assert_same(part.load(), part.expected)
