"""What is on disk: nobody's id, for nobody else's eyes; and which copy is the latest."""

import shutil
import sqlite3

import numpy as np
import pyarrow as pa
import pytest

from quorate import Ledger
from quorate.core.guarantees import Relation
from quorate.core.noise import use_noise
from quorate.data.columns.keys import row_keys
from quorate.exceptions import BudgetExceededError, SeriesStoreError, UnknownDatasetError
from quorate.series.store import SeriesStore, SeriesTransaction
from series_worlds import NoNoise, Repeatable, small_series, week

IDS = ["Gwendolyn Featherstonehaugh", "4015551234"]


def rows(ids=IDS):
    return pa.table({"who": pa.array(ids), "value": np.ones(len(ids))})


def files(folder):
    return sorted(path for path in folder.iterdir() if path.is_file())


def traces(folder, ids):
    """Return which ids, or words that follow from an id alone, stand in any file."""
    stored = b"".join(path.read_bytes() for path in files(folder))
    words = row_keys(pa.array(ids))[0]
    looked_for = [str(each).encode() for each in ids]
    looked_for += [str(each).encode("utf-16-le") for each in ids]
    looked_for += [word.tobytes() for word in words] + [word.byteswap().tobytes() for word in words]
    if not isinstance(ids[0], str):
        looked_for += [each.to_bytes(8, "little") for each in ids]
    return [each for each in looked_for if each in stored]


class TestPrivate:
    def test_no_id_and_nothing_that_follows_from_an_id_alone_is_on_disk(self, tmp_path):
        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("visits", epsilon=1.0, delta=0.05, relation=Relation.ADD_REMOVE)
        with use_noise(Repeatable(0)):
            for noise, ids in (("independent", IDS), ("square-root", [4015551234, 77**9])):
                series = small_series(
                    tmp_path,
                    store=tmp_path / f"{noise}.sqlite",
                    noise=noise,
                    ledger=ledger if noise == "independent" else None,
                    data_name="visits" if noise == "independent" else None,
                )
                for _ in range(2):
                    series.update(rows(ids), users="who")
                assert traces(tmp_path, ids) == []

    def test_a_store_with_readable_ids_would_be_seen(self, tmp_path, monkeypatch):
        monkeypatch.setattr(SeriesTransaction, "hashes", lambda page, words: words)
        monkeypatch.setattr(SeriesTransaction, "numbers", lambda page, texts: texts)
        small_series(tmp_path).update(rows(), users="who")
        assert len(traces(tmp_path, IDS)) == 2

    def test_the_key_is_not_in_the_store_and_two_stores_share_no_word(self, tmp_path):
        people = []
        for name in ("one.sqlite", "two.sqlite"):
            small_series(tmp_path, store=tmp_path / name).update(rows(), users="who")
            key = (tmp_path / f"{name}.key").read_bytes()
            assert key not in (tmp_path / name).read_bytes()
            with SeriesStore(tmp_path / name, _design(tmp_path / name)).page() as page:
                people.append(set(page.spent().people.tolist()))
        assert len(people[0]) == len(people[1]) == 2
        assert not people[0] & people[1]

    def test_files_are_their_owners_alone(self, tmp_path):
        small_series(tmp_path).update(rows(), users="who")
        (tmp_path / "small.sqlite").chmod(0o644)
        small_series(tmp_path).update(rows(), users="who")
        assert {path.stat().st_mode & 0o777 for path in files(tmp_path)} == {0o600}

    def test_files_are_born_their_owners(self, tmp_path):
        SeriesStore(tmp_path / "new.sqlite", "a design").create()
        assert {path.stat().st_mode & 0o777 for path in files(tmp_path)} == {0o600}

    def test_what_was_spent_before_is_overwritten(self, tmp_path):
        """A deleted state would tell in which period somebody was."""
        known = {"touched": 3, "caps": {"records": 1.7}}
        with use_noise(NoNoise()):
            small_series(tmp_path, **known).update(week(1, 0), users="who")
            old = _spent(tmp_path / "small.sqlite")
            assert old in (tmp_path / "small.sqlite").read_bytes()
            small_series(tmp_path, **known).update(week(1, 2), users="who")
        assert old not in (tmp_path / "small.sqlite").read_bytes()


def _spent(path):
    with sqlite3.connect(path) as connection:
        numbers = connection.execute("SELECT numbers FROM spent").fetchone()[0]
    connection.close()
    return numbers


def _design(path):
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT design FROM series").fetchone()[0]
    connection.close()
    return found


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "ledger.db", actor="cron")
    made.set_budget("visits", epsilon=1.5, delta=0.1, relation=Relation.ADD_REMOVE)
    return made


@pytest.fixture
def charged(tmp_path, ledger):
    known = {"ledger": ledger, "data_name": "visits"}
    return lambda **changes: small_series(tmp_path, **(known | changes))


def spent(ledger):
    return ledger.spent("visits").epsilon


class TestLedger:
    def test_the_whole_horizon_is_charged_once(self, charged, ledger):
        for number in (1, 2, 2, 3):
            charged().update(week(1, 2), users="who", period=number)
            assert spent(ledger) == 1.0
        kinds = [type(entry).__name__ for entry in ledger.history("visits")]
        assert kinds == [
            "BudgetChange",
            "Charge",
            "ProgressEntry",
            "ProgressEntry",
            "ProgressEntry",
        ]
        assert charged().read().guarantee_.data_name == "visits"

    def test_without_a_budget_nothing_is_read(self, tmp_path, charged, ledger):
        with pytest.raises(UnknownDatasetError):
            small_series(tmp_path, ledger=ledger, data_name="else").update(week(1), users="who")
        with pytest.raises(BudgetExceededError):
            charged(epsilon=2.0, store=tmp_path / "other").update(week(1), users="who")
        assert spent(ledger) == 0.0

    @pytest.mark.parametrize("noise", ["independent", "square-root"])
    def test_a_store_that_was_put_back_is_refused(self, tmp_path, charged, ledger, noise):
        path = tmp_path / "small.sqlite"
        charged(noise=noise).update(week(1, 2), users="who")
        shutil.copy(path, tmp_path / "copy")
        charged(noise=noise).update(week(1, 2), users="who")
        latest = path.read_bytes()
        shutil.copy(tmp_path / "copy", path)
        for act in (lambda s: s.read(), lambda s: s.update(week(1), users="who")):
            with pytest.raises(SeriesStoreError, match="older than the ledger"):
                act(charged(noise=noise))
        path.write_bytes(latest)
        assert charged(noise=noise).update(week(1), users="who").periods_ == ("1", "2", "3")

    def test_a_store_that_was_deleted_is_refused(self, tmp_path, charged, ledger):
        charged().update(week(1, 2), users="who")
        for name in ("small.sqlite", "small.sqlite.key"):
            (tmp_path / name).unlink()
        for _ in range(2):
            with pytest.raises(SeriesStoreError, match="lost, or replaced"):
                charged().update(week(1, 2), users="who")
        assert spent(ledger) == 1.0

    def test_two_copies_cannot_both_go_on(self, tmp_path, charged):
        charged().update(week(1, 2), users="who")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        for name in ("small.sqlite", "small.sqlite.key"):
            shutil.copy(tmp_path / name, elsewhere / name)
        charged().update(week(1), users="who")
        with pytest.raises(SeriesStoreError, match="older than the ledger"):
            charged(store=elsewhere / "small.sqlite").update(week(2), users="who")

    def test_a_charged_series_needs_its_ledger(self, tmp_path, charged):
        charged().update(week(1), users="who")
        with pytest.raises(SeriesStoreError, match="charged to a ledger"):
            small_series(tmp_path).update(week(1), users="who")
        other = Ledger(tmp_path / "other.db")
        other.set_budget("visits", epsilon=1.5, delta=0.1, relation=Relation.ADD_REMOVE)
        with pytest.raises(SeriesStoreError, match="another ledger"):
            charged(ledger=other).update(week(1), users="who")

    def test_a_ledger_refuses_progress_that_does_not_follow(self, charged, ledger):
        charged().update(week(1), users="who")
        [charge] = [e for e in ledger.history("visits") if type(e).__name__ == "Charge"]
        state = ledger.progress(charge)
        ledger.advance(charge, after="anything", state=state)  # it is there already
        with pytest.raises(RuntimeError, match="latest state"):
            ledger.advance(charge, after="", state="another")
        assert ledger.progress(charge) == state
        ledger.verify()
        Ledger.verify_export(ledger.export())


class TestRefused:
    def test_a_key_that_is_gone_or_another_one(self, tmp_path):
        small_series(tmp_path).update(week(1), users="who")
        key = tmp_path / "small.sqlite.key"
        old = key.read_bytes()
        key.write_bytes(bytes(16))
        with pytest.raises(SeriesStoreError, match="does not go with the key"):
            small_series(tmp_path).read()
        key.unlink()
        with pytest.raises(SeriesStoreError, match="lost its key"):
            small_series(tmp_path).read()
        key.write_bytes(old)
        assert small_series(tmp_path).read().periods_ == ("1",)

    @pytest.mark.parametrize(
        "changes",
        [
            {"epsilon": 0.5},
            {"touched": 2},
            {"statistics": {"n": "users"}},
            {"relation": Relation.REPLACE},
            {"where": {"group": ["a"]}},
            {"noise": "square-root"},
        ],
    )
    def test_other_parameters(self, tmp_path, changes):
        small_series(tmp_path).update(week(1), users="who")
        with pytest.raises(SeriesStoreError, match="other parameters"):
            small_series(tmp_path, **changes).update(week(1), users="who")

    def test_another_file(self, tmp_path):
        path = tmp_path / "small.sqlite"
        small_series(tmp_path).update(week(1), users="who")
        path.write_bytes(b"something else" * 100)
        with pytest.raises(SeriesStoreError, match="could not be read"):
            small_series(tmp_path).read()
        path.unlink()
        sqlite3.connect(path).execute("CREATE TABLE t (a)").connection.close()
        with pytest.raises(SeriesStoreError, match="not the store of a series"):
            small_series(tmp_path).read()
