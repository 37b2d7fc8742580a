"""Where a request's users lie: the same release, and refusals before anything is charged."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorate.app.tasks.crowds import Place, UnreadCrowd
from quorate.app.tasks.fitting import FitRequest, fit
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.data.engines.base import Schema
from quorate.data.engines.files import FileCrowd
from quorate.data.files.table_files import Columns, TableFile
from quorate.exceptions import MissingExtraError, ParameterError
from quorate.ranges import Limit

COLUMNS = Columns(user=("id",), features=("a", "b"))


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(3):
        users = [f"user {u}" for u in rng.integers(0, 300, 1000)]
        table = pa.table({"id": users, "a": rng.normal(size=1000), "b": rng.normal(size=1000)})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    return tmp_path


def request(**changes):
    limits = (Limit(-10, 10),)
    return FitRequest(
        **{"task": "mean", "columns": COLUMNS, "limits": limits, "epsilon": 3.0, "delta": 1e-5}
        | changes
    )


class TestPlaces:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("local", "local"),
            ("local[2]", "spark"),
            ("local[*]", "spark"),
            ("spark://host:7077", "spark"),
            ("dask://10.0.0.1:8786", "dask"),
        ],
    )
    def test_a_word_names_an_engine(self, name, kind):
        assert Place(name).kind == kind

    @pytest.mark.parametrize("name", ["steam", "", "dask://", "dask://host", "local[two]", None, 7])
    def test_other_words_are_refused(self, name):
        with pytest.raises(ParameterError, match="engine"):
            Place(name)

    @pytest.mark.parametrize(
        ("name", "module", "extra"),
        [("dask://h:1", "distributed", "dask"), ("local[2]", "pyspark", "spark")],
    )
    def test_a_missing_extra_says_how_to_install_it(self, name, module, extra, monkeypatch):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtraError, match=rf"pip install 'quorate\[{extra}\]'"):
            request(engine=name)

    def test_clusters_read_parquet_only(self, tmp_path):
        (tmp_path / "t.csv").write_text("id,a,b\n1,2,3\n")
        with pytest.raises(ParameterError, match="Parquet"):
            fit(request(engine="local[2]"), TableFile(tmp_path / "t.csv"))


class TestLargeTables:
    def test_files_release_what_memory_does(self, folder):
        results = []
        for engine in ("local", "files"):
            with use_noise(SeededNoise(0)):
                results.append(fit(request(engine=engine), TableFile(folder)))
        assert np.array_equal(results[0].estimator.mean_, results[1].estimator.mean_)
        assert results[0].n_users == results[1].n_users == 300

    def test_the_call_says_where_people_lie_and_the_files_do_not(self, folder, tmp_path):
        assert isinstance(UserData.from_parquet(folder, user="id"), UserData)
        kept = tmp_path / "kept"
        for spool in (True, kept):
            assert isinstance(UserData.from_parquet(folder, user="id", spool=spool), FileCrowd)
        assert any(kept.iterdir())
        assert Place("local").is_in_memory
        assert not Place("files").is_in_memory

    def test_the_charge_comes_before_the_first_row(self, folder, monkeypatch):
        order = []
        place = Place("files")
        monkeypatch.setattr(
            Place, "crowd", lambda *_: order.append("read") or UserData([[1.0]], offsets=[0, 1])
        )
        from quorate.app.tasks.fitting import _people

        people = _people(
            TableFile(folder), COLUMNS, place, lambda: order.append("charge"), public=True
        )
        assert (people.n_features, people.unit, people.has_target) == (2, "id", False)
        assert order == []
        assert people.n_users == 1
        assert people.keys().shape == (1,)
        assert order == ["charge", "read"]


class TestUnread:
    def test_it_answers_as_what_it_reads(self):
        data = UserData.from_arrays([[1.0], [5.0], [3.0]], users=["ann", "bob", "ann"])
        crowd = UnreadCrowd(lambda: data, Schema.of(data))
        assert np.array_equal(crowd.take([1]).X, data.take([1]).X)
        assert np.array_equal(crowd.cap(1, random_state=0).X, data.cap(1, random_state=0).X)
        assert crowd.add_up(lambda users: np.array([users.n_users])) == [2]
        assert np.array_equal(crowd.take_ranked(np.array([0])).X, data.take_ranked(np.array([0])).X)
