"""What comes out of people is sealed: watched while every estimator is fitted once."""

import warnings

import numpy as np
import pytest

from core_border import HOLDERS, MODULES, SEALED_ROOMS
from fitted_examples import make
from quorate import UserData
from quorate.app.catalogue import CATALOGUE
from quorate.core.account.account import Account
from quorate.core.bounds.grid import Grid, Interval
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.people import People
from quorate.core.users.crowd import UserMeans
from tracing import holders, watched

PEOPLE = UserData(np.linspace(0, 1, 60)[:, None], offsets=range(0, 61, 3))


def in_a_room(code):
    """Return a function of one user data set that stands, as it were, in an estimator's room."""
    space = {"__name__": "quorate.means.made_up"}
    exec(code, space)

    def fit(data):
        account = Account.open(epsilon=1.0)
        found = space["fit"](data)
        assert account.left == 1
        return found

    return fit


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_no_estimator_holds_a_private_number(name):
    example = CATALOGUE[name].example()
    with watched() as seen, use_noise(SeededNoise(0)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(name).fit(example.X, example.y, users=example.users)
    assert holders(seen) <= HOLDERS, sorted(seen)


def test_who_is_in_debt_exists_and_is_in_no_sealed_room():
    assert set(MODULES) >= HOLDERS
    assert {name.split("/")[0] for name in HOLDERS} & SEALED_ROOMS == set()


@pytest.mark.parametrize(
    "code",
    [
        "def fit(data): return data.X",
        "def fit(data): return data.n_records",
        "def fit(data): return data.user_means().mean()",
        "def fit(data): return data.add_up(lambda part: part.record_counts()[:1])",
        "def fit(data): return [part.offsets for part in data.map(lambda part: part)]",
        "def fit(data): return data.together()",
    ],
)
def test_a_module_that_takes_rows_or_totals_is_seen(code):
    with watched() as seen:
        in_a_room(code)(PEOPLE)
    assert holders(seen) == {"means/made_up.py"}


def test_a_statistic_reads_what_it_is_given_inside_of_a_question():
    grid = Grid(Interval(0.0, 1.0), 2.0**-8)
    own = in_a_room("def fit(data): return data.user_means()")

    class Own(UserMeans):
        def __call__(self, users):
            return own(users)

    with watched() as seen:
        People(PEOPLE, Relation.REPLACE).total(Own(grid.bound), grid)
    assert not seen
    with watched() as seen:
        own(PEOPLE)
    assert seen


def test_watching_ends():
    before = vars(UserData)["X"]
    with watched():
        assert vars(UserData)["X"] is not before
    assert vars(UserData)["X"] is before
