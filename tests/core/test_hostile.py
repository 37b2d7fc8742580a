"""Ways around a seal, a budget or the rule of forgetting that a hostile reader found."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from quorate.core.account.account import Account, smallest_of_visits
from quorate.core.account.compose import price
from quorate.core.account.parts import (
    SharedAccount,
    close,
    disjoint_groups,
    halved,
    sum_of_groups,
)
from quorate.core.account.secret_pairs import secret_pairs
from quorate.core.bounds.grid import SUM_LIMIT, Grid
from quorate.core.bounds.lifted_ball import LiftedBall
from quorate.core.by_hand import line_by_hand
from quorate.core.forgetting import forgetting
from quorate.core.guarantees import Gaussian, Pure, Relation, Repeated
from quorate.core.moves import Moves
from quorate.core.people import People
from quorate.core.placed import PlacedSum, Places
from quorate.core.questions.held_keys import held_keys
from quorate.core.questions.pairs import ByDifference, BySign
from quorate.core.sealed import Sealed, opened, seal
from quorate.core.users import UserData
from quorate.exceptions import NumericalFailure, ParameterError, SchemaError, SealedError

COUNTS = Moves.of_counts(2)
SIX = UserData.from_arrays(np.arange(6.0)[:, None], users=np.arange(6))


class TestSeals:
    @pytest.mark.parametrize("limits", [(np.zeros(9, int), 7), (0, np.arange(9)), (0.5, 3), (4, 3)])
    def test_limits_of_a_clip_repeat_no_number(self, limits):
        with pytest.raises(ParameterError, match="two integers"):
            seal([5], Moves.of_counts(1), Relation.REPLACE).clip(*limits)

    def test_a_distance_to_the_smallest_does_not_wrap_around(self):
        far, near = (
            opened(seal([SUM_LIMIT, low], COUNTS, Relation.REPLACE).above_least())
            for low in (-SUM_LIMIT, 1 - SUM_LIMIT)
        )
        assert np.abs(far.astype(object) - near.astype(object)).max() <= 1

    @pytest.mark.parametrize(
        "change",
        [
            lambda numbers: numbers + np.array([SUM_LIMIT - 6, 0]),
            lambda numbers: numbers + (numbers * 0 + np.array([SUM_LIMIT - 6, 0])),
            lambda numbers: (numbers - np.array([0, 5])) * (SUM_LIMIT // 6),
        ],
    )
    def test_where_one_number_is_full_another_moves_as_far_as_the_spread_says(self, change):
        moves = Moves.of_judgements(1, 2, coordinates=2, relation=Relation.ADD_REMOVE)
        fewer, more = (change(seal(n, moves, Relation.ADD_REMOVE)) for n in ([5, 5], [7, 7]))
        spreads = (int(a) - int(b) for a, b in (opened(fewer), opened(more)))
        assert abs(next(spreads) - next(spreads)) <= fewer.moves.spread

    def test_full_scores_of_people_move_as_far_as_the_spread_says(self):
        class Both:
            low, high, shape = 2**52, 2**53, (2,)

            def __call__(self, users):
                yield ..., np.tile([2**53, 2**52], (users.n_users, 1))

        fewer, more = (
            People(UserData(np.zeros((n, 1)), offsets=range(n + 1)), Relation.ADD_REMOVE).scores(
                Both()
            )
            for n in (600, 601)
        )
        (a, b), (c, d) = opened(fewer).tolist(), opened(more).tolist()
        assert abs((a - b) - (c - d)) <= fewer.moves.spread

    def test_a_tie_lies_between_the_limits_of_a_duel(self):
        with pytest.raises(ParameterError, match=">= 0"):
            BySign(5, -3)


def groups_of(account: Account) -> tuple[People, People]:
    return halved(
        People(SIX, Relation.REPLACE, among=account), disjoint_groups(account, 2), random_state=0
    )


class TestSumsOfGroups:
    def tally(self, *sizes: int) -> Sealed:
        parts = groups_of(Account.open(epsilon=1.0))
        return sum_of_groups(
            [
                part.tally(lambda users: users.X[:, 0], size)
                for part, size in zip(parts, sizes, strict=True)
            ]
        )

    def test_only_the_fit_of_the_groups_pays_for_it(self):
        with pytest.raises(SealedError, match="another fit"):
            Account.open(epsilon=9.0).laplace(self.tally(6, 6), scale=1.0)

    def test_a_number_of_one_group_is_not_repeated_for_another(self):
        with pytest.raises(SealedError, match="one shape"):
            self.tally(1, 6)

    def test_it_does_not_wrap_around(self):
        groups = disjoint_groups(Account.open(epsilon=1.0), 2)
        sums = []
        for last in (SUM_LIMIT, SUM_LIMIT - 1):
            parts = [
                seal([number], COUNTS, Relation.REPLACE, group)
                for number, group in zip((SUM_LIMIT, last), groups, strict=True)
            ]
            sums.append(int(opened(sum_of_groups(parts))[0]))
        assert abs(sums[0] - sums[1]) <= 1


CHAIN = Repeated(Gaussian(20.0), 11)


class TestBudgets:
    @pytest.mark.parametrize("aside", [5.0, -10.0])
    def test_what_is_set_aside_is_a_part(self, aside):
        with pytest.raises(ParameterError, match="a part of epsilon"):
            Account.open(epsilon=1.0, delta=1e-6, aside=aside)

    def test_nothing_is_set_aside_beside_a_plan_for_everything(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        account.reserve_chain(CHAIN)
        with pytest.raises(ParameterError, match="a part of epsilon"):
            account.set_aside(0.9)

    def test_groups_write_down_what_they_draw_in_the_account_of_the_fit(self):
        with pytest.raises(ParameterError, match="whole fit"):
            disjoint_groups(Account.open(epsilon=1.0).part(Fraction(1, 2)), 2)

    @pytest.mark.parametrize("drawn", [True, False])
    def test_a_second_plan_for_the_same_people_is_refused(self, drawn):
        account = Account.open(epsilon=1.0, delta=1e-6)
        first, again = disjoint_groups(account, 2), disjoint_groups(account, 2)
        for group in first:
            group.reserve_chain(CHAIN)
            if drawn:
                group.pay(Gaussian(20.0))
        for other in (account, again[0]):
            with pytest.raises(ParameterError, match="before anything is drawn"):
                other.reserve_chain(CHAIN)

    def test_groups_have_no_plan_beside_one_for_everybody(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        account.reserve_chain(CHAIN)
        with pytest.raises(ParameterError, match="before anything is drawn"):
            disjoint_groups(account, 2)[0].reserve_chain(CHAIN)

    def test_a_plan_after_groups_have_drawn_is_refused(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        disjoint_groups(account, 2)[0].pay(Fraction(1))
        for begin in (lambda: account.reserve_chain(CHAIN), lambda: account.set_aside(0.5)):
            with pytest.raises(ParameterError, match="before anything is drawn"):
                begin()

    def test_groups_have_no_plan_beside_what_is_lent(self):
        account = SharedAccount.open(epsilon=1.0, delta=1e-6)
        account.lend(epsilon=1.0, delta=1e-6)
        with pytest.raises(ParameterError, match="before anything is drawn"):
            disjoint_groups(account, 2)[0].reserve_chain(CHAIN)


class Slotted:
    __slots__ = ("last",)

    def __call__(self, users: UserData) -> np.ndarray:
        self.last = users.X.sum()
        return users.record_counts()


class Latest:
    def __init__(self) -> None:
        self.last = float("3.5")

    def __call__(self, users: UserData) -> np.ndarray:
        self.last = float(users.X.sum())
        return users.record_counts()


@pytest.mark.parametrize("made", [Counter, deque, lambda: defaultdict(list), set])
def test_whatever_grows_is_seen_to_grow(made):
    kept = made()

    def counts(users):
        for number in users.X[:, 0].tolist():
            if isinstance(kept, defaultdict):
                kept["seen"].append(number)
            elif isinstance(kept, deque):
                kept.append(number)
            else:
                kept.update([number])
        return users.record_counts()

    with pytest.raises(SealedError, match="stored something"):
        People(SIX, Relation.REPLACE).counts(counts, [1])


def test_a_slot_keeps_nothing():
    with pytest.raises(SealedError, match="stored something"):
        People(SIX, Relation.REPLACE).counts(Slotted(), [1])


def test_a_number_that_takes_the_place_of_a_forgotten_one_is_another():
    statistic = Latest()
    twice = forgetting(statistic)
    twice.__enter__()
    statistic(SIX)
    statistic(SIX)
    with pytest.raises(SealedError, match="stored something"):
        twice.__exit__(None, None, None)


def test_a_batch_holds_nothing_of_the_one_before():
    bound = LiftedBall(1.0, centre=[0.0])
    grid = Grid(bound, step=2.0**-10)
    work = PlacedSum(lambda batch: batch, grid, Places(width=2, lengths=(1,)), None)
    held = np.zeros((2, bound.dimension))
    work._added(np.array([0, 1]), np.array([[0.0, np.nan]] * 2), held)
    after = work._added(np.array([0, 1]), np.zeros((2, 1)), held)
    alone = work._added(np.array([0, 1]), np.zeros((2, 1)), np.zeros((2, bound.dimension)))
    assert (after == alone).all()


TWO = UserData.from_arrays(np.arange(4.0)[:, None], users=[1, 1, 2, 2])


def wide(users: UserData) -> np.ndarray:
    return np.ones((users.n_users, len(np.unique(users.X))))


class TestLengthsOfRows:
    """How long a row is, is shown, so it must not follow from what people hold."""

    @pytest.mark.parametrize("order", [{}, {"random_state": 0}])
    def test_of_users(self, order):
        people = People(TWO, Relation.REPLACE)
        ask = people.each_in_order if order else people.each
        with pytest.raises(SchemaError, match="public numbers") as told:
            ask(wide, **order)
        assert "4" not in str(told.value)

    def test_of_sealed_rows(self):
        rows = People(TWO, Relation.REPLACE).each(lambda users: users.user_means()[:, 0])
        with pytest.raises(SchemaError, match="withheld"):
            rows.map(lambda held: np.ones((len(held), int(max(1, *held, 1)))))


def share(users: UserData, whole: bool) -> np.ndarray:
    return users.user_means()[:, 0] - (np.sum(users.X) if whole else 0.0)


def of_all_if(whole: bool) -> Callable[[UserData], np.ndarray]:
    def shares(users: UserData) -> np.ndarray:
        return share(users, whole)

    return shares


class OfAllIf:
    def __init__(self, whole: bool) -> None:
        self.whole = whole

    def __call__(self, users: UserData) -> np.ndarray:
        return share(users, self.whole)


@pytest.mark.parametrize("made", [of_all_if, OfAllIf, lambda whole: partial(share, whole=whole)])
def test_a_function_that_was_tried_does_not_vouch_for_another_switch(made):
    people = People(TWO, Relation.REPLACE)
    people.each(made(False))
    with pytest.raises(SealedError, match="other users"):
        people.each(made(True))


def test_keys_that_depend_on_others_are_refused():
    class Largest:
        def __call__(self, part):
            whole = np.floor(8 * part.X[:, 0]).astype(np.int64)
            largest = whole == whole.max()
            return part.user_index().astype(np.int64)[largest], whole[largest]

        def words(self, numbers):
            return numbers.astype(np.uint64)

        def name(self, number):
            return number

    with pytest.raises(SealedError, match="other users"):
        held_keys(People(TWO, Relation.REPLACE), Largest(), random_state=0)


THREE = UserData.from_arrays(np.arange(6.0)[:, None], users=[1, 1, 1, 2, 2, 3])


@pytest.mark.parametrize(
    "change",
    [
        lambda users: users.take(np.flatnonzero(users.record_counts() > 2)),
        lambda users: UserData(users.X, offsets=np.arange(users.n_records + 1)),
    ],
)
@pytest.mark.parametrize("relation", list(Relation))
def test_other_records_are_those_of_the_same_users(change, relation):
    with pytest.raises(SchemaError, match="the same users"):
        People(THREE, relation).derive(change)


def test_how_many_features_there_are_does_not_follow_from_records():
    def one_column_each(users):
        wide = np.column_stack([users.X, np.unique(users.X) == users.X])
        return UserData(wide, offsets=users.offsets).with_keys(users.keys())

    with pytest.raises(SchemaError, match="features"):
        People(THREE, Relation.REPLACE).derive(one_column_each)


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise TypeError

    __hash__ = None


@pytest.mark.parametrize("odd", [Incomparable(), np.arange(3), None])
def test_what_is_no_key_may_refuse_to_be_compared(odd):
    ballots = People(THREE, Relation.REPLACE).ballots(lambda users: [5, odd, 5])
    assert opened(ballots.of_key(5)).tolist() == [2]


class TestGroups:
    """What a ledger is told of groups, and what they draw after it was told."""

    def groups(self, account, planned):
        groups = disjoint_groups(account, 2)
        for group in groups if planned else ():
            group.reserve_chain(Repeated(Pure(0.125), 5))
        return groups

    def test_the_costliest_group_is_told_where_all_was_planned(self):
        account = Account.open(epsilon=1.0, delta=1e-6)
        _, second = self.groups(account, planned=True)
        second.pay(Fraction(1, 8))
        assert account.event == Pure(0.125)

    def test_what_a_ledger_is_told_covers_every_group_wherever_it_is_composed(self):
        account = Account.open(epsilon=3.0, delta=1e-6)
        first, second = self.groups(account, planned=False)
        first.pay(Gaussian(3.5))
        second.pay(Fraction(3, 10))
        # One such fit costs more for the noise, a hundred more for the pure draw.
        for fits in (1, 100):
            told, *each = (
                price(Repeated(event, fits), delta=1e-6)
                for event in (account.event, first.event, second.event)
            )
            assert told >= max(each)
        assert price(account.event, delta=1e-6) <= 3.0

    def test_draws_that_are_among_those_of_another_group_add_nothing(self):
        account = Account.open(epsilon=3.0, delta=1e-6)
        first, second = self.groups(account, planned=False)
        for group, draws in ((first, 3), (second, 2)):
            for _ in range(draws):
                group.pay(Gaussian(5.0))
        assert account.event == Repeated(Gaussian(5.0), 3)

    @pytest.mark.parametrize("planned", [True, False])
    def test_nothing_is_drawn_after_the_end(self, planned):
        account = Account.open(epsilon=1.0, delta=1e-6)
        first, _ = self.groups(account, planned)
        close(account)
        with pytest.raises(NumericalFailure, match="nothing was drawn"):
            first.pay(Fraction(1, 8))

    def test_nothing_is_drawn_for_a_visit_that_is_over(self):
        kept = []

        def visit(candidate, own):
            kept.append(own)
            return 7.0

        account = Account.open(epsilon=1.0)
        with pytest.raises(SealedError, match="stored something"):
            smallest_of_visits(account, visit, loss=Fraction(1, 4), candidates=1, visits=1)
        with pytest.raises(NumericalFailure, match="nothing was drawn"):
            kept[0].pay(Fraction(1, 4))

    def test_nothing_lent_is_drawn_after_the_end(self):
        account = SharedAccount.open(epsilon=1.0)
        lent = account.lend(epsilon=0.5)
        close(account)
        with pytest.raises(NumericalFailure, match="nothing was drawn"):
            lent.pay(Fraction(1, 8))


@dataclass(frozen=True)
class Line:
    """A line of ten points: a user errs once from the point of each record on."""

    size: int = 10

    def __call__(self, users: UserData) -> SimpleNamespace:
        order = np.argsort(users.X[:, 0], kind="stable")
        owners = users.user_index()[order].astype(np.int64)
        events = SimpleNamespace(
            size=10,
            positions=np.clip(users.X[order, 0], 1, 9).astype(np.uint64),
            user=owners,
            after=np.ones(len(owners), np.int64),
            initial=np.zeros(users.n_users, np.int64),
        )
        return SimpleNamespace(events=events)


class Spoken:
    low, high = 0, 9

    def __init__(self, together: bool) -> None:
        self.together = together

    def __call__(self, view, heights):
        return heights.initial + self.together * len(heights.initial), heights.after


class TestCompany:
    """Each question tries its function on made-up users, and watches what it keeps."""

    def test_of_ballots(self):
        with pytest.raises(SealedError, match="other users"):
            People(TWO, Relation.REPLACE).ballots(lambda users: [users.n_users] * users.n_users)

    def test_of_texts(self):
        people = People(TWO, Relation.REPLACE)
        assert opened(people.ballots(lambda users: ["a"] * users.n_users).of_key("a")) == [2]
        with pytest.raises(SealedError, match="other users"):
            people.ballots(lambda users: [str(users.n_users)] * users.n_users)

    def test_of_what_a_choice_keeps(self):
        kept = []
        with pytest.raises(SealedError, match="stored something"):
            People(TWO, Relation.REPLACE).ballots(
                lambda users: kept.append(users.n_users) or [1] * users.n_users
            )

    def test_of_duels(self):
        def blocks(users):
            yield np.tile([0, users.n_users], (users.n_users, 1))

        with pytest.raises(SealedError, match="other users"):
            People(TWO, Relation.REPLACE).duels(blocks, 2, ByDifference(3))

    def test_of_scores_on_a_line(self):
        walk = People(TWO, Relation.REPLACE).walk(Line())
        assert walk.scores(Spoken(together=False)).size == 10
        with pytest.raises(SealedError, match="other users"):
            walk.scores(Spoken(together=True))

    def test_of_rows_on_a_line(self):
        walk = People(TWO, Relation.REPLACE).walk(Line())
        with pytest.raises(SealedError, match="other users"):
            walk.each(lambda view: np.full(view.events.initial.shape, view.events.initial.size))

    def test_of_batches(self):
        def program(batch):
            rows = batch.rows.sum(axis=1)
            return rows - rows.mean()

        grid = Grid(LiftedBall(1.0, centre=[0.0]), step=2.0**-10)
        with pytest.raises(SealedError, match="other users"):
            People(TWO, Relation.REPLACE).placed_total(
                program, grid, Places(width=4, lengths=(2,)), word=0
            )

    @pytest.mark.parametrize("made", [None, lambda pairs: pairs - pairs.mean()])
    def test_of_pairs(self, made):
        def values(users):
            return users.user_means() - (0.0 if made else users.X.mean())

        people, account = People(TWO, Relation.REPLACE), Account.open(epsilon=1.0)
        with pytest.raises(SealedError, match="other users"):
            secret_pairs(people, values, account=account, most=9, made=made)


def fails_for_none(function: Callable) -> Callable:
    def fails(held):
        if not len(held.keys() if isinstance(held, UserData) else held):
            raise ValueError
        return function(held)

    return fails


class TestWhoFailsForNobody:
    """How long rows are is what it is for nobody, so there has to be an answer for nobody."""

    def test_a_change_of_records(self):
        def wider(users):
            wide = np.tile(users.X, int(users.X.max()) + 1)
            return UserData(wide, offsets=users.offsets).with_keys(users.keys())

        with pytest.raises(SchemaError, match="nobody"):
            People(THREE, Relation.REPLACE).derive(fails_for_none(wider))

    def test_a_function_of_rows(self):
        rows = People(THREE, Relation.REPLACE).each(lambda users: users.user_means()[:, 0])
        with pytest.raises(SchemaError, match="also for none"):
            rows.map(fails_for_none(lambda held: np.ones((len(held), 1 + int(max(0, *held, 0))))))

    def test_rows_on_a_line(self):
        walk = People(TWO, Relation.REPLACE).walk(Line())

        def values(view):
            held = view.events.positions
            return np.ones((view.events.initial.size, 1 + int((held > 2).any())))

        with pytest.raises(SchemaError, match="public numbers"):
            walk.each(values)

    def test_pairs(self):
        people, account = People(TWO, Relation.REPLACE), Account.open(epsilon=1.0)
        with pytest.raises(SchemaError, match="public numbers"):
            secret_pairs(
                people,
                UserData.user_means,
                account=account,
                most=9,
                made=lambda pairs: np.ones((len(pairs), 1 + int((pairs > 2).any()))),
            )


def test_what_raises_keeps_nothing_either():
    kept = []

    def counts(users):
        if users.X.max(initial=0) > 4:
            kept.append(users.X.max())
            raise ValueError
        return users.record_counts()

    with pytest.raises(SealedError, match="stored something"):
        People(THREE, Relation.REPLACE).counts(counts, [1])


def test_votes_for_one_key_are_counted_once():
    ballots = People(THREE, Relation.REPLACE).ballots(lambda users: np.full(users.n_users, 5))
    with pytest.raises(ParameterError, match="one key"):
        ballots.of_key(np.full((100, 1), 5))


@pytest.mark.parametrize(
    ("places", "copies"), [([0], [2**63]), ([0, 100], [1, 1]), ([5], [1]), ([0], [0])]
)
def test_copies_of_points_are_those_of_the_line(places, copies):
    line = line_by_hand(np.array([4, 6]), np.array([3, 0]))
    with pytest.raises(ParameterError, match=r"on the line|fewer than"):
        line.stretched(np.array(places, np.uint64), np.array(copies, np.uint64))


def test_whether_vectors_are_kept_does_not_tell_how_many_people_there_are(monkeypatch):
    """Room for two vectors of six numbers: three people had others kept than two had."""
    monkeypatch.setattr("quorate.core.people._KEPT", 12)

    def six(users):
        return np.repeat(users.X, 6, axis=1)

    def seen(n, relation):
        data = UserData.from_arrays(np.arange(float(n))[:, None], users=range(n))
        return People(data, relation).keeping(six, dimension=6)[0].n_features

    assert seen(2, Relation.ADD_REMOVE) == seen(3, Relation.ADD_REMOVE)
    # Under replacement the number is public, and the same look does tell of it.
    assert seen(2, Relation.REPLACE) != seen(3, Relation.REPLACE)
