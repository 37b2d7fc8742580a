"""Check that the workers of a cluster can run Quorate, before anything is charged.

A cluster may be reachable and still be useless, if its workers run another interpreter, without
Quorate or with another version of it. A probe task detects this before anything is charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorate import __version__
from quorate.data.engines.base import Outcome, results_of
from quorate.exceptions import ParameterError

__all__ = ["Report", "check_reports", "worker_probe"]

# The interpreter of a worker, its version of Quorate ("" if none), and the fingerprint of its
# arithmetic or, without Quorate, the error.
Report = tuple[str, str, str]


def worker_probe() -> Callable[[], Report]:
    """Return the probe task.

    It is a nested function on purpose. Pickle sends such functions by value, so that a worker
    without Quorate can run it and report what is missing.

    >>> worker_probe()()[1] == __version__
    True
    """

    def probe() -> Report:
        import sys

        try:
            import quorate
            from quorate.data.engines.arithmetic import arithmetic_fingerprint

            return sys.executable, quorate.__version__, arithmetic_fingerprint()
        except Exception as error:
            return sys.executable, "", f"{type(error).__name__}: {error}"

    return probe


def check_reports(reports: Iterable[Report], advice: str) -> None:
    """Refuse workers that lack Quorate, have another version, or differ in their arithmetic.

    >>> check_reports([("python3", "", "ModuleNotFoundError: No module named 'quorate'")], "Help.")
    Traceback (most recent call last):
    quorate.exceptions.ParameterError: The workers cannot run Quorate: their interpreter python3 \
says "ModuleNotFoundError: No module named 'quorate'". Nothing was charged. Help.
    """
    kinds = sorted(set(reports))
    for interpreter, version, said in kinds:
        if not version:
            raise ParameterError(
                f"The workers cannot run Quorate: their interpreter {interpreter} says "
                f'"{said}". Nothing was charged. {advice}'
            )
        if version != __version__:
            raise ParameterError(
                f"The workers have Quorate {version} ({interpreter}), this process has "
                f"{__version__}. Nothing was charged. {advice}"
            )
    results_of(Outcome(fingerprint=arithmetic) for _, _, arithmetic in kinds)
