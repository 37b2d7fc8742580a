"""Users whose rows stay inside the core: only public facts and sealed answers come out.

An estimator gets :class:`People` and makes queries. A query consists of a function of one user's
records and a bound. The function runs here, where the rows are stored. Its result is clipped and
rounded here, and the answer is sealed together with its sensitivity.

The duty of a function is that of every statistic: its row for a user is, to the last bit, a
function of this user's records and of public numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.core.alone import records_of, refuse_company, refuse_neighbours
from quorate.core.bounds.grid import Grid
from quorate.core.compiled import CompiledProgram
from quorate.core.forgetting import forgetting
from quorate.core.guarantees import Relation
from quorate.core.moves import Moves
from quorate.core.placed import PlacedSum, Places, Program, made_up_batch
from quorate.core.public_randomness import RandomState
from quorate.core.questions.ballots import Ballots, VotesOf, ballots_of
from quorate.core.questions.cells import AddedCells, CellsOf
from quorate.core.questions.lines import ViewOf, Walk, walk_of
from quorate.core.questions.pairs import AddedDuels, Blocks, Verdict, refuse_unproved, worst_duels
from quorate.core.questions.scores import AddedUp, Judgement, check_limits
from quorate.core.sealed import Sealed, SealedRows, seal, seal_rows, seal_total
from quorate.core.users.crowd import (
    Crowd,
    Statistic,
    call_quietly,
    check_statistic,
    counts_up_to,
    encode_users,
    is_rows,
    joined_rows,
    sum_users,
    told,
)
from quorate.core.users.data import UserData, ordered_users
from quorate.exceptions import ParameterError, SchemaError, SealedError

__all__ = ["People", "PerUser"]

Integers = NDArray[np.int64]
# One row of numbers, or one number, for each user.
PerUser = Callable[[UserData], NDArray[Any]]
WordsOf = Callable[[NDArray[Any]], NDArray[np.uint64]]

# Vectors of a part of the users, as floats, stay below this number of entries.
_PART = 2**20
# Vectors of all users that are kept rather than computed again: at most 128 megabytes.
_KEPT = 2**24
# Under add/remove nothing public follows the number of users: grids have room for this many.
_MANY_USERS = 2**31


class People:
    """Users with all their records, wherever they are stored, under one neighbouring relation.

    Parameters
    ----------
    crowd : UserData or another crowd
    relation : Relation

    Examples
    --------
    >>> from quorate.core.bounds.grid import Interval
    >>> data = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "ann"])
    >>> people = People(data, Relation.REPLACE)
    >>> people
    People(n_features=1, target=False, unit='user')
    >>> people.counts(UserData.record_counts, [1, 2])
    Sealed(shape=(2,), one user moves a coordinate by at most 1)
    """

    __slots__ = ("__crowd", "among", "relation")

    def __init__(self, crowd: Crowd, relation: Relation, *, among: object | None = None) -> None:
        if not isinstance(crowd, Crowd):
            raise ParameterError(f"Expected users, got {type(crowd).__name__}.")
        self.__crowd = crowd
        self.relation = relation
        self.among = among

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if not name.startswith("_")]

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, name):
            raise SealedError("Whom People are about, and which neighbours, cannot be changed.")
        object.__setattr__(self, name, value)

    # Public facts.

    @property
    def n_users(self) -> int:
        """The number of users: public under replacement, and refused otherwise."""
        if self.relation is not Relation.REPLACE:
            raise SealedError(
                "The number of users is private under addition and removal. Release a count, or "
                "use size_bound, which is public."
            )
        return self.__crowd.n_users

    @property
    def size_bound(self) -> int:
        """A public upper bound on the number of users; sums of so many users cannot overflow."""
        return self.__crowd.n_users if self.relation is Relation.REPLACE else _MANY_USERS

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.__crowd.n_features

    @property
    def has_target(self) -> bool:
        """Whether there are targets."""
        return self.__crowd.has_target

    @property
    def unit(self) -> str:
        """The word for the protected unit."""
        return self.__crowd.unit

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if the table had any."""
        return self.__crowd.feature_names

    def __repr__(self) -> str:
        known = f"n_features={self.n_features}, target={self.has_target}, unit={self.unit!r}"
        return f"People({known})"

    # Other people, by public rules.

    def derive(self, change: Callable[[UserData], UserData], *, keep: bool = False) -> People:
        """Return the same users with other records: ``change`` is applied to each part in place."""
        refuse_company(change, partial(records_of, change), self.__crowd.nobody())
        nothing = call_quietly(lambda: change(self.__crowd.nobody()).n_features)
        if nothing is None:
            raise SchemaError("Expected a change that nobody's records can undergo as well.")
        with forgetting(change):
            return self._of(self.__crowd.derive(_SameUsers(change, nothing), keep=keep))

    def capped(
        self, records: int, *, random_state: RandomState = None, words_of: WordsOf | None = None
    ) -> People:
        """Return the same users with at most this many of their records, drawn by a public seed.

        Which records of a user are kept depends on this user's records and id and on the seed
        alone. ``words_of`` returns the text of labels that rows hold as indices into a private
        list.
        """
        return self._of(self.__crowd.cap(records, random_state=random_state, words_of=words_of))

    def keeping(self, vectors: PerUser, *, dimension: int) -> tuple[People, PerUser]:
        """Return the same users and a function whose vectors are computed only once.

        The arguments are returned unchanged if vectors of ``size_bound`` users might not fit into
        memory. Under add/remove that is always so: which of the two happens can be seen, and must
        not depend on the number of users.
        """
        crowd = self.__crowd
        if not isinstance(crowd, UserData) or self.size_bound * dimension > _KEPT:
            return self, vectors
        refuse_company(vectors, _Rows(vectors), crowd.nobody())
        with forgetting(vectors):
            found = call_quietly(lambda: _in_batches(crowd, vectors, dimension))
        if found is None or found.shape != (crowd.n_users, dimension):
            return self, vectors  # what is wrong is told where the vectors are asked for
        each = np.arange(crowd.n_users + 1)
        held = ordered_users(found, None, each, crowd.keys(), crowd.unit, None)
        return self._of(held), _own_rows

    # Questions.

    def total(self, statistic: Statistic, grid: Grid) -> Sealed:
        """Add up one bounded vector per user; its sensitivity is proved by the grid."""
        check_statistic(statistic, grid)
        work = partial(sum_users, statistic=statistic, grid=grid)
        if getattr(statistic, "batched", True):
            halves = self._added(statistic, _InBatches(work, grid.bound.dimension))
        else:
            halves = self._added(statistic, work, whole=True)
        return seal_total(grid.join(halves), grid, self.relation, self.among)

    def cell_totals(self, cells: CellsOf, grid: Grid) -> Sealed:
        """Add up the users' cells in each of some groups; each kind of number has one length.

        ``cells`` gives the values of each user in each group; ``grid`` is one of
        :class:`~quorate.core.bounds.blocks.Blocks`, which gives the sensitivity.
        """
        work = AddedCells(cells, grid)
        grid.check_sum(self.size_bound)
        refuse_company(cells, work, self.__crowd.nobody(), added=True)
        with forgetting(cells):
            found = self.__crowd.add_up(work, whole=True)
        return seal_total(found, grid, self.relation, self.among)

    def placed_total(self, program: Program, grid: Grid, places: Places, *, word: int) -> Sealed:
        """Add up one bounded vector per user, computed in batches of fixed public shapes.

        The position of a user in a batch depends on the user's id alone, or on public ids, so that
        nobody changes a bit of another user's vector (:mod:`quorate.core.placed`). The sensitivity
        is proved by the grid. ``word`` is public randomness.
        """
        # Of a part of the users not even the number is public.
        everybody = getattr(self.among, "_whole", None) is self.among
        public = self.relation is Relation.REPLACE and everybody
        if not isinstance(program, CompiledProgram):  # which keeps users apart by itself
            width, length = places.width, places.lengths[0]
            refuse_neighbours(program, made_up_batch, (width, length, self.n_features))
        ranks = np.sort(self.__crowd.keys()) if public else None
        with forgetting(program):
            halves = self.__crowd.add_up(PlacedSum(program, grid, places, ranks, word), whole=True)
        return seal_total(grid.join(halves), grid, self.relation, self.among)

    def counts(self, values: PerUser, thresholds: ArrayLike, *, dimension: int = 1) -> Sealed:
        """Count the users whose number is at most each of the increasing public thresholds.

        NaN counts as above all thresholds. ``dimension`` is the number of values per user that the
        function stores in memory.
        """
        public = np.asarray(thresholds, dtype=np.float64)
        found = self._added(values, _InBatches(_Counted(values, public), dimension))
        moves = Moves.of_counts(public.size, rising=self.relation is Relation.ADD_REMOVE)
        return seal(found, moves, self.relation, self.among)

    def everybody(self) -> Sealed:
        """Return the sealed number of users."""
        number = [self.__crowd.n_users]
        return seal(number, Moves.of_everybody(self.relation), self.relation, self.among)

    def tally(self, labels: PerUser, size: int, *, labellings: int = 1) -> Sealed:
        """Count the users with each label 0, 1, ... below ``size``; other labels are not counted.

        With several ``labellings`` users have a row of labels, one in each, and the tallies are put
        one after the other; one user changes each of them as much as a single tally.
        """
        found = self._added(labels, _Tallied(labels, size, labellings))
        moves = Moves.of_tally(self.relation, labellings=labellings)
        return seal(found, moves, self.relation, self.among)

    def scores(self, judgement: Judgement) -> Sealed:
        """Add up the users' scores of each of many candidates, clipped to a public range."""
        check_limits(judgement)
        whole, work = not getattr(judgement, "batched", True), AddedUp(judgement)
        refuse_company(judgement, work, self.__crowd.nobody(), added=True)
        with forgetting(judgement):
            found = work.joined(self.__crowd.add_up(work, whole=whole))
        low, high = judgement.low, judgement.high
        moves = Moves.of_judgements(low, high, coordinates=found.size, relation=self.relation)
        return seal(found, moves, self.relation, self.among)

    def duels(self, blocks: Blocks, size: int, verdict: Verdict) -> Sealed:
        """Let users compare all pairs of ``size`` candidates; return twice the worst of each.

        Only the verdicts of the core are accepted, because their limits are proved.
        """
        refuse_unproved(verdict)
        whole, work = not getattr(blocks, "batched", True), AddedDuels(blocks, size, verdict)
        refuse_company(blocks, work, self.__crowd.nobody(), added=True)
        with forgetting(blocks, verdict.judge):
            table = self.__crowd.add_up(work, whole=whole)
        alone = np.ones(size, dtype=np.bool_)
        losses = worst_duels(table, alone, verdict, n_users=self.__crowd.n_users)
        return seal(losses, verdict.moves(size, self.relation), self.relation, self.among)

    def walk(self, view: ViewOf) -> Walk:
        """Return these people along a line, for queries about scores at all its points."""
        return walk_of(self, self.__crowd, view)

    def ballots(self, choice: Callable[[UserData], NDArray[Any]]) -> Ballots:
        """Return one key per user, in the order of the users' own keys."""
        votes = VotesOf(choice)
        refuse_company(choice, votes.named, self.__crowd.nobody())
        with forgetting(choice):
            cast = self.__crowd.map(votes)
        order = np.argsort(self.__crowd.keys(), kind="stable")
        return ballots_of(cast, order, self.relation, self.among)

    def each(self, values: PerUser) -> SealedRows:
        """Return one number, or one row of numbers, for each user."""
        empty = np.asarray(values(self.__crowd.nobody()))
        parts = self._rows(values, _Rows(values))
        return seal_rows(joined_rows([empty, *parts]), self.relation, among=self.among)

    def each_in_order(self, values: PerUser, *, random_state: RandomState) -> SealedRows:
        """Return one row per user, in an order of the ids that is drawn with a public seed."""
        order = np.argsort(self.__crowd.public_draws(random_state), kind="stable")
        empty = np.asarray(values(self.__crowd.nobody()))
        rows = joined_rows([empty, *self._rows(values, _Rows(values))])
        return seal_rows(rows[order], self.relation, among=self.among)

    def encoded(self, statistic: Statistic, grid: Grid) -> SealedRows:
        """Return the bounded vector of each user, in steps of ``grid``."""
        check_statistic(statistic, grid)
        parts = self._rows(statistic, partial(encode_users, statistic=statistic, grid=grid))
        empty = np.empty((0, grid.bound.dimension), np.int64)
        return seal_rows(np.concatenate([empty, *parts]), self.relation, among=self.among)

    # Asking: what is asked keeps nothing, and says of a user the same whoever else is there.

    def _added(self, function: PerUser, work: PerUser, *, whole: bool = False) -> Integers:
        refuse_company(function, _Rows(function), self.__crowd.nobody())
        with forgetting(function):
            return self.__crowd.add_up(work, whole=whole)

    def _rows(self, function: PerUser, work: PerUser) -> list[NDArray[Any]]:
        refuse_company(function, _Rows(function), self.__crowd.nobody())
        with forgetting(function):
            return self.__crowd.map(work)

    # For the core.

    def _some_of(
        self, places: Integers, relation: Relation, among: object, *, ranked: bool
    ) -> People:
        """Return some of the users; only the account ``among`` may release numbers about them."""
        crowd = self.__crowd
        chosen = crowd.take_ranked(places) if ranked else crowd.take(places)
        return People(chosen, relation, among=among)

    def _gathered(self, values: PerUser, ranks: Integers) -> NDArray[Any]:
        """Return the rows of a few users, numbered in the order of their keys."""
        return self.__crowd.gather(_Rows(values), ranks)

    def _of(self, crowd: Crowd) -> People:
        return People(crowd, self.relation, among=self.among)

    def _held_crowd(self) -> Crowd:
        """Return the crowd; only for modules of the core."""
        return self.__crowd

    def _refuse(self, *_: Any) -> NoReturn:
        raise SealedError(
            "People cannot be copied or saved: their rows stay inside. Keep the UserData instead."
        )

    __copy__ = __deepcopy__ = __getstate__ = _refuse

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        self._refuse()


@dataclass(frozen=True)
class _InBatches:
    """Adds up the results of ``work`` over batches of users, so that vectors need little memory."""

    work: Callable[[UserData], Integers]
    dimension: int

    def __call__(self, users: UserData) -> Integers:
        few = max(1, _PART // max(1, self.dimension))
        if users.n_users <= few:
            return self.work(users)
        return sum(map(self.work, users.batches(users=few)), start=self.work(users.nobody()))


@dataclass(frozen=True)
class _SameUsers:
    """Refuses a change of the set of users.

    If a user were split, or if the removal of a user were visible, the sensitivity would be larger.

    The number of features is public, so it must be that of a data set without users.
    """

    change: Callable[[UserData], UserData]
    n_features: int

    def __call__(self, part: UserData) -> UserData:
        changed = self.change(part)
        found, keys = changed.keys(), part.keys()
        if not (np.array_equal(found, keys) or np.array_equal(np.sort(found), np.sort(keys))):
            raise SchemaError("Expected the same users, each with other records.")
        if changed.n_features != self.n_features:
            raise SchemaError("Expected the number of features that an empty data set has.")
        return changed


@dataclass(frozen=True)
class _Rows:
    values: PerUser

    def __call__(self, part: UserData) -> NDArray[Any]:
        fits = partial(is_rows, size=part.n_users)
        return told(lambda: np.asarray(self.values(part)), "numbers, one row a user", fits)


@dataclass(frozen=True)
class _Counted:
    values: PerUser
    thresholds: NDArray[np.float64]

    def __call__(self, part: UserData) -> Integers:
        if part.n_users == 0:
            return np.zeros(len(self.thresholds), dtype=np.int64)
        found = _Rows(self.values)(part)
        if found.ndim != 1:
            raise SchemaError("Expected one number a user; what was found is withheld.")
        return counts_up_to(found, self.thresholds)


@dataclass(frozen=True)
class _Tallied:
    labels: PerUser
    size: int
    labellings: int

    def __call__(self, part: UserData) -> Integers:
        counts = np.zeros((self.labellings, self.size), dtype=np.int64)
        if part.n_users == 0:
            return counts.ravel()
        found = _Rows(self.labels)(part)
        if found.size != part.n_users * self.labellings:
            raise SchemaError("Expected one label a user; what was found is withheld.")
        for cells, own in zip(counts, found.reshape(part.n_users, -1).T, strict=True):
            inside = own[(own >= 0) & (own < self.size)].astype(np.int64)
            cells += np.bincount(inside, minlength=self.size)
        return counts.ravel()


def _in_batches(users: UserData, vectors: PerUser, dimension: int) -> NDArray[np.float64]:
    if users.n_records <= _PART:
        return np.asarray(vectors(users), dtype=np.float64)
    found = np.empty((users.n_users, dimension))
    start = 0
    for part in users.batches(_PART):
        found[start : start + part.n_users] = vectors(part)
        start += part.n_users
    return found


def _own_rows(users: UserData) -> NDArray[np.float64]:
    return users.X
