"""A bar on a terminal, silence elsewhere."""

from quorate.models.optimization.descent import follow


def test_all_steps_are_walked_with_and_without_a_bar():
    assert list(follow(range(7), label="fit", show=True)) == list(range(7))
    assert list(follow(range(7), label="fit", show=False)) == list(range(7))


def test_nothing_is_printed_without_a_terminal(capsys):
    list(follow(range(50), label="fit"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == ""
