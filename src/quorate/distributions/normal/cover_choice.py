r"""One choice from one cover of normal distributions: mean and covariance together (F8).

Theorem 46 of Ghazi et al. [1]_ takes a cover of all normal distributions with
:math:`\|\mu\| \le R` and :math:`I \preceq \Sigma \preceq \kappa I` and makes one purely private
choice; Theorem 45 does the same for a known covariance. Records are converted to these units by
public numbers alone: the middle of the public range, and the known covariance or the smallest
standard deviation. The chosen distribution is converted back.

References
----------
.. [1] Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang. User-level differential privacy with few
   examples per user. NeurIPS 2023. Theorems 45 and 46.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.core.bounds.grid import Bound
from quorate.core.people import People
from quorate.core.users.data import UserData
from quorate.distributions.hypotheses.clip import Clip
from quorate.distributions.hypotheses.covers import gaussian_cover, gaussian_mean_cover
from quorate.distributions.hypotheses.families import MAX_MEMBERS, GaussianFamily
from quorate.distributions.hypotheses.planes import PlaneFamily, plane_cover
from quorate.distributions.hypotheses.selection import choose_member
from quorate.exceptions import ParameterError

__all__ = ["NormalCover", "StandardRecords"]

Floats = NDArray[np.float64]
Matrix = tuple[tuple[float, ...], ...]

# A step in which the smallest error is looked for that a cover can be made for.
_HUNDREDTH = 0.01


@dataclass(frozen=True)
class StandardRecords:
    """Converts the records of users to public units, record by record.

    >>> people = UserData.from_arrays([[1.0], [50.0], [3.0]], users=[4, 9, 4])
    >>> StandardRecords(((0.5,),), centre=(1.0,))(people).X
    array([[ 0. ],
           [ 1. ],
           [24.5]])
    """

    whitening: Matrix
    centre: tuple[float, ...]

    def __call__(self, part: UserData) -> UserData:
        """Return the users with the same numbers of records."""
        with np.errstate(all="ignore"):
            offsets = part.X - np.array(self.centre)
            # Coordinate by coordinate, for every record alike.
            columns = [
                sum(weight * offsets[:, j] for j, weight in enumerate(row))
                for row in self.whitening
            ]
        rows = np.stack([np.asarray(column) for column in columns], axis=1)
        made = UserData(rows, offsets=part.offsets, unit=part.unit, ids=np.arange(part.n_users))
        return made.with_keys(part.keys())


@dataclass(frozen=True, kw_only=True)
class NormalCover:
    """Normal distributions to choose from, in the units of the records.

    Attributes
    ----------
    family : GaussianFamily or PlaneFamily
        Distributions in units in which the smallest standard deviation, or the known covariance, is
        1.
    root : array of shape (d, d)
        Converts these units back.
    centre : array of shape (d,)
    """

    family: GaussianFamily | PlaneFamily
    root: Floats
    centre: Floats

    @classmethod
    def of(
        cls,
        bound: Bound,
        *,
        error: float,
        covariance: Floats | None = None,
        deviations: tuple[float, float] | None = None,
    ) -> NormalCover:
        """Return the cover for a public range; refuse one with too many members.

        >>> from quorate.core.bounds.grid import Interval
        >>> NormalCover.of(Interval(0.0, 10.0), error=0.5, deviations=(2.0, 3.0)).family.size
        212
        """
        d = bound.dimension
        ratio: float | None
        if covariance is None:
            low, high = deviations or (1.0, 1.0)
            if d > 2:
                raise ParameterError(
                    "algorithm='cover' with an unknown covariance takes one or two features, got "
                    f"{d}. Pass covariance=, or delta > 0 and algorithm='mean'."
                )
            root, ratio = low * np.eye(d), (high / low) ** 2
        else:
            root, ratio = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64), None
        radius = float(np.linalg.norm(np.linalg.inv(root), 2)) * bound.l2_radius
        try:
            family = _family(d, radius, ratio, error)
        except ParameterError:
            raise ParameterError(_refusal(d, radius, ratio, error)) from None
        return cls(family=family, root=root, centre=np.asarray(bound.centre, dtype=np.float64))

    def choose(self, people: People, *, epsilon: float, account: Account) -> tuple[Floats, Floats]:
        """Return mean and covariance of the chosen member; the choice costs ``epsilon``.

        Privacy: a record in public units is a function of that record alone, and
        :func:`~quorate.distributions.hypotheses.selection.choose_member` clips the sum over all
        records of a user. The result is the index of a member of a public list.
        """
        inverse = np.linalg.inv(self.root)
        change = StandardRecords(
            tuple(map(tuple, inverse.tolist())), tuple(self.centre.reshape(-1).tolist())
        )
        rows = people.derive(change, keep=True)
        index = choose_member(rows, self.family, clip=Clip(0.5), epsilon=epsilon, account=account)
        mean, spread = _member(self.family, index)
        covariance = self.root @ spread @ self.root.T
        return self.centre + self.root @ mean, 0.5 * (covariance + covariance.T)


def _family(
    d: int, radius: float, ratio: float | None, error: float
) -> GaussianFamily | PlaneFamily:
    """Return the cover of the theorem; if the covariance is known, a cover of means alone."""
    if ratio is None:
        return gaussian_mean_cover(radius, d, error)
    return gaussian_cover(radius, ratio, error) if d == 1 else plane_cover(radius, ratio, error)


def _member(family: GaussianFamily | PlaneFamily, index: int) -> tuple[Floats, Floats]:
    """Return mean and covariance of one member."""
    if isinstance(family, PlaneFamily):
        return family.mean(index), np.asarray(family.covariances, dtype=np.float64)[index]
    mean = np.asarray(family.means, dtype=np.float64)[index]
    scale = np.broadcast_to(np.asarray(family.scales, dtype=np.float64), family.size)[index]
    return mean, scale**2 * np.eye(mean.size)


def _refusal(d: int, radius: float, ratio: float | None, error: float) -> str:
    """Return why there is no cover, and the smallest error for which there is one."""
    known = "" if ratio is None else f" and deviations within a factor of {math.sqrt(ratio):.3g}"
    start = (
        f"algorithm='cover' compares at most {MAX_MEMBERS} normal distributions, too few for "
        f"error={error:g} with means within {radius:.3g} standard deviations{known}. "
    )
    other = "narrower bounds= or deviations=, or pass delta > 0 and algorithm='mean'."
    if ratio is None:
        other = "narrower bounds=, or algorithm='medians'."
    for hundredths in range(math.ceil(error / _HUNDREDTH), 100):
        try:
            _family(d, radius, ratio, hundredths * _HUNDREDTH)
        except ParameterError:
            continue
        return f"{start}Take error={hundredths * _HUNDREDTH:.2f} or more, {other}"
    return f"{start}No error < 1 is large enough: take {other}"
