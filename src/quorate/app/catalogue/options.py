"""Parameters read from text, such as ``bins=20`` on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from quorate.exceptions import ParameterError

__all__ = ["data", "labels", "number", "number_or_word", "numbers", "one_of", "whole"]


def number_or_word(text: str) -> Any:
    """Return a number if the text is one, otherwise the text.

    >>> [number_or_word(text) for text in ("3", "0.5", "yes")]
    [3, 0.5, 'yes']
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def number(text: str) -> float:
    """Read a number.

    >>> number("0.5")
    0.5
    """
    found = number_or_word(text)
    if isinstance(found, str):
        raise ParameterError(f"Expected a number, got {text!r}.")
    return float(found)


def whole(text: str) -> int:
    """Read a whole number.

    >>> whole("20")
    20
    """
    found = number_or_word(text)
    if not isinstance(found, int):
        raise ParameterError(f"Expected a whole number, got {text!r}.")
    return found


def numbers(text: str) -> tuple[float, ...]:
    """Read numbers separated by commas.

    >>> numbers("0.1,0.9")
    (0.1, 0.9)
    """
    return tuple(number(part) for part in text.split(","))


def labels(text: str) -> tuple[Any, ...]:
    """Read labels separated by commas; labels that are numbers become numbers.

    >>> labels("1,2,other")
    (1, 2, 'other')
    """
    return tuple(number_or_word(part) for part in text.split(","))


def data(text: str) -> Any:
    """Read a list or a dictionary: JSON, or words and ``name=value`` pairs separated by commas.

    >>> data("north,south"), data("visits=count,spend=sum"), data('["a,b"]')
    (['north', 'south'], {'visits': 'count', 'spend': 'sum'}, ['a,b'])
    """
    if text[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError:
            pass
        raise ParameterError(f"Expected a list or an object in JSON, got {text!r}.")
    parts = [part.strip() for part in text.split(",")]
    pairs = [part.partition("=") for part in parts]
    if not all(equals for _, equals, _ in pairs):
        return [number_or_word(part) for part in parts]
    return {name.strip(): number_or_word(value.strip()) for name, _, value in pairs}


def one_of(*words: str) -> Callable[[str], str]:
    """Return a function that reads one of the given words.

    >>> one_of("full", "diagonal")("full")
    'full'
    """

    def read(text: str) -> str:
        if text not in words:
            raise ParameterError(f"Expected one of {', '.join(words)}, got {text!r}.")
        return text

    return read
