"""A process that has imported everything heavy but Quorate, and forks one run of pytest a line.

It reads the tests of a run as a line of JSON and answers with pytest's exit code; what pytest says
goes to the file named on the command line. A run that takes longer than its patience is killed.
"""

import importlib
import json
import os
import signal
import sys

HEAVY = (
    "_pytest.doctest",
    "dp_accounting",
    "hypothesis.extra.numpy",
    "numpy.testing",
    "opendp",
    "pyarrow",
    "pytest",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "sklearn.base",
)
# Hypothesis is imported before pytest can rewrite its assertions, of which it has none.
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


def main(printed, patience):
    for name in HEAVY:
        importlib.import_module(name)
    import pytest

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.alarm(patience)
            target = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(target, 1)
            os.dup2(target, 2)
            code = 3  # pytest's own number for an error inside
            try:
                code = int(pytest.main([*OPTIONS, *json.loads(line)]))
                sys.stdout.flush()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
