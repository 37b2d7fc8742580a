"""Labels that many people hold are found, those of few are not, and neighbours look the same."""

import numpy as np
import pytest

from quorate.auditing import replay
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.core.sealed import opened
from quorate.core.users import UserData
from quorate.data.labels import PrivateLabels
from quorate.distributions import DiscreteDistribution
from quorate.distributions.categories.popular import (
    check_labels,
    own_votes,
    popular_labels,
    private_labels,
)
from quorate.exceptions import ParameterError, SchemaError


def visits(users=3000, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.choice(["flu", "cold", "back pain"], p=[0.5, 0.3, 0.2], size=(users, 4))
    table = common.astype(object)
    table[:40, 0] = [f"rare disease {i}" for i in range(40)]
    return table.ravel(), np.repeat(np.arange(users), 4)


def cast_by(codes, data, seed):
    """Return the votes in the order of the users."""
    cast = opened(own_votes(codes, People(data, Relation.REPLACE), seed))
    return cast[np.argsort(np.argsort(data.keys()))]


class TestFound:
    @pytest.mark.parametrize("relation", list(Relation))
    def test_popular_labels_are_found_and_rare_ones_are_not(self, relation):
        labels, users = visits()
        with use_noise(SeededNoise(0)):
            one = DiscreteDistribution(
                1.0, delta=1e-6, categories="popular", relation=relation, random_state=0
            ).fit(labels, users=users)
        assert one.categories_ == ("back pain", "cold", "flu")
        truth = np.array([0.2, 0.3, 0.5]) * (1 - 40 / 12_000)
        assert np.abs(one.pmf_ - truth).max() < 0.03
        assert one.pmf_.sum() + one.other_ == pytest.approx(1.0)
        assert one.guarantee_.delta == 1e-6
        assert set(one.sample(200, random_state=1)) <= set(one.categories_)

    def test_numbers_are_labels_too(self):
        with use_noise(SeededNoise(1)):
            one = DiscreteDistribution(2.0, delta=1e-6, categories="popular").fit(
                np.tile([7.0, 8.0, np.nan], 900), users=np.arange(2700) // 3
            )
        assert one.categories_ == (7, 8)

    def test_nothing_popular_is_no_error(self):
        with use_noise(SeededNoise(2)):
            one = DiscreteDistribution(1.0, delta=1e-6, categories="popular").fit(
                [f"{i}" for i in range(50)], users=range(50)
            )
        assert one.categories_ == ()
        assert one.other_ == pytest.approx(1.0)
        with pytest.raises(ParameterError, match="popular"):
            one.sample(1)

    def test_wrong_use_is_refused(self):
        for wrong in ({"delta": 0.0}, {"delta": 1e-6, "categories": "all"}):
            with pytest.raises(ParameterError):
                DiscreteDistribution(1.0, **{"categories": "popular", **wrong}).fit(
                    ["a"], users=[1]
                )
        crowd = UserData.from_arrays([[1.0]], users=[1])
        with pytest.raises(SchemaError):
            DiscreteDistribution(1.0, delta=1e-6, categories="popular").fit(crowd)


class TestPrivacy:
    def test_neighbours_look_the_same(self):
        others = ["flu"] * 400 + ["cold"] * 300

        def run(mine):
            users = [*np.arange(700), *[9999] * len(mine)]
            one = DiscreteDistribution(1.0, delta=1e-6, categories="popular", random_state=0)
            one.fit([*others, *mine], users=users)
            return one.categories_, one.pmf_, one.other_, one.error_, one.guarantee_

        # A label that nobody else holds draws noise of its own; it is published with chance delta.
        for mine in (["cold"], ["cold"] * 50, [None, 2.5, b"\xff"]):
            report = replay(run, ["flu"], mine)
            assert report.same, str(report)
        for seed in range(20):
            with use_noise(SeededNoise(seed)):
                assert run(["\ud800", "nobody has this"])[0] == ("cold", "flu")

    def test_a_vote_depends_on_the_own_records_only(self):
        labels = np.array(["a", "b", "c", "d"], dtype=object)
        for seed in range(5):
            votes = []
            for extra in ([], ["0", "zzz"] * 20):
                codes = PrivateLabels.of_cells(np.array([*labels, *extra], dtype=object))
                users = [1, 1, 1, 1, *[2] * len(extra)]
                data = UserData.from_arrays(codes.numbers[:, None], users=users)
                votes.append(cast_by(codes, data, seed)[0])
            assert votes[0] == votes[1]

    def test_one_vote_a_person_however_many_records(self):
        codes = private_labels(["giant"] * 5000 + ["small"] * 300)
        data = UserData.from_arrays(codes.numbers[:, None], users=[0] * 5000 + [*range(1, 301)])
        account = Account.open(epsilon=1.0, delta=1e-6, reserve=5e-7, noise=SeededNoise(0))
        found = popular_labels(
            codes,
            People(data, Relation.REPLACE),
            epsilon=0.9,
            delta=5e-7,
            account=account,
            random_state=0,
        )
        assert found == ("small",)


def test_codes_read_text_and_whole_numbers():
    codes = PrivateLabels.of_cells(
        np.array(["b", 3, True, 3.0, None, 2.5, float("inf")], dtype=object)
    )
    assert codes.labels == (1, 3, "b")
    assert np.isnan(codes.numbers).tolist() == [False] * 4 + [True] * 3
    assert codes.places_of(("b",))[:4].tolist() == [0.0, 1.0, 1.0, 1.0]
    with pytest.raises(SchemaError):
        check_labels(np.zeros((2, 2)))
