"""Rows of a query: the same people from every database, and no word about rows in errors."""

import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
import traceback
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from quorate import UserData
from quorate.exceptions import ParameterError, SchemaError

QUERY = "select person, day, x, y, label from visits order by place"
CREATE = (
    "create table visits (place integer, person text, day integer, x double precision, "
    "y double precision, label text)"
)


def visits(seed=0, rows=400):
    rng = np.random.default_rng(seed)
    for place in range(rows):
        person = f"per'son {rng.integers(0, 40)}" if rng.random() > 0.05 else None
        x = round(float(rng.standard_normal()), 1) if rng.random() > 0.05 else None
        label = ("yes", "no", "maybe")[rng.integers(0, 3)]
        yield place, person, int(rng.integers(0, 3)), x, float(rng.standard_normal()), label


@pytest.fixture(scope="module")
def expected():
    rows = list(visits())
    return UserData.from_arrays(
        [[row[3]] for row in rows], [row[4] for row in rows], users=[row[1] for row in rows]
    )


def fill(cursor, mark="?"):
    cursor.execute(CREATE)
    cursor.executemany(f"insert into visits values ({','.join([mark] * 6)})", list(visits()))


@pytest.fixture(scope="module")
def sqlite_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("sqlite") / "visits.db"
    with closing(sqlite3.connect(path)) as base:
        fill(base.cursor())
        base.commit()
    return path


@pytest.fixture
def sqlite_dbapi(sqlite_file):
    with closing(sqlite3.connect(sqlite_file)) as base:
        yield base


@pytest.fixture
def sqlite_adbc(sqlite_file):
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi")
    with dbapi.connect(str(sqlite_file)) as base:
        yield base


@pytest.fixture
def duckdb_connection():
    duckdb = pytest.importorskip("duckdb")
    with closing(duckdb.connect()) as base:
        fill(base)
        yield base


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL server of our own on a socket in a temporary folder."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    tool = shutil.which("initdb") or (str(found[-1]) if found else None)
    if tool is None:
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    binaries = Path(tool).parent
    folder = Path(tempfile.mkdtemp(prefix="quorate-postgres-"))
    who = []
    if os.getuid() == 0:  # a server refuses to run as root
        try:
            account = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        # Not every PATH has the folder of the administrator's tools.
        places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
        switch = shutil.which("runuser", path=places)
        if switch is None:
            pytest.skip("PostgreSQL does not run as root, and there is no runuser")
        who = [switch, "-u", "postgres", "--"]

    def run(name, *arguments):
        command = [*who, str(binaries / name), *arguments]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=60)

    run("initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "quorate", "-N", "-E", "UTF8")
    options = f"-c listen_addresses='' -k {folder} -c fsync=off"
    run("pg_ctl", "-D", f"{folder}/data", "-o", options, "-w", "-l", f"{folder}/log", "start")
    try:
        yield f"postgresql:///postgres?host={folder}&user=quorate"
    finally:
        run("pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture
def postgres(server):
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with dbapi.connect(server) as base:
        with base.cursor() as cursor:
            cursor.execute("drop table if exists visits")
            cursor.execute(CREATE)
            for row in visits():
                values = ("null" if v is None else repr(v).replace('"', "$$") for v in row)
                cursor.execute(f"insert into visits values ({', '.join(values)})")
        base.commit()
        yield base


DATABASES = ["sqlite_dbapi", "duckdb_connection", "postgres"]


@pytest.mark.parametrize("name", DATABASES)
class TestEveryDatabase:
    @pytest.mark.parametrize("spool", [False, True])
    def test_the_people_are_those_of_the_rows(self, name, spool, request, expected):
        people = UserData.from_sql(
            request.getfixturevalue(name),
            QUERY,
            user="person",
            features=["x"],
            target="y",
            spool=spool,
        )
        mine = np.concatenate(people.map(lambda part: part.user_sums(part.X + part.y[:, None])))
        order = np.argsort(people.keys())
        whole = expected.take_ranked(np.arange(expected.n_users))
        assert np.array_equal(mine[order], whole.user_sums(whole.X + whole.y[:, None]))
        assert people.unit == "person"

    def test_a_cursor_will_do_and_so_will_several_ids(self, name, request):
        columns = {"user": ["person", "day"], "features": ["x"], "target": "label"}
        with closing(request.getfixturevalue(name).cursor()) as cursor:
            people = UserData.from_sql(cursor, QUERY, classes=("no", "yes"), **columns)
        assert people.unit == "person x day"
        assert people.n_users == len({row[1:3] for row in visits() if row[1] is not None})
        assert set(np.unique(people.y)) == {0.0, 1.0}

    def test_a_failing_query_says_nothing_about_rows(self, name, request):
        base = request.getfixturevalue(name)
        query = "select person, cast(person as integer) / 0 as x from nowhere_31337"
        with pytest.raises(SchemaError, match="withheld") as caught:
            UserData.from_sql(base, query, user="person", features=["x"])
        assert "nowhere_31337" not in "".join(traceback.format_exception_only(caught.value))
        assert caught.value.__context__ is None


def test_numeric_of_postgresql_is_read_as_numbers_and_as_ids(postgres):
    query = (
        "select id, x, g from (values (1::numeric, 2.5::numeric(10, 2), 'a'), (1.0, 3.5, 'b'), "
        "(2, 'NaN', 'a'), (3.5, 1e300, 'a'), (4, 1e-400, 'b')) as t (id, x, g)"
    )
    for spool in (False, True):
        people = UserData.from_sql(postgres, query, user="id", spool=spool)
        assert people.feature_names == ("x",)
        # 1 and 1.0 are one person, 3.5 is nobody's id, and NaN is a missing value.
        assert people.n_users == 3
        counts = np.concatenate(people.map(UserData.record_counts))
        sums = np.concatenate(people.map(UserData.user_sums))
        assert sorted(zip(counts.tolist(), sums.ravel().tolist(), strict=True)) == [
            (0, 0.0), (1, 0.0), (2, 6.0),
        ]  # fmt: skip


def test_a_database_that_declares_types_needs_no_names(duckdb_connection):
    people = UserData.from_sql(duckdb_connection, QUERY, user="person")
    assert "x" in people.feature_names


class TestUndeclaredTypes:
    def test_one_odd_value_changes_nothing_for_the_others(self, sqlite_dbapi):
        def read(x):
            query = f"select 'a' as id, 1.5 as x union all select 'b', {x}"
            return UserData.from_sql(sqlite_dbapi, query, user="id", features=["x"])

        for odd in ("'text'", "null", "x'00ff'", "9e999", "'2.5'"):
            people = read(odd)
            assert people.n_users == 2
            assert people.n_features == 1
            assert people.record_counts()[0] == 1

    def test_a_text_that_is_no_utf8_is_read_beside_others(self, sqlite_dbapi):
        def read(person, label):
            query = f"select 'a' as id, 1.5 as x, 'no' as y union all select {person}, 2.5, {label}"
            given = {"user": "id", "features": ["x"], "target": "y", "classes": ("no", "yes")}
            return UserData.from_sql(sqlite_dbapi, query, **given)

        odd = "cast(x'ff31' as text)"
        assert read("'b'", odd).record_counts().tolist() == [1, 0]
        assert read(odd, "'yes'").record_counts().tolist() == [1, 1]
        assert sqlite_dbapi.text_factory is str

    def test_a_driver_that_guesses_types_is_refused(self, sqlite_adbc):
        with pytest.raises(ParameterError, match=r"sqlite3\.connect"):
            UserData.from_sql(sqlite_adbc, QUERY, user="person", features=["x"])
        with (
            closing(sqlite_adbc.cursor()) as cursor,
            pytest.raises(ParameterError, match="guesses"),
        ):
            UserData.from_sql(cursor, QUERY, user="person", features=["x"])

    def test_features_must_be_named(self, sqlite_dbapi):
        with pytest.raises(SchemaError, match="declares no types"):
            UserData.from_sql(sqlite_dbapi, QUERY, user="person")

    def test_columns_that_are_not_there_are_refused(self, sqlite_dbapi):
        with pytest.raises(SchemaError, match="'age'"):
            UserData.from_sql(sqlite_dbapi, QUERY, user="person", features=["age"])


class TestRefusals:
    def test_what_is_no_database_is_refused(self):
        with pytest.raises(ParameterError, match="got dict"):
            UserData.from_sql({}, QUERY, user="person")
        with pytest.raises(ParameterError, match="query as text"):
            UserData.from_sql(None, 7, user="person")
