"""What every entry of the catalogue has to keep, checked on the estimator's own example."""

import copy
import math

import numpy as np

from fitted_examples import fitted, released
from quorate.app.catalogue import Wish, answer, open_path
from quorate.app.model_files import StoredModel
from quorate.planning import plan
from quorate.ranges import Limit


def check_releases(descriptor):
    found = released(fitted(descriptor.name))
    said = {"guarantee_", *descriptor.releases, *descriptor.follows, *descriptor.passing}
    assert set(found) == said
    for name, kinds in descriptor.releases.items():
        known = [kind.rpartition(":")[2] for kind in kinds]
        assert type(found[name]).__name__ in known, name


def features_of(estimator):
    return tuple("abcdefgh"[: estimator.n_features_in_])


def check_answer(descriptor):
    if descriptor.task is None:
        assert descriptor.without_task
        return
    estimator = fitted(descriptor.name)
    said = answer(estimator, features_of(estimator), None)
    assert said.sentence.endswith((".", ".)"))
    assert said.rows
    assert {len(row) for row in said.rows} == {len(said.header)}
    assert said.algorithm.startswith(estimator.algorithm_.name)
    assert said.values


def check_file(descriptor):
    if not descriptor.stored:
        return
    estimator = fitted(descriptor.name)
    document = StoredModel(estimator).to_dict()
    model = StoredModel.from_dict(document)
    assert model.to_dict() == document
    again = released(model.estimator)
    for name, value in released(estimator).items():
        if name not in (*descriptor.passing, "guarantee_"):
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(again[name], value, err_msg=name)
            else:
                assert repr(again[name]) == repr(value), name


def check_sizes(descriptor, **changes):
    if not descriptor.plans:
        assert descriptor.sizes is None or descriptor.target is not None
        return
    estimator = copy.copy(fitted(descriptor.name)).set_params(**changes)
    wish = Wish(features=features_of(estimator), target="y", limits=(Limit(0, 9),), records=4)
    numbers = descriptor.sizes(estimator, wish)
    for path in descriptor.plans:
        name = open_path(path).name
        delta = estimator.delta or (1e-6 if name.endswith("shuffle") else 0.0)
        found = plan(name, users=300, records=4, epsilon=4.0, delta=delta, **numbers)
        assert math.isfinite(found.error_expected)
