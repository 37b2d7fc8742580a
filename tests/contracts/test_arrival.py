"""The order in which rows arrive decides nothing.

A sort that is not stable, ``order by day`` or a new partition lets one person's record change the
order of everybody's rows. So what each user contributes, to the last bit, and what is released must
follow from who holds what: every estimator is fitted to rows in other orders, in every place that
keeps them, and everything is compared.
"""

import sqlite3
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from crowd_worlds import COLUMNS, ESTIMATORS, EVERY, FAMILIES, digest, known, released, visits
from fitted_examples import make
from fitted_examples import released as told
from quorate.app.catalogue import CATALOGUE
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.questions import ballots as table_keys
from quorate.core.users import UserData
from quorate.core.users.public_choices import in_own_order
from quorate.data.engines import MemoryCrowd
from quorate.data.engines.files import FileCrowd
from quorate.data.engines.layout import Layout
from quorate.distributions import DiscreteDistribution
from quorate.learners.concepts import Classifiers, Thresholds
from quorate.learners.concepts.base import Concept, Constant, labelled_records
from quorate.learners.loss_selector import _OwnLosses
from quorate.local.oracle import Report
from quorate.local.randomizers.known_laws import BinaryResponse
from quorate.means import UserVariation
from quorate.means.queries import _Evaluated
from quorate.models.losses import Loss, by_user
from quorate.models.vectorized import Vectorized
from quorate.papers.queries import StatisticalQuery
from quorate.papers.queries.algorithms import ConjunctionQueries
from quorate.papers.stability import QueryRule
from quorate.papers.stability.reproducible import AmplifiedRule
from quorate.papers.stability.rules import StableRule
from quorate.papers.stability.shared_seed import SharedSeed
from quorate.papers.stability.softmax import SoftmaxRule
from quorate.papers.stability.stable_learner import decide_quietly
from quorate.tabulate import UserTable


def mixed(table):
    return np.random.default_rng(1).permutation(table.num_rows)


def backwards(table):
    return np.arange(table.num_rows)[::-1]


def by_a_value(table):
    """Sorted by a column, ties by another one backwards: users are cut into pieces."""
    return np.lexsort((-table.column("c").to_numpy(), table.column("a").to_numpy()))


def user_by_user(table):
    ids = table.column("id").dictionary_encode().combine_chunks().indices.fill_null(-1).to_numpy()
    return np.lexsort((table.column("b").to_numpy(), ids))


ARRIVALS = {each.__name__: each for each in (mixed, backwards, by_a_value, user_by_user)}
every_arrival = pytest.mark.parametrize("arrival", ARRIVALS.values(), ids=ARRIVALS)


def arrived(arrival):
    table = visits()
    return table.take(pa.array(arrival(table)))


@pytest.fixture(scope="module")
def whole():
    return UserData.from_frame(visits(), **COLUMNS)


@pytest.fixture(scope="module")
def expected(whole):
    return digest(whole)


def as_frame(table):
    return UserData.from_frame(table, **COLUMNS)


def as_arrays(table):
    X = np.column_stack([table.column(name).to_numpy() for name in "abc"])
    return UserData.from_arrays(X, table.column("y"), users=table.column("id"))


def in_parts(table):
    return MemoryCrowd(as_frame(table), n_parts=5)


def in_files(table):
    layout = Layout.of(table.schema, **COLUMNS)
    return FileCrowd.from_batches(table.to_batches(700), layout, n_parts=5)


def in_a_database(table):
    with sqlite3.connect(":memory:") as base:
        base.execute("create table visits (id, a, b, c, y)")
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        base.executemany("insert into visits values (?, ?, ?, ?, ?)", rows)
        return UserData.from_sql(base, "select * from visits order by a, c desc", **COLUMNS)


PLACES = (as_frame, as_arrays, in_parts, in_files, in_a_database)


@pytest.mark.parametrize("place", PLACES)
@every_arrival
def test_every_user_has_the_same_integers(place, arrival, expected):
    """Their own, those of records under a cap, and of a statistic that knows an order."""
    assert digest(place(arrived(arrival))) == expected


def test_a_statistic_that_adds_up_what_came_first_would_be_seen(whole, monkeypatch):
    """The control: records in the order of arrival have other last bits."""
    monkeypatch.setattr("crowd_worlds.in_own_order", lambda users: users)
    assert digest(as_frame(arrived(mixed))) != digest(whole)


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_every_estimator_releases_the_same(name, whole):
    """Of rows in any order; one order each, and all of them for one of each family."""
    arrivals = ARRIVALS.values() if EVERY or name in FAMILIES else (mixed,)
    for arrival in arrivals:
        assert released(name, as_frame(arrived(arrival))) == known(name, whole)


@pytest.mark.parametrize("name", ["UserTable", "DiscreteDistribution", "LogisticRegression"])
def test_rows_and_ids_may_come_in_any_order(name):
    """The doors of tables and arrays, which number people and groups as they read."""
    example = CATALOGUE[name].example()
    ids = np.asarray(example.users)
    order = np.random.default_rng(2).permutation(len(ids))

    def fitted(places):
        X = example.X
        X = X[places] if isinstance(X, np.ndarray) else X.take(places)
        y = None if example.y is None else np.asarray(example.y)[places]
        with use_noise(SeededNoise(0)):
            return repr(told(make(name).fit(X, y, users=ids[places])))

    assert fitted(order) == fitted(np.arange(len(ids)))


def drinks(tea_first):
    """Everybody holds tea, coffee and a drink of their own; some had tea first, others coffee."""
    people = len(tea_first)
    own = [f"drink {person}" for person in range(people)]
    first = np.where(tea_first, "tea", "coffee")
    second = np.where(tea_first, "coffee", "tea")
    rows = {"who": np.repeat(np.arange(people), 3)}
    return pa.table({**rows, "drink": np.column_stack([first, second, own]).ravel()})


class TestVotes:
    """The demonstration: whose rows came first decided what everybody votes for."""

    people = 600

    def tables(self):
        """Return two orders of the same rows: as the first votes were, and the other way round."""
        first = np.ones(self.people, dtype=bool)
        votes = self.voters(drinks(first))
        return drinks(votes), drinks(~votes)

    def voters(self, table):
        """Return who votes for tea, by id."""
        data, codes = self.coded(table)
        drawn = data.cap(1, random_state=0)
        return np.array([codes[int(number)] == "tea" for number in drawn.X[:, 0]])

    def coded(self, table):
        column = table.column("drink").combine_chunks().dictionary_encode()
        numbers = column.indices.to_numpy().astype(float)
        data = UserData.from_arrays(numbers[:, None], users=table.column("who").to_numpy())
        return data, column.dictionary.to_pylist()

    def fitted(self, table, monkeypatch):
        """Return everybody's vote, and in how many of 20 fits tea is released."""
        counted = []

        def count_votes(votes, size=None):
            votes = list(votes)
            counted.append(tuple(votes))
            return {vote: votes.count(vote) for vote in set(votes)}

        monkeypatch.setattr(table_keys, "count_votes", count_votes)
        found = 0
        for seed in range(20):
            with use_noise(SeededNoise(seed)):
                fit = UserTable(
                    2.0,
                    delta=1e-6,
                    by="drink",
                    keys="popular",
                    statistics={"n": "count"},
                    random_state=0,
                ).fit(table, users="who")
            found += ("tea",) in fit.keys_
        assert len(set(counted)) == 1
        return counted[0], found

    def test_nobody_votes_for_what_came_first(self, monkeypatch):
        one, other = (self.fitted(table, monkeypatch) for table in self.tables())
        assert one == other
        # A third of the people each, six standard errors of 11.5: a false alarm has chance 1e-9.
        assert abs(one[0].count('["tea"]') - self.people / 3) < 70

    def test_a_vote_does_not_follow_from_what_others_hold(self, monkeypatch):
        """A label that nobody held before moves the places of all labels behind it."""
        first = np.ones(self.people, dtype=bool)
        before, _ = self.fitted(drinks(first), monkeypatch)
        table = drinks(first).to_pydict()
        table["drink"][:3] = ["absinthe", "bock", "cider"]
        after, _ = self.fitted(pa.table(table), monkeypatch)
        assert sum(one != other for one, other in zip(before, after, strict=True)) <= 1

    def test_copies_have_votes_of_their_own(self):
        """Whoever had tea nine times and coffee once votes for tea nine times out of ten."""
        x = np.tile([0.0] * 9 + [1.0], 4000)
        data = UserData.from_arrays(x, users=np.repeat(np.arange(4000), 10))
        share = data.cap(1, random_state=3).X.mean()
        # Six standard errors of 0.0047.
        assert abs(share - 0.1) < 0.0285

    def test_popular_labels_of_a_distribution(self):
        first = np.random.default_rng(0).random(300) < 0.5
        found = []
        for table in (drinks(first), drinks(~first)):
            with use_noise(SeededNoise(0)):
                fit = DiscreteDistribution(
                    4.0, categories="popular", delta=1e-5, random_state=0
                ).fit(table.column("drink").to_numpy(), users=table.column("who").to_numpy())
            found.append((fit.categories_, fit.pmf_.tobytes()))
        assert found[0] == found[1]


class TestOwnOrder:
    def test_it_is_a_random_order(self):
        """Halves of it differ as random halves do: sorted records would be dealt out evenly."""
        x = np.tile(np.repeat([0.0, 1.0], 8), 4000)
        data = UserData.from_arrays(x, users=np.repeat(np.arange(4000), 16))
        halves = in_own_order(data, by_key=True).X.reshape(4000, 2, 8).sum(axis=2)
        # With k ones of 8 in a half of 16 records, k has variance 8 * 8 * 8 * 8 / (16^2 * 15), and
        # the difference is 2 k - 8; six standard errors of 0.095.
        assert abs((halves[:, 0] - halves[:, 1]).var() - 4096 / 960) < 0.6
        alike = in_own_order(data).X.reshape(4000, 16)
        assert len({each.tobytes() for each in alike}) == 1

    def test_variation_is_that_of_records(self):
        """Halves by arrival tell the spread of the records, and so do halves of the own order."""
        x = (np.random.default_rng(0).random((3000, 8)) < 0.5).astype(float)
        ids = np.repeat(np.arange(3000), 8)
        with use_noise(SeededNoise(0)):
            one = UserVariation(20.0, bounds=(0.0, 1.0)).fit(x.reshape(-1, 1), users=ids)
        with use_noise(SeededNoise(0)):
            other = UserVariation(20.0, bounds=(0.0, 1.0)).fit(
                np.sort(x, axis=1).reshape(-1, 1), users=ids
            )
        assert repr(told(one)) == repr(told(other))

    def test_zeros_have_no_sign(self):
        for x in ([0.0, -0.0, 1.0], [-0.0, 0.0, 1.0]):
            data = in_own_order(UserData.from_arrays(x, x, users=[1, 1, 1]))
            assert not np.signbit(data.X).any()
            assert not np.signbit(data.y).any()


class First:
    """A model and a rule of the caller's: whether the first record of a user is above zero."""

    def predict(self, X):
        return np.full(len(X), int(np.asarray(X)[0, 0] > 0))


@dataclass(frozen=True)
class FirstConcept(Concept):
    n_features: int = 3

    def predict(self, X):
        return First().predict(X)

    def __str__(self):
        return "first"


class FirstLoss(Loss):
    def dimension(self, n_features):
        return n_features

    def user_gradients(self, batch, theta):
        return batch.X[:1] + batch.y[:1, None] - theta


class FirstRule(StableRule):
    size, n_features = 2, 3

    def decide(self, users, seed):
        return np.array([int(users.X[0, 0] > 0)] * users.n_users)

    def concept(self, key, seed):
        return Constant(key)


def share_of_first(X, y):
    return np.full(len(X), float(X[0, 0] > 0) + y[0]) / 2


def first_losses(candidate, X, y):
    return np.full(len(X), abs(X[0, 0] - candidate))


def predicted(users):
    return FirstConcept().predict_by_user(labelled_records(users, n_features=3))


def mistakes_of_models(users):
    return Classifiers([First()], features=3).mistakes(users)


def gradients(users):
    return by_user(FirstLoss()).user_gradients(users, np.zeros(3))


def gradients_at_once(users):
    alone = [Vectorized(FirstLoss()).user_gradients(users.take([i]), np.zeros(3)) for i in range(9)]
    return np.concatenate(alone)


def reports(users):
    return Report(lambda user: [float(user.X[0, 0] > 0)], BinaryResponse(1.0)).of(users)


def decided(users):
    return decide_quietly(FirstRule(), users, SharedSeed(0))


def decided_by_queries(users):
    rule = QueryRule(ConjunctionQueries(3, tolerance=0.2), steps=4, fresh=True)
    return rule.decide(users.take(range(40)), SharedSeed(0))


def decided_by_chunks(users):
    rule = AmplifiedRule(SoftmaxRule(Thresholds(-4, 4)), seeds=3, chunks=2)
    return rule._parts(users).user_means()


def losses_of_candidates(users):
    return _OwnLosses([0.0], first_losses, vectorized=False, range=(0.0, 9.0))(users)


def asked(users):
    return _Evaluated(lambda records: records[0], 3)(users)


def queried(users):
    return StatisticalQuery(function=share_of_first, tolerance=0.1).on_users(users)


@pytest.mark.parametrize(
    "what",
    [
        predicted,
        mistakes_of_models,
        gradients,
        gradients_at_once,
        reports,
        decided,
        decided_by_queries,
        decided_by_chunks,
        losses_of_candidates,
        asked,
        queried,
    ],
)
def test_code_that_knows_an_order_sees_the_user_s_own(what, whole):
    """Code of the caller that looks at the first record, and halves and chunks of records."""
    other = as_frame(arrived(user_by_user))
    found = [np.asarray(what(users)) for users in (whole, other)]
    if what is predicted:  # one answer a record: they lie as the records do
        found = [
            np.bincount(users.user_index(), each, users.n_users)
            for users, each in zip((whole, other), found, strict=True)
        ]
    assert np.array_equal(*found)
