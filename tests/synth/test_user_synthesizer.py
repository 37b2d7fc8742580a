"""Synthetic people: what they keep, what errors say, how tables come in, and what is refused."""

import itertools
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from quorate import UserData, UserSynthesizer
from quorate.app.model_files import StoredModel
from quorate.core.guarantees import Relation
from quorate.core.noise import SeededNoise, use_noise
from quorate.exceptions import ParameterError, SchemaError, UnboundedContributionError

CITIES, PETS = ["Bonn", "Ulm", "Jena"], ["cat", "dog"]
GIVEN = {"categories": {"city": CITIES, "pet": PETS}, "bounds": {"age": (0, 99)}, "bins": 9}


def people(n=4000, seed=0, largest=6):
    """Return records of people who live in a city, often have one pet, and are of any age."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, largest + 1, n)
    who = np.repeat(np.arange(n), counts)
    city = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    usual = rng.random(n) < np.array([0.9, 0.5, 0.2])[city]
    pet = np.where(rng.random(len(who)) < 0.7, usual[who], rng.random(len(who)) < 0.5)
    age = np.clip(rng.normal(30 + 30 * pet, 12.0), 0, 99)
    return pd.DataFrame(
        {"who": who, "city": np.array(CITIES)[city][who], "pet": np.array(PETS)[pet * 1],
         "age": age.astype(int)}
    )  # fmt: skip


def fitted(frame, seed=0, users="who", **changes):
    with use_noise(SeededNoise(seed)):
        return UserSynthesizer(**{"epsilon": 2.0, **GIVEN, **changes}).fit(frame, users=users)


@pytest.fixture(scope="module")
def fit():
    return fitted(people())


def shares(frame, a, b, bins=9):
    def code(column):
        if column.dtype.kind in "if":
            return np.minimum(column // np.ceil(100 / bins), bins - 1)
        return column

    return pd.crosstab(code(frame[a]), code(frame[b]), normalize="all")


def apart(one, other, a, b):
    one, other = (shares(each, a, b) for each in (one, other))
    return 0.5 * float(one.sub(other, fill_value=0).abs().to_numpy().sum())


class TestWhatIsKept:
    def test_tables_of_two_columns(self, fit):
        made, true = fit.sample(20_000, random_state=1).to_pandas(), people()
        for a, b in itertools.combinations(("city", "pet", "age"), 2):
            assert apart(made, true, a, b) < 0.12
        # And nothing like independence.
        alone = made.assign(pet=made["pet"].sample(frac=1, random_state=0).to_numpy())
        assert apart(made, true, "pet", "age") < 0.5 * apart(alone, true, "pet", "age")

    def test_how_many_records_people_hold(self, fit):
        made, true = fit.sample(20_000, random_state=1).to_pandas(), people()
        counts, own = (each.groupby(each.columns[0]).size() for each in (made, true))
        assert counts.mean() == pytest.approx(own.mean(), rel=0.1)
        assert counts.std() == pytest.approx(own.std(), rel=0.25)
        assert fit.sample(random_state=0)["user"].to_numpy().max() == pytest.approx(4000, rel=0.1)

    def test_how_often_values_of_a_person_repeat(self, fit):
        made, true = fit.sample(8000, random_state=1).to_pandas(), people()

        def agree(frame, column):
            pairs = frame.groupby(frame.columns[0])[column].agg(
                lambda own: (
                    (own.value_counts() * (own.value_counts() - 1)).sum()
                    / (len(own) * (len(own) - 1))
                    if len(own) > 1
                    else np.nan
                )
            )
            return float(pairs.mean())

        for rate in fit.repeats_[:2]:
            exact = agree(true, rate.column)
            assert abs(rate.people - exact) < 4 * rate.error + 0.01
            assert abs(agree(made, rate.column) - exact) < 0.03
            assert rate.model == pytest.approx(agree(made, rate.column), abs=0.03)
        city, pet, age = fit.repeats_
        assert city.people > 0.97 > pet.people > pet.chance + 0.05
        # Ages are drawn anew for each record but for their pet.
        assert age.people < 0.3

    def test_a_value_that_never_changes_is_the_same_to_the_last_digit(self):
        frame = people()
        frame["height"] = 150.0 + (frame["who"] * 37 % 50)
        found = fitted(frame, bounds={"age": (0, 99), "height": (140, 210)})
        made = found.sample(500, random_state=0).to_pandas()
        assert (made.groupby("user")["height"].nunique() == 1).mean() > 0.9
        assert made["height"].nunique() > 300

    def test_whole_numbers_stay_whole_and_in_range(self, fit):
        ages = fit.sample(3000, random_state=0)["age"]
        assert pa.types.is_integer(ages.type)
        assert 0 <= min(ages.to_pylist()) <= max(ages.to_pylist()) <= 99

    def test_a_target_depends_on_each_column_beside_the_tree(self):
        frame = people(6000)
        rng = np.random.default_rng(1)
        frame["ill"] = (rng.random(len(frame)) < 0.2 + 0.4 * (frame["pet"] == "dog")).astype(int)
        both = {**GIVEN["categories"], "ill": [0, 1]}
        found = fitted(frame, categories=both, target="ill", epsilon=4.0)
        tree = found.model_.tree
        assert tree.hub == [c.name for c in found.model_.columns].index("ill")
        made = found.sample(8000, random_state=0).to_pandas()
        for column in ("pet", "city"):
            assert apart(made, frame, "ill", column) < 0.06

    def test_samples_follow_from_public_randomness_alone(self, fit):
        assert fit.sample(50, random_state=3).equals(fit.sample(50, random_state=3))
        assert not fit.sample(50, random_state=3).equals(fit.sample(50, random_state=4))
        with use_noise(SeededNoise(1)):
            assert fit.sample(50, random_state=3).equals(fit.sample(50, random_state=3))


class TestErrors:
    @pytest.mark.parametrize("relation", list(Relation), ids=["replace", "add_remove"])
    def test_bounds_hold_and_distances_are_near(self, relation):
        """Ten fits, three pairs each: all bounds of a fit fail together at most once in twenty."""
        frame, wrong, off, widths = people(1500), 0, [], []
        for seed in range(10):
            found = fitted(frame, seed, relation=relation)
            model = found.model_
            tables = model.tables(model.tree)
            for pair, told in zip(
                itertools.combinations(range(3), 2), found.error_.pairs, strict=True
            ):
                names = [column.name for column in model.columns]
                assert told.columns == (names[pair[0]], names[pair[1]])
                exact = self.counted(frame, model, pair)
                true = 0.5 * np.abs(tables[pair] - exact).sum()
                wrong += true > told.bound
                off.append(told.distance - true)
                widths.append(told.bound)
        assert wrong == 0
        assert abs(np.mean(off)) < 0.03
        assert np.median(widths) < 0.9

    def counted(self, frame, model, pair):
        codes, sizes = [], []
        for place in pair:
            column = model.columns[place]
            values = frame[column.name]
            codes.append(
                values.map(column.labels.index).to_numpy()
                if column.labels is not None
                else column.codes(values.to_numpy(float))
            )
            sizes.append(column.size)
        flat = np.bincount(codes[0] * sizes[1] + codes[1], minlength=sizes[0] * sizes[1])
        return flat.reshape(sizes) / len(frame)

    def test_a_model_of_nobody_is_no_closer_than_it_says(self):
        """Under addition and removal: no people at all, and still an answer, and no promise."""
        found = fitted(people(1).iloc[:0], 3)
        assert all(pair.bound == 1.0 for pair in found.error_.pairs)
        assert found.sample(3, random_state=0).num_rows >= 3
        assert np.isnan(found.repeats_[0].people)

    def test_the_bound_is_that_of_the_worst_pair(self, fit):
        bounds = [pair.bound for pair in fit.error_.pairs]
        assert fit.error_.bound == max(bounds)
        assert fit.error_.coordinates == tuple(bounds)
        assert str(round(fit.error_.bound, 3))[:4] in str(fit.error_)


class TestDoors:
    def test_a_frame_and_crowds_of_the_same_people_are_the_same(self):
        frame = people(600)
        given = {"bins": 9, "categories": {"pet": PETS}, "bounds": {"age": (0.0, 100.0)}}
        frame["age"] = frame["age"].astype(float)
        coded = UserData.from_frame(
            frame, user="who", features=["pet", "age"], categories={"pet": PETS}
        )
        numbers = frame.assign(pet=(frame["pet"] == "dog") * 1.0)
        plain = UserData.from_frame(numbers, user="who", features=["pet", "age"])
        told = [
            fitted(frame[["who", "pet", "age"]], **given),
            fitted(pa.table(frame[["pet", "age", "who"]]), **given),
            fitted(frame[["pet", "age"]], users=frame["who"], **given),
            fitted(coded, users=None, **given),
            fitted(plain, users=None, **{**given, "categories": {"pet": [0, 1]}}),
        ]
        assert len({repr(each.error_) for each in told}) == 1
        assert len({repr(each.model_.people) for each in told}) == 1
        assert told[3].sample(5, random_state=0).equals(told[0].sample(5, random_state=0))
        assert told[3].feature_names_in_.tolist() == ["pet", "age"]

    def test_other_labels_and_missing_numbers_are_left_out_or_filled(self):
        frame = people(2000)
        some = frame.index % 4 == 0
        strange = frame.assign(
            city=np.where(some, "Rome", frame["city"]),
            age=np.where(frame.index % 4 == 1, np.nan, frame["age"]),
        )
        kept = strange[~some & strange["age"].notna()]
        assert repr(fitted(strange).error_) == repr(fitted(kept.assign(age=kept["age"])).error_)
        filled = strange[~some].fillna({"age": 50})
        assert repr(fitted(strange, missing=50).error_) == repr(fitted(filled).error_)

    def test_a_model_file_gives_the_same_people(self, fit, tmp_path):
        path = StoredModel(fit).write(tmp_path / "model.json")
        document = json.loads(path.read_text())
        found = StoredModel.from_dict(document).estimator
        assert found.sample(20, random_state=0).equals(fit.sample(20, random_state=0))
        assert repr(found.error_) == repr(fit.error_)
        text = path.read_text()
        for old, new in (('"stays"', '"spays"'), ('"hub": -1', '"hub": 1')):
            assert old in text
            with pytest.raises((SchemaError, ParameterError, ValueError)):
                StoredModel.from_dict(json.loads(text.replace(old, new)))

    def test_labels_given_as_a_range_are_saved_as_a_list(self, tmp_path):
        frame = people(300).assign(ill=lambda table: table["who"] % 3)
        found = fitted(frame, categories={"ill": range(3), "pet": PETS})
        path = StoredModel(found).write(tmp_path / "model.json")
        again = StoredModel.from_dict(json.loads(path.read_text())).estimator
        assert again.categories == {"ill": [0, 1, 2], "pet": PETS}
        assert again.sample(20, random_state=0).equals(found.sample(20, random_state=0))

    def test_there_may_be_more_combinations_of_labels_than_a_table_has_groups(self):
        names = [f"answer {number}" for number in range(9)]
        codes = np.random.default_rng(0).integers(0, 10, (60, 9))
        frame = pd.DataFrame(codes, columns=names).assign(who=range(60))
        found = fitted(frame, categories=dict.fromkeys(names, range(10)), bounds=None)
        assert found.sample(5, random_state=0).column_names == ["user", *names]

    def test_labels_have_the_type_that_all_of_them_have(self):
        frame = people(50)
        frame["pet"] = frame["pet"].where(frame["pet"] == "cat", 2).astype(object)
        mixed = fitted(frame, categories={"city": CITIES, "pet": ["cat", 2]})
        assert set(mixed.sample(200, random_state=0)["pet"].to_pylist()) == {"cat", "2"}
        frame["pet"] = (frame["pet"] == "cat").astype(int)
        numbers = fitted(frame, categories={"city": CITIES, "pet": [0, 1, 2.5]})
        for number in range(4):
            assert numbers.sample(1, random_state=number)["pet"].type == pa.float64()


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "error", "says"),
        [
            ({"delta": 0.0}, ParameterError, "delta > 0"),
            ({"categories": None, "bounds": None}, UnboundedContributionError, "public"),
            ({"categories": None}, ParameterError, "2 to 32 columns"),
            ({"bounds": {"age": (0, 99), "pet": (0, 1)}}, ParameterError, "either"),
            ({"target": "age"}, ParameterError, "target"),
            ({"target": "moon"}, ParameterError, "target"),
            ({"bins": 0}, ParameterError, "bins"),
            ({"bins": 5000}, ParameterError, "at most 1024"),
            ({"bins": {"moon": 3}}, ParameterError, "bins="),
            ({"bounds": {"age": ("2020-01-01", "2021-01-01")}}, ParameterError, "dates"),
            ({"categories": {"moon": [1, 2]}}, SchemaError, "moon"),
            ({"categories": {"age": ["old"], "pet": PETS}, "bounds": None}, SchemaError, "age"),
            ({"categories": {"city": "Bonn"}}, ParameterError, "list"),
            ({"categories": ["city"]}, ParameterError, "dictionary"),
            ({"bounds": {"pet": (0, 1), "age": (0, 99)}, "categories": None}, SchemaError, "pet"),
            ({"missing": "keep"}, ParameterError, "missing"),
            ({"epsilon": -1.0}, ParameterError, "epsilon"),
        ],
        ids=range(17),
    )
    def test_mistakes_are_refused_before_the_charge(self, changes, error, says, tmp_path):
        from quorate import Ledger

        ledger = Ledger(tmp_path / "ledger.db")
        ledger.set_budget("pets", epsilon=10.0, delta=1e-3, relation=Relation.ADD_REMOVE)
        with pytest.raises(error, match=says):
            fitted(people(20), ledger=ledger, data_name="pets", **changes)
        assert ledger.spent("pets").epsilon == 0.0

    def test_samples_of_nobody_are_refused(self, fit):
        with pytest.raises(ParameterError, match="users"):
            fit.sample(0)
