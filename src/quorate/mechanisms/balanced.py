"""Noisy sums of shares, with noise that adds up to zero, because one user's change does too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate import _validate
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.moves import GridMoves
from quorate.core.sealed import Sealed
from quorate.mechanisms.laplace import LaplaceSum, check_joint_scale

__all__ = ["BalancedSum"]


@dataclass(frozen=True, kw_only=True)
class BalancedSum(LaplaceSum):
    r"""Release a sum of shares with Laplace noise that adds up to zero.

    Replacing one user moves shares from some categories to others. If the share of absence is
    included, the change adds up to zero. The noise adds up to zero too. It has one dimension less
    than independent noise of the same scale, which makes it shorter by a factor of k / (k + 1) for
    k shares. Other coordinates get independent Laplace noise.

    Privacy
    -------
    guarantee : :math:`\varepsilon`-DP, with :math:`\varepsilon` = ``epsilon``
    neighbours : ``relation``: replace all records of one user, or add or remove all records of one
        user
    trust : central
    public : ``grid``, ``epsilon``, ``relation``, ``count``
    numerics : exact
    proof : For the first b coordinates of an integer vector z, those that add up to a whole, write
        :math:`N(z) = \sum_{j \le b} |z_j| + |\sum_{j \le b} z_j| + \sum_{j > b} |z_j|`. The first
        two terms are :math:`2\max(\sum z_j^+, \sum z_j^-)`, so N is a norm (it is the L1 norm of a
        linear image of z). Let :math:`x, x'` be the totals of neighbours; :math:`N(x - x') \le
        \Delta` = ``sensitivity`` by ``bound.joint_in_steps``: two users with shares :math:`c, c'
        \ge 0` that add up to at most a whole have :math:`\sum (c_j - c'_j)^+ \le \sum c_j`, and
        vice versa, so N is at most twice a whole. The noise has mass proportional to
        :math:`e^{-N(z)/s}`; by the triangle inequality the ratio of the two probabilities of any
        output is at most :math:`e^{\Delta/s}`, and :math:`s = \Delta/\varepsilon` is rounded up.
        The sampler draws b independent discrete Laplace integers of any size and keeps them with
        the exact probability :math:`e^{-|\sum z_j|/s}`; the number of attempts depends on the noise
        alone. This is the K-norm mechanism [1]_ of the difference body of the simplex.

    Utility
    -------
    The noise of one coordinate is stochastically smaller than that of
    :class:`~quorate.mechanisms.laplace.LaplaceSum` with the same scale, whose ``error_bound``
    holds: its mass is :math:`e^{-|z|/s}` times that of the sum of the other noises at :math:`-z`,
    which decreases in :math:`|z|`, because sums of symmetric log-concave integers are log-concave.
    The expected L1 norm, including the share of absence, is about :math:`2k/\varepsilon` wholes
    instead of :math:`2(k + 1)/\varepsilon`.

    Complexity
    ----------
    Time :math:`O(nd)` for n users; about :math:`1.8\sqrt b` attempts of b draws, so it suits tens
    of coordinates, where it also helps most.

    Parameters
    ----------
    grid : Grid
        Bound and resolution of a contribution.
    epsilon : float
    relation : Relation, default=Relation.REPLACE
        Under ``ADD_REMOVE`` changes do not add up to zero, and independent noise is smaller.

    References
    ----------
    .. [1] Hardt, Talwar. On the geometry of differential privacy. STOC 2010.

    Examples
    --------
    >>> from quorate.core.bounds.simplex import Simplex
    >>> from quorate.mechanisms.sums import choose_grid
    >>> grid = choose_grid(Simplex(3), n_users=1000)
    >>> shares = BalancedSum(grid=grid, epsilon=1.0)
    >>> people = np.tile([0.5, 0.3, 0.2], (1000, 1))
    >>> bool(np.abs(shares.release_values(people) - [500, 300, 200]).max() < 60)
    True
    >>> shares.sensitivity * grid.step, shares.guarantee.epsilon
    (2.0, 1.0)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        check_joint_scale(self.scale)

    @property
    def sensitivity(self) -> int:
        """Largest change N, in steps, between the totals of neighbours."""
        _validate.one_of(tuple(Relation), relation=self.relation)
        return self._balance[1]

    @property
    def _balance(self) -> tuple[int, int]:
        (width,), change = GridMoves(self.grid, self.relation).joint("balanced_laplace")
        return width, change

    def _add_noise(self, sums: Sealed, account: Account) -> NDArray[np.int64]:
        return account.joint(sums, "balanced_laplace", scale=self.scale)
