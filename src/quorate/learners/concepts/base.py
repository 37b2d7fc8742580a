"""The interface of concept classes: concepts, sizes, dimensions, and the mistakes of all users.

A *concept* is one rule that predicts 0 or 1; a *concept class* is a list of concepts that is fixed
before any data are read. Nothing in this package is private or draws noise. A learner takes
``mistakes`` (or, for huge ordered classes, ``mistake_events``), clips the contribution of each
user, and chooses privately.

Four public rules define the meaning of unusual values, so that no value of a record ever raises an
error:

- a record counts only if its label is 0 or 1 and none of its features is NaN; otherwise it is
  ignored, by every concept alike;
- a numeric feature outside the public domain of its class is clipped into it;
- a Boolean feature is true if it is greater than 0.5;
- when a concept *predicts*, a NaN is read as the smallest value (Boolean: false).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate._validate import is_of_caller
from quorate.core.users.crowd import call_quietly
from quorate.core.users.own_order import random_places, without_signs_of_zero
from quorate.core.users.public_choices import in_own_order
from quorate.exceptions import ParameterError, SchemaError
from quorate.learners.concepts.dimensions import Dimension
from quorate.learners.concepts.mistake_events import MistakeEvents, alone, joined

if TYPE_CHECKING:
    from quorate.core.users import UserData
    from quorate.learners.concepts.labelings import Labelings

__all__ = [
    "MAX_ENUMERATED",
    "Concept",
    "ConceptClass",
    "Constant",
    "LabelledRecords",
    "OrderedConceptClass",
    "as_features",
    "check_enumerable",
    "feature_names",
    "labelled_records",
]

# machine: more hypotheses than this are refused: one row of mistakes per user would fill 16 MB.
MAX_ENUMERATED = 2_000_000

# Cells (users x hypotheses) that one block of ``mistakes`` may work on: 64 MB of int64.
_BLOCK_CELLS = 2**23


@dataclass(frozen=True, eq=False)
class LabelledRecords:
    """The usable records with the index of their user, from which mistakes are counted.

    >>> records = LabelledRecords(
    ...     X=np.array([[3.0], [4.0]]), y=np.array([True, False]), user=np.array([1, 1]), n_users=2
    ... )
    >>> records.counts()
    array([0, 2])
    """

    X: NDArray[Any]
    y: NDArray[np.bool_]
    user: NDArray[np.int64]
    n_users: int

    def counts(self) -> NDArray[np.int64]:
        """Count the records of each user."""
        return np.bincount(self.user, minlength=self.n_users).astype(np.int64, copy=False)

    def count_by_cell(self, cell: NDArray[np.int64], *, n_cells: int) -> NDArray[np.int64]:
        """Count label 1 minus label 0 for each user (rows) and each cell (columns)."""
        key = self.user * n_cells + cell
        votes = np.bincount(
            key, weights=np.where(self.y, 1.0, -1.0), minlength=self.n_users * n_cells
        )
        return votes.astype(np.int64).reshape(self.n_users, n_cells)

    def own_places(self) -> NDArray[Any]:
        """Return each user's record positions; their order depends on that user's records only."""
        offsets = np.searchsorted(self.user, np.arange(self.n_users + 1))
        return random_places(self.X.astype(np.float64), self.y.astype(np.float64), offsets)

    def positives(self) -> NDArray[np.int64]:
        """Count the records of each user with label 1."""
        return np.bincount(self.user[self.y], minlength=self.n_users).astype(np.int64, copy=False)


def labelled_records(
    users: UserData, *, n_features: int, start: int = 0, stop: int | None = None
) -> LabelledRecords:
    """Return the usable records of users ``start`` to ``stop``, by the rules of this module.

    >>> from quorate.core.users import UserData
    >>> x, y = [[1.0], [2.0], [float("nan")]], [1, 7, 0]
    >>> labelled_records(UserData.from_arrays(x, y, users=[5, 5, 6], missing=0.0), n_features=1).y
    array([ True, False])
    """
    if users.y is None:
        raise SchemaError("Expected labels of 0 and 1 in y, got none; pass y (or target=).")
    if users.X.shape[1] != n_features:
        raise SchemaError(
            f"Expected {n_features} features in X, got {users.X.shape[1]}; select the columns "
            "that the concept class describes."
        )
    stop = users.n_users if stop is None else stop
    offsets = np.asarray(users.offsets, dtype=np.int64)[start : stop + 1]
    rows = slice(int(offsets[0]), int(offsets[-1]))
    X, y = users.X[rows], np.asarray(users.y[rows])
    user = np.repeat(np.arange(stop - start, dtype=np.int64), np.diff(offsets))
    usable = (y == 0) | (y == 1)
    if X.dtype.kind == "f":
        usable &= ~np.isnan(X).any(axis=1)
    if not usable.all():
        X, y, user = X[usable], y[usable], user[usable]
    return LabelledRecords(X=X, y=y == 1, user=user, n_users=stop - start)


def as_features(X: ArrayLike, *, n_features: int) -> NDArray[Any]:
    """Return ``X`` as a table of ``n_features`` numeric columns, with -inf instead of NaN.

    >>> as_features([1.0, float("nan")], n_features=1)
    array([[  1.],
           [-inf]])
    """
    values = np.asarray(X)
    if values.dtype.kind not in "biuf":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise SchemaError(
                f"Expected numbers in X, got dtype={values.dtype}; encode them first."
            ) from None
    if values.ndim == 1 and n_features == 1:
        values = values[:, np.newaxis]
    if values.ndim != 2 or values.shape[1] != n_features:
        raise SchemaError(
            f"Expected a table with {n_features} columns in X, got "
            f"{values.shape[1] if values.ndim == 2 else values.ndim} "
            f"{'columns' if values.ndim == 2 else 'axes'}."
        )
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), -np.inf, values)
    return values


def check_enumerable(size: int, *, name: str, instead: str) -> None:
    """Refuse a class with too many hypotheses to list, and say what to use instead.

    >>> check_enumerable(3**20, name="Conjunctions(20)", instead="Use at most 13 features.")
    Traceback (most recent call last):
    ...
    quorate.exceptions.ParameterError: Expected at most 2000000 hypotheses, but Conjunctions(20)
    has 3486784401. Use at most 13 features.
    """
    if size > MAX_ENUMERATED:
        raise ParameterError(
            f"Expected at most {MAX_ENUMERATED} hypotheses, but {name} has {size}. {instead}"
        )


def feature_names(names: Sequence[str] | None, *, n_features: int) -> tuple[str, ...]:
    """Return the names of the features in printed rules: the given names, or x0, x1, and so on.

    >>> feature_names(None, n_features=3)
    ('x0', 'x1', 'x2')
    """
    if names is None:
        return tuple(f"x{j}" for j in range(n_features))
    if isinstance(names, str) or len(names) != n_features:
        raise ParameterError(f"Expected {n_features} names, one a feature, got names={names!r}.")
    return tuple(names)


class Concept(ABC):
    """One rule that predicts 0 or 1; it is immutable, hashable, and printed as a sentence.

    >>> print(Constant(1))
    Always predict 1.
    """

    @abstractmethod
    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict 0 or 1 for every row of ``X``."""

    @abstractmethod
    def __str__(self) -> str: ...

    @property
    def keeps_users_apart(self) -> bool:
        """Whether a prediction depends on its row alone; unknown for the caller's code."""
        return not is_of_caller(self)

    def predict_by_user(self, records: LabelledRecords) -> NDArray[np.bool_]:
        """Predict the label of every record, one user at a time if the rule requires it.

        If the caller's code raises an error or returns a wrong shape, all predictions for this user
        count as wrong.
        """
        if self.keeps_users_apart:
            return np.asarray(self.predict(records.X) == 1)
        found, order = ~records.y, records.own_places()
        X = without_signs_of_zero(records.X[order])
        # Records stand in the order of their users.
        starts = np.flatnonzero(np.diff(records.user, prepend=-1))
        for start, stop in pairwise([*starts.tolist(), len(found)]):
            alone = call_quietly(partial(self._truths, X[start:stop]))
            if alone is not None and alone.shape == (stop - start,):
                found[order[start:stop]] = alone
        return found

    def _truths(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(np.asarray(self.predict(X)).ravel() == 1)


@dataclass(frozen=True)
class Constant(Concept):
    """The rule that ignores the features.

    >>> Constant(0).predict([[3.0], [4.0]])
    array([0, 0])
    """

    label: int

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict ``label`` for every row of ``X``."""
        return np.full(len(np.asarray(X)), self.label, dtype=np.int64)

    def __str__(self) -> str:
        return f"Always predict {self.label}."


class ConceptClass(ABC):
    """A list of concepts, fixed before any data are read; all of it is public.

    Subclasses define ``size``, ``n_features``, ``concept`` and the closed form ``_count_mistakes``.
    If better bounds than log2 of the size are known, they define ``_vc`` and ``_littlestone`` too.

    >>> from quorate.learners.concepts import Thresholds
    >>> thresholds = Thresholds(0, 9)
    >>> thresholds.size, thresholds.vc_dimension, thresholds.littlestone_dimension
    (11, 1, 3)
    >>> print(thresholds.concept(4))
    Predict 1 if x >= 4, else 0.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of hypotheses |H|."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of columns of ``X``."""

    @abstractmethod
    def concept(self, index: int) -> Concept:
        """Return hypothesis number ``index`` (0 to ``size - 1``)."""

    @abstractmethod
    def _count_mistakes(self, records: LabelledRecords) -> NDArray[np.int64]:
        """Count mistakes, users in rows and hypotheses in columns, by the closed form."""

    @property
    def caveat(self) -> str | None:
        """Why a guarantee for this class is only idealized; None if it is exact.

        None if a user's mistakes depend, to the last bit, on that user's records only.
        """
        return None

    @property
    def keeps_users_apart(self) -> bool:
        """Whether a user's mistakes depend on that user's records alone.

        True for classes of this package; classes with the caller's code get one user at a time.
        """
        return not is_of_caller(self)

    @property
    def vc_dimension(self) -> int:
        """The VC dimension; an upper bound where ``vc_is_exact`` is false."""
        return self._vc.value

    @property
    def vc_is_exact(self) -> bool:
        """Whether ``vc_dimension`` is the dimension itself."""
        return self._vc.exact

    @property
    def littlestone_dimension(self) -> int:
        """The Littlestone dimension; an upper bound where ``littlestone_is_exact`` is false."""
        return self._littlestone.value

    @property
    def littlestone_is_exact(self) -> bool:
        """Whether ``littlestone_dimension`` is the dimension itself."""
        return self._littlestone.exact

    @property
    def _vc(self) -> Dimension:
        return Dimension.at_most_log2(self.size)

    @property
    def _littlestone(self) -> Dimension:
        return Dimension.at_most_log2(self.size)

    @property
    def errs_at_most_half(self) -> bool:
        """Whether some hypothesis is wrong about at most half of any records.

        This is true, for example, if two hypotheses always disagree; ``False`` means that it is
        unknown.
        """
        return False

    def predict(self, index: int, X: ArrayLike) -> NDArray[np.int64]:
        """Predict with hypothesis number ``index``."""
        return self.concept(index).predict(X)

    def predictions(self, X: ArrayLike) -> NDArray[np.int8]:
        """Predict with every hypothesis at once: rows of ``X`` in rows, hypotheses in columns."""
        values = as_features(X, n_features=self.n_features)
        table = np.empty((len(values), self.size), dtype=np.int8)
        step = max(1, _BLOCK_CELLS // self.size)
        for start in range(0, len(values), step):
            block = values[start : start + step]
            # A point that is a user with one record of label 0: a mistake is a prediction of 1.
            records = LabelledRecords(
                X=block,
                y=np.zeros(len(block), dtype=np.bool_),
                user=np.arange(len(block), dtype=np.int64),
                n_users=len(block),
            )
            table[start : start + step] = self._count_mistakes(records)
        return table

    def mistakes(self, users: UserData) -> NDArray[np.int32]:
        """Count each user's records that each hypothesis gets wrong: ``(n_users, size)``.

        Users are processed in blocks, so temporary arrays are small; the result has ``n_users *
        size`` cells. ``mistakes_in_batches`` never stores the whole result.
        """
        blocks = [block for _, block in self.mistakes_in_batches(users)]
        if not blocks:
            return np.zeros((0, self.size), dtype=np.int32)
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def mistakes_in_batches(
        self, users: UserData, *, max_users: int | None = None
    ) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Yield ``mistakes`` for consecutive blocks of users, each with its slice of users.

        Without ``max_users`` a block has about eight million cells.
        """
        if max_users is not None:
            _validate.positive_integer(max_users=max_users)
        step = max(1, _BLOCK_CELLS // self.size) if max_users is None else max_users
        alone = not self.keeps_users_apart
        step = 1 if alone else step
        users = in_own_order(users) if alone else users
        for start in range(0, users.n_users, step):
            stop = min(start + step, users.n_users)
            records = labelled_records(users, n_features=self.n_features, start=start, stop=stop)
            found = self._counted_alone(records) if alone else self._count_mistakes(records)
            yield slice(start, stop), found.astype(np.int32, copy=False)

    def _counted_alone(self, records: LabelledRecords) -> NDArray[np.int64]:
        """Count one user's mistakes with the caller's code; all count as wrong if it fails."""
        held = len(records.y)

        def counted() -> NDArray[np.int64]:
            said = np.asarray(self._count_mistakes(records), np.float64).reshape(1, self.size)
            return np.clip(np.nan_to_num(said, nan=held), 0, held).astype(np.int64)

        found = call_quietly(counted)
        return np.full((1, self.size), held, dtype=np.int64) if found is None else found

    def distinct_labelings(self, domain: ArrayLike) -> Labelings:
        """Reduce the class to its distinct labelings of a finite ``domain`` (K2)."""
        from quorate.learners.concepts.labelings import distinct_labelings

        return distinct_labelings(self, domain)

    def _labeling_candidates(self, domain: NDArray[Any]) -> Sequence[int] | None:
        """List hypotheses that give every labeling of ``domain``, or None for all of them."""
        return None

    def _check_index(self, index: int) -> int:
        _validate.non_negative_integer(index=index)
        if index >= self.size:
            raise ParameterError(f"Expected index < {self.size} (the size), got index={index}.")
        return int(index)


class OrderedConceptClass(ConceptClass):
    """A class of ordered hypotheses, along which mistakes change only at the records.

    ``mistake_events`` returns where and for whom they change: time and memory O(N log N) for N
    records, whatever ``size`` is.

    >>> from quorate.learners.concepts import Thresholds
    >>> isinstance(Thresholds(0, 2**40), OrderedConceptClass)
    True
    """

    @abstractmethod
    def mistake_events(self, users: UserData) -> MistakeEvents:
        """Describe every user's mistakes as a function of the hypothesis, by their changes."""

    def events_of(self, users: UserData) -> MistakeEvents:
        """Return ``mistake_events``; for a class written by the caller, one user at a time."""
        if self.keeps_users_apart:
            return self.mistake_events(users)
        users = in_own_order(users)
        held = labelled_records(users, n_features=self.n_features).counts().tolist()
        lone = [
            alone(
                call_quietly(partial(self.mistake_events, users.take([user]))),
                size=self.size,
                held=count,
            )
            for user, count in enumerate(held)
        ]
        return joined(lone, size=self.size)
