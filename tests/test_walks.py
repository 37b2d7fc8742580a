"""How many modules somebody reads who follows a fit from its first line to its promise."""

import sys
from pathlib import Path

import numpy as np
import pytest

import quorate
from quorate import LogisticRegression, ThresholdLearner, UserMean

SOURCE = Path(quorate.__file__).parent
ROWS = np.random.default_rng(0).standard_normal((400, 2))
SIDES, USERS = (ROWS[:, 0] > 0).astype(int), np.arange(400) // 2


def mean():
    UserMean(1.0, delta=1e-6, bounds=3.0).fit(ROWS, users=USERS)


def cut_off():
    ThresholdLearner(1.0, domain=(-4, 4), step=1).fit(ROWS[:, 0], SIDES, users=USERS)


def logistic():
    LogisticRegression(8.0, delta=1e-6, hopeless="constant").fit(ROWS, SIDES, users=USERS)


# The goal was 20: decisions/0022-walks.md. Which way a mean takes depends on noise: one to spare.
MOST = {"mean": 31, "cut-off": 31, "logistic": 39}
WALKS = {"mean": mean, "cut-off": cut_off, "logistic": logistic}


def crossed(fit):
    """Return the modules of the package of which a function runs during a fit.

    The fit has run before: what is imported at the first use is no part of the walk.
    """
    found = set()

    def note(frame, event, argument):
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(SOURCE):
                found.add(str(path.relative_to(SOURCE)))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        fit()
    finally:
        sys.setprofile(before)
    return found


@pytest.fixture(scope="module")
def walks():
    for fit in WALKS.values():
        fit()
    return {name: crossed(fit) for name, fit in WALKS.items()}


def test_a_walk_leads_through_no_more_modules_than_it_must(walks, record_property):
    """The ground floor is read once: validation, the account, noise, users and their table."""
    floor = set.intersection(*walks.values())
    record_property("floor", sorted(floor))
    assert len(floor) >= 14, sorted(floor)
    for name, modules in walks.items():
        record_property(name, sorted(modules))
        assert len(modules) <= MOST[name], (name, sorted(modules - floor))


def test_the_count_sees_a_detour(walks):
    def detour():
        cut_off()
        logistic()

    assert crossed(detour) == walks["cut-off"] | walks["logistic"] > walks["logistic"]
