"""The promise over the horizon, exactly: two people, three weeks, every history they can have.

What is released is a vector of integers plus independent discrete Gaussian noise, so neighbours are
told apart by how far their vectors lie from each other. The vectors of all histories come from the
bounding of the series with its state in memory (:func:`series_worlds.exact_totals`); that the
public door gives the same ones, with its store on disk, is checked here too, and twins of the real
code are caught by the same audit.
"""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from bill import Bill, gaussian_epsilon
from quorate import UserSeries
from quorate.auditing.laws import gaussian_interval
from quorate.core.account.account import Account
from quorate.core.guarantees import Relation
from quorate.core.noise import use_noise
from quorate.series import spending
from quorate.series.factors import NAMES
from quorate.series.period import _entries
from quorate.series.spending import Lookup, bounded_period
from quorate.series.store import SeriesTransaction
from sealing import release_by_hand
from series_worlds import HISTORIES, WEEKS, NoNoise, exact_totals, small_series, week

NOBODY = (0,) * WEEKS
both = pytest.mark.parametrize("noise", NAMES)


def worst(pairs, radius):
    """Return the largest squared distance of pairs of vectors, over the squared sensitivity."""
    return max(sum(int(x) ** 2 for x in (a - b).ravel()) for a, b in pairs) / radius


@both
@pytest.mark.parametrize("count_cut", [False, True])
@pytest.mark.parametrize("relation", list(Relation))
def test_all_histories_of_two_people_keep_the_sensitivity_and_reach_it(
    tmp_path, noise, relation, count_cut
):
    series = small_series(tmp_path, noise=noise, relation=relation, count_cut=count_cut)
    # Under replacement it does not matter who else is there, which the first case has shown.
    others = HISTORIES if relation is Relation.ADD_REMOVE else (NOBODY, (1, 9, 0))
    known = {(a, b): exact_totals(series, a, b) for a in HISTORIES for b in others}
    if relation is Relation.ADD_REMOVE:
        # Who holds nothing in any week is not there.
        pairs = ((known[a, b], known[NOBODY, b]) for a, b in known)
    else:
        pairs = ((known[a, b], known[c, b]) for a, b in known for c in HISTORIES if a < c)
    share = worst(pairs, series.design.mechanism.sensitivity_squared)
    # Combinations of weeks overlap, so that in one group no two people are orthogonal.
    least = 0.65 if (noise, relation) == ("square-root", Relation.REPLACE) else 0.99
    if count_cut and relation is Relation.REPLACE:
        least -= 0.1  # two people who are cut are counted in one cell
    assert least < share <= 1.0


def cells_law(vector, sigma):
    """Return the law of noisy integers in cells, coordinate by coordinate, as a product."""
    width = max(1, round(sigma / 4))
    edges = np.arange(-24, 25) * width
    laws = []
    for centre in vector.ravel().tolist():
        inner = [
            gaussian_interval(int(low - centre), int(high - 1 - centre), sigma=sigma)
            for low, high in itertools.pairwise(edges)
        ]
        below = gaussian_interval(None, int(edges[0] - 1 - centre), sigma=sigma)
        laws.append([below, *inner, max(0.0, 1.0 - below - math.fsum(inner))])
    joint = np.array(laws[0])
    for law in laws[1:]:
        joint = np.multiply.outer(joint, law)
    return joint.ravel()


def true_delta(one, other, sigma, epsilon):
    p, q = cells_law(one, sigma), cells_law(other, sigma)
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p)))


HEAVY = ((9, 9, 9), (9, 0, 0), (0, 0, 9), (1, 9, 0))


def through_the_door(folder, *histories, repeats=(), **changes):
    """Run a series on people with histories; return what got noise, and the scale of the noise."""
    noise = NoNoise()
    with use_noise(noise):
        for place in range(WEEKS):
            # A new object every week: all that is remembered is in the store.
            series = small_series(folder, **changes)
            series.update(week(*(h[place] for h in histories)), users="who")
            for number, held in repeats:
                if number == place + 1:
                    small_series(folder, **changes).update(week(*held), users="who", period=number)
    return np.array([totals for totals, _ in noise.drawn]), noise.drawn[0][1]


@both
def test_the_public_door_bounds_as_the_enumeration_and_keeps_the_claim(tmp_path, noise):
    series = small_series(tmp_path, noise=noise)
    for number, (one, other) in enumerate(itertools.pairwise((*HEAVY, NOBODY))):
        folder = tmp_path / str(number)
        folder.mkdir()
        vector, sigma = through_the_door(folder, one, other, noise=noise)
        assert np.array_equal(vector, exact_totals(series, one, other))
        without = exact_totals(series, NOBODY, other)
        delta = true_delta(vector, without, sigma, series.epsilon)
        assert delta <= series.delta
        if number == 0:
            assert delta > 0.5 * series.delta  # cells tell most of what there is to be told


@both
def test_who_is_cut_is_counted_once(tmp_path, noise):
    series = small_series(tmp_path, noise=noise, count_cut=True)
    for number, (one, other) in enumerate([((9, 9, 9), (0, 1, 0)), ((0, 9, 0), (0, 0, 9))]):
        folder = tmp_path / str(number)
        folder.mkdir()
        vector, _ = through_the_door(folder, one, other, noise=noise, count_cut=True)
        assert np.array_equal(vector, exact_totals(series, one, other))
        with use_noise(NoNoise()):
            found = small_series(folder, noise=noise, count_cut=True).read()
        people = found.cut_["people"].to_numpy()
        np.testing.assert_allclose(people, [[1, 1, 1], [0, 1, 2]][number], atol=1e-6)
        assert f"{people[-1]:.0f} people" in str(found.error_)
        stated = found.cut_["people_error"].to_numpy()
        np.testing.assert_allclose(stated, series.design.cut_errors())


class TestTwins:
    """What the audit is for: each way to break the promise moves releases too far."""

    def far(self, folder, one, *, exceeds_only=False, **changes):
        series = small_series(folder, **changes)
        vector, sigma = through_the_door(folder, one, **changes)
        exceeded = worst([(vector, 0 * vector)], series.design.mechanism.sensitivity_squared)
        if exceeds_only:
            return exceeded
        return exceeded, true_delta(vector, 0 * vector, sigma, series.epsilon) > series.delta

    @both
    def test_the_length_is_forgotten_after_a_restart(self, tmp_path, monkeypatch, noise):
        assert self.far(tmp_path, (9, 9, 9), noise=noise)[0] <= 1.0
        for name in ("small.sqlite", "small.sqlite.key"):
            (tmp_path / name).unlink()
        monkeypatch.setattr(SeriesTransaction, "spent", lambda page: Lookup.empty())
        exceeded, caught = self.far(tmp_path, (9, 9, 9), noise=noise)
        assert exceeded > 2.0
        assert caught

    @both
    def test_somebody_is_counted_as_cut_every_week(self, tmp_path, monkeypatch, noise):
        cut = {"noise": noise, "count_cut": True}
        assert self.far(tmp_path, (9, 9, 9), exceeds_only=True, **cut) <= 1.0
        for name in ("small.sqlite", "small.sqlite.key"):
            (tmp_path / name).unlink()
        spent = SeriesTransaction.spent

        def forgotten(page):
            known = spent(page)
            return Lookup(known.people, known.values & (spending._COUNTED - 1))

        monkeypatch.setattr(SeriesTransaction, "spent", forgotten)
        assert self.far(tmp_path, (9, 9, 9), exceeds_only=True, **cut) > 1.05

    def test_a_late_row_is_paid_by_nobody(self, tmp_path, monkeypatch):
        """Rows that come with a week that is over are not looked at; a twin adds them for free."""
        late = ((1, (9,)), (2, (9,)))
        series = small_series(tmp_path)
        vector, _ = through_the_door(tmp_path, (9, 0, 0), repeats=late)
        assert np.array_equal(vector, exact_totals(series, (9, 0, 0)))

        paid = UserSeries._release_next

        def generous(self, page, number, rows, design):
            if number is None or number > page.last().number:
                return paid(self, page, number, rows, design)
            found = bounded_period(
                _entries(rows, design, page),
                Lookup.empty(),
                (),
                gram=np.array([1]),
                ball=design.ball,
            )
            account = Account.for_event(design.mechanism.event, relation=design.relation)
            release_by_hand(design.mechanism, found.totals, count=0.0, account=account)
            return False

        monkeypatch.setattr(UserSeries, "_release_next", generous)
        (tmp_path / "twin").mkdir()
        vector, _ = through_the_door(tmp_path / "twin", (9, 0, 0), repeats=late)
        assert worst([(vector, 0 * vector)], series.design.mechanism.sensitivity_squared) > 2.5

    def test_a_week_is_drawn_once(self, tmp_path):
        noise = Drawing()
        with use_noise(noise):
            series = small_series(tmp_path).update(week(1, 2), users="who", period=1)
            first = series.table_
            again = small_series(tmp_path).update(week(9, 9), users="who", period=1).table_
            small_series(tmp_path).read()
        assert again.equals(first)
        assert noise.draws == Counter(discrete_gaussian=1)


class Drawing(NoNoise):
    def __init__(self):
        super().__init__()
        self.draws = Counter()

    def _add(self, law, values, scale):
        self.draws[law] += 1
        return super()._add(law, values, scale) + 1


class TestNoiseBill:
    """What was drawn, added up by somebody who has never heard of the account."""

    @both
    @pytest.mark.parametrize("relation", list(Relation))
    def test_noise_costs_what_the_guarantee_says(self, tmp_path, noise, relation):
        with use_noise(Bill()) as bill:
            series = small_series(tmp_path, noise=noise, relation=relation, delta=1e-6)
            for _ in range(WEEKS):
                series.update(week(9, 1), users="who")
        # Each week alone could be all that a person ever adds, so each has the noise of all of
        # them; that all of them together are no more than one is what the audit above shows.
        each = bill.cost.square / WEEKS
        cost = gaussian_epsilon(math.sqrt(each), 1e-6)
        assert 0.99 * series.epsilon < cost <= series.epsilon * (1 + 1e-6)
