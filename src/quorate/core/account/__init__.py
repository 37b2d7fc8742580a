"""Events, their price, and the account that spends a budget."""

from __future__ import annotations

from quorate.core.account.compose import delta_of, price
from quorate.core.account.costs import gdp_mu
from quorate.core.guarantees import (
    Approximate,
    Composed,
    Event,
    Gaussian,
    Nothing,
    Pure,
    Repeated,
    Subsampled,
    compose_events,
)

__all__ = [
    "Approximate",
    "Composed",
    "Event",
    "Gaussian",
    "Nothing",
    "Pure",
    "Repeated",
    "Subsampled",
    "compose_events",
    "delta_of",
    "gdp_mu",
    "price",
]
