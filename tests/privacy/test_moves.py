"""No user moves a release farther than its mechanism believes: every release, one by one.

A whole fit may cost what it promises although one of its releases counts a user for half, where
others leave room. So programs run on neighbours with the same released values, and whatever is
handed to a mechanism (totals, scores, losses, counts, votes) is compared, release by release, with
the sensitivity that this mechanism was made with. The neighbours are the worst that we know: for
each kind of release somebody moves all that is paid for, so that half of it would be seen.
"""

import math
from collections import defaultdict

import numpy as np
import pytest
from sklearn.base import clone

from fitting_worlds import ROUTES
from quorate.auditing.replay import _Forced, _Recording
from quorate.core.guarantees import Relation
from quorate.core.noise import use_noise
from quorate.core.questions.ballots import SealedVotes
from quorate.core.questions.held_keys import Division
from quorate.core.questions.lines import SealedLine, opened_line
from quorate.core.sealed import Sealed, opened
from quorate.core.users import UserData
from quorate.distributions import (
    Clip,
    DiscreteDistribution,
    DiscreteFamily,
    EmpiricalCDF,
    HypothesisSelector,
    ProductDistribution,
)
from quorate.learners import ConceptLearner, LossSelector, ParityLearner, PrivateThreshold
from quorate.learners.automatic import RuleAlgorithm
from quorate.learners.concepts import Direction, Intervals, Thresholds
from quorate.learners.scores import Crossing, KolmogorovSmirnov
from quorate.means import UserMean
from quorate.mechanisms.balanced import BalancedSum
from quorate.mechanisms.blocks import BlockSum
from quorate.mechanisms.choices import set_union
from quorate.mechanisms.choices.choose import ChooseBest
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.choices.set_union import SetUnion
from quorate.mechanisms.choices.stable_choice import StableHistogram
from quorate.mechanisms.choices.universe import ChooseKey
from quorate.mechanisms.laplace import CubeSum, LaplaceSum
from quorate.mechanisms.means.pair_quantile import PairQuantile
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.sums import GaussianSum, NoisySearch, NoisySum
from quorate.models import LogisticRegression, PrivateGridSearch
from rule_worlds import losses_of
from sealing import numbers_of

GONE = Relation.ADD_REMOVE


def of_scores(mechanism, one, other):
    """Return the largest change of a difference of scores, over what is paid for."""
    moved = one[0].astype(object) - other[0].astype(object)
    return (max(moved) - min(moved)) / mechanism.spread


def along(lengths, losses, points):
    ends = np.cumsum(np.asarray(lengths).astype(object))
    return np.array([losses[np.searchsorted(ends, point, side="right")] for point in points])


def of_pieces(mechanism, one, other):
    """Return the same for losses along a line, at all points where one of both changes."""
    starts = {0}
    for lengths, _ in (one, other):
        ends = np.cumsum(np.asarray(lengths).astype(object)).tolist()
        starts.update(ends[:-1])
        assert ends[-1] == sum(map(int, one[0]))
    points = sorted(starts - {sum(map(int, one[0]))})
    moved = along(*one, points).astype(object) - along(*other, points).astype(object)
    return (max(moved) - min(moved)) / mechanism.spread


def of_totals(mechanism, one, other):
    one, other = np.atleast_1d(one[0])[None], np.atleast_1d(other[0])[None]
    moved = one[0].astype(object) - other[0].astype(object)
    if isinstance(mechanism, GaussianSum):
        return math.sqrt(sum(moved**2) / mechanism.sensitivity_squared)
    if isinstance(mechanism, CubeSum):
        box = mechanism._cube[0]
        length = max(abs(moved[:box]), default=0) + sum(abs(moved[box:]))
    elif isinstance(mechanism, BlockSum):
        length = max(
            sum(abs(block)) for block in moved.reshape(len(mechanism.grid.bound.parts), -1)
        )
    elif isinstance(mechanism, BalancedSum):
        shares = mechanism._balance[0]
        length = sum(abs(moved[:shares])) + abs(sum(moved[:shares])) + sum(abs(moved[shares:]))
    else:
        assert isinstance(mechanism, LaplaceSum)
        length = sum(abs(moved))
    return length / mechanism.sensitivity


def of_counts(mechanism, one, other):
    moved = np.atleast_1d(one[0]).astype(object) - np.atleast_1d(other[0]).astype(object)
    return max(abs(moved))


def of_one_count(mechanism, one, other):
    return abs(one[0] - other[0]) / mechanism.sensitivity


def of_votes(one, other):
    keys = one[0].keys() | other[0].keys()
    return [one[0].get(key, 0) - other[0].get(key, 0) for key in keys]


def of_listed_keys(mechanism, one, other):
    """A key without a vote stays where it is; a user may vote once under each of several seeds."""
    moved = [0, *of_votes(one, other)]
    return (max(moved) - min(moved)) / (2 if mechanism.relation is Relation.REPLACE else 1)


def of_popular_keys(mechanism, one, other):
    return sum(map(abs, of_votes(one, other))) / mechanism.sensitivity


def of_lengths(union, one, other):
    """Return how far apart two totals of keys are, over one length, or two at a right angle."""
    moved = math.sqrt(sum(move**2 for move in of_votes(one, other)))
    users = 2 if union.relation is Relation.REPLACE else 1
    return moved / (set_union._RADIUS * math.sqrt(users))


def in_the_open(given):
    """Return what a mechanism is given, without its seal."""
    if isinstance(given, SealedVotes):
        return opened(given)
    if not isinstance(given, Sealed):
        return given
    numbers = numbers_of(given)
    return int(numbers[0]) if numbers.shape == (1,) and given.moves.l1 == 1 else numbers


RELEASES = {
    (ChooseBest, "release"): of_scores,
    (ChooseOrdered, "release_among"): of_pieces,
    (NoisySum, "release"): of_totals,
    (NoisySearch, "release_counts"): of_counts,
    (NoisyCount, "release"): of_one_count,
    (ChooseKey, "release"): of_listed_keys,
    (StableHistogram, "release"): of_popular_keys,
}


@pytest.fixture
def moves(monkeypatch):
    """Return a function from a program and neighbours to how far each release moved."""
    seen = []

    def watch(kind, verb, measure):
        honest = getattr(kind, verb)

        def watched(self, *given, **named):
            lines = [each for each in given if isinstance(each, SealedLine)]
            shown = opened_line(*lines) if lines else given
            seen.append((self, measure, tuple(map(in_the_open, shown))))
            return honest(self, *given, **named)

        monkeypatch.setattr(kind, verb, watched)

    for (kind, verb), measure in RELEASES.items():
        watch(kind, verb, measure)
    popular, totals, unions = SetUnion._popular, Division.totals, []

    def popular_of(self, *given):
        unions.append(self)
        return popular(self, *given)

    def totals_of(self, *given, **named):
        found = totals(self, *given, **named)
        names = self.named(np.ones(self.size, dtype=bool))
        seen.append((unions[-1], of_lengths, (dict(zip(names, found.tolist(), strict=True)),)))
        return found

    monkeypatch.setattr(SetUnion, "_popular", popular_of)
    monkeypatch.setattr(Division, "totals", totals_of)
    paired = PairQuantile.release_between

    def unseen(self, *given, **named):
        # Who comes is paired anew, and so are others: it is the mean over all pairings that is
        # hidden, which tests/mechanisms/means/test_pair_quantile.py enumerates.
        found, count = paired(self, *given, **named), len(seen)
        if self.relation is GONE:
            del seen[count - 1 :]
        return found

    monkeypatch.setattr(PairQuantile, "release_between", unseen)

    def measure(run, one, other, seed=0):
        recorded, looks = _Recording(seed), []
        for source in (recorded, _Forced(seed, recorded)):
            seen.clear()
            with use_noise(source):
                run(one if source is recorded else other)
            looks.append(list(seen))
        assert not source.mismatches(), source.mismatches()
        first, second = looks
        assert len(first) == len(second)
        found = defaultdict(float)
        for (mechanism, how, given), (twin, _, others) in zip(first, second, strict=True):
            assert type(mechanism) is type(twin)
            moved = float(how(mechanism, given, others))
            name = type(mechanism).__name__
            found[name] = max(found[name], moved)
        return found

    return measure


def neighbours(relation, worlds):
    """Yield pairs of worlds that differ in the first user."""
    for one in worlds:
        for other in worlds:
            if relation is GONE:
                yield one.take(range(1, one.n_users)), one
                break
            if one is not other:
                yield one, other


def check(moves, estimator, relation, worlds, tight):
    """Compare all pairs; what is ``tight`` is moved by all that is paid for."""
    found = defaultdict(float)
    for seed, (one, other) in enumerate(neighbours(relation, worlds)):
        told = moves(
            lambda data: clone(estimator).set_params(relation=relation).fit(data), one, other, seed
        )
        for name, moved in told.items():
            assert moved <= 1.0 + 1e-9, f"{name} moved by {moved} of what was paid for"
            found[name] = max(found[name], moved)
    for name in tight:
        assert found[name] > 0.99, f"{name} was moved by {found[name]} of what is paid for"


# --- every route, with users who are wild ---------------------------------------------------------


# Coins of their own, whose laws are enumerated in tests/mechanisms, and users who report.
OTHERS = {
    "ParityLearner",
    "QueryLearner, local",
    "StableLearner, local",
    "StableLearner, shuffle",
    "StableLearner, buckets",
}


@pytest.mark.parametrize("name", ROUTES)
def test_no_release_of_any_route_moves_farther_than_it_pays_for(name, moves):
    route = ROUTES[name]
    for first in ("two", "a thousand"):
        found = moves(route.release, *route.neighbours(first))
        assert bool(found) is (name not in OTHERS)
        assert max(found.values(), default=0.0) <= 1.0 + 1e-9, found


# --- the worst users that we know -----------------------------------------------------------------


def users(first, others, *, targets=None):
    """Return users with these records; ``targets`` are those of the first user's and of others."""
    rows = [np.asarray(first, float).reshape(len(first), -1), *others]
    y = None
    if targets is not None:
        y = np.concatenate([np.asarray(each, float).ravel() for each in targets])
    return UserData(
        np.concatenate(rows),
        y,
        offsets=np.r_[0, np.cumsum([len(each) for each in rows])],
        ids=np.arange(len(rows)),
    )


def crowd(value, n_users):
    return [np.full((1, 1), value)] * n_users


BOTH = pytest.mark.parametrize("relation", Relation, ids=lambda each: each.name.lower())


@BOTH
def test_of_distances(relation, moves):
    """Where somebody lies changes no other distance, nor in which cell of a grid it is."""
    rng = np.random.default_rng(0)
    others = [row[None, :] for row in 0.3 + 0.01 * rng.normal(size=(900, 2))]
    worlds = [users([row], others) for row in ([0.3, 0.3], [-1.0, -1.0], [1.0, 1.0])]
    mean = UserMean(1.0, bounds=1.0, algorithm="interval")
    # Who comes is in some windows more, and in none less.
    tight = ["ChooseOrdered"] if relation is Relation.REPLACE else []
    check(moves, mean, relation, worlds, tight)


@BOTH
@pytest.mark.parametrize(("n_users", "d"), [(160, 1), (300, 1), (900, 1), (300, 2), (400, 2)])
def test_of_pairs_and_windows(relation, n_users, d, moves):
    """People sit in a narrow window; one of them may be far away."""
    rng = np.random.default_rng(0)
    wide = 0.004 if d == 1 else 0.2
    others = [row[None, :] for row in 0.3 + wide * rng.normal(size=(n_users - 1, d))]
    worlds = [users([[at] * d], others) for at in (0.3, -0.9, 1.0, 0.27)]
    # So few are not asked where their number is private.
    asked = d == 1 and (n_users > 160 or relation is Relation.REPLACE)
    check(moves, UserMean(1.0, bounds=1.0), relation, worlds, ["ChooseBest"] if asked else [])


@BOTH
@pytest.mark.parametrize("way", RuleAlgorithm, ids=lambda each: each.value)
@pytest.mark.parametrize("concepts", [Thresholds(0, 9), Intervals(5)], ids=["line", "list"])
def test_of_rules(relation, way, concepts, moves):
    """Nobody else is right about everything, so that one of them may be the only one."""
    lines = {RuleAlgorithm.TWO_STAGES, RuleAlgorithm.MEDIAN, RuleAlgorithm.SLACK_MEDIAN}
    if way in lines and not isinstance(concepts, Thresholds):
        pytest.skip("a way along a line")
    x = np.array([[0.0], [2.0], [3.0], [4.0]])
    half = [np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0]), np.array([1, 0, 1, 1])] * 4
    worlds = [
        users(held, [x] * len(half), targets=[labels, *half])
        for held, labels in [
            (x, [0, 0, 1, 1]),
            (x, [1, 1, 0, 0]),
            (x, [1, 1, 1, 1]),
            (x, [0, 0, 0, 0]),
            (x[:1], [1]),
            (np.tile(x, (50, 1)), [1, 0, 0, 1] * 50),
        ]
    ]
    learner = ConceptLearner(
        concepts, 4.0, algorithm=way.value, records=4, error_level=0.1, random_state=0
    )
    check(moves, learner, relation, worlds, [])


@BOTH
@pytest.mark.parametrize("way", ["median", "slack_median"])
def test_of_directions(relation, way, moves):
    """Everybody votes once on the direction, however many records speak for it."""
    x = np.arange(8.0)[:, None]
    up, down = (x[:, 0] >= 4).astype(int), (x[:, 0] < 4).astype(int)
    worlds = [
        users(np.tile(x, (times, 1)), [x] * 6, targets=[np.tile(labels, times), *[up, down] * 3])
        for labels in (up, down)
        for times in (1, 40)
    ]
    either = Thresholds(0, 9, direction=Direction.EITHER)
    learner = ConceptLearner(either, 4.0, algorithm=way, random_state=0)
    # Half is waste where somebody comes: nobody takes a vote away.
    tight = ["ChooseBest"] if relation is Relation.REPLACE else []
    check(moves, learner, relation, worlds, tight)


def test_of_parities(moves):
    """Whoever solves the equations alone has one vote."""
    rows = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 3, float)
    labels = [rows[:, 0], (rows[:, 0] + rows[:, 1]) % 2, rows[:, 2], np.ones(len(rows))]
    others = [rows] * 60
    worlds = [users(rows, others, targets=[own, *[labels[0]] * 60]) for own in labels]
    learner = ParityLearner(4.0, algorithm="vote", records=24, random_state=0)
    check(moves, learner, Relation.REPLACE, worlds, ["ChooseKey"])


@BOTH
def test_of_crossings(relation, moves):
    """Whoever is wrong about everything moves the level both ways by all that is paid for."""
    x = np.array([[0.0], [2.0], [3.0], [9.0]])
    half = [np.array([0, 1, 0, 1])] * 3 + [np.array([0, 0, 1, 1])] * 3
    worlds = [
        users(x, [x] * len(half), targets=[labels, *half])
        for labels in ([0, 0, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1])
    ]
    cut = PrivateThreshold(4.0, domain=(0, 9), records=4, random_state=0)
    check(moves, cut, relation, worlds, ["ChooseBest"])


@pytest.mark.parametrize("score", [Crossing(), KolmogorovSmirnov()], ids=lambda each: each.name)
def test_scores_that_move_both_ways_are_not_one_sided(score):
    """Somebody who comes raises the loss of one level and lowers that of another."""
    assert not score.one_sided
    mistakes, held = np.array([[0, 4], [2, 2], [4, 0]]), np.full(3, 4)
    losses = [losses_of(score, mistakes[some], held[some]) for some in (slice(0, 2), slice(0, 3))]
    moved = losses[1] - losses[0]
    assert np.abs(moved).max() == score.sensitivity(GONE)
    if isinstance(score, Crossing):
        assert moved.min() < 0 < moved.max()


@BOTH
@pytest.mark.parametrize("algorithm", ["exponential", "duels", "reference"])
def test_of_losses(relation, algorithm, moves):
    others = [np.array([[0.2, 0.7, 0.4]]), np.array([[0.9, 0.1, 0.3]])] * 5
    worlds = [
        users(rows, others)
        for rows in ([[0.0, 1.0, 0.5]], [[1.0, 0.0, 0.5]], [[9.0, -9.0, 0.0]], [[0.5, 0.5, 0.5]])
    ]
    selector = LossSelector(4.0, records=1, algorithm=algorithm, random_state=0)
    check(moves, selector, relation, worlds, ["ChooseBest"])


def test_of_marks(moves):
    """Settings whose predictions differ are marked from nothing to a whole."""
    rng = np.random.default_rng(0)
    others = [np.array([[value]]) for value in rng.normal(size=200)]
    labels = [[float(rows[0, 0] > 0)] for rows in others]
    worlds = [
        users(rows, others, targets=[label, *labels])
        for rows, label in (([[0.01]], [1]), ([[0.01]], [0]), ([[-0.01]], [1]), ([[-0.01]], [0]))
    ]
    models = LogisticRegression(steps=2, progress=False, hopeless="constant")
    grid = {"penalty": [0.0, 1e9], "fit_intercept": [True, False]}
    search = PrivateGridSearch(models, grid, epsilon=400.0, delta=1e-5, random_state=0)
    check(moves, search, Relation.REPLACE, worlds, ["ChooseBest"])


@BOTH
@pytest.mark.parametrize("records", [None, 2, "auto"])
def test_of_shares(relation, records, moves):
    """Thirds and sevenths are no whole numbers of steps; many records are one vote for a cap."""
    others = [np.array([[0.0]]), np.array([[1.0], [2.0]])] * 6
    worlds = [
        users(np.array(held, float)[:, None], others)
        for held in ([0], [0, 1, 2], [2] * 7 + [1, 0], [1] * 300, [0, 1] * 3 + [2])
    ]
    shares = DiscreteDistribution(4.0, categories=range(3), records=records)
    check(moves, shares, relation, worlds, [])


@BOTH
@pytest.mark.parametrize(
    "estimator",
    [
        ProductDistribution(4.0, categories=[range(3), range(7)]),
        ProductDistribution(4.0, categories=[range(3), range(7)], delta=1e-6, algorithm="gaussian"),
    ],
    ids=["laplace", "gaussian"],
)
def test_of_columns(relation, estimator, moves):
    others = [np.array([[0.0, 3.0], [1.0, 2.0]])] * 6
    worlds = [
        users(held, others)
        for held in (
            [[0, 0]],
            [[2, 6]],
            [[0, 0], [1, 1], [2, 2]],
            [[0, j] for j in range(7)],
            [[j % 3, j] for j in range(7)],
            [[1, 5]] * 200,
        )
    ]
    kind = "GaussianSum" if estimator.delta else "LaplaceSum"
    check(moves, estimator, relation, worlds, [kind])


@BOTH
@pytest.mark.parametrize("records", [None, 3])
def test_of_curves(relation, records, moves):
    """Several levels of intervals, in each of which a user is once."""
    others = [np.array([[0.5]]), np.array([[7.0], [99.0]])] * 6
    worlds = [
        users(np.array(held, float)[:, None], others)
        for held in ([0.0], [99.0], [1.0, 50.0, 98.0], list(range(0, 98, 14)), [3.0] * 200)
    ]
    curve = EmpiricalCDF(4.0, bounds=(0.0, 100.0), cells=300, records=records)
    check(moves, curve, relation, worlds, [] if records else ["LaplaceSum"])


@BOTH
@pytest.mark.parametrize(
    "clip", [Clip(0.5), Clip(3.0, own_scale=False), Clip.none(3), Clip(8.0, records=2)], ids=str
)
def test_of_duels(relation, clip, moves):
    others = [np.array([[0.0]]), np.array([[1.0], [2.0]])] * 6
    worlds = [
        users(np.array(held, float)[:, None], others)
        for held in ([0], [2], [0] * 3, [2] * 3, [0] * 400, [2] * 400)
    ]
    family = DiscreteFamily([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    check(moves, HypothesisSelector(family, 4.0, clip=clip), relation, worlds, [])
