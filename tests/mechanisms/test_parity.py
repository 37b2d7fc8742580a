"""The parity learner: its true epsilon by enumeration, its sampler against its law, its twins."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import chisquare

from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.noise import SecureNoise, SeededNoise, use_noise
from quorate.exceptions import NumericalFailure, ParameterError, SchemaError
from quorate.mechanisms.linear_equations import pack_bits
from quorate.mechanisms.parity import AmplifiedParity, SolveParity

WORLDS = [(2, 2), (1, 3)]


def records(features):
    rows = itertools.product([False, True], repeat=features)
    return [(row, label) for row in rows for label in (False, True)]


def equations(world, features):
    rows = np.array([records(features)[i][0] for i in world], dtype=bool)
    labels = np.array([records(features)[i][1] for i in world], dtype=bool)
    return pack_bits(rows.reshape(len(world), features)), labels


def laws(mechanism, features, n, *more):
    return {
        world: mechanism.probabilities(*equations(world, features), *more)
        for world in itertools.product(range(len(records(features))), repeat=n)
    }


def worst_ratios(mechanism, features, n, *more):
    """Return the largest log ratio of a hypothesis, and of nothing, over all neighbours."""
    table = laws(mechanism, features, n, *more)
    largest = np.zeros(2)
    for world, law in table.items():
        for place in range(n):
            for other in range(len(records(features))):
                changed = table[(*world[:place], other, *world[place + 1 :])]
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratios = np.nan_to_num(np.log(law / changed), nan=0.0)
                largest = np.maximum(largest, [ratios[:-1].max(), ratios[-1]])
    return largest


@dataclass(frozen=True, kw_only=True)
class AllOrNone(SolveParity):
    """Broken: rows are kept all together or not at all."""

    def _kept_law(self, count):
        yield np.ones(count, dtype=bool), self.keep
        yield np.zeros(count, dtype=bool), 1 - self.keep

    def _draw_kept(self, count, noise):
        return np.full(count, self._keep_coin.throw_one(noise))


@dataclass(frozen=True, kw_only=True)
class StopsTooRarely(SolveParity):
    """Broken: nothing is answered at once with a probability that is 2 % too small."""

    @property
    def stop(self):
        return 0.98 * super().stop


@pytest.mark.claim("K3: Lemma 4.1")
class TestTrueEpsilon:
    @pytest.mark.parametrize(("features", "n"), WORLDS)
    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0])
    def test_it_is_the_nominal_one_for_hypotheses_and_for_nothing(self, features, n, epsilon):
        mechanism = SolveParity(features=features, epsilon=epsilon)
        assert worst_ratios(mechanism, features, n) == pytest.approx([epsilon] * 2, abs=1e-9)

    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    def test_adding_a_row_costs_epsilon_too(self, epsilon):
        mechanism = SolveParity(features=2, epsilon=epsilon, relation=Relation.ADD_REMOVE)
        small, large = laws(mechanism, 2, 1), laws(mechanism, 2, 2)
        ratios = [np.abs(np.log(large[world] / small[world[:1]])).max() for world in large]
        assert max(ratios) == pytest.approx(epsilon, abs=1e-9)

    def test_the_published_coins_waste_half_of_it(self):
        mechanism = SolveParity(features=2, epsilon=0.5, published=True)
        hypotheses, nothing = worst_ratios(mechanism, 2, 2)
        assert hypotheses == pytest.approx(0.2513, abs=1e-4)
        assert nothing < 0.5

    def test_rows_that_are_not_kept_independently_are_caught(self):
        assert worst_ratios(AllOrNone(features=2, epsilon=1.0), 2, 2)[0] > 1.4

    def test_a_stopping_probability_that_is_too_small_is_caught(self):
        hypotheses, nothing = worst_ratios(StopsTooRarely(features=2, epsilon=1.0), 2, 2)
        assert hypotheses == pytest.approx(1.0, abs=1e-9)
        assert nothing > 1.0 + 1e-3


class TestSampler:
    @staticmethod
    def fit(mechanism, draw, rows, labels, *more):
        """Return the p-value of 4,000 draws against the law."""
        law = (
            SolveParity.probabilities(mechanism, rows, labels)
            if not more
            else (mechanism.probabilities(rows, labels, *more))
        )
        found = [draw() for _ in range(4000)]
        places = [len(law) - 1 if outcome is None else outcome for outcome in found]
        return chisquare(np.bincount(places, minlength=len(law)), 4000 * law).pvalue

    @pytest.mark.parametrize("world", [(3, 5), (1, 6), (3, 3)])
    def test_draws_follow_the_law(self, world):
        """A false alarm has a chance of 1e-6 for each world."""
        rows, labels = equations(world, 2)
        mechanism = SolveParity(features=2, epsilon=1.0)
        assert self.fit(mechanism, lambda: mechanism.release(rows, labels), rows, labels) > 1e-6

    def test_the_published_coins_follow_their_law(self):
        rows, labels = equations((3, 5), 2)
        mechanism = SolveParity(features=2, epsilon=0.5, published=True)
        assert self.fit(mechanism, lambda: mechanism.release(rows, labels), rows, labels) > 1e-6

    def test_a_sampler_that_keeps_all_or_none_is_caught(self):
        rows, labels = equations((3, 5), 2)
        broken = AllOrNone(features=2, epsilon=1.0)
        law = SolveParity(features=2, epsilon=1.0).probabilities(rows, labels)
        found = [broken.release(rows, labels) for _ in range(4000)]
        places = [len(law) - 1 if outcome is None else outcome for outcome in found]
        assert chisquare(np.bincount(places, minlength=len(law)), 4000 * law).pvalue < 1e-6

    def test_the_number_of_draws_does_not_depend_on_the_data(self):
        counts = []
        for world in itertools.product(range(8), repeat=2):
            drawn = []

            class Counting(SeededNoise):
                def _uniform_words(self, count, drawn=drawn):
                    drawn.append(("words", count))
                    return super()._uniform_words(count)

                def _uniform_below(self, upper, drawn=drawn):
                    drawn.append(("below", upper))
                    return super()._uniform_below(upper)

            with use_noise(Counting(0)):
                SolveParity(features=2, epsilon=1.0).release(*equations(world, 2))
            counts.append(tuple(drawn))
        assert len(set(counts)) == 1


@pytest.mark.claim("K4: Theorem 4.4")
class TestAmplified:
    PARTS = np.array([0, 1, 2, 2])

    @pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
    def test_the_whole_costs_epsilon_and_not_more(self, epsilon):
        """Two runs on one row each and two test rows: every world, every neighbour."""
        mechanism = AmplifiedParity(features=1, epsilon=epsilon, runs=2)
        hypotheses, nothing = worst_ratios(mechanism, 1, 4, self.PARTS)
        assert max(hypotheses, nothing) <= epsilon + 1e-9
        assert max(hypotheses, nothing) > 0.9 * epsilon

    @pytest.mark.parametrize("epsilon", [0.1, 0.5])
    def test_mistakes_get_the_noise_of_the_proof(self, epsilon):
        """Replaced, a test row moves two candidates apart by 2; all errors are told as published.

        With few rows a run that answers nothing hides most of this from the law of the whole.
        """
        known = {"features": 2, "epsilon": epsilon, "runs": 5}
        assert AmplifiedParity(**known).scale == pytest.approx(2 / epsilon)
        coming = AmplifiedParity(**known, relation=Relation.ADD_REMOVE)
        assert coming.scale == pytest.approx(1 / epsilon)
        assert AmplifiedParity(**known, published=True).scale == pytest.approx(5 / epsilon)

    def test_draws_follow_the_law(self):
        rows, labels = equations((3, 1, 3, 0), 1)
        mechanism = AmplifiedParity(features=1, epsilon=1.0, runs=2)
        p_value = TestSampler.fit(
            mechanism,
            lambda: mechanism.release(rows, labels, parts=self.PARTS),
            rows,
            labels,
            self.PARTS,
        )
        assert p_value > 1e-6

    def test_nothing_is_released_only_if_no_run_answered(self):
        mechanism = AmplifiedParity(features=1, epsilon=1.0, runs=2)
        assert self.chance_of_nothing(mechanism) == pytest.approx(self.all_failed(mechanism))

    def test_counting_nothing_as_a_candidate_without_mistakes_is_caught(self):
        """The broken twin: err(nothing) = 0 in the choice, so nothing beats every solution."""

        @dataclass(frozen=True, kw_only=True)
        class NothingIsPerfect(AmplifiedParity):
            def _candidates(self, answers):
                return list(answers)

            def _mistakes(self, candidates, rows, labels, parts):
                real = [0 if c < 0 else c for c in candidates]
                counts = super()._mistakes(real, rows, labels, parts)
                return np.where(np.array(candidates) < 0, 0, counts)

        broken = NothingIsPerfect(features=1, epsilon=1.0, runs=2)
        assert self.chance_of_nothing(broken) > 1.5 * self.all_failed(broken)

    def chance_of_nothing(self, mechanism):
        return mechanism.probabilities(*equations((3, 1, 3, 0), 1), self.PARTS)[-1]

    def all_failed(self, mechanism):
        rows, labels = equations((3, 1, 3, 0), 1)
        return np.prod(
            [mechanism.solver.probabilities(rows[[i]], labels[[i]])[-1] for i in range(2)]
        )

    def test_a_seed_recovers_a_parity_of_sixty_four_features(self):
        rng = np.random.default_rng(5)
        X = rng.integers(0, 2, (920, 64)).astype(bool)
        secret = rng.integers(0, 2, 64).astype(bool)
        labels = (X & secret).sum(axis=1) % 2 == 1
        expected = sum(1 << int(j) for j in np.flatnonzero(secret))
        found = []
        for seed in range(10):
            with use_noise(SeededNoise(seed)):
                mechanism = AmplifiedParity(features=64, epsilon=1.0, runs=4)
                parts = np.arange(920) // 217
                found.append(mechanism.release(pack_bits(X), labels, parts=parts))
        assert found.count(expected) >= 9

    def test_the_published_choice_works_too(self):
        rng = np.random.default_rng(5)
        X = rng.integers(0, 2, (4000, 4)).astype(bool)
        labels = X[:, 0] ^ X[:, 2]
        with use_noise(SeededNoise(1)):
            mechanism = AmplifiedParity(features=4, epsilon=0.5, runs=8, published=True)
            assert mechanism.release(pack_bits(X), labels, parts=np.arange(4000) // 400) == 5


class TestAccount:
    def test_one_release_costs_epsilon_and_a_second_is_refused(self):
        account = Account.open(epsilon=1.0, noise=SecureNoise())
        mechanism = SolveParity(features=2, epsilon=1.0)
        mechanism.release(*equations((3, 5), 2), account=account)
        assert account.left == 0
        with pytest.raises(NumericalFailure, match="nothing was drawn"):
            mechanism.release(*equations((3, 5), 2), account=account)

    def test_several_runs_cost_no_more_than_one(self):
        account = Account.open(epsilon=1.0, noise=SecureNoise())
        AmplifiedParity(features=1, epsilon=1.0, runs=2).release(
            *equations((3, 1, 3, 0), 1), parts=TestAmplified.PARTS, account=account
        )
        assert account.left == 0


@pytest.mark.claim("K3: Lemma 4.2")
class TestUtility:
    def test_the_error_bound_holds_and_is_not_loose(self):
        """A parity at the bound survives with a probability just below beta / 2**d."""
        mechanism = SolveParity(features=8, epsilon=1.0)
        bound = mechanism.error_bound(0.01, rows=1000)
        survives = (1 - mechanism.keep * bound) ** 1000
        assert survives * 2**8 == pytest.approx(0.01)


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"epsilon": 2.0, "published": True}, "published coins"),
            ({"epsilon": 1e5}, "2\\*\\*10"),
            ({"features": 0}, "features"),
        ],
    )
    def test_parameters(self, changes, message):
        with pytest.raises(ParameterError, match=message):
            SolveParity(**({"features": 2, "epsilon": 1.0} | changes))

    def test_shapes(self):
        mechanism = SolveParity(features=2, epsilon=1.0)
        with pytest.raises(SchemaError, match="packed rows"):
            mechanism.release(np.zeros((2, 2)), np.zeros(2, bool))
        with pytest.raises(SchemaError, match="Boolean label"):
            mechanism.release(np.zeros((2, 1), np.uint64), np.zeros(3, bool))
        amplified = AmplifiedParity(features=2, epsilon=1.0, runs=1)
        with pytest.raises(SchemaError, match="number of a part"):
            amplified.release(np.zeros((2, 1), np.uint64), np.zeros(2, bool), parts=np.zeros(3))
