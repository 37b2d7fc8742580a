"""Events, their price, the noise that keeps a budget, and the ledger that remembers.

Names are loaded when they are first used, so that describing an event costs no heavy import.
``quorate.accounting.calibrate`` is the module; the function of that name lives inside it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorate.accounting.calibrate import (
        gaussian_multiplier,
        split_epsilon,
    )
    from quorate.accounting.compose import delta_of, guarantee, price
    from quorate.accounting.costs import gdp_mu
    from quorate.accounting.ledger import Ledger
    from quorate.guarantees import (
        Approximate,
        Composed,
        Event,
        Gaussian,
        Laplace,
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
    "Laplace",
    "Ledger",
    "Nothing",
    "Pure",
    "Repeated",
    "Subsampled",
    "compose_events",
    "delta_of",
    "gaussian_multiplier",
    "gdp_mu",
    "guarantee",
    "price",
    "split_epsilon",
]

_HOME = {
    "Ledger": "ledger",
    "delta_of": "compose",
    "gaussian_multiplier": "calibrate",
    "gdp_mu": "costs",
    "guarantee": "compose",
    "price": "compose",
    "split_epsilon": "calibrate",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = f"{__name__}.{_HOME[name]}" if name in _HOME else "quorate.guarantees"
    module = importlib.import_module(home)
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
