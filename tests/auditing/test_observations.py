"""Everything that can be seen of a run is compared, and nothing that cannot."""

from __future__ import annotations

import logging
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from quorate.auditing.observations import observe
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise


def raising(error):
    def run():
        raise error

    return run


def told_apart(first, second, *, values=True):
    return observe(first).differences(observe(second), values=values)


class TestWhatIsSeen:
    @pytest.mark.parametrize(
        ("run", "words"),
        [
            (raising(ValueError("row 17")), "raised"),
            (lambda: warnings.warn("row 17", UserWarning, stacklevel=1), "warned"),
            (lambda: logging.getLogger("quorate.means").debug("row %d", 17), "logged"),
            (lambda: logging.getLogger("other").warning("row 17"), "logged"),
            (lambda: print("row 17"), "printed"),
            (lambda: print("row 17", file=sys.stderr), "printed"),
        ],
        ids=["error", "warning", "debug log", "other log", "stdout", "stderr"],
    )
    def test_a_side_channel_is_reported(self, run, words):
        differences = told_apart(run, lambda: None)
        assert len(differences) == 1
        assert words in differences[0]
        assert "row 17" in differences[0]
        assert told_apart(run, run) == []

    def test_errors_are_compared_by_type_and_message(self):
        assert told_apart(raising(ValueError("a")), raising(ValueError("b")))
        assert told_apart(raising(ValueError("a")), raising(TypeError("a")))

    def test_observing_leaves_the_logger_as_it_was(self):
        own = logging.getLogger("quorate")
        before = own.level, list(logging.getLogger().handlers)
        observe(lambda: None)
        assert (own.level, logging.getLogger().handlers) == before


class TestResults:
    @pytest.mark.parametrize(
        ("first", "second", "words"),
        [
            (1, 1.0, "is a int; for the neighbour a float"),
            (np.zeros(2), np.zeros((2, 1)), "shape"),
            (np.zeros(2), np.zeros(2, dtype=np.float32), "dtype"),
            ([1, 2], [1, 2, 3], "2 parts; for the neighbour 3 parts, among them 2"),
            ({"a": 1}, {"b": 1}, "among them a"),
            (SimpleNamespace(n_iter_=3), SimpleNamespace(), "among them n_iter_"),
        ],
        ids=["type", "shape", "dtype", "length", "key", "attribute"],
    )
    def test_structure_is_compared_always(self, first, second, words):
        for values in (True, False):
            differences = told_apart(lambda: first, lambda: second, values=values)
            assert len(differences) == 1
            assert words in differences[0]

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (3, 4),
            (np.array([1.0]), np.array([2.0])),
            (SimpleNamespace(_hidden=[{"deep": 1}]), SimpleNamespace(_hidden=[{"deep": 2}])),
            (np.array(["a", None], dtype=object), np.array(["b", None], dtype=object)),
            (Relation.REPLACE, Relation.ADD_REMOVE),
            ("a", "b"),
        ],
        ids=["number", "array", "nested private", "objects", "enum", "string"],
    )
    def test_values_are_compared_when_nothing_may_differ(self, first, second):
        assert told_apart(lambda: first, lambda: second)
        assert told_apart(lambda: first, lambda: second, values=False) == []

    @pytest.mark.parametrize(
        "make",
        [
            lambda: float("nan"),
            lambda: np.array([1.0, np.nan]),
            lambda: object(),
            lambda: np.random.default_rng(),
            lambda: SimpleNamespace(noise=SeededNoise(0), f=len),
            lambda: None,
            lambda: {1, 2},
        ],
        ids=["nan", "array with nan", "object", "generator", "noise source", "none", "set"],
    )
    def test_equal_things_are_not_told_apart(self, make):
        assert told_apart(make, make) == []
