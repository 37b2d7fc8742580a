"""The released model of people and their records, and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.public_randomness import RandomState, public_generator
from quorate.exceptions import ParameterError
from quorate.mechanisms.stated_error import StatedError
from quorate.synth.columns import SynthColumn
from quorate.synth.tree import Tree

__all__ = ["PairError", "RepeatRate", "SynthError", "SyntheticModel"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Of so many made-up people it is computed how often their values repeat.
_TRIED = 4096


@dataclass(frozen=True, kw_only=True)
class PairError:
    """Distance of the model's table of two columns from that of all records, in total variation.

    Attributes
    ----------
    columns : tuple of str
    distance : float
        The measured distance, with noise.
    bound : float
        Upper bound on the true distance; it holds for all pairs together with probability 95 %.

    Examples
    --------
    >>> PairError(columns=("age", "city"), distance=0.03, bound=0.08).bound
    0.08
    """

    columns: tuple[str, str]
    distance: float
    bound: float


@dataclass(frozen=True, kw_only=True)
class RepeatRate:
    """How often two records of one person agree in a column, averaged over people with two.

    Attributes
    ----------
    column : str
    people : float
        The measured rate, with noise; NaN if too few people have two records.
    error : float
        Standard deviation of the noise.
    model : float
        The same rate for synthetic people.
    chance : float
        How often records of two different synthetic people agree.

    Examples
    --------
    >>> rate = RepeatRate(column="city", people=0.9, error=0.01, model=0.91, chance=0.5)
    >>> rate.people > rate.chance
    True
    """

    column: str
    people: float
    error: float
    model: float
    chance: float


@dataclass(frozen=True, kw_only=True)
class SynthError(StatedError):
    """How far the tables of two columns may be from those of the people's records.

    Attributes
    ----------
    confidence, bound, worst, coordinates, covers
        As in all stated errors: ``bound`` is for the worst pair, ``coordinates`` are the bounds of
        all pairs.
    pairs : tuple of PairError
    records_cap : float
        Errors are relative to records of which each person contributes at most this many. The
        effect of further records is included in the bounds.

    Examples
    --------
    >>> pair = PairError(columns=("age", "city"), distance=0.03, bound=0.08)
    >>> print(
    ...     SynthError(
    ...         confidence=0.95, bound=0.08, coordinates=(0.08,), worst=1.0, covers="All.",
    ...         pairs=(pair,), records_cap=8.0,
    ...     )
    ... )
    total variation of each table of two columns at most 0.08 (95%)
    """

    confidence: float
    bound: float
    coordinates: tuple[float, ...]
    worst: float
    covers: str
    pairs: tuple[PairError, ...]
    records_cap: float

    def __str__(self) -> str:
        return (
            f"total variation of each table of two columns at most {self.bound:.3g} "
            f"({self.confidence:.0%})"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticModel:
    """Synthetic people: their numbers of records, the contents, and how often values repeat.

    A person's number of records is drawn first. The person then has a typical record, drawn from a
    tree of dependences in which the number of records is a column. Each record keeps each of the
    typical values with its own probability, ``stays``, and draws the other values anew, given those
    that it keeps. So every single record has the distribution of the tree.

    Attributes
    ----------
    columns : tuple of SynthColumn
    levels : tuple of tuples of int
        The codes that form each level of a column of the tree; the last entry is for the numbers of
        records.
    within : tuple of arrays
        The share of each code of a column within its level.
    tree : Tree
    edges : tuple of float
        A person in bin j has more than ``edges[j - 1]`` records and at most ``edges[j]``.
    people : tuple of float
        The number of people in each of these bins.
    stays : tuple of float
        For each column, the probability that a record keeps the person's typical value.

    Examples
    --------
    >>> from quorate.synth.tree import Forest
    >>> city = SynthColumn(name="city", labels=("Bonn", "Ulm"))
    >>> pet = SynthColumn(name="pet", labels=("cat", "dog"))
    >>> likes = np.array([[[0.9, 0.1], [0.2, 0.8]]])
    >>> model = SyntheticModel(
    ...     columns=(city, pet),
    ...     levels=((0, 1), (0, 1), (0,)),
    ...     within=(np.ones(2), np.ones(2)),
    ...     tree=Tree(
    ...         Forest((2, 0, 1), (-1, 2, 0)),
    ...         -1,
    ...         np.ones(1),
    ...         (np.ones((1, 1, 1)), np.full((1, 1, 2), 0.5), likes),
    ...     ),
    ...     edges=(3.0,),
    ...     people=(50.0,),
    ...     stays=(1.0, 0.0),
    ... ).checked()
    >>> people = model.sample(2, random_state=2)
    >>> people["user"].to_pylist(), people["city"].to_pylist()
    ([0, 1, 1, 1], ['Bonn', 'Ulm', 'Ulm', 'Ulm'])
    """

    columns: tuple[SynthColumn, ...]
    levels: tuple[tuple[int, ...], ...]
    within: tuple[Floats, ...]
    tree: Tree
    edges: tuple[float, ...]
    people: tuple[float, ...]
    stays: tuple[float, ...]

    @property
    def n_users(self) -> int:
        """The approximate number of people."""
        return max(1, round(sum(self.people)))

    def sample(self, users: int | None = None, *, random_state: RandomState = None) -> Any:
        """Return a table of synthetic records.

        Its first column, ``user``, identifies the synthetic person.
        """
        import pyarrow as pa

        if users is not None:
            _validate.positive_integer(users=users)
        generator = public_generator(random_state)
        people = self.n_users if users is None else int(users)
        owners, codes, kept = self.records(people, generator)
        names = [column.name for column in self.columns]
        user = "user"
        while user in names:
            user += "_"
        found: dict[str, Any] = {user: owners}
        for place, column in enumerate(self.columns):
            # A value that is kept is kept to the last digit.
            typical = generator.random(people)[owners]
            drawn = np.where(kept[:, place], typical, generator.random(len(codes)))
            found[column.name] = column.values(codes[:, place], drawn)
        return pa.table(found)

    def records(
        self, users: int, generator: Any, *, counts: Integers | None = None
    ) -> tuple[Integers, Integers, NDArray[np.bool_]]:
        """Return the owners of the records, their codes, and which values are typical.

        ``counts`` are the people's numbers of records, if they should not be drawn.
        """
        shares = np.array(self.people) / sum(self.people)
        bins = generator.choice(len(shares), size=users, p=shares)
        if counts is None:
            low, high = np.array([0.0, *self.edges])[bins], np.array(self.edges)[bins]
            drawn = low + np.ceil((high - low) * (1.0 - generator.random(users)))
            counts = np.clip(drawn, low + 1, high).astype(np.int64)
        known = np.full((users, self.tree.nodes), -1, dtype=np.int64)
        known[:, -1] = np.array(self.levels[-1])[bins]
        typical = self.tree.draw(known, generator)
        values = self._codes(typical, generator)
        owners = np.repeat(np.arange(users), counts)
        kept = generator.random((len(owners), len(self.columns))) < np.array(self.stays)
        told = np.concatenate([kept, np.ones((len(owners), 1), np.bool_)], axis=1)
        levels = self.tree.draw(np.where(told, typical[owners], -1), generator)
        return owners, np.where(kept, values[owners], self._codes(levels, generator)), kept

    def repeats(self, stays: Sequence[float], generator: Any) -> Floats:
        """Return how often two records of a synthetic person agree, for people with two or more."""
        several = tuple(
            0.0 if high < 2 else held for held, high in zip(self.people, self.edges, strict=True)
        )
        several = several if sum(several) > 0 else self.people
        changed = SyntheticModel(**{**vars(self), "stays": tuple(stays), "people": several})
        _, codes, _ = changed.records(_TRIED, generator, counts=np.full(_TRIED, 2))
        return np.asarray((codes[::2] == codes[1::2]).mean(axis=0))

    def tables(self, tree: Tree) -> dict[tuple[int, int], Floats]:
        """Return the tables of all pairs of columns, as shares, that ``tree`` implies."""
        inside = []
        for levels, within in zip(self.levels, self.within, strict=False):
            spread = np.zeros((max(levels) + 1, len(levels)))
            spread[list(levels), np.arange(len(levels))] = within
            inside.append(spread)
        size = len(self.columns)
        return {
            (a, b): inside[a].T @ table @ inside[b]
            for (a, b), table in tree.pairs().items()
            if max(a, b) < size
        }

    def _codes(self, levels: Integers, generator: Any) -> Integers:
        """Return a code for each level, drawn by the shares within the level."""
        found = np.empty((len(levels), len(self.columns)), dtype=np.int64)
        for place, within in enumerate(self.within):
            own = np.array(self.levels[place])
            order = np.argsort(own, kind="stable")
            ends = np.cumsum(within[order])
            last = np.searchsorted(own[order], levels[:, place], side="right") - 1
            first = np.searchsorted(own[order], levels[:, place], side="left")
            at = levels[:, place] + generator.random(len(levels))
            found[:, place] = order[np.clip(np.searchsorted(ends, at, side="right"), first, last)]
        return found

    def checked(self) -> SyntheticModel:
        """Return the model; refuse one whose parts do not fit together."""
        sizes = [column.size for column in self.columns] + [len(self.edges)]
        fits = [len(levels) == size for levels, size in zip(self.levels, sizes, strict=True)]
        fits += [set(levels) == set(range(max(levels) + 1)) for levels in self.levels]
        fits += [len(w) == size for w, size in zip(self.within, sizes, strict=False)]
        fits += [len(self.within) == len(self.columns) == len(self.stays)]
        fits += [len(self.people) == len(self.edges), sum(self.people) > 0, min(self.people) >= 0]
        fits += [all(0 <= stay <= 1 for stay in self.stays), self.tree.fits(self._widths)]
        for levels, within in zip(self.levels, self.within, strict=False):
            sums = np.bincount(levels, weights=within)
            fits += [bool((within >= 0).all() and np.allclose(sums, 1.0))]
        if not all(fits):
            raise ParameterError("Expected the parts of one model of synthetic people.")
        return self

    @property
    def _widths(self) -> tuple[int, ...]:
        return tuple(max(levels) + 1 for levels in self.levels)
