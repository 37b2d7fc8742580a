"""Lists with a proved stability: measured over all or many samples, on every target."""

from itertools import product

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.exceptions import ParameterError
from quorate.learners.concepts.tables import FiniteTable
from quorate.papers.stability.list_stable import ListRule
from quorate.papers.stability.littlestone import VersionSpaces
from quorate.papers.stability.proved_lists import ProvedListLearner
from quorate.papers.stability.rules import plurality
from quorate.papers.stability.shared_seed import SharedSeed


def intervals(points):
    rows = [[a <= x < b for x in range(points)] for a, b in product(range(points + 1), repeat=2)]
    return np.unique(np.array(rows, dtype=int), axis=0)


def random_class(seed, *, concepts=12, points=6):
    rng = np.random.default_rng(seed)
    return np.unique(rng.integers(0, 2, (concepts, points)), axis=0)


CLASSES = {
    "points": np.eye(8, dtype=int),
    "thresholds": np.tri(8, 7, -1).astype(int),
    "intervals": intervals(5),
    "random 1": random_class(1),
    "random 2": random_class(2),
    "random 3": random_class(3, concepts=8, points=9),
}


def law(points, seed):
    """Return an uneven distribution over the points, some of them rare."""
    weights = np.random.default_rng(seed).dirichlet(np.full(points, 0.5))
    return weights / weights.sum()


def samples(table, target, chances, *, count, records, rng):
    x = rng.choice(len(chances), p=chances, size=count * records)
    return UserData.from_arrays(
        x[:, None], table[target, x], users=np.repeat(np.arange(count), records)
    )


def as_row(hypothesis, points):
    return np.array([hypothesis >> x & 1 for x in range(points)])


def common(learner, data, table, target, chances):
    """Return how often the most common accurate hypothesis is listed."""
    shares = {}
    for each in learner.lists(data):
        for h in each:
            shares[h] = shares.get(h, 0) + 1 / data.n_users
    wrong = {h: chances @ (as_row(h, table.shape[1]) != table[target]) for h in shares}
    return max(share for h, share in shares.items() if wrong[h] <= learner.alpha)


@pytest.mark.claim("G3: Theorem 18")
@pytest.mark.parametrize("name", CLASSES)
class TestStability:
    def test_an_accurate_hypothesis_is_listed_as_often_as_proved(self, name):
        table = CLASSES[name]
        learner = ProvedListLearner(FiniteTable(table), alpha=0.1)
        assert learner.dimension <= 3
        rng, records = np.random.default_rng(0), 150
        proved = learner.eta(records)
        assert proved > 0.5
        for target in range(0, len(table), 3):
            for seed in range(2):
                chances = law(table.shape[1], seed)
                data = samples(table, target, chances, count=60, records=records, rng=rng)
                seen = common(learner, data, table, target, chances)
                assert seen >= proved - 3 * np.sqrt(proved * (1 - proved) / 60) - 1e-9

    def test_no_list_is_longer_than_stated(self, name):
        table = CLASSES[name]
        learner = ProvedListLearner(FiniteTable(table))
        rng = np.random.default_rng(1)
        for records in (1, 5, 40):
            data = samples(table, 0, law(table.shape[1], 0), count=30, records=records, rng=rng)
            assert max(map(len, learner.lists(data))) <= learner.longest


@pytest.mark.claim("G3: Theorem 18")
def test_over_all_samples_of_a_small_world():
    """Exactly: three thresholds on two points, all samples of eight records."""
    table, chances, records = np.tri(3, 2, -1).astype(int), np.array([0.7, 0.3]), 8
    learner = ProvedListLearner(FiniteTable(table), alpha=0.2)
    for target in range(3):
        listed = {}
        for sample in product(range(2), repeat=records):
            x = np.array(sample)
            data = UserData.from_arrays(x[:, None], table[target, x], users=[0] * records)
            for h in learner.lists(data)[0]:
                listed[h] = listed.get(h, 0.0) + float(np.prod(chances[x]))
        accurate = [
            share for h, share in listed.items() if chances @ (as_row(h, 2) != table[target]) <= 0.2
        ]
        assert max(accurate) >= learner.eta(records)


@pytest.mark.claim("G3: Theorem 17")
def test_one_of_the_list_at_random_is_globally_stable():
    table = CLASSES["thresholds"]
    learner = ProvedListLearner(FiniteTable(table), alpha=0.1)
    rng, chances = np.random.default_rng(2), law(7, 3)
    data = samples(table, 4, chances, count=400, records=150, rng=rng)
    drawn = [each[rng.integers(len(each))] for each in learner.lists(data)]
    counts = {h: drawn.count(h) / 400 for h in set(drawn)}
    good = {h for h in counts if chances @ (as_row(h, 7) != table[4]) <= 0.1}
    assert max(counts[h] for h in good) >= learner.global_stability(150)


class TestLemma:
    def test_the_optimal_learner_predicts_alike_on_nested_sets(self):
        """The heart of the proof, on all nested pairs of a small class."""
        spaces = VersionSpaces(np.vstack([np.eye(6, dtype=int), random_class(5, concepts=3)]))
        seen = 0
        for small in range(1, spaces.everything + 1):
            if spaces.splits(small) is not None:
                continue
            rest = spaces.everything ^ small
            more = rest
            while more:
                if spaces.dimension(small | more) == spaces.dimension(small):
                    assert spaces.optimal(small | more) == spaces.optimal(small)
                    seen += 1
                more = (more - 1) & rest
        assert seen > 100

    def test_without_irreducibility_it_is_false(self):
        """The broken twin: sets that some point reduces on both sides."""
        spaces = VersionSpaces(random_class(5, concepts=7, points=4))
        different = 0
        for small in range(1, spaces.everything + 1):
            if spaces.splits(small) is None:
                continue
            rest = spaces.everything ^ small
            different += any(
                spaces.dimension(small | 1 << i) == spaces.dimension(small)
                and spaces.optimal(small | 1 << i) != spaces.optimal(small)
                for i in range(len(spaces.table))
                if rest >> i & 1
            )
        assert different > 0


@pytest.mark.claim("G4: Theorem 20", "G3: Lemma 19")
def test_users_agree_on_filtered_lists():
    """Theorem 20 with its premise: every chunk has fresh records that filter its list."""
    table = CLASSES["thresholds"]
    learner = ProvedListLearner(FiniteTable(table), alpha=0.1)
    rule = ListRule(learner, chunk=80, fresh=40, first=6, others=6)
    rng = np.random.default_rng(4)
    data = samples(table, 3, np.full(7, 1 / 7), count=20, records=12 * 120, rng=rng)
    key, share = plurality(rule.decide(data, SharedSeed(5)))
    assert share >= 0.8
    assert np.mean(as_row(key, 7) != table[3]) <= 0.1


def test_without_the_filter_lists_hold_what_errs():
    table = CLASSES["thresholds"]
    learner = ProvedListLearner(FiniteTable(table), alpha=0.1)
    rng = np.random.default_rng(6)
    data = samples(table, 3, np.full(7, 1 / 7), count=5, records=200, rng=rng)
    lists = learner.lists(data)
    fresh = samples(table, 3, np.full(7, 1 / 7), count=5, records=400, rng=rng)

    def worst(lists):
        return max(np.mean(as_row(h, 7) != table[3]) for each in lists for h in each)

    assert worst(lists) > 0.2 >= worst(learner.filtered(lists, fresh))


def test_classes_that_are_too_large_are_refused_at_once():
    with pytest.raises(ParameterError, match="use ListLearner"):
        ProvedListLearner(FiniteTable(intervals(30)))
