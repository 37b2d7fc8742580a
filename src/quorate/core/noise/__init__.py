"""The only randomness that protects privacy, and its test doubles.

``sources`` sources of noise: exact integers from the operating system's entropy · ``composed_laws``
laws made of several draws · ``exact_decisions`` comparisons that floats cannot decide ·
``opendp_laws`` enormous scales and noisy maxima · ``doubles`` repeatable noise for tests, which
voids guarantees.
"""

from __future__ import annotations

from quorate.core.noise.doubles import SeededNoise, use_noise
from quorate.core.noise.sources import NoiseSource, SecureNoise, ambient_noise

__all__ = ["NoiseSource", "SecureNoise", "SeededNoise", "ambient_noise", "use_noise"]
