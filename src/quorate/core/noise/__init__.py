"""The only randomness that carries privacy, and its doubles for tests.

``sources`` where noise comes from: exact integers from the operating system's entropy ·
``composed_laws`` laws made of several draws · ``exact_decisions`` what floats cannot decide ·
``opendp_laws`` enormous scales and noisy maxima · ``doubles`` repeatable noise that promises
nothing, and blocks that draw from it.
"""

from __future__ import annotations

from quorate.core.noise.doubles import SeededNoise, use_noise
from quorate.core.noise.sources import NoiseSource, SecureNoise, ambient_noise

__all__ = ["NoiseSource", "SecureNoise", "SeededNoise", "ambient_noise", "use_noise"]
