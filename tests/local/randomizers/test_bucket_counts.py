"""Counts by anonymous messages: the exact law of small crowds keeps the promise, twins do not."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import nbinom

from goodness import FALSE_ALARM, p_value
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation, Trust
from quorate.core.noise import SecureNoise, SeededNoise
from quorate.exceptions import NotEnoughUsersError, ParameterError
from quorate.local.randomizers.bucket_counts import BucketCounts, noise_table
from quorate.local.shuffling.count_noise import noise_delta, published_noise


def table_law(table):
    """Return the exact probabilities that a table stands for."""
    edges = [0, *(int(entry) for entry in table[:-1]), 2**64]
    return np.diff(np.array(edges, dtype=object)).astype(float) / 2.0**64


def noise_law(counts, users=None):
    """Return the law of what all users together add to a bucket."""
    law = np.ones(1)
    for _ in range(counts.users if users is None else users):
        law = np.convolve(law, table_law(counts.table))
    return law


def totals_law(counts, values):
    """Return the exact law of all buckets' totals, as one array with an axis a bucket."""
    noise = noise_law(counts, len(values))
    law = np.ones(1)
    for bucket in range(counts.buckets):
        named = values.count(bucket)
        sent = len(values) - named if counts.complement else named
        one = np.concatenate([np.zeros(sent), noise, np.zeros(counts.users - sent)])
        law = np.multiply.outer(law, one)
    return law[0]


def worst_stick(laws, pairs, epsilon):
    factor = math.exp(epsilon)
    return max(
        np.maximum(laws[a] - factor * laws[b], 0.0).sum()
        for first, second in pairs
        for a, b in ((first, second), (second, first))
    )


def replaced(users, buckets):
    sets = list(product(range(buckets), repeat=users))
    return sets, [
        (a, b) for a in sets for b in sets if sum(x != y for x, y in zip(a, b, strict=True)) == 1
    ]


@pytest.mark.claim("G11: Algorithm 7")
class TestTable:
    @pytest.mark.parametrize(("r", "p"), [(0.02, 0.8), (1.0, 0.5), (5.0, 0.1), (109.0, 1 / 256)])
    def test_it_is_the_negative_binomial_to_64_bits(self, r, p):
        law = table_law(noise_table(r, p))
        k = np.arange(len(law))
        np.testing.assert_allclose(law, nbinom.pmf(k, r, 1 - p), rtol=1e-6, atol=1e-13)
        assert sum(law) == pytest.approx(1.0, abs=1e-15)

    def test_chances_exchanged_are_caught(self):
        law = table_law(noise_table(1.0, 0.2))
        assert abs(law[0] - nbinom.pmf(0, 1.0, 0.2)) > 0.5

    @pytest.mark.parametrize("source", [SecureNoise(), SeededNoise(1)], ids=["secure", "seeded"])
    def test_draws_have_the_law_of_the_table(self, source):
        counts = BucketCounts(buckets=20_000, users=20, epsilon=1.0, delta=1e-3, published=True)
        sent = counts.respond(-1, noise=source)
        law = table_law(counts.table)
        assert p_value(np.bincount(sent, minlength=len(law)), law) > FALSE_ALARM

    def test_the_ends_of_the_word_are_the_ends_of_the_table(self):
        class Ends(SeededNoise):
            def _uniform_words(self, count):
                return np.array([0, 2**64 - 1], dtype=np.uint64)[:count]

        counts = BucketCounts(buckets=2, users=5, epsilon=1.0, delta=1e-6)
        assert counts.respond(-1, noise=Ends(0)).tolist() == [0, len(counts.table) - 1]


@pytest.mark.claim("G11: Algorithm 8", "G11: Lemma 37")
class TestPrivacy:
    """Two users, two buckets, every input: the law of the real tables, convolved."""

    CASES = (
        {"epsilon": 1.0, "delta": 0.05},
        {"epsilon": 0.5, "delta": 0.1},
        {"epsilon": 1.0, "delta": 0.05, "complement": True},
        {"epsilon": 1.0, "delta": 0.3, "published": True},
    )

    @pytest.mark.parametrize("case", CASES, ids=str)
    def test_every_pair_of_inputs_keeps_the_promise(self, case):
        counts = BucketCounts(buckets=2, users=2, **case)
        sets, pairs = replaced(2, 2)
        laws = {values: totals_law(counts, values) for values in sets}
        worst = worst_stick(laws, pairs, counts.epsilon)
        assert worst <= counts.exact_delta * (1 + 1e-6) <= counts.delta * (1 + 1e-6)
        if not counts.published:
            assert worst > 0.95 * counts.delta

    @pytest.mark.parametrize("buckets", [8, 4096])
    def test_whoever_stays_away_would_be_seen_by_the_number_of_messages_alone(self, buckets):
        """So the relation is refused: the twin has the noise of an honest collection, less one."""
        public = {"buckets": buckets, "users": 50, "epsilon": 1.0, "delta": 1e-6}
        for complement in (False, True):
            with pytest.raises(ParameterError, match="the noise would be too small"):
                BucketCounts(relation=Relation.ADD_REMOVE, complement=complement, **public)
        noise = BucketCounts(**public).noise
        k = np.arange(int(2 * buckets * noise.mean) + 100)
        there, away = (
            nbinom.pmf(k - named, buckets * noise.r * present / 50, 1 - noise.p)
            for present, named in ((50, 1), (49, 0))
        )
        worst = max(
            np.maximum(there - math.e * away, 0).sum(), np.maximum(away - math.e * there, 0).sum()
        )
        assert worst > {8: 1e-4, 4096: 0.99}[buckets]

    def test_half_the_noise_is_caught(self):
        counts = BucketCounts(buckets=2, users=2, epsilon=1.0, delta=0.05)
        broken = BucketCounts(buckets=2, users=2, epsilon=1.0, delta=0.05)
        object.__setattr__(broken, "table", noise_table(counts.noise.r / 4, counts.noise.p))
        sets, pairs = replaced(2, 2)
        laws = {values: totals_law(broken, values) for values in sets}
        assert worst_stick(laws, pairs, 1.0) > 0.05

    def test_chances_exchanged_are_caught(self):
        counts = BucketCounts(buckets=2, users=2, epsilon=0.2, delta=0.05, published=True)
        broken = BucketCounts(buckets=2, users=2, epsilon=0.2, delta=0.05, published=True)
        table = noise_table(counts.noise.r / 2, 1 - counts.noise.p)
        object.__setattr__(broken, "table", table)
        sets, pairs = replaced(2, 2)
        laws = {values: totals_law(broken, values) for values in sets}
        assert worst_stick(laws, pairs, 0.2) > 0.05

    def test_leaving_out_empty_buckets_is_caught(self):
        """A choice among the buckets that somebody named tells who named one."""
        counts = BucketCounts(buckets=3, users=2, epsilon=1.0, delta=0.02)
        size = 12  # beyond, the totals are one cell each; a post-processing
        noise = noise_law(counts)
        noise = np.append(noise[:size], noise[size:].sum())

        def chosen(values, among):
            law = np.zeros(3)
            for drawn in product(range(len(noise)), repeat=3):
                mass = math.prod(noise[d] for d in drawn)
                totals = [values.count(b) + d for b, d in enumerate(drawn)]
                law[max(among, key=lambda b: (totals[b], -b))] += mass
            return law

        sets = [(0, 0), (0, 1), (1, 1)]
        pairs = [((0, 0), (0, 1)), ((0, 1), (1, 1))]
        everything = {values: chosen(values, (0, 1, 2)) for values in sets}
        assert worst_stick(everything, pairs, 1.0) <= 0.02
        named_only = {values: chosen(values, sorted(set(values))) for values in sets}
        assert worst_stick(named_only, pairs, 1.0) > 0.02


class TestHonestUsers:
    def test_noise_of_honest_users_alone_is_enough(self):
        counts = BucketCounts(buckets=2, users=10, honest=0.6, epsilon=1.0, delta=1e-3)
        assert counts.honest_users == 6
        law = noise_law(counts, users=6)
        k = np.arange(len(law))
        assert law @ k == pytest.approx(counts.noise.mean, rel=1e-6)
        with pytest.raises(NotEnoughUsersError, match="honest"):
            BucketCounts(buckets=2, users=10, honest=0.05, epsilon=1.0, delta=1e-3)

    def test_a_different_number_of_users_is_refused(self):
        counts = BucketCounts(buckets=2, users=10, epsilon=1.0, delta=1e-3)
        with pytest.raises(NotEnoughUsersError, match="10 users"):
            counts.messages(np.zeros(9, np.int64))


@pytest.mark.claim("G11: Lemma 38")
class TestUtility:
    def totals(self, counts, values, seed=0):
        account = Account.for_event(counts.event, noise=SeededNoise(seed))
        return counts.messages(np.asarray(values), account=account)

    @pytest.mark.parametrize("published", [False, True])
    def test_counts_are_unbiased_and_bounds_are_bounds(self, published):
        counts = BucketCounts(buckets=400, users=40, epsilon=1.0, delta=1e-6, published=published)
        totals = self.totals(counts, np.full(40, 7))
        truth = np.where(np.arange(400) == 7, 40, 0)
        scores = (counts.counts(totals) - truth) / counts.noise.deviation
        assert abs(scores.mean()) < 0.3
        assert 0.7 < scores.std() < 1.3
        assert np.all(counts.bounds(totals) >= truth)

    def test_the_complement_is_never_above_the_truth(self):
        counts = BucketCounts(buckets=300, users=60, epsilon=1.0, delta=1e-6, complement=True)
        totals = self.totals(counts, np.full(60, 7))
        truth = np.where(np.arange(300) == 7, 60, 0)
        assert np.all(counts.bounds(totals) <= truth)
        assert abs(np.mean(counts.counts(totals) - truth)) < 2
        assert counts.choose(totals) == 7
        # Nobody named the other buckets, so their histogram is exact (Lemma 37).
        histogram = counts.histogram(totals)
        assert histogram.sum() == histogram[7] <= 60

    def test_the_error_bound_holds_and_a_smaller_one_does_not(self):
        counts = BucketCounts(buckets=3000, users=20, epsilon=1.0, delta=1e-6)
        errors = counts.bounds(self.totals(counts, np.full(20, -1)))
        share = np.mean(errors > counts.error_bound(0.1))
        # Five standard deviations of 3000 throws.
        assert 0.05 < share < 0.1 + 5 * math.sqrt(0.09 / 3000)

    def test_100_users_agree_on_one_of_two_to_the_14(self):
        counts = BucketCounts(buckets=2**14, users=100, epsilon=1.0, delta=1e-6)
        values = np.arange(100)
        values[:80] = 9999
        assert counts.choose(self.totals(counts, values)) == 9999


class TestPromise:
    def test_only_the_shuffled_crowd_is_promised_anything(self):
        promise = BucketCounts(buckets=2, users=5, epsilon=1.0, delta=1e-6).guarantee
        assert promise.trust is Trust.SHUFFLE
        assert (promise.epsilon, promise.delta) == (1.0, 1e-6)

    def test_published_constants_are_those_of_the_print_for_half_the_budget(self):
        counts = BucketCounts(buckets=2, users=5, epsilon=1.0, delta=1e-6, published=True)
        expected = published_noise(0.5, 5e-7)
        assert counts.noise.r == pytest.approx(expected.r, rel=1e-6)
        assert counts.noise.p == expected.p
        assert counts.exact_delta < 1e-13

    def test_the_exact_delta_is_at_most_the_promise(self):
        counts = BucketCounts(buckets=2, users=100_000, epsilon=1.0, delta=1e-6)
        assert noise_delta(1.0, counts.noise) < counts.exact_delta <= 1e-6

    def test_a_delta_below_the_rounding_of_the_tables_is_refused(self):
        counts = BucketCounts(buckets=2, users=10**6, epsilon=1.0, delta=1e-13)
        with pytest.raises(ParameterError, match="delta"):
            _ = counts.noise

    def test_a_long_table_leaves_less_of_delta(self):
        """A table of 4096 entries would fit into this delta; the one that is needed does not."""
        public = {"buckets": 2, "users": 1, "epsilon": 0.1, "published": True}
        longer = BucketCounts(delta=2e-14, **public).table
        costs = [2 * (size + 2) / 2**64 * (1 + math.exp(0.1)) for size in (1 << 12, len(longer))]
        assert costs[0] < 2e-15 < costs[1]
        with pytest.raises(ParameterError, match="larger delta"):
            _ = BucketCounts(delta=2e-15, **public).noise

    def test_corollary_40_is_taken_where_its_bound_is_asked_for(self):
        public = {"buckets": 2, "users": 5, "epsilon": 1.0, "delta": 1e-6}
        counts = BucketCounts(published=True, beta=0.05, **public)
        r = math.ceil(1000 * (1 + math.log(1 / (0.05 * 5e-7))))
        assert (counts.noise.r, counts.noise.p) == (r, math.exp(-0.1))
        with pytest.raises(ParameterError, match="published"):
            BucketCounts(beta=0.05, **public)


@pytest.mark.claim("G11: Lemma 36", "G11: Lemma 37")
class TestLemmas:
    """Crowds of three: how far the choice and the histogram fall short, by enumeration."""

    COUNTS = BucketCounts(buckets=3, users=3, epsilon=1.0, delta=0.2, complement=True)
    VALUES = (0, 0, 1)

    def shortfalls(self, beta):
        """Return the chances that choice and histogram are off by more than their bounds."""
        counts = self.COUNTS
        noise = noise_law(counts)
        size = counts.histogram_bound(beta) + 2
        noise = np.append(noise[:size], noise[size:].sum())
        truth = np.array([2, 1, 0])
        missed = wrong = 0.0
        for drawn in product(range(len(noise)), repeat=3):
            mass = math.prod(noise[d] for d in drawn)
            totals = 3 - truth + np.array(drawn)
            shortfall = truth.max() - truth[counts.choose(totals)]
            missed += mass * (shortfall > counts.error_bound(beta))
            off = np.abs(counts.histogram(totals) - truth).max()
            wrong += mass * (off > counts.histogram_bound(beta))
        return missed, wrong

    @pytest.mark.parametrize("beta", [0.9, 0.5, 0.05])
    def test_choice_and_histogram_keep_their_bounds(self, beta):
        missed, wrong = self.shortfalls(beta)
        assert missed <= beta
        assert wrong <= beta

    def test_the_histogram_needs_beta_over_n(self):
        counts = BucketCounts(buckets=40, users=20, epsilon=1.0, delta=1e-3, complement=True)
        assert counts.histogram_bound(0.1) == counts.error_bound(0.1 / 20)
        # All twenty users name a bucket of their own: one of so many is off by more than that.
        tail = nbinom.sf(counts.error_bound(0.1), counts.noise.r, 1 - counts.noise.p)
        assert 1 - (1 - tail) ** 20 > 0.5
        rare = nbinom.sf(counts.histogram_bound(0.1), counts.noise.r, 1 - counts.noise.p)
        assert 1 - (1 - rare) ** 20 <= 0.1
        plain = BucketCounts(buckets=40, users=20, epsilon=1.0, delta=1e-3)
        assert plain.histogram_bound(0.1) == plain.error_bound(0.1 / 40)
