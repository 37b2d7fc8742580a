"""Texts, words or phrases that many people use, found without a list of candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from quorate import _validate
from quorate._validate import described, exact, is_frame
from quorate.core.account.account import Account
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.public_randomness import RandomState
from quorate.core.questions.held_keys import held_keys
from quorate.core.users.data import UserData
from quorate.core.users.grouping import mix
from quorate.data.by_group.conditions import as_conditions
from quorate.data.by_group.keys import LabelNumbers
from quorate.data.by_group.reading import Reading, Records, names_of, schema_of
from quorate.data.labels import Label
from quorate.data.phrases import PIECES, PrivateTexts
from quorate.estimators import Route
from quorate.exceptions import ParameterError, SchemaError
from quorate.ledger.ledger import Ledger
from quorate.mechanisms.choices.set_union import LARGEST, RAREST, SetUnion
from quorate.mechanisms.stated_error import StatedError
from quorate.tabulate.base import UserStatistic
from quorate.tabulate.released import CONFIDENCE

__all__ = ["PhrasesError", "PopularPhrases", "as_lengths", "needed", "plan_unions"]

LONGEST = 64
# Noise a hair above the plan: what an event rounds up stays within the budget.
_ABOVE = 1 + 2.0**-40

_COVERS = (
    "Which phrases are found: a phrase that fewer people use may be missing; a released phrase "
    "is used by somebody."
)


@dataclass(frozen=True, kw_only=True)
class PhrasesError(StatedError):
    """How many people have to use a phrase for it to be found; known before the fit.

    Attributes
    ----------
    people : tuple of pairs
        Pairs of a number of different phrases per person (of any one length), and the number of
        such people that suffices.
    confidence : float

    Examples
    --------
    >>> print(PhrasesError(people=((1, 30), (100, 290))))
    found with 95% confidence: phrases of 30 people who use no other phrase, or 290 who use 100
    phrases
    """

    people: tuple[tuple[int, int], ...]
    confidence: float = CONFIDENCE
    covers: str = _COVERS

    @property
    def coordinates(self) -> tuple[float, ...]:
        """Empty: no number is released."""
        return ()

    @property
    def bound(self) -> float:
        """The number of people that suffices if each of them uses ``most`` different phrases."""
        return float(self.people[-1][1])

    @property
    def worst(self) -> float:
        """Infinite, because a person votes for at most ``most`` phrases.

        A person who uses more phrases may not vote for this one.
        """
        return math.inf

    def __str__(self) -> str:
        (_, alone), (most, among) = self.people[0], self.people[-1]
        many = f", or {among} who use {most} phrases" if most > 1 else ""
        return (
            f"found with {self.confidence:.0%} confidence: phrases of {alone} people who use no "
            f"other phrase{many}"
        )


class PopularPhrases(UserStatistic):
    r"""The texts, words or phrases that many people use, hiding everything one person says.

    No list of candidates is needed: a phrase is released only if enough people use it. It counts
    how many people use a phrase, not how often each of them does. Candidates for longer phrases are
    those that begin and end with shorter phrases found before.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP
    neighbours : ``relation``: add or remove all records of one user, or replace all records of one
        user
    trust : central
    public : all parameters and the names and types of the columns; under ``Relation.REPLACE`` the
        number of users; released: ``phrases_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : Each length has a :class:`~quorate.mechanisms.choices.set_union.SetUnion` with its share
        of the budget, over phrases that are a function of the person's texts and of earlier
        releases (``docs/proofs/set_union.md``).

    Utility
    -------
    With probability 95 % a phrase is found if the number of its users reaches the number in
    ``error_``. In each of three rounds people divide their weight among those of their phrases that
    are not found yet and still have a chance.

    Complexity
    ----------
    Time :math:`O(N \log N)` for N words in all texts, for each length.

    Parameters
    ----------
    epsilon : float
    delta : float, default=1e-6
        Positive. Half of it pays for the chance that a phrase of a single person is released.
    column : str, optional
        The column of texts; needed if the table has other columns besides that of the ids.
    of : {"texts", "words", "characters"}, default="texts"
        The unit of a phrase: a whole text (or whole number), words between white space, or
        characters. Texts are compared exactly. Convert them to lower case and remove punctuation
        beforehand if these should make no difference.
    lengths : int or sequence of int, default=1
        How many words or characters a phrase has: a number n for all of 1, ..., n, or an increasing
        sequence such as ``(2, 4, 8)``. The lengths share the budget evenly.
    start : bool, default=False
        Whether to find only phrases at the beginning of a text: popular prefixes.
    most : int, default=300
        How many different phrases of one person count in a round.
    where : dict, optional
        Condition on records, by column; see :mod:`quorate.data.by_group.conditions`.
    relation : Relation, default=Relation.ADD_REMOVE
        Add or remove one user, as in other libraries for tables.
    ledger, data_name, random_state
        As in every estimator.

    Attributes
    ----------
    phrases_ : tuple
        Sorted by length, then alphabetically.
    error_ : PhrasesError
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Swanberg, Desfontaines, Haney. DP-SIPS: A simpler, more scalable mechanism for
       differentially private partition selection. PoPETs 2023, arXiv:2301.01998.
    .. [2] Kim, Gopi, Kulkarni, Yekhanin. Differentially private n-gram extraction. NeurIPS 2021,
       arXiv:2108.02831.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rng = np.random.default_rng(0)
    >>> ends = rng.choice(["a cat", "a dog", "Tibbles the Third"], 2000, p=[0.6, 0.399, 0.001])
    >>> texts = [f"I saw {end}" for end in ends]
    >>> said = pa.table({"who": np.arange(2000), "text": texts})
    >>> found = PopularPhrases(of="words", lengths=2).fit(said, users="who")
    >>> found.phrases_
    ('I', 'a', 'cat', 'dog', 'saw', 'I saw', 'a cat', 'a dog', 'saw a')
    >>> found.guarantee_.epsilon
    1.0
    """

    phrases_: tuple[Label, ...]
    error_: PhrasesError
    guarantee_: Guarantee

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        column: str | None = None,
        of: str = "texts",
        lengths: int | Sequence[int] = 1,
        start: bool = False,
        most: int = 300,
        where: Mapping[str, Any] | None = None,
        relation: Relation = Relation.ADD_REMOVE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.column = column
        self.of = of
        self.lengths = lengths
        self.start = start
        self.most = most
        self.where = where
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> PopularPhrases:
        """Find the phrases of ``X``: one text per record, with ``users``, or a crowd.

        Parameters
        ----------
        X : frame with named columns, or crowd of whole numbers
        y : ignored
        users : array of shape (records,) or str
            The user id of each row, or the name of the column with the ids.
        """
        lengths = self._checked()
        _refuse_untyped(X)
        self._check_use(X, None, users, target=False)  # first, which names a missing column of ids
        countable = is_frame(X) and hasattr(X, "__len__")
        if self.relation is Relation.REPLACE and countable and not len(X):
            raise SchemaError(
                "Expected at least one row: under Relation.REPLACE the number of users is public."
            )
        reading = Reading(
            by=(self._column_of(X, users),), keys=None, where=as_conditions(self.where)
        )
        reading.check(schema_of(X))
        if self.of != "texts" and not is_frame(X):
            raise SchemaError("Expected a table with a column of texts, got numbers.")
        reserve = exact(self.delta) / 2
        account = self._charge(X, None, users, reserve=reserve)
        unions = plan_unions(account, lengths, most=int(self.most), failure=reserve)
        found = self._found(self._read(X, users, reading), lengths, unions, account)
        self.guarantee_ = self._promise(account)
        self.phrases_ = found
        self.error_ = expected_error(unions)
        self.algorithm_ = Route(
            name="rounds",
            reason="people divide their weight among phrases that are not found or dropped yet.",
        )
        return self

    def _checked(self) -> tuple[int, ...]:
        """Refuse invalid parameters, before the charge."""
        _validate.useful_epsilon(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        if self.delta == 0:
            raise ParameterError(
                "Expected delta > 0, such as 1e-6: with delta=0 phrases that nobody uses would "
                "have to be possible."
            )
        _validate.one_of(PIECES, of=self.of)
        _validate.boolean(start=self.start)
        _validate.positive_integer(most=self.most)
        if self.most > LARGEST:
            raise ParameterError(f"Expected at most {LARGEST} phrases a person, got {self.most}.")
        lengths = as_lengths(self.lengths, self.of)
        if exact(self.delta) / (2 * len(lengths)) < exact(RAREST):
            raise ParameterError(
                f"Expected delta of an ordinary size, such as 1e-6, got {self.delta!r}."
            )
        return lengths

    def _column_of(self, X: Any, users: Any) -> str:
        """Return the named column of texts, or the only column."""
        if self.column is not None:
            if not isinstance(self.column, str):
                raise ParameterError(f"Expected column to be a name, got {described(self.column)}.")
            return self.column
        known = names_of(schema_of(X))
        names = [name for name in known if not (isinstance(users, str) and name == users)]
        if len(names) != 1:
            raise ParameterError(
                f"Expected column=, which of the columns {sorted(names)} holds the texts."
            )
        return names[0]

    def _found(
        self,
        records: Records,
        lengths: tuple[int, ...],
        unions: tuple[SetUnion, ...],
        account: Account,
    ) -> tuple[Label, ...]:
        people = self._people_of(records.crowd)
        [labels], [column] = records.labels, records.by
        if isinstance(labels, LabelNumbers):
            numbers = _Numbers(column, records.conditions)
            held = held_keys(people, numbers, random_state=self.random_state)
            return unions[0].release(held, account=account)
        texts = PrivateTexts.cut(labels, self.of)
        every: list[Label] = []
        last: tuple[Label, ...] = ()
        for place, (length, union) in enumerate(zip(lengths, unions, strict=True)):
            part = lengths[place - 1] if place else 0
            phrases = texts.phrases(length, within=last, part=part, start=bool(self.start))
            held = held_keys(people, phrases, random_state=self.random_state)
            last = union.release(held, account=account)
            every.extend(last)
        return tuple(every)


def _refuse_untyped(X: Any) -> None:
    """Refuse texts without a table: the types of their cells are private, those of columns not."""
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if isinstance(X, list | tuple) or (kind and kind not in "biuf" and not is_frame(X)):
        raise SchemaError(
            "Expected a table with a column of texts or whole numbers, such as "
            'pandas.DataFrame({"text": texts}), or an array of numbers; got '
            f"{'a list' if isinstance(X, list | tuple) else 'an array without numbers'}."
        )


@dataclass(frozen=True)
class _Numbers:
    """Whole numbers in a column of a crowd.

    Other values are dropped, and so are records that do not fulfil the conditions.

    >>> people = UserData.from_arrays([[3.0], [2.5]], users=["ann", "bob"])
    >>> [found.tolist() for found in _Numbers(0)(people)]
    [[0], [3]]
    """

    column: int
    conditions: tuple[Callable[[Any], Any], ...] = ()

    def __call__(self, part: UserData) -> tuple[Any, Any]:
        values = part.X[:, self.column]
        whole = (np.abs(values) < 2.0**53) & (np.floor(values) == values)
        for holds in self.conditions:
            whole &= holds(part.X)
        return part.user_index()[whole].astype(np.int64), values[whole].astype(np.int64)

    def words(self, numbers: Any) -> Any:
        """Return a word for each number."""
        return mix(numbers.astype(np.int64).view(np.uint64))

    def name(self, number: int) -> int:
        """Return the number."""
        return number


def as_lengths(lengths: Any, of: str) -> tuple[int, ...]:
    """Return the lengths of phrases in increasing order; refuse invalid ones.

    >>> as_lengths(3, "words"), as_lengths((2, 4), "characters")
    ((1, 2, 3), (2, 4))
    """
    whole = isinstance(lengths, int | np.integer) and not isinstance(lengths, bool)
    found = list(range(1, int(lengths) + 1)) if whole and 0 < lengths <= LONGEST else lengths
    right = isinstance(found, list | tuple) and 0 < len(found) <= LONGEST
    if right:
        numbers = [isinstance(n, int | np.integer) and not isinstance(n, bool) for n in found]
        right = all(numbers) and found[0] >= 1 and found[-1] <= LONGEST
        right = right and all(a < b for a, b in pairwise(found))
    if not right:
        raise ParameterError(
            f"Expected lengths of phrases, from 1 to {LONGEST} and increasing, such as 2 or "
            f"(2, 4, 8), got lengths={described(lengths)}."
        )
    if of == "texts" and list(found) != [1]:
        raise ParameterError("Whole texts have no lengths: leave lengths out, or pass of='words'.")
    return tuple(int(n) for n in found)


def plan_unions(
    account: Account, lengths: Sequence[int], *, most: int, failure: Fraction
) -> tuple[SetUnion, ...]:
    """Return the mechanism of each length, with its share of an account.

    >>> account = Account.open(epsilon=1.0, delta=1e-6, reserve=5e-7)
    >>> [union] = plan_unions(account, [1], most=10, failure=Fraction(1, 2 * 10**6))
    >>> union.people_needed(0.05)
    61
    """
    each = account.multiplier(account.square_left, count=len(lengths))
    union = SetUnion(
        noise_multiplier=each * _ABOVE,
        failure=failure / len(lengths),
        most=most,
        relation=account.relation,
    )
    return (union,) * len(lengths)


def needed(unions: Sequence[SetUnion], size: int, *, beta: float) -> int:
    """Return how many people a phrase of the last length needs, including its parts.

    A phrase is found only if its two parts of the previous length were found; each of these has two
    parts as well, and so on.
    """
    return unions[-1].people_needed(beta / (2 ** len(unions) - 1), size)


def expected_error(unions: Sequence[SetUnion]) -> PhrasesError:
    """Return the error that is known before the fit."""
    most = unions[-1].most
    sizes = [*(size for size in (1, 10, 100, 1000) if size < most), most]
    enough = ((size, needed(unions, size, beta=1 - CONFIDENCE)) for size in sizes)
    return PhrasesError(people=tuple(enough))
