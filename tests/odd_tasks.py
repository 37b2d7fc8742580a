"""Every task of the command line on a small file with one odd cell."""

import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from quorate.app.catalogue import TASKS, Target
from quorate.app.tasks.fitting import FitRequest, fit
from quorate.data.files.table_files import Columns, TableFile
from quorate.ranges import Limit

N_USERS, EACH = 40, 3
_rows = range(N_USERS * EACH)
COLUMNS = {
    "patient": [f"p{i % N_USERS}" for i in _rows],
    "age": [20 + i * 7 % 50 for i in _rows],
    "dose": [i * 13 % 10 for i in _rows],
    "ill": ["yes" if i * 13 % 10 > 4 else "no" for i in _rows],
}
TYPES = {"patient": pa.string(), "age": pa.float64(), "dose": pa.int64(), "ill": pa.string()}


def _asked(task):
    """Return what a task is asked about, from what the catalogue says about it."""
    told = TASKS[task]
    asked = {"features": ("dose",), "options": dict(told.asks), "limits": (Limit(0, 100),)}
    if told.target is Target.LABEL:
        asked |= {"target": "ill", "classes": ("no", "yes")}
    if told.target is Target.NUMBER:
        asked |= {"target": "age"}
    return asked


ASKED = {task: _asked(task) for task in TASKS}
ASKED["table"] = {
    "features": (),
    "limits": (Limit(0, 9, "dose"),),
    "options": {"by": "ill", "keys": "no,yes", "statistics": "visits=count,dose=sum"},
}
ASKED["phrases"] = {"features": (), "delta": 1e-3, "options": {"column": "ill", "of": "words"}}
ASKED["synth"] = {
    "features": ("dose", "ill"),
    "limits": (Limit(0, 9, "dose"),),
    "categories": {"ill": ("no", "yes")},
    "options": {"bins": "4"},
}
# The law of its coins has too many paths to be compared here.
ASKED["parity"]["algorithm"] = "vote"
for _task in ("covariance", "normal"):
    ASKED[_task]["delta"] = 1e-3
_LINES = {
    "nothing": b"",
    "no text": b"\xff\xfe31337",
    "text": b"31337x",
    "a far number": b"1e308",
    "many digits": b"9" * 400,
    "quotes": b'"a""b"',
    "an open quote": b'"31337',
}
_PAGES = {
    pa.string(): {"nothing": None, "no text": b"\xff\xfe31337", "text": b"31337x"},
    pa.int64(): {"nothing": None, "largest": 2**63 - 1, "least": -(2**63)},
    pa.float64(): {"nothing": None, "nan": float("nan"), "infinite": float("inf"), "far": 1e308},
}


def odd(suffix, column):
    """Return what may stand in a cell of a column of a file."""
    return _LINES if suffix == "csv" else _PAGES[TYPES[column]]


def read_columns(task):
    """Return the columns in which a task may find an odd cell."""
    asked = ASKED[task]
    labels = ("ill", "dose") if task == "table" else ()
    return [*asked["features"], *labels, *([asked["target"]] if "target" in asked else [])]


def fit_of(task, suffix, column=None, cell=None):
    """Return a fit of a task on a file, to be called."""
    asked = dict(ASKED[task])
    own = {name: asked.pop(name) for name in ("target", "classes", "categories") if name in asked}
    columns = Columns(user=("patient",), features=asked.pop("features"), **own)
    asked |= {"epsilon": 40.0, "delta": asked.get("delta", TASKS[task].default_delta)}
    request = FitRequest(task=task, columns=columns, **asked)

    def run():
        # What nobody seeds is public all the same: both fits get the same.
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch.object(np.random, "default_rng", _seeded),
        ):
            path = Path(folder, f"visits.{suffix}")
            write(path, column, cell)
            return _Told(fit(request, TableFile(path)))

    return run


def _seeded(seed=None, generator=np.random.default_rng):
    return generator(0 if seed is None else seed)


class _Told:
    """What a fit tells: everything but where the file was."""

    def __init__(self, found):
        self.estimator, self.readable = found.estimator, found.readable
        self.n_users, self.guarantee_ = found.n_users, found.estimator.guarantee_


def write(path, column, cell):
    """Write the table with one odd cell, of whatever octets."""
    if path.suffix == ".parquet":
        table = pa.table({name: pa.array(COLUMNS[name], kind) for name, kind in TYPES.items()})
        if column is not None:
            place = table.column_names.index(column)
            table = table.set_column(place, column, _odd(COLUMNS[column], TYPES[column], cell))
        pq.write_table(table, path)
        return
    cells = {name: [str(c).encode() for c in held] for name, held in COLUMNS.items()}
    if column is not None:
        cells[column][0] = cell
    rows = zip(*cells.values(), strict=True)
    path.write_bytes(b"\n".join([",".join(cells).encode(), *(b",".join(r) for r in rows), b""]))


def _odd(cells, kind, cell):
    if pa.types.is_string(kind):
        octets = pa.array([cell, *(c.encode() for c in cells[1:])], pa.binary())
        return pa.Array.from_buffers(kind, len(octets), octets.buffers())
    return pa.array([cell, *cells[1:]], kind)
