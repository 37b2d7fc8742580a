"""What all commands share."""

import pytest

from quorate.cli.printing import complain, print_json, print_table, progress


def test_a_complaint_is_one_line_on_the_error_stream(capsys):
    assert complain("too\n  many   lines", 2) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "quorate: too many lines\n")


def test_json_refuses_what_json_does_not_have():
    with pytest.raises(ValueError, match="JSON"):
        print_json({"x": float("nan")})


def test_tables_keep_their_texts(capsys):
    print_table("A title [red]", ("name", "value"), [("[bold]x", "1")])
    out = capsys.readouterr().out
    assert "A title [red]" in out
    assert "[bold]x" in out


def test_progress_is_silent_without_a_terminal(capsys):
    with progress("Working"):
        pass
    assert capsys.readouterr() == ("", "")
