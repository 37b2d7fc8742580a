"""Laws drawn by OpenDP: noise of enormous scales, and noisy maxima.

OpenDP does not check its inputs here: :mod:`quorate.core.noise.sources` checks every input first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

__all__ = ["opendp_laws"]


@cache
def opendp_laws() -> dict[str, Callable[..., Any]]:
    """Import OpenDP by submodule, once, when used; its prelude would import scikit-learn."""
    from opendp import domains, measurements, measures, metrics
    from opendp.mod import enable_features

    enable_features("contrib")
    # OpenDP reads T=int as 32 bits.
    vectors = domains.vector_domain(domains.atom_domain(T="i64"))
    noisy_max = partial(measurements.make_noisy_max, vectors, metrics.linf_distance(T="i64"))
    l1, l2 = metrics.l1_distance(T="i64"), metrics.l2_distance(T="f64")
    return {
        "discrete_laplace": partial(measurements.make_laplace, vectors, l1),
        "discrete_gaussian": partial(measurements.make_gaussian, vectors, l2),
        "permute_and_flip": partial(noisy_max, measures.max_divergence()),
        "gumbel_max": partial(noisy_max, measures.zero_concentrated_divergence()),
    }
