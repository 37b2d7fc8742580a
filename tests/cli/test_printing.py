"""What all commands share."""

import pytest

from quorate.cli.printing import complain, number_or_word, print_json, print_table, progress


def test_a_complaint_is_one_line_on_the_error_stream(capsys):
    assert complain("too\n  many   lines", 2) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "quorate: too many lines\n")


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("-0.5", -0.5), ("1e-6", 1e-6), ("drop", "drop"), ("", "")]
)
def test_numbers_are_read_as_numbers(text, value):
    assert number_or_word(text) == value
    assert type(number_or_word(text)) is type(value)


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
