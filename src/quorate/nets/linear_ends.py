"""The linear regressions at the start and at the end of a network for regression.

With many noisy weights, gradient steps do not stop at a linear solution but wander around it. So
the training starts at a private linear model, which costs half of the budget. If the truth is
linear, only residuals are left to be learned, and gradients and their noise are correspondingly
small. At the end two coefficients are fitted: one for the output of the linear model, one for what
the steps added. If the steps added only noise, they are dropped. The default network contains a
linear path, so the result is again one vector of weights of this network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.account.account import Account
from quorate.core.people import People
from quorate.core.users import UserData
from quorate.core.users.data import named_users
from quorate.core.users.store import settled_users
from quorate.models.regression import LinearRegression
from quorate.nets.small import folded, linear_path, said_of

__all__ = ["LinearEnds"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LinearEnds:
    """What runs before the first step and after the last one.

    Parameters
    ----------
    hidden : int
        Hidden units of the default network.
    bounded, within : bool
        Whether targets, and features, lie in [-1, 1].

    Examples
    --------
    >>> from quorate.core.guarantees import Relation
    >>> from quorate.nets.small import small_size
    >>> rows = np.random.default_rng(0).uniform(-1, 1, (4000, 2))
    >>> users = UserData(rows, rows[:, 0] / 2, offsets=np.arange(4001))
    >>> people, account = People(users, Relation.REPLACE), Account.open(epsilon=8.0, delta=1e-6)
    >>> ends = LinearEnds(hidden=3, bounded=True, within=True)
    >>> start = np.zeros(small_size(features=2, outputs=1, hidden=3))
    >>> found = ends.begun(start, people, account.part(0.5))
    >>> said = said_of(np.array([[0.8, 0.8]]), found, hidden=3)
    >>> bool(abs(said[0] - 0.4) < 0.05)
    True
    """

    hidden: int
    bounded: bool
    within: bool
    first: float = 1 / 2
    """The part of mu squared that the linear model takes: as much as about all others, as nobody
    knows which of them finds the truth."""
    last: float = 1 / 20
    """The part that the two numbers at the end take."""

    def begun(self, weights: Vector, people: People, account: Account) -> Vector:
        """Return weights whose linear path is a linear model, fitted with this account."""
        model = self._fitted(people, account, within=self.within)
        return folded(
            weights,
            features=np.ravel(model.coef_),
            outputs=1.0,
            offset=float(np.ravel(model.intercept_)[0]),
            hidden=self.hidden,
        )

    def ended(self, start: Vector, weights: Vector, people: People, account: Account) -> Vector:
        """Return the weights that best combine the start and the steps.

        At the start outputs are linear in the features.
        """
        told = people.derive(_Told(start, weights, self.hidden))
        model = self._fitted(told, account, within=True)
        of_start, of_steps = np.ravel(model.coef_)
        slopes, offset = linear_path(start, features=people.n_features, hidden=self.hidden)
        return folded(
            weights,
            features=(of_start - of_steps) * slopes,
            outputs=float(of_steps),
            offset=float((of_start - of_steps) * offset + np.ravel(model.intercept_)[0]),
            hidden=self.hidden,
        )

    def _fitted(self, people: People, account: Account, *, within: bool) -> LinearRegression:
        return LinearRegression(
            account.declared.epsilon,
            delta=account.declared.delta,
            bounds=1.0 if within and self.bounded else None,
            target_bounds=(-1.0, 1.0) if self.bounded else None,
            relation=account.relation,
            hopeless="constant",
            progress=False,
        ).fit_from(people, account)


@dataclass(frozen=True)
class _Told:
    """For each record the output at the start, and what the steps have added to it."""

    start: Vector
    weights: Vector
    hidden: int

    def __call__(self, users: UserData) -> UserData:
        return settled_users(named_users(users, None), self._rows, np.asarray)

    def _rows(self, rows: Vector, out: Vector | None) -> Vector:
        del out
        before = said_of(rows, self.start, hidden=self.hidden)
        with np.errstate(all="ignore"):
            return np.column_stack(
                [before, said_of(rows, self.weights, hidden=self.hidden) - before]
            )
