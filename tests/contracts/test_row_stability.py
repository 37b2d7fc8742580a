"""One user's records never move a bit of what another user contributes.

The sensitivity of a sum over users is what one user contributes: it says nothing if that user's
records also change, however little, the contributions of others. Floating point can do that: a
matrix product rounds a row by where it lies among the others. So every statistic, score, loss and
estimator is run on neighbouring data in which the first user holds other values and *another number
of records*, cut into other batches, and everybody else's numbers are compared bit by bit. The same
comparison must catch twins that use a matrix product.
"""

import itertools
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone

from fitting_worlds import (
    CHANGES,
    FIRST,
    N_USERS,
    ROUTES,
    D,
    Route,
    narrow,
    people,
    public_estimators,
)
from moves import epsilon_of, loss_of
from quorate.auditing.replay import replay
from quorate.core import alone
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Ball, Box, Grid
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.data.engines import MemoryCrowd
from quorate.learners import ConceptLearner, LossSelector
from quorate.learners import scores as scores_module
from quorate.learners.concepts import (
    Classifiers,
    Conjunctions,
    DecisionLists,
    FiniteTable,
    Intervals,
    Parities,
    PointFunctions,
    Rectangles,
    Stumps,
    Thresholds,
)
from quorate.means import UserQueries
from quorate.means.covariance import outer_products
from quorate.means.queries import _Evaluated
from quorate.means.weighted_users import WeightedUsers, bounded_vectors
from quorate.mechanisms.means.rotation import Rotation
from quorate.mechanisms.sums import choose_grid
from quorate.mechanisms.user_releases import BoundedVectors, _LogNorms
from quorate.models import LinearRegression, LinearSVC, LogisticRegression, Ridge
from quorate.models.base import LinearModel
from quorate.models.class_losses import SmoothedHingeLoss, SoftmaxLoss
from quorate.models.coordinates.geometry import (
    Geometry,
    SecondMoments,
    Whitened,
    WhitenedLoss,
    _Turned,
)
from quorate.models.coordinates.one_round import Centred, MeanSquares, _Moved, _own_means
from quorate.models.grid_search import UserMarks
from quorate.models.losses import LogisticLoss, Loss, by_user
from quorate.models.optimization.descent import AveragedDescent
from quorate.models.optimization.gradients import ClippedGradients
from quorate.models.optimization.minimization import minimize
from quorate.models.regression_losses import HuberLoss, SquaredLoss
from quorate.models.vectorized import Vectorized
from quorate.nets.base import NeuralModel
from quorate.papers.queries import Reduction, StatisticalQuery
from quorate.papers.queries.algorithms import ConjunctionQueries
from quorate.papers.queries.local_masked_parity import AgreesWithParity, SignOfVotes
from quorate.papers.queries.oracles.central import QueryValues
from quorate.papers.queries.oracles.local import Combination, Share
from sealing import crowd_total, crowd_votes


class OwnLoss(Loss):
    """A loss of the caller, full of matrix products."""

    def dimension(self, n_features):
        return n_features

    def user_gradients(self, batch, theta):
        errors = batch.X @ theta - batch.y
        return (
            batch.user_sums(batch.X * errors[:, None])
            / np.maximum(batch.record_counts(), 1)[:, None]
        )


def fitted(model, outputs=1):
    rng = np.random.default_rng(3)
    model.n_features_in_ = D
    model.coef_ = (
        rng.normal(size=D) if isinstance(model, LinearRegression) else rng.normal(size=(outputs, D))
    )
    model.intercept_ = 0.3 if isinstance(model, LinearRegression) else np.full(outputs, 0.3)
    model.classes_ = np.arange(max(2, outputs))
    return model


def gradients(loss, *, seed=0):
    theta = np.random.default_rng(seed).normal(size=loss.dimension(D))
    return lambda users: loss.user_gradients(users, theta)


def whitened(loss):
    """Return gradients at records that were turned and rounded before."""
    theta = np.random.default_rng(0).normal(size=loss.dimension(D))
    change = Whitened(GEOMETRY.centre, GEOMETRY.whitening)
    return lambda users: WhitenedLoss(loss, GEOMETRY).user_gradients(change(users), theta)


def centred(work):
    """Return what ``work`` makes of records that lie around zero, in 32 bits."""
    return lambda users: work(Centred(np.full(D, 0.1))(users))


def turned_in_place(loss):
    """Return gradients at records that were rounded first and turned where they lay."""
    theta = np.random.default_rng(0).normal(size=loss.dimension(D))
    change = Whitened(None, GEOMETRY.whitening)
    return centred(lambda users: WhitenedLoss(loss, GEOMETRY).user_gradients(change(users), theta))


def at_ones(loss):
    return lambda users: loss.user_gradients(users, np.ones(loss.dimension(D)))


MATRIX = np.random.default_rng(5).normal(size=(D, D))
GEOMETRY = Geometry(centre=np.full(D, 0.1), whitening=MATRIX)
BALL, BOX = Ball(3.0, dimension=D), Box(np.full(D, -2.0), np.full(D, 2.0))
LOSSES = {
    "squared": SquaredLoss(),
    "squared without constant": SquaredLoss(intercept=False),
    "Huber": HuberLoss(width=0.7),
    "logistic": LogisticLoss(),
    "hinge": SmoothedHingeLoss(),
    "softmax": SoftmaxLoss(classes=4),
    "of the caller": by_user(OwnLoss()),
}
SELECTOR = LossSelector(
    bounds=(0.0, 9.0), candidates=[0, 1, 2], loss=lambda c, X, y: np.abs(X @ MATRIX[c] - y)
)


def weighted(users):
    return WeightedUsers(
        bounded_vectors(users.user_means(), BALL),
        np.sqrt(np.minimum(1.0, users.record_counts() / 3)),
    )


def asked(users):
    """Return what a question of the caller gives for each user."""
    return _Evaluated(lambda records: (records @ MATRIX).sum(), 1)(users)


class MeanOfColumns:
    """A real value of one record, by whole operations on its row."""

    row_wise = True

    def __call__(self, X, y):
        return np.clip(X, -1.0, 1.0).sum(axis=1) / D


REAL_QUERY = StatisticalQuery(function=MeanOfColumns(), tolerance=0.1, low=-1.0)
OWN_QUERY = StatisticalQuery(
    function=lambda X, y: np.tanh(X @ np.full(D, 0.1)), tolerance=0.1, low=-1.0
)

STATISTICS = {
    "means": UserData.user_means,
    "weighted sums": lambda users: users.user_sums(weights=np.sin(users.X[:, 0])),
    "sums of squares": lambda users: users.user_sums(users.X**2),
    "second moments": SecondMoments(np.full(D, 0.1)),
    "second moments in 32 bits": centred(SecondMoments(np.zeros(D))),
    "means in 32 bits": lambda users: _own_means(Centred(None)(users)),
    "means in 32 bits, around another centre": lambda users: _own_means(
        _Moved(np.full(D, 0.1))(Centred(None)(users))
    ),
    "second moments in new coordinates": _Turned(
        SecondMoments(np.full(D, 0.1), mean=True),
        SecondMoments(np.full(D, 0.1), mean=True),
        np.linspace(0.3, 1.7, (D + 1) ** 2).reshape(D + 1, D + 1),
    ),
    "mean squares": MeanSquares(np.full(D, 0.1)),
    "lengths of gradients": _LogNorms(gradients(SquaredLoss())),
    "lengths of means": _LogNorms(UserData.user_means),
    "in a ball": lambda users: bounded_vectors(users.user_means(), BALL),
    "in a box": lambda users: bounded_vectors(users.user_means(), BOX),
    "distances": lambda users: weighted(users).distances(np.full(D, 0.2), Relation.REPLACE),
    "outer products": lambda users: outer_products(bounded_vectors(users.user_means(), BALL)),
    "rotated": lambda users: Rotation.random(D, random_state=0).apply(
        bounded_vectors(users.user_means(), BALL)
    ),
    "integers of a ball": lambda users: Grid(BALL, 2.0**-40).encode(users.user_means()),
    "integers of a box": lambda users: Grid(BOX, 2.0**-40).encode(users.user_means()),
    "marks of a regression": UserMarks(
        (fitted(LinearRegression(target_bounds=(-1.0, 2.0))), fitted(Ridge(target_bounds=1.0)))
    ),
    "marks of a classifier": UserMarks((fitted(LogisticRegression()), fitted(LinearSVC()))),
    "marks of three classes": UserMarks((fitted(LogisticRegression(classes=(0, 1, 2)), 3),)),
    "losses of the caller": SELECTOR._own_losses(),
    "a question of the caller": asked,
    "values of queries": QueryValues((*ConjunctionQueries(D).queries(), REAL_QUERY)),
    "some record": ConjunctionQueries(D, reduction=Reduction.ANY).queries()[0].on_users,
    "a query of the caller": OWN_QUERY.on_users,
    "a share for randomized response": Share(REAL_QUERY),
    "a joint report": Combination(ConjunctionQueries(D).queries(), 1.0, np.uint64(3)),
    "a sign of votes": SignOfVotes(D - 2, np.uint64(3)),
    "agreement with a parity": AgreesWithParity(D - 2, 0b101),
    **{f"gradients, {name}": gradients(loss) for name, loss in LOSSES.items()},
    "gradients of whitened records": whitened(LogisticLoss()),
    "gradients of whitened records, softmax": whitened(SoftmaxLoss(classes=3)),
    "gradients of records turned in place": turned_in_place(LogisticLoss()),
    **{f"gradients at ones, {name}": at_ones(loss) for name, loss in LOSSES.items()},
}


def matrix_product(users):
    """Return the prediction of each user's first record: the broken twin."""
    with np.errstate(all="ignore"):
        predictions = users.X @ np.ones((D, 1))
    return predictions[np.minimum(users.offsets[:-1], len(predictions) - 1)]


def matrix_of_moments(users):
    """Return a product over everybody's vectors: another twin."""
    with np.errstate(all="ignore"):
        return np.nan_to_num(users.user_means()) @ MATRIX


TWINS = {
    "predictions": matrix_product,
    "moments": matrix_of_moments,
    "a loss of the caller for all": gradients(Vectorized(OwnLoss())),
}


def quietly(statistic, users):
    with np.errstate(all="ignore"):
        return np.asarray(statistic(users))


def same(a, b):
    return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def in_batches(statistic, users, size):
    return np.concatenate([quietly(statistic, part) for part in users.batches(size)])


def moved(statistic):
    """Return what moved a bit of another user's contribution: changes of user 0, batch sizes."""
    before = quietly(statistic, people())
    found = [name for name in CHANGES if not same(before[1:], quietly(statistic, people(name))[1:])]
    for name in ("one record", "two", "a thousand"):
        users = people(name)
        for size in (1, 7, 66):
            if not same(before[1:], in_batches(statistic, users, size)[1:]):
                found.append(f"{name} in batches of {size}")
    return found


class TestStatistics:
    @pytest.mark.parametrize("name", STATISTICS)
    def test_nobody_moves_a_bit_of_anybody_else(self, name):
        assert moved(STATISTICS[name]) == []

    @pytest.mark.parametrize("name", TWINS)
    def test_a_matrix_product_over_many_users_is_caught(self, name):
        assert moved(TWINS[name]) != []

    @pytest.mark.parametrize("name", STATISTICS)
    def test_the_order_of_the_records_moves_no_bit_either(self, name):
        users = people("a thousand")
        rng = np.random.default_rng(0)
        order = np.concatenate(
            [a + rng.permutation(b - a) for a, b in itertools.pairwise(users.offsets)]
        )
        mixed = UserData(
            users.X[order], users.y[order], offsets=users.offsets, ids=np.arange(N_USERS)
        )
        assert same(quietly(STATISTICS[name], users), quietly(STATISTICS[name], mixed))

    @pytest.mark.parametrize("name", ["means", "gradients, logistic", "second moments"])
    def test_crowds_agree_whatever_the_batch_the_parts_and_the_threads(self, name, monkeypatch):
        width = quietly(STATISTICS[name], people()).shape[1]
        grid = choose_grid(Ball(4.0, dimension=width), n_users=N_USERS)
        statistic = BoundedVectors(STATISTICS[name], grid.bound)
        expected = crowd_votes(people("two"), statistic, grid)
        order = np.argsort(people().keys())
        for first in ("two", "one record", "a thousand"):
            whole = people(first)
            others = expected[1:].sum(axis=0) + crowd_votes(whole, statistic, grid)[0]
            for size in (1, 2, 7, 66, 10**6):
                monkeypatch.setattr("quorate.core.users.data._BATCH_RECORDS", size)
                assert same(crowd_total(whole, statistic, grid), others)
            for n_parts, threads in ((1, 1), (7, 1), (66, 4)):
                crowd = MemoryCrowd(whole, n_parts=n_parts, threads=threads)
                votes = np.empty_like(expected)
                votes[order] = crowd_votes(crowd, statistic, grid)
                assert same(votes[1:], expected[1:])


class Picky:
    """A model that depends on its batch, and that cannot read some records."""

    def __init__(self, cut):
        self.cut = cut

    def predict(self, X):
        if np.any(X > 1e12):
            raise SystemExit("unknown category 31337")
        return (X @ MATRIX[0] > self.cut + X.mean()).astype(int)


BOOLEAN = {
    "conjunctions": Conjunctions(D),
    "decision lists": DecisionLists(3),
    "parities": Parities(D),
}
RULES = {
    "thresholds": (Thresholds(-4, 4), 1),
    "intervals": (Intervals(9, lower=-4), 1),
    "points": (PointFunctions(9, lower=-4), 1),
    "stumps": (Stumps([[-1.0, 0.0, 1.0]] * D), D),
    "rectangles": (Rectangles((5, 5), lower=(-2, -2)), 2),
    "a table": (FiniteTable(np.random.default_rng(0).integers(0, 2, (6, 9))), 1),
    "classifiers": (Classifiers([Picky(0.0), Picky(0.3)], features=D), D),
    **{name: (concepts, concepts.n_features) for name, concepts in BOOLEAN.items()},
}


def rule_people(name, first):
    width = RULES[name][1]
    if name == "classifiers":
        return people(first)
    if name == "a table":
        return narrow(people(first, integers=True), 1, shift=4.0)
    return narrow(people(first, binary=name in BOOLEAN, integers=True), width)


class TestRules:
    @pytest.mark.parametrize("name", RULES)
    def test_nobody_moves_anybody_elses_mistakes(self, name):
        concepts = RULES[name][0]
        before = concepts.mistakes(rule_people(name, "one record"))
        for first in CHANGES:
            data = rule_people(name, first)
            assert same(before[1:], concepts.mistakes(data)[1:])
            blocks = [block for _, block in concepts.mistakes_in_batches(data, max_users=7)]
            assert same(before[1:], np.concatenate(blocks)[1:])

    def test_models_that_see_everybody_are_caught(self):
        concepts = Classifiers([Picky(0.0)], features=D, vectorized=True)
        before = concepts.mistakes(people(integers=True))
        after = [concepts.mistakes(people(name, integers=True)) for name in CHANGES]
        assert not all(same(before[1:], table[1:]) for table in after)

    @pytest.mark.parametrize(
        "name",
        [
            "AnyMistake",
            "CappedRegret",
            "ClippedDifference",
            "ClippedPairwise",
            "Duels",
            "Mistakes",
            "MoreThan",
            "OwnBest",
        ],
    )
    def test_what_the_others_add_to_a_score_does_not_depend_on_one_user(self, name):
        keywords = {
            "Mistakes": {"records": 2},
            "MoreThan": {"rate": 0.3},
            "ClippedPairwise": {"tau": 2},
            "ClippedDifference": {"reference": 3, "radius": 2},
        }
        score = getattr(scores_module, name)(**keywords.get(name, {}))
        concepts = RULES["thresholds"][0]

        def tally(users):
            if isinstance(score, scores_module.Duels | scores_module.ClippedPairwise):
                return score.verdict.tally(concepts.mistakes(users))
            found = score.judged(concepts.mistakes(users), users.record_counts())
            return found.sum(axis=0)

        rest = tally(rule_people("thresholds", "one record").take(np.arange(1, N_USERS)))
        for first in FIRST:
            data = rule_people("thresholds", first)
            assert same(tally(data) - tally(data.take([0])), rest)


ESTIMATORS = {
    **ROUTES,
    "LossSelector, of the caller": Route(clone(SELECTOR)),
    "ConceptLearner, classifiers": Route(
        ConceptLearner(RULES["classifiers"][0], epsilon=4.0, random_state=0)
    ),
}
# Halves of the users: their parts are compared above.
IN_PARTS = {"PrivateGridSearch", "ConciseLearner"}


@pytest.fixture
def seen(monkeypatch):
    """Record every integer vector that a user contributes, run by run; made-up users give none."""
    rows = []
    truncated, try_once = Grid._truncated, alone._try_once

    def spy(self, values):
        for part, block in truncated(self, values):
            rows[-1].append(block.copy())
            yield part, block

    def unseen(tried, asked):
        known = len(rows[-1])
        try_once(tried, asked)
        del rows[-1][known:]

    monkeypatch.setattr(Grid, "_truncated", spy)
    monkeypatch.setattr(alone, "_try_once", unseen)
    return rows


def contributions(blocks, *, sort=False):
    """Return the integers of everybody but the first user, one matrix for each pass over users.

    With ``sort`` those of everybody, in an order of their own: models lay users out by how many
    records they hold, so that the first one's place is not the same among the neighbours.
    """
    passes, held, height = [], [], 0
    for block in blocks:
        held.append(block)
        height += len(block)
        if height == N_USERS:
            whole = np.concatenate(held)
            passes.append(sorted(map(tuple, whole.tolist())) if sort else whole[1:])
            held, height = [], 0
    return passes, height


def all_but_one(before, after):
    """Whether two lists of contributions differ by those of one user at most."""
    return (Counter(before) - Counter(after)).total() <= 1 and len(before) == len(after)


class Watched(SeededNoise):
    """Seeded noise that remembers everything it was asked to hide."""

    def __init__(self):
        super().__init__(0)
        self.asked = []

    def _add(self, law, values, scale):
        self.asked.append((law, values.tolist(), scale))
        return super()._add(law, values, scale)

    def _choose(self, law, scores, scale):
        self.asked.append((law, scores.tolist(), scale))
        return super()._choose(law, scores, scale)

    def _uniform_below(self, upper):
        # Samplers ask for integers below numbers that they compute from what they hide.
        self.asked.append(("below", upper))
        return super()._uniform_below(upper)

    def _uniform_words(self, count):
        self.asked.append(("words", count))
        return super()._uniform_words(count)


def hidden_by(route, crowd, batch, monkeypatch):
    """Return what a fit wanted to be hidden, with batches of so many records."""
    monkeypatch.setattr("quorate.core.users.data._BATCH_RECORDS", batch)
    with use_noise(Watched()) as noise:
        route.release(crowd)
    return noise.asked


class TestEstimators:
    def test_every_public_estimator_is_listed(self):
        assert {route.name for route in ROUTES.values()} == public_estimators()

    @pytest.mark.parametrize("name", ESTIMATORS)
    def test_given_the_same_answers_everybody_else_contributes_the_same(
        self, name, seen, monkeypatch
    ):
        monkeypatch.setattr("quorate.core.users.data._BATCH_RECORDS", 66)
        route = ESTIMATORS[name]

        def run(data):
            seen.append([])
            fitted = route.fresh().fit(data)
            # A desk holds the data: what it may show is an answer.
            return fitted.ask(np.size) if isinstance(fitted, UserQueries) else fitted

        for first in ("a thousand",) if name in IN_PARTS else ("two", "largest", "nothing"):
            seen.clear()
            one, other = route.people(), route.people(first)
            report = replay(run, one, other)
            assert report.same, str(report)
            assert report.calls, "nothing was drawn"
            if name in IN_PARTS:
                continue
            by_count = isinstance(route.estimator, LinearModel | NeuralModel)
            (before, left), (after, right) = (contributions(rows, sort=by_count) for rows in seen)
            assert left == right == 0
            assert len(before) == len(after)
            alike = all_but_one if by_count else same
            assert all(alike(a, b) for a, b in zip(before, after, strict=True))

    @pytest.mark.parametrize("name", ESTIMATORS)
    def test_batches_parts_and_threads_move_no_bit_of_what_is_hidden(self, name, monkeypatch):
        """On records up to 1e308: one user at a time, everybody at once, four threads."""
        route = ESTIMATORS[name]
        data = route.people("largest")
        first = hidden_by(route, data, 66, monkeypatch)
        assert first, "nothing was drawn"
        for size, crowd in (
            (1, data),
            (10**9, data),
            (7, MemoryCrowd(data, n_parts=7, threads=4)),
            (10**9, MemoryCrowd(data, n_parts=2, threads=1)),
        ):
            assert hidden_by(route, crowd, size, monkeypatch) == first

    @pytest.mark.parametrize(
        ("name", "kind", "method"),
        [
            ("UserMean, clip", UserData, "user_means"),
            ("LogisticRegression", LogisticLoss, "user_gradients"),
        ],
    )
    def test_what_depends_on_the_batch_or_the_part_is_caught(self, name, kind, method, monkeypatch):
        honest, route = getattr(kind, method), ESTIMATORS[name]

        def crowded(self, *given):
            users = given[0] if given else self
            return honest(self, *given) + users.n_users * 2.0**-10

        monkeypatch.setattr(kind, method, crowded)
        whole = route.people()
        parts = MemoryCrowd(whole, n_parts=7, threads=4)
        first = hidden_by(route, whole, 10**9, monkeypatch)
        assert hidden_by(route, parts, 10**9, monkeypatch) != first
        if kind is LogisticLoss:
            assert hidden_by(route, whole, 1, monkeypatch) != first

    def test_two_users_who_move_are_caught_in_any_order(self):
        assert all_but_one([(1,), (2,), (2,)], [(2,), (7,), (1,)])
        assert not all_but_one([(1,), (2,), (2,)], [(7,), (7,), (1,)])
        assert not all_but_one([(1,), (2,)], [(2,), (1,), (1,)])

    # The law of its coins is enumerated exactly in tests/mechanisms/test_parity.py: too many paths.
    @pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - {"ParityLearner"}))
    def test_one_user_moves_what_is_hidden_by_no_more_than_was_promised(self, name):
        route = ESTIMATORS[name]
        for first in ("nothing", "largest", "missing"):
            guarantee, pure, square = loss_of(route.release, *route.neighbours(first))
            assert epsilon_of(pure, square, guarantee.delta) <= guarantee.epsilon * (1 + 1e-9)

    @pytest.mark.parametrize("name", ["UserMean, clip", "LogisticRegression", "Ridge"])
    def test_contributions_that_follow_the_first_user_are_caught(self, name, monkeypatch):
        """The control: everybody's integers move a little with what the first user holds."""
        truncated = Grid._truncated

        def following(self, values):
            shift = self.max_steps // 25 if np.nanmax([*values[0], 0.0]) > 0.5 else 0
            for part, block in truncated(self, values):
                yield part, block + shift

        monkeypatch.setattr(Grid, "_truncated", following)
        route = ESTIMATORS[name]
        found = []
        for first in CHANGES:
            guarantee, pure, square = loss_of(route.release, *route.neighbours(first))
            found.append(epsilon_of(pure, square, guarantee.delta) / guarantee.epsilon)
        assert max(found) > 1.1


class Broken(SquaredLoss):
    """The squared loss of the first release."""

    def user_gradients(self, batch, theta):
        errors = batch.X @ theta - batch.y
        sums = batch.user_sums(weights=errors)
        return sums / np.maximum(batch.record_counts(), 1)[:, None]


START = np.tile(np.random.default_rng(0).normal(size=4), 2)


def two_faced():
    """Return a record whose prediction is 0, rounded to + or - by its place in a block."""
    halves = 1e16 * np.random.default_rng(1).normal(size=(4000, 4))
    rows = np.concatenate([halves, -halves], axis=1)
    for row in rows:
        block = np.zeros((66, 8))
        block[10] = block[65] = row
        predictions = block @ START
        if predictions[10] * predictions[65] < 0:
            return row
    pytest.skip("this machine's matrix product treats all rows of a block alike")


class TestDemonstrations:
    """What a hostile review of the first release did; the neighbours must look alike."""

    def crowd(self, row, extra):
        # Every 66th user holds the record. In blocks of 66 these are the last ones, and the last
        # but one if the first user holds one more record.
        n = 6600
        rows = np.zeros((n + extra, 8))
        rows[65 + extra :: 66] = row
        offsets = np.r_[0, np.arange(1 + extra, n + 1 + extra)]
        return UserData(rows, np.zeros(n + extra), offsets=offsets, ids=np.arange(n))

    def apart(self, loss):
        """Return how many times farther two neighbours' sums are apart than one user allows."""
        row = two_faced()
        grid = choose_grid(Ball(1.0, dimension=8), n_users=6600)
        statistic = BoundedVectors(lambda users: loss.user_gradients(users, START), grid.bound)
        one, other = (
            crowd_total(self.crowd(row, extra), statistic, grid).astype(object) for extra in (0, 1)
        )
        return sum((one - other) ** 2) / grid.l2_sensitivity_squared(Relation.REPLACE)

    def where_it_ends(self, loss, extra, seed):
        row = two_faced()
        with use_noise(SeededNoise(seed)):
            minimum = minimize(
                self.crowd(row, extra),
                loss,
                epsilon=1.0,
                delta=1e-6,
                steps=1,
                initial=START,
                gradients=ClippedGradients(radius=1.0),
                optimizer=AveragedDescent(step_size=1.0),
                curvature=1.0,
                progress=False,
            )
        return minimum.theta @ row / np.linalg.norm(row)

    @pytest.mark.parametrize("kind", [SquaredLoss, Broken])
    def test_one_more_record_of_one_user_moves_the_sum_by_one_user(self, kind, monkeypatch):
        monkeypatch.setattr("quorate.core.users.data._BATCH_RECORDS", 66)
        assert self.apart(by_user(kind(intercept=False))) <= 1

    def test_with_the_matrix_product_it_moved_by_a_hundred_users(self, monkeypatch):
        monkeypatch.setattr("quorate.core.users.data._BATCH_RECORDS", 66)
        assert self.apart(Vectorized(Broken(intercept=False))) > 100

    def test_the_neighbours_end_up_in_the_same_places(self, monkeypatch):
        monkeypatch.setattr("quorate.core.users.data._BATCH_RECORDS", 66)

        def ends(loss, extra, seeds):
            return np.sort([self.where_it_ends(loss, extra, seed) for seed in seeds])

        ours, broken = SquaredLoss(intercept=False), Vectorized(Broken(intercept=False))
        one, other = ends(ours, 0, range(8)), ends(ours, 1, range(8, 16))
        assert one[0] < other[-1]
        assert other[0] < one[-1]
        one, other = ends(broken, 0, range(8)), ends(broken, 1, range(8, 16))
        assert one[-1] < other[0] or other[-1] < one[0]

    def votes(self, first, *, vectorized, fits=200):
        class Relative:
            """Right about everybody if it sees them together, wrong about each one alone."""

            def __init__(self, label):
                self.label = label

            def predict(self, X):
                if np.any(X == 99.0):
                    raise ValueError("Found unknown categories [99] in column 0")
                together = float(len(X) > 20)
                return np.full(len(X), abs(together - self.label))

        x = np.zeros((40, 1))
        x[0] = first
        data = UserData(x, np.ones(40), offsets=np.arange(41), ids=np.arange(40))
        models = [Relative(0.0), Relative(1.0)]
        concepts = Classifiers(models, features=1, vectorized=vectorized)
        chosen = 0
        with use_noise(SeededNoise(1)):
            for _ in range(fits):
                learner = ConceptLearner(concepts, epsilon=0.5, algorithm="any_mistake", records=1)
                chosen += learner.fit(data).index_
        return chosen

    def test_an_unknown_category_does_not_decide_for_everybody(self):
        before, after = (self.votes(x, vectorized=False) for x in (0.0, 99.0))
        # e^.5 = 1.65, and room for chance.
        assert after <= 1.65 * before + 30
        assert before <= 1.65 * after + 30
        broken = [self.votes(x, vectorized=True) for x in (0.0, 99.0)]
        assert max(broken) > 1.65 * min(broken) + 100

    def test_the_label_says_which_of_the_two_was_used(self):
        data = UserData(np.zeros((9, 1)), np.ones(9), offsets=np.arange(10))
        for vectorized, word in ((False, "exact"), (True, "idealized")):
            concepts = Classifiers([Picky(0.0)], features=1, vectorized=vectorized)
            guarantee = ConceptLearner(concepts).fit(data).guarantee_
            assert guarantee.numerics.value == word
            assert ("vectorized=True" in str(guarantee)) == vectorized
        assert Account.open(epsilon=1.0).declared.caveat is None
