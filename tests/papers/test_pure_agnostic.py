"""Paper L, written from its text: choices by enumeration."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from printed_laws import exponential, permute_and_flip, separating_limit
from quorate import UserData
from quorate.auditing import Cells, enumerate_runs
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.learners import PrivateThreshold, private_threshold
from quorate.learners.concepts import FiniteTable, Thresholds
from quorate.learners.private_threshold import median_in_range
from quorate.learners.scores import Surrogate
from quorate.learners.scores.base import Along
from quorate.learners.scores.more_than import published_separation, separation
from quorate.learners.selection import choose_by_score
from quorate.learners.smallest_error_search import MinErrorSearch, choose_by_estimated_level
from quorate.mechanisms.search.private_compare import PrivateCompare
from quorate.planning.learner_bounds import counted_users

CONCEPTS = np.array([[0, 1], [1, 0]])
HYPOTHESES = np.array([[0, 0], [0, 1], [1, 1]])
EPSILON = 1.1
RECORDS = [(x, y) for x in (0, 1) for y in (0, 1)]


class TestTheorem34:
    """L1: min over c of mistakes of c + points on which c and h differ; it moves by 2."""

    def losses(self, held):
        return [
            min(sum(int(c[x] != y) + int(c[x] != h[x]) for x, y in held) for c in CONCEPTS.tolist())
            for h in HYPOTHESES.tolist()
        ]

    def law(self, held, *, published):
        x, y = np.array(held).T
        data = UserData.from_arrays(x[:, None].astype(float), y, users=np.arange(len(held)))
        score = Surrogate(target=FiniteTable(CONCEPTS), records=1)

        def choose(noise):
            account = Account.open(epsilon=EPSILON)
            return choose_by_score(
                FiniteTable(HYPOTHESES),
                People(data, Relation.REPLACE),
                score,
                account=account,
                published=published,
            )

        found = enumerate_runs(choose)
        return [found.get(h, 0.0) for h in range(len(HYPOTHESES))]

    @pytest.mark.parametrize("held", list(itertools.product(RECORDS, repeat=3))[::7])
    def test_weights_are_those_of_the_surrogate(self, held):
        expected = exponential(self.losses(held), rate=EPSILON / 4)
        np.testing.assert_allclose(self.law(held, published=True), expected, rtol=1e-9)

    @pytest.mark.parametrize("held", list(itertools.product(RECORDS, repeat=3))[::7])
    def test_calibrated_is_permute_and_flip(self, held):
        expected = permute_and_flip(self.losses(held), rate=EPSILON / 4)
        np.testing.assert_allclose(self.law(held, published=False), expected, rtol=1e-9)


@pytest.mark.parametrize("m", [1, 5, 64])
@pytest.mark.parametrize(("p", "q"), [(0.0, 0.02), (0.1, 0.12), (0.3, 0.8)])
def test_lemma_41_encloses_the_best_separation_of_two_binomials(m, p, q):
    """L2: K / 700 <= d_TV <= K, and the best of all t has what the distance is."""
    spread = math.sqrt(p * (1 - p))
    k = min(m * (q - p), math.sqrt(m) * (q - p) / spread if spread else math.inf, 1.0)
    assert published_separation(m, p, q) == pytest.approx(k)
    far = 0.5 * sum(abs(binom.pmf(i, m, p) - binom.pmf(i, m, q)) for i in range(m + 1))
    t, gap = separation(m, p, q)
    assert gap == pytest.approx(far)
    assert gap == pytest.approx(
        max(binom.sf(i, m, q) - binom.sf(i, m, p) for i in range(-1, m + 1))
    )
    assert gap == pytest.approx(binom.sf(t, m, q) - binom.sf(t, m, p))
    assert k / 700 <= far <= k * (1 + 1e-9)


ALPHA = 0.9
KEPT = 1  # records beyond 1 / alpha^2 are dropped


class TestAlgorithm2:
    """L3 as printed: from [0, 1] down, one comparison with the margin of Lemma C.1 a round."""

    HELD = ((0, 0), (0, 0), (1, 1), (0, 1), (1, 1))
    EPSILON = 2.0

    def above(self, middle):
        """Return the chance of 1: count / n + Lap(1 / (epsilon' n)) > share."""
        rounds = math.ceil(math.log2(2 / ALPHA))
        t = separating_limit(KEPT, middle, min(1.0, middle + ALPHA / 2))
        share = binom.sf(t, KEPT, middle) + math.sqrt(KEPT) * ALPHA / 2800
        counts = [sum(int(c[x] != y) > t for x, y in self.HELD) for c in CONCEPTS]
        far = len(self.HELD) * share - min(counts)
        tail = math.exp(-self.EPSILON / rounds * abs(far)) / 2
        return tail if far > 0 else 1 - tail

    @pytest.mark.parametrize("first", [None, False, True])
    def test_a_comparison(self, first, monkeypatch):
        """The first of two rounds, or the second one after a 0 or a 1: the search goes up at 1."""
        x, y = np.array(self.HELD).T
        data = UserData.from_arrays(x[:, None].astype(float), y, users=np.arange(len(self.HELD)))
        people, rounds = People(data, Relation.REPLACE), itertools.count()
        compare = PrivateCompare.release

        def release(mechanism, excess, *, account):
            place = next(rounds) % 2
            if place == (0 if first is None else 1):
                return compare(mechanism, excess, account=account)
            return bool(first)

        monkeypatch.setattr(PrivateCompare, "release", release)
        search = MinErrorSearch(alpha=ALPHA, records=9, published=True)
        found = enumerate_runs(
            lambda noise: search.run(
                FiniteTable(CONCEPTS),
                people.capped(search.kept_records),
                account=Account.open(epsilon=self.EPSILON),
            ),
            cells=Cells(width=1 / 16, reach=6.0),
        )
        if first is None:
            up, down, chance = 0.5, 0.0, self.above(0.5)  # the second round goes down
        elif first:
            up, down, chance = 0.75, 0.5, self.above(0.75)
        else:
            up, down, chance = 0.25, 0.0, self.above(0.25)
        assert 0.02 < chance < 0.9
        # Half a cell of 1/16 may fall on the other side.
        assert dict(found) == pytest.approx({up: chance, down: 1 - chance}, abs=0.016)

    @pytest.mark.parametrize(("alpha", "m"), [(0.3, 4), (0.05, 64), (0.05, 900)])
    def test_margins_and_records_at_smaller_alpha(self, alpha, m):
        search = MinErrorSearch(alpha=alpha, records=m, published=True)
        kept = min(m, math.floor(1 / alpha**2 + 1e-9))
        assert search.kept_records == kept
        assert search.start == (0.0, 1.0)
        assert search.rounds == math.ceil(math.log2(2 / alpha))
        for guess in (0.0, 0.25, 0.5):
            t = separating_limit(kept, guess, guess + alpha / 2)
            rate, share = search.step(guess)
            assert math.floor(rate * kept) == t
            printed = binom.sf(t, kept, guess) + math.sqrt(kept) * alpha / 2800
            assert share == pytest.approx(min(1.0, printed))


class TestTheorem46:
    """L4 as printed: half of epsilon for the level, half for a choice by the surrogate score."""

    HELD = (
        ((0, 0), (1, 1), (0, 0)),
        ((0, 1), (1, 0), (1, 0)),
        ((0, 1), (1, 1), (1, 1)),
        ((1, 0), (1, 0), (0, 0)),
    )

    @pytest.mark.parametrize("level", [0.0, 0.2, 0.5])
    def test_the_choice_at_a_level(self, level, monkeypatch):
        alpha, epsilon, shares = 0.3, 3.0, []

        def estimate(search, concepts, people, *, account):
            assert (search.alpha, search.published) == (alpha / 6, True)
            shares.append(float(account.left))
            return level

        monkeypatch.setattr(MinErrorSearch, "run", estimate)
        rows = [(x, y, user) for user, records in enumerate(self.HELD) for x, y in records]
        x, y, users = np.array(rows).T
        data = UserData.from_arrays(x[:, None].astype(float), y, users=users)
        found = enumerate_runs(
            lambda noise: choose_by_estimated_level(
                FiniteTable(HYPOTHESES),
                People(data, Relation.REPLACE),
                records=3,
                excess=alpha,
                published=True,
                account=Account.open(epsilon=epsilon),
            )
        )
        assert set(shares) == {epsilon / 2}
        t = separating_limit(3, level + alpha / 6, level + alpha / 3)
        # q(h): the fewest, over c, of users with more than t mistakes of c plus users on whose
        # records c and h differ at all (s = 0); a replaced user moves it by 2.
        losses = [
            min(
                sum(
                    (sum(c[x] != y for x, y in one) > t) + any(c[x] != h[x] for x, _ in one)
                    for one in self.HELD
                )
                for c in HYPOTHESES.tolist()
            )
            for h in HYPOTHESES.tolist()
        ]
        expected = exponential(losses, rate=epsilon / 2 / (2 * 2))
        np.testing.assert_allclose(
            [found.get(h, 0.0) for h in range(len(HYPOTHESES))], expected, rtol=1e-9
        )


def users_at(places):
    """Return users with one record each, labelled 1 from the second point on."""
    x = np.array(places, dtype=float)
    return UserData.from_arrays(x[:, None], (x >= 1).astype(int), users=np.arange(len(x)))


class TestLemma51:
    """L5 as printed: users with more than s records on either side of a cut-off."""

    HELD = ((0, 0, 1, 2), (1, 1, 3, 3), (0, 2, 2, 3), (3, 3, 3, 1))

    @pytest.mark.parametrize("mass", [0.9, 0.5, 0.2])
    @pytest.mark.parametrize(("first", "last"), [(0, 4), (1, 3)])
    def test_the_median(self, mass, first, last):
        x = np.array(self.HELD, dtype=float)
        data = UserData.from_arrays(
            x.reshape(-1, 1), np.zeros(x.size), users=np.repeat(range(4), 4)
        )
        walk = People(data, Relation.REPLACE).walk(Along(Thresholds(0, 3)))
        found = enumerate_runs(
            lambda noise: median_in_range(
                walk,
                first=first,
                last=last,
                mass=mass,
                account=Account.open(epsilon=2.0),
                published=True,
            )
        )
        s = separating_limit(4, mass / 2, 2 * mass / 3)  # Corollary D.1
        places = [[value + 1 for value in held] for held in self.HELD]  # 1 is the first point
        losses = [
            max(
                sum(sum(first <= x <= u - 1 for x in one) > s for one in places),
                sum(sum(u + 1 <= x <= last for x in one) > s for one in places),
            )
            for u in range(first, last + 1)
        ]
        expected = exponential(losses, rate=2.0 / 2)
        np.testing.assert_allclose(
            [found.get(u, 0.0) for u in range(first, last + 1)], expected, atol=1e-9
        )


class TestPrivateThreshold:
    """L6, Algorithm 1 as printed: epsilon / (4 T) for a median and for each of three errors."""

    ALPHA, EPSILON, LEVEL = 0.9, 48.0, 0.1

    def learner(self, top):
        return PrivateThreshold(
            self.EPSILON,
            domain=(0, top),
            error_level=self.LEVEL,
            excess=self.ALPHA,
            records=1,
            constants="published",
        )

    @pytest.mark.parametrize("places", [(0, 0, 0, 1), (1, 1, 1, 1)])
    def test_one_round_of_three_noisy_errors(self, places, monkeypatch):
        """Three cut-offs, the median in the middle: left, middle or right, and all is said."""
        rounds = math.ceil(math.log(2 / self.ALPHA, 1.5))
        each, asked = self.EPSILON / 2 / (4 * rounds), []

        def median(walk, *, first, last, mass, account, published):
            asked.append((first, last, mass, float(account.left), published))
            return 1

        monkeypatch.setattr(private_threshold, "median_in_range", median)
        learner, data = self.learner(1), users_at(places)
        found = enumerate_runs(lambda noise: learner.fit(data).index_, cells=Cells(reach=9.0))
        assert {(first, last, mass, published) for first, last, mass, _, published in asked} == {
            (0, 2, 1.0, True)
        }
        assert [left for *_, left, _ in asked] == pytest.approx([each] * len(asked))
        t = separating_limit(1, self.LEVEL + self.ALPHA / 6, self.LEVEL + self.ALPHA / 3)
        counts = [sum(int((x >= cut) != (x >= 1)) > t for x in places) for cut in range(3)]
        reach = math.ceil(9.0 / each)
        noise = {
            z: math.exp(-each * abs(z)) * math.tanh(each / 2) for z in range(-reach, reach + 1)
        }
        expected = np.zeros(3)
        for draws in itertools.product(noise, repeat=3):
            left, middle, right = (c + z for c, z in zip(counts, draws, strict=True))
            winner = 1 if middle < min(left, right) else 0 if left < right else 2
            expected[winner] += math.prod(noise[z] for z in draws)
        np.testing.assert_allclose([found.get(u, 0.0) for u in range(3)], expected, atol=1e-4)

    def test_rounds_shrink_the_mass_by_two_thirds_and_end_at_the_left_end(self, monkeypatch):
        """T rounds, of which each but the last leaves two cut-offs or more; then f_l."""
        asked = []

        def median(walk, *, first, last, mass, account, published):
            asked.append((first, last, mass, account.left))
            return first  # the left side is empty

        monkeypatch.setattr(private_threshold, "median_in_range", median)
        learner = self.learner(9).set_params(excess=0.2, epsilon=1e4)
        with use_noise(SeededNoise(0)):
            learner.fit(users_at([9] * 40))  # the best cut-offs are 1 to 9, the right side wins
        rounds = math.ceil(math.log(2 / 0.2, 1.5))
        assert [mass for _, _, mass, _ in asked] == pytest.approx(
            [(2 / 3) ** k for k in range(len(asked))]
        )
        assert [float(left) for *_, left in asked] == pytest.approx(
            [1e4 / 2 / (4 * rounds)] * rounds
        )
        assert learner.index_ == asked[-1][0] + 1


@pytest.mark.parametrize(("size", "alpha", "beta"), [(20, 0.1, 0.05), (500, 0.3, 0.2)])
def test_a_counted_class_needs_what_lemma_4_2_says(size, alpha, beta):
    """4 |C| exp(-gamma xi n / (4 (gamma + 1))) with gamma = xi = alpha / 2, on either side."""
    users = int(
        counted_users(log_size=math.log(size), vc_dimension=9, records=16, alpha=alpha, beta=beta)
    )
    half = alpha / 2

    def chance(n):
        return 4 * size * math.exp(-half * half * n / (4 * (half + 1)))

    assert chance(users) <= beta / 2 * (1 + 1e-9)
    assert chance(users - 2) > beta / 2
