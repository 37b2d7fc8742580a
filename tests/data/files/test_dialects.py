"""How CSV files are written: stated by the caller, read cell by cell."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate import UserData
from quorate.data.files.csv_lines import read_cells
from quorate.data.files.dialects import Dialect, proposed
from quorate.data.files.table_files import TableFile
from quorate.exceptions import ParameterError, SchemaError

GERMAN = Dialect(separator=";", decimal=",", thousands=".", encoding="latin-1")
SPACED = Dialect(decimal=",", thousands=" ")
ENGLISH = Dialect(thousands=",")


@pytest.mark.parametrize(
    ("dialect", "cell", "number"),
    [
        (ENGLISH, "1,234.00", 1234.0),
        (ENGLISH, "-1,234,567", -1234567.0),
        (ENGLISH, "12.5", 12.5),
        (ENGLISH, "1,23", None),
        (ENGLISH, "1234,567", None),
        (GERMAN, "1.234,5", 1234.5),
        (GERMAN, "0,25", 0.25),
        (GERMAN, "1.5", None),
        (SPACED, "1 234,5", 1234.5),
        (SPACED, " 7,5 ", 7.5),
        (SPACED, "1 2", None),
        (Dialect(decimal=","), "1.5", None),
    ],
)
def test_numbers_are_read_as_they_are_written(dialect, cell, number, tmp_path):
    path = tmp_path / "t.csv"
    # The second cell stands in quotes: it is read by the other of two readers.
    path.write_text(f'x|y\n{cell}|"{cell}"\n')
    read = read_cells(path, "|", names=["x", "y"], numeric={"x", "y"}, dialect=dialect)
    assert read["x"].to_pylist() == read["y"].to_pylist() == [number]


@pytest.mark.parametrize("dialect", [GERMAN, SPACED, ENGLISH, Dialect(thousands="\u202f")])
@given(cells=st.lists(st.text("0123456789., -+e\u202fx", max_size=12), max_size=20))
def test_cells_read_together_are_read_as_one_by_one(dialect, cells):
    octets = [cell.encode() for cell in cells]
    together = dialect.plain_numbers(pa.array(octets, pa.large_binary())).to_pylist()
    assert together == [dialect.plain_number(cell) for cell in octets]


def test_a_german_file_is_read_in_python(tmp_path):
    path = tmp_path / "besuche.csv"
    path.write_bytes("Patient;Größe\nann;1.234,5\nbob;2,5\n".encode("latin-1"))
    with pytest.raises(SchemaError, match="encoding"):
        UserData.from_csv(path, user="Patient", features=["Größe"])
    how = {"separator": ";", "decimal": ",", "thousands": ".", "encoding": "latin-1"}
    people = UserData.from_csv(path, user="Patient", features=["Größe"], **how)
    np.testing.assert_array_equal(np.sort(people.X.ravel()), [2.5, 1234.5])
    spooled = UserData.from_csv(path, user="Patient", features=["Größe"], spool=True, **how)
    assert spooled.n_users == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"separator": ";;"},
        {"separator": '"'},
        {"separator": "\n"},
        {"decimal": ";"},
        {"thousands": "."},
        {"thousands": "0"},
        {"encoding": "no such"},
        {"encoding": "utf-16"},
        {"encoding": "shift_jis"},
        {"encoding": "cp932"},
        {"encoding": "cp500"},
        {"encoding": "utf-7"},
    ],
)
def test_what_could_mix_cells_is_refused(wrong):
    with pytest.raises(ParameterError):
        Dialect(**wrong)


def test_octets_without_a_meaning_stay_in_their_cell(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"user,x\n\x81,1\nb,2\n")
    read = read_cells(
        path, ",", names=["user", "x"], numeric={"x"}, dialect=Dialect(encoding="cp1252")
    )
    assert read["user"].to_pylist() == ["\ufffd".encode(), b"b"]


def test_the_header_proposes_and_rows_do_not(tmp_path):
    assert proposed(b"a;b,c;d", ",") == (",", "utf-8")
    assert proposed(b"a|b", ",") == ("|", "utf-8")
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xff\xfea\x00,\x00b\x00\n\x00")
    with pytest.raises(SchemaError, match="UTF-16"):
        assert TableFile(path).column_names
    path.write_bytes("\ufeffa,b\n".encode())
    assert TableFile(path).column_names == ["a", "b"]


def test_parquet_has_no_separator(tmp_path):
    with pytest.raises(SchemaError, match="CSV"):
        assert TableFile(tmp_path / "t.parquet", GERMAN).separator
    assert TableFile(tmp_path / "t.txt", GERMAN).separator == ";"
