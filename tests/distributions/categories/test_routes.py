"""Every way to a distribution pays from its account, keeps its word and looks the same."""

import numpy as np
import pytest

from crowds_of_shares import alike, crowd_of, mean_shares, unlike, zipf
from quorate.auditing import replay
from quorate.core.account.account import Account
from quorate.core.account.compose import price
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.distributions.categories.expected_errors import ExpectedErrors
from quorate.distributions.categories.routes import DiscreteRun
from quorate.distributions.shares import CategoryCodes
from sealing import rows_of

K = 5
WAYS = {
    "laplace": (0.0, lambda run: run.laplace("asked.")),
    "gaussian": (1e-6, lambda run: run.gaussian("asked.")),
    "polytope": (0.0, lambda run: run.polytope("asked.")),
    "ball": (1e-6, lambda run: run.ball("asked.")),
    "auto": (1e-6, lambda run: run.adapt()),
    "auto, pure": (0.0, lambda run: run.adapt()),
}
every_way = pytest.mark.parametrize("way", WAYS)


def crowd(labels, users):
    return UserData.from_arrays(labels[:, None], users=users)


def discrete_run(data, **known):
    return DiscreteRun(people=People(data, known["account"].relation), **known)


def run_on(data, way, *, seed=0, categories=K, relation=Relation.REPLACE, **options):
    delta, go = WAYS[way]
    account = Account.open(epsilon=1.0, delta=delta, relation=relation, noise=SeededNoise(seed))
    run = DiscreteRun(
        people=People(data, relation),
        coder=CategoryCodes(categories),
        categories=categories,
        account=account,
        **options,
    )
    return go(run), account


class TestPrice:
    @every_way
    @pytest.mark.parametrize("maker", [alike, unlike])
    def test_what_is_drawn_is_paid_for_and_fits(self, way, maker):
        data = crowd(*maker(1500, 30, K))
        for seed in range(3):
            _, account = run_on(data, way, seed=seed)
            spent = price(account.event, delta=WAYS[way][0], relation=Relation.REPLACE)
            assert 0.9 < spent <= 1.0

    @pytest.mark.parametrize("way", ["laplace", "gaussian", "auto"])
    def test_a_private_number_of_users_is_paid_for(self, way):
        data = crowd(*alike(500, 5, K))
        _, account = run_on(data, way, relation=Relation.ADD_REMOVE)
        spent = price(account.event, delta=WAYS[way][0], relation=Relation.ADD_REMOVE)
        assert 0.9 < spent <= 1.0


NEIGHBOURS = {
    "nothing": [],
    "one record": [3.0],
    "a thousand records": [1.0] * 1000,
    "no category": [77.0, 0.5, -3.0],
    "one of each": [0.0, 1.0, 2.0, 3.0, 4.0],
}


class TestReplay:
    @every_way
    @pytest.mark.parametrize("name", NEIGHBOURS)
    def test_given_the_released_numbers_neighbours_look_the_same(self, way, name):
        rng = np.random.default_rng(3)
        others = [rng.choice(K, p=zipf(K), size=40) for _ in range(1200)]

        def run(last):
            delta, go = WAYS[way]
            account = Account.open(epsilon=1.0, delta=delta)
            data = crowd_of([*others, np.array(last)])
            released = go(discrete_run(data, coder=CategoryCodes(K), categories=K, account=account))
            return released.shares, released.error, released.route

        report = replay(run, [0.0, 0.0], NEIGHBOURS[name])
        assert report.same, str(report)

    def test_a_radius_from_the_data_is_seen(self):
        def run(last):
            account = Account.open(epsilon=1.0, delta=1e-6)
            data = crowd_of([[0, 1, 2]] * 30 + [last])
            run = discrete_run(data, coder=CategoryCodes(K), categories=K, account=account)
            centre = np.full(K, 1.0 / K)
            radius = float(rows_of(run._distances(centre, norm=2)).max())
            return run._trimmed_mean(centre, radius, 2, account.square_left).mean()

        assert not replay(run, [0.0, 1.0, 2.0], [4.0]).same


class TestFewUsers:
    """A question to few users takes a large part of epsilon, and no more than is stated."""

    def test_pairs_are_asked_at_their_price(self):
        data = crowd(*alike(300, 200, 6))
        _, account = run_on(data, "auto, pure", categories=6)
        first = next(iter(account.event.events))
        known = ExpectedErrors(users=300, categories=6, epsilon=1.0, mu=0.0)
        assert float(first.epsilon) == pytest.approx(known.asking, rel=1e-9)
        assert 0.9 < price(account.event, delta=0.0, relation=Relation.REPLACE) <= 1.0

    @pytest.mark.parametrize(("maker", "name"), [(alike, "polytope"), (unlike, "laplace")])
    def test_people_are_told_apart(self, maker, name):
        data = crowd(*maker(300, 200, 6))
        found = [
            run_on(data, "auto, pure", seed=seed, categories=6)[0].route.name for seed in range(12)
        ]
        assert found.count(name) >= 11

    @pytest.mark.parametrize("name", NEIGHBOURS)
    def test_given_the_released_numbers_neighbours_look_the_same(self, name):
        rng = np.random.default_rng(3)
        others = [rng.choice(K, p=zipf(K), size=200) for _ in range(280)]

        def run(last):
            account = Account.open(epsilon=1.0)
            data = crowd_of([*others, np.array(last)])
            run = discrete_run(data, coder=CategoryCodes(K), categories=K, account=account)
            released = run.adapt()
            return released.shares, released.error, released.route

        report = replay(run, [0.0, 0.0], NEIGHBOURS[name])
        assert report.same, str(report)

    def test_alike_people_get_less_noise(self):
        labels, users = alike(300, 300, 6)
        data, truth = crowd(labels, users), mean_shares(labels, users, 6)

        def error(way):
            found = [run_on(data, way, seed=seed, categories=6)[0] for seed in range(40)]
            return np.mean([np.abs(each.shares - truth).sum() for each in found])

        assert error("auto, pure") < 0.75 * error("laplace")

    @pytest.mark.parametrize("people", [[[]], [[0.0]], [[]] * 3, [[7.0], [1.0]]])
    def test_hardly_anybody_who_is_known_to_be_alike_is_no_error(self, people):
        released, _ = run_on(crowd_of(people), "auto, pure", alike=True)
        assert released.shares.sum() == pytest.approx(1.0)


class TestUtility:
    @every_way
    @pytest.mark.parametrize("maker", [alike, unlike])
    def test_the_stated_bound_holds(self, way, maker):
        labels, users = maker(1200, 20, K)
        data, truth = crowd(labels, users), mean_shares(labels, users, K)
        held = []
        for seed in range(20):
            released, _ = run_on(data, way, seed=seed)
            assert released.shares.sum() == pytest.approx(1.0)
            held.append(0.5 * np.abs(released.shares - truth).sum() <= released.error.bound)
        assert np.mean(held) >= 0.9

    def test_people_who_are_alike_get_less_noise(self):
        labels, users = alike(2000, 200, K)
        data, truth = crowd(labels, users), mean_shares(labels, users, K)

        def error(way):
            found = [run_on(data, way, seed=seed) for seed in range(12)]
            return np.mean([np.abs(each.shares - truth).sum() for each, _ in found])

        assert error("auto") < 0.6 * error("laplace")
        assert run_on(data, "auto, pure")[0].route.name == "polytope"

    def test_many_categories_of_people_who_are_alike_get_a_ball(self):
        data = crowd(*alike(1500, 100, 60))
        names = [run_on(data, "auto", seed=seed, categories=60)[0].route.name for seed in range(6)]
        assert names.count("ball") >= 3

    def test_people_who_differ_get_laplace_noise(self):
        data = crowd(*unlike(2000, 200, K))
        for way in ("auto", "auto, pure"):
            assert run_on(data, way)[0].route.name == "laplace"

    @pytest.mark.parametrize("way", ["ball", "polytope", "auto", "auto, pure"])
    def test_a_cluster_of_unlike_people_is_counted_in(self, way):
        labels, users = alike(2000, 200, K)
        labels[users < 300] = K - 1.0
        data, truth = crowd(labels, users), mean_shares(labels, users, K)
        for seed in range(5):
            released, _ = run_on(data, way, seed=seed)
            error = 0.5 * np.abs(released.shares - truth).sum()
            assert error <= released.error.bound
            # Left out they would cost 0.13.
            assert error < 0.03

    def test_a_few_unlike_people_are_within_the_stated_bound(self):
        labels, users = alike(2000, 200, K)
        labels[users < 12] = K - 1.0
        data, truth = crowd(labels, users), mean_shares(labels, users, K)
        for seed in range(5):
            released, _ = run_on(data, "polytope", seed=seed)
            assert 0.5 * np.abs(released.shares - truth).sum() <= released.error.bound

    def test_records_are_weighed_up_to_the_cap(self):
        data = crowd_of([[0.0] * 10] * 300 + [[1.0] * 2] * 900)
        shares = run_on(data, "laplace", categories=2, cap=10)[0].shares
        assert shares[0] == pytest.approx(3000 / 4800, abs=0.03)
        people = run_on(data, "laplace", categories=2)[0].shares
        assert people[0] == pytest.approx(0.25, abs=0.03)

    @pytest.mark.parametrize("way", ["laplace", "ball"])
    def test_absent_people_do_not_count(self, way):
        labels, users = alike(1500, 40, K)
        people = [labels[users == user] for user in range(1500)]
        data = crowd_of([mine if i % 3 else [] for i, mine in enumerate(people)])
        truth = mean_shares(labels[users % 3 > 0], users[users % 3 > 0], K)
        for seed in range(4):
            released, _ = run_on(data, way, seed=seed)
            assert 0.5 * np.abs(released.shares - truth).sum() <= released.error.bound < 0.2

    def test_nobody_at_all_is_no_error(self):
        for data in (crowd_of([[]] * 50), crowd_of([[9.0]])):
            for way in WAYS:
                released, _ = run_on(data, way)
                assert released.shares.sum() == pytest.approx(1.0)
                assert released.error.bound <= 1.0


def test_pairs_that_tell_how_alike_people_are_are_secret_and_disjoint(monkeypatch):
    """Known pairs of places would pair other people when somebody with another id comes."""
    asked = []
    honest = UserData.gather

    def gather(self, work, ranks):
        asked.append(tuple(ranks.tolist()))
        return honest(self, work, ranks)

    monkeypatch.setattr(UserData, "gather", gather)
    data = crowd(*alike(3000, 9, 40))
    for seed in range(3):
        run_on(data, "auto", seed=seed, categories=40)
    assert len(set(asked)) == 3
    for ranks in asked:
        assert len(set(ranks)) == len(ranks)
        assert ranks != tuple(range(len(ranks)))
