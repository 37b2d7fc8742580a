"""Parameters as text: read, or refused by what was written."""

import pytest

from quorate.app.catalogue.options import labels, number, number_or_word, numbers, one_of, whole
from quorate.exceptions import ParameterError


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("-0.5", -0.5), ("1e-6", 1e-6), ("drop", "drop"), ("", "")]
)
def test_numbers_are_read_as_numbers(text, value):
    assert number_or_word(text) == value
    assert type(number_or_word(text)) is type(value)


def test_each_kind_is_read():
    assert number("2") == 2.0
    assert whole("20") == 20
    assert numbers("0.1,0.9") == (0.1, 0.9)
    assert labels("1,x") == (1, "x")
    assert one_of("a", "b")("b") == "b"


@pytest.mark.parametrize(
    ("read", "text"), [(number, "x"), (whole, "2.5"), (numbers, "1,,2"), (one_of("a"), "b")]
)
def test_other_texts_are_refused(read, text):
    with pytest.raises(ParameterError, match="Expected"):
        read(text)
