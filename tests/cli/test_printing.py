"""What all commands share."""

import pytest

from quorate.cli import main
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


@pytest.mark.parametrize("plain", [True, False])
def test_what_nobody_could_read_is_said_before_any_number(plain, tmp_path, capsys):
    """Thousands are set apart by commas: none of 2,000 people has a row that can be read.

    The paid share has Laplace noise of less than a point: beyond a half with chance e^-50.
    """
    spent = "1250" if plain else '"1,250"'
    lines = ["person,spend", *(f"{person},{spent}" for person in range(2000))]
    (tmp_path / "spend.csv").write_text("\n".join(lines))
    asked = ["--task", "mean", "--user", "person", "--features", "spend", "--bounds", "0,9000"]
    assert main(["fit", str(tmp_path / "spend.csv"), *asked, "--epsilon", "4"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Careful, before you read on: About ") is not plain
    assert said.count("could be read") == 1
