"""A short run of the fuzz of cells, the same in every run; CONTRIBUTING.md says how to run more."""

import numpy as np
import pytest

from privacy.fuzz_cells import DOORS, Tried, fuzz
from quorate.data.columns import cells


def test_cells_of_one_person_change_nothing_for_others():
    tried = Tried()
    fuzz(tried, examples=150)()
    assert tried.cells.total() > 150
    assert sum(tried.read[door] > 0 for door in DOORS) > len(DOORS) / 2


def test_the_fuzz_sees_a_list_that_is_read_as_a_whole(monkeypatch):
    def together(column):
        try:
            return np.array([float(cell) for cell in column])
        except Exception:
            return np.full(len(column), np.nan)

    monkeypatch.setattr(cells, "numbers", together)
    with pytest.raises(AssertionError, match="lists"):
        fuzz(Tried(), examples=1500, doors=["lists"], shrink=False)()
