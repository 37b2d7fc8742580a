"""A sample answers with its mean over users, each of whom counts once."""

from quorate import UserData
from quorate.papers.queries import StatisticalQuery
from quorate.papers.queries.oracles import EmpiricalOracle


def test_a_user_with_many_records_counts_once():
    people = UserData.from_arrays([[1.0]] * 9 + [[0.0]], users=["giant"] * 9 + ["other"])
    asked = StatisticalQuery(function=lambda X, y: X[:, 0], tolerance=0.1)
    assert EmpiricalOracle(people).ask(asked) == 0.5
