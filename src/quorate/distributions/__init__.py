"""Distributions of what many users hold, learnt privately for whole users.

Density estimators in the style of scikit-learn, in which every person counts once unless records
are to be weighed, and the choice among finitely many densities.

* :mod:`quorate.distributions.categories`: over one column of labels, or several.
* :mod:`quorate.distributions.numeric`: histograms and distribution functions of numbers.
* :mod:`quorate.distributions.normal`: normal distributions.
* :mod:`quorate.distributions.hypotheses`: one of finitely many densities, and covers.
* :mod:`quorate.distributions.shares`, :mod:`quorate.distributions.simplices`: what a user adds.
* :mod:`quorate.distributions.projection`: from noisy shares to a distribution, and how far off.
"""

from __future__ import annotations

from quorate.distributions.categories.discrete import DiscreteDistribution
from quorate.distributions.categories.product import ProductDistribution
from quorate.distributions.hypotheses.clip import Clip, Votes
from quorate.distributions.hypotheses.covers import (
    SimplexGrid,
    gaussian_cover,
    gaussian_mean_cover,
    product_cover,
    simplex_cover,
)
from quorate.distributions.hypotheses.families import DiscreteFamily, Family, GaussianFamily
from quorate.distributions.hypotheses.planes import PlaneFamily, plane_cover
from quorate.distributions.hypotheses.selection import HypothesisSelector
from quorate.distributions.normal.gaussian import GaussianDistribution
from quorate.distributions.numeric.cdf import EmpiricalCDF
from quorate.distributions.numeric.histogram import Histogram
from quorate.distributions.released import DistributionError

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
    "PlaneFamily",
    "ProductDistribution",
    "SimplexGrid",
    "Votes",
    "gaussian_cover",
    "gaussian_mean_cover",
    "plane_cover",
    "product_cover",
    "simplex_cover",
]
