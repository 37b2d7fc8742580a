"""Distributions of what many users hold, learnt privately for whole users.

* :mod:`quorate.distributions.selection`: one of finitely many densities.
* :mod:`quorate.distributions.families`: families of densities and their duels.
* :mod:`quorate.distributions.covers`: finite covers of larger families.
"""

from __future__ import annotations

from quorate.distributions.covers import (
    SimplexGrid,
    gaussian_cover,
    gaussian_mean_cover,
    product_cover,
    simplex_cover,
)
from quorate.distributions.families import Clip, DiscreteFamily, Family, GaussianFamily
from quorate.distributions.selection import HypothesisSelector

__all__ = [
    "Clip",
    "DiscreteFamily",
    "Family",
    "GaussianFamily",
    "HypothesisSelector",
    "SimplexGrid",
    "gaussian_cover",
    "gaussian_mean_cover",
    "product_cover",
    "simplex_cover",
]
