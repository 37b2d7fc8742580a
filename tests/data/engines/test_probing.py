"""Which workers of a cluster are refused before anything is charged."""

import pytest

from quorate import __version__
from quorate.data.engines.probing import check_reports
from quorate.exceptions import MixedArithmeticError, ParameterError

GOOD = ("/a/python", __version__, "one kind")


def test_workers_of_one_kind_pass():
    check_reports([GOOD, ("/b/python", __version__, "one kind")], "Advice.")


def test_one_worker_with_another_version_is_refused():
    with pytest.raises(ParameterError, match=r"Quorate 0\.0\.9 .*/b/python.*Advice\."):
        check_reports([GOOD, ("/b/python", "0.0.9", "one kind")], "Advice.")


def test_one_worker_without_quorate_is_refused():
    with pytest.raises(ParameterError, match="ImportError: libc"):
        check_reports([GOOD, ("/b/python", "", "ImportError: libc")], "Advice.")


def test_different_arithmetic_is_refused():
    with pytest.raises(MixedArithmeticError, match="one kind"):
        check_reports([GOOD, ("/a/python", __version__, "another kind")], "Advice.")
