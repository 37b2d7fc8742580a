"""The same draws in every run of a test: whoever fails has changed something.

A test that draws real noise fails by chance in one run of so many, and then nobody learns anything.
So the entropy that real releases are made of is replaced, while a test or a doctest runs, by a
stream that begins with the name of the test. Code, laws and labels stay those of a real release.
What is said about the entropy itself is marked ``entropy`` and sees the real one; so does every
other process that a test starts. Hypothesis tries the same examples in every run, too.

``QUORATE_EXPLORE=7 pytest`` draws other noise, the same for each number, and tries new examples.
"""

import hashlib
import os

import numpy as np
import pytest

from quorate.core.noise import SecureNoise, SeededNoise
from quorate.core.noise.exact_decisions import LARGEST_SCALE

EXPLORED = os.environ.get("QUORATE_EXPLORE", "")


def stream_of(name):
    """Return the stream that begins with a name."""
    digest = hashlib.sha256(f"{EXPLORED}{name}".encode()).digest()
    return SeededNoise(int.from_bytes(digest[:16]))


class Steady:
    """The plugin: which stream stands for entropy at the moment, if any."""

    def __init__(self):
        self.stream = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        real = item.get_closest_marker("entropy") is not None
        self.stream = None if real else stream_of(item.nodeid)
        try:
            return (yield)
        finally:
            self.stream = None

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector):
        self.stream = stream_of(collector.nodeid)
        try:
            return (yield)
        finally:
            self.stream = None

    def stand_for_entropy(self, patch):
        """Let secure noise, and public randomness without a seed, ask for the stream first."""
        for name in ("_choose", "_uniform_below", "_uniform_words"):
            self._instead(patch, name, lambda *_: True)
        # Noise of enormous scales is drawn by another library, with its own entropy.
        self._instead(patch, "_add", lambda law, values, scale: scale > LARGEST_SCALE)
        generator = np.random.default_rng

        def default_rng(seed=None):
            if seed is None and self.stream is not None:
                seed = self.stream.uniform_below(2**128)
            return generator(seed)

        patch.setattr(np.random, "default_rng", default_rng)

    def _instead(self, patch, name, applies):
        real = getattr(SecureNoise, name)

        def method(noise, *arguments):
            if self.stream is None or not applies(*arguments):
                return real(noise, *arguments)
            return getattr(self.stream, name)(*arguments)

        patch.setattr(SecureNoise, name, method)


def steadily(config):
    """Let the tests of this run draw the same in every run."""
    steady, patch = Steady(), pytest.MonkeyPatch()
    steady.stand_for_entropy(patch)
    config.add_cleanup(patch.undo)
    config.pluginmanager.register(steady, "steady")
