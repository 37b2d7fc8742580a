"""Every audit passes, and catches the same release with half the noise."""

import pytest

from quorate.app.reports.audits import AUDITS, run_audit
from quorate.exceptions import ParameterError


@pytest.mark.parametrize("name", AUDITS)
def test_the_claim_holds_and_the_broken_twin_is_caught(name):
    honest, broken = run_audit(name), run_audit(name, broken=True)
    assert honest.holds, str(honest)
    assert honest.tightness > 0.7, "an audit that sees little proves little"
    assert not broken.holds, str(broken)


def test_an_unknown_audit_is_refused():
    with pytest.raises(ParameterError, match="laplace-sum"):
        run_audit("everything")
