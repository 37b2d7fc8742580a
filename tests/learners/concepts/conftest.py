"""People for the concept classes: any grouping, any values, missing ones included."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.core.users import UserData


@pytest.fixture(scope="session")
def make_users():
    """Build UserData from one list of (features..., label) tuples a user."""

    def build(people, n_features):
        rows = [record for records in people for record in records]
        table = np.array(rows, dtype=float).reshape(len(rows), n_features + 1)
        offsets = np.cumsum([0, *map(len, people)])
        return UserData(table[:, :-1], table[:, -1], offsets=offsets)

    return build
