"""Synthetic people with several records each, sampled from a private model of real people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorate import _validate
from quorate._validate import is_frame
from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState
from quorate.core.users.crowd import Crowd
from quorate.data.by_group.reading import ids_of, names_of, schema_of, with_names
from quorate.data.coding import Coding, coded_columns
from quorate.data.frames import open_frame
from quorate.estimators import Route
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.synth.columns import (
    Coded,
    SynthColumn,
    as_columns,
    coder_of_crowd,
    codes_of_table,
    of_type,
)
from quorate.synth.released import RepeatRate, SynthError, SyntheticModel
from quorate.synth.rounds import Rounds
from quorate.tabulate.base import UserStatistic

__all__ = ["UserSynthesizer"]


class UserSynthesizer(UserStatistic):
    r"""A private model of people and their records, from which synthetic people are sampled.

    Tables of single columns are released with noise, and tables of two columns for the pairs that
    depend on each other most. The latter are shrunk towards independence, as far as noise hides
    dependence. The model is the distribution of largest entropy with these tables. What one person
    adds to all tables of a round is one vector, whose length is capped. So the noise for a person
    with many records in many cells is smaller than if the noise for one row were multiplied by the
    number of records. Synthetic people have as many records as real people, and their values repeat
    within a person as often.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, with ``delta`` > 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and the names and types of the columns; under ``Relation.REPLACE`` the
        number of users; released: ``model_``, ``repeats_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : A user's codes are a function of that user's records and of public numbers. Tables of
        single columns are one vector per user, clipped by the core. Tables of pairs are answers of
        :meth:`~quorate.core.people.People.cell_totals`, which clips everything that a user adds to
        the tables of a round to one length, in whole steps. They are released by
        :class:`~quorate.mechanisms.sums.GaussianSum`. Lengths and numbers of records are tallied,
        with one label per user. How far a table exceeds a public one is computed from the sealed
        table by subtracting public integers, clipping at 0 and adding up. None of these steps
        increases the effect of a user beyond the table's own L1 length, which is also capped and
        recorded in the seal. :class:`~quorate.mechanisms.noisy_numbers.NoisyNumbers` releases it,
        and the tallies. How often values repeat is one vector of numbers between 0 and 1 per user.
        Everything is drawn from one account; the tree, the model and all samples are computed from
        released numbers.

    Utility
    -------
    For each pair of columns ``error_.pairs`` says how far their table in the model is from that of
    all records, in total variation. It is measured after the fit, with its own noise, and has a
    bound that holds for all pairs together with probability 95 %. These properties are *preserved*:
    the numbers of records per person; tables of one column; tables of two columns, up to
    ``error_``; dependence on a person's number of records, if it is in the tree; how often two
    records of a person agree in a column (``repeats_``). These are *not*: dependences of three
    columns beyond the tree; the order of a person's records, such as trends; values that repeat
    less often than by chance, such as the year of yearly records; and the distribution of numbers
    within a bin.

    Complexity
    ----------
    :math:`O(d^2)` passes over the records for d columns, each of time :math:`O(N \log N)` for N
    records.

    Parameters
    ----------
    epsilon : float
    categories : dict, optional
        Public labels of columns, by name. A record with an unlisted or missing label is dropped.
    bounds : dict, pair or float, optional
        Public ranges of numeric columns, by name, or one range for all of them; numbers outside are
        clipped.
    bins : int or dict, default=32
        Number of bins of equal width for each numeric column. With more than 64, neighbouring bins
        with few records are merged in tables of two columns.
    target : str, optional
        A column of ``categories`` on which every other column may depend, in addition to its
        neighbour in the tree. Use it for models that are to predict this column.
    missing : "drop" or float, default="drop"
        ``"drop"`` drops a record with a missing number; a number replaces the missing value.
    delta : float, default=1e-6
        Must be positive, because the noise of the tables is Gaussian.
    relation : Relation, default=Relation.ADD_REMOVE
        Add or remove one user, as in other libraries for tables.
    ledger, data_name
        As in every estimator.
    random_state : int, optional
        Seeds :meth:`sample`.

    Attributes
    ----------
    model_ : SyntheticModel
    repeats_ : tuple of RepeatRate
    error_ : SynthError
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] McKenna, Miklau, Sheldon. Winning the NIST contest: a scalable and general approach to
       differentially private synthetic data. J. Privacy Confidentiality 11(3), 2021,
       arXiv:2108.04978.
    .. [2] McKenna, Mullins, Sheldon, Miklau. AIM: an adaptive and iterative mechanism for
       differentially private synthetic data. VLDB 2022, arXiv:2201.12677.
    .. [3] Stephens. False discovery rates: a new deal. Biostatistics 18(2), 2017.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> rng = np.random.default_rng(0)
    >>> patient = rng.integers(0, 5000, 20_000)
    >>> clinic = np.where(patient % 10 < 7, "north", "south")
    >>> wait = rng.gamma(2.0, np.where(clinic == "north", 5.0, 15.0))
    >>> visits = pa.table({"patient": patient, "clinic": clinic, "wait": wait})
    >>> synth = UserSynthesizer(
    ...     epsilon=2.0, categories={"clinic": ["north", "south"]}, bounds={"wait": (0, 120)}
    ... ).fit(visits, users="patient")
    >>> people = synth.sample(1000, random_state=0)
    >>> people.column_names, abs(people.num_rows - 4000) < 800
    (['user', 'clinic', 'wait'], True)
    >>> synth.guarantee_.epsilon, synth.error_.pairs[0].columns
    (2.0, ('clinic', 'wait'))
    """

    _codes_columns = True

    model_: SyntheticModel
    repeats_: tuple[RepeatRate, ...]
    error_: SynthError

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        categories: Mapping[str, Any] | None = None,
        bounds: Any = None,
        bins: int | Mapping[str, int] = 32,
        target: str | None = None,
        missing: str | float = "drop",
        delta: float = 1e-6,
        relation: Relation = Relation.ADD_REMOVE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.categories = categories
        self.bounds = bounds
        self.bins = bins
        self.target = target
        self.missing = missing
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> UserSynthesizer:
        """Release a model of ``X``: a frame with ``users``, or a crowd.

        Parameters
        ----------
        X : frame with named columns, or crowd with named features
        y : ignored
        users : array of shape (records,) or str
            The user id of each row, or the name of the column with the ids.
        """
        _validate.useful_epsilon(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        if self.delta == 0:
            raise ParameterError(
                "UserSynthesizer needs delta > 0, such as 1e-6: many tables are measured, and "
                "noise for that is Gaussian. Purely private are ProductDistribution, for columns "
                "that are independent, and UserTable."
            )
        self._check_use(X, None, users, target=False)
        schema = schema_of(X)
        names = self._names(schema, users)
        columns = as_columns(names, self.categories, self.bounds, self.bins, self.missing)
        hub = self._hub(columns)
        columns = of_type(columns, schema)
        account = self._charge(X, None, users)
        people = self._people_of(self._coded(X, users, columns))
        found = Rounds(people, columns, account, hub=hub).run()
        self.guarantee_ = self._promise(account)
        self.model_ = found.model
        self.repeats_ = found.repeats
        self.error_ = found.error
        self.algorithm_ = Route(
            name="tree",
            reason=(
                "tables of pairs that form a tree, shrunk towards independence; one vector a "
                f"person, of length {found.lengths[0]:g} for columns and {found.lengths[1]:g} for "
                "pairs."
            ),
        )
        return self

    def sample(self, users: int | None = None, *, random_state: RandomState = None) -> Any:
        """Return a table of synthetic records; no real records are used.

        Parameters
        ----------
        users : int, optional
            Number of synthetic people; by default about as many as there are real ones.
        random_state : int, optional
            Public randomness; by default that of the estimator.

        Returns
        -------
        pyarrow.Table
            It has a column ``user`` with the number of the synthetic person, and all columns of the
            model.
        """
        seed = self.random_state if random_state is None else random_state
        return self.model_.sample(users, random_state=seed)

    def _names(self, X: Any, users: Any) -> tuple[str, ...]:
        """Return the names of the columns of a table, as they were before labels were encoded."""
        names = names_of(X)
        if isinstance(X, Crowd):
            coded = coded_columns(self.categories)
            return Coding.recognised(
                names, {name: each for name, each in coded.items() if name not in names}
            ).sources
        return tuple(n for n in names if not (isinstance(users, str) and n == users))

    def _coded_columns(self) -> dict[str, Any]:
        # Labels are read as they are; a crowd may hold them as numbers, or coded.
        return {}

    def _hub(self, columns: tuple[SynthColumn, ...]) -> int:
        if self.target is None:
            return -1
        named = [column.name for column in columns if column.labels is not None]
        if self.target not in named or len(columns) < 3:
            raise ParameterError(
                f"Expected target to be one of the columns in categories=, beside two others; got "
                f"target={self.target!r}."
            )
        return [column.name for column in columns].index(self.target)

    def _coded(self, X: Any, users: Any, columns: tuple[SynthColumn, ...]) -> Crowd:
        """Return people with codes as records, and set the attributes that name the columns."""
        if isinstance(X, Crowd):
            people = self._crowd(X)
            if X.feature_names is not None:
                self._describe(self._names(X, users), X.n_features)
            return people.derive(coder_of_crowd(columns, names_of(X)), keep=True)
        named = with_names(X)
        codes = codes_of_table(columns, open_frame(named, [each.name for each in columns]))
        crowd = self._crowd(codes, None, ids_of(X, users)).derive(Coded(), keep=True)
        names = self._names(named, users)
        self._describe(names if is_frame(X) else None, len(names))
        return crowd
