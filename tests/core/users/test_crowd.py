"""What every crowd can be asked: the same answers, however the users are cut into parts.

Of code of the caller nothing but its result comes out, from any number of threads.
"""

import threading
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from quorate.core.bounds.grid import Ball, Bound, Interval
from quorate.core.guarantees import Relation
from quorate.core.users import UserData
from quorate.core.users.crowd import UserMeans, add_pieces, call_quietly, counts_up_to
from quorate.data.engines import MemoryCrowd
from quorate.exceptions import ParameterError, SchemaError
from quorate.mechanisms.sums import choose_grid
from sealing import crowd_counts, crowd_total, crowd_votes

PARTS = [1, 8, 64]
every_cut = pytest.mark.parametrize("n_parts", PARTS)


def people(n_users=60, seed=0):
    rng = np.random.default_rng(seed)
    users = rng.permutation(np.repeat(np.arange(n_users), rng.integers(1, 9, n_users)))
    X = np.round(rng.standard_normal((len(users), 3)), 1)
    return UserData.from_arrays(X, X[:, 0] > 0, users=[f"user {u}" for u in users])


@dataclass(frozen=True)
class Bent:
    """A sum in floats that depends on the order of a user's records."""

    bound: Bound

    def __call__(self, users):
        return users.user_sums(np.tanh(users.X) * 1e3) + users.y.sum() * 0


@every_cut
class TestEqualAnswers:
    def test_totals_and_votes(self, n_parts):
        data = people()
        crowd = MemoryCrowd(data, n_parts=n_parts)
        for statistic in (UserMeans(Ball(1.0, dimension=3)), Bent(Ball(900.0, dimension=3))):
            grid = choose_grid(statistic.bound, n_users=data.n_users)
            assert (crowd_total(crowd, statistic, grid) == crowd_total(data, statistic, grid)).all()
            by_key = np.argsort(data.keys())
            assert (
                crowd_votes(crowd, statistic, grid) == crowd_votes(data, statistic, grid)[by_key]
            ).all()

    def test_counts_are_those_of_the_plain_comparison(self, n_parts):
        data, thresholds = people(), np.array([0.0, 1.0, 2.0, 5.5, 100.0])
        expected = [np.count_nonzero(data.record_counts() <= t) for t in thresholds]
        crowd = MemoryCrowd(data, n_parts=n_parts)
        assert crowd_counts(crowd, UserData.record_counts, thresholds).tolist() == expected

    def test_public_choices_are_about_the_same_people(self, n_parts):
        data = people()
        crowd = MemoryCrowd(data, n_parts=n_parts)
        for relation in Relation:
            mine = data.split(0.3, relation=relation, random_state=4)
            theirs = crowd.split(0.3, relation=relation, random_state=4)
            for left, right in zip(mine, theirs, strict=True):
                assert np.array_equal(np.sort(left.keys()), right.keys())
        draws = dict(zip(data.keys(), data.public_draws(9), strict=True))
        theirs = crowd.keys()
        assert [draws[key] for key in theirs] == crowd.public_draws(9).tolist()

    def test_the_same_records_are_kept_under_a_cap(self, n_parts):
        data, order = people(), np.argsort(people().keys())
        capped = MemoryCrowd(data, n_parts=n_parts).cap(2, random_state=3)
        expected = data.cap(2, random_state=3).take(order)
        rows = np.concatenate(capped.map(lambda part: part.X))
        assert np.array_equal(rows, expected.X)

    def test_ranks_name_the_same_people(self, n_parts):
        data, ranks = people(), np.array([7, 0, 59, 23])
        crowd = MemoryCrowd(data, n_parts=n_parts)
        expected = data.gather(UserData.user_means, ranks)
        assert np.array_equal(crowd.gather(UserData.user_means, ranks), expected)
        assert np.array_equal(crowd.take(ranks).keys(), np.sort(data.take_ranked(ranks).keys()))


class TestRanks:
    def test_a_rank_is_the_place_among_the_keys(self):
        data = people()
        rows = data.gather(UserData.user_means, np.arange(data.n_users))
        assert np.array_equal(rows, data.user_means()[np.argsort(data.keys())])

    def test_gathering_nobody_is_no_error(self):
        assert people().gather(UserData.user_means, np.empty(0, np.int64)).shape == (0, 3)


class TestLines:
    def test_adding_up_equals_the_sum_of_the_functions(self):
        rng = np.random.default_rng(0)
        lines = []
        for _ in range(20):
            inner = np.unique(rng.integers(1, 50, 8)).astype(np.uint64)
            starts = np.concatenate([np.zeros(1, np.uint64), inner])
            lines.append((starts, rng.integers(-5, 5, len(starts))))
        starts, values = add_pieces(lines)
        for position in range(60):
            plain = sum(v[np.searchsorted(s, position, side="right") - 1] for s, v in lines)
            assert values[np.searchsorted(starts, position, side="right") - 1] == plain
        assert (np.diff(starts) > 0).all()


class TestCounting:
    @pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e308, 0.0])
    def test_no_value_breaks_a_count(self, odd):
        thresholds = np.array([-1.0, 0.0, 1.0])
        expected = [int(odd <= t) + 1 for t in thresholds]
        assert counts_up_to([-5.0, odd], thresholds).tolist() == expected

    def test_values_that_raise_say_nothing(self):
        def quote(users):
            raise ValueError(f"cannot handle {users.X[0, 0]}")

        with pytest.raises(SchemaError, match="withheld") as caught:
            crowd_counts(people(), quote, np.array([1.0]))
        assert caught.value.__context__ is None


class TestRefusals:
    def test_what_is_public_is_checked_before_records_are_read(self):
        data = people()
        with pytest.raises(ParameterError, match="dimension"):
            crowd_total(
                data, UserMeans(Ball(1.0, dimension=3)), choose_grid(Interval(0, 1), n_users=3)
            )
        with pytest.raises(ParameterError, match="records"):
            data.cap(0)
        with pytest.raises(ParameterError, match="Relation"):
            data.split(0.5, relation="replace")


class TestResults:
    def test_a_result_is_returned(self):
        assert call_quietly(lambda: 7) == 7

    def test_an_exception_is_withheld(self):
        assert call_quietly(lambda: [][31337]) is None

    @pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, BaseException, MemoryError])
    def test_nothing_a_record_sets_off_ends_the_program(self, kind):
        def leave():
            raise kind("31337")

        assert call_quietly(leave) is None

    def test_somebody_who_wants_to_stop_can_and_tells_nothing(self):
        def stop():
            raise KeyboardInterrupt("31337")

        with pytest.raises(KeyboardInterrupt) as caught:
            call_quietly(stop)
        assert caught.value.args == ()
        assert caught.value.__context__ is None


class TestWarnings:
    @pytest.mark.parametrize("rule", ["always", "error"])
    def test_none_is_shown_and_none_becomes_an_error(self, rule):
        def noisy():
            warnings.warn("31337", stacklevel=1)
            return np.nanmean(np.array([])) + np.array([1.0]) / 0.0

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter(rule)
            assert call_quietly(noisy) is not None
            assert seen == []
            with pytest.warns(UserWarning, match="outside"):
                warnings.warn("outside", stacklevel=1)

    def test_one_that_was_shown_is_not_forgotten(self):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("default")
            for _ in range(2):
                warnings.warn("outside", stacklevel=1)
                call_quietly(dict)
        assert len(seen) == 1

    def test_threads_that_leave_in_another_order_restore_the_filters(self):
        filters = list(warnings.filters)
        second_is_in, first_is_out = threading.Event(), threading.Event()
        seen = []

        def first():
            call_quietly(second_is_in.wait)
            first_is_out.set()

        def second():
            def stay():
                second_is_in.set()
                first_is_out.wait()
                warnings.warn("31337", stacklevel=1)
                seen.append("still quiet")

            call_quietly(stay)

        threads = [threading.Thread(target=work) for work in (first, second)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            inside = list(warnings.filters)
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(timeout=20)
            assert list(warnings.filters) == inside
        assert seen == ["still quiet"]
        assert list(warnings.filters) == filters
