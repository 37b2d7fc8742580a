"""Mechanisms around mechanisms: behind a noisy certificate, or on a secret sample.

``stable_release`` and ``mixture_release`` release or refuse · ``subsampled`` a sample of fixed
size · ``truncated_laplace`` the noise of their limits.
"""

from __future__ import annotations
