"""Algorithm 1 as published: exhaustive audits with any base, and a twin that they catch."""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from quorate.auditing import SmallWorld, audit_exactly, enumerate_runs
from quorate.core.account.account import Account
from quorate.exceptions import NotEnoughUsersError, ParameterError, SchemaError
from quorate.papers.conversion import ItemToUser
from quorate.papers.conversion.enumerated import _far_pairs

VALUES = (0, 1, 3)


def exponential(rate):
    """Choose 0, 1 or 2 by how much of a user's value it explains."""

    def law(users):
        total = sum(users)
        scores = np.array([-total, total, 0])
        return np.exp(rate * (scores - scores.max())).tolist()

    return law


def audit(convert, values=VALUES):
    world = SmallWorld(records=values, n_users=convert.n_users, ordered=False)
    return audit_exactly(convert.probabilities, world, convert.guarantee)


def test_the_delta_counts_the_limit_and_the_laws_that_are_near():
    convert = ItemToUser(
        law=exponential(0.1), outputs=3, n_users=6, epsilon=3.0, delta=1e-3, reach=1
    )
    factor = Fraction(math.exp(2.0) + math.exp(1.0)) * (1 - Fraction(1, 2**40))
    assert convert.event.delta >= 2 * convert.limit.tail + factor * convert.closeness_delta


@pytest.mark.claim("F1: Algorithm 1", "F1: Lemma 18")
class TestExhaustiveAudits:
    @pytest.mark.parametrize("rate", [0.02, 0.15, 0.4, 2.0])
    @pytest.mark.parametrize("step", [0.5, 1.0])
    @pytest.mark.parametrize("n", [5, 6, 7])
    def test_no_world_exceeds_the_claim(self, n, step, rate):
        convert = ItemToUser(
            law=exponential(rate), outputs=3, n_users=n, epsilon=3 * step, delta=1e-3, reach=1
        )
        found = audit(convert)
        assert found.holds, str(found)

    def test_the_worlds_cover_release_withholding_and_what_is_between(self):
        nothing = set()
        for rate in (0.02, 0.15, 0.4, 2.0):
            convert = ItemToUser(
                law=exponential(rate), outputs=3, n_users=6, epsilon=1.5, delta=1e-3, reach=1
            )
            for users in SmallWorld(records=VALUES, n_users=6, ordered=False).data_sets(
                convert.relation
            ):
                nothing.add(round(convert.probabilities(users)[None], 6))
        edge = round(float(convert.limit.tail), 6)
        assert {0.0, edge, round(1 - edge, 6), 1.0} <= nothing

    def test_a_longer_reach_and_a_base_that_is_not_private_at_all(self):
        convert = ItemToUser(
            law=lambda users: [users[0] == 0, users[0] == 1, users[0] == 3],
            outputs=3,
            n_users=9,
            epsilon=1.0,
            delta=0.01,
            reach=2,
        )
        world = SmallWorld(records=(0, 3), n_users=9)
        assert audit_exactly(convert.probabilities, world, convert.guarantee).holds

    def test_the_audit_catches_a_limit_that_is_ignored(self, monkeypatch):
        """A twin that tests stability without noise on how many users may go."""
        convert = ItemToUser(
            law=exponential(2.0), outputs=3, n_users=6, epsilon=1.5, delta=1e-3, reach=1
        )
        true = ItemToUser.mixtures
        monkeypatch.setattr(ItemToUser, "mixtures", lambda self, users: [true(self, users)[1]] * 3)
        assert not audit(convert).holds

    def test_the_audit_catches_a_release_without_the_test(self, monkeypatch):
        """Six of ten users are seen, so a base that tells whether anybody holds 3 tells a lot."""
        convert = ItemToUser(
            law=lambda users: [3 in users, 3 not in users],
            outputs=2,
            n_users=10,
            epsilon=1.5,
            delta=1e-3,
            reach=1,
        )
        assert audit(convert, (0, 3)).holds
        monkeypatch.setattr("quorate.papers.conversion.enumerated._far_pairs", lambda *_: [])
        assert not audit(convert, (0, 3)).holds

    def test_the_code_follows_the_law_that_is_audited(self):
        convert = ItemToUser(
            law=exponential(0.4), outputs=3, n_users=6, epsilon=1.5, delta=1e-3, reach=1
        )
        users = (0, 0, 1, 3, 0, 0)
        runs = enumerate_runs(lambda _: convert.release(users))
        for output, mass in convert.probabilities(users).items():
            assert float(runs.get(output, 0)) == pytest.approx(mass, abs=1e-12)


def test_mixtures_are_those_of_the_algorithm_step_by_step():
    """Draw S among the stable sets, T around S, and run the base on the rest; averaged plainly."""
    convert = ItemToUser(
        law=exponential(0.4), outputs=3, n_users=6, epsilon=1.5, delta=1e-3, reach=1
    )
    users = (0, 0, 1, 3, 0, 0)

    def law(kept):
        weights = np.array(convert.law([users[i] for i in kept]))
        return weights / weights.sum()

    def close(p, q):
        factor = math.exp(convert.step)
        delta = float(convert.closeness_delta)
        return all(np.maximum(a - factor * b, 0).sum() <= delta for a, b in [(p, q), (q, p)])

    for gone, mixture in enumerate(convert.mixtures(users)):
        stable = []
        for left_out in combinations(range(6), gone):
            rest = [i for i in range(6) if i not in left_out]
            laws = [law(kept) for kept in combinations(rest, convert.survivors)]
            if all(close(p, q) for p in laws for q in laws):
                stable.append(np.mean(laws, axis=0))
        if not stable:
            assert mixture is None
        else:
            assert mixture.probabilities() == pytest.approx(np.mean(stable, axis=0))


def test_laws_at_the_border_are_told_apart_exactly():
    from fractions import Fraction

    half, delta = (1, 1), Fraction(1, 10)
    border = (6, 4)  # 0.6 - e^0 0.5 is exactly delta
    assert _far_pairs((half, border), Fraction(1, 10**30), delta) == []
    assert len(_far_pairs((half, border), Fraction(1, 10**30), delta - Fraction(1, 10**20))) == 2


@pytest.mark.parametrize(
    "law",
    [
        lambda users: 1 / 0,
        lambda users: [math.nan, 1, 1],
        lambda users: [1, 1],
        lambda users: [-1, 1, 1],
        lambda users: [0, 0, 0],
        lambda users: "no",
    ],
)
def test_a_law_that_fails_tells_nothing(law):
    convert = ItemToUser(law=law, outputs=3, n_users=5, epsilon=3.0, delta=0.1, reach=1)
    assert convert.probabilities((0,) * 5) == pytest.approx({None: 0, 0: 1 / 3, 1: 1 / 3, 2: 1 / 3})


def test_the_published_numbers():
    with pytest.raises(NotEnoughUsersError, match="at least 193 users for a reach of 48"):
        ItemToUser(law=exponential(1.0), outputs=3, n_users=192, epsilon=1.0, delta=1e-6)


def test_the_account_pays_and_wrong_use_is_refused():
    convert = ItemToUser(
        law=exponential(0.1), outputs=3, n_users=5, epsilon=3.0, delta=0.1, reach=1
    )
    account = Account.open(epsilon=3.0, delta=0.9, reserve=0.9)
    convert.release((0, 0, 0, 0, 0), account=account)
    assert account.event == convert.event
    with pytest.raises(SchemaError, match="records of 5 users"):
        convert.release((0, 0))
    with pytest.raises(ParameterError, match="at most 1000 choices"):
        ItemToUser(law=exponential(0.1), outputs=3, n_users=16, epsilon=3.0, delta=0.1, reach=2)
    with pytest.raises(ParameterError, match="law to be a function"):
        ItemToUser(law=None, outputs=3, n_users=5)


@pytest.mark.parametrize(
    ("n_users", "epsilon", "delta"), [(25, 3.0, 0.1), (193, 3.0, 0.1), (193, 1.0, 1e-6)]
)
def test_sets_that_are_left_out_are_counted_before_anything_runs(n_users, epsilon, delta):
    """25 users were accepted and did not finish; with 193 integers overflowed."""
    with pytest.raises(ParameterError, match="at most 1000 choices"):
        ItemToUser(law=len, outputs=2, n_users=n_users, epsilon=epsilon, delta=delta)
