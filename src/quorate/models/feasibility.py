"""Whether a fit can work at all, from public numbers alone.

A clipped mean of user gradients has length at most its radius C, and its noise has length
2 C sqrt(d) / (n mu) under replacement: when n mu < 2 sqrt(d) the noise of even one step that got
the whole budget exceeds any gradient there could be, whatever the data. If the records per user are
public there is a sharper rule: users' gradients spread by about sqrt(d / m) around their mean, and
when n mu sqrt(m) < d the noise that hides this spread exceeds the spread of the labels themselves.
Both are necessary conditions, not sufficient ones.

Below n mu = 32, further, the looks for the size of a record see the users through noise that is not
safely smaller than their number, and everything after a wild size is noise. Above all three a fit
may still find out, from released numbers, that noise costs more than coefficients could gain; it
then releases a constant (:mod:`quorate.models.minimization`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from quorate import _validate
from quorate.accounting.calibrate import gdp_mu
from quorate.exceptions import NotEnoughUsersError
from quorate.guarantees import Relation

__all__ = ["Feasibility", "model_feasibility"]

# Half of the users are then 2.5 standard deviations of the noise of a look that costs its largest
# share.
_SEARCHABLE = 32.0


@dataclass(frozen=True, kw_only=True)
class Feasibility:
    """What public numbers say about a fit.

    Attributes
    ----------
    n_users, dimension : int
        Users, and parameters of the model.
    users_needed : int
        Below this many users the fit is hopeless.

    Examples
    --------
    >>> model_feasibility(n_users=29, dimension=650, epsilon=1.0, delta=1e-6).hopeless
    True
    >>> model_feasibility(n_users=300, dimension=21, epsilon=1.0, delta=1e-6).hopeless
    False
    """

    n_users: int
    dimension: int
    users_needed: int

    @property
    def hopeless(self) -> bool:
        """Whether noise must exceed whatever the data say."""
        return self.n_users < self.users_needed

    def require(self) -> None:
        """Raise :class:`~quorate.exceptions.NotEnoughUsersError` if the fit is hopeless."""
        if self.hopeless:
            raise NotEnoughUsersError(
                f"A model of {self.dimension} parameters needs at least {self.users_needed} users "
                f"at this budget, got {self.n_users}: the noise would exceed any gradient. Use "
                "fewer features or classes, a larger epsilon or more users; hopeless='constant' "
                "releases a constant."
            )


def model_feasibility(
    *,
    n_users: int,
    dimension: int,
    epsilon: float,
    delta: float,
    records: int | None = None,
    relation: Relation = Relation.REPLACE,
) -> Feasibility:
    """Return how many users a model of ``dimension`` parameters needs at the very least.

    Parameters
    ----------
    n_users, dimension : int
    epsilon, delta : float
    records : int, optional
        Records of a typical user, if they are public.
    relation : Relation, default=Relation.REPLACE
        Under add/remove half the noise is needed.

    Examples
    --------
    >>> model_feasibility(n_users=29, dimension=650, epsilon=1.0, delta=1e-6).users_needed
    216
    >>> model_feasibility(
    ...     n_users=29, dimension=650, epsilon=1.0, delta=1e-6, records=60
    ... ).users_needed
    355
    """
    _validate.positive_integer(dimension=dimension)
    _validate.non_negative_integer(n_users=n_users)
    mu = gdp_mu(epsilon, delta)
    factor = 1.0 if relation is Relation.REPLACE else 0.5
    needed = max(2.0 * factor * math.sqrt(dimension), _SEARCHABLE) / mu
    if records is not None:
        _validate.positive_integer(records=records)
        needed = max(needed, factor * dimension / (mu * math.sqrt(records)))
    return Feasibility(n_users=n_users, dimension=dimension, users_needed=math.ceil(needed))
