"""Giant users under a public cap: the records that a cap keeps, and never more in memory."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.core.users import UserData, own_order
from quorate.core.users.public_choices import in_own_order
from quorate.data.engines import capping
from quorate.data.engines.capping import CappedRecords
from quorate.data.engines.files import FileCrowd
from quorate.data.engines.layout import Layout
from quorate.exceptions import ParameterError


def assert_same(mine, expected):
    order = np.argsort(expected.keys())
    mine, expected = in_own_order(mine), in_own_order(expected.take(order))
    assert np.array_equal(mine.keys(), expected.keys())
    assert np.array_equal(mine.record_counts(), expected.record_counts())
    assert np.array_equal(mine.X, expected.X)
    assert np.array_equal(mine.y, expected.y)


@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", None]),
            st.sampled_from([1.0, 2.5, -0.0, 0.0, np.nan]),
            st.sampled_from([0.0, 1.0]),
        ),
        max_size=40,
    ),
    piece=st.integers(1, 9),
    cap=st.integers(1, 5),
    seed=st.integers(0, 3),
    remembered=st.sampled_from([1, 3, 2**16]),
    random=st.randoms(use_true_random=False),
)
def test_what_is_kept_piece_by_piece_is_what_the_cap_of_the_whole_keeps(
    rows, piece, cap, seed, remembered, random
):
    """Whatever comes first, however often it is sorted, and if few records are remembered."""

    def table_of(rows):
        ids, x, y = zip(*rows, strict=True) if rows else ((), (), ())
        columns = {"id": pa.array(ids, pa.string()), "x": pa.array(x, pa.float64())}
        return pa.table({**columns, "y": pa.array(y, pa.float64())})

    table = table_of(rows)
    layout = Layout.of(table.schema, user="id", target="y", cap=cap, random_state=seed)
    batches = table_of(random.sample(rows, len(rows))).to_batches(piece)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_order, "_REMEMBERED", remembered)
        patch.setattr(own_order, "_NUMBERED", 7)
        patch.setattr(capping, "_WAITING", 1)
        mine = layout.together(layout.records(batch) for batch in batches if batch.num_rows)
        whole = UserData.from_frame(table, user="id", target="y").cap(cap, random_state=seed)
    assert_same(mine, whole)


def test_another_seed_keeps_other_records():
    table = pa.table({"id": [1] * 50, "x": np.arange(50.0), "y": np.arange(50.0)})
    kept = []
    for seed in (0, 1):
        layout = Layout.of(table.schema, user="id", target="y", cap=5, random_state=seed)
        kept.append(layout.together(map(layout.records, table.to_batches(7))).y.tolist())
    assert kept[0] != kept[1]
    assert all(len(rows) == 5 for rows in kept)


def test_copies_are_counted_from_piece_to_piece(monkeypatch):
    """The broken twin counts the copies of each piece from 0 and keeps other records."""

    class Forgetful(CappedRecords):
        def add(self, piece):
            super().add(piece)
            self._copies = np.ones_like(self._copies)

    monkeypatch.setattr(capping, "_WAITING", 1)
    x = np.random.default_rng(0).choice([1.0, 2.0, 3.0], 50, p=[0.6, 0.3, 0.1])
    table = pa.table({"id": [1] * 50, "x": x})
    layout = Layout.of(table.schema, user="id", cap=20, random_state=0)
    found = []
    for kind in (CappedRecords, Forgetful):
        kept = kind(layout)
        for batch in table.to_batches(7):
            kept.add(layout.records(batch))
        found.append(sorted(kept.with_places()["x"].ravel().tolist()))
    expected = UserData.from_frame(table, user="id").cap(20, random_state=0).X.ravel().tolist()
    assert found[0] == sorted(expected) != found[1]


def giant(rows=400_000, pieces=40):
    """Yield the batches of one user with very many records, and of some others."""
    rng = np.random.default_rng(0)
    for _ in range(pieces):
        size = rows // pieces
        users = np.where(rng.random(size) < 0.99, 0, rng.integers(0, 50, size))
        columns = [pa.array(users), *(pa.array(rng.standard_normal(size)) for _ in range(4))]
        yield pa.record_batch(columns, names=["id", *"abcd"])


def peak_of_a_round(monkeypatch, cap):
    from quorate.data.engines import part_files

    monkeypatch.setattr(part_files, "_PIECE_BYTES", 2**16)
    monkeypatch.setattr(own_order, "_REMEMBERED", 2**11)
    monkeypatch.setattr(capping, "_WAITING", 2**11)
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
