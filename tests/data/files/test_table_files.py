"""Tables on disk: the schema may raise, a value never does."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorate.app.tasks.fitting import FitRequest, fit
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.core.users import UserData
from quorate.data.engines.files import FileCrowd
from quorate.data.files import csv_lines
from quorate.data.files.table_files import Columns, TableFile
from quorate.exceptions import ParameterError, QuorateError, SchemaError
from quorate.means import UserMean
from quorate.ranges import Limit

AGES = Columns(user=("person",), features=("age",))


def csv_file(folder, text, name="table.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return TableFile(path)


class TestReadingOnce:
    """The command read the table for the answer, again for its count, and again for the users."""

    TEXT = "person,age,city\n" + "".join(f"p{i},{i},Ulm\n" for i in range(50))

    def columns_read(self, table, monkeypatch):
        seen = []

        def read(*given, names, **others):
            seen.extend(names)
            return csv_lines.read_cells(*given, names=names, **others)

        monkeypatch.setattr("quorate.data.files.table_files.read_cells", read)
        return seen

    @pytest.mark.parametrize(
        "asked",
        [
            {"task": "mean", "columns": AGES, "limits": (Limit(0, 100),)},
            {
                "task": "table",
                "columns": Columns(user=("person",)),
                "limits": (Limit(0, 100, "age"),),
                "options": {"by": "city", "keys": "Ulm", "statistics": "n=count,age=mean"},
            },
        ],
        ids=["mean", "table"],
    )
    def test_a_fit_reads_no_column_twice(self, tmp_path, monkeypatch, asked):
        table = csv_file(tmp_path, self.TEXT)
        seen = self.columns_read(table, monkeypatch)
        result = fit(FitRequest(epsilon=4.0, relation=Relation.REPLACE, **asked), table)
        assert result.readable is not None
        assert len(seen) == len(set(seen)) > 1

    def test_the_share_that_was_read_climbs_to_one(self, tmp_path, monkeypatch):
        monkeypatch.setattr(csv_lines, "_BLOCK", 64)
        shares = []
        table = csv_file(tmp_path, self.TEXT)
        TableFile(table.path, watch=shares.append).read(AGES)
        assert shares == sorted(shares)
        assert len(shares) > 3
        assert 0.97 < shares[-1] <= 1.0


class TestCsv:
    def test_ids_are_text_and_features_are_numbers(self, tmp_path):
        people = csv_file(tmp_path, "person,age\n007,30\n7,32\n007,34\n").read(AGES)
        np.testing.assert_array_equal(people.user_means().ravel(), [32.0, 32.0])
        assert people.unit == "person"
        assert people.feature_names == ("age",)

    @pytest.mark.parametrize("cell", ["", "old", "1e999", "nan", '"', "\ufeff", "1,2,3", "0x10"])
    def test_no_cell_raises_and_others_are_read_as_before(self, tmp_path, cell):
        people = csv_file(tmp_path, f"person,age\na,30\nb,31.5\nc,{cell}\n").read(AGES)
        np.testing.assert_array_equal(people.user_means().ravel()[:2], [30.0, 31.5])

    def test_bytes_that_are_no_text_are_missing_numbers(self, tmp_path):
        people = csv_file(tmp_path, b"person,age\na,30\nb,\xff\xfe\n").read(AGES)
        np.testing.assert_array_equal(people.record_counts(), [1, 0])

    def test_truth_values_are_numbers(self, tmp_path):
        people = csv_file(tmp_path, "person,age\na,true\nb,False\n").read(AGES)
        np.testing.assert_array_equal(people.user_means().ravel(), [1.0, 0.0])

    def test_a_number_can_stand_for_what_is_missing(self, tmp_path):
        columns = Columns(user=("person",), features=("age",), missing=5.0)
        people = csv_file(tmp_path, "person,age\na,x\nb,7\n").read(columns)
        np.testing.assert_array_equal(people.user_means().ravel(), [5.0, 7.0])

    def test_labels_of_public_classes_become_places(self, tmp_path):
        columns = Columns(user=("person",), features=("age",), target="ill", classes=("no", "yes"))
        people = csv_file(tmp_path, "person,age,ill\na,1,yes\nb,2,no\nc,3,?\n").read(columns)
        np.testing.assert_array_equal(people.y, [1.0, 0.0])

    def test_several_columns_form_the_unit(self, tmp_path):
        columns = Columns(user=("person", "day"), features=("steps",))
        table = csv_file(tmp_path, "person,day,steps\na,1,10\na,2,20\nb,1,30\n")
        people = table.read(columns)
        assert (people.n_users, people.unit) == (3, "person x day")

    def test_tabs_and_a_byte_order_mark_are_understood(self, tmp_path):
        table = csv_file(tmp_path, "\ufeffperson\tage\na\t30\n", name="table.tsv")
        assert table.column_names == ["person", "age"]
        assert table.read(AGES).n_users == 1

    def test_types_are_never_guessed(self, tmp_path):
        table = csv_file(tmp_path, "person,age\na,30\n")
        with pytest.raises(SchemaError, match="declares no types"):
            table.resolve(Columns(user=("person",)))

    def test_the_schema_is_checked_without_a_row(self, tmp_path):
        table = csv_file(tmp_path, "person,age\na,30\n")
        with pytest.raises(SchemaError, match="Expected a column 'height'"):
            table.resolve(Columns(user=("person",), features=("height",)))
        with pytest.raises(SchemaError, match="different column names"):
            csv_file(tmp_path, "a,a\n1,2\n").resolve(AGES)
        with pytest.raises(SchemaError, match="found nothing"):
            TableFile(tmp_path / "none.csv").resolve(AGES)

    def test_features_for_predictions_keep_their_rows(self, tmp_path):
        values = csv_file(tmp_path, "x,y,z\n1,2,3\n,5,6\n").features(["z", "x"])
        np.testing.assert_array_equal(values, [[3.0, 1.0], [6.0, np.nan]])


class TestParquet:
    def test_declared_types_name_the_features(self, tmp_path):
        path = tmp_path / "table.parquet"
        pq.write_table(
            pa.table({"person": ["a", "b"], "age": [1, 2], "sex": ["f", "m"], "bmi": [1.5, None]}),
            path,
        )
        table = TableFile(path)
        assert table.resolve(Columns(user=("person",))).features == ("age", "bmi")
        assert table.read(Columns(user=("person",), missing=0.0)).n_features == 2
        assert table.features(["bmi"]).shape == (2, 1)

    def test_something_else_is_refused(self, tmp_path):
        path = tmp_path / "table.parquet"
        path.write_text("no")
        with pytest.raises(SchemaError, match="could not be read"):
            TableFile(path).resolve(AGES)


def test_a_row_is_no_person():
    with pytest.raises(ParameterError, match="a row is no person"):
        Columns(user=())


class TestFoldersOfCsv:
    @pytest.fixture
    def folder(self, tmp_path):
        """Three files in an order that is not that of their making; one names columns otherwise."""
        rng = np.random.default_rng(0)
        for name in ("2.csv", "1.csv", "3.csv"):
            ids, ages = rng.integers(0, 40, 300), rng.integers(0, 900, 300) / 10
            head, row = "person,age,ill", "p{0},{1},yes"
            if name == "3.csv":
                head, row = "age,ill,person", "{1},no,p{0}"
            lines = [head, *(row.format(i, a) for i, a in zip(ids, ages, strict=True))]
            (tmp_path / name).write_text("\n".join([*lines, 'p1,"odd', ",7,no"]))
        (tmp_path / ".hidden").write_text("nothing")
        return tmp_path

    COLUMNS = Columns(user=("person",), features=("age",), target="ill", classes=("no", "yes"))

    def test_the_files_follow_each_other_in_the_order_of_their_names(self, folder):
        table = TableFile(folder)
        assert [file.name for file in table.files] == ["1.csv", "2.csv", "3.csv"]
        assert table.column_names == ["person", "age", "ill"]
        together = table.read(self.COLUMNS)
        alone = [TableFile(file).read(self.COLUMNS) for file in table.files]
        assert together.n_records == sum(each.n_records for each in alone)
        for user, key in enumerate(alone[0].keys()):
            first = alone[0].take([user]).X
            place = int(np.flatnonzero(together.keys() == key)[0])
            assert np.array_equal(together.take([place]).X[: len(first)], first)
        assert table.count_users(self.COLUMNS) == together.n_users

    @pytest.mark.parametrize("n_parts", [1, 7])
    def test_grouped_on_disk_they_are_the_same_users(self, folder, n_parts):
        whole = TableFile(folder).read(self.COLUMNS)
        crowd = TableFile(folder).group(self.COLUMNS, n_parts=n_parts)
        found = crowd.together()
        order = np.argsort(whole.keys())
        assert np.array_equal(found.keys(), whole.keys()[order])
        assert np.array_equal(found.X, whole.take(order).X)
        assert np.array_equal(found.y, whole.take(order).y)

    def test_a_cap_and_a_spool_that_is_used_again(self, folder, tmp_path_factory):
        spool = tmp_path_factory.mktemp("spools") / "kept"
        options = {"n_parts": 3, "cap": 2, "random_state": 0, "spool": spool}
        whole = TableFile(folder).read(self.COLUMNS).cap(2, random_state=0)
        times = []
        for _ in range(2):
            crowd = TableFile(folder).group(self.COLUMNS, **options)
            assert sorted(crowd.together().X.ravel()) == sorted(whole.X.ravel())
            times.append((spool / "manifest.json").stat().st_mtime_ns)
            del crowd
        assert times[0] == times[1]

    def test_the_call_decides_where_they_lie_and_nothing_else(self, folder):
        options = {"user": "person", "features": ["age"], "target": "ill", "classes": ["no", "yes"]}
        here = UserData.from_csv(folder, **options)
        there = UserData.from_csv(folder, spool=True, **options)
        assert (type(here), type(there)) == (UserData, FileCrowd)
        assert here.unit == there.unit == "person"
        assert there.n_users == here.n_users
        order, found = np.argsort(here.keys()), there.together()
        for name in ("X", "y", "offsets"):
            mine = getattr(found, name)
            assert np.array_equal(mine, getattr(here.take(order), name))
        with use_noise(SeededNoise(0)):
            one = UserMean(1.0, delta=1e-5, bounds=100.0).fit(here).mean_
        with use_noise(SeededNoise(0)):
            assert one == UserMean(1.0, delta=1e-5, bounds=100.0).fit(there).mean_

    def test_categories_are_coded_alike_in_memory_and_on_disk(self, folder):
        options = {"user": "person", "features": ["age", "ill"], "categories": {"ill": ["yes"]}}
        here = UserData.from_csv(folder, **options)
        there = UserData.from_csv(folder, spool=True, **options)
        assert here.feature_names == there.feature_names
        assert here.n_features == there.n_features > 1
        assert np.array_equal(there.together().X, here.take(np.argsort(here.keys())).X)

    def test_one_file_several_ids_and_numbers_for_what_is_missing(self, folder):
        options = {"features": "age", "missing": 0.5, "unit": "person and state"}
        people = UserData.from_csv(folder / "1.csv", user=["person", "ill"], **options)
        assert people.unit == "person and state"
        assert 0.5 in people.X

    @pytest.mark.parametrize(
        ("options", "what"),
        [
            ({"features": ["years"]}, "Expected a column 'years'"),
            ({"features": None}, "names of the feature columns"),
            ({"features": [3]}, "names of columns"),
            ({"user": None}, "names of columns"),
            ({"user": "age"}, "An id is no feature"),
            ({"missing": "guess"}, "missing"),
            ({"categories": ["age"]}, "categories"),
        ],
    )
    def test_what_cannot_be_is_refused_before_a_row_is_read(
        self, folder, options, what, monkeypatch
    ):
        for name in ("read", "group"):
            monkeypatch.setattr(TableFile, name, None)
        with pytest.raises(QuorateError, match=what):
            UserData.from_csv(folder, **{"user": "person", "features": ["age"], **options})

    def test_other_files_and_nothing_at_all_are_refused(self, tmp_path):
        (tmp_path / "data.parquet").write_text("")
        for place, what in [(tmp_path, r"\.csv or \.tsv"), (tmp_path / "none.csv", "nothing at")]:
            with pytest.raises(SchemaError, match=what):
                UserData.from_csv(place, user="person", features=["age"])

    def test_other_columns_in_one_file_are_refused_before_a_row_is_read(self, folder):
        (folder / "4.csv").write_text("person,years,ill\n")
        with pytest.raises(SchemaError, match=r"'4\.csv'"):
            TableFile(folder).resolve(self.COLUMNS)

    def test_files_of_several_kinds_are_refused(self, folder):
        (folder / "4.parquet").write_text("")
        with pytest.raises(SchemaError, match="one kind"):
            TableFile(folder).resolve(self.COLUMNS)

    def test_a_file_in_blocks_is_the_file_at_once(self, folder, monkeypatch):
        expected = TableFile(folder).read(self.COLUMNS)
        monkeypatch.setattr("quorate.data.files.csv_lines._BLOCK", 50)
        assert np.array_equal(TableFile(folder).read(self.COLUMNS).X, expected.X)


@pytest.mark.parametrize("column", ["who", "city", "x"])
def test_what_is_wrong_with_a_page_is_withheld(tmp_path, column):
    """Arrow's own words may quote what it found; only which file it is may be told."""
    path, n = tmp_path / "visits.parquet", 2000
    held = {"who": np.arange(n) % 50, "city": ["Ulm", "Bonn"] * (n // 2), "x": np.arange(n) / 7}
    pq.write_table(pa.table(held), path, use_dictionary=False)
    group = pq.ParquetFile(path).metadata.row_group(0)
    page = next(c for c in map(group.column, range(3)) if c.path_in_schema == column)
    octets, start = bytearray(path.read_bytes()), page.data_page_offset
    octets[start : start + page.total_compressed_size] = b"\xab" * page.total_compressed_size
    path.write_bytes(octets)
    table, numbers = TableFile(path), Columns(user=("who",), features=("x",))
    named = Columns(user=("who",), features=("city", "x"))
    reads = {"labels": lambda: table.read_labels(named, labels=["city"], ids="id")}
    if column != "city":
        reads |= {"memory": lambda: table.read(numbers), "disk": lambda: table.group(numbers)}
    if column == "who":
        reads["ids"] = lambda: table.count_users(numbers)
    for read in reads.values():
        with pytest.raises(SchemaError, match="why is withheld") as caught:
            read()
        assert caught.value.__context__ is None
