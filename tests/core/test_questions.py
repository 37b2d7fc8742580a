"""Scores, lines, duels and ballots: one user moves them as their seals say, whatever is said."""

import pickle
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pytest

from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.moves import Moves
from quorate.core.people import People
from quorate.core.questions import lines, scores
from quorate.core.questions.lines import Heights, opened_line
from quorate.core.questions.pairs import ByDifference, BySign
from quorate.core.sealed import opened, seal
from quorate.core.users import UserData
from quorate.exceptions import (
    NumericalFailure,
    ParameterError,
    RelationMismatchError,
    SchemaError,
    SealedError,
)
from quorate.mechanisms.choices.ordered import ChooseOrdered
from quorate.mechanisms.choices.stable_choice import StableChoice
from quorate.mechanisms.choices.universe import ChooseKey
from sealing import moved_line, numbers_of

both_relations = pytest.mark.parametrize("relation", list(Relation), ids=lambda r: r.name)

# What one user holds: nothing, one number, several, large ones, what is not a number.
MANY = tuple(map(float, range(7)))
HELD = ((), (1.0,), (3.0, 0.0), (1e308, -1e308, 2.0), (np.nan, 5.0), MANY)
OTHERS = ((2.0,), (0.0, 4.0))


def users(*held):
    """Return users who hold these numbers; somebody who holds none is there too."""
    x = np.array([value for own in held for value in own]).reshape(-1, 1)
    offsets = np.cumsum([0, *map(len, held)])
    return UserData(x, np.zeros(len(x)), offsets=offsets, ids=np.arange(len(held)))


def neighbours(relation):
    """Yield pairs of people that differ in the first user."""
    for one, other in product(HELD, HELD):
        if relation is Relation.REPLACE:
            yield users(one, *OTHERS), users(other, *OTHERS)
        else:
            yield users(*OTHERS), users(one, *OTHERS)


def furthest(ask, relation):
    """Check that no pair of neighbours moves an answer further than its seal; return the most."""
    reached = 0
    for one, other in neighbours(relation):
        first, second = (ask(People(data, relation)) for data in (one, other))
        change = np.subtract(*(opened_of(each).astype(object) for each in (second, first)))
        moves = first.moves
        assert sum(abs(change)) <= moves.l1
        assert max(abs(change)) <= moves.largest
        assert max(change) - min(change) <= moves.spread
        if moves.rising:
            assert relation is Relation.ADD_REMOVE
            assert min(change) >= 0
        reached = max(reached, *abs(change))
    return reached


def opened_of(sealed):
    """Return all numbers of a seal, at all points if it is a short line."""
    if isinstance(sealed, lines.SealedLine):
        lengths, losses = opened_line(sealed)
        return np.repeat(losses, lengths.astype(int))
    return numbers_of(sealed).ravel()


@dataclass(frozen=True)
class Wild:
    """Says what comes to mind about three candidates: far too much, and what is no number."""

    low: int
    high: int
    kind: str = "float"
    shape = (3,)

    def __call__(self, users):
        sums = users.user_sums(np.nan_to_num(users.X, nan=7.0))
        said = sums * np.array([1.0, -3.0, 0.1])
        yield ..., said > 0 if self.kind == "bool" else said.astype(self.kind)


@both_relations
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 5), (-2, 1), (-4, 0)])
@pytest.mark.parametrize("kind", ["float", "int64", "int8", "bool"])
class TestScores:
    def test_one_user_moves_no_score_further_than_the_seal(self, relation, low, high, kind):
        reached = furthest(lambda people: people.scores(Wild(low, high, kind)), relation)
        moves = Moves.of_judgements(low, high, coordinates=3, relation=relation)
        assert 0 < reached <= moves.largest
        assert low < 0 or reached == high

    def test_what_is_not_cut_is_caught(self, relation, low, high, kind, monkeypatch):
        if kind == "bool":
            pytest.skip("one of two numbers needs no cutting")
        monkeypatch.setattr(scores, "_cut", lambda said, low, high: 9 * said.astype(object))
        with pytest.raises((AssertionError, SchemaError, TypeError)):
            furthest(lambda people: people.scores(Wild(low, high, kind)), relation)


OWN_LIMITS = (np.array([-1, 0, -(2**40)]), np.array([1, 5, 2**35]))


@both_relations
class TestOwnLimits:
    """Each candidate has limits of its own, and sums of large ones are added up in two halves."""

    @pytest.mark.parametrize("kind", ["float", "float32", "int64", "uint64", "bool"])
    def test_one_user_moves_no_score_further_than_the_seal(self, relation, kind):
        reached = furthest(lambda people: people.scores(Wild(*OWN_LIMITS, kind)), relation)
        low, high = OWN_LIMITS
        moves = Moves.of_judgements(low, high, coordinates=3, relation=relation)
        assert 0 < reached <= moves.largest
        assert moves.largest == (2**40 + 2**35 if relation is Relation.REPLACE else 2**40)

    def test_each_score_stays_within_its_own(self, relation):
        (one,) = (opened_of(People(users((1e9,)), relation).scores(Wild(*OWN_LIMITS))),)
        assert one.tolist() == [1, 0, 10**8]

    def test_limits_of_one_that_hold_for_all_are_caught(self, relation, monkeypatch):
        honest = scores.AddedUp._added

        def widest(self, said, low, high):
            return honest(self, 1000.0 * said, OWN_LIMITS[0].min(), OWN_LIMITS[1].max())

        monkeypatch.setattr(scores.AddedUp, "_added", widest)
        one = opened_of(People(users((1e9,)), relation).scores(Wild(*OWN_LIMITS)))
        assert one.tolist() != [1, 0, 10**8]


def test_limits_that_32_bits_round_are_kept():
    """The float32 next to 2^24 + 1 lies above it."""
    for kind in ("float32", "float64"):
        said = opened_of(People(users((1e38,)), Relation.REPLACE).scores(Wild(0, 2**24 + 1, kind)))
        assert said.tolist() == [2**24 + 1, 0, 2**24 + 1]


def test_sums_do_not_wrap_around():
    """Eight thousand times 2^53 are more than 64 bits hold."""
    many = UserData(np.full((8192, 1), 1e300), offsets=np.arange(8193))
    added = opened_of(People(many, Relation.ADD_REMOVE).scores(Wild(-(2**53), 2**53)))
    assert added.tolist() == [2**62, -(2**62), 2**62]


@pytest.mark.parametrize(
    "limits",
    [(0, 2**54), (-(2**60), 0), (3, 1), (0.5, 1), (np.zeros(2, int), np.ones(2, int)), (0, None)],
)
def test_limits_that_bound_nothing_are_refused(limits):
    with pytest.raises(ParameterError, match="whole limits"):
        People(users(*HELD), Relation.REPLACE).scores(Wild(*limits))


@dataclass(frozen=True)
class Twice:
    """Two questions about two candidates."""

    low: int = 0
    high: int = 1
    shape = (2, 2)

    def __call__(self, users):
        counts = users.record_counts()[:, None]
        for place in range(2):
            yield place, counts > np.array([place, place + 1])


class OneOfTwo:
    """Says five about one of two candidates, and nothing about the other."""

    low, high, shape = 0, 5, (2,)

    def __call__(self, users):
        first = users.user_sums() > 0
        yield ..., np.concatenate([5 * first, 5 * ~first], axis=1)


def test_who_is_replaced_moves_two_scores_apart_by_twice_the_limit():
    one, other = (users((own,), (1.0,)) for own in (1.0, -1.0))
    for made in (lambda scores: scores, lambda scores: scores.above_least()):
        found = [made(People(data, Relation.REPLACE).scores(OneOfTwo())) for data in (one, other)]
        change = np.subtract(*map(opened_of, found))
        assert max(change) - min(change) == 10 == found[0].moves.spread
        assert max(abs(change)) <= found[0].moves.largest


# Public lists of coordinates, one in each column; the last one soon has no more.
PLACES = [np.array([0, 3, 1]), np.array([1, 0, -1]), np.array([2, 2, -1])]


def test_the_largest_of_public_lists():
    answer = People(users(*HELD), Relation.REPLACE).scores(Twice())
    plain = opened_of(answer)
    found = opened_of(answer.largest_of(iter(PLACES), 3))
    assert found.tolist() == [max(plain[:3]), max(plain[[3, 0, 2]]), plain[1]]
    assert opened_of(answer.largest_of([], 2)).tolist() == [-(2**62)] * 2
    for odd in (np.array([0, 1]), np.array([0.0, 1.0, 2.0]), np.array([-2, 0, 0])):
        with pytest.raises(ParameterError, match="3 places"):
            answer.largest_of([odd], 3)


@both_relations
@pytest.mark.parametrize(
    "made",
    [
        lambda answer: answer[1],
        lambda answer: answer.min(axis=1),
        lambda answer: answer.max(axis=0),
        lambda answer: answer.above_least(),
        lambda answer: answer.above_least().max(axis=0),
        lambda answer: answer[0].maximum(answer[1]),
        lambda answer: answer[0].maximum(-answer[1]),
        lambda answer: answer[0].beside(answer[1]),
        lambda answer: answer.min(axis=1)[:1].beside(-answer.max(axis=0)[1:]),
        lambda answer: answer.min() + answer.max(),
        lambda answer: answer.largest_of(PLACES, 3),
        lambda answer: -answer.largest_of(PLACES[1:], 3),
    ],
)
def test_what_is_made_of_scores_moves_as_its_seal_says(made, relation):
    furthest(lambda people: made(people.scores(Twice())), relation)


def test_rows_above_their_own_least_move_apart():
    """Two rows have another least each: a difference of their numbers moves twice as far."""
    moves = Moves.of_scores(1, coordinates=4, one_sided=False)
    one, other = (
        seal(np.array(rows), moves, Relation.REPLACE).above_least()
        for rows in ([[5, 5], [6, 4]], [[6, 4], [5, 5]])
    )
    change = opened_of(other) - opened_of(one)
    assert max(change) - min(change) == 4 == one.moves.spread


@both_relations
def test_everybody_is_counted(relation):
    furthest(People.everybody, relation)
    assert numbers_of(People(users(*HELD), relation).everybody()).tolist() == [len(HELD)]


def test_sealed_numbers_are_not_repeated_to_fit():
    """A number that stands twice moves both places: more than its seal says."""
    people = People(users(*HELD), Relation.REPLACE)
    three, one = people.scores(Wild(0, 1)), people.everybody()
    for combine in (lambda: three + one, lambda: three.maximum(one), lambda: one + np.arange(3)):
        with pytest.raises(ParameterError, match="shape"):
            combine()
    assert (three + 1).shape == (3,)


class TestRefusals:
    @pytest.mark.parametrize(
        "said",
        [
            lambda users: 1 / 0,
            lambda users: [(..., np.zeros((users.n_users + 1, 3), int))],
            lambda users: [(..., np.zeros((users.n_users, 2), int))],
            lambda users: [(..., np.full((users.n_users, 3), "a"))],
            lambda users: [],
        ],
    )
    def test_what_is_no_judgement_is_withheld(self, said):
        class Odd(Wild):
            def __call__(self, users):
                return said(users)

        with pytest.raises(SchemaError, match="withheld") as refused:
            People(users(*HELD), Relation.REPLACE).scores(Odd(0, 1))
        assert refused.value.__cause__ is None


@dataclass(frozen=True)
class Steps:
    """Up by one at every number that a user holds, between 0 and 9."""

    users: UserData

    @property
    def events(self):
        place = np.clip(np.nan_to_num(self.users.X[:, 0], nan=3.0), 0, 8).astype(np.uint64)
        order = np.argsort(place, kind="stable")
        user = self.users.user_index()[order].astype(np.int64)
        seen = {}
        after = [seen.setdefault(u, []).append(0) or len(seen[u]) for u in user]
        initial = np.zeros(self.users.n_users, np.int64)
        return Line(10, place[order] + np.uint64(1), user, np.array(after, np.int64), initial)


@dataclass(frozen=True)
class Line:
    size: int
    positions: np.ndarray
    user: np.ndarray
    after: np.ndarray
    initial: np.ndarray


@dataclass(frozen=True)
class View:
    size: int = 10

    def __call__(self, users):
        return Steps(users)


@dataclass(frozen=True)
class Counted:
    """What is said is the count, or something else each time."""

    low: int
    high: int
    fickle: bool = False

    def __call__(self, view, heights):
        if self.fickle:
            held = np.bincount(heights.user, minlength=heights.n_users)
            rank = np.arange(len(heights.after)) - (np.cumsum(held) - held)[heights.user]
            return heights.initial, rank % 2 * 10**6
        return heights.initial, heights.after.astype(float)


@both_relations
@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 2), (-1, 1)])
@pytest.mark.parametrize("fickle", [False, True])
class TestLines:
    def ask(self, low, high, fickle):
        return lambda people: people.walk(View()).scores(Counted(low, high, fickle))

    def test_one_user_moves_no_point_further_than_the_seal(self, relation, low, high, fickle):
        furthest(self.ask(low, high, fickle), relation)

    def test_what_is_not_cut_is_caught(self, relation, low, high, fickle, monkeypatch):
        monkeypatch.setattr(lines, "bounded", lambda said, low, high: 9 * said.astype(np.int64))
        with pytest.raises(AssertionError):
            furthest(self.ask(low, high, fickle), relation)

    def test_changes_that_do_not_go_on_where_they_stopped_are_caught(
        self, relation, low, high, fickle, monkeypatch
    ):
        def added_up(self, initial, after):
            moved = np.bincount(self.piece, weights=after, minlength=len(self.starts))
            return np.int64(initial.sum()) + np.cumsum(moved).astype(np.int64)

        if fickle:
            monkeypatch.setattr(Heights, "added_up", added_up)
            with pytest.raises(AssertionError):
                furthest(self.ask(low, high, fickle), relation)


@both_relations
@pytest.mark.parametrize(
    "made",
    [
        lambda line: line.min(),
        lambda line: line.above_least(),
        lambda line: line.maximum(line.above_least()),
        lambda line: line.between(2, 5),
        lambda line: line.between(2, 5).min(),
        lambda line: line.stretched(np.array([0, 4], np.uint64), np.array([3, 1], np.uint64)),
    ],
)
def test_what_is_made_of_a_line_moves_as_its_seal_says(made, relation):
    furthest(lambda people: made(people.walk(View()).scores(Counted(0, 2))), relation)


def test_a_line_is_cut_and_stretched_at_public_places():
    line = moved_line(np.array([0, 3, 7], np.uint64), np.array([5, 1, 4]), 10)
    assert opened_of(line.between(2, 7)).tolist() == [5, 1, 1, 1, 1, 4]
    copies = line.stretched(np.array([0, 4], np.uint64), np.array([2, 1], np.uint64))
    assert opened_of(copies).tolist() == [5] * 6 + [1] * 5 + [4] * 3
    assert numbers_of(line.min()).tolist() == [1]
    with pytest.raises(ParameterError):
        line.between(4, 10)


@pytest.mark.parametrize("change", [{"size": 3}, {"user": np.array([0, 5])}])
def test_steps_beside_the_line_are_refused(change):
    steps = {
        "size": 9,
        "positions": np.array([2, 4], np.uint64),
        "user": np.array([0, 1]),
        "after": np.array([1, 1]),
        "initial": np.zeros(2, np.int64),
    }
    Heights.of(Line(**steps))
    with pytest.raises(SchemaError):
        Heights.of(Line(**(steps | change)))
    with pytest.raises(SchemaError):
        Heights.of(Line(**(steps | {"positions": np.array([4, 2], np.uint64)})))


def counted(users):
    """Yield how many records each user holds, three times."""
    yield users.record_counts()[:, None] * np.array([1, 2, -1])


@both_relations
@pytest.mark.parametrize("verdict", [BySign(2, 1), BySign(1, 0), ByDifference(2)])
def test_one_user_moves_no_duel_further_than_the_seal(verdict, relation):
    reached = furthest(lambda people: people.duels(counted, 3, verdict), relation)
    assert verdict.sensitivity(relation) / 2 <= reached <= verdict.sensitivity(relation)


@pytest.mark.parametrize("verdict", [BySign(2, 1), ByDifference(2)])
def test_duels_along_a_line_need_a_public_number_of_users(verdict):
    furthest(lambda people: people.walk(View()).duels(verdict, most_pieces=99), Relation.REPLACE)
    walk = People(users(*HELD), Relation.ADD_REMOVE).walk(View())
    with pytest.raises(SealedError, match="private"):
        walk.duels(verdict, most_pieces=99)
    with pytest.raises(ParameterError, match="fewer"):
        People(users(*HELD), Relation.REPLACE).walk(View()).duels(verdict, most_pieces=5)


@dataclass(frozen=True)
class FromTheStart(View):
    """Up by one at the first point for the first user, and at the second one for the others."""

    size: int = 3

    def __call__(self, users):
        early = users.X[:, 0] == 0.0
        user = np.argsort(~early, kind="stable").astype(np.int64)
        places = np.where(early[user], 0, 1).astype(np.uint64)
        count = np.zeros(users.n_users, np.int64)
        return Seen(Line(3, places, user, count + 1, count))


@dataclass(frozen=True)
class Seen:
    events: Line


@pytest.mark.parametrize("verdict", [BySign(2, 1), ByDifference(2)])
def test_steps_at_the_first_point_make_no_opponent(verdict):
    """Nobody has the counts from before the first point: a duel with them moves by all users."""
    others = [(1.0,)] * 9
    one, other = (
        opened_of(
            People(users((first,), *others), Relation.REPLACE)
            .walk(FromTheStart())
            .duels(verdict, most_pieces=99)
        )
        for first in (0.0, 1.0)
    )
    assert max(abs(one - other)) <= verdict.sensitivity(Relation.REPLACE)


@pytest.mark.parametrize("verdict", [BySign(2**28, 1), ByDifference(2**28)])
def test_duels_do_not_wrap_around(verdict):
    """Sixteen times 2^28 are more than 32 bits hold."""
    limit = verdict.highest

    def far(users):
        yield np.tile([0, limit], (users.n_users, 1))

    many = People(users(*[(0.0,)] * 16), Relation.REPLACE)
    lost = opened_of(many.duels(far, 2, verdict)).tolist()
    assert lost[1] - lost[0] == 2 * 16 * (limit - verdict.lowest)

    @dataclass(frozen=True)
    class Far(View):
        size: int = 2

        def __call__(self, users):
            none = np.zeros(users.n_users, np.int64)
            place, user = np.ones(users.n_users, np.uint64), np.arange(users.n_users)
            return Seen(Line(2, place, user, none + limit, none))

    assert opened_of(many.walk(Far()).duels(verdict, most_pieces=99)).tolist() == lost


@pytest.mark.parametrize("verdict", [partial(BySign, 2**30), partial(ByDifference)])
def test_verdicts_that_64_bits_do_not_add_up_are_refused(verdict):
    with pytest.raises(ParameterError, match="apart"):
        verdict(2**30)


def test_what_users_say_along_a_line_is_added_up_exactly():
    """2^53 + 1 is no float."""
    user, nothing = np.arange(2), np.zeros(2, np.int64)
    heights = Heights.of(Line(2, np.ones(2, np.uint64), user, user, nothing))
    assert heights.added_up(nothing, np.array([2**53, 1])).tolist() == [0, 2**53 + 1]
    with pytest.raises(ParameterError, match="limits"):
        People(users(*HELD), Relation.REPLACE).walk(View()).scores(Counted(0, 2**31 + 1))


def number_or_text(users):
    """Return a list of keys, in which large numbers are spelled."""
    return [int(x) if x < 5.0 else "many" for x in users.X[:, 0]]


def number_or_text_in_parts(users):
    return np.array(number_or_text(users))


@pytest.mark.parametrize(("choice", "parts"), [(number_or_text, 1), (number_or_text_in_parts, 3)])
def test_a_text_of_one_user_makes_no_text_of_another_ones_number(choice, parts, monkeypatch):
    def in_parts(data, work):
        return [work(part) for part in data.batches(users=data.n_users // parts)]

    monkeypatch.setattr(UserData, "map", in_parts)
    people = People(users((1.0,), (1.0,), (9.0,)), Relation.REPLACE)
    votes = opened(people.ballots(choice).votes())
    assert votes == {1: 2, "many": 1}


def most_held(users):
    """Vote for one's own number of records; nobody votes who holds none."""
    counts = users.record_counts()
    return np.where(counts == 0, -1, counts)


@both_relations
def test_one_user_moves_the_votes_as_their_seal_says(relation):
    for one, other in neighbours(relation):
        first, second = (People(d, relation).ballots(most_held).votes(9) for d in (one, other))
        counts = [opened(each) for each in (first, second)]
        keys = counts[0].keys() | counts[1].keys()
        change = [counts[1].get(key, 0) - counts[0].get(key, 0) for key in keys]
        assert sum(map(abs, change)) <= first.moves.l1
        assert max([0, *change]) - min([0, *change]) <= first.moves.spread


class TestBallots:
    PEOPLE = People(users((1.0,), (1.0,), (1.0, 2.0), ()), Relation.REPLACE)

    def test_votes_are_counted(self):
        ballots = self.PEOPLE.ballots(most_held)
        assert opened(ballots.votes(9)) == {1: 2, 2: 1}
        assert numbers_of(ballots.of_key(1)).tolist() == [2]
        assert numbers_of(ballots.of_key(None)).tolist() == [0]
        both = ballots.votes(9).beside(ballots.votes(9), shift=9)
        assert opened(both) == {1: 2, 2: 1, 10: 2, 11: 1}

    def test_two_ballots_cost_a_choice_no_more_and_a_histogram_refuses_them(self):
        votes = self.PEOPLE.ballots(most_held).votes(9)
        both = votes.beside(votes, shift=9)
        assert (both.moves.spread, both.moves.l1) == (2, 4)
        account = Account.open(epsilon=1.0)
        ChooseKey(size=18, epsilon=1.0).release(both, account=account)
        assert account.left == 0
        with pytest.raises(SealedError, match="one vote each"):
            StableChoice(epsilon=1.0, delta=1e-6).release(both)

    def test_votes_beside_others_are_never_one_of_two(self):
        """A key of both would have one count or the other, and jump when one user leaves."""
        votes = self.PEOPLE.ballots(most_held).votes(9)
        assert opened(votes.beside(votes, shift=2)) == {1: 2, 3: 2, 4: 1}
        names = self.PEOPLE.ballots(lambda users: ["ann"] * users.n_users).votes()
        assert opened(names.beside(votes, shift=9)) == {10: 2, 11: 1}
        assert opened(votes.beside(names, shift=9)) == {1: 2, 2: 1}

    def test_other_people_are_refused(self):
        votes = People(users(*HELD), Relation.ADD_REMOVE).ballots(most_held).votes(9)
        with pytest.raises(RelationMismatchError):
            ChooseKey(size=9, epsilon=1.0).release(votes)
        with pytest.raises(RelationMismatchError):
            votes.beside(self.PEOPLE.ballots(most_held).votes(9), shift=9)

    def test_what_is_no_key_a_user_is_withheld(self):
        with pytest.raises(SchemaError, match="withheld"):
            self.PEOPLE.ballots(lambda users: np.zeros(users.n_users + 1))


def test_a_choice_along_a_line_pays_what_the_seal_says():
    choice = ChooseOrdered(epsilon=1.0)
    line = moved_line(np.array([0, 3], np.uint64), np.array([5, 1]), 10, by=3)
    with pytest.raises(NumericalFailure, match="does not fit"):
        choice.release(line, account=Account.open(epsilon=1.0))
    account = Account.open(epsilon=3.0)
    assert 0 <= choice.release(line, account=account) < 10
    assert account.left == 0
    with pytest.raises(RelationMismatchError):
        choice.release(line, account=Account.open(epsilon=9.0, relation=Relation.ADD_REMOVE))
    with pytest.raises(SealedError):
        choice.release(np.array([3, 7], np.uint64))


@pytest.mark.parametrize(
    "ask",
    [
        lambda people: people.walk(View()),
        lambda people: people.walk(View()).scores(Counted(0, 1)),
        lambda people: people.ballots(most_held),
        lambda people: people.ballots(most_held).votes(9),
    ],
)
@pytest.mark.parametrize(
    "look", [bool, int, list, len, np.asarray, pickle.dumps, hash, partial(max, 1)]
)
def test_nobody_reads_what_is_sealed(ask, look):
    sealed = ask(People(users(*HELD), Relation.REPLACE))
    assert "1e+308" not in repr(sealed)
    with pytest.raises(SealedError):
        look(sealed)
    with pytest.raises(SealedError):
        sealed._open(object()) if hasattr(sealed, "_open") else sealed._refuse()
    with pytest.raises(SealedError):
        type(sealed)(object(), *[None] * (len(type(sealed).__init__.__code__.co_varnames) - 2))
