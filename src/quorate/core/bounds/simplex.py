"""Bounds of shares: numbers of at least zero that add up to one for each user.

No value raises or warns: a row that contains NaN or infinity counts as no shares. That no integer
vector leaves the simplex is proved in ``docs/proofs/grid.md``.
"""

from __future__ import annotations

from quorate.core.bounds.grid import Ball, Joint
from quorate.core.guarantees import Relation

__all__ = ["Simplex"]


class Simplex(Ball):
    """Shares of a whole: numbers >= 0, one for each of ``categories``, that add up to at most 1.

    A user's amount of each category, divided by the total of this user. Two users differ by at
    most 2 in the L1 norm and by the root of 2 in the L2 norm, however many categories there are,
    where a box of the same side would say d and the root of d. Shares that add up to more than 1
    are divided by their sum; negative ones count as 0.

    Parameters
    ----------
    categories : int

    Examples
    --------
    >>> import numpy as np
    >>> Simplex(3).clip([[1.0, 1.0, 2.0], [0.5, 0.0, -7.0], [np.nan, 1.0, 0.0]]).round(6)
    array([[0.25, 0.25, 0.5 ],
           [0.5 , 0.  , 0.  ],
           [0.  , 0.  , 0.  ]])
    >>> Simplex(100_000).l1_diameter, round(Simplex(100_000).l2_diameter, 6)
    (2.0, 1.414214)
    """

    def __init__(self, categories: int) -> None:
        super().__init__(1.0, dimension=categories, norm=1, signed=False)

    def joint_in_steps(self, step: float, relation: Relation) -> Joint:
        """All shares balance: one user raises some of them and lowers others, each by a whole."""
        return "balanced_laplace", (self.dimension,), 2 * int(1.0 / step)

    def __repr__(self) -> str:
        return f"Simplex({self.dimension})"
