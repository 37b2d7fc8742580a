"""A plan of a series says what the series itself will state."""

import pytest

from quorate import Relation, UserSeries, plan
from quorate.exceptions import ParameterError


@pytest.mark.parametrize("touched", [1, 3, 12])
@pytest.mark.parametrize("relation", list(Relation))
def test_the_planned_noise_is_that_of_the_design(touched, relation):
    users, horizon, groups = 50_000, 52, 8
    answer = plan(
        "series",
        users=users,
        epsilon=1.0,
        delta=1e-6,
        size=groups,
        horizon=horizon,
        touched=touched,
        confidence=0.95,
        relation=relation,
    )
    series = UserSeries(
        1.0,
        1e-6,
        horizon=horizon,
        by="group",
        keys=list(range(groups)),
        statistics={"people": "users", "value": "sum"},
        bounds={"value": (0, 7)},
        touched=touched,
        relation=relation,
    )
    bound = 1.96 * series.design.noise(series.design.parts[0])
    people = users * touched / (horizon * groups)
    assert answer.error == pytest.approx(bound / people, rel=1e-3)


def test_a_split_budget_is_worse_as_long_as_people_are_in_few_periods():
    answer = plan("series", users=50_000, epsilon=1.0, delta=1e-6, horizon=78, touched=3)
    [baseline] = answer.baselines
    assert baseline.error == pytest.approx(answer.error * (78 / 3 / 1.1) ** 0.5, rel=1e-3)
    assert "square-root" in answer.reason


def test_what_cannot_be_is_refused():
    with pytest.raises(ParameterError, match="touched <= horizon"):
        plan("series", users=100, epsilon=1.0, delta=1e-6, horizon=4, touched=5)
    with pytest.raises(ParameterError, match="delta > 0"):
        plan("series", users=100, epsilon=1.0)
