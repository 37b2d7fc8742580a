"""The algorithms for a distribution over categories, each paid from one account."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate._validate import float_down
from quorate.core.account.account import Account
from quorate.core.account.secret_pairs import secret_pairs
from quorate.core.bounds.grid import Bound, Grid, Interval
from quorate.core.bounds.simplex import Simplex
from quorate.core.bounds.trimmed import FEW, Trimmed
from quorate.core.guarantees import Relation
from quorate.core.people import People
from quorate.core.questions.shares import Coder, ShareSet, share_totals
from quorate.core.sealed import Sealed, SealedRows
from quorate.distributions.categories.expected_errors import (
    CELLS,
    CLOSE,
    DIAMETER,
    INSIDE,
    RATIO,
    UNLIKE,
    ExpectedErrors,
    Likeness,
    stretch,
)
from quorate.distributions.categories.trimmed_mean import NOTICED, TrimmedMean
from quorate.distributions.categories.trimming import Apart, Distances, OwnShares, TrimmedRows
from quorate.distributions.projection import (
    balanced_bound,
    gaussian_bound,
    laplace_bound,
    mixed_bound,
    nearest_distribution,
)
from quorate.distributions.released import DistributionError, ReleasedShares
from quorate.distributions.shares import Weights
from quorate.estimators import Route
from quorate.mechanisms.balanced import BalancedSum
from quorate.mechanisms.choices.quantiles import PrivateQuantile
from quorate.mechanisms.laplace import LaplaceSum
from quorate.mechanisms.noisy_count import NoisyCount
from quorate.mechanisms.sums import GaussianSum, choose_grid

__all__ = ["DiscreteRun"]

_BETA = 0.05  # public: 95 % is the convention of stated errors
# Integer shares times the records of one user stay below 2^63.
_MAX_STEPS = 2**30
_COUNT_SHARE = Fraction(3, 100)
# More pairs than this make no visible difference to the share of close ones.
_MAX_PAIRS = 2**12


@dataclass(frozen=True, kw_only=True)
class DiscreteRun:
    """One distribution over categories.

    Parameters
    ----------
    people : People
    coder : Coder
        Maps records to category numbers.
    categories : int
    account : Account
    cap : int, default=1
        Number of records up to which a user's weight grows; 1 counts every user once.
    alike : bool, default=False
        Whether it is public knowledge that all users are similar.
    """

    people: People
    coder: Coder
    categories: int
    account: Account
    cap: int = 1
    alike: bool = False

    @property
    def relation(self) -> Relation:
        """The neighbouring relation of the account."""
        return self.account.relation

    @property
    def _users(self) -> int:
        """The number of users where it is public, otherwise None."""
        return max(1, self.people.size_bound)

    @property
    def _balances(self) -> bool:
        """Whether Laplace noise is drawn so that it adds up to zero, for few categories."""
        return self.relation is Relation.REPLACE and self.categories <= FEW

    @property
    def _errors(self) -> ExpectedErrors:
        """Expected errors of all algorithms with the rest of the budget."""
        return ExpectedErrors(
            users=self._users,
            categories=self.categories,
            epsilon=float(self.account.left),
            mu=math.sqrt(self.account.square_left),
        )

    def adapt(self) -> ReleasedShares:
        """Test whether users are similar, if that is worth its cost, and use the best algorithm."""
        question = self._errors.decide(
            relation=self.relation, weighted=self.cap > 1, alike=self.alike
        )
        if isinstance(question, Route):
            return self.laplace(question.reason)
        if self._close_pairs(question) < CLOSE:
            return self.laplace(UNLIKE.reason)
        return self._shrink(question.norm, question.spread, question.route)

    def laplace(self, reason: str) -> ReleasedShares:
        """Add Laplace noise to the shares of all users."""
        return self._whole(self.account.left, None, Route(name="laplace", reason=reason))

    def gaussian(self, reason: str) -> ReleasedShares:
        """Add Gaussian noise to the shares of all users."""
        return self._whole(None, self.account.square_left, Route(name="gaussian", reason=reason))

    def ball(self, reason: str) -> ReleasedShares:
        """Shrink an L2 ball around the users; leave out users far away, or include their mean."""
        return self._shrink(2, self._errors.widest(2), Route(name="ball", reason=reason))

    def polytope(self, reason: str) -> ReleasedShares:
        """Shrink an L1 ball around the users, under pure privacy."""
        return self._shrink(1, self._errors.widest(1), Route(name="polytope", reason=reason))

    def _shrink(self, norm: int, spread: float, route: Route) -> ReleasedShares:
        """Release a rough centre, a radius that contains nearly all users, and the mean inside.

        If this lowers the expected error, the mean becomes the centre of a second round.
        """
        errors = self._errors
        _, shares = errors.ball(norm, errors.typical(spread))
        searches = len(shares) * Fraction(errors.searching)
        whole = self.account.left - searches if norm == 1 else self.account.square_left
        first, *middle = (Fraction(share) * whole for share in shares)
        centre, noise, _ = self._rough_centre(*_of_norm(norm, first))
        kept = max(1, int(np.count_nonzero(centre)))
        error = noise * (kept if norm == 1 else math.sqrt(kept))
        far = stretch(norm, self.categories, errors.nearly_all)
        top = min(DIAMETER[norm], far * math.hypot(spread, error))
        radius = self._find_radius(centre, top, norm, errors)
        for part in middle:
            mean = self._trimmed_mean(centre, radius, norm, part)
            centre, _ = nearest_distribution(mean.inside())
            radius = self._find_radius(centre, radius, norm, errors)
        rest = self.account.left if norm == 1 else self.account.square_left
        return self._of_trimmed(self._trimmed_mean(centre, radius, norm, rest), route)

    # Everybody's shares, with noise for the whole simplex.

    def _whole(
        self, epsilon: Fraction | None, square: Fraction | None, route: Route
    ) -> ReleasedShares:
        if self.relation is Relation.ADD_REMOVE:
            return self._whole_of_unknown_size(epsilon, square, route)
        shares, noise, level = self._rough_centre(epsilon, square, normalise=False)
        present = float(shares[:-1].sum())
        bound = self._noise_bound(
            noise, pure=square is None, categories=self.categories + 1, level=level, beta=_BETA
        )
        # Conditioning on those who are there divides a total variation by their share.
        return _released(shares[:-1], bound / max(present, 1e-9), 0.0, route)

    def _whole_of_unknown_size(
        self, epsilon: Fraction | None, square: Fraction | None, route: Route
    ) -> ReleasedShares:
        """Release the number of users, or the sum of their weights, where it is private."""
        for_count = None if epsilon is None else _COUNT_SHARE * epsilon
        for_square = None if square is None else _COUNT_SHARE * square
        line = Interval(0.0, 1.0, centre=0.0)
        counter = self._mechanism(line, for_count, for_square)
        steps = int(1.0 / counter.grid.step)
        weights = Weights(self.coder, line, steps, self.cap, up=True)
        weight = counter.release(
            self.people.total(weights, counter.grid), count=0, account=self.account
        )
        size = max(1.0, float(weight[0]))
        mechanism = self._mechanism(
            Simplex(self.categories),
            None if epsilon is None else epsilon - _COUNT_SHARE * epsilon,
            None if square is None else square - _COUNT_SHARE * square,
        )
        sums = mechanism.release(self._shares(mechanism.grid), count=0, account=self.account)
        noise = _size_of_noise(mechanism)
        shares, level = nearest_distribution(sums / size)
        bound = self._noise_bound(
            noise / size,
            pure=square is None,
            categories=self.categories,
            level=level,
            beta=0.8 * _BETA,
        )
        wrong_size = _size_of_noise(counter) * math.log(1.0 / (0.2 * _BETA)) / size
        return _released(shares, bound + wrong_size, 0.0, route)

    def _shares(self, grid: Grid) -> Sealed:
        """Return the totals of the shares, with an extra category for absent weight if ``room``."""
        absent = grid.bound.dimension > self.categories
        own = ShareSet(self.coder, self.categories, absent=absent)
        return share_totals(self.people, [own], grid, cap=self.cap)

    def _rough_centre(
        self, epsilon: Fraction | None, square: Fraction | None, *, normalise: bool = True
    ) -> tuple[NDArray[np.float64], float, float]:
        """Release the totals of shares and of absent users; return also the noise and the level."""
        balanced = square is None and self._balances
        bound = Simplex(self.categories if balanced else self.categories + 1)
        mechanism = self._mechanism(bound, epsilon, square)
        sums = mechanism.release(self._shares(mechanism.grid), count=0, account=self.account)
        if balanced:
            # What is missing to everybody is absent: this noise adds up to zero.
            sums = np.append(sums, self._users - sums.sum())
        shares, level = nearest_distribution(sums / self._users)
        noise = _size_of_noise(mechanism) / self._users
        return (_conditioned(shares[:-1]) if normalise else shares), noise, level

    def _mechanism(
        self, bound: Bound, epsilon: Fraction | None, square: Fraction | None
    ) -> LaplaceSum | GaussianSum:
        l1, l2 = bound.change(self.relation)
        size = self.people.size_bound
        if epsilon is not None:
            grid = choose_grid(
                bound, n_users=size, noise_scale=l1 / float(epsilon), max_steps=_MAX_STEPS
            )
            kind = BalancedSum if self._balances else LaplaceSum
            return kind(grid=grid, epsilon=float_down(epsilon), relation=self.relation)
        multiplier = self.account.multiplier(square or Fraction(0))
        grid = choose_grid(bound, n_users=size, noise_scale=multiplier * l2, max_steps=_MAX_STEPS)
        return GaussianSum(grid=grid, noise_multiplier=multiplier, relation=self.relation)

    def _noise_bound(
        self, noise: float, *, pure: bool, categories: int, level: float, beta: float
    ) -> float:
        if not pure:
            return gaussian_bound(sigma=noise, categories=categories, level=level, beta=beta)
        bound = balanced_bound if self._balances else laplace_bound
        return bound(scale=noise, categories=categories, level=level, beta=beta)

    # A small ball around a centre.

    def _close_pairs(self, question: Likeness) -> float:
        """Release the share of close pairs among disjoint, secret pairs of users.

        One user changes one pair, and the count by at most 1; see ``docs/proofs/distributions.md``.
        """
        pairs = min(self._users // 2, _MAX_PAIRS)
        apart = secret_pairs(
            self.people,
            OwnShares(self.coder, self.categories),
            account=self.account,
            most=2 * pairs,
            made=Apart(question.norm),
            at_once=max(1, 2**22 // self.categories),
        )
        counter = NoisyCount(epsilon=question.epsilon, relation=self.relation)
        close = apart.counts([question.reach])
        return counter.release(close, account=self.account) / max(1, pairs)

    def _distances(self, centre: NDArray[np.float64], *, norm: int) -> SealedRows:
        return self.people.each(Distances(self.coder, tuple(centre.tolist()), norm))

    def _find_radius(
        self, centre: NDArray[np.float64], top: float, norm: int, errors: ExpectedErrors
    ) -> float:
        """Release a radius, up to about ``top``, that contains nearly all users.

        The median distance is released, and the law of distances extrapolates it to nearly all
        users.
        """
        cells = top * RATIO ** np.arange(1.0 - CELLS, 1.0)
        place = PrivateQuantile(
            domain=(0, CELLS - 1),
            quantile=Fraction(INSIDE),
            epsilon=errors.searching,
            relation=self.relation,
        ).release(self._distances(centre, norm=norm).map(_Cells(cells)), account=self.account)
        far, seen = (stretch(norm, self.categories, share) for share in (errors.nearly_all, INSIDE))
        return min(DIAMETER[norm], float(cells[place]) * far / seen)

    def _trimmed_mean(
        self, centre: NDArray[np.float64], radius: float, norm: int, part: Fraction
    ) -> TrimmedMean:
        """Release the sums for users inside and outside, with this part of the budget."""
        epsilon, square = _of_norm(norm, part)
        bound = Trimmed(radius, centre, norm=norm)
        mechanism = self._mechanism(bound, epsilon, square)
        totals = self.people.total(TrimmedRows(self.coder, bound), mechanism.grid)
        sums = mechanism.release(totals, count=0, account=self.account)
        offsets = sums[: self.categories]
        if bound.balanced:
            offsets[-1] = -offsets[:-1].sum()
        return TrimmedMean(
            centre=centre,
            radius=radius,
            pure=square is None,
            users=self._users,
            offsets=offsets,
            outside=sums[self.categories : -2] / bound.whole,
            votes=(float(sums[-2]) / bound.vote, float(sums[-1]) / bound.vote),
            noise=_size_of_noise(mechanism),
            whole=bound.whole,
        )

    def _of_trimmed(self, final: TrimmedMean, route: Route) -> ReleasedShares:
        mean, level = nearest_distribution(final.mean())
        beta = 0.9 * _BETA if final.noticed else 0.5 * _BETA
        if final.noticed:
            # Those outside are counted in, with all their noise.
            bound = mixed_bound(
                inner=final.noise / final.present,
                outer=final.outer_noise / final.present,
                centre=final.centre,
                pure=final.pure,
                beta=beta,
                balanced=final.pure and self._balances,
            )
        else:
            bound = self._noise_bound(
                final.noise / final.present,
                pure=final.pure,
                categories=self.categories,
                level=level,
                beta=beta,
            )
        # Votes of absence that were ignored leave the divisor wrong by at most twice as many.
        reach = final.radius if final.pure else final.radius * math.sqrt(self.categories)
        bound += 0.5 * reach * 2.0 * NOTICED * final.vote_noise / final.present
        left_out = 0.0 if final.noticed else final.left_out(0.4 * _BETA)
        return _released(mean, bound, left_out, route)


def _of_norm(norm: int, part: Fraction) -> tuple[Fraction | None, Fraction | None]:
    """Return a part of the budget as epsilon, for Laplace noise, or as mu squared."""
    return (part, None) if norm == 1 else (None, part)


@dataclass(frozen=True)
class _Cells:
    """The cell of each distance; the last cell has no upper end."""

    cells: NDArray[np.float64]

    def __call__(self, distances: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.minimum(np.searchsorted(self.cells, distances), self.cells.size - 1)


def _size_of_noise(mechanism: LaplaceSum | GaussianSum) -> float:
    """Return the scale of Laplace noise, or the standard deviation of Gaussian noise."""
    if isinstance(mechanism, LaplaceSum):
        return mechanism.scale * mechanism.grid.step
    return mechanism.standard_error


def _conditioned(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shares of the present users; uniform shares if nobody seems to be present."""
    present = float(shares.sum())
    if present <= 0.0:
        return np.full(shares.size, 1.0 / shares.size)
    return np.asarray(shares / present)


def _released(
    shares: NDArray[np.float64], noise: float, left_out: float, route: Route
) -> ReleasedShares:
    noise, left_out = min(1.0, noise), min(1.0, left_out)
    error = DistributionError(
        metric="total variation",
        noise=noise,
        left_out=left_out,
        bound=min(1.0, noise + left_out),
    )
    return ReleasedShares(shares=_conditioned(shares), error=error, route=route)
