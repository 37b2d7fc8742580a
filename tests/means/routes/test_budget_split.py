"""Plans come from public numbers, stay inside the budget and promise what runs deliver."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.means.routes.budget_split import (
    CORE_RADII,
    Setting,
    plan_core,
    plan_shrinking,
    radius_share,
    spread_looks_cost,
)

SETTINGS = st.builds(
    Setting,
    effective_users=st.floats(20.0, 1e6),
    dimension=st.integers(1, 2000),
    reach=st.just(1e4),
    spread=st.floats(1e-3, 1e4),
    drift=st.sampled_from([0.1, 0.3]),
)


class TestBudget:
    @given(setting=SETTINGS, square=st.floats(1e-4, 10.0))
    def test_a_shrinking_ball_spends_what_it_got_and_no_more(self, setting, square):
        plan = plan_shrinking(setting, start=setting.reach, square=square)
        if plan is None:
            return
        spent = plan.rounds * plan.round_square + plan.radius_square + plan.final_square
        assert spent <= square * (1 + 1e-12)
        assert spent >= square * (1 - 1e-9)
        assert plan.final_square >= 0.1 * square

    @given(setting=SETTINGS, square=st.floats(1e-3, 1.0), hostile=st.sampled_from([0.0, 0.1]))
    def test_a_core_leaves_something_for_the_mean(self, setting, square, hostile):
        plan = plan_core(
            setting,
            n_users=1000,
            core_spread=setting.spread,
            square=square,
            delta=1e-7,
            hostile=hostile,
        )
        if plan is None:
            return
        assert plan.test_square + plan.centre_square <= 0.5 * square
        top, few = int(plan.top_share * 1000), int(plan.few_share * 1000)
        assert 501 < top <= 1000
        assert 0 < 2 * few < 1000

    def test_the_search_for_the_spread_becomes_cheap_with_more_pairs(self):
        costs = [spread_looks_cost(pairs, 0.05) / 0.05 for pairs in (100, 500, 10_000)]
        assert costs == sorted(costs, reverse=True)
        assert costs[0] > 0.4
        assert costs[-1] == pytest.approx(0.01)


class TestPromises:
    def test_more_users_never_promise_more_error(self):
        errors = []
        for n in (1000, 3000, 10_000, 100_000):
            setting = Setting(effective_users=n, dimension=20, reach=1000.0, spread=4.0)
            errors.append(plan_shrinking(setting, start=1000.0, square=0.05).error)
        assert errors == sorted(errors, reverse=True)

    def test_a_ball_is_refused_where_noise_would_swallow_it(self):
        setting = Setting(effective_users=300, dimension=200, reach=1e4, spread=10.0)
        assert plan_shrinking(setting, start=1e4, square=0.05) is None

    def test_a_core_reaches_further_than_a_ball(self):
        setting = Setting(effective_users=1000, dimension=200, reach=14_000.0, spread=14.0)
        assert plan_shrinking(setting, start=14_000.0, square=0.05) is None
        core = plan_core(setting, n_users=1000, core_spread=14.0, square=0.05, delta=1e-7)
        assert core.error < 0.3 * 14.0

    def test_few_dimensions_buy_a_sharper_radius(self):
        shares = [
            radius_share(Setting(effective_users=1e3, dimension=d, reach=1.0, spread=0.1), 0.05)
            for d in (1, 20, 500)
        ]
        assert shares == sorted(shares, reverse=True)

    def test_the_next_radius_covers_noise_spread_and_drift(self):
        setting = Setting(effective_users=1e3, dimension=4, reach=9.0, spread=1.0, drift=0.2)
        assert setting.next_radius(5.0, 0.0) == pytest.approx(2.0)
        assert setting.next_radius(5.0, 1.0) >= math.hypot(1.0, 4.3) + 1.0 - 1e-9

    def test_core_radii_grow(self):
        assert list(CORE_RADII) == sorted(CORE_RADII)
