"""A posterior over how far apart users are and how many lie farther out, from released lifts.

Every round of the moving ball (:mod:`quorate.means.routes.drifting_ball`) releases a mean lift. The
lift of a user (:mod:`quorate.core.bounds.lifted_ball`) falls as the user lies farther from the
centre. The lifts of all rounds so far are compared with the expected lifts of model populations. In
a model population all users are at one typical distance from the centre, or a share of them is at a
larger distance. The prior on the logarithm of the typical distance is uniform. The prior of the
larger distance falls with its root. Such a prior lies between two others: a flat one, and one under
which every scale contributes the same clipping bias. For each population the clipping bias of the
mean is known, as a function of the radius. The next radius minimises expected noise and clipping
bias. The stated error uses a posterior quantile of the clipping bias. Only released numbers are
used.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quorate.core.bounds.lifted_ball import lift

__all__ = ["LEAST_SHARE", "Look", "UsersBelief", "best_size"]

Vector = NDArray[np.float64]

# Typical distances: from that of the range down, eight of them an e-fold, to e^-22 of it.
_STEP, _SCALES = 1 / 8, 176
# Shares of the users who may lie farther out; each is as likely, against none, as it is large.
LEAST_SHARE = 1 / 16
_SHARES = (LEAST_SHARE, 1 / 4)
# Who is less than twice as far out as others lies around the same centre.
_APART = math.log(2.0)
# A grid of laws in one variable: the logarithm of a typical distance, in radii.
_LOGS = np.arange(-16.0, 24.0, 1 / 32)
_NODES = (np.arange(256.0) + 1 / 2) / 256
_NEVER = -32.0
_CONFIDENCE = 0.95  # public: 95 % is the convention of stated errors


@dataclass(frozen=True)
class Look:
    """One round: a ball, its released mean lift and the noise scale of the lift, in radii."""

    centre: Vector
    radius: float
    lift: float
    noise: float


@dataclass(frozen=True)
class _Laws:
    """Expected mean lifts and mean excesses over the radius, for typical distances ``exp(_LOGS)``.

    Distances follow a gamma law with the dimension as its shape: in one dimension they are
    exponential, in many dimensions nearly equal. ``doubt`` is the difference between these lifts
    and the lifts of users at equal distances. It is used as the model error, because the true
    distribution of the users is unknown.
    """

    lifts: Vector
    beyond: Vector
    doubt: Vector
    slopes: Vector


@lru_cache(maxsize=16)
def _laws(shape: int, *, cone: bool = False) -> _Laws:
    from scipy.special import gammaincinv

    typical = np.exp(_LOGS)
    distances = typical[:, None] * (gammaincinv(float(shape), _NODES) / shape)
    lifts = lift(distances, cone=cone).mean(axis=1)
    return _Laws(
        lifts=lifts,
        beyond=np.maximum(distances - 1.0, 0.0).mean(axis=1),
        doubt=np.abs(lifts - lift(typical, cone=cone)),
        slopes=np.gradient(lifts, _LOGS),
    )


@dataclass(frozen=True)
class _Products:
    """Weighted products, over rounds, of expected lifts, model errors and observed lifts.

    The letters of the fields say which: e (expected), g (model error) and h (observed).
    """

    eh: Vector
    ee: Vector
    eg: Vector
    gh: Vector
    gg: Vector

    @classmethod
    def of(cls, e: Vector, g: Vector, h: Vector, weights: Vector) -> _Products:
        """Return the products for populations with one typical distance."""
        pairs = ((e, h), (e, e), (e, g), (g, h), (g, g))
        return cls(*((weights * a * b).sum(axis=0) for a, b in pairs))

    @classmethod
    def of_two(cls, e: Vector, g: Vector, h: Vector, weights: Vector) -> _Products:
        """Return the products for pairs of distances, one for each row and one for each column."""
        weighed = weights * e
        return cls(
            eh=(weighed * h).sum(axis=0),
            ee=weighed.T @ e,
            eg=(weights * g).T @ e,
            gh=np.zeros(0),
            gg=(weighed * e).sum(axis=0),
        )

    def mixed(self, two: _Products, share: float) -> _Products:
        """Return the products of mixtures; a ``share`` of the users has the column's distance."""
        rest = 1.0 - share
        return _Products(
            eh=rest * self.eh[:, None] + share * self.eh,
            ee=rest**2 * self.ee[:, None] + 2.0 * rest * share * two.ee + share**2 * self.ee,
            eg=rest * self.eg[:, None] + share * two.eg,
            gh=self.gh[:, None],
            gg=self.gg[:, None],
        )

    def likelihoods(self, size_error: float) -> Vector:
        """Return log likelihoods, up to a common constant.

        The model has two unknown normal variables: a factor of all expected lifts, and a multiple
        of the model errors. Both are integrated out.
        """
        square = size_error**2
        size, law, together = 1.0 + square * self.ee, 1.0 + self.gg, size_error * self.eg
        sized, doubted = size_error * (self.eh - self.ee), self.gh - self.eg
        whole = size * law - together**2
        common = law * sized**2 + size * doubted**2 - 2.0 * together * sized * doubted
        return np.asarray(self.eh - self.ee / 2.0 + (common / whole - np.log(whole)) / 2.0)


def best_size(
    dimension: int, noise: float, *, one_sided: float | None = None
) -> tuple[float, float]:
    """Return the best last radius for users at one distance, and its noise and clipping bias.

    Both are in units of the users' typical distance. ``noise`` is the length of the noise of the
    mean, in radii. With ``one_sided`` the users are this share of all users and lie on one side of
    the others. Otherwise they lie around one centre.

    >>> [round(best_size(d, 0.01)[0], 1) for d in (1, 10, 100)]
    [3.8, 1.5, 1.0]
    """
    part = 1.0 / math.sqrt(dimension) if one_sided is None else one_sided
    reaches, choices = _best_sizes(dimension, part)
    size, bias = choices[bisect_left(reaches, noise**2)]
    return size, math.hypot(noise, bias) * size


@lru_cache(maxsize=256)
def _best_sizes(dimension: int, part: float) -> tuple[list[float], list[tuple[float, float]]]:
    """Return, for each range of the squared noise, the best radius.

    The result contains the upper ends of the ranges, the best radii and their biases.

    Radii are in units of the typical distance, biases in radii. For each radius the squared error
    is a linear function of the squared noise. So the best radii form the lower envelope of these
    lines.
    """
    biases, sizes = _laws(dimension).beyond * part, np.exp(-_LOGS)
    slopes, starts = sizes**2, (biases * sizes) ** 2
    place, reaches = int(np.lexsort((slopes, starts))[0]), []
    places = [place]
    while (flatter := np.flatnonzero(slopes < slopes[place])).size:
        meets = (starts[flatter] - starts[place]) / (slopes[place] - slopes[flatter])
        place = int(flatter[np.lexsort((slopes[flatter], meets))[0]])
        reaches.append(float(meets.min()))
        places.append(place)
    return reaches, [(float(sizes[each]), float(biases[each])) for each in places]


@dataclass(frozen=True)
class UsersBelief:
    """A posterior over model populations; made by :meth:`of`.

    ``alike`` has the probabilities of populations in which all users are at one distance from the
    centre, ``mixed`` those of populations in which a share of the users is at a larger distance.
    """

    logs: Vector
    alike: Vector
    mixed: tuple[Vector, ...]
    dimension: int
    cone: bool

    @classmethod
    def of(
        cls,
        looks: Sequence[Look],
        *,
        centre: Vector,
        around: float,
        reach: float,
        cone: bool = False,
        size_error: float = 0.0,
        known: float | None = None,
        one_centre: bool = False,
    ) -> UsersBelief:
        """Return the posterior, given the released rounds.

        Parameters
        ----------
        looks : sequence of Look
            All rounds so far.
        centre : array of shape (d,)
            Where the centre of the users is taken to be, and
        around : float
            How far the true centre may be from ``centre``, as a length.
        reach : float
            Radius of the public range.
        cone : bool, default=False
            Whether the lift is a cone instead of a sphere.
        size_error : float, default=0.0
            Relative standard error of the number of users, by which all lifts were divided.
        known : float or None
            The typical distance, if it is public.
        one_centre : bool, default=False
            Whether populations in which a share lies farther out are excluded.

        Examples
        --------
        If lifts fall as the ball shrinks, users lie around one centre. If they do not, many users
        are at the centre and others far away.

        >>> def pull(heights):
        ...     sizes = 2.0 ** -np.arange(0.0, 12.0)
        ...     centre = np.zeros(1)
        ...     looks = [Look(centre, r, h, 0.05) for r, h in zip(sizes, heights, strict=True)]
        ...     belief = UsersBelief.of(looks, centre=centre, around=0.0, reach=1.0)
        ...     return belief.likely_pull(2.0**-11) * 2**11
        >>> pull(lift(2.0 ** (np.arange(0.0, 12.0) - 13.0))) < 0.5, pull(np.full(12, 1.2)) > 20.0
        (True, True)
        """
        logs = math.log(reach) - _STEP * np.arange(float(_SCALES))
        if known is not None:
            logs = np.array([math.log(known)])
        laws = _laws(centre.size, cone=cone)
        radii = np.array([look.radius for look in looks])
        # No mean lift is above that of users at the centre: what is seen beyond it is noise.
        heights = np.minimum([look.lift for look in looks], lift(np.zeros(1), cone=cone))[:, None]
        off = np.array([np.linalg.norm(look.centre - centre) for look in looks])
        sizes = np.hypot(np.exp(logs), np.hypot(off, around)[:, None]) / radii[:, None]
        sizes = np.log(sizes)
        expected = np.interp(sizes, _LOGS, laws.lifts)
        weights = np.array([look.noise for look in looks])[:, None] ** -2.0
        # Distances between two of the grid are equally likely.
        step = 0.0 if known is not None else _STEP / math.sqrt(12.0)
        doubts = np.hypot(
            np.interp(sizes, _LOGS, laws.doubt), step * np.interp(sizes, _LOGS, laws.slopes)
        )
        products = _Products.of(expected, doubts, heights, weights)
        chances = [products.likelihoods(size_error)]
        shares = () if one_centre or known is not None else _SHARES
        farther = logs - logs[:, None]
        rare = np.where(
            farther >= _APART, math.log(_STEP / 2.0) + (_APART - farther) / 2.0, -np.inf
        )
        both = _Products.of_two(expected, doubts, heights, weights)
        for share in shares:
            mixed = products.mixed(both, share).likelihoods(size_error)
            chances.append(mixed + rare + math.log(share))
        top = max(float(each.max()) for each in chances)
        weighed = [np.exp(np.where(each - top > _NEVER, each - top, -np.inf)) for each in chances]
        whole = sum(float(each.sum()) for each in weighed)
        first, *others = (each / whole for each in weighed)
        return cls(logs, first, tuple(others), centre.size, cone)

    @property
    def spread(self) -> float:
        """The typical distance of most users from their centre."""
        chances = self.alike + sum(each.sum(axis=1) for each in self.mixed)
        return math.exp(float(chances @ self.logs))

    def chance_below(self, distance: float) -> float:
        """Return the probability that most users' typical distance is below ``distance``."""
        chances = self.alike + sum(each.sum(axis=1) for each in self.mixed)
        return float(chances[self.logs < math.log(distance)].sum())

    def _shared(self) -> list[tuple[float, Vector]]:
        return list(zip(_SHARES, self.mixed, strict=False))

    def _mean(self, near: Vector, far: Vector) -> Vector:
        """Return the posterior mean of a figure.

        Its values are given for users near the centre and for users farther out.

        The last axis of both arrays is the typical distance.
        """
        mean = near @ self.alike
        for share, chances in self._shared():
            mean = mean + (1.0 - share) * (near @ chances.sum(axis=1))
            mean = mean + share * (far @ chances.sum(axis=0))
        return np.asarray(mean)

    def _pulls(self, radii: Vector) -> tuple[Vector, Vector]:
        """Return the clipping bias from users near the centre and from users farther out.

        There is a row for each radius and a column for each distance. Users who lie farther out may
        all be on one side. Users around one centre lie in many directions, so their bias is smaller
        by the root of the dimension.
        """
        laws = _laws(self.dimension, cone=self.cone)
        beyond = radii[:, None] * np.interp(self.logs - np.log(radii)[:, None], _LOGS, laws.beyond)
        return beyond / math.sqrt(self.dimension), beyond

    def least_error(self, noise: float) -> float:
        """Return the expected noise and clipping bias if the population were known.

        With a known population, the best radius either excludes the users farther out or includes
        them.
        """
        _, one = best_size(self.dimension, noise)
        sizes = np.exp(self.logs)
        least = one * float(self.alike @ sizes)
        for share, chances in self._shared():
            _, all_of_them = best_size(self.dimension, noise, one_sided=share)
            left_out = np.hypot(one * sizes[:, None], share * sizes)
            least += float((chances * np.minimum(left_out, all_of_them * sizes)).sum())
        return least

    def best_radius(self, noise: float, *, reach: float) -> tuple[float, float]:
        """Return the radius with the smallest expected noise and clipping bias, and that error.

        ``noise`` is the length of the noise of the mean, in radii.
        """
        radii = np.exp(math.log(reach) - _STEP / 2.0 * np.arange(2.0 * _SCALES))
        errors = np.hypot(noise * radii, self._mean(*self._pulls(radii)))
        best = int(np.argmin(errors))
        return float(radii[best]), float(errors[best])

    def mean_pull(self, radius: float) -> float:
        """Return the expected clipping bias of a radius."""
        return float(self._mean(*self._pulls(np.array([radius])))[0])

    def likely_pull(self, radius: float) -> float:
        """Return the 95 % posterior quantile of the clipping bias of a radius."""
        near, far = (each[0] for each in self._pulls(np.array([radius])))
        pulls, chances = [near], [self.alike]
        for share, each in self._shared():
            pulls.append(((1.0 - share) * near[:, None] + share * far).ravel())
            chances.append(each.ravel())
        values, weights = np.concatenate(pulls), np.concatenate(chances)
        order = np.argsort(values)
        total = np.cumsum(weights[order])
        return float(values[order][np.searchsorted(total, _CONFIDENCE * total[-1])])

    def height(self, *, radius: float, around: float) -> tuple[float, float]:
        """Return the mean and the variance of the mean lift of the next round, in radii."""
        laws = _laws(self.dimension, cone=self.cone)
        sizes = np.log(np.hypot(np.exp(self.logs), around) / radius)
        lifts = np.interp(sizes, _LOGS, laws.lifts)
        square = lifts**2 + np.interp(sizes, _LOGS, laws.doubt) ** 2
        mean = float(self._mean(lifts, lifts))
        return mean, max(0.0, float(self._mean(square, square)) - mean**2)
