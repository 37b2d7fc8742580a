"""What estimators of distributions share: parameters, weights, plots."""

from __future__ import annotations

import numbers
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.guarantees import Guarantee, Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState, public_generator
from quorate.core.users.crowd import Crowd
from quorate.core.users.data import UserData
from quorate.data.tables import declared_names
from quorate.distributions.released import DistributionError
from quorate.estimators import Route, UserEstimator
from quorate.exceptions import MissingExtraError, ParameterError, SchemaError
from quorate.mechanisms.choices.quantiles import PrivateQuantile

__all__ = ["UserDistribution", "new_figure"]

# Share of epsilon that finds the cap of records, and the share of users below it.
_CAP_SHARE = Fraction(1, 20)
_BELOW_CAP = Fraction(9, 10)
_LARGEST_POWER = 30  # machine: caps of up to 2^30 records


def new_figure() -> tuple[Any, Any]:
    """Return a figure and its axes; needs matplotlib.

    >>> figure, axes = new_figure()
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "plot needs matplotlib; install it with: pip install 'quorate[plot]'."
        ) from None
    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    return figure, figure.subplots()


class UserDistribution(UserEstimator):
    """Base of estimators of distributions.

    By default every person counts once, however many records they have. With ``records=`` every
    record counts, up to that many per person; then the sum of the weights is released as well.
    """

    _single_feature = True
    _takes_crowds = True

    records: int | str | None = None
    algorithm: str = "auto"
    _algorithms: tuple[str, ...] = ("auto",)

    guarantee_: Guarantee
    error_: DistributionError
    algorithm_: Route

    def _check_common(self) -> None:
        """Refuse invalid parameters, before the charge."""
        _validate.useful_epsilon(epsilon=self.epsilon)
        _validate.delta(delta=self.delta)
        _validate.one_of(self._algorithms, algorithm=self.algorithm)
        if isinstance(self.records, str):
            _validate.one_of(("auto",), records=self.records)
        elif self.records is not None:
            _validate.positive_integer(records=self.records)
        if self.algorithm in ("ball", "gaussian") and self.delta == 0:
            raise ParameterError(f"algorithm={self.algorithm!r} needs delta > 0; use 'laplace'.")
        if self.algorithm in ("ball", "polytope"):
            if self.relation is not Relation.REPLACE:
                raise ParameterError(
                    f"algorithm={self.algorithm!r} needs Relation.REPLACE; use 'laplace'."
                )
            if self.records is not None:
                raise ParameterError(
                    f"algorithm={self.algorithm!r} counts people; use 'laplace' with records=."
                )

    def _keep_names(self, X: Any) -> None:
        """Remember the names of label columns, which are not read by the usual functions."""
        names = declared_names(X)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    @staticmethod
    def _check_one_feature(X: Any) -> None:
        """Refuse more than one column, if the shape of ``X`` is known."""
        shape = getattr(X, "shape", None)
        several = isinstance(shape, tuple) and len(shape) == 2 and shape[1] != 1
        if several or (isinstance(X, Crowd) and X.n_features != 1):
            raise SchemaError("Expected one column of numbers, got another number of columns.")

    def _cap(self, people: People, account: Account) -> int:
        """Return the number of records from which on a person has full weight."""
        if self.records is None:
            return 1
        if isinstance(self.records, numbers.Integral):
            return int(self.records)
        found = PrivateQuantile(
            domain=(0, _LARGEST_POWER),
            quantile=_BELOW_CAP,
            epsilon=float_down(_CAP_SHARE * account.left),
            relation=self.relation,
        ).release(people.each(_record_powers), account=account)
        return int(2**found)

    def _saved(self, figure: Any, path: str | Path | None) -> Any:
        if path is not None:
            figure.savefig(path)
        return figure


def _record_powers(part: UserData) -> NDArray[np.int64]:
    """Return each user's number of records, rounded up to a power of two, as its exponent."""
    return np.ceil(np.log2(np.maximum(part.record_counts(), 1))).astype(np.int64)


def draw(
    shares: NDArray[np.float64], n_samples: int, random_state: RandomState
) -> NDArray[np.int64]:
    """Return ``n_samples`` random indices with these probabilities.

    >>> draw(np.array([0.0, 1.0]), 3, 0).tolist()
    [1, 1, 1]
    """
    _validate.positive_integer(n_samples=n_samples)
    chances = shares / shares.sum()
    places = public_generator(random_state).choice(shares.size, size=int(n_samples), p=chances)
    return np.asarray(places, np.int64)
