"""Turning error models round: the answers agree with each other."""

import math

from hypothesis import given
from hypothesis import strategies as st

from quorate.planning.solve import EPSILONS, MOST_USERS, smallest_epsilon, smallest_users


@given(scale=st.floats(0.01, 1e4), power=st.floats(0.3, 3.0), target=st.floats(1e-3, 1.0))
def test_the_users_found_suffice_and_one_fewer_does_not(scale, power, target):
    def error(n):
        return scale * n**-power

    users = smallest_users(error, target)
    if users is None:
        assert error(MOST_USERS // 2) > target
    else:
        assert error(users) <= target
        assert users == 1 or error(users - 1) > target


@given(step=st.integers(1, 10**9))
def test_a_cliff_is_found_exactly(step):
    assert smallest_users(lambda n: 1.0 if n < step else 0.0, 0.5) == step


@given(scale=st.floats(1e-3, 9.0), target=st.floats(1e-2, 1.0))
def test_the_epsilon_found_suffices_and_a_little_less_does_not(scale, target):
    def error(epsilon):
        return scale / epsilon

    epsilon = smallest_epsilon(error, target)
    assert error(epsilon) <= target
    assert error(epsilon * (1 - 1e-9)) > target


def test_out_of_reach_is_none_and_trivial_is_the_smallest():
    assert smallest_users(lambda n: 1.0, 0.5) is None
    assert smallest_epsilon(lambda e: 1.0, 0.5) is None
    assert smallest_epsilon(lambda e: 0.0, 0.5) == EPSILONS[0]
    assert smallest_users(lambda n: math.inf, 1e300) is None
