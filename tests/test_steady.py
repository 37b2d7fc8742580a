"""Tests draw the same in every run, unless they ask for entropy."""

import numpy as np
import pytest

import quorate.core.noise
from quorate.core.noise import SecureNoise
from steady import stream_of


def draws(source):
    """Return a draw of every kind."""
    scores = np.zeros(10**6, np.int64)
    return [
        source.uniform_words(4).tolist(),
        source.uniform_below(10**40),
        source.permute_and_flip(scores, scale=1.0),
        source.discrete_laplace(np.zeros(2, np.int64), scale=2.0**60).tolist(),
    ]


def test_secure_noise_reads_the_stream_of_the_test(request):
    assert draws(SecureNoise()) == draws(stream_of(request.node.nodeid))


@pytest.mark.entropy
def test_whoever_asks_for_entropy_gets_it(request):
    one, other, stream = (
        draws(s) for s in (SecureNoise(), SecureNoise(), stream_of(request.node.nodeid))
    )
    for found in ((one, other), (one, stream)):
        assert all(mine != theirs for mine, theirs in zip(*found, strict=True))


def test_noise_is_made_of_the_stream_by_the_code_of_real_releases(request):
    with pytest.MonkeyPatch.context() as patch:
        calls = []
        exact = quorate.core.noise.sources.exact_integers
        patch.setattr(
            "quorate.core.noise.sources.exact_integers",
            lambda *a, **k: calls.append(a) or exact(*a, **k),
        )
        SecureNoise().discrete_gaussian(np.zeros(3, np.int64), sigma=5.0)
    assert calls == [("discrete_gaussian", 3)]


def test_public_randomness_without_a_seed_follows(request):
    stream = stream_of(request.node.nodeid)
    seeds = [stream.uniform_below(2**128) for _ in range(2)]
    found = [np.random.default_rng().integers(2**62) for _ in range(2)]
    assert found == [np.random.default_rng(seed).integers(2**62) for seed in seeds]
    assert found[0] != found[1]
