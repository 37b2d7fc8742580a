"""Normal distributions of people's records: known covariance, or both unknown."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate._validate import described, float_down
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Ball, Bound, Box
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.users import UserData
from quorate.distributions.base import UserDistribution, new_figure
from quorate.distributions.normal.cover_choice import NormalCover
from quorate.distributions.normal.rows import (
    WhitenedMeans,
    WithinCovariances,
    matrix_of,
    own_row,
    vector_of,
)
from quorate.distributions.numeric.cdf import as_edges_column
from quorate.distributions.released import DistributionError
from quorate.estimators import Route
from quorate.exceptions import ParameterError, SchemaError
from quorate.ledger.ledger import Ledger
from quorate.means.present_mean import MeanRelease
from quorate.means.vector_mean import private_mean, pure_mean
from quorate.means.weighted_users import PeopleVectors
from quorate.mechanisms.choices.quantiles import FloatQuantile
from quorate.ranges import as_bound, declared_bound, for_squares

__all__ = ["GaussianDistribution", "cover_step", "decide_mean"]

# Shares of epsilon for the mean where the covariance is released too.
_MEAN_SHARE = Fraction(3, 10)
# Whitened means are resolved to this part of a standard deviation; a cover for few users has steps
# of up to so many.
_RESOLUTION, _COARSEST = 1.0 / 128.0, 0.4
# Where points far off are to have this chance of being released, times a step.
_SELDOM = 0.1
# Below this many users times epsilon a private radius is too dear.
_RADIUS_USERS = 600.0


def decide_mean(
    *,
    users: int,
    epsilon: float,
    delta: float,
    relation: Relation,
    dimension: int = 2,
    known: bool = True,
) -> Route:
    """Return how ``"auto"`` finds the mean, from public numbers; the planner uses it too.

    ``epsilon`` is the part for the mean; under add or remove the number of users is not used.
    ``known`` says whether the covariance is public. Then a median is best for one feature; its
    error was a quarter to a half of that of a mean on real data (pupils' reading scores).

    >>> decide_mean(users=3000, epsilon=1.0, delta=1e-6, relation=Relation.REPLACE).name
    'mean'
    """
    if delta == 0:
        return Route(name="medians", reason="medians of users' means need no range and no delta.")
    if relation is Relation.ADD_REMOVE:
        return Route(name="mean", reason="the number of users is private.")
    if known and dimension == 1:
        return Route(name="medians", reason="a median of users' means errs least for one feature.")
    if users * epsilon < _RADIUS_USERS:
        return Route(name="medians", reason="there are too few users for a private radius.")
    return Route(name="mean", reason="a private radius pays off.")


def cover_step(*, users: int, epsilon: float, width: float) -> float:
    r"""Return the grid step for medians, in standard deviations, from public numbers.

    The probability of a point with all users on one side is :math:`e^{-n\varepsilon/4}` times that
    of their median, and there are ``width`` / step such points. With few users a coarse cover of
    the means (F8) is better than a fine grid, because more users share a point. If each user votes
    for the nearest member of such a cover, the votes are ranks. So the choice *is* a median on a
    grid, and no table of duels is needed.

    >>> cover_step(users=100, epsilon=1.0, width=2000.0)
    0.0078125
    >>> round(cover_step(users=40, epsilon=1.0, width=600.0), 2)
    0.27
    """
    wanted = width * math.exp(-0.25 * users * epsilon) / _SELDOM
    return min(_COARSEST, max(_RESOLUTION, wanted))


class GaussianDistribution(UserDistribution):
    r"""A normal distribution of people's records, hiding any one person's whole record.

    The records are assumed to come from one normal distribution. Its mean is estimated from the
    means of users, its covariance from how records vary within users. The error falls with the
    number of records per user, and hardly depends on the width of the public range.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, pure if ``delta`` = 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters, the number of features and, under ``Relation.REPLACE``, the number of
        users; released: ``mean_``, ``covariance_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : Each user is reduced to one row, a function of that user's records and of public or
        released numbers: the mean of the clipped records, or the covariance within the user.
        *medians*: a private quantile of each whitened coordinate, adding up to ``epsilon``, on a
        grid whose step depends on public numbers (:func:`cover_step`). *mean*:
        :class:`~quorate.means.user_mean.UserMean` of the rows. Covariance and mean share
        ``epsilon`` and ``delta``; the mean is whitened with the *released* covariance. *cover*: one
        choice of ``epsilon`` among finitely many normal distributions, mean and covariance together
        (:class:`~quorate.distributions.normal.cover_choice.NormalCover`), in which a user's
        contribution is clipped. The distributions to choose from depend on ``bounds``,
        ``covariance`` or ``deviations``, and ``error``.

    Utility
    -------
    With probability 95 % ``error_.bound`` bounds the total variation distance from the normal
    distribution with the users' own centre and covariance; it includes the noise only. It uses
    Pinsker's inequality :math:`\frac12\sqrt{\|R\|_F^2 + \Delta^2}` for a relative error R of the
    covariance and a distance :math:`\Delta` of the means in standard deviations. *cover* states no
    error (a bound of 1). For similar users with m records each it is off by at most :math:`\alpha`
    = ``error`` if there are :math:`\tilde O(L(1/\varepsilon + 1/(\alpha\varepsilon\sqrt m) +
    1/(\alpha^2 m)))` users, where L is the logarithm of the number of members (Theorems 45 and 46).

    Complexity
    ----------
    Time :math:`O(N d)` for a known covariance, :math:`O(N d^2)` otherwise, plus that of
    :class:`~quorate.means.user_mean.UserMean`. *cover*: :math:`O(N M^2)` for M members, at most
    4096; about a second for a thousand records and 500 members.

    Parameters
    ----------
    epsilon : float
    bounds : number, pair or Bound
        Loose public range of the records.
    covariance : array of shape (d, d), optional
        The covariance, if it is public knowledge. By default it is released too, which needs
        ``delta`` > 0 and users with at least two records, or a cover.
    deviations : pair of floats, optional
        Public limits of the standard deviation in any direction; needed if the covariance is
        unknown. Their ratio, squared, bounds the condition number.
    delta : float, default=0.0
    algorithm : {"auto", "medians", "mean", "cover"}, default="auto"
        The algorithm for the mean. ``"cover"`` finds mean and covariance together with pure
        privacy, for one or two features within a narrow range (any number of features if the
        covariance is public). ``"auto"`` uses it if neither ``covariance`` nor ``delta`` is given.
    error : float, default=0.5
        The total variation distance for which ``"cover"`` is built: every normal distribution
        within the public limits is within a tenth of it of some member.
    relation, ledger, data_name, random_state
        As in every estimator; ``random_state`` seeds :meth:`sample`.

    Attributes
    ----------
    mean_ : array of shape (d,)
    covariance_ : array of shape (d, d)
    error_ : DistributionError
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Ghazi et al. User-level differential privacy with few examples per user. NeurIPS 2023,
       Theorems 45 and 46.

    Examples
    --------
    >>> heights = np.random.default_rng(0).normal(170.0, 8.0, size=(1600, 1))
    >>> people = np.repeat(np.arange(100), 16)
    >>> normal = GaussianDistribution(1.0, bounds=1000.0, covariance=[[64.0]])
    >>> bool(abs(normal.fit(heights, users=people).mean_[0] - 170.0) < 3.0)
    True
    >>> normal.algorithm_.name
    'medians'
    """

    _algorithms = ("auto", "medians", "mean", "cover")
    _single_feature = True

    mean_: NDArray[np.float64]
    covariance_: NDArray[np.float64]

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: Any = None,
        covariance: ArrayLike | None = None,
        deviations: tuple[float, float] | None = None,
        delta: float = 0.0,
        algorithm: str = "auto",
        error: float = 0.5,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.covariance = covariance
        self.deviations = deviations
        self.delta = delta
        self.algorithm = algorithm
        self.error = error
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> GaussianDistribution:
        """Release the distribution of ``X`` (records x features, with ``users``, or a crowd)."""
        self._check_common()
        _validate.probability(error=self.error)
        bound = for_squares(declared_bound(self.bounds, X))
        known = self._known_covariance(bound.dimension)
        if self._by_cover:
            return self._fit_cover(X, users, bound, known)
        account = self._charge(X, None, users)
        people = self._population(X, None, users)
        bound = for_squares(as_bound(self.bounds, people.n_features))
        if known is not None and len(known) != people.n_features:
            raise SchemaError(
                f"Expected a covariance of {people.n_features} features, got {len(known)}."
            )
        covariance, relative, share = known, 0.0, Fraction(1)
        route = self._route(people, 1.0 if covariance is not None else float(_MEAN_SHARE))
        by_medians = route.name == "medians"
        if covariance is None:
            share = _MEAN_SHARE
            if by_medians:
                # Medians are pure: what they cost is kept apart from the noise of the covariance.
                account.set_aside(share * account.epsilon)
            rest = account.part(1 if by_medians else 1 - share)
            covariance, relative = self._within(people, bound, rest)
        mean, distance, route = self._centre(people, bound, covariance, account, share, route=route)
        self.guarantee_ = self._promise(account)
        self.mean_, self.covariance_ = mean, covariance
        self.algorithm_ = route
        together = 0.5 * math.hypot(relative, distance) if relative < 0.5 else 1.0
        stated = min(1.0, 0.4 * distance if known is not None else together)
        self.error_ = DistributionError(metric="total variation", noise=stated, bound=stated)
        return self

    @property
    def _by_cover(self) -> bool:
        """Whether mean and covariance are chosen together: on request, or to be pure."""
        only = self.algorithm == "auto" and self.covariance is None and self.delta == 0
        return only or self.algorithm == "cover"

    def _fit_cover(
        self, X: Any, users: Any, bound: Bound, known: NDArray[np.float64] | None
    ) -> GaussianDistribution:
        """Choose the distribution from a cover, which is built before the charge."""
        deviations = None if known is not None else as_deviations(self.deviations)
        given = {"error": float(self.error), "covariance": known, "deviations": deviations}
        cover = NormalCover.of(bound, **given)  # type: ignore[arg-type]
        account = self._charge(X, None, users)
        people = self._population(X, None, users)
        if people.n_features != bound.dimension:
            raise SchemaError(
                f"Expected bounds of {people.n_features} features, got {bound.dimension}."
            )
        found = cover.choose(people, epsilon=float_down(account.left), account=account)
        self.guarantee_ = self._promise(account)
        self.mean_, self.covariance_ = found
        asked = self.algorithm == "cover"
        reason = "it was requested" if asked else "a covariance that is unknown needs delta > 0"
        self.algorithm_ = Route(name="cover", reason=f"{reason}; of {cover.family.size} members.")
        self.error_ = DistributionError(metric="total variation", noise=1.0, bound=1.0)
        return self

    def _known_covariance(self, dimension: int) -> NDArray[np.float64] | None:
        """Return the public covariance; refuse an invalid one, and one that cannot be released."""
        if self.covariance is None:
            if self.deviations is None:
                raise ParameterError(
                    "GaussianDistribution needs covariance=, if it is public, or deviations=, the "
                    "smallest and largest standard deviation in any direction."
                )
            low, high = as_deviations(self.deviations)
            if self.delta == 0 and not self._by_cover:
                raise ParameterError(
                    "An unknown covariance needs delta > 0, such as delta=1e-6; with delta=0 pass "
                    "covariance=, or take algorithm='cover'."
                )
            if not high / low <= 1e6:
                raise ParameterError("Expected deviations within a factor of 1e6 of each other.")
            return None
        matrix = np.atleast_2d(np.asarray(self.covariance, dtype=np.float64))
        square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
        if not (square and np.all(np.isfinite(matrix)) and np.allclose(matrix, matrix.T)):
            raise ParameterError(
                f"Expected covariance to be a symmetric matrix, got {described(self.covariance)}."
            )
        if len(matrix) != dimension or np.linalg.eigvalsh(matrix)[0] <= 0:
            raise ParameterError(
                f"Expected a positive definite covariance of {dimension} features, got one of "
                f"{len(matrix)}."
            )
        return matrix

    def _within(
        self, people: People, bound: Bound, account: Account
    ) -> tuple[NDArray[np.float64], float]:
        """Release the covariance within users; return it with a bound on its relative error."""
        low, high = as_deviations(self.deviations)
        lower, upper = _limits(bound)
        rows = people.derive(WithinCovariances(lower, upper), keep=True)
        d = people.n_features
        ball = Ball(4.0 * high**2 * math.sqrt(d), centre=vector_of(0.5 * high**2 * np.eye(d)))
        found = _mean_of(rows, ball, account)
        values, vectors = np.linalg.eigh(matrix_of(found.mean + ball.centre, d))
        values = np.clip(values, low**2, high**2)
        covariance = np.einsum("ij,j,kj->ik", vectors, values, vectors)
        return 0.5 * (covariance + covariance.T), found.error.bound / float(values.min())

    def _centre(
        self,
        people: People,
        bound: Bound,
        covariance: NDArray[np.float64],
        account: Account,
        share: Fraction,
        *,
        route: Route,
    ) -> tuple[NDArray[np.float64], float, Route]:
        """Release the mean; return it, its error in standard deviations, and the algorithm."""
        root = np.linalg.cholesky(covariance)
        whitening = np.linalg.inv(root)
        lower, upper = _limits(bound)
        middle = 0.5 * (np.array(lower) + np.array(upper))
        half = np.abs(whitening) @ (0.5 * (np.array(upper) - np.array(lower)))
        # Whitened coordinates are offsets from the middle of the range, up to rounding.
        reach = 1.001 * half + 1.0
        centre = whitening @ middle
        rows = people.derive(
            WhitenedMeans(tuple(map(tuple, whitening.tolist())), lower, upper), keep=True
        )
        if route.name == "medians":
            # A pure draw for the covariance may have used some of what was kept for medians.
            found, distance, step = self._medians(rows, centre, reach, account.rest())
            if step > _RESOLUTION:
                cover = f"users are few: on a cover in steps of {step:.2g} standard deviations."
                route = replace(route, reason=f"{route.reason} {cover}")
        else:
            box = Box(centre - reach, centre + reach)
            released = _mean_of(rows, box, account.part(share))
            found, distance = released.mean + box.centre, released.error.bound
            route = replace(route, reason=f"{route.reason} {released.route}")
        return root @ found, distance, route

    def _route(self, people: People, share: float) -> Route:
        if self.algorithm != "auto":
            return Route(name=self.algorithm, reason="it was requested.")
        return decide_mean(
            users=people.size_bound,
            epsilon=share * float(self.epsilon),
            delta=float(self.delta),
            relation=self.relation,
            dimension=people.n_features,
            known=self.covariance is not None,
        )

    def _medians(
        self,
        rows: People,
        centre: NDArray[np.float64],
        reach: NDArray[np.float64],
        account: Account,
    ) -> tuple[NDArray[np.float64], float, float]:
        """Return the medians, their errors, and the largest grid step."""
        values = rows.each(own_row).present()
        d = reach.size
        epsilon = float_down(account.epsilon / d)
        found, off, steps = np.empty(d), np.empty(d), np.full(d, _RESOLUTION)
        for j in range(d):
            if self.relation is Relation.REPLACE:
                width = 2.0 * float(reach[j])
                steps[j] = cover_step(users=rows.size_bound, epsilon=epsilon, width=width)
            mechanism = FloatQuantile(
                lower=float(centre[j] - reach[j]),
                upper=float(centre[j] + reach[j]),
                resolution=float(steps[j]),
                epsilon=epsilon,
                relation=self.relation,
            )
            found[j] = mechanism.release(values.column(j), account=account)
            off[j] = 2.0 * reach[j]
            if self.relation is Relation.REPLACE:
                # The mean of several records spreads less than one record does.
                rank = mechanism.error_bound(0.05 / d) / max(1, rows.size_bound)
                rounding = 0.5 * steps[j] if steps[j] > _RESOLUTION else 0.0
                off[j] = min(off[j], _deviations_of(rank) + rounding)
        return found, float(np.linalg.norm(off)), float(steps.max())

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the released density at each row of ``X``."""
        offsets = self._features(X) - self.mean_
        solved = np.linalg.solve(np.linalg.cholesky(self.covariance_), offsets.T)
        _, logarithm = np.linalg.slogdet(self.covariance_)
        constant = self.mean_.size * math.log(2.0 * math.pi) + logarithm
        return np.asarray(-0.5 * ((solved**2).sum(axis=0) + constant))

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> NDArray[np.float64]:
        """Draw rows from the released distribution; no records are touched."""
        _validate.positive_integer(n_samples=n_samples)
        seed = self.random_state if random_state is None else random_state
        normal = public_generator(seed).standard_normal((int(n_samples), self.mean_.size))
        return np.asarray(self.mean_ + normal @ np.linalg.cholesky(self.covariance_).T)

    def cdf(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the released distribution function; for one feature."""
        from scipy.special import ndtr

        middle, deviation = self._one_feature()
        return np.asarray(ndtr((as_edges_column(np.atleast_1d(x)) - middle) / deviation))

    def quantile(self, q: ArrayLike) -> Any:
        """Return where the released distribution function reaches ``q``; for one feature."""
        from scipy.special import ndtri

        middle, deviation = self._one_feature()
        return middle + deviation * ndtri(np.asarray(q, dtype=np.float64))

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the released density of each feature; needs matplotlib."""
        figure, axes = new_figure()
        for middle, variance in zip(self.mean_, np.diag(self.covariance_), strict=True):
            offsets = np.linspace(-4.0, 4.0, 201)
            deviation = math.sqrt(variance)
            density = np.exp(-0.5 * offsets**2) / (deviation * math.sqrt(2.0 * math.pi))
            axes.plot(middle + deviation * offsets, density)
        axes.set(ylabel="density of people's records", title=str(self.error_))
        return self._saved(figure, path)

    def _one_feature(self) -> tuple[float, float]:
        if self.mean_.size != 1:
            raise SchemaError("Expected one feature: several have no distribution function here.")
        return float(self.mean_[0]), math.sqrt(float(self.covariance_[0, 0]))


def as_deviations(deviations: Any) -> tuple[float, float]:
    """Return the smallest and the largest standard deviation; refuse any other value.

    >>> as_deviations((0.5, 2))
    (0.5, 2.0)
    """
    if not (isinstance(deviations, tuple | list) and len(deviations) == 2):
        raise ParameterError(
            f"Expected deviations to be a pair of numbers, got {described(deviations)}."
        )
    low, high = deviations
    _validate.positive(smallest_deviation=low, largest_deviation=high)
    _validate.ordered(low, high, name="deviations")
    return float(low), float(high)


def _limits(bound: Bound) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the box around a bound."""
    if isinstance(bound, Box):
        return tuple(bound.lower.tolist()), tuple(bound.upper.tolist())
    reach = bound.largest_offset
    return tuple((bound.centre - reach).tolist()), tuple((bound.centre + reach).tolist())


def _deviations_of(rank: float) -> float:
    """Return the error of the median in standard deviations, given its rank error as a share."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + rank)) if rank < 0.5 else math.inf


def _mean_of(rows: People, bound: Bound, account: Account) -> MeanRelease:
    """Release a mean of one row per user by the best route, relative to the bound's centre."""
    if account.declared.delta == 0:
        return pure_mean(account, rows, bound)
    return private_mean(account, PeopleVectors.of(rows, UserData.user_means, bound), bound)
