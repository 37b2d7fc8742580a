"""What OpenDP draws: the laws that are ours to ask for, and integers of 64 bits."""

import numpy as np
import pytest

from quorate.core.noise.opendp_laws import opendp_laws

pytestmark = pytest.mark.entropy


@pytest.mark.parametrize("law", ["discrete_laplace", "discrete_gaussian"])
def test_enormous_noise_saturates_at_64_bits(law):
    drawn = opendp_laws()[law](scale=2.0**80)(np.zeros(40, np.int64))
    assert set(drawn) <= {-(2**63), 2**63 - 1}


@pytest.mark.parametrize("law", ["permute_and_flip", "gumbel_max"])
def test_a_score_far_above_the_others_is_chosen(law):
    assert opendp_laws()[law](scale=1.0)(np.array([0, 2**40, 0])) == 1


def test_they_are_made_ready_once():
    assert opendp_laws() is opendp_laws()
