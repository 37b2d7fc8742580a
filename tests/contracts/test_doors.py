"""What a person's cell can do at the doors: be missing, and nothing else; mistakes are free."""

import math
import traceback

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import quorate as qr
from quorate.app.catalogue import CATALOGUE
from quorate.core.users.closed import closed
from quorate.exceptions import ParameterError, QuorateError, SchemaError

N = 60
USERS = np.arange(N) // 2
ROWS = np.random.default_rng(0).normal(size=(N, 2))
LABELS = [b"no" if place % 3 else b"yes" for place in range(N)]
KINDS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]


def texts(octets, kind):
    """Return an Arrow column of texts whose octets nobody has looked at."""
    held = pa.array(octets, pa.binary())
    column = pa.Array.from_buffers(pa.string(), len(held), held.buffers())
    return column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)


def forms(octets):
    """Return labels in every form in which they may be given."""
    objects = [value if value == b"\xff31337" else value.decode() for value in octets]
    yield from (texts(octets, kind) for kind in KINDS)
    yield pa.chunked_array([texts(octets, pa.string())])
    yield pd.Series(texts(octets, pa.string()), dtype=pd.ArrowDtype(pa.string()))
    yield pd.Series(objects, dtype=object)
    yield pd.Series(objects, dtype=object).astype("category")
    yield np.array(objects, dtype=object)
    yield objects


def held_by_others(data):
    """Return what everybody but the first person holds."""
    everybody = data.take(np.arange(1, data.n_users))
    return everybody.X, everybody.y


ODD = [b"\xff31337", *LABELS[1:]]


@pytest.mark.parametrize("form", range(len(KINDS) + 6))
def test_a_label_that_is_no_utf8_is_missing_and_nobody_elses(form):
    plain, odd = list(forms(LABELS))[form], list(forms(ODD))[form]
    classes = ("no", "yes")
    before = qr.UserData.from_arrays(ROWS, plain, users=USERS, classes=classes)
    after = qr.UserData.from_arrays(ROWS, odd, users=USERS, classes=classes)
    assert after.record_counts().tolist() == [1] + [2] * (N // 2 - 1)
    for one, other in zip(held_by_others(before), held_by_others(after), strict=True):
        assert np.array_equal(one, other)
    model = qr.LogisticRegression(epsilon=20.0, delta=1e-6, bounds=(-3.0, 3.0), classes=classes)
    assert model.fit(ROWS, odd, users=USERS).coef_.shape == (1, 2)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_so_it_is_in_a_frame(kind, tmp_path):
    import pyarrow.parquet as pq

    given = {"user": "who", "features": ["x"], "target": "y", "classes": ("no", "yes")}
    tables = [
        pa.table({"who": USERS, "x": ROWS[:, 0], "y": texts(held, kind)}) for held in (LABELS, ODD)
    ]
    found = [qr.UserData.from_frame(table, **given) for table in tables]
    assert found[1].record_counts()[0] == 1
    assert np.array_equal(held_by_others(found[0])[1], held_by_others(found[1])[1])
    if kind == pa.string():
        pq.write_table(tables[1], tmp_path / "odd.parquet")
        read = qr.UserData.from_parquet(tmp_path / "odd.parquet", **given)
        assert np.array_equal(read.y, found[1].y)


def test_ids_that_are_no_utf8_are_people():
    octets = [b"\xff", b"\xff", b"\xfe", b"ann"]
    for kind in KINDS:
        data = qr.UserData.from_arrays(np.ones(4), users=texts(octets, kind))
        assert sorted(data.record_counts().tolist()) == [1, 1, 2]
    objects = pd.Series(octets, dtype=object)
    for given in (octets, objects, objects.to_numpy(), objects.astype("category")):
        data = qr.UserData.from_arrays(np.ones(4), users=given)
        assert sorted(data.record_counts().tolist()) == [1, 1, 2]


def test_a_place_beyond_a_dictionary_is_missing():
    places = pa.array([0, 1, 7, 0], pa.int8())
    column = pa.DictionaryArray.from_arrays(places, pa.array(["no", "yes"]), safe=False)
    data = qr.UserData.from_arrays(np.ones(4), column, users=[1, 2, 3, 4], classes=("no", "yes"))
    assert data.record_counts().tolist() == [1, 1, 0, 1]
    assert qr.UserData.from_arrays(np.ones(4), users=column).record_counts().tolist() == [2, 1]


@pytest.mark.parametrize("odd", [b"\xff", "31337 years", None, {}, [1], np.zeros(2), 10**400, 1j])
def test_one_cell_of_a_list_decides_for_nobody_else(odd):
    flags = [place % 2 == 0 for place in range(N)]
    before = qr.UserData.from_arrays(flags, flags, users=USERS.tolist())
    after = qr.UserData.from_arrays([odd, *flags[1:]], [odd, *flags[1:]], users=USERS.tolist())
    for one, other in zip(held_by_others(before), held_by_others(after), strict=True):
        assert np.array_equal(one, other)


class TestFreeMistakes:
    """What is wrong by its form is refused before the charge, in words that count nothing."""

    mistakes = {  # noqa: RUF012 - a table
        "X is a generator": lambda: ((row for row in ROWS), USERS),
        "X is a set": lambda: ({1.0, 2.0}, USERS),
        "X is a dictionary": lambda: ({"x": ROWS}, USERS),
        "X is rows of rows": lambda: ([[[1.0], [2.0]]] * N, USERS),
        "X is rows without cells": lambda: ([[]] * N, USERS),
        "ids are a generator": lambda: (ROWS, (who for who in USERS)),
        "ids are a set": lambda: (ROWS, set(USERS.tolist())),
        "ids are a tuple": lambda: (ROWS, tuple(USERS.tolist())),
        "ids are a tuple with a column": lambda: (ROWS, (*USERS.tolist()[1:], [1])),
        "ids are rows": lambda: (ROWS, [[7, 8]] * N),
        "ids are tuples of rows": lambda: (ROWS, tuple((7, 8) for _ in range(N))),
        "ids are too few, in Arrow": lambda: (ROWS, pa.array(USERS[:-1])),
        "ids are too few, in a tuple": lambda: (ROWS, (USERS[:-1],)),
        "rows are shuffled": lambda: (
            pd.DataFrame(ROWS).sample(frac=1.0, random_state=1),
            pd.Series(USERS),
        ),
    }

    @pytest.mark.parametrize("mistake", mistakes)
    def test_they_cost_nothing_and_tell_no_number(self, mistake, tmp_path):
        X, users = self.mistakes[mistake]()
        ledger = qr.Ledger(tmp_path / "budget.sqlite")
        ledger.set_budget("visits", epsilon=1.0, delta=1e-6)
        mean = qr.UserMean(epsilon=1.0, delta=1e-6, bounds=3.0, ledger=ledger, data_name="visits")
        with pytest.raises((SchemaError, ParameterError)) as caught:
            mean.fit(X, users=users)
        assert "withheld" not in str(caught.value)
        assert str(N) not in str(caught.value)
        assert str(N - 1) not in str(caught.value)
        assert ledger.spent("visits").epsilon == 0.0

    def test_a_row_of_another_width_is_missing(self):
        rows = ROWS.tolist()
        before = qr.UserData.from_arrays(rows, users=USERS)
        after = qr.UserData.from_arrays([[1.0], *rows[1:]], users=USERS)
        assert after.record_counts()[0] == 1
        assert np.array_equal(held_by_others(before)[0], held_by_others(after)[0])
        mean = qr.UserMean(epsilon=1.0, delta=1e-6, bounds=3.0)
        assert mean.fit([[1.0, 2.0, 3.0], *rows[1:]], users=USERS).mean_.shape == (2,)

    def test_rows_that_become_numbers_are_looked_at_too(self, tmp_path):
        frame = pd.DataFrame({"x": ROWS[:, 0], "drink": ["tea", "milk"] * (N // 2)})
        ledger = qr.Ledger(tmp_path / "budget.sqlite")
        ledger.set_budget("visits", epsilon=1.0, delta=1e-6)
        mean = qr.UserMean(
            epsilon=1.0,
            delta=1e-6,
            bounds={"x": (-3.0, 3.0)},
            categories={"drink": ["tea", "milk"]},
            ledger=ledger,
            data_name="visits",
        )
        with pytest.raises(SchemaError, match="same index"):
            mean.fit(frame[::-1], users=pd.Series(USERS))
        assert ledger.spent("visits").epsilon == 0.0
        with pytest.raises(SchemaError, match="same index"):
            qr.UserData.from_arrays(ROWS, users=pd.Series(USERS), order=pd.Series(USERS)[::-1])

    def test_equal_indexes_are_free_to_differ_in_nothing_else(self):
        frame, users = pd.DataFrame(ROWS, columns=["a", "b"]), pd.Series(USERS)
        mean = qr.UserMean(epsilon=1.0, delta=1e-6, bounds=3.0)
        for shift in (0, 100):
            frame.index, users.index = frame.index + shift, list(users.index + shift)
            assert math.isfinite(mean.fit(frame, users=users).mean_[0])
        with pytest.raises(SchemaError, match="same index"):
            qr.UserData.from_arrays(frame, users=users[::-1])


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_look_of_every_estimator_is_in_the_closed_zone(name):
    for method in ("fit", "ask", "fit_from", "score_users", "cross_validate"):
        look = getattr(CATALOGUE[name].kind, method, None)
        assert look is None or look.__code__ is closed(look).__code__, method


class Loud:
    """An array whose reading fails, and says what it held."""

    shape = (N, 2)
    ndim = 2

    def __array__(self, *args, **kwargs):
        raise ValueError("31337")


def test_what_goes_wrong_inside_a_fit_is_not_told():
    with pytest.raises(QuorateError, match="withheld") as caught:
        qr.UserMean(epsilon=1.0, delta=1e-6, bounds=3.0).fit(Loud(), users=USERS)
    said = "".join(traceback.format_exception(caught.value))
    assert 'ValueError("31337")' not in said
    assert "ValueError: 31337" not in said
