"""Accounts within the account of a fit, for part of the users or part of the budget.

One secret sample of the users, and groups that have nobody in common, pay through the account of
the fit. The event that they record there is the privacy loss of a user who may or may not be in the
part. It is smaller than the cost of a release about all users. A part of the budget that is lent is
priced separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from quorate import _validate
from quorate._validate import exact, float_up, root_down
from quorate.core.account.account import Account, Integers
from quorate.core.bounds.grid import SUM_LIMIT
from quorate.core.guarantees import (
    Approximate,
    DrawCosts,
    Event,
    Gaussian,
    Nothing,
    Pure,
    Relation,
    Subsampled,
    compose_events,
)
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.sealed import Sealed, opened, seal
from quorate.core.users.crowd import Crowd
from quorate.exceptions import NumericalFailure, ParameterError, RelationMismatchError, SealedError

Number = TypeVar("Number", int, Fraction)

__all__ = [
    "GroupAccount",
    "OwnRowsAccount",
    "SampleAccount",
    "SharedAccount",
    "close",
    "cut_by_draws",
    "disjoint_groups",
    "fold_by_fold",
    "halved",
    "only_gaussian",
    "prepay",
    "sum_of_groups",
]


def only_gaussian(account: Account) -> Event:
    """Leave an account only its Gaussian filter; return an event that covers its later draws.

    So a ledger that adds up squares can be charged with a square before anything is drawn.

    >>> account = Account.open(epsilon=1.0, delta=1e-6, reserve=1e-7)
    >>> only_gaussian(account)
    Composed(events=(Gaussian(noise_multiplier=4.246...), Approximate(epsilon=0.0, delta=1e-07)))
    >>> account.left
    Fraction(0, 1)
    """
    account.epsilon = Fraction(0)
    events: list[Event] = [Gaussian(root_down(1 / account.square))]
    if account.aside:
        events.append(Pure(float_up(account.aside)))
    if account.reserve:
        events.append(Approximate(0.0, float_up(account.reserve)))
    return compose_events(events)


def close(account: Account) -> None:
    """Refuse every further draw from an account and from its parts.

    >>> account = Account.open(epsilon=1.0)
    >>> close(account)
    >>> account.left
    Fraction(0, 1)
    """
    account.epsilon = account.square = account.aside = account.reserve = Fraction(0)
    account._plan = None
    # What was planned for groups, or lent, asks nobody else.
    beside = account._lent if isinstance(account, SharedAccount) else []
    for each in [*beside, *(group for family in account._groups for group in family)]:
        close(each)


class SampleAccount(Account):
    """The account of one release on a secret sample; the event is recorded as a sampled one.

    The event is that of a user who takes part or stays away, whatever the relation; see
    :class:`~quorate.core.guarantees.Subsampled`. The members of the sample are drawn here, so that
    the priced rate is the rate of the draw. The account must have been reserved for the sample with
    :meth:`Account.reserve_chain`.

    >>> from quorate.core.guarantees import Composed, Gaussian, Repeated
    >>> account = Account.open(epsilon=1.0, delta=1e-6)
    >>> steps = Repeated(Subsampled(Gaussian(2.0), rate=0.01), 10)
    >>> account.reserve_chain(Composed((Gaussian(9.0), steps)))
    >>> sample = SampleAccount(account, rate=0.01)
    >>> sample.members(10_000).size < 300
    True
    >>> sample.pay(Gaussian(2.0))
    """

    def __init__(self, parent: Account, *, rate: float) -> None:
        declared = replace(parent.declared, relation=Relation.ADD_REMOVE)
        super().__init__(
            epsilon=Fraction(0),
            square=Fraction(0),
            reserve=Fraction(0),
            noise=parent._noise,
            declared=declared,
            parent=parent,
        )
        _validate.probability(rate=rate)
        self.rate = float_up(rate)
        self._asked = False

    def members(self, n_users: int) -> Integers:
        """Return the indices of the sampled users; one uniform integer below 2^32 decides each."""
        if self._asked:
            raise NumericalFailure("A sample is drawn once: ask for a fresh one.")
        self._asked = True
        if n_users == 0:
            return np.empty(0, dtype=np.int64)
        whole = 2 ** (32 * n_users)
        # Nobody is told who is in the sample, nor among how many: an auditor sees one secret draw.
        drawn = self._noise.sample("secret_sample", lambda n: n.uniform_below(whole), held=whole)
        bits = (drawn % whole).to_bytes(4 * n_users, "little")
        chosen = np.frombuffer(bits, dtype="<u4") < int(self.rate * 2.0**32)
        return np.asarray(np.flatnonzero(chosen), dtype=np.int64)

    def people(self, whole: People) -> People:
        """Return the users of the sample; only this account may release numbers about them."""
        crowd = whole._held_crowd()
        return whole._some_of(self.members(crowd.n_users), self.relation, self, ranked=True)

    def _check_people(self, sealed: Any) -> None:
        _refuse_others(sealed, self)

    def _check(self, event: Event, costs: DrawCosts) -> None:
        if self._drawn or self._parent is None:
            raise NumericalFailure("A second release on one secret sample: nothing was drawn.")
        self._parent._check(Subsampled(event, self.rate), (None, None, Fraction(0)))

    def _write(self, event: Event, costs: DrawCosts) -> None:
        self._drawn[event] += 1
        if self._parent is not None:
            self._parent._write(Subsampled(event, self.rate), (None, None, Fraction(0)))


class OwnRowsAccount(Account):
    """The account of some rows; it cannot release numbers about other people.

    >>> OwnRowsAccount.for_event(Pure(0.5)).left
    Fraction(1, 2)
    """

    def _check_people(self, sealed: Any) -> None:
        _refuse_others(sealed, self)


class GroupAccount(Account):
    """The account of one of several groups of users that have nobody in common.

    A user is in one group, so all groups together cost what the costliest of them costs. A draw is
    recorded in the account of the fit only as far as it makes its group the costliest.

    >>> account = Account.open(epsilon=1.0)
    >>> first, second = disjoint_groups(account, 2)
    >>> _ = first.pay(Fraction(1, 2)), second.pay(Fraction(1, 2)), second.pay(Fraction(1, 4))
    >>> account.left
    Fraction(1, 4)
    """

    def __init__(self, parent: Account, others: list[GroupAccount]) -> None:
        super().__init__(
            epsilon=parent.left,
            square=parent.square_left,
            reserve=parent.reserve,
            noise=parent._noise,
            declared=parent.declared,
            parent=parent,
        )
        self._others = others
        self._is_planned = False

    @property
    def left(self) -> Fraction:
        """The remaining pure epsilon, including what the costliest group has already paid."""
        parent = Fraction(0) if self._parent is None else self._parent.left
        own = self.epsilon - self._pure if self._pure_only else Fraction(0)
        return min(own, parent + self._covered(lambda group: group._pure))

    def _units_left(self) -> int:
        """Return the remaining part of mu squared, including what the costliest group has paid."""
        parent = 0 if self._parent is None else self._parent._units_left()
        own = max(0, self._square - self._squares)
        return min(own, parent + self._covered(lambda group: group._squares))

    def _covered(self, spent: Callable[[GroupAccount], Number]) -> Number:
        """Return how much more the costliest group has paid; draws up to it cost nothing more."""
        return max(spent(self), *map(spent, self._others)) - spent(self)

    def reserve_chain(self, event: Event) -> None:
        """Reserve the account for one chain in each group; see :meth:`Account.reserve_chain`."""
        parent = self._parent
        if parent is None or parent._plan or parent._is_begun(self._others) or self._drawn:
            raise ParameterError("Expected a plan before anything is drawn, for whole groups.")
        # What the fit has set aside is for everybody, beside the chains.
        self._parent, self.aside = None, parent.aside
        try:
            super().reserve_chain(event)
        finally:
            self._parent, self.aside = parent, Fraction(0)
        # Everything goes to chains that were priced as a whole, one for each group.
        self._is_planned = True
        parent.epsilon = parent.square = parent.reserve = Fraction(0)

    def _check_people(self, sealed: Any) -> None:
        _refuse_others(sealed, self)

    def _more(self, costs: DrawCosts) -> DrawCosts:
        """Return how far a draw raises the cost of this group above that of the costliest group."""
        pure, square, failures = costs
        most_pure = max(other._pure for other in self._others)
        most_square = max(other._squares for other in self._others)
        most_failures = max(other._failures for other in self._others)
        return (
            None if pure is None else max(Fraction(0), self._pure + pure - most_pure),
            None if square is None else max(0, self._squares + square - most_square),
            max(Fraction(0), self._failures + failures - most_failures),
        )

    def _ask_parent(self, event: Event, costs: DrawCosts) -> None:
        if not self._is_planned:
            super()._ask_parent(event, self._more(costs))

    def _write(self, event: Event, costs: DrawCosts) -> None:
        more = self._more(costs)
        self._drawn[event] += 1
        self._spend(event, costs)
        if self._parent is not None and not self._is_planned:
            self._parent._spend(event, more)


class SharedAccount(Account):
    """The account of several releases about the same users; each borrows a part of the budget.

    A part is priced separately. The epsilons and deltas of all parts add up to at most the budget
    of the account. It draws nothing itself, and its event shows everything that was drawn.

    >>> account = SharedAccount.open(epsilon=1.0, delta=1e-6)
    >>> _ = account.lend(epsilon=0.75, delta=1e-6).pay(Gaussian(9.0))
    >>> account.left, account.event
    (Fraction(1, 4), Gaussian(noise_multiplier=9.0))
    """

    def __init__(self, **opened: Any) -> None:
        super().__init__(**opened)
        self._lent: list[Account] = []
        self._delta_left = exact(self.declared.delta)

    @property
    def left(self) -> Fraction:
        """The epsilon that was not lent."""
        return self.epsilon

    @property
    def event(self) -> Event:
        """The event of all draws from all parts."""
        with self._lock:
            drawn = [event for part in self._lent if (event := part.event) != Nothing()]
        return compose_events(drawn) if drawn else Nothing()

    def lend(
        self,
        *,
        epsilon: float | Fraction,
        delta: float | Fraction = 0.0,
        relation: Relation = Relation.REPLACE,
        **others: Any,
    ) -> Account:
        """Open an account for a part of the budget; refuse one that does not fit."""
        self.refuse_elsewhere()
        if relation is not self.relation:
            raise RelationMismatchError(
                f"Expected a part for neighbours that {self.relation.value}, as the whole "
                f"account, got neighbours that {relation.value}."
            )
        with self._lock:
            if exact(epsilon) > self.epsilon or exact(delta) > self._delta_left:
                raise NumericalFailure(
                    f"A part of epsilon={float(epsilon):.6g}, delta={float(delta):.6g} does not "
                    f"fit into what is left of epsilon={self.declared.epsilon:.6g}, "
                    f"delta={self.declared.delta:.6g}: nothing was drawn. Please report this."
                )
            part = Account.open(
                epsilon=epsilon, delta=delta, relation=relation, noise=self._noise, **others
            )
            part._whole = self._whole
            self.epsilon -= exact(epsilon)
            self._delta_left -= exact(delta)
            self._lent.append(part)
        return part

    def _is_begun(self, besides: Sequence[Account] = ()) -> bool:
        return bool(self._lent) or super()._is_begun(besides)

    def _check(self, event: Event, costs: DrawCosts) -> None:
        raise NumericalFailure(
            "A draw from an account that only lends: nothing was drawn. Please report this."
        )


def halved(
    whole: People, groups: Sequence[GroupAccount], *, random_state: RandomState
) -> tuple[People, People]:
    """Return two halves of the users, each with its own account, by a public draw for each user.

    Under replacement ids are public, and so are the halves. Under add or remove a new user does not
    change the half of anybody else.
    """
    sides = whole._held_crowd().split(0.5, relation=whole.relation, random_state=random_state)
    first, second = groups
    return People(sides[0], whole.relation, among=first), People(
        sides[1], whole.relation, among=second
    )


def cut_by_draws(
    whole: People,
    sizes: Sequence[int],
    groups: Sequence[Account],
    *,
    random_state: RandomState,
) -> list[People]:
    """Return groups of public sizes, by the order of a public draw for each user.

    It works only if the number of users is public.
    """
    if sum(sizes) > whole.n_users:
        raise ParameterError(f"Expected at most {whole.n_users} users, got {sum(sizes)}.")
    order = np.argsort(whole._held_crowd().public_draws(random_state), kind="stable")
    ends = np.cumsum([0, *sizes])
    return [
        whole._some_of(order[start:stop], whole.relation, group, ranked=False)
        for start, stop, group in zip(ends[:-1], ends[1:], groups, strict=True)
    ]


def fold_by_fold(
    crowd: Crowd, relation: Relation, groups: Sequence[Account], *, random_state: RandomState
) -> Iterator[tuple[Crowd, People]]:
    """Yield for each fold all other users, to fit a model, and the fold with its account.

    Folds are formed as by :func:`halved`: of equal size if ids are public, otherwise by each user's
    own draw.
    """
    draws = crowd.public_draws(random_state)
    if relation is Relation.REPLACE:
        fold = np.argsort(np.argsort(draws, kind="stable"), kind="stable") % len(groups)
    else:
        fold = np.floor(draws * len(groups)).astype(np.int64)
    for each, group in enumerate(groups):
        test = People(crowd.take(np.flatnonzero(fold == each)), relation, among=group)
        yield crowd.take(np.flatnonzero(fold != each)), test


def sum_of_groups(parts: Sequence[Sealed]) -> Sealed:
    """Add up sealed vectors about groups without a common user; one user changes one vector."""
    owners = [part.among for part in parts]
    first = owners[0]
    together = isinstance(first, GroupAccount) and all(each in first._others for each in owners)
    if not together or len(set(map(id, owners))) < len(owners):
        raise SealedError("Expected numbers about groups of one account that share nobody.")
    moves = [part.moves for part in parts]
    if any(each != moves[0] for each in moves):
        raise SealedError("Expected the same bound on what a user adds in every group.")
    if len({part.shape for part in parts}) > 1:
        raise SealedError("Expected vectors of one shape in every group.")
    total = opened(parts[0])
    for part in parts[1:]:  # saturating at 62 bits: nothing wraps around
        added = np.clip(opened(part), 1 - SUM_LIMIT, SUM_LIMIT - 1)
        total = np.clip(total + added, -SUM_LIMIT, SUM_LIMIT)
    whole = first._parent if isinstance(first, GroupAccount) else None
    return seal(total, moves[0], parts[0].relation, whole)


def _refuse_others(sealed: Any, account: Account) -> None:
    if sealed.among is not account:
        raise SealedError(
            "This account pays for a part of the users, and the number is about others: ask the "
            "people of the part."
        )


def disjoint_groups(account: Account, count: int) -> list[GroupAccount]:
    """Return an account for each of ``count`` groups of users that have nobody in common.

    The group of a user must depend on that user alone (for example on a public id), so that nobody
    changes groups when somebody else is replaced.
    """
    if account._parent is not None:
        raise ParameterError("Expected the account of a whole fit: groups write down nowhere else.")
    groups: list[GroupAccount] = []
    groups += [GroupAccount(account, groups) for _ in range(count)]
    account._groups.append([*groups])
    return groups


def prepay(
    account: Account, *, epsilon: float | Fraction, delta: float | Fraction = 0, times: int = 1
) -> None:
    """Charge releases that open accounts of their own, such as fits of whole estimators.

    >>> account = Account.open(epsilon=1.0)
    >>> prepay(account, epsilon=Fraction(1, 4), times=3)
    >>> account.left
    Fraction(1, 4)
    """
    _validate.positive_integer(times=times)
    for _ in range(times):
        if delta:
            account.pay(Approximate(float_up(epsilon), float_up(delta)))
        else:
            account.pay(exact(epsilon))
