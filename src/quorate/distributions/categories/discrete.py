"""The distribution of people's records over categories, estimated privately."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import described
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState
from quorate.core.questions.shares import Coder
from quorate.core.users.crowd import Crowd
from quorate.core.users.data import UserData
from quorate.distributions.base import UserDistribution, draw, new_figure
from quorate.distributions.categories.label_columns import (
    are_numbers,
    check_columns,
    label_columns,
    label_places,
    number_places,
)
from quorate.distributions.categories.popular import check_labels, popular_labels, private_labels
from quorate.distributions.categories.routes import DiscreteRun
from quorate.distributions.released import ReleasedShares
from quorate.distributions.shares import CategoryCodes
from quorate.exceptions import ParameterError, SchemaError, UnboundedContributionError
from quorate.ledger.ledger import Ledger

__all__ = ["DiscreteDistribution"]

_SHOWN = 30  # machine: bars that can be read beside each other
# Share of epsilon that finds popular labels.
_LABEL_SHARE = 0.3


@dataclass(frozen=True)
class _NumberCodes:
    """Finds the category of each number in a column."""

    labels: tuple[float, ...]
    column: int = 0

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        return number_places(part.X[:, self.column], np.array(self.labels))


@dataclass(frozen=True)
class _MarkedCodes:
    """Finds the category of each record among columns of zeros and ones, of which one is 1."""

    categories: int

    def __call__(self, part: UserData) -> NDArray[np.int64]:
        marks = part.X == 1.0
        return np.where(marks.any(axis=1), marks.argmax(axis=1), -1).astype(np.int64)


def _is_marked(crowd: Crowd, labels: tuple[Any, ...]) -> bool:
    """Return whether the features of a crowd are the indicator columns of these categories."""
    names = crowd.feature_names or ("",)
    source = names[0].removesuffix(f"={labels[0]}")
    return names == tuple(f"{source}={label}" for label in labels)


def as_categories(categories: Any) -> tuple[Any, ...]:
    """Return public categories as a tuple; refuse fewer than two, or duplicates.

    >>> as_categories(["pitcher", "catcher"])
    ('pitcher', 'catcher')
    """
    if categories is None:
        raise UnboundedContributionError(
            "A distribution over categories needs categories=, the public list of them; it must "
            "not be taken from the data. With delta > 0 popular ones can be found privately: pass "
            "categories='popular'."
        )
    if isinstance(categories, np.ndarray) and categories.ndim == 1:
        categories = categories.tolist()
    if not isinstance(categories, list | tuple | range):
        raise ParameterError(
            f"Expected categories to be a list of labels, got {described(categories)}."
        )
    labels = tuple(c.item() if isinstance(c, np.generic) else c for c in categories)
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise ParameterError(
            f"Expected at least two different categories, got {described(categories)}."
        )
    return labels


class DiscreteDistribution(UserDistribution):
    r"""The distribution of people's records over categories, hiding any one person's whole record.

    The records of each user give shares of the categories, which add up to 1. The distribution is
    the mean of these shares over users, so every user counts once. The noise does not grow with the
    number of records per user, and it shrinks if users are similar.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, pure if ``delta`` = 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters, the categories and, under ``Relation.REPLACE``, the number of users;
        released: ``pmf_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : A user's shares, rounded down to whole steps, are a point of a simplex (see
        :mod:`~quorate.core.questions.shares`). So one user changes the totals by at most 2 in the
        L1 norm and by :math:`\sqrt 2` in the L2 norm, whatever the number of categories. *laplace*,
        *gaussian*: one noisy sum of such points. For up to 64 categories the Laplace noise is drawn
        so that it adds up to zero (:class:`~quorate.mechanisms.balanced.BalancedSum`). *polytope*,
        *ball*: a count of close pairs (sensitivity 1, secret pairs); then a rough centre, private
        radii, and sums of offsets inside a small ball
        (:class:`~quorate.core.bounds.trimmed.Trimmed`). Each is drawn from one account. Scaling the
        shares so that they add up to 1 happens after the release. Popular labels: one vote per user
        (:class:`~quorate.mechanisms.choices.stable_choice.StableHistogram`).

    Utility
    -------
    With probability 95 % the total variation distance from the exact mean of the shares is at most
    ``error_.bound``, including users who were left out. If users are not similar it is about
    :math:`k/(n\varepsilon)` for k categories and n users; see
    :func:`~quorate.distributions.projection.laplace_bound`.

    Complexity
    ----------
    Time :math:`O(N \log N)` for N records and one pass. The algorithms for similar users make six
    passes over n rows of k shares, in blocks.

    Parameters
    ----------
    epsilon : float
    categories : sequence or "popular"
        Public labels: all numbers, or compared as text. Records with any other label are dropped.
        ``"popular"`` finds the labels (text or whole numbers) that many people have, for three
        tenths of ``epsilon`` and half of ``delta``, which must be positive. All other labels
        together have the share ``other_``.
    delta : float, default=0.0
    algorithm : str, default="auto"
        ``"laplace"`` or ``"gaussian"``: noise on the mean of all shares. ``"polytope"`` (pure) or
        ``"ball"``: a mean inside a small region around a private centre, for similar users. Users
        outside of it are left out, and the bound includes them.
    alike : bool, default=False
        Whether it is publicly known that all people have similar distributions. Then ``"auto"``
        tries a small ball even with fewer users.
    records : int, "auto" or None, default=None
        ``None`` gives every person the same weight. A number M gives every record the same weight,
        up to M records per person; ``"auto"`` finds M privately. The sum of the weights is then
        released too.
    relation, ledger, data_name, random_state
        As in every estimator; ``random_state`` seeds :meth:`sample`.

    Attributes
    ----------
    categories_ : tuple
    pmf_ : array of shape (k,)
        Released share of each category.
    other_ : float
        Released share of all other labels, with ``categories="popular"``; otherwise 0.
    error_ : DistributionError
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Ghazi et al. User-level differential privacy with few examples per user. NeurIPS 2023,
       Theorem 43.

    Examples
    --------
    >>> people = np.repeat(np.arange(2000), 5)
    >>> names = ["gp", "eye", "skin"]
    >>> seen = np.random.default_rng(0).choice(names, size=10_000, p=[0.6, 0.3, 0.1])
    >>> visits = DiscreteDistribution(1.0, categories=names).fit(seen, users=people)
    >>> bool(np.abs(visits.pmf_ - [0.6, 0.3, 0.1]).max() < 0.05)
    True
    >>> visits.error_.bound < 0.05, visits.guarantee_.epsilon
    (True, 1.0)
    """

    _algorithms = ("auto", "laplace", "gaussian", "polytope", "ball")
    _reads_labels = True

    categories_: tuple[Any, ...]
    pmf_: NDArray[np.float64]
    other_: float

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        categories: Sequence[Any] | str | None = None,
        delta: float = 0.0,
        algorithm: str = "auto",
        alike: bool = False,
        records: int | str | None = None,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.categories = categories
        self.delta = delta
        self.algorithm = algorithm
        self.alike = alike
        self.records = records
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> DiscreteDistribution:
        """Release the distribution of ``X``: one label per record, with ``users``, or a crowd.

        Parameters
        ----------
        X : array of shape (records,) or (records, 1), or a crowd with one feature
            The categories of a crowd are numbers, or the columns of zeros and ones made from them
            when the table was read with ``categories={name: [...]}``.
        y : ignored
        users : array of shape (records,) or str
            The user id of each row, or the name of the column of ``X`` with the ids.
        """
        self._check_common()
        _validate.boolean(alike=self.alike)
        if isinstance(self.categories, str):
            return self._fit_popular(X, users)
        labels = as_categories(self.categories)
        marked = isinstance(X, Crowd) and _is_marked(X, labels)
        if isinstance(X, Crowd) and not marked and (X.n_features != 1 or not are_numbers(labels)):
            raise SchemaError(
                "Expected a crowd with one feature that holds categories which are numbers, or one "
                "that was read with these categories, in this order: UserData.from_frame(..., "
                "features=[name], categories={name: [...]})."
            )
        if not isinstance(X, Crowd):
            check_columns(X, [labels])
        account = self._charge(X, None, users)
        if isinstance(X, Crowd):
            people = self._population(X)
            coder = _MarkedCodes(len(labels)) if marked else _coder_of(labels)
        else:
            (column,) = label_columns(X)
            people = self._population(label_places(column, labels)[:, None], None, users)
            self._keep_names(X)
            coder = CategoryCodes(len(labels))
        released = self._release(
            DiscreteRun(
                people=people,
                coder=coder,
                categories=len(labels),
                account=account,
                cap=self._cap(people, account),
                alike=bool(self.alike),
            )
        )
        return self._tell(account, labels, released.shares, 0.0, released)

    def _fit_popular(self, X: Any, users: Any) -> DiscreteDistribution:
        """Find labels that many people have, then release the distribution over them and others."""
        _validate.one_of(("popular",), categories=self.categories)
        if self.delta == 0:
            raise ParameterError(
                "categories='popular' needs delta > 0: with delta=0 labels that nobody has would "
                "have to be possible. Pass delta=, such as 1e-6, or a public list of categories."
            )
        if isinstance(X, Crowd):
            raise SchemaError("Expected labels as an array, with users=, to find popular ones in.")
        check_labels(X)
        reserve = 0.5 * float(self.delta)
        account = self._charge(X, None, users, reserve=reserve)
        held = private_labels(X)
        labels = popular_labels(
            held,
            self._people_of(self._gather(held.numbers[:, None], None, users)),
            epsilon=_LABEL_SHARE * float(self.epsilon),
            delta=reserve,
            account=account,
            random_state=self.random_state,
        )
        people = self._population(held.places_of(labels)[:, None], None, users)
        run = DiscreteRun(
            people=people,
            coder=CategoryCodes(len(labels) + 1),
            categories=len(labels) + 1,
            account=account,
            cap=self._cap(people, account),
            alike=bool(self.alike),
        )
        released = self._release(run)
        other = float(released.shares[-1])
        return self._tell(account, labels, released.shares[:-1], other, released)

    def _tell(
        self,
        account: Account,
        labels: tuple[Any, ...],
        shares: NDArray[np.float64],
        other: float,
        released: ReleasedShares,
    ) -> DiscreteDistribution:
        self.guarantee_ = self._promise(account)
        self.categories_ = labels
        self.pmf_, self.other_ = shares, other
        self.error_ = released.error
        self.algorithm_ = released.route
        return self

    def _release(self, run: DiscreteRun) -> ReleasedShares:
        return released_by(run, self.algorithm)

    def pmf(self, X: Any) -> NDArray[np.float64]:
        """Return the released share of each label in ``X``; 0 for other labels."""
        check_columns(X, [self.categories_])
        (column,) = label_columns(X)
        places = label_places(column, self.categories_)
        known = ~np.isnan(places)
        found = np.zeros(places.size)
        found[known] = self.pmf_[places[known].astype(np.int64)]
        return found

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the released share of each label in ``X``."""
        with np.errstate(divide="ignore"):
            return np.log(self.pmf(X))

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> NDArray[Any]:
        """Draw labels from the released distribution; no records are touched.

        Labels that were not found popular are not drawn.
        """
        if not float(np.sum(self.pmf_)) > 0:
            raise ParameterError("No category has a share to draw from: no label was popular.")
        seed = self.random_state if random_state is None else random_state
        labels = np.array(self.categories_, dtype=None if are_numbers(self.categories_) else object)
        return np.asarray(labels[draw(self.pmf_, n_samples, seed)])

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the shares, the largest 30 if there are more; needs matplotlib."""
        figure, axes = new_figure()
        largest = np.sort(np.argsort(-self.pmf_, kind="stable")[:_SHOWN])
        names = [str(self.categories_[place]) for place in largest]
        axes.bar(range(len(names)), self.pmf_[largest])
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right")
        axes.set(ylabel="share of people's records", title=str(self.error_))
        return self._saved(figure, path)


def released_by(run: DiscreteRun, algorithm: str) -> ReleasedShares:
    """Return the release of the algorithm with this name."""
    asked = "it was requested."
    match algorithm:
        case "auto":
            return run.adapt()
        case "laplace":
            return run.laplace(asked)
        case "gaussian":
            return run.gaussian(asked)
        case "polytope":
            return run.polytope(asked)
        case "ball":
            return run.ball(asked)
    raise ParameterError(f"Expected a known algorithm, got {algorithm!r}.")


def _coder_of(labels: tuple[Any, ...]) -> Coder:
    if labels == tuple(range(len(labels))):
        return CategoryCodes(len(labels))
    return _NumberCodes(tuple(float(label) for label in labels))
