"""Every estimator of the catalogue, fitted on its own example: once a session, with fixed noise."""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa

from quorate.app.catalogue import CATALOGUE
from quorate.core.noise import SecureNoise, SeededNoise, use_noise


def make(name, **others):
    """Return the estimator with the parameters of its example, not fitted."""
    descriptor = CATALOGUE[name]
    return descriptor.kind(**{"random_state": 0} | descriptor.example().parameters | others)


def fit(name, *, secure=False, **others):
    """Return the estimator, fitted on its example."""
    example = CATALOGUE[name].example()
    with use_noise(SecureNoise() if secure else SeededNoise(0)):
        return make(name, **others).fit(example.X, example.y, users=example.users)


def rows(example):
    """Return the table of an example as a matrix."""
    X = example.X
    return X if isinstance(X, np.ndarray) else np.column_stack(X.columns)


def with_rows(example, X):
    """Return the example with another matrix, as a table of its own kind."""
    if not isinstance(example.X, np.ndarray):
        X = pa.table(list(X.T), names=example.X.column_names)
    return replace(example, X=X)


@cache
def fitted(name):
    """Return the estimator, fitted on its example; for looking at only."""
    return fit(name)


def released(estimator):
    """Return what a fit has set, without the public names and numbers of the columns."""
    public = {"n_features_in_", "feature_names_in_"}
    names = [name for name in vars(estimator) if name.endswith("_") and name[0] != "_"]
    return {name: getattr(estimator, name) for name in names if name not in public}
