"""Whole algorithms beside laws that are written out from the papers, step by step.

Each law is a tree: what may be released first, what follows from it, and the chances along the way.
The code runs once for every value that its noise may take.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from printed_laws import exponential, permute_and_flip, separating_limit
from quorate import StableLearner, UserData
from quorate.auditing import Cells, enumerate_runs
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.learners import LossSelector, PrivateMinError, PrivateThreshold
from quorate.learners.concepts import FiniteTable, Thresholds
from quorate.learners.smallest_error_search import choose_by_estimated_level
from quorate.mechanisms.choices.stable_choice import StableChoice
from quorate.mechanisms.means.winsorized import WinsorizedMean
from quorate.mechanisms.wrappers.stable_release import Base, BaseKind
from quorate.papers.conversion import CertifiedItemToUser, ItemToUser
from sealing import release_by_hand

EPSILON = 1.7


def truncated_noise(epsilon, delta, *, moved):
    """Return a law with masses e^(-epsilon |z| / moved) on |z| <= k, k as small as delta allows."""
    q = math.exp(-epsilon / moved)
    for k in itertools.count(1):
        masses = {z: q ** abs(z) for z in range(-k, k + 1)}
        total = sum(masses.values())
        if 1 - (1 - masses[k] / total) ** moved <= delta:
            return {z: mass / total for z, mass in masses.items()}


def law_of_choice(votes, noise):
    """Lemma 11: noise on each count; the largest above k wins, the first of equal ones."""
    k, law = max(noise), {}
    seen = [key for key, count in sorted(votes.items()) if count]
    for draws in itertools.product(noise, repeat=len(seen)):
        noisy = {key: votes[key] + z for key, z in zip(seen, draws, strict=True)}
        popular = [key for key in seen if noisy[key] > k]
        winner = max(popular, key=lambda key: noisy[key], default=None)
        law[winner] = law.get(winner, 0.0) + math.prod(noise[z] for z in draws)
    return law


class TestStableChoice:
    """G9, Lemma 11, and G5, Algorithm 2: everybody runs the rule, then one choice of a key."""

    @pytest.mark.parametrize("votes", [(1, 0), (3, 1), (2, 2), (5, 4), (9, 2)])
    @pytest.mark.parametrize("relation", list(Relation), ids=lambda r: r.name)
    def test_the_choice_of_a_key(self, votes, relation):
        moved = 2 if relation is Relation.REPLACE else 1
        expected = law_of_choice(
            dict(zip("ab", votes, strict=True)), truncated_noise(2.0, 0.1, moved=moved)
        )
        choice = StableChoice(epsilon=2.0, delta=0.1, relation=relation)
        keys = ["a"] * votes[0] + ["b"] * votes[1]
        found = enumerate_runs(lambda noise: release_by_hand(choice, keys))
        assert dict(found) == pytest.approx(expected, abs=1e-9)

    @pytest.mark.parametrize("held", [(0, 0, 0, 2), (0, 2), (2, 2, 2)])
    def test_a_whole_fit(self, held):
        """Users at 0 and at 2 of 2^62 cut-offs: with infinite sharpness each has one key."""
        x = np.array(held, dtype=float)
        data = UserData.from_arrays(x[:, None], (x == 2).astype(int), users=np.arange(len(x)))
        learner = StableLearner(
            Thresholds(0, 2**62),
            relation=Relation.ADD_REMOVE,
            delta=0.2,
            random_state=3,
            sharpness=math.inf,
        )

        votes = {}
        for place in (0.0, 2.0):  # the key of each kind of user, from a crowd that cannot fail
            alone = UserData.from_arrays(
                np.full((99, 1), place), np.full(99, int(place == 2)), users=np.arange(99)
            )
            key = next(iter(enumerate_runs(lambda noise, d=alone: learner.fit(d).index_)))
            votes[key] = votes.get(key, 0) + held.count(place)
        expected = law_of_choice(votes, truncated_noise(1.0, 0.2, moved=1))
        found = enumerate_runs(lambda noise: learner.fit(data).index_)
        assert dict(found) == pytest.approx(expected, abs=1e-9)


def laplace_above(distance, rate):
    """Return P[Z > distance] for Laplace noise of density rate / 2 e^(-rate |z|)."""
    tail = math.exp(-rate * abs(distance)) / 2
    return tail if distance > 0 else 1 - tail


RULES = np.array([[0, 0, 1, 1], [0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 0]])
# Records of a user, as (x, label).
KINDS = [
    ((0, 0), (1, 0), (2, 1), (3, 1)),
    ((0, 0), (1, 1), (2, 1), (3, 0)),
    ((0, 1), (1, 1), (2, 0), (3, 1)),
    ((0, 1), (0, 1), (3, 0), (1, 0)),
]
CROWDS = [(0, 0, 0, 1, 2), (0, 1, 2, 3, 3), (1, 1, 2, 2, 3), (2, 3, 3, 3, 3)]
RECORDS = 4


def crowd(kinds):
    rows = [(x, y, user) for user, kind in enumerate(kinds) for x, y in KINDS[kind]]
    x, y, users = np.array(rows).T
    return UserData.from_arrays(x[:, None].astype(float), y, users=users)


def mistakes(kinds):
    """Return the mistakes of each user under each rule."""
    return np.array(
        [[sum(rule[x] != y for x, y in KINDS[kind]) for rule in RULES] for kind in kinds]
    )


class TestNoisyBinarySearch:
    """L3, Algorithm 2: is the smallest error above the middle? Laplace noise on a count of users.

    The count is that of the users with more than t mistakes under the best rule. t separates the
    middle minus alpha / 2 from the middle plus alpha / 2; the count is compared with half-way
    between the two expected counts. Rules 0 and 3 are opposites, so the search begins at [0, 1/2].
    """

    ALPHA = 0.3  # one halving of [0, 1/2] leaves an interval of at most alpha

    def law(self, kinds, epsilon):
        middle = 0.25
        low, high = middle - self.ALPHA / 2, middle + self.ALPHA / 2
        t = separating_limit(RECORDS, low, high)
        share = (binom.sf(t, RECORDS, low) + binom.sf(t, RECORDS, high)) / 2
        count = (mistakes(kinds) > t).sum(axis=0).min()
        above = laplace_above(share * len(kinds) - count, epsilon)
        return {0.375: above, 0.125: 1 - above}

    @pytest.mark.parametrize("kinds", CROWDS)
    def test_the_estimate(self, kinds):
        search = PrivateMinError(
            FiniteTable(RULES), EPSILON, excess=self.ALPHA, records=RECORDS, random_state=0
        )
        cells = Cells(width=1 / 64, reach=3.0)  # no count of five is farther from the middle
        found = enumerate_runs(lambda noise: search.fit(crowd(kinds)).min_error_, cells=cells)
        # Where the noise is cut into cells, half a cell of 1/64 may fall on the other side.
        assert dict(found) == pytest.approx(self.law(kinds, EPSILON), abs=0.005)

    def test_crowds_lie_on_both_sides(self):
        above = [self.law(kinds, EPSILON)[0.375] for kinds in CROWDS]
        assert min(above) < 0.3 < 0.7 < max(above)

    @pytest.mark.parametrize("kinds", CROWDS)
    def test_then_the_choice_at_that_level(self, kinds):
        """L4, Theorem 4.6: half of epsilon for the level, half for the users above t."""
        expected = np.zeros(len(RULES))
        for level, chance in self.law(kinds, EPSILON / 2).items():
            t = separating_limit(RECORDS, level, level + self.ALPHA)
            losses = (mistakes(kinds) > t).sum(axis=0)
            expected += chance * permute_and_flip(losses, rate=EPSILON / 2 / 2)
        found = enumerate_runs(
            lambda noise: by_estimated_level(crowd(kinds), self.ALPHA),
            cells=Cells(width=1 / 32, reach=3.0),
        )
        np.testing.assert_allclose(
            [found.get(rule, 0.0) for rule in range(len(RULES))], expected, atol=0.01
        )


def by_estimated_level(data, excess):
    return choose_by_estimated_level(
        FiniteTable(RULES),
        People(data, Relation.REPLACE),
        records=RECORDS,
        excess=excess,
        published=False,
        account=Account.open(epsilon=EPSILON),
        random_state=0,
    )


class TestThresholdsByMedians:
    """L6, Algorithm 1, calibrated: medians, comparisons and a last choice on a line of four.

    Cut-off u calls the values u, u + 1, ... positive. Value j - 1 is the j-th point: cut-offs
    below j call it positive.
    """

    TOP, LEVEL, EXCESS, SHARES = 3, 0.1, 0.3, (3 / 8, 1 / 4, 1 / 4)
    HELD = (((0, 0), (1, 0), (2, 1), (3, 1)), ((1, 1), (2, 1)), ((2, 0), (3, 0), (3, 1)), ((3, 1),))

    def law(self, held, epsilon):
        medians, compares, last_choice = (share * epsilon for share in self.SHARES)
        rounds, theta, n = 4, 0.6, len(held)

        def limit(records, low, high):
            # The same rate for users with any number of records: equal likelihoods.
            fall = math.log((1 - low) / (1 - high))
            return math.floor(fall / (math.log(high / low) + fall) * records)

        above = [
            sum(
                sum((x >= cut) != y for x, y in one)
                > limit(len(one), self.LEVEL, self.LEVEL + self.EXCESS)
                for one in held
            )
            for cut in range(self.TOP + 2)
        ]

        def median(first, last, mass):
            """Lemma 5.1: users with more than s records to the left, or to the right."""

            def minding(u, side):
                return sum(
                    sum(x + 1 in side(u) for x, _ in one) > limit(len(one), mass / 2, 2 * mass / 3)
                    for one in held
                )

            losses = [
                max(
                    minding(u, lambda u: range(first + 1, u)),
                    minding(u, lambda u: range(u + 2, last + 1)),
                )
                for u in range(first, last + 1)
            ]
            return exponential(losses, rate=medians / rounds / 2)

        def after(first, last, done):
            if done == rounds or first == last:
                law = np.zeros(self.TOP + 2)
                law[first : last + 1] = exponential(above[first : last + 1], rate=last_choice / 2)
                return law
            law = np.zeros(self.TOP + 2)
            for u, chance in zip(
                range(first, last + 1), median(first, last, theta**done), strict=True
            ):
                sides = [(first, u - 1), (u, u), (u + 1, last)]
                counts = [min(above[a : b + 1]) if a <= b else n for a, b in sides]
                wins = permute_and_flip(counts, rate=compares / rounds / 2)
                for (a, b), win in zip(sides, wins, strict=True):
                    a, b = (a, b) if a <= b else (u, u)
                    law += chance * win * after(a, b, done + 1)
            return law

        return after(0, self.TOP + 1, 0)

    @pytest.mark.parametrize("kinds", [(0, 0, 1), (1, 2, 3), (0, 1, 2, 2, 3)])
    def test_a_whole_fit(self, kinds):
        held = [self.HELD[kind] for kind in kinds]
        rows = [(x, y, user) for user, one in enumerate(held) for x, y in one]
        x, y, users = np.array(rows).T
        data = UserData.from_arrays(x[:, None].astype(float), y, users=users)
        learner = PrivateThreshold(
            8.0, domain=(0, self.TOP), error_level=self.LEVEL, excess=self.EXCESS
        )
        found = enumerate_runs(lambda noise: learner.fit(data).index_, max_runs=200_000)
        np.testing.assert_allclose(
            [found.get(u, 0.0) for u in range(self.TOP + 2)], self.law(held, 8.0), atol=1e-9
        )


class TestBoundedLosses:
    """U7: one choice by the sums of users' losses, by duels, or near a reference."""

    LOSSES = np.array([[0.0, 1.0, 0.5], [0.25, 0.5, 1.0], [1.0, 0.0, 0.75], [0.5, 0.5, 0.0]])

    def found(self, **options):
        data = UserData(self.LOSSES, offsets=np.arange(len(self.LOSSES) + 1))
        selector = LossSelector(epsilon=EPSILON, records=64, **options)
        law = enumerate_runs(lambda noise: selector.fit(data).index_)
        return [law.get(place, 0.0) for place in range(3)]

    def sums(self, rate):
        return permute_and_flip(self.LOSSES.sum(axis=0), rate=rate)

    def test_sums(self):
        expected = self.sums(EPSILON / 2)  # a replaced user moves a sum by the range, which is 1
        np.testing.assert_allclose(self.found(algorithm="exponential"), expected, rtol=1e-6)

    def test_a_reference_and_what_differs_from_it(self):
        """Three tenths for the reference; differences are clipped to 1 / sqrt(records)."""
        expected, clip = np.zeros(3), 1 / 8
        for reference, chance in enumerate(self.sums(0.3 * EPSILON / 2)):
            differences = self.LOSSES - self.LOSSES[:, [reference]]
            losses = np.clip(differences, -clip, clip).sum(axis=0)
            expected += chance * permute_and_flip(losses, rate=0.7 * EPSILON / (2 * 2 * clip))
        np.testing.assert_allclose(self.found(algorithm="reference"), expected, rtol=1e-6)


class TestDeletionStability:
    """F1, Algorithm 1 (DelStab) with R = kappa + Z, Z truncated to [-kappa, kappa]."""

    def limit(self, epsilon, kappa):
        masses = np.exp(-epsilon * np.abs(np.arange(-kappa, kappa + 1)))
        return masses / masses.sum()

    @pytest.mark.parametrize("users", [(0, 0, 0, 0, 0, 0), (0, 0, 1, 3, 0, 0), (0, 3, 0, 3, 0, 1)])
    def test_as_printed(self, users):
        """A stable set of r users at random, 4 kappa - r more at random, the base on the rest."""
        epsilon, delta, n, kappa = 1.5, 1e-3, 6, 1
        each = epsilon / 3
        near = delta / (math.exp(2 * each) + math.exp(each) + 2)

        def base(held):
            return exponential(
                [sum(abs(v - output) for v in held) for output in range(3)], rate=0.4
            )

        def close(p, q):
            return np.maximum(p - math.exp(each) * q, 0).sum() <= near

        expected = np.zeros(4)  # nothing, then the three outputs
        for r, chance in enumerate(self.limit(each, kappa)):
            stable = []
            for left_out in itertools.combinations(range(n), r):
                rest = [users[i] for i in range(n) if i not in left_out]
                laws = [base(kept) for kept in itertools.combinations(rest, n - 4 * kappa)]
                if all(close(p, q) for p in laws for q in laws):
                    stable.append(np.mean(laws, axis=0))
            if stable:
                expected[1:] += chance * np.mean(stable, axis=0)
            else:
                expected[0] += chance
        convert = ItemToUser(
            law=lambda held: list(base(held)),
            outputs=3,
            n_users=n,
            epsilon=epsilon,
            delta=delta,
            reach=kappa,
        )
        found = enumerate_runs(lambda noise: convert.release(users))
        np.testing.assert_allclose(
            [found.get(output, 0.0) for output in (None, 0, 1, 2)], expected, atol=1e-9
        )

    @pytest.mark.parametrize("seed", range(12))
    def test_the_certificate_by_sorting(self, seed):
        """Half of epsilon for R; sums are close within an eighth of epsilon times 2 scale.

        The distance is the size of the smallest set without which all sums of n - 4 kappa users are
        close, by all sets; nothing is released where R is below it.
        """
        rng = np.random.default_rng(seed)
        n, kappa, epsilon, scale = 7, 1, 1.0, [8.0, 20.0, 60.0][seed % 3]
        scores = np.zeros((n, 2), dtype=np.int64)
        scores[:, 1] = rng.choice([0, 1, 3, 9], size=n, p=[0.6, 0.2, 0.1, 0.1])
        values, close = scores[:, 1], epsilon / 4 * scale

        def spread(left_out):
            rest = [values[i] for i in range(n) if i not in left_out]
            sums = [sum(kept) for kept in itertools.combinations(rest, n - 4 * kappa)]
            return max(sums) - min(sums)

        distance = next(
            (
                r
                for r in range(2 * kappa + 1)
                if any(spread(gone) <= close for gone in itertools.combinations(range(n), r))
            ),
            2 * kappa + 1,
        )
        released = self.limit(epsilon / 2, kappa)[distance:].sum()
        convert = CertifiedItemToUser(
            base=Base(BaseKind.EXPONENTIAL, scale=scale),
            n_users=n,
            width=2,
            bound=100,
            epsilon=epsilon,
            delta=0.5,
            reach=kappa,
        )
        found = enumerate_runs(lambda noise: convert.release(scores))
        assert found.get(None, 0.0) == pytest.approx(1 - released, abs=1e-9)
        if released:
            # The base on the users who were kept, all of whose sums are close.
            allowed = {
                round(float(exponential([0, -sum(kept)], rate=1 / scale)[1]), 9)
                for gone in itertools.combinations(range(n), distance)
                if spread(gone) <= close
                for kept in itertools.combinations(
                    [values[i] for i in range(n) if i not in gone], n - 4 * kappa
                )
            }
            assert round(found.get(1, 0.0) / released, 9) in allowed


class TestWinsorizedMean:
    """U2, Algorithm 1: a range, then Laplace noise; calibrated, the range gets what it needs."""

    @pytest.mark.parametrize(("n", "epsilon", "width"), [(40, 2.0, 16.0), (400, 1.0, 1e4)])
    def test_the_range_misses_once_in_a_hundred_and_the_rest_is_for_the_noise(
        self, n, epsilon, width
    ):
        """Algorithm 6 by its weights: exp(-epsilon_1 max(left, right) / 2) for each bin of 2 tau.

        All users lie in one bin, so every other bin has all n on one side: the chance of the
        others is (l - 1) e^(-epsilon_1 n / 2) to 1, and at most l e^(-epsilon_1 n / 4).
        """
        tau = 1.0
        mean = WinsorizedMean(lower=0.0, upper=width, radius=tau, epsilon=epsilon, n_users=n)
        bins = width / (2 * tau)
        first = min(epsilon / 2, max(0.05 * epsilon, 4 / n * math.log(bins / 0.01)))
        assert float(mean.epsilons[0]) == pytest.approx(first)
        assert float(sum(mean.epsilons)) == pytest.approx(epsilon)
        assert mean.noise_scale == pytest.approx(2 * 3 * tau / ((epsilon - first) * n))
        assert mean.failure == pytest.approx(bins * math.exp(-first * n / 4), rel=1e-6)
        two = [
            n - n // 2 if place == 0 else n // 2 if place == 1 else n for place in range(int(bins))
        ]
        one = [0 if place == 0 else n for place in range(int(bins))]
        for counts, own in ((one, 1), (two, 2)):  # users in one bin, or half in each of two
            assert exponential(counts, rate=first / 2)[own:].sum() <= mean.failure

    def test_the_range_is_drawn_by_these_weights(self):
        mean = WinsorizedMean(lower=0.0, upper=16.0, radius=1.0, epsilon=2.0, n_users=4)
        values, middles = np.array([2.5, 3.5, 3.9, 6.1]), np.arange(1.0, 16.0, 2.0)
        drawn = enumerate_runs(lambda noise: release_by_hand(mean.range, values))
        outside = [max((values < m - 1).sum(), (values >= m + 1).sum()) for m in middles]
        expected = exponential(outside, rate=float(mean.epsilons[0]) / 2)
        found = [drawn.get((m - 3.0, m + 3.0), 0.0) for m in middles]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
