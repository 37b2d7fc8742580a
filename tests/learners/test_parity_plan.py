"""How many users a parity needs: exact chances, and plans that keep what they say."""

import numpy as np
import pytest

from quorate.core.noise import SeededNoise
from quorate.exceptions import ParameterError
from quorate.learners.parity_plan import (
    ParityPlan,
    any_inputs_plan,
    published_plan,
    run_success,
    uniform_plan,
)
from quorate.mechanisms.linear_equations import pack_bits, solve
from quorate.mechanisms.parity import SolveParity


def test_the_chance_of_one_run_is_that_of_simulated_runs():
    """Six unknowns and few rows, so that rank matters; five standard deviations."""
    solver = SolveParity(features=6, epsilon=1.0)
    rng = np.random.default_rng(0)
    noise = SeededNoise(0)
    hits = 0
    for _ in range(1500):
        X = rng.integers(0, 2, (18, 6)).astype(bool)
        labels = X[:, 0] ^ X[:, 4]
        kept = solver._draw_kept(18, noise)
        space = solve(pack_bits(X)[kept], labels[kept], unknowns=6)
        hits += space is not None and space.dimension == 0 and not solver._draw_stop(noise)
    chance = run_success(solver, 18)
    assert abs(hits / 1500 - chance) < 5 * np.sqrt(chance * (1 - chance) / 1500)
    assert run_success(solver, 5) == 0.0


@pytest.mark.parametrize(("features", "most"), [(64, 920), (256, 3100)])
def test_the_sizes_of_the_issue(features, most):
    plan = uniform_plan(SolveParity(features=features, epsilon=1.0), beta=0.01)
    assert plan.users <= most


def test_more_users_go_into_larger_parts():
    plan = ParityPlan(runs=3, part=10, test=7)
    for users in range(37, 60):
        larger = plan.stretched(users)
        assert larger.users == users
        assert larger.part >= plan.part
        assert larger.test >= plan.test


def test_any_inputs_need_more_than_uniform_ones_and_less_error_more():
    solver = SolveParity(features=64, epsilon=1.0)
    sizes = [any_inputs_plan(solver, alpha=a, beta=0.05).users for a in (0.2, 0.1, 0.05)]
    assert sizes == sorted(sizes)
    assert sizes[0] > uniform_plan(solver, beta=0.05).users


@pytest.mark.parametrize("beta", [0.0, 1.0, np.nan])
def test_a_chance_that_is_none_is_refused(beta):
    with pytest.raises(ParameterError, match="beta"):
        uniform_plan(SolveParity(features=4, epsilon=1.0), beta=beta)


@pytest.mark.claim("K4: Theorem 4.4")
def test_published_sizes_are_those_of_the_print():
    solver = SolveParity(features=20, epsilon=0.25, published=True)
    plan = published_plan(solver, alpha=0.1, beta=0.03)
    assert (3 / 4) ** plan.runs <= 0.01 < (3 / 4) ** (plan.runs - 1)
    assert plan.part == int(np.ceil(8 * (20 * np.log(2) + np.log(4)) / (0.25 * 0.02)))
    # Laplace noise of scale k / (s eps) beyond alpha / 5, one of k estimates, either side.
    tail = plan.runs * np.exp(-0.02 * plan.test * 0.25 / plan.runs)
    assert tail <= 0.01 * (1 + 1e-9)


@pytest.mark.claim("K3: Lemma 4.1")
@pytest.mark.parametrize("features", [4, 20])
def test_a_part_of_the_published_size_is_good_a_quarter_of_the_time(features):
    solver = SolveParity(features=features, epsilon=0.5, published=True)
    part = published_plan(solver, alpha=0.49, beta=0.05).part
    assert run_success(solver, part) >= 1 / 4
