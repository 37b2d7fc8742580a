"""Promises that every randomizer and every role of a protocol keeps."""

import dataclasses
import re

import pytest

from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.guarantees import Numerics, Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError, RelationMismatchError
from quorate.local.randomizers.bucket_counts import BucketCounts
from quorate.local.randomizers.hashed import HashedResponse

SECTIONS = ["Privacy", "Utility", "Complexity", "Parameters", "Examples"]
FIELDS = ["guarantee", "neighbours", "trust", "public", "numerics", "proof"]
RANDOMIZERS = [
    HashedResponse(candidates=100, epsilon=1.0),
    HashedResponse(candidates=2**32, epsilon=2.0),
    BucketCounts(buckets=4, users=5, epsilon=1.0, delta=1e-6),
    BucketCounts(buckets=4, users=5, epsilon=1.0, delta=1e-6, complement=True),
]
every_randomizer = pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=str)


def answer(randomizer, account=None):
    import numpy as np

    values = np.zeros(5, np.int64)
    if isinstance(randomizer, BucketCounts):
        return randomizer.messages(values, account=account).tolist()
    reports = randomizer.respond(values, account=account)
    return reports.masks.tolist(), reports.answers.tolist()


@every_randomizer
def test_the_docstring_states_the_guarantee_the_code_returns(randomizer):
    import inspect

    doc, promise = inspect.getdoc(type(randomizer)), randomizer.guarantee
    found = re.findall(r"^(\w[\w ]*)\n-+$", doc, re.M)
    assert [name for name in found if name in SECTIONS] == SECTIONS
    privacy = doc.split("Privacy\n-------\n")[1].split("\nUtility\n")[0]
    assert re.findall(r"^(\w+) : ", privacy, re.M) == FIELDS
    assert promise.relation.value in " ".join(privacy.split())
    assert f"trust : {promise.trust.name.lower()}" in privacy
    assert f"numerics : {promise.numerics.value}" in privacy
    assert (r"\delta" in privacy.split("\nneighbours")[0]) == (promise.delta > 0)


@every_randomizer
def test_the_guarantee_is_what_the_event_costs(randomizer):
    promise = randomizer.guarantee
    assert promise.events == (randomizer.event,)
    cost = price(randomizer.event, delta=promise.delta, relation=promise.relation)
    assert cost == pytest.approx(promise.epsilon, rel=1e-12)
    assert promise.numerics is Numerics.EXACT
    with use_noise(SeededNoise(0)):
        assert randomizer.guarantee.numerics is Numerics.VOID


@every_randomizer
def test_the_account_pays_for_every_answer_and_refuses_a_second(randomizer):
    account = Account.for_event(randomizer.event, relation=randomizer.relation)
    answer(randomizer, account)
    assert account.event == randomizer.event
    with pytest.raises(ArithmeticError, match="does not fit"):
        answer(randomizer, account)


@every_randomizer
def test_an_account_about_other_neighbours_is_refused(randomizer):
    (other,) = set(Relation) - {randomizer.relation}
    account = Account.for_event(randomizer.event, relation=other)
    with pytest.raises(RelationMismatchError):
        answer(randomizer, account)


@every_randomizer
def test_all_randomness_comes_from_the_account(randomizer):
    def seeded(seed):
        return answer(
            randomizer,
            Account.for_event(
                randomizer.event, relation=randomizer.relation, noise=SeededNoise(seed)
            ),
        )

    assert seeded(1) == seeded(1)
    assert seeded(1) != seeded(2)
    assert len({str(answer(randomizer)) for _ in range(20)}) > 1


@every_randomizer
def test_it_is_frozen_and_refuses_budgets_that_are_none(randomizer):
    with pytest.raises(dataclasses.FrozenInstanceError):
        randomizer.epsilon = 100.0
    for epsilon in (0.0, -1.0, float("nan"), float("inf"), "1", None, True):
        with pytest.raises(ParameterError):
            dataclasses.replace(randomizer, epsilon=epsilon)
