"""What stands in one line of a CSV file does not change how others are read."""

import csv
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest

from quorate.data.files import csv_lines
from quorate.data.files.csv_lines import _Lines, read_cells, read_header, split_line
from quorate.data.files.table_files import Columns, TableFile
from quorate.exceptions import SchemaError

N = 1000
LINES = [b"u%d,%d\n" % (i, i % 10) for i in range(N)]
COLUMNS = Columns(user=("user",), features=("x",))
BAD = {
    "open quote": b'u500,"5\n',
    "open quote before the id": b'"u500,5\n',
    "late quote": b'u500,5"\n',
    "three quotes": b'u500,"""\n',
    "cell too many": b"u500,5,6\n",
    "cell too few": b"u500\n",
    "NUL": b"u500,\x00\n",
    "no text": b"u500,\xff\n",
    "carriage return": b"u500,5\ru1,999\n",
    "two carriage returns": b"u500,5\r\r\n",
    "quoted carriage return": b'u500,"5\ru1,999"\n',
    "byte order mark": b"\xef\xbb\xbfu500,5\n",
    "word": b"u500,five\n",
    "giant": b"u500," + b"9" * 3_000_000 + b"\n",
    "giant in quotes": b'u500,"' + b"z" * 3_000_000 + b'"\n',
    "giant open quote": b'u500,"' + b'""' * 1_500_000 + b"\n",
    "giant cell too many": b"u500,5," + b"z" * 3_000_000 + b"\n",
}


def read(folder, lines, header=b"user,x\n"):
    path = folder / "table.csv"
    path.write_bytes(header + b"".join(lines))
    return read_cells(path, ",", names=["user", "x"], numeric={"x"}, ids={"user"})


def people(folder, lines):
    path = folder / "table.csv"
    path.write_bytes(b"user,x\n" + b"".join(lines))
    return TableFile(path).read(COLUMNS)


class TestOneLineIsOneRow:
    @pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
    @pytest.mark.parametrize("place", [0, 500, N - 1])
    def test_no_cell_changes_the_rows_of_others(self, tmp_path, bad, place):
        table = read(tmp_path, [*LINES[:place], bad, *LINES[place + 1 :]])
        others = np.arange(N) != place
        assert table.num_rows == N
        users = np.array(table["user"].to_pylist(), dtype=object)[others]
        assert users.tolist() == [b"u%d" % i for i in range(N) if i != place]
        np.testing.assert_array_equal(table["x"].to_numpy()[others], (np.arange(N) % 10)[others])

    @pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
    def test_the_number_of_users_does_not_depend_on_a_value(self, tmp_path, bad):
        found = people(tmp_path, [*LINES[:500], bad, *LINES[501:]])
        assert found.n_users == N
        assert found.n_records >= N - 1

    def test_two_open_quotes_do_not_meet(self, tmp_path):
        lines = list(LINES)
        lines[100], lines[900] = b'u100,"5\n', b'u900,5"\n'
        assert people(tmp_path, lines).n_records == N - 2

    def test_the_broken_twin_loses_users(self, tmp_path):
        """A parser for whole files, which the check above catches."""
        lines = [*LINES[:500], BAD["open quote"], *LINES[501:]]
        rows = list(csv.reader(b"".join(lines).decode().splitlines()))
        assert len(rows) < N

    def test_ids_of_a_ragged_line_are_kept_wherever_they_stand(self, tmp_path):
        path = tmp_path / "table.csv"
        path.write_bytes(b"x,user,z\n1,a,2\n3,b\n4,c,5,6\n7\n\n\r\n8,,9\n")
        table = read_cells(path, ",", names=["user", "x"], numeric={"x"}, ids={"user"})
        assert table["user"].to_pylist() == [b"a", b"b", b"c", None, None]
        assert table["x"].to_pylist() == [1.0, None, None, None, 8.0]
        assert TableFile(path).read(COLUMNS).n_users == 3

    def test_a_target_in_words_is_missing_in_a_ragged_line(self, tmp_path):
        path = tmp_path / "table.csv"
        path.write_bytes(b"user,x,y\na,1,no\nb,2,yes,3\n")
        columns = Columns(user=("user",), features=("x",), target="y", classes=("no", "yes"))
        np.testing.assert_array_equal(TableFile(path).read(columns).record_counts(), [1, 0])

    @pytest.mark.parametrize("end", [b"\n", b"\r\n"])
    @pytest.mark.parametrize("last", [True, False])
    def test_both_line_ends_and_a_last_line_without_one(self, tmp_path, end, last):
        text = end.join([b"user,x", b"a,1", b'"b",2', b"c,3"]) + (end if last else b"")
        path = tmp_path / "table.csv"
        path.write_bytes(text)
        table = read_cells(path, ",", names=["x", "user"], numeric={"x"})
        assert table.to_pydict() == {"x": [1.0, 2.0, 3.0], "user": [b"a", b"b", b"c"]}

    def test_a_file_without_rows_has_none(self, tmp_path):
        for rows in ([], [b"\n"], [b"\r\n\n"]):
            assert read(tmp_path, rows).num_rows == 0


def _blank(starts, ends, octets):
    returned = octets[np.maximum(ends - 1, 0)] == ord("\r")
    return ends - returned == starts


def _by_hand(lines, octets, starts, ends):
    return np.zeros(len(ends), bool), _blank(starts, ends, octets)


def _all_by_arrow(lines, octets, starts, ends):
    blank = _blank(starts, ends, octets)
    return ~blank, blank


class TestBothWaysOfReadingAgree:
    CELLS = (
        b"",
        b"5",
        b" 5 ",
        b"+5",
        b"-1.5e3",
        b".5",
        b"5.",
        b"1_0",
        b"true",
        b"FALSE",
        b"inf",
        b"nan",
        b"1e999",
        b"1e-999",
        b"0x10",
        b"five",
        b"\xff",
        b"\0",
        b"\xef\xbb\xbf7",
        b"#N/A",
        b"\t",
        b"\\",
        b"5'",
        b"0.1",
        b"123456789.123456789123456789",
    )

    @pytest.mark.parametrize("block", [7, 64, 2**24])
    def test_for_every_cell_whether_it_stands_in_quotes_or_not(self, tmp_path, monkeypatch, block):
        monkeypatch.setattr(csv_lines, "_BLOCK", block)
        plain = [b"%b,%b\n" % (a, b) for a in self.CELLS for b in self.CELLS if a + b]
        quoted = [b'"%b","%b"\n' % (a, b) for a in self.CELLS for b in self.CELLS if a + b]
        first, second = read(tmp_path, plain), read(tmp_path, quoted)
        assert first["user"].to_pylist() == second["user"].to_pylist()
        ours, theirs = (t["x"].to_numpy(zero_copy_only=False) for t in (first, second))
        # Infinities and null are all missing.
        np.testing.assert_array_equal(
            np.where(np.isfinite(ours), ours, np.nan), np.where(np.isfinite(theirs), theirs, np.nan)
        )
        assert first.num_rows == len(plain)

    def test_random_lines_come_out_as_if_each_were_alone(self, tmp_path, monkeypatch):
        monkeypatch.setattr(csv_lines, "_BLOCK", 256)
        rng = np.random.default_rng(3)
        pieces = np.array([b"u", b"1", b",", b",", b'"', b"\r", b"", b"\xff"], dtype=object)
        lines = [b"".join(rng.choice(pieces, size=rng.integers(1, 8))) + b"\n" for _ in range(400)]
        together = list(zip(*read(tmp_path, lines).to_pydict().values(), strict=True))
        alone = []
        for line in lines:
            columns = read(tmp_path, [line]).to_pydict().values()
            alone.extend(zip(*columns, strict=True))
        assert together == alone

    def test_lines_with_quotes_come_out_as_if_each_were_read_by_hand(self, tmp_path, monkeypatch):
        """Arrow reads those whose quotes enclose whole cells; a broken twin gives it all lines."""
        monkeypatch.setattr(csv_lines, "_BLOCK", 256)
        rng = np.random.default_rng(31)
        cells = np.array(
            [b'"a"', b"b", b'"a,b"', b"5", b'"5"', b'""', b"", b'"a""b"', b'4"', b'"x', b'"a"b'],
            dtype=object,
        )
        lines = []
        for _ in range(600):
            width, end = rng.choice([2, 2, 2, 1, 3]), rng.choice([b"", b"", b"\r"])
            lines.append(b",".join(rng.choice(cells, size=width)) + end + b"\n")
        together = read(tmp_path, lines).to_pydict()
        monkeypatch.setattr(_Lines, "_sort_out", _by_hand)
        assert together == read(tmp_path, lines).to_pydict()
        monkeypatch.setattr(_Lines, "_sort_out", _all_by_arrow)
        with suppress(SchemaError):
            assert together != read(tmp_path, lines).to_pydict()

    def test_whole_cells_in_quotes_are_left_to_arrow(self, tmp_path, monkeypatch):
        """Line by line a file of 170 MB took a minute."""
        taken = []
        monkeypatch.setattr(_Lines, "_cells", lambda *given: taken.append(given))
        lines = [b'"u%d","%d"\r\n' % (i, i) for i in range(50)] + [b'"a, b",5\n', b'"",""\n']
        assert read(tmp_path, lines).num_rows == 52
        assert not taken

    def test_a_cell_that_is_no_number_slows_nobody_down(self, tmp_path, monkeypatch):
        texts = []

        def number(cell, dialect):
            texts.append(cell)
            return None

        monkeypatch.setattr(csv_lines, "_number", number)
        lines = [b"u,%b\n" % (b"n/a" if i % 3 else b"%d.5" % i) for i in range(300)]
        found = read(tmp_path, lines)["x"].to_pylist()
        assert found == [None if i % 3 else i + 0.5 for i in range(300)]
        assert texts == [b"n/a"]

    def test_quotes_mean_what_they_mean_elsewhere(self):
        for text in ('"Smith, John",5', '"a""b",""', 'a"b,c"', '"a"b,"c"', ",,", '"",x', '""""'):
            expected = next(csv.reader([text]))
            assert [cell.decode() for cell in split_line(text.encode(), b",")] == expected


class TestThreadsOfArrow:
    """They outlive a reading, and an ending interpreter kills those that hold bytes of Python."""

    @staticmethod
    def given(tmp_path, monkeypatch):
        """Return what Arrow was given to read."""
        seen = []

        def reader(source):
            seen.append(source)
            return true_reader(source)

        true_reader = pa.BufferReader
        monkeypatch.setattr(pa, "BufferReader", reader)
        read(tmp_path, [b"ann,1", b"bob,2"])
        return seen

    @staticmethod
    def are_arrows(sources):
        """Whether all of it is Arrow's own memory; Python's bytes are handed out read-only."""
        return all(isinstance(source, pa.Buffer) and source.is_mutable for source in sources)

    def test_they_hold_nothing_of_python(self, tmp_path, monkeypatch):
        (source,) = self.given(tmp_path, monkeypatch)
        assert self.are_arrows([source])
        before = pa.total_allocated_bytes()
        memory = csv_lines._owned_by_arrow([b"a" * 1000, b"b" * 24])
        assert pa.total_allocated_bytes() >= before + 1024
        assert memory.to_pybytes() == b"a" * 1000 + b"b" * 24

    def test_the_broken_twin_hands_bytes_over(self, tmp_path, monkeypatch):
        monkeypatch.setattr(
            csv_lines, "_owned_by_arrow", lambda pieces: pa.py_buffer(b"".join(pieces))
        )
        assert not self.are_arrows(self.given(tmp_path, monkeypatch))


class TestHeader:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            (b'user,"x\ny",x\n', "first line is none"),
            ("user,x\nu1,2\n".encode("utf-16"), "got UTF-16"),
            ("user,x\nu1,2\n".encode("utf-16-be"), "first line is none"),
            (b"user,\xff\n", "--encoding cp1252"),
            (b"user,x\ru1,2\r", "line feed"),
            (b"", "has none"),
            (b"\nuser,x\n", "has none"),
            (b"user,x,x\n", "repeats 'x'"),
        ],
        ids=repr,
    )
    def test_a_header_that_cannot_be_read_is_refused_with_its_reason(self, tmp_path, text, reason):
        """An empty file and a repeated name were said to have another encoding."""
        path = tmp_path / "table.csv"
        path.write_bytes(text)
        with pytest.raises(SchemaError, match=reason) as error:
            read_header(path, ",")
        assert "u1" not in str(error.value)
        assert ("encoding" in str(error.value)) == (b"\xff\n" in text)

    def test_a_byte_order_mark_and_quotes_are_accepted(self, tmp_path):
        path = tmp_path / "table.csv"
        path.write_bytes(b'\xef\xbb\xbf"user","x, ""y"""\r\na,1\r\n')
        assert read_header(path, ",") == ["user", 'x, "y"']
        assert read_cells(path, ",", names=["user"], numeric=()).to_pydict() == {"user": [b"a"]}


def test_what_arrow_says_about_a_line_is_not_passed_on(tmp_path, monkeypatch):
    """Its messages quote lines: nothing of them is told, not even as a cause."""

    def failing(*_, **__):
        raise pa.ArrowInvalid("CSV parse error: row 7: Jane Doe, HIV positive")

    path = tmp_path / "people.csv"
    path.write_bytes(b"user,x\n" + b"".join(LINES))
    monkeypatch.setattr(csv_lines, "_blocks", failing)
    with pytest.raises(SchemaError, match="CSV file") as caught:
        TableFile(path).read(COLUMNS)
    assert "Jane" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
