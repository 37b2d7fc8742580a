"""Nothing that a library says about a cell leaves the closed zone."""

import traceback

import numpy as np
import pytest

from quorate.core.users.closed import WITHHELD, closed
from quorate.exceptions import ParameterError, SchemaError


def broken(cell):
    return int(cell)


def chained(cell):
    try:
        return int(cell)
    except ValueError as error:
        raise KeyError(cell) from error


def on_purpose(cell):
    try:
        return int(cell)
    except ValueError as error:
        raise ParameterError("Expected another parameter.") from error


@pytest.mark.parametrize("work", [broken, chained])
def test_of_an_unexpected_error_nothing_is_left(work):
    with pytest.raises(SchemaError) as caught:
        closed(work)("31337 years")
    assert str(caught.value) == WITHHELD
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    frames = [frame for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert all(frame.f_code is not work.__code__ for frame in frames)


def test_what_is_refused_on_purpose_passes_without_its_cause():
    with pytest.raises(ParameterError, match="another parameter") as caught:
        closed(on_purpose)("31337 years")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_wrong_call_is_told_as_python_tells_it():
    with pytest.raises(TypeError, match="missing 1 required"):
        closed(broken)()

    def inner(cell):
        return len(cell)

    with pytest.raises(SchemaError, match="withheld"):
        closed(inner)(7)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_who_interrupts_is_let_through(kind):
    def stop():
        raise kind

    with pytest.raises(kind):
        closed(stop)()


def test_what_numpy_does_about_an_underflow_is_not_the_callers_choice():
    with np.errstate(all="raise"):
        assert closed(lambda: np.float64(1e-300) * np.float64(1e-300))() == 0.0
