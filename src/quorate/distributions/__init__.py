"""Distributions of what many users hold, learnt privately for whole users.

Density estimators in the style of scikit-learn, in which every person counts once unless records
are to be weighed, and the choice among finitely many densities.

* :mod:`quorate.distributions.discrete`: over categories.
* :mod:`quorate.distributions.histogram`, :mod:`quorate.distributions.cdf`: over numbers.
* :mod:`quorate.distributions.product`: over several columns of categories.
* :mod:`quorate.distributions.gaussian`: normal distributions.
* :mod:`quorate.distributions.selection`: one of finitely many densities.
* :mod:`quorate.distributions.families`: families of densities and their duels.
* :mod:`quorate.distributions.covers`: finite covers of larger families.
"""

from __future__ import annotations

from quorate.distributions.cdf import EmpiricalCDF
from quorate.distributions.clip import Clip
from quorate.distributions.covers import (
    SimplexGrid,
    gaussian_cover,
    gaussian_mean_cover,
    product_cover,
    simplex_cover,
)
from quorate.distributions.discrete import DiscreteDistribution
from quorate.distributions.families import DiscreteFamily, Family, GaussianFamily
from quorate.distributions.gaussian import GaussianDistribution
from quorate.distributions.histogram import Histogram
from quorate.distributions.product import ProductDistribution
from quorate.distributions.released import DistributionError
from quorate.distributions.selection import HypothesisSelector

__all__ = [
    "Clip",
    "DiscreteDistribution",
    "DiscreteFamily",
    "DistributionError",
    "EmpiricalCDF",
    "Family",
    "GaussianDistribution",
    "GaussianFamily",
    "Histogram",
    "HypothesisSelector",
    "ProductDistribution",
    "SimplexGrid",
    "gaussian_cover",
    "gaussian_mean_cover",
    "product_cover",
    "simplex_cover",
]
