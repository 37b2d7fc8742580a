"""Plans of models say what Theorem 4 of Levy et al. proves: asked at the public door only."""

import pytest

from quorate.planning import plan


def quoted(task, *, error):
    answer = plan(task, epsilon=20.0, delta=1e-6, error=error, records=20)
    bounds = [bound for bound in answer.sufficient if "Theorem 4 (" in bound.theorem]
    return {bound.theorem: bound.users for bound in bounds}, answer.users_needed


@pytest.mark.parametrize(("task", "kinds"), [("linear", 3), ("logistic", 1), ("huber", 1)])
def test_plans_of_models_quote_it(task, kinds):
    users, needed = quoted(task, error=0.05)
    assert len(users) == kinds
    assert min(users.values()) > needed


def test_half_the_error_takes_twice_the_users_and_their_root_if_strongly_convex():
    """R G sqrt(d) / (n sqrt(m) epsilon), or its square over mu, up to logarithms."""
    loose, tight = (quoted("linear", error=error)[0] for error in (0.05, 0.025))
    assert len(loose) == 3
    for theorem, users in loose.items():
        # A mean squared gradient falls as an excess does.
        expected = 2**0.5 if "strongly" in theorem else 2.0
        assert tight[theorem] / users == pytest.approx(expected, rel=0.2)
