"""The fingerprint of a process's arithmetic."""

import os
import subprocess
import sys

import numpy as np
import pytest

from quorate.data.engines.arithmetic import arithmetic_fingerprint

CODE = "from quorate.data.engines.arithmetic import arithmetic_fingerprint as f; print(f())"


def fingerprint_under(**variables):
    environment = dict(os.environ, **variables)
    run = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment
    )
    return run.stdout.strip()


def test_another_process_of_the_same_kind_agrees():
    assert fingerprint_under() == arithmetic_fingerprint()


@pytest.mark.parametrize("function", ["exp", "tanh", "matmul"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_products_and_functions_of_32_and_64_bits_are_looked_at(monkeypatch, function, kind):
    honest = getattr(np, function)

    def other(*arguments):
        values = honest(*arguments)
        if values.dtype == kind:
            values.flat[0] = np.nextafter(values.flat[0], kind(np.inf))
        return values

    other.nin = 1
    monkeypatch.setattr(np, function, other)
    assert arithmetic_fingerprint.__wrapped__() != arithmetic_fingerprint()


@pytest.mark.parametrize(("bits", "differs"), [(0, False), (1, True)])
def test_one_last_bit_of_one_function_changes_it(monkeypatch, bits, differs):
    class Exponential:
        nin = 1

        def __init__(self, function):
            self.function = function

        def __call__(self, x):
            values = self.function(x)
            values[7] = np.nextafter(values[7], np.inf) if bits else values[7]
            return values

    monkeypatch.setattr(np, "exp", Exponential(np.exp))
    assert (arithmetic_fingerprint.__wrapped__() != arithmetic_fingerprint()) == differs
