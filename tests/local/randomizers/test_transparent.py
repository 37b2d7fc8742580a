"""A hashed report under a local oracle: its law is the one of the response, by enumeration."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare

from quorate import UserData
from quorate.core.noise import SecureNoise
from quorate.exceptions import QueriesExhaustedError
from quorate.local.oracle import LocalOracle, Report
from quorate.local.randomizers.hashed import HashedResponse
from quorate.local.randomizers.transparent import HashedAnswer

RESPONSE = HashedResponse(candidates=4, epsilon=1.0, width=1)
ANSWER = HashedAnswer(RESPONSE)
VALUES = [0, 1, 2, 3, -1, 4, math.nan, math.inf, 1e308]


def test_the_law_is_that_of_the_response():
    for value in (0, 1, 2, 3, -1):
        law = RESPONSE.law(value)
        for answer, chance in law.items():
            assert ANSWER.probability(answer, value) == pytest.approx(float(chance), abs=1e-15)


def test_the_worst_ratio_is_just_below_epsilon():
    worst = max(
        math.log(ANSWER.probability(answer, v) / ANSWER.probability(answer, u))
        for answer in RESPONSE.law(0)
        for v in VALUES
        for u in VALUES
    )
    assert 1 - 1e-8 < worst <= 1.0


@pytest.mark.parametrize("value", [2, math.nan])
def test_draws_follow_the_law(value):
    """A false alarm has a chance of 1e-7."""
    law = {answer: ANSWER.probability(answer, value) for answer in RESPONSE.law(0)}
    places = {answer: place for place, answer in enumerate(law)}
    drawn = ANSWER.draw([value] * 4000, SecureNoise())
    counts = np.bincount([places[answer] for answer in drawn], minlength=len(law))
    assert chisquare(counts, 4000 * np.array(list(law.values()))).pvalue > 1e-7


def test_an_oracle_asks_for_it_once():
    people = UserData.from_arrays([[3.0], [1.0]], users=["ann", "bob"])
    oracle = LocalOracle(people, epsilon=1.0)
    report = Report(lambda users: users.user_means()[:, 0], ANSWER, name="favourite")
    assert len(oracle.ask([0, 1], report)) == 2
    with pytest.raises(QueriesExhaustedError):
        oracle.ask([0], report)
