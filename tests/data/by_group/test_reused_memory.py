"""Freed memory is used again, and nothing else changes."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from quorate.data.by_group.reused_memory import keep_freed_memory

_FRESH = """
import resource, sys
import numpy as np
from quorate.data.by_group.reused_memory import keep_freed_memory

def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "kept":
    keep_freed_memory()
np.ones(1 << 20)
before = pages()
for _ in range(5):
    np.ones(1 << 20)
print(pages() - before)
"""


def _fresh_pages(how):
    run = [sys.executable, "-c", _FRESH, how]
    return int(subprocess.run(run, capture_output=True, text=True, check=True).stdout)


def test_it_is_done_once_and_takes_no_room():
    keep_freed_memory()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    keep_freed_memory.__wrapped__()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 8 << 10
    assert np.empty(3).shape == (3,)


@pytest.mark.skipif(sys.platform != "linux", reason="another C library")
def test_arrays_are_made_of_memory_that_was_used_before():
    """The control: five arrays of 8 MB are 10,240 pages, or a few large ones."""
    kept = _fresh_pages("kept")
    assert kept < 64
    assert _fresh_pages("fresh") > kept
