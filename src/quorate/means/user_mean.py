"""The private mean with automatic clipping: its error falls as users have more records."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.account.costs import gdp_mu
from quorate.core.bounds.grid import Bound
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.core.users import UserData
from quorate.data.tables import declared_names, declared_users
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import ParameterError
from quorate.ledger.ledger import Ledger
from quorate.means.present_mean import ErrorParts, MeanRelease
from quorate.means.routes.auto_route import AutoRun, InHalfWidths, unit_bound
from quorate.means.vector_mean import gaussian_run
from quorate.means.weighted_users import PeopleVectors
from quorate.mechanisms.means.private_range import CONSTANTS
from quorate.mechanisms.means.rotation import Rotation
from quorate.mechanisms.means.winsorized import RotatedWinsorizedMean, WinsorizedMean
from quorate.ranges import as_bound, declared_bound, half_widths

__all__ = ["UserMean"]

_ONE_DIMENSION = "algorithm='winsorized' needs delta > 0 in more than one dimension (U3)."
_ALGORITHMS = ("auto", "clip", "interval", "ball", "winsorized")


class UserMean(UserEstimator):
    r"""The mean over users of each user's mean record, hiding any one user's whole record.

    Every user counts once, however many records they have (see ``records`` for weights). You only
    need to state a loose public range. The location and the spread of the users are found
    privately. The noise is proportional to how much users *really* differ; for users who are alike
    and have m records each it falls as :math:`1/\sqrt m`.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, pure if ``delta`` = 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters, the number of features and, under ``Relation.REPLACE``, the number of
        users; released: ``mean_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : Records of a user are averaged and clipped to ``bounds``; all later steps use one vector
        per user. *Ball*: Gaussian sums in balls, together with lifts, which do not raise the
        sensitivity (``docs/proofs/lifted_ball.md``), and at most one test on pairs or windows. Each
        uses a share of one :class:`~quorate.core.account.account.Account`. *Pure routes*: a count,
        the width of windows or the distance of pairs, the position of windows, their ends, and a
        sum with Laplace noise (for a box, noise calibrated to the largest coordinate). The costs
        add up to ``epsilon``. Decisions use released numbers only.

    Utility
    -------
    The expected error of every method follows from public and released numbers, and the method
    with the smallest one is used (:mod:`quorate.means.routes.expected_errors`).
    ``error_.standard_error`` is the root mean square length of the noise; ``error_.bound`` and, for
    each coordinate, ``error_.coordinates`` bound the error with probability 95 %. They include
    clipping bias and absent users, and assume that users become fewer towards the ends of the
    range; ``error_.worst`` holds without this assumption. For n users whose means spread by
    :math:`\tau` (L2) in d >= 10 dimensions the noise is about :math:`2.5\,\tau\sqrt d/(n\mu)` with
    :math:`\mu` = ``gdp_mu(epsilon, delta)``. With too few users, or if the public range is not much
    wider than the users, users are clipped to the range, and ``algorithm_`` says so.

    Complexity
    ----------
    It makes at most 70 passes over one vector per user.

    Parameters
    ----------
    epsilon : float
        At least 1e-9.
    delta : float, default=0.0
        0 gives pure differential privacy, for few dimensions.
    bounds : float, pair, dict or Bound
        Public range of the values: a number b for [-b, b] in each coordinate, (lower, upper), or a
        :class:`~quorate.core.bounds.grid.Bound`. It may be loose: each power of ten costs a few
        percent of accuracy.
    categories : dict, optional
        Public values by column; each becomes a column of zeros and ones, whose mean is a share
        (:mod:`quorate.data.coding`).
    algorithm : str, default="auto"
        ``"clip"`` to the range; ``"interval"``: clip each feature to an interval around the users,
        found privately; ``"ball"`` (delta > 0): clip to a ball that is moved to where the users
        are; ``"winsorized"`` as published (needs ``radius``).
    radius : float, optional
        How far users lie from their centre (L2), if that is public knowledge.
    records : int, "auto" or None, default=None
        ``None`` counts every user equally. A number M gives a user with m records the weight
        sqrt(min(1, m/M)). Weights are best if users differ less from each other than the records of
        one user do. ``"auto"`` finds M privately.
    robust : float, default=0.0
        Share of users who may be hostile or far away; their influence on the mean is limited. If
        they are honest, this causes a bias. Up to 0.25.
    constants : {"calibrated", "published"}, default="calibrated"
        For ``algorithm="winsorized"``.
    relation, ledger, data_name, random_state
        As in every estimator; ``random_state`` seeds the public rotation of ``"winsorized"`` only.

    Attributes
    ----------
    mean_ : array of shape (d,)
    guarantee_ : Guarantee
    error_ : MeanError
    algorithm_ : Route
        Which method was used, and why.

    References
    ----------
    .. [1] Levy et al. Learning with user-level privacy. NeurIPS 2021, arXiv:2102.11845.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> steps = rng.normal(70.0, 1.0, size=(40_000, 2))
    >>> people = np.repeat(np.arange(2000), 20)
    >>> mean = UserMean(epsilon=1.0, delta=1e-6, bounds=1000.0).fit(steps, users=people)
    >>> bool(np.all(np.abs(mean.mean_ - 70.0) < 0.2))
    True
    >>> mean.guarantee_.epsilon, mean.algorithm_.name
    (1.0, 'interval')
    """

    _takes_crowds = True
    _codes_columns = True

    def __init__(  # noqa: PLR0913 - the common keywords
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        bounds: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        algorithm: str = "auto",
        radius: float | None = None,
        records: int | str | None = None,
        robust: float = 0.0,
        constants: str = "calibrated",
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.algorithm = algorithm
        self.radius = radius
        self.records = records
        self.robust = robust
        self.constants = constants
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> UserMean:
        """Release the mean of ``X`` (records x features, with ``users``, or a crowd).

        Parameters
        ----------
        X : array, frame, UserData or another crowd
        y : ignored
        users : array of shape (records,) or str
            The user id of each row, or the name of the column of ``X`` with the ids.
        """
        X = self._as_numbers(X)
        self._check_parameters(X)
        account = self._charge(X, None, users)
        people = self._population(X, None, users)
        bound = as_bound(self._public_bounds(X), people.n_features, declared_names(X))
        release, scales = self._release(people, bound, account)
        self.guarantee_ = self._promise(account)
        offset = np.clip(release.mean * scales, -half_widths(bound), half_widths(bound))
        self.mean_ = offset + bound.centre
        self.error_ = release.parts.scaled(scales).stated()
        spread = release.route.spread
        self.algorithm_ = replace(
            release.route, spread=None if spread is None else spread * float(scales.max())
        )
        return self

    def _check_parameters(self, X: Any) -> None:
        """Refuse wrong parameters and shapes, before the charge."""
        _validate.useful_epsilon(epsilon=self.epsilon)
        _validate.one_of(_ALGORITHMS, algorithm=self.algorithm)
        _validate.one_of(CONSTANTS, constants=self.constants)
        _validate.delta(delta=self.delta)
        bound = declared_bound(self._public_bounds(X), X)
        if self.radius is not None:
            _validate.positive(radius=self.radius)
        _validate.fraction(robust=self.robust)
        if self.robust > 0.25:
            raise ParameterError(f"Expected 0 <= robust <= 0.25, got robust={self.robust!r}.")
        if self.records is not None and not isinstance(self.records, str):
            _validate.positive_integer(records=self.records)
        elif self.records is not None:
            _validate.one_of(("auto",), records=self.records)
        for refused, reason in self._conflicts(bound.dimension):
            if refused:
                raise ParameterError(reason)
        if self.algorithm == "winsorized":
            # What cannot be planned for two users cannot be for more.
            users = declared_users(X, None)
            self._published(bound, 2 if users is None else users).error_bound(0.5)
        elif self.delta:
            gdp_mu(float(self.epsilon), float(self.delta))

    def _conflicts(self, dimension: int) -> list[tuple[bool, str]]:
        """Return combinations of parameters that have no meaning, each with a message."""
        pure, replace = self.delta == 0, self.relation is Relation.REPLACE
        return [
            (
                pure and self.algorithm == "ball",
                "algorithm='ball' needs delta > 0; with delta=0 use 'interval'.",
            ),
            (
                self.algorithm == "winsorized" and self.radius is None,
                "algorithm='winsorized' needs radius=; the other algorithms find one privately.",
            ),
            (
                not replace and self.algorithm == "winsorized",
                f"algorithm={self.algorithm!r} needs Relation.REPLACE; use 'auto'.",
            ),
            (
                self.algorithm == "winsorized" and pure and dimension > 1,
                _ONE_DIMENSION,
            ),
            (
                self.records is not None and (pure or not replace),
                "records= needs delta > 0 and Relation.REPLACE; use records=None, which counts "
                "every user equally.",
            ),
            (
                bool(self.robust) and pure,
                "robust= needs delta > 0; with delta=0 use PrivateMedian.",
            ),
        ]

    def _release(
        self, people: People, bound: Bound, account: Account
    ) -> tuple[MeanRelease, NDArray[np.float64]]:
        """Return the release, and the factors that convert it to the units of the data."""
        ones = np.ones(bound.dimension)
        if self.algorithm == "winsorized":
            return self._winsorized(people, bound, account), ones
        if self._is_special:
            return self._gaussian(people, bound, account), ones
        run = AutoRun(
            users=PeopleVectors.of(people, InHalfWidths(bound), unit_bound(bound)),
            bound=unit_bound(bound),
            account=account,
        )
        if self.algorithm == "clip":
            return run.clip(None, "it was requested."), half_widths(bound)
        if self.algorithm == "interval":
            return run.interval(run.count()), half_widths(bound)
        return run.adapt(), half_widths(bound)

    @property
    def _is_special(self) -> bool:
        """Return whether a parameter requests a Gaussian route in the units of the data."""
        asked = self.radius is not None or self.records is not None or bool(self.robust)
        return self.delta > 0 and (asked or self.algorithm == "ball")

    def _gaussian(self, people: People, bound: Bound, account: Account) -> MeanRelease:
        run = gaussian_run(
            account,
            PeopleVectors.of(people, UserData.user_means, bound, counted=self.records is not None),
            bound,
            records=float(self.records) if isinstance(self.records, numbers.Integral) else None,
            hostile=float(self.robust),
            spread=None if self.radius is None else float(self.radius),
        )
        if self.algorithm == "clip":
            return run.clip("it was requested.")
        return run.adapt()

    def _published(self, bound: Bound, n_users: int) -> WinsorizedMean | RotatedWinsorizedMean:
        radius, reach = float(self.radius or 0.0), float(half_widths(bound).max())
        if self.delta == 0:
            return WinsorizedMean(
                lower=-reach,
                upper=reach,
                radius=radius,
                epsilon=float(self.epsilon),
                n_users=n_users,
                constants=self.constants,
            )
        return RotatedWinsorizedMean(
            bound=reach,
            radius=radius,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            n_users=n_users,
            dimension=bound.dimension,
            constants=self.constants,
        )

    def _winsorized(self, people: People, bound: Bound, account: Account) -> MeanRelease:
        if self.delta == 0 and people.n_features > 1:
            raise ParameterError(_ONE_DIMENSION)
        mechanism = self._published(bound, people.n_users)
        account.reserve_chain(mechanism.event)
        vectors = PeopleVectors.of(people, UserData.user_means, bound).rows()
        if isinstance(mechanism, WinsorizedMean):
            mean = np.array([mechanism.release(vectors.column(0), account=account)])
            scales, width = np.array([mechanism.noise_scale]), mechanism.range.half_width
        else:
            rotation = Rotation.random(people.n_features, random_state=self.random_state)
            mean = mechanism.release(vectors, rotation=rotation, account=account)
            scales = np.full(mechanism.padded, mechanism.coordinate.noise_scale)
            width = mechanism.coordinate.range.half_width * math.sqrt(mechanism.padded)
        route = Route(name="winsorized", reason="it was requested.", spread=mechanism.radius)
        noise = np.full(mean.shape, math.sqrt(2.0) * float(scales[0]))
        parts = ErrorParts(noise=noise, laplace=True, radius=width)
        return MeanRelease(mean=mean, parts=parts, route=route)
