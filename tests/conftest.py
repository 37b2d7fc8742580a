"""One table and one fit of it, for the tests of tasks, files and reports."""

import atexit
import gc
import importlib.util
import sys

import numpy as np
import pytest
from hypothesis import settings

import steady
import workers

# How long an example takes says something about the machine and nothing about the code.
settings.register_profile("quorate", deadline=None, derandomize=not steady.EXPLORED)
settings.load_profile("quorate")


# PyTorch asks whether `tabulate` is installed; a folder of tests is none, although it can be found.
if importlib.util.find_spec("tabulate").origin is None:
    sys.modules["tabulate"] = None

# What is collected lives until the end: looking among it for what does not is time lost.
gc.set_threshold(100_000, 20, 100)


def pytest_configure(config):
    """Share out what every worker would compile; let every test draw the same in every run."""
    workers.one_thread_each()
    workers.compile_share(config)
    workers.share_networks(config)
    steady.steadily(config)


def pytest_sessionstart(session):
    """Tell the controller what it shows and counts, and no more."""
    workers.send_less(session.config)


def pytest_collection_finish():
    """Spare every later search for garbage the modules and tests that were collected."""
    gc.freeze()
    atexit.register(gc.unfreeze)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give files to workers whole, the longest first."""
    return workers.make_scheduler(config, log)


@pytest.fixture(scope="session")
def visits(tmp_path_factory):
    """A CSV file of 600 patients with ten visits each."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(600), 10)
    age = np.clip(rng.normal(45, 12, 600)[patient], 18, 99)
    dose = rng.integers(0, 1000, 6000)
    ill = np.where(dose >= 400, "yes", "no")
    cost = 2 * age + rng.normal(0, 3, 6000)
    path = tmp_path_factory.mktemp("tables") / "visits.csv"
    lines = ["patient,age,dose,ill,cost"]
    for row in zip(patient, age, dose, ill, cost, strict=True):
        lines.append("p{},{:.3f},{},{},{:.3f}".format(*row))
    path.write_text("\n".join(lines) + "\n")
    return path


def request(task="mean", features=("age",), limits=None, **others):
    """Return a request about the visits."""
    from quorate.app.tasks.fitting import FitRequest
    from quorate.data.files.table_files import Columns
    from quorate.ranges import Limit

    names = ("target", "classes", "unit", "missing", "categories")
    columns = {name: others.pop(name) for name in names if name in others}
    given = {"epsilon": 1.0, **others}
    return FitRequest(
        task=task,
        columns=Columns(user=("patient",), features=features, **columns),
        limits=(Limit(0, 120),) if limits is None else limits,
        **given,
    )


@pytest.fixture(scope="session")
def make_request():
    return request


@pytest.fixture(scope="session")
def mean_fit(visits):
    from quorate.app.tasks.fitting import fit
    from quorate.data.files.table_files import TableFile
    from quorate.ranges import Limit

    asked = request(features=("age", "cost"), limits=(Limit(0, 300),), delta=1e-6, records=10)
    return fit(asked, TableFile(visits))


@pytest.fixture(scope="session")
def mean_plan(mean_fit):
    from quorate.app.tasks.forecast import forecast

    return forecast(mean_fit)
