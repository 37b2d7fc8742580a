"""Giant users under a public cap: the records that a cap keeps, and never more in memory."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.engines.capping import CappedRecords
from quorate.engines.files import FileCrowd
from quorate.engines.layout import Layout
from quorate.exceptions import ParameterError
from quorate.users import UserData


def assert_same(mine, expected):
    order = np.argsort(expected.keys())
    assert np.array_equal(mine.keys(), expected.keys()[order])
    assert np.array_equal(mine.record_counts(), expected.record_counts()[order])
    assert np.array_equal(mine.X, expected.take(order).X)
    assert np.array_equal(mine.y, expected.take(order).y)


@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from([1.0, 2.5, np.nan])),
        max_size=40,
    ),
    piece=st.integers(1, 9),
    cap=st.integers(1, 5),
    seed=st.integers(0, 3),
)
def test_what_is_kept_piece_by_piece_is_what_the_cap_of_the_whole_keeps(rows, piece, cap, seed):
    ids, x = zip(*rows, strict=True) if rows else ((), ())
    y = np.arange(len(ids), dtype=np.float64)
    table = pa.table({"id": pa.array(ids, pa.string()), "x": pa.array(x, pa.float64()), "y": y})
    layout = Layout.of(table.schema, user="id", target="y", cap=cap, random_state=seed)
    batches = [batch for batch in table.to_batches(piece) if batch.num_rows]
    mine = layout.together(map(layout.records, batches))
    assert_same(mine, UserData.from_frame(table, user="id", target="y").cap(cap, random_state=seed))


def test_another_seed_keeps_other_records():
    table = pa.table({"id": [1] * 50, "x": np.arange(50.0), "y": np.arange(50.0)})
    kept = []
    for seed in (0, 1):
        layout = Layout.of(table.schema, user="id", target="y", cap=5, random_state=seed)
        kept.append(layout.together(map(layout.records, table.to_batches(7))).y.tolist())
    assert kept[0] != kept[1]
    assert all(rows == sorted(rows) and len(rows) == 5 for rows in kept)


def test_the_ranks_go_on_from_piece_to_piece():
    """The broken twin counts each piece from 0 and keeps other records."""

    class Forgetful(CappedRecords):
        def add(self, piece):
            self._counts = np.zeros_like(self._counts)
            super().add(piece)

    table = pa.table({"id": [1] * 50, "x": np.arange(50.0)})
    layout = Layout.of(table.schema, user="id", cap=5, random_state=0)
    found = []
    for kind in (CappedRecords, Forgetful):
        kept = kind(layout)
        for batch in table.to_batches(7):
            kept.add(layout.records(batch))
        found.append(kept.records["x"].ravel().tolist())
    expected = UserData.from_frame(table, user="id").cap(5, random_state=0).X.ravel().tolist()
    assert found[0] == expected != found[1]


def giant(rows=400_000, pieces=40):
    """Yield the batches of one user with very many records, and of some others."""
    rng = np.random.default_rng(0)
    for _ in range(pieces):
        size = rows // pieces
        users = np.where(rng.random(size) < 0.99, 0, rng.integers(0, 50, size))
        columns = [pa.array(users), *(pa.array(rng.standard_normal(size)) for _ in range(4))]
        yield pa.record_batch(columns, names=["id", *"abcd"])


def peak_of_a_round(monkeypatch, cap):
    from quorate.engines import part_files

    monkeypatch.setattr(part_files, "_PIECE_BYTES", 2**18)
    schema = next(giant(1000)).schema
    layout = Layout.of(schema, user="id", cap=cap, random_state=0)
    crowd = FileCrowd.from_batches(giant(), layout, n_parts=2, threads=1)
    tracemalloc.start()
    counts = crowd.map(UserData.record_counts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return max(map(np.max, counts)), peak


def test_a_giant_user_is_never_held_whole(monkeypatch):
    whole = 400_000 * 8 * 5
    held, peak = peak_of_a_round(monkeypatch, cap=100)
    assert (held, peak < whole / 6) == (100, True)
    # The control: without a cap the part is held whole.
    held, peak = peak_of_a_round(monkeypatch, cap=None)
    assert (held > 390_000, peak > whole) == (True, True)


@pytest.mark.parametrize("cap", [0, -1, 2.5, "3"])
def test_other_caps_are_refused(cap):
    schema = next(giant(1000)).schema
    with pytest.raises(ParameterError, match="cap"):
        Layout.of(schema, user="id", cap=cap)
