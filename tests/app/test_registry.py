"""Entries of the public registry: what its schema of 2026 asks for, written down here by hand."""

import json
from datetime import date

import numpy as np
import pytest
import yaml

from quorate import Guarantee, Relation, ThresholdLearner
from quorate.app.cli import main
from quorate.app.model_files import StoredModel
from quorate.app.registry import FILL_IN, registry_entry
from quorate.core.account import Gaussian, Pure
from quorate.core.guarantees import Composed, Numerics, Repeated, Trust
from quorate.exceptions import ParameterError

# The sections, which of their fields are required, and which others there may be.
SECTIONS = {
    "basic": (
        {
            "name",
            "data_curators",
            "description",
            "intended_use",
            "data_product_type",
            "data_product_region",
            "publication_date",
        },
        {"data_product_sector"},
    ),
    "dp_variant": (set(), {"variant_name", "data_domain", "unprotected_quantities"}),
    "privacy_loss": (
        set(),
        {
            "privacy_unit",
            "privacy_unit_details",
            "number_of_privacy_units",
            "privacy_parameters",
            "privacy_parameters_details",
        },
    ),
    "deployment_model": (
        set(),
        {
            *(f"{n}{end}" for n in ("model_name", "release_type") for end in ("", "_details")),
            *(f"{n}{end}" for n in ("data_source_type", "access_type") for end in ("", "_details")),
            "trust_assumptions",
            "actors",
        },
    ),
    "implementation": (
        set(),
        {
            "preprocessing_and_hyperparameter_tuning",
            "mechanisms",
            "composition",
            "post_processing",
            "justification",
            "utility",
            "additional_information",
        },
    ),
    "administrative": ({"status", "registry_authors", "tier"}, {"evidence_sources"}),
}
CHOICES = {
    ("basic", "data_product_type"): {
        "Summary statistics",
        "Machine learning model",
        "Synthetic data",
    },
    ("dp_variant", "variant_name"): {"Pure DP", "Approximate DP"},
    ("deployment_model", "model_name"): {"Local", "Central", "Shuffle"},
    ("deployment_model", "release_type"): {"One release", "Many releases"},
    ("deployment_model", "data_source_type"): {"Static", "Dynamic"},
    ("deployment_model", "access_type"): {"Interactive", "Non-interactive"},
    ("administrative", "status"): {"Draft"},
}


def check(text):
    entry = yaml.safe_load(text)
    assert set(entry) == {"url_slug", "deployment"}
    found = entry["deployment"]
    assert set(found) == set(SECTIONS)
    for name, (required, others) in SECTIONS.items():
        assert required <= set(found[name]) <= required | others, name
    for (section, field), allowed in CHOICES.items():
        assert found[section][field] in allowed
    date.fromisoformat(found["basic"]["publication_date"])
    parameters = found["privacy_loss"]["privacy_parameters"]
    assert set(parameters) <= {"epsilon", "delta", "rho"}
    assert all(isinstance(value, float) for value in parameters.values())
    return found


PROMISES = [
    Guarantee(epsilon=1.0, events=(Pure(0.5),)),
    Guarantee(epsilon=0.5, delta=1e-6, unit="patient", relation=Relation.ADD_REMOVE),
    Guarantee(epsilon=2.0, delta=1e-9, events=(Composed((Gaussian(4.0), Repeated(Pure(0.1), 7))),)),
    Guarantee(epsilon=3.0, trust=Trust.LOCAL, unit='person: "x" # day'),
    Guarantee(epsilon=1.0).idealized("A model sees all users at once."),
]


@pytest.mark.parametrize("promise", PROMISES, ids=range(len(PROMISES)))
@pytest.mark.parametrize("releases", [1, 52])
def test_an_entry_has_what_the_schema_asks_for(promise, releases):
    found = check(registry_entry(promise, name="Visits: a 'table'", releases=releases))
    assert found["privacy_loss"]["privacy_parameters"]["epsilon"] == promise.epsilon
    assert found["privacy_loss"]["privacy_parameters"].get("delta", 0.0) == promise.delta
    assert found["privacy_loss"]["privacy_unit"].startswith(promise.unit)
    assert found["privacy_loss"]["privacy_parameters_details"] == str(promise)
    assert (found["deployment_model"]["release_type"] == "Many releases") == (releases > 1)


def test_what_only_people_know_is_left_to_them():
    found = check(registry_entry(PROMISES[0]))
    assert found["basic"]["intended_use"] == FILL_IN
    assert found["administrative"]["registry_authors"] == [FILL_IN]
    assert "pure differential privacy" in found["implementation"]["mechanisms"]
    both = check(registry_entry(PROMISES[2]))["implementation"]["mechanisms"]
    assert "Gaussian" in both
    assert "pure differential privacy" in both


def test_no_promise_is_no_entry():
    with pytest.raises(ParameterError, match="holds"):
        registry_entry(Guarantee(epsilon=1.0, numerics=Numerics.VOID))


def test_the_command_writes_the_entry_of_a_model(tmp_path, capsys):
    x = np.tile([3, 900, 1100, 7000], 200)
    learner = ThresholdLearner(epsilon=1.0, domain=(0, 9999), records=4)
    learner.fit(x.reshape(-1, 1), x >= 1000, users=np.arange(800) // 4)
    model, out = tmp_path / "model.json", tmp_path / "out.yaml"
    StoredModel(learner).write(model)
    assert main(["guarantee", str(model), "--registry", str(out), "--name", "Cut-off"]) == 0
    assert "epsilon = 1 for each user" in capsys.readouterr().out
    found = check(out.read_text())
    assert found["basic"]["data_product_type"] == "Machine learning model"


def test_the_command_reads_any_document_with_a_guarantee(tmp_path, capsys):
    file, out = tmp_path / "week.json", tmp_path / "out.yaml"
    file.write_text(json.dumps({"period": "1", "guarantee": PROMISES[1].to_dict()}))
    arguments = ["guarantee", str(file), "--registry", str(out), "--releases", "52", "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["unit"] == "patient"
    assert check(out.read_text())["deployment_model"]["release_type"] == "Many releases"
    file.write_text("[]")
    assert main(["guarantee", str(file)]) == 2
    assert "Expected a model file" in capsys.readouterr().err
