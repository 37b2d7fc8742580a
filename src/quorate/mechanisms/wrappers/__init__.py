"""Mechanisms that wrap others: with a noisy test, or on a secret sample.

``stable_release`` and ``mixture_release`` release or refuse · ``subsampled`` a sample of fixed size
· ``truncated_laplace`` the noise of the tests.
"""

from __future__ import annotations
