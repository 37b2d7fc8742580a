"""Private estimates of distributions, with one record or many per user.

Density estimators with the scikit-learn API, in which every user counts once unless records are
weighted, and the private choice among finitely many densities.

* :mod:`quorate.distributions.categories`: over one column of labels, or several.
* :mod:`quorate.distributions.numeric`: histograms and distribution functions of numbers.
* :mod:`quorate.distributions.normal`: normal distributions.
* :mod:`quorate.distributions.hypotheses`: one of finitely many densities, and covers.
* :mod:`quorate.distributions.shares`, :mod:`quorate.core.bounds.blocks`: the contribution of a
  user.
* :mod:`quorate.distributions.projection`: noisy shares become a distribution, with an error bound.
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
