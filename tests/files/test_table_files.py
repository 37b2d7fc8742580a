"""Tables on disk: the schema may raise, a value never does."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorate.exceptions import ParameterError, SchemaError
from quorate.files.table_files import Columns, TableFile

AGES = Columns(user=("person",), features=("age",))


def csv_file(folder, text, name="table.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return TableFile(path)


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
        with pytest.raises(SchemaError, match="could not read"):
            TableFile(path).resolve(AGES)


def test_a_row_is_no_person():
    with pytest.raises(ParameterError, match="a row is no person"):
        Columns(user=())
