"""The only randomness that carries privacy, and its doubles for tests.

``sources`` where noise comes from: exact integers from the operating system's entropy ·
``composed_laws`` laws made of several draws · ``exact_decisions`` what floats cannot decide ·
``doubles`` repeatable noise that promises nothing.
"""

from __future__ import annotations

from quorate.noise.doubles import SeededNoise
from quorate.noise.sources import NoiseSource, SecureNoise, ambient_noise, use_noise

__all__ = ["NoiseSource", "SecureNoise", "SeededNoise", "ambient_noise", "use_noise"]
