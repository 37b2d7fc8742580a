"""What the estimators of everyday statistics share."""

import pytest

from quorate import RecordMean, UserCount, UserSum, UserTable
from quorate.exceptions import ParameterError
from quorate.tabulate.base import stated


@pytest.mark.parametrize("cap", ["some", 0, -1, float("nan"), 1e300, True, None])
def test_strange_caps_are_refused(cap):
    with pytest.raises((ParameterError, TypeError)):
        stated(cap, name="cap")


@pytest.mark.parametrize("kind", [UserCount, UserSum, RecordMean, UserTable])
def test_gaussian_noise_needs_delta(kind):
    with pytest.raises(ParameterError, match="delta"):
        kind(algorithm="gaussian").fit([[1.0]], users=[1])
    with pytest.raises(ParameterError, match="algorithm"):
        kind(algorithm="magic").fit([[1.0]], users=[1])
