"""What all commands share."""

import io
import json
import time
from functools import partial

import pytest
from rich.console import Console

from quorate.app.cli import main
from quorate.app.cli.printing import complain, print_json, print_table, progress


def test_a_complaint_is_one_line_on_the_error_stream(capsys):
    assert complain("too\n  many   lines", 2) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "quorate: too many lines\n")


def test_json_has_no_infinity_so_that_an_infinite_bound_is_null(capsys):
    print_json({"bounds": [1.5, float("inf")], "x": float("nan")})
    assert json.loads(capsys.readouterr().out) == {"bounds": [1.5, None], "x": None}


def test_tables_keep_their_texts(capsys):
    print_table("A title [red]", ("name", "value"), [("[bold]x", "1")])
    out = capsys.readouterr().out
    assert "A title [red]" in out
    assert "[bold]x" in out


def test_progress_on_a_terminal_shows_how_far_a_file_was_read(monkeypatch):
    """A file of 170 MB was read for a minute in silence."""
    stream = io.StringIO()
    terminal = partial(Console, file=stream, force_terminal=True, width=80)
    monkeypatch.setattr("quorate.app.cli.printing.Console", lambda **given: terminal())
    with progress("Fitting") as reading:
        reading(0.25)
        time.sleep(0.3)
        reading(1.0)
        time.sleep(0.3)
    shown = stream.getvalue()
    assert shown.index("Reading the table: 25%") < shown.rindex("Fitting ...")


def test_progress_is_silent_without_a_terminal(capsys):
    with progress("Working") as reading:
        reading(0.5)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("readable", [1.0, 0.25, 0.0])
def test_what_could_hardly_be_read_is_said_before_any_number(readable, tmp_path, capsys):
    """Thousands are set apart by commas; of none of 2,000 people, of three quarters, or of all.

    The paid share has Laplace noise of less than a point: beyond a half with chance e^-25. About
    nothing at all there is no answer but the share.
    """
    rows = (
        f"{person},1250" if person < 2000 * readable else f'{person},"1,250"'
        for person in range(2000)
    )
    (tmp_path / "spend.csv").write_text("\n".join(["person,spend", *rows]))
    asked = ["--task", "mean", "--user", "person", "--features", "spend", "--bounds", "0,9000"]
    code = main(["fit", str(tmp_path / "spend.csv"), *asked, "--epsilon", "4"])
    said = capsys.readouterr()
    if readable == 0.0:
        assert code == 1
        assert said.out.startswith("Almost no row could be read.")
        assert "Mean over users" not in said.out
        assert "could be read" in said.err
        return
    assert code == 0
    assert said.out.startswith("Warning: About ") is (readable < 1.0)
    assert said.out.count("could be read") == 1
