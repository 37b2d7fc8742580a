"""Advice: what changes a plan most, and when to stop."""

from dataclasses import dataclass
from typing import ClassVar

from quorate.planning.advice import advise, doublings, warn
from quorate.planning.plan import PublishedBound
from quorate.planning.tasks.base import PlanTask

NOTHING = PublishedBound(users=None, theorem="none", holds=False, note="")


@dataclass(frozen=True, kw_only=True)
class PowerTask(PlanTask):
    """An error that falls as given powers of users, records and epsilon."""

    users_power: float = 0.5
    records_power: float = 0.25
    epsilon_power: float = 0.0

    name: ClassVar[str] = "power"
    error_meaning: ClassVar[str] = "power"

    @property
    def largest_error(self):
        return 1.0

    def error(self, users, epsilon):
        shrunk = users**-self.users_power * self.records**-self.records_power
        return min(1.0, shrunk * epsilon**-self.epsilon_power)

    def algorithm(self, users, epsilon):
        return "power", "because."

    def upper(self, *, epsilon, error):
        return NOTHING

    def lower(self, *, epsilon, error):
        return NOTHING


def test_doublings_are_sorted_by_what_is_left():
    changes = doublings(PowerTask(), users=100, epsilon=1.0)
    assert [name for name, _ in changes] == ["users", "records", "epsilon"]
    assert [round(share, 3) for _, share in changes] == [0.707, 0.841, 1.0]


def test_users_are_advised_when_they_count_more():
    lines = advise(PowerTask(), users=100, epsilon=1.0)
    assert lines[0].startswith("Doubling users lowers the error by 29%")
    assert lines[1].startswith("More users help more")


def test_records_are_advised_when_they_count_more():
    lines = advise(PowerTask(records_power=1.0), users=100, epsilon=1.0)
    assert lines[0].startswith("Doubling records lowers the error by 50%")
    assert lines[1].startswith("More records of the same users")


def test_nothing_is_advised_where_nothing_helps_or_nothing_is_known():
    flat = PowerTask(users_power=0.0, records_power=0.0)
    assert advise(flat, users=100, epsilon=1.0) == (
        "Doubling users, records or epsilon alone hardly changes the error.",
    )
    assert advise(PowerTask(), users=None, epsilon=1.0) == ()
    assert advise(PowerTask(), users=10, epsilon=None) == ()


class TestWarnings:
    def test_enough_users_get_none(self):
        known = {"users": 100, "needed": 100, "epsilon": 1.0, "error": 0.1, "lower": NOTHING}
        assert warn(PowerTask(), **known) is None

    def test_a_few_too_few_get_none_and_half_get_one(self):
        known = {"epsilon": 1.0, "error": 0.1, "lower": NOTHING}
        assert warn(PowerTask(), users=60, needed=100, **known) is None
        far = warn(PowerTask(), users=40, needed=100, **known)
        assert far == "Far from quorate: 100 users are needed, 40 are planned."

    def test_a_proved_limit_is_named(self):
        lower = PublishedBound(users=50.0, theorem="Theorem 9", holds=True, note="")
        said = warn(PowerTask(), users=40, needed=45, epsilon=1.0, error=0.2, lower=lower)
        assert said == "Hopeless: Theorem 9 proves that no method can do it with so few users."

    def test_an_error_like_that_of_a_guess_is_hopeless(self):
        flat = PowerTask(users_power=0.0, records_power=0.0)
        known = {"epsilon": 1.0, "error": 0.5, "lower": NOTHING}
        assert "500 users are needed" in warn(flat, users=5, needed=500, **known)
        assert "ignores the data" in warn(flat, users=5, needed=5, **known)

    def test_what_no_epsilon_or_no_users_can_mend_is_said(self):
        known = {"error": 0.1, "lower": NOTHING}
        assert "no epsilon" in warn(PowerTask(), users=5, needed=None, epsilon=None, **known)
        assert "no number of users" in warn(
            PowerTask(), users=None, needed=None, epsilon=1.0, **known
        )
