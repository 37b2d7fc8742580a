"""Crowds for the tests of distributions: alike, unlike, hostile."""

import numpy as np

from quorate.core.users import UserData


def zipf(categories):
    weights = 1.0 / np.arange(1, categories + 1)
    return weights / weights.sum()


def alike(users, records, categories, seed=0):
    """Everybody draws from one Zipf distribution."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(categories, p=zipf(categories), size=users * records)
    return labels.astype(float), np.repeat(np.arange(users), records)


def unlike(users, records, categories, seed=0):
    """Everybody holds one category only, or two of them."""
    rng = np.random.default_rng(seed)
    own = rng.choice(categories, p=zipf(categories), size=(users, 2))
    picks = rng.integers(0, 2, size=(users, records))
    return np.take_along_axis(own, picks, axis=1).ravel().astype(float), np.repeat(
        np.arange(users), records
    )


def mean_shares(labels, users, categories):
    """The people's own distribution, by a loop."""
    rows = []
    for user in np.unique(users):
        mine = labels[users == user]
        mine = mine[(mine >= 0) & (mine < categories)]
        if mine.size:
            rows.append(np.bincount(mine.astype(int), minlength=categories) / mine.size)
    return np.mean(rows, axis=0)


def crowd_of(lists):
    """A crowd whose users hold the given labels."""
    labels = np.concatenate([np.asarray(mine, dtype=float) for mine in lists])
    offsets = np.cumsum([0, *map(len, lists)])
    return UserData(labels[:, None], offsets=offsets, ids=np.arange(len(lists)))
