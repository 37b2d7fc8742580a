"""Tables of noise: read where they were made, between, below and beyond."""

import math

import pytest

from quorate.planning.mean_noise import ball_noise, core_noise, read_noise, tabulate


def test_a_table_is_read_as_the_noise_it_was_made_of():
    table = tabulate(lambda signal: 7.0 / signal if signal >= 40.0 else math.inf)
    assert read_noise(table, 20.0) == math.inf
    for signal in (45.0, 100.0, 1234.5, 1e7):
        assert read_noise(table, signal) == pytest.approx(7.0 / signal, rel=0.02)


def test_what_is_never_feasible_has_no_table():
    assert tabulate(lambda signal: math.inf) == (math.inf, ())
    assert read_noise((math.inf, ()), 1e9) == math.inf


@pytest.mark.parametrize("table", [ball_noise(20, 1000.0), core_noise(20, 1e-7)])
def test_noise_of_routes_falls_with_users(table):
    first, values = table
    assert 0 < first < 1e4
    assert list(values) == sorted(values, reverse=True)
