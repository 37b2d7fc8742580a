"""A private histogram of people's numbers, with public bins or bins found privately."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.public_randomness import RandomState
from quorate.distributions.base import UserDistribution, new_figure
from quorate.distributions.categories.discrete import released_by
from quorate.distributions.categories.routes import DiscreteRun
from quorate.distributions.numeric.cdf import log_density, quantile_of, sample_cells
from quorate.distributions.numeric.cumulative import CumulativeRun
from quorate.distributions.numeric.edges import as_edges, as_range, declared_edges, loose_edges
from quorate.distributions.shares import IntervalCodes
from quorate.exceptions import ParameterError, SchemaError
from quorate.ledger.ledger import Ledger

__all__ = ["Histogram"]

# Found edges: the share of epsilon they cost, and the cells among which they are looked for.
_EDGE_SHARE = Fraction(3, 10)
_CELLS = 1024


class Histogram(UserDistribution):
    r"""The distribution of people's numbers over bins, hiding any one person's whole record.

    The records of each user give shares of the bins. The histogram is the mean of these shares over
    users, so every user counts once. Bins are public, or found privately so that all contain about
    the same share.

    Privacy
    -------
    guarantee : ``guarantee_``: (``epsilon``, ``delta``)-DP, pure if ``delta`` = 0
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : all parameters and, under ``Relation.REPLACE``, the number of users; released:
        ``edges_``, ``pmf_``, ``error_``, ``algorithm_``
    numerics : exact
    proof : With public edges as for
        :class:`~quorate.distributions.categories.discrete.DiscreteDistribution`, with bins as
        categories. Private edges are quantiles of a distribution function released for three tenths
        of ``epsilon`` (see :class:`~quorate.distributions.numeric.cdf.EmpiricalCDF`). The shares of
        the bins are then released with the rest, from the same account.

    Utility
    -------
    With probability 95 % the total variation distance from the exact shares is at most
    ``error_.bound``.

    Complexity
    ----------
    As for :class:`~quorate.distributions.categories.discrete.DiscreteDistribution`, and one more
    pass for private edges.

    Parameters
    ----------
    epsilon : float
    edges : sequence of floats or "quantiles", optional
        Public edges. ``"quantiles"`` finds them privately, and then ``bounds`` may be too wide by
        powers of ten. By default ``bounds`` is divided into ``bins`` equal bins.
    bounds : pair of floats, optional
        Public range; values outside are clipped.
    bins : int, default=20
    delta, algorithm, records
        As in :class:`~quorate.distributions.categories.discrete.DiscreteDistribution`.
    relation, ledger, data_name, random_state
        As in every estimator; ``random_state`` seeds :meth:`sample`.

    Attributes
    ----------
    edges_ : array of shape (bins + 1,)
    pmf_ : array of shape (bins,)
    density_ : array of shape (bins,)
    cdf_ : array of shape (bins + 1,)
    error_ : DistributionError
    algorithm_ : Route
    guarantee_ : Guarantee

    References
    ----------
    .. [1] Ghazi et al. User-level differential privacy with few examples per user. NeurIPS 2023,
       Theorem 43.

    Examples
    --------
    >>> wages = np.random.default_rng(0).lognormal(3.0, 0.5, size=6_000)
    >>> people = np.repeat(np.arange(3000), 2)
    >>> bars = Histogram(1.0, bounds=(0.0, 100.0), bins=10).fit(wages, users=people)
    >>> bars.pmf_.size, round(float(bars.pmf_.sum()), 9)
    (10, 1.0)
    >>> found = Histogram(1.0, edges="quantiles", bounds=(0.0, 1e6), bins=4)
    >>> found = found.fit(wages, users=people)
    >>> bool(np.all(np.abs(found.pmf_ - 0.25) < 0.1))
    True
    """

    _algorithms = ("auto", "laplace", "gaussian", "polytope", "ball")

    edges_: NDArray[np.float64]
    pmf_: NDArray[np.float64]
    density_: NDArray[np.float64]
    cdf_: NDArray[np.float64]

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        edges: Sequence[float] | str | None = None,
        bounds: tuple[float, float] | None = None,
        bins: int = 20,
        delta: float = 0.0,
        algorithm: str = "auto",
        records: int | str | None = None,
        relation: Relation = Relation.REPLACE,
        ledger: Ledger | None = None,
        data_name: str | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.edges = edges
        self.bounds = bounds
        self.bins = bins
        self.delta = delta
        self.algorithm = algorithm
        self.records = records
        self.relation = relation
        self.ledger = ledger
        self.data_name = data_name
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, users: Any = None) -> Histogram:
        """Release the histogram of ``X``: a number per record, with ``users``, or a crowd.

        Parameters
        ----------
        X : array of shape (records,) or (records, 1), or a crowd with one feature
        y : ignored
        users : array of shape (records,)
        """
        self._check_common()
        edges = self._public_edges()
        self._check_one_feature(X)
        account = self._charge(X, None, users)
        people = self._population(X, None, users)
        if people.n_features != 1:
            raise SchemaError("Expected one column of numbers, got more.")
        cap = self._cap(people, account)
        if edges is None:
            edges = self._found_edges(people, account, cap)
        run = DiscreteRun(
            people=people,
            coder=IntervalCodes(tuple(edges.tolist())),
            categories=edges.size - 1,
            account=account,
            cap=cap,
        )
        released = released_by(run, self.algorithm)
        self.guarantee_ = self._promise(account)
        self.edges_ = edges
        self.pmf_ = released.shares
        self.density_ = released.shares / np.diff(edges)
        self.cdf_ = np.concatenate([[0.0], np.cumsum(released.shares)])
        self.cdf_ /= self.cdf_[-1]
        self.error_ = released.error
        self.algorithm_ = released.route
        return self

    def _public_edges(self) -> NDArray[np.float64] | None:
        """Return the public edges, or ``None`` if they are found privately."""
        _validate.positive_integer(bins=self.bins)
        if isinstance(self.edges, str):
            _validate.one_of(("quantiles",), edges=self.edges)
            as_range(self.bounds)
            if self.bins < 2:
                raise ParameterError(f"Expected at least two bins to find, got bins={self.bins!r}.")
            return None
        return declared_edges(self.edges, self.bounds, self.bins)

    def _found_edges(self, people: People, account: Account, cap: int) -> NDArray[np.float64]:
        low, high = as_range(self.bounds)
        cells = loose_edges(low, high, _CELLS)
        run = CumulativeRun(
            people=people,
            coder=IntervalCodes(tuple(cells.tolist())),
            cells=cells.size - 1,
            account=account,
            cap=cap,
        )
        released = run.release(_EDGE_SHARE * account.left)
        curve = np.concatenate([[0.0], released.up_to[:-1], [1.0]])
        inner = quantile_of(np.arange(1, self.bins) / self.bins, cells, curve)
        return as_edges(np.unique(np.concatenate([[low], inner, [high]])))

    def cdf(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the released share of records up to each ``x``."""
        return np.interp(np.asarray(x, dtype=np.float64), self.edges_, self.cdf_)

    def quantile(self, q: ArrayLike) -> Any:
        """Return where the released distribution function reaches each ``q``."""
        return quantile_of(q, self.edges_, self.cdf_)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> NDArray[np.float64]:
        """Draw numbers from the released distribution; no records are touched."""
        seed = self.random_state if random_state is None else random_state
        return sample_cells(self.pmf_, self.edges_, n_samples, seed)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithm of the released density at each number in ``X``."""
        return log_density(self.pmf_, self.edges_, X)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the released density; needs matplotlib."""
        figure, axes = new_figure()
        axes.stairs(self.density_, self.edges_, fill=True)
        axes.set(ylabel="density of people's records", title=str(self.error_))
        return self._saved(figure, path)
