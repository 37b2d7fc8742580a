"""Losses of the caller that get many users at once, without a check."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.core.users import UserData
from quorate.core.users.public_choices import in_own_order
from quorate.models.losses import Loss

__all__ = ["Vectorized"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Vectorized(Loss):
    """A loss of the caller that gets many users at once: much faster, but not checked.

    Guarantees are then marked ``idealized``, because nobody has checked that the loss keeps users
    apart to the last bit.

    >>> from quorate.models.losses import LogisticLoss
    >>> Vectorized(LogisticLoss()).caveat
    'The loss was called with the records of many users at once (Vectorized).'
    """

    _answers_for = True
    inner: Loss

    def dimension(self, n_features: int) -> int:
        """Return the dimension of the inner loss."""
        return self.inner.dimension(n_features)

    def user_gradients(self, batch: UserData, theta: Vector) -> Vector:
        """Return the gradients of the inner loss."""
        return self.inner.user_gradients(in_own_order(batch), theta)

    def unpenalized(self, n_features: int) -> NDArray[np.bool_]:
        """Return the indices of the intercepts."""
        return self.inner.unpenalized(n_features)

    @property
    def caveat(self) -> str | None:
        """The caveat: the loss sees many users at once."""
        return "The loss was called with the records of many users at once (Vectorized)."
