"""How many modules somebody reads who follows a fit from its first line to its promise."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import quorate
from quorate import LogisticRegression, ThresholdLearner, UserMean
from quorate.noise import SecureNoise, SeededNoise

SOURCE = Path(quorate.__file__).parent
DOUBLE = SOURCE / "noise" / "doubles.py"
PAGE = Path(__file__).parents[1] / "docs" / "walks.md"
ROWS = np.random.default_rng(0).standard_normal((400, 2))
SIDES, USERS = (ROWS[:, 0] > 0).astype(int), np.arange(400) // 2


def mean():
    UserMean(1.0, delta=1e-6, bounds=3.0).fit(ROWS, users=USERS)


def cut_off():
    ThresholdLearner(1.0, domain=(-4, 4), step=1).fit(ROWS[:, 0], SIDES, users=USERS)


def logistic():
    LogisticRegression(8.0, delta=1e-6, hopeless="constant").fit(ROWS, SIDES, users=USERS)


# decisions/0030-walks-of-twenty-modules.md says how they became as short as that.
FLOOR, MOST = 9, {"mean": 20, "cut-off": 18, "logistic": 20}
WALKS = {"mean": mean, "cut-off": cut_off, "logistic": logistic}


def crossed(fit):
    """Return the modules of the package of which a function runs during a fit, as entered.

    The fit has run before: what is imported at the first use is no part of the walk. It runs on
    the same noise each time, because which way a mean takes depends on it: a double stands for the
    entropy, which is no part of the walk either.
    """
    found = {}

    def note(frame, event, argument):
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(SOURCE) and path != DOUBLE:
                found.setdefault(path.relative_to(SOURCE).as_posix(), len(found))

    before = sys.getprofile()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_uniform_below", "_uniform_words"):
            patch.setattr(SecureNoise, name, getattr(SeededNoise(0), name))
        sys.setprofile(note)
        try:
            fit()
        finally:
            sys.setprofile(before)
    return list(found)


@pytest.fixture(scope="module")
def walks():
    for fit in WALKS.values():
        fit()
    return {name: crossed(fit) for name, fit in WALKS.items()}


def shared(walks):
    """Return the ground floor, which is read once, in the order of the first walk."""
    return [each for each in walks["mean"] if all(each in walk for walk in walks.values())]


def told(page):
    """Return what a page lists under each heading."""
    _, *chapters = re.split(r"^## ", page, flags=re.MULTILINE)
    return [re.findall(r"^\d+\. `(\S+)`: ", each, flags=re.MULTILINE) for each in chapters]


def test_a_walk_leads_through_no_more_modules_than_it_must(walks, record_property):
    floor = shared(walks)
    record_property("floor", floor)
    assert len(floor) == FLOOR, floor
    for name, modules in walks.items():
        record_property(name, modules)
        assert len(modules) <= MOST[name], (name, set(modules) - set(floor))


def test_the_page_names_the_modules_in_the_order_in_which_they_are_entered(walks):
    floor = shared(walks)
    own = [[each for each in modules if each not in floor] for modules in walks.values()]
    assert told(PAGE.read_text()) == [floor, *own]


def test_a_page_that_leaves_one_out_is_seen(walks):
    page = PAGE.read_text()
    line = next(line for line in page.splitlines() if "`mechanisms/sums.py`" in line)
    assert told(page.replace(line + "\n", "")) != told(page)


def test_the_count_sees_a_detour(walks):
    def detour():
        cut_off()
        logistic()

    both = set(walks["cut-off"]) | set(walks["logistic"])
    assert set(crossed(detour)) == both > set(walks["logistic"])
