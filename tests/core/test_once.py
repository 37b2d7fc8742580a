"""What is spent once knows its process, and has no second."""

import copy
import io
import os
import pickle
from multiprocessing.reduction import ForkingPickler

import joblib
import pytest

from forks import in_a_fork
from quorate.core.once import OnceOnly, this_process
from quorate.exceptions import OtherProcessError

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@needs_fork
def test_a_fork_is_another_process():
    here = this_process()

    def compare():
        assert this_process() != here

    assert in_a_fork(compare) == "answered"
    assert this_process() == here


@needs_fork
def test_a_child_that_has_its_parents_number_is_another_process(monkeypatch):
    """As in containers, which number their processes anew."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    held = OnceOnly()
    assert in_a_fork(held.refuse_elsewhere) == "OtherProcessError"
    held.refuse_elsewhere()


def test_a_fork_that_python_does_not_see_has_another_number(monkeypatch):
    held = OnceOnly()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(OtherProcessError, match=r"Nothing was drawn\. Fork or start workers first"):
        held.refuse_elsewhere()


def test_a_part_belongs_to_the_process_of_the_whole(monkeypatch):
    whole = OnceOnly()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(OtherProcessError):
        OnceOnly(whole).refuse_elsewhere()


def save(held):
    joblib.dump(held, io.BytesIO())


@pytest.mark.parametrize(
    "twice",
    [copy.copy, copy.deepcopy, pickle.dumps, ForkingPickler.dumps, save],
    ids=["copy", "deepcopy", "pickle", "processes that are started", "joblib"],
)
def test_there_is_no_second(twice):
    with pytest.raises(TypeError, match="there twice"):
        twice(OnceOnly())
