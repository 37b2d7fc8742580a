"""A distribution function by nested sums: paid for, kept, the same for neighbours."""

from fractions import Fraction

import numpy as np
import pytest

from crowds_of_shares import crowd_of
from quorate.auditing import replay
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise
from quorate.core.people import People
from quorate.distributions.numeric.cumulative import CumulativeRun
from quorate.distributions.shares import IntervalCodes

EDGES = {cells: tuple(np.linspace(0.0, 1.0, cells + 1).tolist()) for cells in (4, 20, 300)}


def people(users=500, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.beta(2, 5, size=rng.integers(0, 6)) for _ in range(users)]


def truth_of(lists, cells):
    inner = np.array(EDGES[cells][1:])
    rows = [
        (np.asarray(mine)[None, :] < inner[:, None]).mean(axis=1) for mine in lists if len(mine)
    ]
    return np.mean(rows, axis=0)


def released(lists, cells, *, relation=Relation.REPLACE, noise=None, cap=1):
    account = Account.open(epsilon=1.0, relation=relation, noise=noise)
    run = CumulativeRun(
        people=People(crowd_of(lists), relation),
        coder=IntervalCodes(EDGES[cells]),
        cells=cells,
        account=account,
        cap=cap,
    )
    return run.release(account.left), account


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("cells", EDGES)
class TestRelease:
    def test_the_bound_holds_and_all_is_paid(self, relation, cells):
        lists, held = people(), []
        truth = truth_of(lists, cells)
        for seed in range(20):
            found, account = released(lists, cells, relation=relation, noise=SeededNoise(seed))
            assert account.left < Fraction(1, 10**12)
            assert np.all(np.diff(found.up_to) >= 0)
            held.append(np.abs(found.up_to[:-1] - truth[:-1]).max() <= found.bound)
        assert np.mean(held) >= 0.9

    @pytest.mark.parametrize("mine", [[], [0.0] * 300, [1e308], [-5.0, 5.0, 0.5]], ids=len)
    def test_neighbours_look_the_same(self, relation, cells, mine):
        others = people(40)

        def run(last):
            found, account = released([*others, last], cells, relation=relation)
            return found.up_to, found.bound, account.event

        report = replay(run, [0.2, 0.4], mine)
        assert report.same, str(report)


def test_a_user_less_looks_the_same_where_the_number_is_private():
    others = people(40)

    def run(joining):
        found, account = released([*others, *joining], 20, relation=Relation.ADD_REMOVE)
        return found.up_to, found.bound, account.event

    report = replay(run, [[0.2, 0.4]], [])
    assert report.same, str(report)


def test_an_absent_crowd_is_divided_away():
    lists = people(3000, seed=1)
    lists[::2] = [[]] * 1500
    found, _ = released(lists, 20, noise=SeededNoise(0))
    truth = truth_of(lists, 20)
    assert np.abs(found.up_to[:-1] - truth[:-1]).max() <= found.bound < 0.03
