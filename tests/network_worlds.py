"""Small networks of both back ends, and people among whom one is wild."""

import importlib.util

import numpy as np
import pytest

from quorate.core.users import UserData
from quorate.nets.jax_networks import JaxNetwork

FEATURES = 3


def small(outputs=2, hidden=4):
    from quorate.nets.small import small_network

    return small_network(features=FEATURES, outputs=outputs, hidden=hidden)


def jax_network(head="classes"):
    network = JaxNetwork.of(
        small(1 if head == "number" else 2), shape=(FEATURES,), head=head, frozen=(), seed=0
    )
    network.initial = network.initial + 0.1 * np.sin(np.arange(network.initial.size))
    return network


def torch_network(head="classes"):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: quorate[torch]")
    from quorate.nets.torch_networks import TorchNetwork

    torch.manual_seed(0)
    outputs = 1 if head == "number" else 2
    module = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 4), torch.nn.Tanh(), torch.nn.Linear(4, outputs)
    )
    return TorchNetwork(module, shape=(FEATURES,), head=head)


def has_torch():
    return importlib.util.find_spec("torch") is not None


NETWORKS = {"jax": jax_network, "torch": torch_network}

# What the first user may hold.
FIRST = {
    "one record": np.ones((1, FEATURES)),
    "nothing": np.zeros((0, FEATURES)),
    "huge": np.full((3, FEATURES), 1e308),
    "missing": np.array([[np.nan] * FEATURES, [np.inf] * FEATURES]),
    "a thousand": np.linspace(-3.0, 3.0, 1000 * FEATURES).reshape(-1, FEATURES),
}


def people(first="one record", n_users=40):
    rng = np.random.default_rng(1)
    rows = [FIRST[first]]
    rows += [rng.normal(size=(1 + user % 7, FEATURES)) for user in range(1, n_users)]
    X = np.concatenate(rows)
    y = np.concatenate([np.arange(len(each)) % 2 for each in rows]).astype(float)
    offsets = np.r_[0, np.cumsum([len(each) for each in rows])]
    return UserData(X, y, offsets=offsets, ids=np.arange(n_users))
