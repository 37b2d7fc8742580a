"""A small world with a column of every kind, and every public door through which it comes.

A *case* is one estimator with the columns that it reads. A *door* turns columns into what ``fit``
takes, and knows which odd cells it can carry: a list carries anything, a column of floats only
floats. :func:`fits` yields, for a door and a case, the usual fit and one with each odd cell.
"""

import datetime
import decimal
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import adbc_driver_sqlite.dbapi
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sklearn.base import clone

import quorate as qr
from odd_cells import OBJECTS, SECRET
from quorate.core.users import UserData
from quorate.data.engines.files import FileCrowd
from quorate.learners.concepts import Thresholds
from quorate.papers.queries.algorithms import ConjunctionQueries
from quorate.papers.queries.query_learner import QueryLearner
from quorate.papers.stability import StableLearner

N_USERS, EACH = 36, 3
ROWS = N_USERS * EACH
PLACE = 0  # the first record of the first person: types are often guessed from the first row
DRINKS = ["tea", "rum", "mat"]
FIRST_DAY = datetime.date(2020, 1, 1)
RANGE = (FIRST_DAY, datetime.date(2020, 12, 31))

_rows = range(ROWS)
COLUMNS = {
    "who": [100 + i % N_USERS for i in _rows],
    "x": [(i * 7 + i * i // 37) % 10 + 0.5 for i in _rows],
    "k": [(i * 5 + i // 7) % 4 for i in _rows],
    "bit": [i // 3 % 2 for i in _rows],
    "bet": [i // 5 % 2 for i in _rows],
    "drink": [DRINKS[(i * 5 + i // 7) % 3] for i in _rows],
    "day": [FIRST_DAY + datetime.timedelta(days=70 * (i * 5 % 4)) for i in _rows],
    "smokes": [i % 3 == 0 for i in _rows],
    "ill": ["yes" if i % 5 < 2 else "nay" for i in _rows],
    "hit": [int(i % 4 > 1) for i in _rows],
}
KINDS = {
    "who": "id",
    "x": "real",
    "k": "whole",
    "bit": "whole",
    "bet": "whole",
    "drink": "text",
    "day": "day",
    "smokes": "truth",
    "ill": "text",
    "hit": "whole",
}


@dataclass(frozen=True)
class Case:
    """One estimator with the columns that it reads."""

    estimator: Any
    features: tuple[str, ...]
    target: str | None = None
    classes: tuple[Any, ...] | None = None
    private_labels: bool = False
    categories: dict = field(default_factory=dict)
    dates: dict = field(default_factory=dict)

    @property
    def columns(self):
        return (*self.features, *(() if self.target is None else (self.target,)))

    @property
    def one_label(self):
        return isinstance(self.estimator, qr.DiscreteDistribution)


LARGE = {"epsilon": 40.0, "delta": 1e-3}
MODEL = {"steps": 2, "progress": False, "random_state": 0, **LARGE}
CODED = {
    "bounds": {"x": (0.0, 10.0), "day": RANGE, "smokes": (0.0, 1.0)},
    "categories": {"drink": DRINKS[:2], "k": [0, 1]},
}
MIXED = ("x", "drink", "day", "k", "smokes")
READ = {"categories": CODED["categories"], "dates": {"day": RANGE}}
SUMS = {"statistics": {"people": "users", "x": "sum"}, "bounds": {"x": (0.0, 10.0)}}
YES = ("nay", "yes")

CASES = {
    "mean": Case(qr.UserMean(bounds=(0.0, 10.0), **LARGE), ("x",)),
    "coded mean": Case(qr.UserMean(algorithm="clip", **CODED, **LARGE), MIXED, **READ),
    "median": Case(qr.PrivateMedian(epsilon=4.0, bounds=(0.0, 10.0)), ("x",)),
    "model": Case(qr.LogisticRegression(classes=YES, **CODED, **MODEL), MIXED, "ill", YES, **READ),
    "model of numbers": Case(
        qr.LinearRegression(bounds=(0.0, 10.0), target_bounds=(0.0, 1.0), **MODEL),
        ("x", "k"),
        "hit",
    ),
    "cut-off": Case(qr.ThresholdLearner(epsilon=4.0, domain=(0, 9), random_state=0), ("k",), "hit"),
    "stable": Case(StableLearner(Thresholds(0, 4), epsilon=4.0, random_state=0), ("k",), "hit"),
    "queries": Case(QueryLearner(ConjunctionQueries(2), 40.0), ("bit", "bet"), "hit"),
    "shares": Case(
        qr.DiscreteDistribution(4.0, categories=DRINKS), ("drink",), categories={"drink": DRINKS}
    ),
    "shares of numbers": Case(qr.DiscreteDistribution(4.0, categories=[0, 1, 2, 3]), ("k",)),
    "shares of truths": Case(qr.DiscreteDistribution(4.0, categories=[0, 1]), ("smokes",)),
    "popular shares": Case(
        qr.DiscreteDistribution(40.0, delta=1e-3, categories="popular", random_state=0),
        ("drink",),
        private_labels=True,
    ),
    **{
        f"phrases of {name}": Case(
            qr.PopularPhrases(column=name, of=of, random_state=0, **LARGE),
            (name,),
            private_labels=True,
        )
        for name, of in (("drink", "words"), ("drink", "characters"), ("k", "texts"))
    },
    "product": Case(
        qr.ProductDistribution(categories=[DRINKS, [0, 1, 2, 3]], epsilon=4.0), ("drink", "k")
    ),
    "histogram": Case(qr.Histogram(4.0, bounds=(0.0, 10.0), bins=5), ("x",)),
    "count": Case(
        qr.UserCount(4.0, where={"drink": ["tea"], "k": (1, None), "smokes": [True]}),
        ("drink", "k", "smokes"),
    ),
    "sum": Case(qr.UserSum(4.0, bounds={"x": (0.0, 10.0)}), ("x",)),
    "table": Case(qr.UserTable(4.0, by="drink", keys=DRINKS, **SUMS), ("drink", "x")),
    "synthetic people": Case(
        qr.UserSynthesizer(40.0, categories={"drink": DRINKS}, bounds={"x": (0.0, 10.0)}, bins=3),
        ("drink", "x"),
    ),
    "table of numbers": Case(qr.UserTable(4.0, by="k", keys=[1, 2], **SUMS), ("k", "x")),
    "table of both": Case(
        qr.UserTable(4.0, by=["drink", "k"], keys={"drink": DRINKS, "k": [0, 1]}, **SUMS),
        ("drink", "k", "x"),
    ),
    "table of rows and all others": Case(
        qr.UserTable(
            4.0, by=["drink", "k"], keys=[(DRINKS[0], 0), (DRINKS[1], 1)], others=True, **SUMS
        ),
        ("drink", "k", "x"),
    ),
    **{
        f"popular {name}": Case(
            qr.UserTable(by=name, keys="popular", random_state=0, **SUMS, **LARGE),
            (name, "x"),
            private_labels=True,
        )
        for name in ("drink", "k", "day", "smokes")
    },
}


@dataclass(frozen=True)
class Door:
    """How columns come in, and which odd cells of a kind can come along.

    ``enter(case, column, cell)`` returns the arguments of ``fit``, with the cell where the person's
    second record has this column, or the usual cells if ``column`` is None. ``odd(kind)`` names
    what may stand in a cell of a column of this kind.
    """

    enter: Callable[..., tuple[Any, Any, Any]]
    odd: Callable[[str], dict[str, Any]]
    takes: Callable[[Case], bool] = lambda _: True

    def run(self, case, column=None, cell=None):
        """Return a fit, to be called."""

        def fit():
            X, y, users = self.enter(case, column, cell)
            return clone(case.estimator).fit(X, y, users=users)

        return fit

    def cells(self, case):
        """Yield every column of a case with every odd cell that it may hold."""
        for column in dict.fromkeys(case.columns):
            for name, cell in self.odd(KINDS[column]).items():
                yield column, name, cell


def cells_of(name, column=None, cell=None):
    """Return the cells of a column, with an odd one if it is this column's turn."""
    found = list(COLUMNS[name])
    if name == column:
        found[PLACE] = cell
    return found


def objects(cells):
    """Return an array of objects, whatever they are."""
    made = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        made[place] = cell
    return made


def only(*kinds):
    """Return which odd cells there are if columns of some kinds can hold them."""
    return lambda cells: lambda kind: cells if not kinds or kind in kinds else {}


def of_numbers(case):
    """Whether a case reads numbers only, without names."""
    return without_names(case) and all(KINDS[name] in ("real", "whole") for name in case.columns)


def without_names(case):
    """Whether a case reads columns without names: all of numbers, or one of labels."""
    tables = isinstance(
        case.estimator, qr.UserTable | qr.UserCount | qr.UserSum | qr.UserSynthesizer
    )
    return not tables and (not case.categories or case.one_label)


# Lists and arrays of objects.


def _listed(case, column, cell):
    columns = [cells_of(name, column, cell) for name in case.features]
    X = columns[0] if case.one_label else [list(row) for row in zip(*columns, strict=True)]
    y = None if case.target is None else cells_of(case.target, column, cell)
    return X, y, list(COLUMNS["who"])


def _as_objects(case, column, cell):
    columns = [objects(cells_of(name, column, cell)) for name in case.features]
    X = columns[0] if case.one_label else np.stack(columns, axis=1)
    y = None if case.target is None else objects(cells_of(case.target, column, cell))
    return X, y, np.array(COLUMNS["who"])


def _objects_beside_numbers(case, column, cell):
    X, y, users = _as_objects(case, column if column == case.target else None, cell)
    return X.astype(np.float64), y, users


# Arrays of numpy, of one type.

_FLOATS = {
    "not a number": np.nan,
    "infinite": -np.inf,
    "largest": 1.7e308,
    "smallest": 5e-324,
    "minus zero": -0.0,
    "between": 2.5,
}
_SHORT_TEXTS = {"other": SECRET, "none": "", "ends early": "tea\0x", "a number": "2"}
_OCTETS = {"no text": b"\xff\xfe", "other": SECRET.encode(), "none": b"", "half": b"\xed\xa0\x80"}


def _array(kind):
    def enter(case, column, cell):
        def made(name):
            usual = COLUMNS[name]
            array = np.array([str(c) for c in usual] if kind != "f8" else usual).astype(kind)
            if name == column:
                array[PLACE] = cell
            return array

        columns = [made(name) for name in case.features]
        X = columns[0] if case.one_label else np.stack(columns, axis=1)
        return X, None if case.target is None else made(case.target), np.array(COLUMNS["who"])

    return enter


def _masked(case, column, cell):
    X, y, users = _array("f8")(case, None, None)
    X, places = np.ma.array(X), [name for name in case.features if name == column]
    for name in places:
        X[(PLACE,) if case.one_label else (PLACE, case.features.index(name))] = cell
    return X, y, users


# Arrow, of every type that can hold a column.

_TICKS = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def _unit(kind):
    return {pa.date32(): 1, pa.date64(): _TICKS["ms"]}.get(kind) or _TICKS[kind.unit]


def from_octets(octets, kind):
    """Return texts of a type of Arrow from octets that need be none."""
    if pa.types.is_dictionary(kind):
        distinct = list(dict.fromkeys(o for o in octets if o is not None))
        places = [None if o is None else distinct.index(o) for o in octets]
        values = from_octets(distinct, kind.value_type)
        return pa.DictionaryArray.from_arrays(pa.array(places, kind.index_type), values)
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(from_octets(octets, kind.value_type))
    plain = {
        pa.string(): pa.binary(),
        pa.large_string(): pa.large_binary(),
        pa.string_view(): pa.binary_view(),
    }.get(kind, kind)
    made = pa.array(octets, plain)
    return made if plain == kind else pa.Array.from_buffers(kind, len(made), made.buffers())


def arrow_column(name, kind, column=None, cell=None):
    """Return a column as an Arrow array of a type, with an odd cell if it is its turn."""
    cells, dates = COLUMNS[name], pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if dates:
        cells = [(c - datetime.date(1970, 1, 1)).days * _unit(kind) for c in cells]
    elif KINDS[name] in ("text", "day"):
        cells = [str(c).encode() for c in cells]
    elif pa.types.is_decimal(kind):
        cells = [decimal.Decimal(str(c)) for c in cells]
    elif not pa.types.is_boolean(kind):
        cells = [int(c) if pa.types.is_integer(kind) else float(c) for c in cells]
    cells = list(cells)
    if name == column:
        cells[PLACE] = cell
    if dates:
        return pa.array(cells, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    if KINDS[name] in ("text", "day"):
        return from_octets(cells, kind)
    if pa.types.is_float16(kind):
        known = np.array([np.nan if c is None else c for c in cells], np.float16)
        return pa.array(known, mask=np.array([c is None for c in cells]))
    return pa.array(cells, kind)


USUAL = {
    "id": pa.int64(),
    "whole": pa.int64(),
    "real": pa.float64(),
    "text": pa.string(),
    "day": pa.date32(),
    "truth": pa.bool_(),
}
_REAL = (
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal32(9, 2),
    pa.decimal64(18, 2),
    pa.decimal128(20, 2),
    pa.decimal256(70, 3),
)
_WHOLE = (
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
    pa.float64(),
    pa.decimal128(38, 0),
)
_TEXT = (
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.binary(3),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
    pa.dictionary(pa.uint16(), pa.binary()),
    pa.dictionary(pa.int64(), pa.string_view()),
    pa.run_end_encoded(pa.int32(), pa.string()),
)
_DAY = (
    pa.date32(),
    pa.date64(),
    *(pa.timestamp(unit) for unit in _TICKS),
    pa.timestamp("us", tz="UTC"),
    pa.timestamp("ns", tz="Pacific/Kiritimati"),
    pa.string(),
)
ARROW_TYPES = {
    "whole": _WHOLE,
    "real": _REAL,
    "text": _TEXT,
    "day": _DAY,
    "truth": (pa.bool_(),),
}


def arrow_odd(kind):
    """Return the odd cells that a type of Arrow can hold."""
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        most, unit = 2 ** (kind.bit_width - 1), _unit(kind)
        far = {"after 9999": 3_000_000 * unit, "before 1": -800_000 * unit}
        found = {"last": most - 1, "first": -most, "part of a day": 18262 * unit + 7}
        return {"nothing": None} | found | {n: t for n, t in far.items() if abs(t) < most}
    if pa.types.is_boolean(kind):
        return {"nothing": None, "true": True}
    if pa.types.is_decimal(kind):
        most = decimal.Decimal("9" * (kind.precision - kind.scale - 1))
        return {"nothing": None, "most": most, "least": -most}
    if pa.types.is_integer(kind):
        info = np.iinfo(kind.to_pandas_dtype())
        return {"nothing": None, "largest": int(info.max), "least": int(info.min)}
    if pa.types.is_floating(kind):
        top = float(np.finfo(kind.to_pandas_dtype()).max)
        return {"nothing": None, "nan": np.nan, "infinite": -np.inf, "largest": top, "x": 2.5}
    if pa.types.is_fixed_size_binary(kind):
        return {"nothing": None, "no text": b"\xff\xfe\xfd", "zeros": b"\0\0\0"}
    return {
        "nothing": None,
        "none": b"",
        "no text": b"\xff\xfe" + SECRET.encode(),
        "half of a character": b"\xed\xa0\x80",
        "cut off": b"te\xc3",
        "ends early": b"tea\0",
        "long": b"\xff" * 5000,
        "a number": b"2",
        "a date": b"2020-01-05",
        "a far date": b"9999-12-31T23:59:59Z",
    }


def arrow_table(names, column=None, cell=None, **kinds):
    """Return a table of these columns, those of some kinds as other types."""
    types = USUAL | kinds
    return pa.table({name: arrow_column(name, types[KINDS[name]], column, cell) for name in names})


def _frame_door(change, kinds, odd, **others):
    """Return the door of frames that ``change`` makes from an Arrow table."""

    def enter(case, column, cell):
        frame = change(arrow_table([*dict.fromkeys([*case.columns, "who"])], column, cell, **kinds))
        y = None if case.target is None else frame[case.target]
        return frame[list(case.features)], y, frame["who"]

    return Door(enter, odd, **others)


def _selected(table):
    return _ArrowFrame(table)


class _ArrowFrame:
    """An Arrow table with the brackets of other frames."""

    def __init__(self, table):
        self.table = table

    def __getitem__(self, names):
        return self.table.column(names) if isinstance(names, str) else self.table.select(names)


ARROW = {
    f"Arrow, {word} as {kind}": _frame_door(_selected, {word: kind}, only(word)(arrow_odd(kind)))
    for word, kinds in ARROW_TYPES.items()
    for kind in kinds
}

# Frames of pandas and polars.


def _pandas(words):
    """Return the door of pandas frames whose columns of some kinds are of another type."""

    def enter(case, column, cell):
        made = {}
        for name in dict.fromkeys([*case.columns, "who"]):
            cells, dtype = cells_of(name, column, cell), words.get(KINDS[name])
            if dtype is object:
                made[name] = pd.Series(objects(cells), dtype=object)
            elif dtype is not None:
                made[name] = pd.Series(cells, dtype=dtype)
            else:
                made[name] = pd.Series(COLUMNS[name])
        frame = pd.DataFrame(made)
        y = None if case.target is None else frame[case.target]
        return frame[list(case.features)], y, frame["who"]

    return enter


_NOTHING = {"nothing": None, "NA": pd.NA}
_LIMITS = {"largest": 2**63 - 1, "least": -(2**63)}
_LATE = {"NaT": pd.NaT, "last": pd.Timestamp.max, "first": pd.Timestamp.min}
_LONG = {"other": SECRET, "none": "", "ends early": "tea\0", "a number": "2", "long": "x" * 5000}
PANDAS_TYPES = {
    "whole": {
        "Int64": _NOTHING | _LIMITS,
        "UInt64": _NOTHING | {"largest": 2**64 - 1},
        "Int8": _NOTHING,
        "int64[pyarrow]": _NOTHING | _LIMITS,
        "category": {"nothing": None, "new": 77},
        "Sparse[int64]": {"largest": 2**62},
    },
    "real": {
        "Float64": _NOTHING | {"infinite": np.inf, "largest": 1.7e308},
        "float32": {"nothing": np.nan, "infinite": -np.inf},
        "double[pyarrow]": _NOTHING | {"nan": np.nan},
        "Sparse[float64]": {"nothing": np.nan},
        "category": {"nothing": None, "new": 1e308},
    },
    "text": {
        "str": {"nothing": None} | _LONG,
        "string[python]": _NOTHING | _LONG,
        "string[pyarrow]": _NOTHING | _LONG,
        "category": {"nothing": None} | _LONG,
    },
    "day": {
        "datetime64[ns]": _LATE,
        "datetime64[s]": {"NaT": pd.NaT, "far": np.datetime64("99999-01-01")},
        "datetime64[us, UTC]": {"NaT": pd.NaT},
        "date32[day][pyarrow]": _NOTHING,
        "timestamp[us][pyarrow]": _NOTHING,
        "period[D]": {"NaT": pd.NaT},
    },
    "truth": {"boolean": _NOTHING, "bool[pyarrow]": _NOTHING},
}
PANDAS = {
    f"pandas, {word} as {dtype}": Door(_pandas({word: dtype}), only(word)(odd))
    for word, dtypes in PANDAS_TYPES.items()
    for dtype, odd in dtypes.items()
} | {
    f"pandas, {word} as objects": Door(_pandas({word: object}), only(word)(OBJECTS))
    for word in PANDAS_TYPES
}


def _polars(table):
    return pl.from_arrow(table)


_POLARS_TYPES = {
    "whole": (pa.int8(), pa.int64(), pa.uint64()),
    "real": (pa.float32(), pa.float64(), pa.decimal128(20, 2)),
    "text": (pa.large_string(), pa.dictionary(pa.uint32(), pa.large_string()), pa.large_binary()),
    "day": (pa.date32(), pa.timestamp("us"), pa.timestamp("ns", tz="UTC")),
    "truth": (pa.bool_(),),
}


def _valid(cells):
    """Return the cells that a library takes which checks its texts."""

    def is_text(cell):
        try:
            return not isinstance(cell, bytes) or cell.decode() is not None
        except UnicodeDecodeError:
            return False

    return {name: cell for name, cell in cells.items() if is_text(cell)}


POLARS = {
    f"polars, {word} as {kind}": _frame_door(
        _polars, {word: kind}, only(word)(_valid(arrow_odd(kind)))
    )
    for word, kinds in _POLARS_TYPES.items()
    for kind in kinds
}

# Users that were grouped before: from frames, files and databases.


def asked(case):
    """Return how a case asks for its columns where users are grouped by name."""
    return {
        "user": "who",
        "features": list(case.features),
        "target": case.target,
        "classes": case.classes,
        "categories": case.categories or None,
        "dates": case.dates or None,
    }


def groups(case):
    """Whether a case takes users that were grouped before: all columns become numbers."""
    return all(
        KINDS[name] in ("real", "whole", "truth") or name in {**case.categories, **case.dates}
        for name in case.features
    ) and not isinstance(case.estimator, qr.ProductDistribution)


def _crowd_door(read, odd, kinds=None):
    def enter(case, column, cell):
        names = list(dict.fromkeys([*case.columns, "who"]))
        table = arrow_table(names, column, cell, **(kinds or {}))
        return read(table, asked(case)), None, None

    return Door(enter, odd, groups)


def _usual_odd(kind):
    return arrow_odd(USUAL[kind])


def _from_frame(table, columns):
    return UserData.from_frame(table, **columns)


@contextmanager
def written(table):
    """Give the path of a Parquet file that holds a table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        pq.write_table(table, path, row_group_size=50)
        yield path


def _from_parquet(table, columns):
    with written(table) as path:
        return UserData.from_parquet(path, **columns)


def _in_files(table, columns):
    with written(table) as path:
        return FileCrowd.from_parquet(path, n_parts=3, **columns)


_LINES = {
    "nothing": b"",
    "no text": b"\xff\xfe" + SECRET.encode(),
    "a zero": b"te\0a",
    "quoted": b'"tea"',
    "an open quote": b'"31337',
    "a quote inside": b'te"a',
    "a return": b"te\ra",
    "a marker": b"\xef\xbb\xbftea",
    "long": b"x" * 5000,
    "a number": b"2",
    "a large number": b"1e999",
    "many digits": b"9" * 400,
    "hexadecimal": b"0x10",
    "not a number": b"nan",
    "infinite": b"-inf",
    "underscores": b"1_0",
    "a comma as a point": b'"1,5"',
    "a date": b"2020-01-05",
    "a far date": b"99999-01-05",
    "blanks": b"  2  ",
    "one column more": b"2,31337",
    "digits of another script": "２".encode(),
}


def _csv(**where):
    def enter(case, column, cell):
        names = list(dict.fromkeys(["who", *case.columns]))
        cells = [[str(c).encode() for c in COLUMNS[name]] for name in names]
        if column is not None:
            cells[names.index(column)][PLACE] = cell
        lines = [",".join(names).encode(), *(b",".join(row) for row in zip(*cells, strict=True))]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "table.csv")
            path.write_bytes(b"\n".join(lines) + b"\n")
            return UserData.from_csv(path, **where, **asked(case)), None, None

    return enter


# What a database without types holds in a cell, and what one with types does.
_STORED = {
    name: OBJECTS[name]
    for name in (
        "nothing",
        "1e308",
        "infinite",
        "another number",
        "-2^63",
        "text",
        "no text",
        "a number as text",
        "a large number as text",
        "a text that ends early",
        "digits of another script",
        "a date as text",
        "octets",
        "octets that are no text",
    )
}


def _sqlite(connect):
    def enter(case, column, cell):
        names = list(dict.fromkeys([*case.columns, "who"]))
        plain = (int, float, str)
        rows = zip(
            *(
                [c if isinstance(c, plain) else str(c) for c in COLUMNS[name]]
                if name != column
                else [
                    c if isinstance(c, plain) or i == PLACE else str(c)
                    for i, c in enumerate(cells_of(name, column, cell))
                ]
                for name in names
            ),
            strict=True,
        )
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "base.sqlite"))
            with closing(sqlite3.connect(path)) as base, base:
                base.execute(f"create table t ({', '.join(names)})")
                base.executemany(f"insert into t values ({','.join('?' * len(names))})", rows)
            with closing(connect(path)) as base:
                crowd = UserData.from_sql(base, "select * from t order by rowid", **asked(case))
        return crowd, None, None

    return enter


def _duckdb(table, columns):
    with closing(duckdb.connect()) as base:
        base.register("arrow", table)
        base.execute("create table t as select * from arrow")
        return UserData.from_sql(base, "select * from t", **columns)


GROUPED = {
    "users from a frame": _crowd_door(_from_frame, _usual_odd),
    "users from Parquet": _crowd_door(_from_parquet, _usual_odd),
    "users from Parquet, texts as a dictionary": _crowd_door(
        _from_parquet,
        only("text")(arrow_odd(pa.string())),
        {"text": pa.dictionary(pa.int32(), pa.string())},
    ),
    "users from Parquet, real as decimals": _crowd_door(
        _from_parquet, only("real")(arrow_odd(pa.decimal128(20, 2))), {"real": pa.decimal128(20, 2)}
    ),
    "users from Parquet, days as times": _crowd_door(
        _from_parquet, only("day")(arrow_odd(pa.timestamp("us"))), {"day": pa.timestamp("us")}
    ),
    "users in files": _crowd_door(_in_files, _usual_odd),
    "users from CSV": Door(_csv(), only()(_LINES), groups),
    "users from CSV, in files": Door(_csv(spool=True), only()(_LINES), groups),
    "users from sqlite": Door(_sqlite(sqlite3.connect), only()(_STORED), groups),
    "users from sqlite, by ADBC": Door(
        _sqlite(adbc_driver_sqlite.dbapi.connect), only()(_STORED), groups
    ),
    "users from duckdb": _crowd_door(_duckdb, lambda kind: _valid(_usual_odd(kind))),
}

DOORS = {
    "list": Door(_listed, only()(OBJECTS), without_names),
    "objects": Door(_as_objects, only()(OBJECTS), without_names),
    "labels as objects": Door(
        _objects_beside_numbers,
        only()(OBJECTS),
        lambda case: of_numbers(case) and case.target is not None,
    ),
    "floats": Door(_array("f8"), only()(_FLOATS), of_numbers),
    "masked floats": Door(_masked, only()(_FLOATS | {"masked": np.ma.masked}), of_numbers),
    "texts of numpy": Door(_array("U40"), only()(_SHORT_TEXTS | {"half": "\ud800"}), without_names),
    "octets of numpy": Door(_array("S40"), only()(_OCTETS), without_names),
    "strings of numpy": Door(
        _array(np.dtypes.StringDType()),
        only()(_SHORT_TEXTS),
        without_names,
    ),
    **ARROW,
    **PANDAS,
    **POLARS,
    **GROUPED,
}

# One of each kind of trouble.
TROUBLES = (
    "nothing",
    "1e308",
    "a huge integer",
    "text",
    "octets that are no text",
    "a loud decimal",
    "the last day",
    "a list",
    "an array",
    "a furious object",
    "an object without a class",
    "a furious number",
)


@dataclass(frozen=True)
class RouteDoor:
    """A route of :mod:`fitting_worlds` whose people come through one of three cheap doors."""

    route: Any
    kind: str

    @cached_property
    def columns(self):
        people = self.route.people()
        users = np.repeat(np.arange(people.n_users), people.record_counts())
        return people.X, people.y, users

    def cells(self):
        """Yield a column, the first one or the target, with each kind of trouble."""
        for column in ("X", "y"):
            odd = {name: OBJECTS[name] for name in TROUBLES}
            if self.kind == "Arrow":
                odd = arrow_odd(pa.float64())
            if self.kind != "labels as objects" or column == "y":
                yield from ((column, name, cell) for name, cell in odd.items())

    def run(self, column=None, cell=None):
        """Return a fit, to be called."""
        X, y, users = self.columns
        rows, targets = X.tolist(), y.tolist()
        if column == "X":
            rows[0][0] = cell
        if column == "y":
            targets[0] = cell

        def fit():
            given, told = rows, targets
            if self.kind == "labels as objects":
                given, told = X, objects(targets)
            if self.kind == "Arrow":
                names = [f"x{place}" for place in range(X.shape[1])]
                held = [pa.array(each, pa.float64()) for each in zip(*rows, strict=True)]
                given, told = pa.table(held, names), pa.array(targets, pa.float64())
            return self.route.fresh().fit(given, told, users=users)

        return fit
