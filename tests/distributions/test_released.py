"""What a released distribution says about itself."""

import pytest

from quorate.distributions.released import DistributionError
from quorate.estimators import Route


def test_errors_and_ways_print_as_sentences():
    error = DistributionError(metric="total variation", noise=0.02, left_out=0.01, bound=0.03)
    assert str(error) == "the total variation is at most 0.03 with 95% confidence"
    assert str(Route(name="ball", reason="users are alike.")) == "ball: users are alike."
    with pytest.raises(AttributeError):
        error.bound = 0.0
