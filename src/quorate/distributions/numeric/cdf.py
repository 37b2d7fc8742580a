"""A private distribution function of people's numbers, with its quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.guarantees import Relation
from quorate.core.public_randomness import RandomState, public_generator
from quorate.distributions.base import UserDistribution, draw, new_figure
from quorate.distributions.numeric.cumulative import CumulativeRun
from quorate.distributions.numeric.edges import declared_edges
from quorate.distributions.released import DistributionError
from quorate.distributions.shares import IntervalCodes
from quorate.estimators import Route
from quorate.exceptions import SchemaError
from quorate.ledger.ledger import Ledger

__all__ = ["EmpiricalCDF"]


class EmpiricalCDF(UserDistribution):
    r"""The distribution function of people's numbers, hiding any one person's whole record.

    The released function is, at every edge x of a public grid, the share of records up to x,
    averaged over people. Noisy sums over a tree of nested intervals keep the error small at all
    edges at once, also on a fine grid.

    Privacy
    -------
    guarantee : ``guarantee_``: ``epsilon``-DP
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and, under ``Relation.REPLACE``, the number of users; released:
        ``cdf_``, ``error_``
    numerics : exact
    proof : A user has shares of the intervals of each of L levels. They are points of L simplices
        in whole steps (:func:`~quorate.core.questions.shares.share_totals`), so one user changes
        all sums together by at most 2 L in the L1 norm. They get discrete Laplace noise. Least
        squares and making the function increasing happen after the release.

    Utility
    -------
    With probability 95 % the released distribution function differs from the exact one by at most
    ``error_.bound`` at all edges. This is about :math:`40/(n\varepsilon)` for 1,000 cells, see
    :meth:`~quorate.distributions.numeric.hierarchy.Hierarchy.largest_error`. Between edges the
    function is interpolated linearly.

    Complexity
    ----------
    One pass; time :math:`O(L N \log N)` for N records.

    Parameters
    ----------
    epsilon : float
    bounds : pair of floats, optional
        Public range of the numbers, divided into ``cells`` equal cells; values outside are clipped.
    cells : int, default=1024
    edges : sequence of floats, optional
        Increasing public edges of cells, instead of ``bounds`` and ``cells``.
    records
        As in :class:`~quorate.distributions.categories.discrete.DiscreteDistribution`.
    delta : 0.0
        Only pure differential privacy is supported; any other value is refused.
    relation, ledger, data_name, random_state
        As in every estimator; ``random_state`` seeds :meth:`sample`.

    Attributes
    ----------
    edges_ : array of shape (cells + 1,)
    cdf_ : array of shape (cells + 1,)
        Released share of records below each edge, from 0 to 1.
    error_ : DistributionError
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Qardaji, Yang, Li. Understanding hierarchical methods for differentially private
       histograms. PVLDB 6(14), 2013.

    Examples
    --------
    >>> ages = np.random.default_rng(0).normal(40.0, 10.0, size=9_000)
    >>> curve = EmpiricalCDF(1.0, bounds=(0.0, 120.0)).fit(ages, users=np.repeat(range(3000), 3))
    >>> bool(abs(curve.quantile(0.5) - 40.0) < 2.0)
    True
    >>> curve.error_.bound < 0.05
    True
    """

    _uses_delta = False

    edges_: NDArray[np.float64]
    cdf_: NDArray[np.float64]

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        bounds: tuple[float, float] | None = None,
        cells: int = 1024,
        edges: Sequence[float] | None = None,
        records: int | str | None = None,
        delta: float = 0.0,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.cells = cells
        self.edges = edges
        self.records = records
        self.delta = delta
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> EmpiricalCDF:
        """Release the distribution function of ``X``: numbers with ``users``, or a crowd.

        Parameters
        ----------
        X : array of shape (records,) or (records, 1), or a crowd with one feature
        y : ignored
        users : array of shape (records,)
        """
        self._check_common()
        edges = declared_edges(self.edges, self.bounds, self.cells)
        self._check_one_feature(X)
        account = self._charge(X, None, users)
        people = self._population(X, None, users)
        if people.n_features != 1:
            raise SchemaError("Expected one column of numbers, got more.")
        run = CumulativeRun(
            people=people,
            coder=IntervalCodes(tuple(edges.tolist())),
            cells=edges.size - 1,
            account=account,
            cap=self._cap(people, account),
        )
        released = run.release(account.left)
        self.guarantee_ = self._promise(account)
        self.edges_ = edges
        self.cdf_ = np.concatenate([[0.0], released.up_to[:-1], [1.0]])
        self.error_ = DistributionError(
            metric="largest distance of the distribution functions",
            noise=released.bound,
            bound=released.bound,
        )
        levels = released.hierarchy.levels
        self.algorithm_ = Route(
            name="hierarchy" if levels > 1 else "cells",
            reason=f"the best number of levels for {edges.size - 1} cells is {levels}.",
        )
        return self

    def cdf(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the released share of records up to each ``x``."""
        return np.interp(np.asarray(x, dtype=np.float64), self.edges_, self.cdf_)

    def quantile(self, q: ArrayLike) -> Any:
        """Return where the released function reaches each ``q``."""
        return quantile_of(q, self.edges_, self.cdf_)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> NDArray[np.float64]:
        """Draw numbers from the released distribution; no records are touched."""
        seed = self.random_state if random_state is None else random_state
        return sample_cells(np.diff(self.cdf_), self.edges_, n_samples, seed)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the released density at each number in ``X``."""
        return log_density(np.diff(self.cdf_), self.edges_, X)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the released function with the band of its error; needs matplotlib."""
        figure, axes = new_figure()
        low, high = (
            np.clip(self.cdf_ + side * self.error_.bound, 0.0, 1.0) for side in (-1.0, 1.0)
        )
        axes.fill_between(self.edges_, low, high, alpha=0.25, label="95 % bound")
        axes.plot(self.edges_, self.cdf_, label="released")
        axes.set(ylabel="share of people's records", title=str(self.error_))
        axes.legend()
        return self._saved(figure, path)


def quantile_of(q: ArrayLike, edges: NDArray[np.float64], cdf: NDArray[np.float64]) -> Any:
    """Return where a distribution function reaches each ``q``; a number for a number.

    >>> quantile_of(0.5, np.array([0.0, 1.0, 3.0]), np.array([0.0, 0.25, 1.0])).round(6)
    np.float64(1.666667)
    """
    wanted = np.asarray(q, dtype=np.float64)
    _validate.fraction(**{"q": float(wanted.min()) if wanted.size else 0.0})
    _validate.fraction(**{"q": float(wanted.max()) if wanted.size else 0.0})
    place = np.clip(np.searchsorted(cdf, wanted, side="left"), 1, cdf.size - 1)
    below, above = cdf[place - 1], cdf[place]
    share = np.where(above > below, (wanted - below) / np.where(above > below, above - below, 1), 1)
    return edges[place - 1] + np.clip(share, 0.0, 1.0) * (edges[place] - edges[place - 1])


def sample_cells(
    shares: NDArray[np.float64],
    edges: NDArray[np.float64],
    n_samples: int,
    random_state: RandomState,
) -> NDArray[np.float64]:
    """Draw cells by their shares, and a uniform position in each.

    >>> sample_cells(np.array([0.0, 1.0]), np.array([0.0, 1.0, 2.0]), 2, 0) >= 1.0
    array([ True,  True])
    """
    generator = public_generator(random_state)
    places = draw(shares, n_samples, generator)
    within = generator.random(places.size)
    return np.asarray(edges[places] + within * (edges[places + 1] - edges[places]))


def log_density(
    shares: NDArray[np.float64], edges: NDArray[np.float64], X: Any
) -> NDArray[np.float64]:
    """Return the logarithm of the density at each number; -inf outside the edges.

    >>> log_density(np.array([0.5, 0.5]), np.array([0.0, 1.0, 3.0]), [2.0, 9.0]).round(3)
    array([-1.386,   -inf])
    """
    values = as_edges_column(X)
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, shares.size - 1)
    inside = (values >= edges[0]) & (values <= edges[-1])
    with np.errstate(divide="ignore"):
        return np.log(np.where(inside, shares[place] / np.diff(edges)[place], 0.0))


def as_edges_column(X: Any) -> NDArray[np.float64]:
    """Return numbers as a vector.

    >>> as_edges_column([[1.0], [2.0]])
    array([1., 2.])
    """
    values = np.asarray(X, dtype=np.float64)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise SchemaError(f"Expected one number a row, got {values.ndim} dimensions.")
    return values
