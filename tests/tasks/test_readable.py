"""The share of rows that could be read is paid for, near the truth, and never an error."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bill import Bill
from quorate import Ledger, Relation
from quorate.accounting.account_parts import SharedAccount
from quorate.accounting.compose import price
from quorate.catalogue import figure
from quorate.cli import main
from quorate.exceptions import NumericalFailure, ParameterError
from quorate.files.table_files import Columns, TableFile
from quorate.guarantees import Composed, Guarantee
from quorate.noise import SeededNoise, use_noise
from quorate.ranges import Limit
from quorate.tasks import readable
from quorate.tasks.fitting import FitRequest, fit
from quorate.users import UserData

COLUMNS = Columns(
    user=("id",),
    features=("spent", "day", "region"),
    target="ill",
    classes=("no", "yes"),
    categories={"region": ("north", "south")},
    dates={"day": ("2020-01-01", "2020-12-31")},
)
GOOD = "{i},12.5,2020-02-03,north,yes"
ROWS = {
    "good": (GOOD, 1.0),
    "a number with a comma": ('{i},"1,250",2020-02-03,north,yes', 0.0),
    "a day in another order": ("{i},12.5,3.2.2020,north,yes", 0.0),
    "a label in capitals": ("{i},12.5,2020-02-03,north,Yes", 0.0),
    "a category that is not listed": ("{i},12.5,2020-02-03,North,yes", 0.0),
    "an empty cell": ("{i},12.5,,north,yes", 0.0),
    "too few cells": ("{i},12.5", 0.0),
    "every second row": (GOOD + '\n{i},"1,250",2020-02-03,north,yes', 0.5),
}


def table(folder, row, n=60):
    path = folder / "visits.csv"
    path.write_text("id,spent,day,region,ill\n" + "\n".join(row.format(i=i) for i in range(n)))
    return TableFile(path)


def request(**changes):
    given = {
        "task": "mean",
        "columns": Columns(user=("id",), features=("spent",)),
        "limits": (Limit(0, 100),),
        "epsilon": 1.0,
    }
    return FitRequest(**given | changes)


@pytest.mark.parametrize("name", list(ROWS))
def test_what_can_be_read_is_found(name, tmp_path):
    row, share = ROWS[name]
    rows = readable.readable_rows(table(tmp_path, row), COLUMNS)
    assert rows.n_users == 60
    assert rows.user_means().ravel().tolist() == [share] * 60
    with use_noise(SeededNoise(0)):
        account = SharedAccount.open(epsilon=5.0)
        found = readable.release_readable_share(rows, account, epsilon=5.0, rows=True)
    assert account.event == found.guarantee.events[0]
    assert abs(found.share - share) <= found.bound < 0.1
    assert found.is_little == (share == 0.0 or found.share < 0.5)


def test_nothing_that_a_row_holds_moves_another_persons_share(tmp_path):
    """One person more or less changes one row of what is released, by at most 1."""
    whole = readable.readable_rows(table(tmp_path, GOOD), COLUMNS).user_means()
    strange = table(tmp_path, GOOD)
    lines = strange.path.read_text().splitlines()
    lines[7] = '6,\x00,9999999999,"""",\xff'
    strange.path.write_text("\n".join(lines))
    changed = readable.readable_rows(strange, COLUMNS).user_means()
    assert np.abs(whole - changed).sum() == 1.0


def test_missing_numbers_may_be_filled_but_labels_may_not(tmp_path):
    filled = replace(COLUMNS, missing=0.0)
    rows, _ = ROWS["an empty cell"]
    assert readable.readable_rows(table(tmp_path, rows), filled).user_means().all()
    rows, _ = ROWS["a label in capitals"]
    assert not readable.readable_rows(table(tmp_path, rows), filled).user_means().any()


@pytest.mark.parametrize("epsilon", [1.0, 0.1, 1 / 3, 7.3, 1e-3, 1e9])
def test_both_parts_together_cost_no_more_than_all(epsilon):
    answer, count = readable.split_epsilon(epsilon)
    assert Fraction(answer) + Fraction(count) <= Fraction(epsilon)
    assert 0.049 * epsilon < count < 0.051 * epsilon


def test_the_promise_covers_the_answer_and_the_count(tmp_path):
    ledger = Ledger(tmp_path / "book.db")
    ledger.set_budget("visits", epsilon=3.0, unit="id")
    asked = request(ledger=tmp_path / "book.db", data_name="visits")
    result = fit(asked, table(tmp_path, GOOD))
    promise = result.estimator.guarantee_
    assert promise.epsilon == 1.0
    assert price(Composed(promise.events), delta=0.0, relation=promise.relation) <= 1.0
    alone = Composed(result.readable.guarantee.events)
    assert price(alone, delta=0.0, relation=promise.relation) > 0.04
    assert ledger.spent("visits").epsilon == 1.0
    assert "rows could be read" in str(result.readable)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_answer_and_count_draw_from_the_account_of_the_fit(tmp_path, relation, delta):
    """Somebody else adds up what both of them drew: all of the budget, and no more."""
    bill = Bill()
    with use_noise(bill):
        result = fit(request(relation=relation, delta=delta), table(tmp_path, GOOD))
    promise = result.estimator.guarantee_
    assert result.readable is not None
    assert 0.9 <= bill.epsilon(delta) <= 1.0 + 1e-9  # rounding of this bill itself
    assert promise.epsilon == 1.0
    # The promise names both, wherever they were drawn. With delta a pure look is paid beside
    # Gaussian noise, for which the account takes more than the price of the whole chain: it has to
    # fit a chain that is chosen on the way.
    least = 0.94 if delta else 0.97
    assert least <= price(Composed(promise.events), delta=delta, relation=relation) <= 1.0


def test_a_count_that_the_answer_left_no_budget_for_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("quorate.tasks.fitting.split_epsilon", lambda epsilon: (epsilon, 0.05))
    with pytest.raises(NumericalFailure, match="does not fit"):
        fit(request(), table(tmp_path, GOOD))


def test_it_can_be_left_out_and_is_where_the_schema_says_enough(tmp_path):
    numbers = table(tmp_path, GOOD)
    assert fit(request(counted=False), numbers).readable is None
    assert fit(request(epsilon=1e-4), numbers).readable is None
    path = tmp_path / "visits.parquet"
    held = {"id": np.arange(60), "spent": np.ones(60), "ill": ["no", "yes"] * 30}
    pq.write_table(pa.table(held), path)
    parquet = TableFile(path)
    assert fit(request(), parquet).readable is None
    labelled = Columns(user=("id",), features=("spent",), target="ill", classes=("no", "yes"))
    asked = request(task="threshold", columns=labelled)
    assert fit(asked, parquet).readable is not None


@pytest.mark.parametrize("name", ["a number with a comma", "good"])
def test_a_table_by_group_counts_rows_whose_numbers_can_be_read(name, tmp_path):
    row, share = ROWS[name]
    asked = FitRequest(
        task="table",
        columns=Columns(user=("id",)),
        epsilon=50.0,
        delta=1e-6,
        limits=(Limit(0, 100, "spent"),),
        options={"by": "region", "keys": "north", "statistics": "visits=count,spent=mean"},
    )
    with use_noise(SeededNoise(0)):
        result = fit(asked, table(tmp_path, row))
        assert (result.nothing is not None) == (share == 0.0)
        counts_alone = replace(asked, options=asked.options | {"statistics": "visits=count"})
        assert fit(counts_alone, table(tmp_path, row)).readable.listed
    assert abs(result.readable.share - share) <= result.readable.bound
    promise = result.estimator.guarantee_
    assert promise.epsilon == 50.0
    assert price(Composed(promise.events), delta=1e-6, relation=promise.relation) <= 50.0


def test_an_answer_about_nothing_is_withheld_and_the_budget_is_spent(tmp_path, capsys):
    ledger = Ledger(tmp_path / "book.db")
    ledger.set_budget("visits", epsilon=90.0, unit="id")
    row, _ = ROWS["a number with a comma"]
    path = table(tmp_path, row).path
    given = "--task mean --user id --features spent --bounds 0,100 --epsilon 40 --unit id"
    given += f" --ledger {ledger.path} --data-name visits --model {tmp_path / 'model.json'}"
    assert main(["fit", str(path), *given.split()]) == 1
    said = capsys.readouterr()
    assert "about nothing" in said.err
    # What was paid for and released, the count, is the answer; no mean is.
    assert said.out.startswith("Hardly a row could be read. About 0%")
    assert "epsilon = 40" in said.out
    assert "Left for 'visits': epsilon 50" in said.out
    assert "Mean over users" not in said.out
    assert not (tmp_path / "model.json").exists()
    assert ledger.spent("visits").epsilon == 40.0
    assert main(["fit", str(path), *given.split(), "--uncounted"]) == 0


def test_few_people_and_a_wide_range_withhold_nothing(tmp_path):
    found = readable.ReadableShare(
        share=0.0,
        bound=0.6,
        confidence=0.95,
        unit="id",
        rows=True,
        guarantee=Guarantee(epsilon=0.05, delta=0.0),
    )
    assert found.is_little
    assert not found.is_nothing


def test_crowds_count_people_with_a_row(tmp_path):
    lines = table(tmp_path, "{i},12.5,x,north,yes")
    others = "\n".join(f"{i},old,x,north,yes" for i in range(100, 140))
    lines.path.write_text(f"{lines.path.read_text()}\n{others}")
    with use_noise(SeededNoise(0)):
        result = fit(request(epsilon=200.0, engine="files"), lines)
    assert not result.readable.rows
    assert abs(result.readable.share - 0.6) < 0.05
    assert "of all users have a row" in str(result.readable)


def test_a_user_without_records_holds_none():
    people = UserData.from_arrays([[1.0], [np.nan], [2.0]], users=[7, 8, 7])
    held = readable.held_by_users(people)
    assert held.X.ravel().tolist() == [1.0, 0.0]
    assert np.array_equal(held.keys(), people.keys())


def test_little_is_said_to_be_little():
    promise = Guarantee(epsilon=0.05, delta=0.0)
    given = {"bound": 0.1, "confidence": 0.95, "unit": "patient", "rows": True}
    little = readable.ReadableShare(share=-0.03, guarantee=promise, **given)
    assert "About 0%" in str(little)
    assert "1250.5" in str(little)
    assert little.to_dict()["epsilon"] == 0.05
    assert "1250.5" not in str(readable.ReadableShare(share=0.9, guarantee=promise, **given))


def test_a_budget_that_is_none_is_refused_before_anything_is_read(tmp_path):
    for epsilon in (-1.0, float("nan"), 0.0):
        with pytest.raises(ParameterError):
            fit(request(epsilon=epsilon), table(tmp_path, GOOD))


@pytest.mark.parametrize(("share", "warns"), [(0.69, True), (0.97, False)])
def test_rows_left_out_are_said_to_be_no_part_of_the_stated_error(share, warns):
    promise = Guarantee(epsilon=0.05)
    found = readable.ReadableShare(
        share=share, bound=0.04, confidence=0.95, unit="id", rows=True, guarantee=promise
    )
    assert ("The stated error does not cover" in str(found)) == warns


@pytest.mark.parametrize(
    ("share", "listed", "is_nothing"),
    [(0.001, True, True), (0.03, True, False), (0.03, False, True), (0.5, True, False)],
)
def test_rare_keys_are_answered_and_absent_ones_are_not(share, listed, is_nothing):
    promise = Guarantee(epsilon=0.05)
    given = {"bound": 0.01, "confidence": 0.95, "unit": "id", "rows": True}
    assert (
        readable.ReadableShare(share=share, listed=listed, guarantee=promise, **given).is_nothing
        == is_nothing
    )


def test_listed_keys_that_match_nothing_are_answered_by_the_count(tmp_path, capsys):
    """A table of keys in another case was zeros with small errors; then it was an error."""
    path = table(tmp_path, GOOD, n=3000).path
    given = (
        "--task table --user id --by region --keys NORTH,SOUTH --count visits --epsilon 4 --json"
    )
    assert main(["fit", str(path), *given.split()]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["released"] is None
    assert said["sentence"].startswith("Hardly a row matched a listed key. About 0%")
    assert abs(said["readable"]["share"]) <= said["readable"]["bound"]
    assert said["guarantee"]["epsilon"] == 4.0


class TestRowsLeftOutOfAMean:
    """A third of the rows is written as "1,234.00"; without them the mean is a third too low."""

    LARGE = '{i},30\n{i},30\n{i},"9,0.0"'

    def large(self, folder):
        path = folder / "bills.csv"
        lines = "\n".join(self.LARGE.format(i=i) for i in range(2000))
        path.write_text("id,spent\n" + lines)
        return TableFile(path)

    def test_the_stated_error_covers_them_in_numbers(self, tmp_path):
        result = fit(request(epsilon=4.0), self.large(tmp_path))
        error, found = result.estimator.error_, float(result.estimator.mean_[0])
        truth = (30 + 30 + 90) / 3
        assert abs(found - 30) < 1
        assert abs(found - truth) > error.bound
        # Of the range of 100, a third and what the count may be off.
        moved = result.readable.moves["spent"]
        assert 33.3 <= moved <= 40
        assert abs(found - truth) <= error.worst
        assert error.worst >= moved
        assert "rows that could not be read" in error.covers
        assert f"spent by up to {figure(moved)}" in str(result.readable)
        bound, confidence = result.error_with_rows_left_out
        assert abs(found - truth) <= bound == error.bound + moved
        assert confidence == pytest.approx(0.9)

    def test_the_command_says_them(self, tmp_path, capsys):
        path = self.large(tmp_path).path
        given = "--task mean --user id --features spent --bounds 0,100 --epsilon 4 --json"
        assert main(["fit", str(path), *given.split()]) == 0
        said = json.loads(capsys.readouterr().out)
        assert 33.3 <= said["readable"]["rows_left_out_move"]["spent"] <= 40
        assert said["error"]["worst"] >= 33.3
        assert said["error"]["with_rows_left_out"]["bound"] >= 33.3
        page = tmp_path / "page.html"
        assert main(["fit", str(path), *given.split()[:-1], "--report", str(page)]) == 0
        words = "Counting rows that may have been left out, the error stays below 3"
        assert words in capsys.readouterr().out
        assert words in page.read_text()
        assert "rows that could not be read, whatever they hold" in page.read_text()

    @pytest.mark.parametrize("seed", range(20))
    def test_no_content_of_unreadable_rows_moves_the_mean_by_more(self, seed):
        rng = np.random.default_rng(seed)
        n, width = 40, 10.0
        users = np.repeat(np.arange(n), rng.integers(1, 6, n))
        values = rng.choice([0.0, width, 3.0], len(users))
        kept = rng.random(len(users)) < rng.random()
        means = lambda keep: np.array(  # noqa: E731
            [values[(users == u) & keep].mean() for u in range(n) if np.any((users == u) & keep)]
        )
        whole, seen = means(np.ones(len(users), bool)), means(kept)
        share = np.mean([kept[users == u].mean() for u in range(n)])
        exact = readable.ReadableShare(
            share=share, bound=0.0, confidence=1.0, unit="user", rows=True,
            guarantee=Guarantee(epsilon=1.0, delta=0.0),
        )  # fmt: skip
        if len(seen):
            moved = readable.mean_moved_by(exact, {"x": width})["x"]
            assert abs(whole.mean() - seen.mean()) <= moved + 1e-9

    def test_what_is_known_to_be_whole_is_not_moved(self, tmp_path):
        columns = Columns(user=("id",), features=("spent",), missing=0.0)
        result = fit(request(columns=columns, epsilon=4.0, counted=False), table(tmp_path, GOOD))
        assert "rows that could not be read" not in result.estimator.error_.covers


class TestRowsLeftOutOfShares:
    """Half of the rows have a label that is not listed; they move shares by at most a half."""

    def rows(self, folder):
        path = folder / "cities.csv"
        lines = "\n".join(f"{i},Ulm\n{i},ulm\n{i},Bonn\n{i},ulm" for i in range(2000))
        path.write_text("id,city\n" + lines)
        return TableFile(path)

    def test_the_stated_error_covers_them_in_numbers(self, tmp_path):
        asked = request(
            task="shares",
            columns=Columns(user=("id",), features=("city",)),
            limits=(),
            epsilon=4.0,
            options={"categories": "Ulm,Bonn"},
        )
        result = fit(asked, self.rows(tmp_path))
        error = result.estimator.error_
        # Had "ulm" been written as announced, the shares were .75 and .25.
        off = abs(float(result.estimator.pmf_[0]) - 0.75)
        assert off > error.bound
        bound, confidence = result.error_with_rows_left_out
        assert off <= bound == error.bound + result.readable.moves[error.metric]
        assert 0.5 <= bound <= 0.6
        assert confidence == pytest.approx(0.9)

    def test_nobody_can_say_it_of_medians(self, tmp_path):
        result = fit(request(task="median", epsilon=4.0), TestRowsLeftOutOfAMean().large(tmp_path))
        assert result.error_with_rows_left_out is None
        assert "does not cover the rows left out" in str(result.readable)
