"""Replace one person's cells by anything, at every door, and compare what readers give for others.

Run it: ``python tests/privacy/fuzz_cells.py --cells 100000 --seed 7``, and ``--atheris`` to let
coverage lead where atheris is installed (``pip install atheris``; Quorate does not need it).

A *trial* is a column in a *role* (a feature, a category, a date, a target, an id, an order, a key,
a condition) at a *door*. Two people hold records at random places; the others' cells are usual
ones and odd ones, the person's are replaced by two choices of odd ones. Readers must say the same
twice: the same refusal or none, the same warnings, shapes and types, and for every record of
somebody else the same key, numbers and target to the last bit.
"""

import argparse
import datetime
import decimal
import fractions
import sqlite3
import sys
import tempfile
import uuid
import warnings
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from odd_cells import OBJECTS, SECRET
from odd_doors import from_octets
from quorate.auditing.observations import observe
from quorate.core.users import UserData
from quorate.data import tables
from quorate.data.by_group.conditions import as_conditions
from quorate.data.by_group.reading import Reading
from quorate.data.columns.ids import group
from quorate.data.engines.files import FileCrowd
from quorate.data.files.table_files import Columns, TableFile
from quorate.data.frames import open_frame
from quorate.data.labels import PrivateLabels
from quorate.exceptions import QuorateError

N_USERS, EACH = 9, 2
ROWS = N_USERS * EACH
WHO = [i % N_USERS for i in range(ROWS)]
OWN = [i for i, who in enumerate(WHO) if who == 0]
TAGS = [float(i) for i in range(ROWS)]
UNTAGGED = -1.0
OWN_KEY = int(group([WHO[OWN[0]]]).keys[0])
YEAR = ("2020-01-01", "2020-12-31")

# Cells that nobody expects.


def _raises(*_, **__):
    raise RuntimeError(SECRET)


def _warns(*_, **__):
    warnings.warn(SECRET, stacklevel=1)
    return 1


def _lies(*_, **__):
    return "tea"


class _AnyClass(type):
    """A class that says it is any other one."""

    def __hash__(cls):
        return hash(float)

    def __eq__(cls, other):
        return True


class Impostor(metaclass=_AnyClass):
    """An object of a class that says it is that of plain floats."""

    def __float__(self):
        return 2.0

    def __str__(self):
        return "tea"


_KEPT = {"__new__", "__init__", "__class__", "__init_subclass__", "__subclasshook__", "__del__"}
_KEPT |= {"__array_finalize__", "__getattribute__", "__setattr__", "__reduce__", "__reduce_ex__"}


def hostile(base, manner, *given, **named):
    """Return something of a class derived from a plain one whose every method misbehaves."""
    methods = {n: manner for n in dir(base) if n not in _KEPT and callable(getattr(base, n))}
    made = type("Hostile", (base,), {})(*given, **named)
    for name, method in methods.items():
        with suppress(TypeError):
            setattr(type(made), name, method)
    return made


def _hostile_ones():
    for manner in (_raises, _warns, _lies):
        yield from (hostile(str, manner, text) for text in ("tea", "yes", "2", "\ud800"))
        yield from (hostile(kind, manner, b"tea") for kind in (bytes, bytearray))
        yield from (hostile(kind, manner, 1) for kind in (int, np.float64, np.int64))
        yield from (hostile(kind, manner, "1.5") for kind in (float, decimal.Decimal))
        yield hostile(fractions.Fraction, manner, 1, 3)
        yield from (hostile(kind, manner, [2.0, 1.0]) for kind in (list, tuple))
        yield hostile(dict, manner, a=1)
        yield hostile(datetime.date, manner, 2020, 1, 5)
        yield hostile(datetime.datetime, manner, 2020, 1, 5)
        yield hostile(datetime.time, manner, 3)
        yield hostile(uuid.UUID, manner, int=7)
        yield hostile(np.str_, manner, "tea")
        yield hostile(np.datetime64, manner, "2020-01-05")
        yield np.array([1.0, 2.0]).view(type(hostile(np.ndarray, manner, 2)))
        yield hostile(object, manner)
    yield Impostor()


HOSTILE = [*_hostile_ones()]
USUAL = ["tea", "rum", "yes", "nay", 0, 1, 2.5, "2", True, None, datetime.date(2020, 2, 3)]
DIGITS = ["1", "-2.5", "1e5", "1_0", " 2 ", "inf", "nan", "0x10", "1e400", "True", "+3", "nan(1)"]


def some_of(cells):
    """Draw one of these, of which nothing is printed."""
    return st.integers(0, len(cells) - 1).map(cells.__getitem__)


octets = st.one_of(
    st.binary(max_size=9),
    st.sampled_from([b"tea", b"rum", b"yes", b"nay", b"\xff\xfe", b"\xed\xa0\x80", b"te\xc3"]),
    st.sampled_from([b"2020-02-03", b"2020-02-31", b"9999-12-31T23:59:60Z", b"tea\0", b"x" * 300]),
    st.sampled_from([each.encode() for each in DIGITS]),
    st.text(max_size=5).map(lambda text: text.encode("utf-8", "surrogatepass")),
)
plain = st.one_of(
    st.sampled_from(USUAL),
    st.integers(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.text(st.characters(), max_size=6),
    st.sampled_from(DIGITS),
    octets,
    st.decimals(allow_nan=True),
    st.fractions(),
    st.complex_numbers(),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([None, datetime.UTC])),
    st.times(),
    st.timedeltas(),
    st.uuids(),
)
anything = st.one_of(
    plain,
    some_of(list(OBJECTS.values())),
    some_of(HOSTILE),
    st.lists(plain, max_size=30),
    st.lists(st.lists(st.integers(), max_size=2), min_size=1, max_size=4).map(lambda x: x * 30),
    st.tuples(plain, plain),
    st.dictionaries(st.text(max_size=2), st.none(), max_size=2),
    st.builds(np.float32, st.floats(width=32)),
    st.builds(
        np.datetime64, st.integers(-(2**63) + 1, 2**63 - 1), st.sampled_from(["Y", "D", "s", "ns"])
    ),
    some_of([np.longdouble("1e4000"), np.void(b"abc"), np.ma.masked, np.zeros((2, 2))]),
)

# What readers say about every record.


@dataclass(frozen=True)
class Told:
    """What everybody sees of a reading, and what it says about each record."""

    public: tuple
    rows: Counter


def of_part(people):
    """Return which key, numbers and target each record has, by its tag, which comes first."""
    rows, targets, keys, found = people.X, people.y, people.keys(), Counter()
    for user, (start, end) in enumerate(pairwise(people.offsets.tolist())):
        for place in range(start, end):
            told = None if targets is None else (targets.dtype.str, targets[place].tobytes())
            row = (rows.dtype.str, rows[place].tobytes())
            found[float(rows[place, 0]), int(keys[user]), row, told] += 1
    return found


def of_people(crowd):
    """Return what a crowd holds, in whatever parts."""
    public = (repr(crowd), crowd.feature_names, crowd.n_features, crowd.unit, crowd.has_target)
    return Told(public, sum(crowd.map(of_part), Counter()))


def of_rows(*columns):
    """Return what is said about each row, of which there are as many as there were."""
    public = tuple((type(c), getattr(c, "dtype", None), len(c)) for c in columns)
    shown = (tuple(np.asarray(c[i]).tobytes() for c in columns) for i in range(ROWS))
    return Told(public, Counter((float(i), *row) for i, row in enumerate(shown)))


def difference(one, other):
    """Return by what two readings can be told apart, beside the records of one person."""
    if str(one.error) != str(other.error) or type(one.error) is not type(other.error):
        return f"raised {one.error!r} and {other.error!r}"
    for said in ("warned", "logged", "printed"):
        if getattr(one, said) != getattr(other, said):
            return f"{said} {getattr(one, said)!r} and {getattr(other, said)!r}"
    if one.error is not None:
        return f"quoted {one.error!r}" if SECRET in str(one.error) else ""
    mine, theirs = one.result, other.result
    if mine.public != theirs.public:
        return f"showed {mine.public} and {theirs.public}"
    for changed in (mine.rows - theirs.rows, theirs.rows - mine.rows):
        # A record of the person may have lost its tag, or hold somebody else's.
        strangers = [r for r in changed.elements() if r[0] not in OWN and r[1] != OWN_KEY]
        if len(strangers) > len(OWN) or any(row[0] != UNTAGGED for row in strangers):
            return f"moved {strangers[:3]}"
    return ""


# Roles: what a column is read as. "c" is the column, "tag" says which record it is.

CATEGORIES = {"category": ["tea", "rum"], "number": [0, 1]}
TARGETS = {"label": ("nay", "yes"), "numbered label": (0, 1), "target": None}
ROLES = ("feature", *CATEGORIES, "day", *TARGETS, "id", "two ids", "order", "missing")
KEYS = {"text keys": ("tea", "rum", "2"), "number keys": (1, 2), "popular": None}
TABLE_ROLES = (*KEYS, "condition")


def asked(role):
    """Return how a crowd is asked for a column in a role."""
    found = {"user": "who", "features": ["tag", "c"], "missing": UNTAGGED}
    if role in CATEGORIES:
        found["categories"] = {"c": CATEGORIES[role]}
    if role == "day":
        found["dates"] = {"c": YEAR}
    if role in TARGETS:
        found |= {"features": ["tag"], "target": "c", "classes": TARGETS[role]}
    if role in ("id", "two ids"):
        found |= {"features": ["tag"], "user": "c" if role == "id" else ["who", "c"]}
    if role == "order":
        found |= {"features": ["tag"], "order": "c"}
    return found | ({"missing": "drop"} if role == "missing" else {})


def crowd_of(read, role):
    """Return what a crowd that ``read`` makes holds; under an order, what is left by a cap."""
    people = read(**asked(role))
    return of_people(people.cap(1, random_state=0) if role == "order" else people)


def grouped(table, role):
    """Return what the tables of :mod:`quorate.tabulate` read."""
    if role == "condition":
        reading = Reading(values=("tag",), where=as_conditions({"c": ["tea", "2"]}))
    else:
        keys = None if KEYS[role] is None else (KEYS[role],)
        reading = Reading(by=("c",), keys=keys, values=("tag",))
    columns, labels = reading._columns(open_frame(table, reading.columns), ROWS)
    if not labels:
        return of_rows(*columns)
    said = [None if np.isnan(n) else repr(labels[0].label(n)) for n in columns[0]]
    return of_rows(np.array(said, dtype="U400"), *columns[1:])


def of_frame(table, role):
    """Return what is read of a frame."""
    if role in TABLE_ROLES:
        return grouped(table, role)
    return crowd_of(lambda **columns: UserData.from_frame(table, **columns), role)


def of_parquet(path, role):
    if role in TABLE_ROLES:
        return grouped(TableFile(path)._parquet(["c", "tag"]), role)
    return crowd_of(lambda **columns: UserData.from_parquet(path, **columns), role)


def of_files(path, role):
    def read(**columns):
        if path.suffix == ".csv":
            return UserData.from_csv(path, spool=True, **columns)
        return FileCrowd.from_parquet(path, n_parts=3, **columns)

    return crowd_of(read, role)


def of_csv(path, role):
    if role in TABLE_ROLES:
        columns = Columns(user=("who",), features=("c", "tag"))
        labels = [] if role == "number keys" else ["c"]
        return grouped(TableFile(path).read_labels(columns, labels=labels, ids="id"), role)
    return crowd_of(lambda **columns: UserData.from_csv(path, **columns), role)


# Doors: how cells become something that is read.


def objects(cells):
    """Return an array of objects, whatever they are."""
    made = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        made[place] = cell
    return made


def with_column(column):
    """Return an Arrow table with a column."""
    return pa.table({"who": WHO, "tag": TAGS, "c": column})


def framed(column, dtype):
    """Return a frame of pandas with a column."""
    return pd.DataFrame({"who": WHO, "tag": TAGS, "c": pd.Series(column, dtype=dtype)})


def of_list(cells, role):
    """Return what is read of lists: rows, targets, labels, ids."""
    if role in ("label", "numbered label", "target"):
        rows = [[tag] for tag in TAGS]
        return of_people(
            UserData.from_arrays(rows, cells, users=WHO, classes=TARGETS[role], missing=UNTAGGED)
        )
    if role in ("id", "two ids"):
        users = cells if role == "id" else [list(both) for both in zip(WHO, cells, strict=True)]
        return of_people(UserData.from_arrays([[tag] for tag in TAGS], users=users))
    if role == "rows":
        rows = [
            cell if i in OWN else [tag, 1.0]
            for i, (tag, cell) in enumerate(zip(TAGS, cells, strict=True))
        ]
    elif role == "popular":
        found = PrivateLabels.of_cells(cells)
        said = [None if np.isnan(n) else repr(found.label(n)) for n in found.numbers]
        return of_rows(np.array(said, dtype="U400"))
    else:
        rows = [[tag, cell] for tag, cell in zip(TAGS, cells, strict=True)]
    given = {"asked_by": "a fuzz", "single": False, "of_numbers": True, "classes": None}
    tables.check_rows(rows, None, WHO, **given)
    return of_people(UserData.from_arrays(rows, users=WHO, missing=UNTAGGED))


LIST_ROLES = ("rows", "feature", "label", "numbered label", "target", "id", "two ids", "popular")


def of_objects(cells, role):
    """Return what is read of an array of objects."""
    column, rows = objects(cells), np.array(TAGS)[:, None]
    if role == "id":
        return of_people(UserData.from_arrays(rows, users=column))
    if role == "popular":
        return of_list(column, role)
    return of_people(UserData.from_arrays(rows, column, users=WHO, classes=TARGETS[role]))


NUMPY = ["f2", "f4", "f8", ">f8", "g", "i1", "i8", ">i4", "u1", "u8", "?", "U3", "S3", "M8[ns]"]
NUMPY += ["M8[D]", "M8[Y]", "m8[s]", "c16", "V3", "T"]


def of_numpy(column, role):
    """Return what is read of an array of a declared type."""
    rows = np.array(TAGS)[:, None]
    if role == "id":
        return of_people(UserData.from_arrays(rows, users=column))
    if role in TARGETS or column.dtype == np.bool_:  # which holds no tags
        classes = TARGETS.get(role)
        return of_people(UserData.from_arrays(rows, column, users=WHO, classes=classes))
    if role == "popular":
        return of_list(column, role)
    both = np.ma.column_stack if isinstance(column, np.ma.MaskedArray) else np.column_stack
    made = both([np.array(TAGS).astype(column.dtype), column])
    return of_people(UserData.from_arrays(made, users=WHO, missing=UNTAGGED))


@st.composite
def numpy_columns(draw):
    """Draw two arrays of one type, whose cells may be any octets, or masked."""
    kind = draw(st.sampled_from(NUMPY))
    if kind == "T":
        texts = st.one_of(st.text(max_size=4), st.sampled_from(["tea", "yes", "2", "nay"]))
        usual, other = (np.array(c, np.dtypes.StringDType()) for c in two_columns(draw, texts))
        return usual, other
    width = np.dtype(kind).itemsize
    small = [np.array([n]).astype("f8").astype(kind).tobytes() for n in (0, 1, 2)]
    cells = st.one_of(st.sampled_from(small), st.binary(min_size=width, max_size=width))
    made = [np.frombuffer(b"".join(c), kind).copy() for c in two_columns(draw, cells)]
    if draw(st.booleans()):
        made = [
            np.ma.array(c, mask=m)
            for c, m in zip(made, two_columns(draw, st.booleans()), strict=True)
        ]
    return made


FIXED = [pa.int8(), pa.int64(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()]
FIXED += [pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.duration("us")]
FIXED += [pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", tz="UTC"), pa.binary(4)]
FIXED += [pa.timestamp("ms", tz="Asia/Tokyo"), pa.decimal32(9, 2), pa.decimal64(18, -2)]
FIXED += [pa.decimal128(20, 2), pa.decimal256(70, 0), pa.month_day_nano_interval()]
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()]
TEXTS += [pa.binary_view(), pa.run_end_encoded(pa.int32(), pa.string())]
TEXTS += [pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.binary_view())]


@st.composite
def arrow_columns(draw):
    """Draw two columns of one type of Arrow, whose buffers may hold anything."""
    way = draw(st.sampled_from(["fixed", "text", "views", "places", "nested", "truth"]))
    if way == "fixed":
        kind = draw(st.sampled_from(FIXED))
        width = kind.bit_width // 8
        small = [n.to_bytes(width, "little") for n in (0, 1, 2, 18262)] if width > 1 else [b"\1"]
        cells = st.one_of(st.sampled_from(small), st.binary(min_size=width, max_size=width))
        made = [b"".join(c) for c in two_columns(draw, cells)]
        known = two_columns(draw, st.sampled_from([True, True, True, False]))
        return [
            pa.Array.from_buffers(kind, ROWS, [pa.array(k).buffers()[1], pa.py_buffer(data)])
            for k, data in zip(known, made, strict=True)
        ]
    if way == "text":
        kind = draw(st.sampled_from(TEXTS))
        return [from_octets(c, kind) for c in two_columns(draw, st.one_of(octets, st.none()))]
    if way == "views":
        kind = draw(st.sampled_from([pa.string_view(), pa.binary_view()]))
        long = st.one_of(st.sampled_from([b"tea", b"yes"]), st.binary(min_size=13, max_size=20))
        return [
            broken(from_octets(c, kind), views)
            for c, views in zip(
                two_columns(draw, long),
                two_columns(draw, st.one_of(st.none(), st.binary(min_size=16, max_size=16))),
                strict=True,
            )
        ]
    if way == "places":
        kind = draw(st.sampled_from([np.int8, np.uint8, np.int64, np.uint64]))
        info = np.iinfo(kind)
        places = st.one_of(st.integers(0, 2), st.integers(int(info.min), int(info.max)))
        texts = from_octets([b"tea", b"\xffyes", b"2"], draw(st.sampled_from(TEXTS[:2])))
        return [
            pa.DictionaryArray.from_arrays(pa.array(np.array(c, kind)), texts, safe=False)
            for c in two_columns(draw, places)
        ]
    if way == "nested":
        kind, cells = draw(
            st.sampled_from(
                [
                    (pa.list_(pa.int64()), st.lists(st.integers(0, 3), max_size=3)),
                    (pa.struct({"a": pa.string()}), st.fixed_dictionaries({"a": st.text()})),
                    (pa.map_(pa.string(), pa.int8()), st.just([("a", 1)])),
                ]
            )
        )
        return [pa.array(c, kind) for c in two_columns(draw, st.one_of(st.none(), cells))]
    return [pa.array(c, pa.bool_()) for c in two_columns(draw, st.sampled_from([True, None]))]


def broken(texts, views):
    """Return an array of views, some of which point anywhere."""
    valid, own, *data = texts.buffers()
    octets_of = np.frombuffer(own, np.uint8).copy().reshape(-1, 16)
    for place, view in enumerate(views):
        if view is not None:
            octets_of[place] = np.frombuffer(view, np.uint8)
    return pa.Array.from_buffers(
        texts.type, len(texts), [valid, pa.py_buffer(octets_of.tobytes()), *data]
    )


def two_columns(draw, cells, others=None):
    """Draw two columns that differ in the cells of one person; those of others are mixed too."""
    pool = draw(st.lists(cells if others is None else others, min_size=1, max_size=4))
    places = draw(st.lists(st.integers(0, len(pool) - 1), min_size=ROWS, max_size=ROWS))
    one = [pool[place] for place in places]
    other = list(one)
    for place in OWN:
        one[place], other[place] = draw(cells), draw(cells)
    return one, other


PANDAS = ["Int64", "Float64", "string", "str", "boolean", "datetime64[s]", "period[D]"]
PANDAS += ["Sparse[float64]", "interval", "timedelta64[s]", "UInt8"]

lines = st.one_of(
    octets,
    st.lists(st.sampled_from([b'"', b",", b"\r", b"\0", b"1", b"t"]), max_size=5).map(b"".join),
).map(lambda line: line.replace(b"\n", b""))
stored = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=4),
    octets,
    octets.map(lambda cell: (cell,)),  # text that need be none
)


class Trial:
    """What is read, as what, and two readings of it; cells may not be asked what they are."""

    def __init__(self, door, role, runs):
        self.door, self.role, self.runs = door, role, runs

    def _repr_pretty_(self, printer, _):
        printer.text(f"{self.door}, {self.role}")


@st.composite
def trials(draw, doors):
    """Draw a door, a role and two columns; return its name and two readings."""
    door = draw(st.sampled_from(doors))
    return Trial(door, *_DRAWN[door](draw))


def _lists(draw):
    role = draw(st.sampled_from(LIST_ROLES))
    # How many entries are rows is the shape of a list: others' are none.
    return role, [lambda c=c: of_list(c, role) for c in two_columns(draw, anything, plain)]


def _objects(draw):
    role = draw(st.sampled_from(("id", "label", "numbered label", "popular")))
    return role, [lambda c=c: of_objects(c, role) for c in two_columns(draw, anything)]


def _numpy(draw):
    role = draw(st.sampled_from(("feature", "id", *TARGETS, "popular")))
    return role, [lambda c=c: of_numpy(c, role) for c in draw(numpy_columns())]


def _arrow(draw):
    role = draw(st.sampled_from(ROLES + TABLE_ROLES))
    return role, [lambda c=c: of_frame(with_column(c), role) for c in draw(arrow_columns())]


def _pandas_objects(draw):
    role = draw(st.sampled_from(ROLES + TABLE_ROLES))
    made = [objects(c) for c in two_columns(draw, anything)]
    return role, [lambda c=c: of_frame(framed(c, object), role) for c in made]


def _pandas_arrow(draw):
    role = draw(st.sampled_from(ROLES + TABLE_ROLES))
    made = [pd.arrays.ArrowExtensionArray(pa.chunked_array([c])) for c in draw(arrow_columns())]
    return role, [lambda c=c: of_frame(framed(c, c.dtype), role) for c in made]


def _pandas_types(draw):
    role, kind = draw(st.sampled_from(ROLES + TABLE_ROLES)), draw(st.sampled_from(PANDAS))
    scalars = st.one_of(st.none(), st.sampled_from([0, 1, 2]), st.integers(0, 200))
    if kind in ("string", "str"):
        scalars = st.one_of(st.none(), st.text(st.characters(), max_size=4), st.just("tea"))
    if kind in ("datetime64[s]", "period[D]"):
        scalars = st.one_of(st.just(pd.NaT), st.dates().map(np.datetime64))
    if kind == "boolean":
        scalars = st.sampled_from([True, False, None])
    if kind == "interval":
        scalars = st.integers(0, 5).map(lambda n: pd.Interval(n, n + 1))
    made = []
    for column in two_columns(draw, scalars):
        with suppress(ValueError, TypeError):  # not every type takes every cell
            cells = [0 if c is None and kind.startswith("Sparse") else c for c in column]
            made.append(pd.Series(cells, dtype=None if kind == "interval" else kind))
    return role, [lambda c=c: of_frame(framed(c, c.dtype), role) for c in made]


def _polars(draw):
    role, made = draw(st.sampled_from(ROLES + TABLE_ROLES)), []
    for column in draw(arrow_columns()):
        with suppress(pa.ArrowException, pl.exceptions.PolarsError, UnicodeDecodeError):
            if pa.types.is_decimal256(column.type):  # at which polars panics
                continue
            column.validate(full=True)
            made.append(pl.from_arrow(with_column(column)))
    return role, [lambda c=c: of_frame(c, role) for c in made]


def _in_parquet(read, roles):
    def drawn(draw):
        role, columns = draw(st.sampled_from(roles)), draw(arrow_columns())

        def run(octets_of):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "t.parquet")
                path.write_bytes(octets_of)
                return read(path, role)

        written = []
        for column in columns:
            texts = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
            plain_type = texts.get(column.type)
            with suppress(pa.ArrowException, OSError):
                # Whoever writes a file must be able to read its buffers; UTF-8 need not hold.
                (column if plain_type is None else column.view(plain_type)).validate(full=True)
                file = pa.BufferOutputStream()
                pq.write_table(with_column(column), file)
                written.append(file.getvalue().to_pybytes())
        return role, [lambda c=c: run(c) for c in written]

    return drawn


def _in_csv(read, roles):
    def drawn(draw):
        role, columns = draw(st.sampled_from(roles)), two_columns(draw, lines)

        def run(column):
            rows = zip(WHO, TAGS, column, strict=True)
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "t.csv")
                path.write_bytes(b"who,tag,c\n" + b"".join(b"%d,%.1f,%b\n" % row for row in rows))
                return read(path, role)

        return role, [lambda c=c: run(c) for c in columns]

    return drawn


def _in_sqlite(draw):
    role, columns = draw(st.sampled_from(ROLES)), two_columns(draw, stored)

    def run(column):
        with closing(sqlite3.connect(":memory:")) as base:
            base.execute("create table t (who, tag, c)")
            for who, tag, cell in zip(WHO, TAGS, column, strict=True):
                # A text may hold octets that are none.
                text = "cast(? as text)" if isinstance(cell, tuple | str) else "?"
                held = cell[0] if isinstance(cell, tuple) else cell
                held = held.encode("utf-8", "surrogatepass") if isinstance(held, str) else held
                base.execute(f"insert into t values (?, ?, {text})", (who, tag, held))
            query = "select * from t order by rowid"
            return crowd_of(lambda **columns: UserData.from_sql(base, query, **columns), role)

    return role, [lambda c=c: run(c) for c in columns]


_DRAWN = {
    "lists": _lists,
    "objects": _objects,
    "numpy": _numpy,
    "Arrow": _arrow,
    "pandas objects": _pandas_objects,
    "pandas of Arrow": _pandas_arrow,
    "pandas types": _pandas_types,
    "polars": _polars,
    "Parquet": _in_parquet(of_parquet, ROLES + TABLE_ROLES),
    "Parquet, in files": _in_parquet(of_files, ROLES),
    "CSV": _in_csv(of_csv, ROLES + TABLE_ROLES),
    "CSV, in files": _in_csv(of_files, ROLES),
    "sqlite": _in_sqlite,
}
DOORS = tuple(_DRAWN)


class Tried:
    """How many cells were compared at each door, and how often readers refused."""

    def __init__(self):
        self.cells, self.read = Counter(), Counter()

    def __call__(self, trial):
        door, role = trial.door, trial.role
        if len(trial.runs) < 2:  # a library does not let these cells through
            return
        one, other = map(observe, trial.runs)
        for error in (one.error, other.error):
            assert isinstance(error, QuorateError | None), f"{door}, {role}: {error!r}"
        apart = difference(one, other)
        assert not apart, f"{door}, {role}: {apart}"
        self.cells[door] += len(OWN)
        self.read[door] += one.error is None


def fuzz(tried, *, examples, number=None, doors=DOORS, shrink=True):
    """Try so many examples; a ``number`` says which."""
    run = given(trials(doors))(lambda trial: tried(trial))
    run = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        derandomize=number is None,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )(run)
    return run if number is None else seed(number)(run)


def main():
    """Fuzz until so many cells were replaced and compared, and say how many at each door."""
    asked_for = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked_for.add_argument("--cells", type=int, default=100_000)
    asked_for.add_argument("--seed", type=int, default=0)
    asked_for.add_argument("--atheris", action="store_true", help="let coverage lead")
    asked_for.add_argument("--door", choices=DOORS, help="this door only")
    given_by, others = asked_for.parse_known_args()
    doors = [given_by.door] if given_by.door else DOORS
    tried = Tried()
    if given_by.atheris:
        import atheris

        atheris.instrument_all()
        one = fuzz(tried, examples=1, doors=doors).hypothesis.fuzz_one_input
        atheris.Setup([sys.argv[0], *others], lambda data: one(data))
        atheris.Fuzz()
        return
    number = given_by.seed
    while tried.cells.total() < given_by.cells:
        fuzz(tried, examples=2000, number=number, doors=doors)()
        number += 1
        print(f"{tried.cells.total()} cells", flush=True)
    for door in doors:
        print(f"{door}: {tried.cells[door]} cells, read in {tried.read[door]} trials")


if __name__ == "__main__":
    main()
