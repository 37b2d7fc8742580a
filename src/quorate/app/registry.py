"""A guarantee as an entry of the public registry of deployments, in YAML.

The registry (opendp/deployments-registry-data, its schema of 2026) asks who published what, under
which variant of differential privacy, for which unit, in which trust model, and how. Fields that
the guarantee determines are filled in; the others say ``FILL IN``, so that nobody overlooks them.
Values are written as JSON, which is valid YAML.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from quorate import __version__
from quorate.core.guarantees import Guarantee, Numerics, Relation, Trust
from quorate.exceptions import ParameterError

__all__ = ["FILL_IN", "registry_entry"]

FILL_IN = "FILL IN"
"""The placeholder for entries that do not follow from a guarantee."""

_MODELS = {Trust.CENTRAL: "Central", Trust.SHUFFLE: "Shuffle", Trust.LOCAL: "Local"}
_NOISE = {
    "gaussian": "discrete Gaussian noise",
    "pure": "a choice or count with pure differential privacy",
    "approximate": "a step with a failure probability of its own",
    "subsampled": "a step on a secret sample of the users",
}


def registry_entry(
    guarantee: Guarantee,
    *,
    name: str = FILL_IN,
    product: str = "Summary statistics",
    releases: int = 1,
    day: date | None = None,
) -> str:
    """Return the entry of a release, as YAML.

    Parameters
    ----------
    guarantee : Guarantee A valid guarantee.
    name : str
        Name of the data product.
    product : {"Summary statistics", "Machine learning model", "Synthetic data"}
    releases : int, default=1
        How many releases the guarantee covers.
    day : date, optional
        Date of the (first) publication, by default today.

    Examples
    --------
    >>> entry = registry_entry(Guarantee(epsilon=1.0, unit="patient"), name="Visits")
    >>> entry.splitlines()[0]
    'url_slug: "visits"'
    >>> 'variant_name: "Pure DP"' in entry
    True
    """
    if not guarantee.holds:
        raise ParameterError("Expected a guarantee that holds: a registry lists promises.")
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "fill-in"
    entry = {
        "url_slug": slug,
        "deployment": {
            "basic": _basic(name, product, day or date.today()),
            "dp_variant": {
                "variant_name": "Approximate DP" if guarantee.delta > 0 else "Pure DP",
                "data_domain": (
                    f"All tables of records, of which each belongs to one {guarantee.unit}; any "
                    "number of records and any values."
                ),
                "unprotected_quantities": _unprotected(guarantee),
            },
            "privacy_loss": _privacy_loss(guarantee),
            "deployment_model": _model(guarantee, releases),
            "implementation": _implementation(guarantee),
            "administrative": {"status": "Draft", "registry_authors": [FILL_IN], "tier": 3},
        },
    }
    return "\n".join(_lines(entry, 0)) + "\n"


def _basic(name: str, product: str, day: date) -> dict[str, Any]:
    return {
        "name": name,
        "data_curators": [{"data_curator_name": FILL_IN, "data_curator_type": "Industry"}],
        "description": FILL_IN,
        "intended_use": FILL_IN,
        "data_product_type": product,
        "data_product_region": FILL_IN,
        "publication_date": day.isoformat(),
    }


def _unprotected(guarantee: Guarantee) -> str:
    if guarantee.relation is Relation.REPLACE:
        return f"The number of {guarantee.unit}s, and all parameters, which are public."
    return "All parameters, which are public; nothing that was computed from records."


def _privacy_loss(guarantee: Guarantee) -> dict[str, Any]:
    parameters: dict[str, Any] = {"epsilon": guarantee.epsilon}
    if guarantee.delta > 0:
        parameters["delta"] = guarantee.delta
    # A relation speaks of users; the unit says who they are.
    change = guarantee.relation.value.replace("user", guarantee.unit)
    return {
        "privacy_unit": f"{guarantee.unit} level",
        "privacy_unit_details": f"Adjacent data sets: {change}, however many records that is.",
        "privacy_parameters": parameters,
        "privacy_parameters_details": str(guarantee),
    }


def _model(guarantee: Guarantee, releases: int) -> dict[str, Any]:
    many = releases > 1
    return {
        "model_name": _MODELS[guarantee.trust],
        "trust_assumptions": f"Trust: {guarantee.trust.value}.",
        "release_type": "Many releases" if many else "One release",
        "release_type_details": (
            f"{releases} releases; the parameters are for all of them together, for one "
            f"{guarantee.unit}. The budget does not reset within them."
            if many
            else FILL_IN
        ),
        "data_source_type": "Dynamic" if many else "Static",
        "access_type": "Non-interactive",
    }


def _implementation(guarantee: Guarantee) -> dict[str, Any]:
    kinds = dict.fromkeys(_kinds([event.to_dict() for event in guarantee.events]))
    noise = "; ".join(_NOISE[kind] for kind in kinds if kind in _NOISE)
    exact = (
        "Noise is drawn from integers by exact samplers; no floating point enters it."
        if guarantee.numerics is Numerics.EXACT
        else f"The guarantee holds for real numbers. {guarantee.caveat or ''}".strip()
    )
    charged = "no ledger" if guarantee.data_name is None else f"the ledger of {guarantee.data_name}"
    return {
        "preprocessing_and_hyperparameter_tuning": FILL_IN,
        "mechanisms": f"Quorate {__version__}: {noise or 'see the events'}. {exact}",
        "composition": (
            f"One account for everything that was drawn, charged to {charged} before data were "
            f"read. Events: {json.dumps([event.to_dict() for event in guarantee.events])}"
        ),
        "post_processing": "Everything else is computed from noisy numbers.",
        "justification": FILL_IN,
    }


def _kinds(events: Any) -> list[str]:
    """Return the kinds of noise in events, however they are nested."""
    found = []
    for event in events:
        parts = event.get("of")
        if event.get("event") in ("composed", "repeated") and parts is not None:
            found += _kinds(parts if isinstance(parts, list) else [parts])
        else:
            found.append(str(event.get("event")))
    return found


def _lines(value: Mapping[str, Any], depth: int) -> list[str]:
    """Return a mapping as YAML, with one line per entry."""
    found, space = [], "  " * depth
    for name, each in value.items():
        if isinstance(each, Mapping):
            found += [f"{space}{name}:", *_lines(each, depth + 1)]
        elif isinstance(each, list):
            found.append(f"{space}{name}:")
            for item in each:
                inner = _lines(item, depth + 2) if isinstance(item, Mapping) else [_scalar(item)]
                found.append(f"{space}  - {inner[0].strip()}")
                found += inner[1:]
        else:
            found.append(f"{space}{name}: {_scalar(each)}")
    return found


def _scalar(value: Any) -> str:
    """Return text or a number as YAML; an exponent needs a decimal point before it."""
    if isinstance(value, float):
        digits, mark, power = repr(value).partition("e")
        return f"{digits if '.' in digits else digits + '.0'}{mark}{power}"
    return json.dumps(value, ensure_ascii=False)
