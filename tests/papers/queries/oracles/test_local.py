"""Queries by local randomizers: disjoint blocks, honest flags, joint reports without bias."""

from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np
import pytest

from quorate import UserData
from quorate.core.guarantees import Trust
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError, QueriesExhaustedError
from quorate.learners.concepts import Literals
from quorate.learners.concepts.masked_parities import MaskedParity
from quorate.papers.queries import Population, StatisticalQuery
from quorate.papers.queries.algorithms import UniformConjunctionQueries
from quorate.papers.queries.masked_parity import MaskedParityQueries
from quorate.papers.queries.oracles.local import (
    Combination,
    LocalQueryOracle,
    published_users,
    random_signs,
    users_for_tolerance,
)


@dataclass(frozen=True)
class Column:
    place: int
    row_wise: ClassVar[bool] = True

    def __call__(self, X, y):
        return X[:, self.place]


def share(column):
    return StatisticalQuery(function=Column(column), tolerance=0.2, name=f"x{column}")


RNG = np.random.default_rng(0)
PEOPLE = UserData.from_arrays((RNG.random((6000, 3)) < [0.1, 0.5, 0.8]) * 1.0, users=range(6000))


class TestBlocks:
    def test_no_user_is_asked_twice_and_everyone_is_asked(self):
        oracle = LocalQueryOracle(PEOPLE, epsilon=1.0, rounds=(2, 1), random_state=0)
        oracle.answer([share(0), share(1)])
        oracle.ask(share(2))
        places = list(chain.from_iterable(e.places.tolist() for e in oracle.transcript.exchanges))
        assert sorted(places) == list(range(6000))
        assert oracle.transcript.epsilon == 1
        assert oracle.guarantee.trust is Trust.LOCAL

    def test_a_round_or_a_query_too_many_is_refused(self):
        oracle = LocalQueryOracle(PEOPLE, epsilon=1.0, rounds=(2,), random_state=0)
        with pytest.raises(QueriesExhaustedError, match="at most 2 queries in round 1"):
            oracle.answer([share(0)] * 3)
        oracle.ask(share(0))
        with pytest.raises(QueriesExhaustedError, match="at most 0 queries in round 2"):
            oracle.ask(share(1))

    def test_small_blocks_answer_and_are_flagged(self):
        few = PEOPLE.take(range(40))
        oracle = LocalQueryOracle(few, epsilon=1.0, rounds=(2,), random_state=0)
        assert oracle.answer([share(0), share(1)]).shape == (2,)
        assert oracle.weak == ["x0", "x1"]
        many = LocalQueryOracle(PEOPLE, epsilon=1.0, rounds=(2,), random_state=0)
        many.answer([share(0), share(1)])
        assert many.weak == []

    def test_shares_of_rounds(self):
        oracle = LocalQueryOracle(
            PEOPLE, epsilon=1.0, rounds=(1, 1), shares=(0.9, 0.1), random_state=0
        )
        oracle.ask(share(0))
        oracle.ask(share(1))
        assert [len(e.places) for e in oracle.transcript.exchanges] == [5400, 600]
        with pytest.raises(ParameterError, match="positive share"):
            LocalQueryOracle(PEOPLE, epsilon=1.0, rounds=(1, 1), shares=(1.0,))

    def test_nobody_to_ask_is_the_middle(self):
        few = PEOPLE.take([0])
        oracle = LocalQueryOracle(few, epsilon=1.0, rounds=(2,), random_state=0)
        assert 0.5 in oracle.answer([share(0), share(1)])


class TestAnswers:
    @pytest.mark.parametrize(
        ("published", "error"), [(False, 1.08), (True, 1.5)], ids=["response", "laplace"]
    )
    def test_they_are_means_with_the_noise_of_their_randomizer(self, published, error):
        found = []
        for seed in range(40):
            with use_noise(SeededNoise(seed)):
                oracle = LocalQueryOracle(
                    PEOPLE, epsilon=1.0, rounds=(3,), published=published, random_state=seed
                )
                found.append(oracle.answer([share(j) for j in range(3)]) - [0.1, 0.5, 0.8])
        sd = error / np.sqrt(2000)
        assert np.abs(np.mean(found, axis=0)).max() < 5 * sd / np.sqrt(40) + 0.02
        assert np.std(found, axis=0)[1] == pytest.approx(sd, rel=0.4)

    def test_joint_reports_are_unbiased(self):
        """Three sparse queries at once: one of them is 1, as the bound on their sum says."""
        kind = RNG.integers(0, 4, 6000)
        X = np.eye(4)[kind][:, :3]
        people = UserData.from_arrays(X, users=range(6000))
        found = []
        for seed in range(40):
            with use_noise(SeededNoise(seed)):
                oracle = LocalQueryOracle(
                    people, epsilon=1.0, rounds=(3,), joint=(1.0,), random_state=seed
                )
                found.append(oracle.answer([share(j) for j in range(3)]) - X.mean(axis=0))
        sd = 1 / (np.tanh(0.5) * np.sqrt(6000))
        assert np.abs(np.mean(found, axis=0)).max() < 5 * sd / np.sqrt(40)
        assert np.std(found) == pytest.approx(sd, rel=0.3)

    def test_a_user_beyond_the_joint_bound_is_scaled_down(self):
        people = UserData.from_arrays(np.ones((4, 3)), users=range(4))
        values = Combination(tuple(share(j) for j in range(3)), 1.0, np.uint64(0))(people)
        assert np.all((values >= 0) & (values <= 1))

    def test_signs_are_fair_public_and_each_users_own(self):
        signs = random_signs(PEOPLE.keys(), 70, np.uint64(1))
        assert signs.shape == (6000, 70)
        assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(6000)
        some = random_signs(PEOPLE.keys()[[7, 3]], 70, np.uint64(1))
        assert np.array_equal(some, signs[[7, 3]])
        products = np.abs(signs.T @ signs / 6000 - np.eye(70)).max()
        assert products < 6 / np.sqrt(6000)


@pytest.mark.claim("K7: Theorem 5.7")
class TestLearners:
    @pytest.mark.parametrize(("records", "users"), [(4, 3200), (16, 400)])
    def test_conjunctions_are_found(self, records, users):
        """Ten runs with three literals, the hardest case; the benchmark has the figures."""
        names = tuple(f"x{j}" for j in range(8))
        found = 0
        for seed in range(10):
            chosen = np.random.default_rng(seed).permutation(8)[:3]
            rule = Literals(
                literals=tuple((int(j), True) for j in sorted(chosen)), any_of=False, names=names
            )
            people = Population.uniform_cube(8, rule, records=records).draw(
                users, random_state=seed
            )
            with use_noise(SeededNoise(seed)):
                oracle = LocalQueryOracle(people, epsilon=1.0, rounds=(8,), random_state=seed)
                found += UniformConjunctionQueries(8, records=records).run(oracle) == rule
        assert found >= 8

    def test_masked_parity_runs_on_joint_reports(self):
        rng = np.random.default_rng(0)
        rule = MaskedParity(8, 0b10110001, 1)
        X = np.column_stack(
            [
                rng.integers(0, 2, (15_000, 8)),
                rng.integers(0, 8, 15_000),
                rng.integers(0, 2, 15_000),
            ]
        ).astype(float)
        people = UserData.from_arrays(X, rule.predict(X), users=range(15_000))
        algorithm = MaskedParityQueries(8, signed=True, candidates=4)
        with use_noise(SeededNoise(0)):
            oracle = LocalQueryOracle(
                people,
                epsilon=1.0,
                rounds=algorithm.rounds,
                shares=(0.85, 0.15),
                joint=(1.0, None),
                random_state=0,
            )
            assert algorithm.run(oracle) == rule


@pytest.mark.claim("K7: Lemma 5.6")
class TestSizes:
    def test_more_users_than_needed_keep_the_tolerance(self):
        """Hoeffding at the size it asks for: none of 50 answers is out at beta = 0.05 / 50."""
        n = users_for_tolerance(tolerance=0.1, epsilon=1.0, queries=1, beta=0.05 / 50)
        people = UserData.from_arrays(
            np.tile([[0.0], [1.0]], (n // 2 + 1, 1)), users=range(2 * (n // 2 + 1))
        )
        for seed in range(50):
            with use_noise(SeededNoise(seed)):
                oracle = LocalQueryOracle(people, epsilon=1.0, rounds=(1,), random_state=0)
                assert abs(oracle.ask(share(0)) - 0.5) <= 0.1

    def test_randomized_response_needs_fewer_users_than_the_paper(self):
        known = {"tolerance": 0.05, "epsilon": 1.0, "queries": 8, "beta": 0.05}
        assert users_for_tolerance(**known) < published_users(**known) / 5
