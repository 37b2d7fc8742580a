"""Several columns of labels, each with its own private distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import described, float_down
from quorate.core.account.account import Account
from quorate.core.bounds.blocks import Blocks
from quorate.core.bounds.grid import Ball, Bound, Interval
from quorate.core.bounds.simplex import Simplex
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.questions.shares import ShareSet, share_totals
from quorate.core.users.crowd import Crowd
from quorate.core.users.data import UserData
from quorate.distributions.base import UserDistribution, draw, new_figure
from quorate.distributions.categories.discrete import as_categories
from quorate.distributions.categories.label_columns import (
    check_columns,
    label_columns,
    label_places,
)
from quorate.distributions.hypotheses.clip import Clip
from quorate.distributions.hypotheses.covers import SimplexGrid, product_cover
from quorate.distributions.hypotheses.selection import choose_member
from quorate.distributions.projection import gaussian_bound, laplace_bound, nearest_distribution
from quorate.distributions.released import DistributionError
from quorate.distributions.shares import CategoryCodes, ShareRows
from quorate.estimators import Route
from quorate.exceptions import ParameterError, SchemaError, UnboundedContributionError
from quorate.ledger.ledger import Ledger
from quorate.means.vector_mean import gaussian_run
from quorate.means.weighted_users import PeopleVectors
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.sums import GaussianSum, choose_grid

__all__ = ["ProductDistribution"]

_BETA = 0.05  # public: 95 % is the convention of stated errors
_MAX_STEPS = 2**30
_COUNT_SHARE = Fraction(3, 100)
# From this many users times epsilon times columns on a private radius pays.
_RADIUS_USERS = 10_000.0
# Longer rows of all columns' shares would not fit into memory for many users.
_MAX_ROW = 2**12


class ProductDistribution(UserDistribution):
    r"""Distributions of several columns of labels, hiding any one person's whole record.

    The records of each user give shares of the categories of every column. The distribution of a
    column is the mean of these shares over users. Columns are assumed to be independent.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, pure if ``delta`` = 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters, the categories and, under ``Relation.REPLACE``, the number of users;
        released: ``pmfs_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : By *laplace* or *gaussian* a user is a point of d simplices in whole steps
        (:func:`~quorate.core.questions.shares.share_totals`). So one user changes all totals
        together by at most 2 d in the L1 norm and by :math:`\sqrt{2 d}` in the L2 norm. Discrete
        Laplace or discrete Gaussian noise is added to the sums. *mean*: a user's shares of all
        columns are one row (:class:`~quorate.distributions.shares.ShareRows`), and the mean of
        these rows is that of :class:`~quorate.means.user_mean.UserMean`, with a private radius.
        *cover*: for each of d columns one choice of ``epsilon`` / d among finitely many
        distributions (:func:`~quorate.distributions.hypotheses.selection.choose_member`), in which
        a user's contribution is clipped; d pure choices cost ``epsilon`` together. The
        distributions to choose from depend on ``categories`` and ``error`` only.

    Utility
    -------
    ``error_.bound`` bounds the sum of the total variation distances of all columns with probability
    95 %, and hence the distance of the product distributions. It is about :math:`d
    k/(n\varepsilon)` for each of d columns of k categories with Laplace noise, and about
    :math:`\sqrt d k/(n\mu)` with Gaussian noise. For similar users a private radius r < 1 reduces
    the noise by the factor r. The bound is then that of the mean in the L2 norm, times half the
    square root of the number of all categories. *cover* states no error (a bound of 1). For similar
    users with m records each it is off by at most :math:`\alpha` = ``error`` if there are
    :math:`\tilde O(k d/\varepsilon + k d^2/(\alpha\varepsilon\sqrt m) + k d^2/(\alpha^2 m))` users
    (Theorem 41 of [1]_ for each column). A single choice among all products, as in Theorem 44,
    would reduce the last two terms by a factor d, but there are too many products to compare.

    Complexity
    ----------
    One pass; time :math:`O(d N \log N)` for N records. With a private radius there are a few more
    passes. *cover*: :math:`O(2^k(n s + C))` per column for n users, s = 2.5 k d / ``error`` steps
    and C members.

    Parameters
    ----------
    epsilon : float
    categories : sequence of sequences
        Public labels of each column. A record with another label in some column is dropped.
    delta : float, default=0.0
    algorithm : {"auto", "laplace", "gaussian", "mean", "cover"}, default="auto"
        ``"mean"`` searches for a private radius around similar users; it needs ``delta`` > 0 and
        ``Relation.REPLACE``. ``"auto"`` uses it if users x columns x epsilon is at least 10,000,
        and otherwise whichever of Laplace and Gaussian noise is smaller. ``"cover"`` chooses each
        column from a cover of all distributions. It is pure, and meant for few users with many
        records and at most 12 categories per column.
    error : float, default=0.5
        The sum of total variation distances for which ``"cover"`` is built: in each of d columns,
        every distribution is within a tenth of ``error`` / d of some member.
    relation, ledger, data_name, random_state
        As in every estimator; ``random_state`` seeds :meth:`sample`.

    Attributes
    ----------
    categories_ : tuple of tuples
    pmfs_ : tuple of arrays
        Released share of each category, column by column.
    error_ : DistributionError
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Ghazi et al. User-level differential privacy with few examples per user. NeurIPS 2023,
       Theorem 44.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> answers = np.stack([rng.integers(0, 2, 6000), rng.integers(0, 3, 6000)], axis=1)
    >>> people = np.repeat(np.arange(3000), 2)
    >>> both = ProductDistribution(1.0, categories=[range(2), range(3)]).fit(answers, users=people)
    >>> [pmf.round(1).tolist() for pmf in both.pmfs_]
    [[0.5, 0.5], [0.3, 0.3, 0.3]]
    """

    _algorithms = ("auto", "laplace", "gaussian", "mean", "cover")
    _reads_labels = True
    _single_feature = False

    categories_: tuple[tuple[Any, ...], ...]
    pmfs_: tuple[NDArray[np.float64], ...]

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        categories: Sequence[Sequence[Any]] | None = None,
        delta: float = 0.0,
        algorithm: str = "auto",
        error: float = 0.5,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.categories = categories
        self.delta = delta
        self.algorithm = algorithm
        self.error = error
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> ProductDistribution:
        """Release the distributions of the columns of ``X``, with ``users``, or of a crowd.

        Parameters
        ----------
        X : array of shape (records, columns), or a crowd whose features are numbers of categories
        y : ignored
        users : array of shape (records,)
        """
        self._check_common()
        _validate.probability(error=self.error)
        if self.algorithm == "mean" and not self._radius_is_possible:
            raise ParameterError(
                "algorithm='mean' needs delta > 0 and Relation.REPLACE; use 'laplace' instead."
            )
        labels = self._declared_categories()
        if not isinstance(X, Crowd):
            check_columns(X, labels)
        elif X.n_features != len(labels):
            raise SchemaError(f"Expected {len(labels)} columns, one for each list of categories.")
        covers = self._covers(tuple(map(len, labels))) if self.algorithm == "cover" else None
        account = self._charge(X, None, users)
        if isinstance(X, Crowd):
            people = self._population(X)
        else:
            places = list(map(label_places, label_columns(X), labels))
            people = self._population(np.column_stack(places), None, users)
            self._keep_names(X)
        if covers is None:
            pmfs, bounds, route = self._release(people, account, tuple(map(len, labels)))
        else:
            pmfs, bounds, route = self._choose(people, account, covers)
        self.guarantee_ = self._promise(account)
        self.categories_, self.pmfs_, self.algorithm_ = labels, pmfs, route
        stated = min(1.0, sum(bounds))
        metric = "sum over columns of the total variation"
        self.error_ = DistributionError(metric=metric, noise=stated, bound=stated)
        return self

    def _declared_categories(self) -> tuple[tuple[Any, ...], ...]:
        if self.categories is None:
            raise UnboundedContributionError(
                "ProductDistribution needs categories=, a public list of labels for each column; "
                "they must not be taken from the data."
            )
        if not (isinstance(self.categories, list | tuple) and self.categories):
            raise ParameterError(
                f"Expected a list of categories for each column, got {described(self.categories)}."
            )
        return tuple(as_categories(column) for column in self.categories)

    def _covers(self, sizes: tuple[int, ...]) -> tuple[SimplexGrid, ...]:
        """Return the candidate distributions of each column; refuse too many, before the charge."""
        try:
            return product_cover(sizes, float(self.error))
        except ParameterError as refused:
            raise ParameterError(
                f"{refused} For algorithm='cover' alpha is error / columns; algorithm='laplace' "
                "has no such limit."
            ) from None

    def _choose(
        self, people: People, account: Account, covers: tuple[SimplexGrid, ...]
    ) -> tuple[tuple[NDArray[np.float64], ...], list[float], Route]:
        """Choose the distribution of each column from its cover, with equal shares of epsilon."""
        epsilon = float_down(account.left / len(covers))
        known: dict[str, Any] = {"clip": Clip(0.5), "epsilon": epsilon, "account": account}
        chosen = [choose_member(people, cover, **known) for cover in covers]
        pmfs = tuple(
            cover.probabilities(index) for cover, index in zip(covers, chosen, strict=True)
        )
        members = ", ".join(str(cover.size) for cover in covers)
        return pmfs, [1.0], Route(name="cover", reason=f"it was requested; of {members} members.")

    def _release(
        self, people: People, account: Account, sizes: tuple[int, ...]
    ) -> tuple[tuple[NDArray[np.float64], ...], list[float], Route]:
        pays = self._radius_pays(people.size_bound * len(sizes), sum(sizes))
        if pays is not None:
            return self._around_a_centre(people, account, sizes, pays)
        gaussian, route = self._way(account, len(sizes))
        replaces = self.relation is Relation.REPLACE
        total, wrong = float(max(1, people.size_bound)), 0.0
        if not replaces:
            total, wrong = self._size(people, account, gaussian=gaussian)
        # Records are dropped as a whole, so that absence is the same in all columns.
        absent = (replaces,) + (False,) * (len(sizes) - 1)
        bound = Blocks(tuple(Simplex(k + a) for k, a in zip(sizes, absent, strict=True)))
        mechanism = _mechanism(bound, people, account, gaussian=gaussian, share=Fraction(1))
        columns = [
            ShareSet(CategoryCodes(k, column=j), k, absent=absent[j]) for j, k in enumerate(sizes)
        ]
        totals = share_totals(people, columns, mechanism.grid)
        noisy = mechanism.release(totals, count=0, account=account)
        noise = _size_of_noise(mechanism)
        parts = [noisy[part] for part in bound.places]
        if replaces:
            missing = float(parts[0][-1])
            parts[0] = parts[0][:-1]
            if missing > 3.0 * noise:
                total = max(1.0, total - missing)
            wrong = 6.0 * noise
        pmfs, bounds = [], []
        for values in parts:
            found, level = nearest_distribution(values / total)
            known = {"categories": values.size, "level": level, "beta": 0.8 * _BETA / len(sizes)}
            bounded = (
                gaussian_bound(sigma=noise / total, **known)  # type: ignore[arg-type]
                if gaussian
                else laplace_bound(scale=noise / total, **known)  # type: ignore[arg-type]
            )
            pmfs.append(found)
            bounds.append(min(1.0, bounded + wrong / total))
        return tuple(pmfs), bounds, route

    @property
    def _radius_is_possible(self) -> bool:
        return self.delta > 0 and self.relation is Relation.REPLACE

    def _radius_pays(self, columns: int, categories: int) -> str | None:
        """Return why a private radius is tried, from public numbers; None if it is not tried."""
        if self.algorithm == "mean":
            return "it was requested."
        enough = columns * float(self.epsilon) >= _RADIUS_USERS and categories <= _MAX_ROW
        if self.algorithm == "auto" and self._radius_is_possible and enough:
            return "a private radius pays."
        return None

    def _around_a_centre(
        self, people: People, account: Account, sizes: tuple[int, ...], reason: str
    ) -> tuple[tuple[NDArray[np.float64], ...], list[float], Route]:
        """Release the mean of all columns' shares, one row per user, with a private radius."""
        coders = tuple(CategoryCodes(k, column=j) for j, k in enumerate(sizes))
        rows = people.derive(ShareRows(coders, sizes), keep=True)
        even = np.concatenate([np.full(k, 1.0 / k) for k in sizes])
        # No shares of a column are farther from even ones than a single category is.
        bound = Ball(1.0001 * math.sqrt(sum(1.0 - 1.0 / k for k in sizes)), centre=even)
        users = PeopleVectors.of(rows, UserData.user_means, bound)
        found = gaussian_run(account, users, bound).adapt()
        shares = found.mean + bound.centre
        pmfs = tuple(
            nearest_distribution(shares[part])[0]
            for part in Blocks(tuple(map(Simplex, sizes))).places
        )
        stated = min(1.0, 0.5 * math.sqrt(sum(sizes)) * found.error.bound)
        route = Route(name="mean", reason=f"{reason} {found.route}")
        return pmfs, [stated], route

    def _way(self, account: Account, columns: int) -> tuple[bool, Route]:
        """Compare the mean lengths of Laplace and Gaussian noise, from public numbers."""
        if self.algorithm != "auto":
            route = Route(name=self.algorithm, reason="it was requested.")
            return self.algorithm == "gaussian", route
        laplace = 2.0 * columns / float(account.left)
        square = float(account.square_left)
        normal = 0.8 * math.sqrt(2.0 * columns / square) if square else math.inf
        if normal < laplace:
            return True, Route(name="gaussian", reason=f"less noise for {columns} columns.")
        return False, Route(name="laplace", reason=f"the least noise for {columns} column(s).")

    def _size(self, people: People, account: Account, *, gaussian: bool) -> tuple[float, float]:
        """Release the number of people with records, which is private under add/remove."""
        bound = Interval(0.0, 1.0, centre=0.0)
        mechanism = _mechanism(bound, people, account, gaussian=gaussian, share=_COUNT_SHARE)
        totals = people.total(_Present(bound), mechanism.grid)
        noisy = float(mechanism.release(totals, count=0, account=account)[0])
        tail = math.log(1.0 / (0.2 * _BETA))
        return max(1.0, noisy), _size_of_noise(mechanism) * tail

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the released probability of each row of ``X``."""
        check_columns(X, self.categories_)
        columns = label_columns(X)
        scores = np.zeros(len(columns[0]))
        for column, labels, pmf in zip(columns, self.categories_, self.pmfs_, strict=True):
            places = label_places(column, labels)
            known = ~np.isnan(places)
            shares = np.zeros(len(scores))
            shares[known] = pmf[places[known].astype(np.int64)]
            with np.errstate(divide="ignore"):
                scores += np.log(shares)
        return scores

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> NDArray[Any]:
        """Draw rows of labels from the released distribution; no records are touched."""
        seed = self.random_state if random_state is None else random_state
        generator = public_generator(seed)
        rows = np.empty((int(n_samples), len(self.pmfs_)), dtype=object)
        for j, (labels, pmf) in enumerate(zip(self.categories_, self.pmfs_, strict=True)):
            rows[:, j] = [labels[place] for place in draw(pmf, n_samples, generator)]
        return rows

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the shares of every column, one above the other; needs matplotlib."""
        figure, axes = new_figure()
        for j, pmf in enumerate(self.pmfs_):
            left = np.concatenate([[0.0], np.cumsum(pmf)[:-1]])
            axes.barh([j] * pmf.size, pmf, left=left, edgecolor="white")
        axes.set(xlabel="share of people's records", ylabel="column", title=str(self.error_))
        return self._saved(figure, path)


@dataclass(frozen=True)
class _Present:
    """Whether a person has a record."""

    bound: Bound

    def __call__(self, users: UserData) -> NDArray[np.bool_]:
        return users.record_counts()[:, None] > 0


def _mechanism(
    bound: Bound, people: People, account: Account, *, gaussian: bool, share: Fraction
) -> LaplaceSum | GaussianSum:
    relation = account.relation
    l1, l2 = bound.change(relation)
    users = people.size_bound
    if gaussian:
        multiplier = account.multiplier(share * account.square_left)
        scale = multiplier * l2
        grid = choose_grid(bound, n_users=users, noise_scale=scale, max_steps=_MAX_STEPS)
        return GaussianSum(grid=grid, noise_multiplier=multiplier, relation=relation)
    epsilon = share * account.left
    scale = l1 / float(epsilon)
    grid = choose_grid(bound, n_users=users, noise_scale=scale, max_steps=_MAX_STEPS)
    return LaplaceSum(grid=grid, epsilon=float_down(epsilon), relation=relation)


def _size_of_noise(mechanism: LaplaceSum | GaussianSum) -> float:
    if isinstance(mechanism, LaplaceSum):
        return mechanism.scale * mechanism.grid.step
    return mechanism.standard_error
