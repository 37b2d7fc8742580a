"""MixtureRelease draws the law it states, with integers only."""

import numpy as np
import pytest

from goodness import FALSE_ALARM, p_value
from quorate.auditing import enumerate_runs
from quorate.core.account.account import Account
from quorate.core.guarantees import Approximate
from quorate.core.noise.truncated_laplace import TruncatedLaplace
from quorate.exceptions import SchemaError
from quorate.mechanisms.wrappers.mixture_release import Mixture, MixtureRelease

RELEASE = MixtureRelease(
    limit=TruncatedLaplace(1.0, reach=1), event=Approximate(3.0, 0.6), outputs=3
)
MIXTURES = [None, Mixture((1, 3), ((1, 1, 2), (0, 5, 0))), Mixture((1,), ((10**40, 0, 1),))]


def test_draws_follow_the_law():
    law = RELEASE.law(MIXTURES)
    assert law.sum() == pytest.approx(1)
    drawn = [RELEASE.release(MIXTURES) for _ in range(1500)]
    counts = np.bincount([0 if d is None else d + 1 for d in drawn], minlength=4)
    assert p_value(counts, law) > FALSE_ALARM
    assert p_value(counts[::-1], law) < FALSE_ALARM


def test_an_audit_sees_the_same_law():
    runs = enumerate_runs(lambda _: RELEASE.release(MIXTURES))
    law = RELEASE.law(MIXTURES)
    assert [float(runs.get(o, 0)) for o in (None, 0, 1, 2)] == pytest.approx(law.tolist())


def test_the_account_is_charged_once():
    account = Account.open(epsilon=3.0, delta=0.6, reserve=0.6)
    RELEASE.release(MIXTURES, account=account)
    assert account.event == Approximate(3.0, 0.6)


def test_what_is_no_law_is_refused():
    with pytest.raises(SchemaError, match="one mixture for each value"):
        RELEASE.release(MIXTURES[:2])
    with pytest.raises(SchemaError, match="not all zero"):
        Mixture((1,), ((0, 0),))
