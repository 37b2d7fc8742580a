"""Estimators that would leak by an honest mistake: each is refused, with what to do instead.

Every cheat is a short estimator, as somebody might write it. Beside them stands an honest one,
which shows that it is the mistake that is refused.
"""

import asyncio
import copy
import functools
import inspect
import json
import logging
import pickle
import threading
import traceback

import numpy as np
import pytest

from quorate import UserData
from quorate.core.account.account import Account
from quorate.core.account.parts import SampleAccount, disjoint_groups, halved, sum_of_groups
from quorate.core.bounds.grid import Grid, Interval
from quorate.core.guarantees import Gaussian, Pure, Relation, Repeated, Subsampled
from quorate.core.moves import Moves
from quorate.core.people import People
from quorate.core.questions.pairs import BySign
from quorate.core.sealed import Sealed
from quorate.estimators import UserEstimator
from quorate.exceptions import (
    NumericalFailure,
    QuorateError,
    RelationMismatchError,
    SchemaError,
    SealedError,
)
from quorate.mechanisms.choices.full_windows import choose_window
from quorate.mechanisms.choices.quantiles import PrivateQuantile

SECRET = 31337.0
DATA = UserData(np.array([[SECRET], [1.0], [2.0]]), offsets=[0, 1, 2, 3])
GRID = Grid(Interval(0.0, 4e4, centre=0.0), step=1.0)


class Means:
    """One number a user."""

    bound = GRID.bound

    def __call__(self, users):
        return users.user_means()


class Fit(UserEstimator):
    """Asks people for a total, and does something with it."""

    def __init__(self, epsilon=1.0, *, delta=0.0, relation=Relation.REPLACE, cheat=None):
        self.epsilon, self.delta, self.relation, self.cheat = epsilon, delta, relation, cheat
        self.bounds = self.ledger = self.data_name = self.random_state = self.categories = None

    def fit(self, X, y=None, *, users=None):
        account = self._charge(X, y, users)
        people = self._population(X, y, users)
        self.found_ = self.cheat(people, account)
        self.guarantee_ = self._promise(account)
        return self


def total(people):
    return people.total(Means(), GRID)


def honest(people, account):
    """Release a sum once, with all that there is."""
    return account.laplace(total(people), scale=4e4)


def test_the_honest_estimator_is_let_through():
    fitted = Fit(cheat=honest).fit(DATA)
    assert fitted.found_.shape == (1,)
    assert fitted.guarantee_.epsilon == 1.0


def draws_twice(people, account):
    seen = total(people)
    return account.laplace(seen, scale=4e4) + account.laplace(seen, scale=4e4)


def pays_little_and_draws(people, account):
    return account.laplace(total(people), scale=1e-3)


def asks_for_the_source(people, account):
    return account.pay(Pure(1e-9)).discrete_laplace(np.zeros(1, np.int64), scale=1.0)


def claims_a_sensitivity(people, account):
    return account.laplace(total(people), sensitivity=1, scale=1.0)


def writes_on_the_seal(people, account):
    seen = total(people)
    seen.moves = Moves(0, 0, 0, 0)
    return account.laplace(seen, scale=1.0)


def hands_over_its_own_numbers(people, account):
    return account.laplace(np.array([31337]), scale=1.0)


def keeps_rows(people, account):
    return people.X


def keeps_keys(people, account):
    return people.keys()


def branches(people, account):
    return "many" if total(people) > 10 else "few"


def counts_down(people, account):
    return [0] * total(people)


def converts(people, account):
    return float(total(people))


def compares_two(people, account):
    return total(people) == total(people)


def loops(people, account):
    return [number + 1 for number in total(people)]


def generates(people, account):
    return next(number + 1 for number in total(people))


def saves(people, account):
    return pickle.dumps(total(people))


def saves_people(people, account):
    return pickle.dumps(people)


def copies_people(people, account):
    return copy.deepcopy(people)


def copies_the_account(people, account):
    return copy.deepcopy(account).laplace(total(people), scale=4e4)


def averages(people, account):
    return np.mean(total(people))


def scales_by_a_float(people, account):
    return account.laplace(total(people) * 0.001, scale=1.0)


def forges(people, account):
    return account.laplace(Sealed(None, np.array([31337]), None, Relation.REPLACE), scale=1.0)


def asks_under_another_relation(people, account):
    other = People(DATA, Relation.ADD_REMOVE)
    return account.laplace(total(other), scale=4e4)


def opens_a_second_account(people, account):
    """What is not drawn from the account of the fit is not under its promise."""
    return Fit._promise(Fit().draw_from(None), Account.open(epsilon=100.0))


def takes_one_group_for_another(people, account):
    groups = disjoint_groups(account, 2)
    halves = halved(people, groups, random_state=0)
    return groups[0].laplace(total(halves[1]), scale=4e4)


def takes_everybody_for_a_group(people, account):
    groups = disjoint_groups(account, 2)
    return groups[0].laplace(total(people), scale=4e4)


def adds_up_one_group_twice(people, account):
    groups = disjoint_groups(account, 2)
    half = total(halved(people, groups, random_state=0)[0])
    return account.laplace(sum_of_groups([half, half]), scale=4e4)


def remembers_on_itself(people, account):
    class Remembering(Means):
        def __call__(self, users):
            self.seen = users.X
            return super().__call__(users)

    return account.laplace(people.total(Remembering(), GRID), scale=4e4)


def remembers_in_a_list(people, account):
    seen = []

    def counts(users):
        seen.append(users.X)
        return users.record_counts()

    return account.laplace(people.counts(counts, [1.0]), scale=1.0)


def remembers_in_a_variable(people, account):
    largest = 0.0

    def mean(users):
        nonlocal largest
        largest = users.X.max()
        return users.user_means()[:, 0]

    return account.laplace(people.each(mean).counts([1.0]), scale=1.0), largest


def remembers_as_a_method(people, account):
    class Notes:
        def __init__(self):
            self.kept = {}

        def label(self, users):
            self.kept[len(self.kept)] = users.X
            return np.zeros(users.n_users, np.int64)

    return account.laplace(people.tally(Notes().label, 2), scale=2.0)


def remembers_in_a_part(people, account):
    def noting(users, notes):
        notes.append(users.X)
        return users.user_means()

    class Partly(Means):
        def __init__(self):
            self.work = functools.partial(noting, notes=[])

        def __call__(self, users):
            return self.work(users)

    return account.laplace(people.encoded(Partly(), GRID).total(GRID), scale=4e4)


def remembers_while_records_change(people, account):
    seen = []

    def change(users):
        seen.append(users.X)
        return users

    return account.laplace(total(people.derive(change)), scale=4e4)


def divides_by_the_largest_of_all(people, account):
    def shares(users):
        means = users.user_means()[:, 0]
        return means / np.abs(means).max()

    return account.laplace(people.counts(shares, [0.5]), scale=1.0)


def centres_by_the_mean_of_all(people, account):
    class Centred(Means):
        def __call__(self, users):
            return users.user_means() - users.X.mean(axis=0)

    return account.laplace(people.total(Centred(), GRID), scale=4e4)


def ranks_users(people, account):
    def ranks(users):
        return np.argsort(np.argsort(users.user_means()[:, 0]))

    return account.laplace(people.each(ranks).counts([1.0]), scale=1.0)


def labels_the_largest(people, account):
    def leads(users):
        means = users.user_means()[:, 0]
        return (means == means.max()).astype(np.int64)

    return account.laplace(people.tally(leads, 2), scale=2.0)


def ranks_rows(people, account):
    rows = people.each(lambda users: users.user_means()[:, 0])
    return account.laplace(rows.map(np.argsort).counts([1.0]), scale=1.0)


def remembers_rows(people, account):
    seen = []

    def keep(rows):
        seen.append(rows)
        return rows

    rows = people.each(lambda users: users.user_means()[:, 0])
    return account.laplace(rows.map(keep).counts([1.0]), scale=1.0)


def asks_a_quantile_for_its_pieces(people, account):
    counts = people.each(UserData.record_counts)
    return PrivateQuantile(domain=(0, 9), epsilon=1.0).pieces(counts, counts)


def asks_a_quantile_for_its_law(people, account):
    counts = people.each(UserData.record_counts)
    return PrivateQuantile(domain=(0, 9), epsilon=1.0).probabilities(counts)


def takes_a_quantile_of_everybody_for_one_of_a_group(people, account):
    groups = disjoint_groups(account, 2)
    counts = people.each(UserData.record_counts)
    return PrivateQuantile(domain=(0, 9), epsilon=0.5).release(counts, account=groups[0])


def takes_a_window_of_everybody_for_one_of_a_group(people, account):
    groups = disjoint_groups(account, 2)
    means = people.each(lambda users: np.tanh(users.user_means()[:, 0]))
    return choose_window(means, width=0.1, epsilon=0.5, account=groups[0])


def judges_duels_by_own_limits(people, account):
    class Modest(BySign):
        lowest = highest = property(lambda self: 0)

    def blocks(users):
        yield np.zeros((users.n_users, 2), np.int64)

    return account.laplace(people.duels(blocks, 2, Modest(1, 1)), scale=1.0)


def draws_from_a_second_account(people, account):
    """Whatever this one holds, the guarantee of the fit would not say so."""
    return Account.open(epsilon=1000.0).laplace(total(people), scale=50.0)


def draws_from_an_account_for_one_event(people, account):
    return Account.for_event(Pure(1000.0)).laplace(total(people), scale=50.0)


def changes_whom_people_are_about(people, account):
    first, second = disjoint_groups(account, 2)
    people.among = first
    once = first.laplace(total(people), scale=4e4)
    people.among = second
    return once + second.laplace(total(people), scale=4e4)


def changes_the_relation(people, account):
    people.relation = Relation.ADD_REMOVE
    return total(people)


def centres_the_records_of_all(people, account):
    def change(part):
        moved = part.X - part.X.mean(axis=0)
        ids = np.arange(part.n_users)
        return UserData(moved, offsets=part.offsets, ids=ids).with_keys(part.keys())

    return total(people.derive(change))


def remembers_in_a_dictionary(people, account):
    kept = {}

    def own(users):
        kept["rows"] = users.X.copy()
        return users.user_means()[:, 0]

    return people.counts(own, [1.0]), kept


def remembers_on_its_class(people, account):
    class Own:
        rows = None

        def __call__(self, users):
            Own.rows = users.X.copy()
            return users.user_means()[:, 0]

    return people.counts(Own(), [1.0]), Own.rows


def remembers_in_a_thread(people, account):
    kept = {}

    def own(users):
        worker = threading.Thread(target=lambda: kept.update(rows=users.X.copy()))
        worker.start()
        worker.join()
        return users.user_means()[:, 0]

    return people.counts(own, [1.0]), kept


def gathers_coroutines(people, account):
    """Two coroutines draw from one account: the second has nothing left."""

    async def draw():
        return account.laplace(total(people), scale=4e4)

    async def both():
        return await asyncio.gather(draw(), draw())

    return asyncio.run(both())


def lets_numpy_add(people, account):
    return np.add(1, total(people))


def fills_an_array(people, account):
    return np.array([total(people)], dtype=object)


def writes_attributes_as_json(people, account):
    return json.dumps(total(people), default=vars)


def yields_rows(people, account):
    def own(users):
        yield from users.X

    return people.counts(own, [1.0])


def writes_into_an_array(people, account):
    kept = np.zeros(3)

    def own(users):
        found = users.user_means()[:, 0]
        kept[: min(3, len(found))] = found[:3]
        return found

    return people.counts(own, [1.0]), kept


SEEN = []


def keeps_in_a_global(people, account):
    def own(users):
        SEEN.append(users.X.copy())
        return users.user_means()[:, 0]

    return people.counts(own, [1.0])


def _note(users):
    global LAST
    LAST = users.X.copy()


def binds_a_global(people, account):
    def own(users):
        _note(users)
        return users.user_means()[:, 0]

    return people.counts(own, [1.0])


def keeps_in_a_global_of_a_class(people, account):
    class Noting(Means):
        def __call__(self, users):
            SEEN.append(users.X.copy())
            return users.user_means()

    return people.total(Noting(), GRID)


def opens_an_account_about_the_same_people(people, account):
    unpaid = Account.for_event(Pure(1e9), about=account)
    return unpaid.laplace(total(people), scale=1e-9)


CHEATS = [
    writes_into_an_array,
    keeps_in_a_global,
    binds_a_global,
    keeps_in_a_global_of_a_class,
    opens_an_account_about_the_same_people,
    draws_from_a_second_account,
    draws_from_an_account_for_one_event,
    changes_whom_people_are_about,
    changes_the_relation,
    centres_the_records_of_all,
    remembers_in_a_dictionary,
    remembers_on_its_class,
    remembers_in_a_thread,
    gathers_coroutines,
    lets_numpy_add,
    fills_an_array,
    writes_attributes_as_json,
    yields_rows,
    draws_twice,
    pays_little_and_draws,
    asks_for_the_source,
    claims_a_sensitivity,
    writes_on_the_seal,
    hands_over_its_own_numbers,
    keeps_rows,
    keeps_keys,
    branches,
    counts_down,
    converts,
    compares_two,
    loops,
    generates,
    saves,
    saves_people,
    copies_people,
    copies_the_account,
    averages,
    scales_by_a_float,
    forges,
    asks_under_another_relation,
    opens_a_second_account,
    takes_one_group_for_another,
    takes_everybody_for_a_group,
    adds_up_one_group_twice,
    remembers_on_itself,
    remembers_in_a_list,
    remembers_in_a_variable,
    remembers_as_a_method,
    remembers_in_a_part,
    remembers_while_records_change,
    divides_by_the_largest_of_all,
    centres_by_the_mean_of_all,
    ranks_users,
    labels_the_largest,
    ranks_rows,
    remembers_rows,
    asks_a_quantile_for_its_pieces,
    asks_a_quantile_for_its_law,
    takes_a_quantile_of_everybody_for_one_of_a_group,
    takes_a_window_of_everybody_for_one_of_a_group,
    judges_duels_by_own_limits,
]


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.__name__)
def test_it_is_refused(cheat):
    assert len(CHEATS) >= 20
    with pytest.raises((QuorateError, TypeError, AttributeError)) as refused:
        Fit(cheat=cheat).fit(DATA)
    assert "31337" not in str(refused.value)
    assert not hasattr(refused.value, "__notes__")


FACTORS = np.full(4, 0.5)
WORD = {"unit": 1.0}


def test_a_statistic_that_only_reads_what_it_holds_is_let_through():
    weights = np.arange(5.0)

    def own(users):
        return users.user_means()[:, 0] * FACTORS[0] * WORD["unit"] + weights[0]

    people = People(DATA, Relation.REPLACE)
    for _ in range(2):
        assert people.counts(own, [1.0]).shape == (1,)


def test_a_statistic_that_computes_public_numbers_once_is_let_through():
    class Careful(Means):
        @functools.cached_property
        def weight(self):
            return 1.0

        def __call__(self, users):
            return users.user_means() * self.weight

    people = People(DATA, Relation.REPLACE)
    assert people.total(Careful(), GRID).shape == (1,)


def test_a_number_in_an_exception_shows_nothing():
    def raises(people, account):
        raise ValueError("the total is", total(people))

    with pytest.raises(QuorateError, match="withheld") as raised:
        Fit(cheat=raises).fit(DATA)
    assert "31337" not in repr(raised.value)
    shown = str(ValueError("the total is", total(People(DATA, Relation.REPLACE))))
    assert "the total is" in shown
    assert "31337" not in shown


@pytest.mark.parametrize("seen", [total, People.everybody, lambda people: people])
def test_a_tool_that_shows_all_attributes_shows_no_number(seen):
    """As a debugger does: inspect.getmembers, dir and vars find what is public."""
    held = seen(People(DATA, Relation.REPLACE))
    shown = " ".join(str(value) for _, value in inspect.getmembers(held))
    assert "313" not in shown
    assert [name for name in dir(held) if name.startswith("_")] == []


def test_a_traceback_carries_no_variables_of_those_who_read_rows():
    """Some loggers write down the variables of all frames that an error has passed."""

    def two_columns(people, account):
        return people.total(Wide(), GRID)

    class Wide(Means):
        def __call__(self, users):
            return users.X[:, [0, 0]]

    with pytest.raises(SchemaError) as refused:
        Fit(cheat=two_columns).fit(DATA)
    found = traceback.TracebackException.from_exception(refused.value, capture_locals=True)
    names = {frame.name for frame in found.stack}
    assert "_contributions" not in names
    assert "inside" in names


def test_a_number_in_a_log_shows_nothing(caplog):
    def logs(people, account):
        logging.getLogger("mine").warning("total %s %r", total(people), people)
        return honest(people, account)

    Fit(cheat=logs).fit(DATA)
    assert "Sealed" in caplog.text
    assert "31337" not in caplog.text


def test_a_thread_pays_for_what_it_draws():
    found = []

    def threaded(people, account):
        seen = total(people)

        def draw():
            try:
                found.append(account.laplace(seen, scale=4e4))
            except NumericalFailure as refused:
                found.append(refused)

        threads = [threading.Thread(target=draw) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    Fit(cheat=threaded).fit(DATA)
    assert sum(isinstance(each, np.ndarray) for each in found) == 1


def test_the_number_of_users_is_private_under_add_remove():
    def counts(people, account):
        return people.n_users

    assert Fit(cheat=counts).fit(DATA).found_ == 3
    with pytest.raises(SealedError, match="private under addition"):
        Fit(relation=Relation.ADD_REMOVE, cheat=counts).fit(DATA)


def test_a_sample_is_asked_once_and_by_its_own_account():
    account = Account.open(epsilon=1.0, delta=1e-6)
    account.reserve_chain(Repeated(Subsampled(Gaussian(9.0), rate=0.5), 2))
    people = People(DATA, Relation.REPLACE)
    sample = SampleAccount(account, rate=0.5)
    sampled = sample.people(people)
    with pytest.raises((SealedError, RelationMismatchError)):
        sample.gaussian(total(people), sigma=1e6)
    sample.gaussian(total(sampled), sigma=9.1 * 4e4)
    with pytest.raises(NumericalFailure, match="second release"):
        sample.gaussian(total(sampled), sigma=9.1 * 4e4)
    with pytest.raises(NumericalFailure, match="drawn once"):
        sample.people(people)


def test_a_subclass_that_says_less_is_not_believed():
    """Whoever overrides what a mechanism says of itself pays what the seal says."""
    from quorate.mechanisms.laplace import LaplaceSum

    class Modest(LaplaceSum):
        @property
        def sensitivity(self):
            return 1

    def modest(people, account):
        return Modest(grid=GRID, epsilon=1.0).release(total(people), count=0, account=account)

    with pytest.raises(NumericalFailure, match="does not fit"):
        Fit(cheat=modest).fit(DATA)
