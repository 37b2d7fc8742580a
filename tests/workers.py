"""How files of tests are dealt to workers (``pytest -n``): what they share, what comes first."""

import compileall
import os
import sys
from collections import OrderedDict
from pathlib import Path

# Files that share a Dask cluster, a Spark session or both.
CLUSTERS = (
    "tests/data/engines/test_dask.py",
    "tests/data/engines/test_places.py",
    "tests/data/engines/test_spark.py",
)

# What takes longest begins first, so that nobody is left alone with it at the end.
FIRST = (
    "clusters",
    "tests/test_site.py",
    "tests/contracts/test_odd_cells.py",
    "tests/contracts/test_one_more_person.py",
    "tests/nets/test_networks.py",
    "tests/privacy/test_recorded_bill.py",
    "tests/contracts/test_row_stability.py",
    "tests/contracts/test_crowds.py",
    "tests/app/cli/test_commands.py",
    "tests/test_docs.py",
    "tests/planning/test_questions.py",
)


def compile_share(config):
    """Rewrite a share of the test files, so that not every worker rewrites all of them.

    Workers begin at once, and each would compile every module and rewrite the assertions of every
    test before one of them has written the result down for the others.
    """
    told = getattr(config, "workerinput", None)
    if told is None or sys.dont_write_bytecode or len(config.args) < 2:
        return
    try:
        from _pytest.assertion.rewrite import (
            PYC_TAIL,
            _read_pyc,
            _rewrite_test,
            _write_pyc,
            assertstate_key,
            get_cache_dir,
            try_makedirs,
        )
    except ImportError:  # names of pytest that nobody promised; all that is lost is time
        return
    share = slice(int(told["workerid"].removeprefix("gw")), None, told["workercount"])
    root = Path(__file__).parents[1]
    for path in sorted((root / "src").rglob("*.py"))[share]:
        compileall.compile_file(path, quiet=2)
    for path in sorted((root / "tests").rglob("test_*.py"))[share]:
        folder = get_cache_dir(path)
        written = folder / (path.name.removesuffix(".py") + PYC_TAIL)
        if try_makedirs(folder) and _read_pyc(path, written) is None:
            digest, code = _rewrite_test(path, config)
            _write_pyc(config.stash[assertstate_key], code, digest, written)


def one_thread_each():
    """Let workers, and what they start, multiply matrices on one thread each.

    Workers already share out the cores. The threads of one that wait for those of another burn
    three quarters of the time of some tests.
    """
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def share_networks(config):
    """Let all workers, and the processes that they start, compile the same network once."""
    cache = getattr(config, "cache", None)
    if cache is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache.mkdir("jax")))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def send_less(config):
    """Keep to a worker what nobody reads: that a test began, and that it was set up well.

    Half of what seventeen thousand tests send is neither shown nor counted.
    """
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            plugin.sendevent = _what_is_read(plugin.sendevent)


def _what_is_read(send):
    def sendevent(name, **told):
        report = told.get("data", {}) if name == "testreport" else {}
        went_well = report.get("outcome") == "passed" and report.get("when") != "call"
        if name != "logstart" and not went_well:
            send(name, **told)

    return sendevent


def make_scheduler(config, log):
    """Give a file to one worker whole, so that what its tests share is made once.

    The groups of ``--dist loadgroup`` are a suffix of a test's name, which pytest 9.2 no longer
    lets pytest-xdist 3.8 write: every worker then starts clusters of its own, and nothing says so.
    """
    from xdist.scheduler import LoadScopeScheduling

    class LongestFirst(OrderedDict):
        def popitem(self, last=True):
            if not last:
                for scope in FIRST:
                    if scope in self:
                        return scope, self.pop(scope)
            return super().popitem(last)

    class WholeFiles(LoadScopeScheduling):
        def __init__(self, config, log):
            super().__init__(config, log)
            self.workqueue = LongestFirst()

        def _split_scope(self, nodeid):
            path = nodeid.partition("::")[0]
            return "clusters" if path in CLUSTERS else path

        def mark_test_complete(self, node, item_index, duration=0):
            # What is finished is forgotten: all that a worker holds is counted after every test.
            scope = self._split_scope(self.registered_collections[node][item_index])
            super().mark_test_complete(node, item_index, duration)
            if all(self.assigned_work[node][scope].values()):
                del self.assigned_work[node][scope]

    return WholeFiles(config, log)


def is_last_of_clusters(item, nextitem):
    """Whether a worker has done the last test of the files that share clusters.

    In a run without workers other files lie between these, and clusters live until the end.
    """
    if nextitem is None or not hasattr(item.config, "workerinput"):
        return False
    now, then = (each.nodeid.partition("::")[0] for each in (item, nextitem))
    return now in CLUSTERS and then not in CLUSTERS
