"""Fitted estimators as JSON files that can be opened without trusting their author.

A file contains numbers and text only: the estimator (one of a closed list), its parameters, what
was released, and the guarantee. Loading checks every part, calls no code that the file names and
never unpickles. So a file from an untrusted source can be *wrong* but cannot run code. The
guarantee in a file is a claim of its author; only the ledger is evidence.

Ledgers are not stored: they belong to a machine, not to a model. Code, such as a network of your
own, is not stored either: the file says that there was some, and it has to be passed when the file
is read.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quorate import __version__
from quorate.app.catalogue import CATALOGUE
from quorate.app.plain_data import decode, decode_scalar, encode
from quorate.core.guarantees import Guarantee
from quorate.data.files.atomic import write_atomically
from quorate.exceptions import ParameterError, QuorateError
from quorate.ledger.entries import read_guarantee

__all__ = ["FORMAT", "STORED", "VERSION", "ModelFileError", "StoredModel"]

FORMAT = "quorate-model"
VERSION = 2

_LARGEST_FILE = 2**28
_MOST_FEATURES = 2**24
_DAMAGE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, QuorateError)
# Places of a machine, and code.
_NOT_STORED = ("ledger", "checkpoint", "optimizer")


class ModelFileError(QuorateError, ValueError):
    """The file is not a model, is damaged, or comes from a newer version."""


STORED = tuple(sorted(each.name for each in CATALOGUE.values() if each.stored))
"""The estimators that can be stored."""

# Version 1 did not store these, where the estimator had none yet.
_NEW_IN_2 = frozenset({"algorithm_", "error_"})


@dataclass(frozen=True)
class StoredModel:
    """A fitted estimator, and the public labels that its predictions stand for.

    Parameters
    ----------
    estimator : UserEstimator
        A fitted estimator of a class that model files support.
    labels : tuple or None, default=None
        The labels that the predictions 0, 1, ... stand for.

    Examples
    --------
    >>> import tempfile
    >>> from quorate import ThresholdLearner
    >>> x = np.tile([3, 900, 1100, 7000], 200)
    >>> learner = ThresholdLearner(epsilon=1.0, domain=(0, 9999), records=4)
    >>> learner = learner.fit(x.reshape(-1, 1), x >= 1000, users=np.arange(800) // 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = StoredModel(learner, ("low", "high")).write(Path(folder) / "model.json")
    ...     model = StoredModel.read(path)
    >>> model.estimator.threshold_ == learner.threshold_, model.estimator.guarantee_.epsilon
    (True, 1.0)
    >>> model.predict([[10.0], [9000.0]]).tolist()
    ['low', 'high']
    """

    estimator: Any
    labels: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        name = type(self.estimator).__name__
        if name not in STORED or type(self.estimator) is not CATALOGUE[name].kind:
            raise ParameterError(
                f"Expected an estimator that model files know ({', '.join(STORED)}), got {name}."
            )
        if not hasattr(self.estimator, "guarantee_"):
            raise ParameterError(f"Expected a fitted {name}, got one without a guarantee_.")
        if not self.estimator.guarantee_.unit.isprintable():
            raise ParameterError("Expected a printable unit in the guarantee.")
        if self.labels is not None:
            places = np.asarray(getattr(self.estimator, "classes_", ()))
            if places.tolist() != list(range(max(len(self.labels), 2))):
                raise ParameterError(
                    "Expected labels for a model with the classes 0, 1, ..., one for each of them."
                )

    @property
    def predicts(self) -> bool:
        """Whether the model predicts something for a record."""
        return hasattr(self.estimator, "predict")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns that the model was fitted on, in their order."""
        names = getattr(self.estimator, "feature_names_in_", None)
        if names is None:
            raise ParameterError("Expected a model with names of features, got one without.")
        return tuple(str(name) for name in names)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Predict a label, or a number, for every row."""
        if not self.predicts:
            raise ParameterError(
                f"Expected a model that predicts, got {type(self.estimator).__name__}, which is an "
                "answer about the crowd."
            )
        values: np.ndarray[Any, Any] = np.asarray(self.estimator.predict(X))
        if self.labels is None:
            return values
        # A row that lacks a value has no label.
        known = ~np.isnan(values)
        named: np.ndarray[Any, Any] = np.full(len(values), None, dtype=object)
        named[known] = np.array(self.labels, dtype=object)[values[known].astype(np.int64)]
        return named

    def predict_probabilities(self, X: Any) -> tuple[list[str], np.ndarray[Any, Any]]:
        """Return the names of the classes, and a row of their probabilities for every row."""
        if not hasattr(self.estimator, "predict_proba"):
            raise ParameterError(
                f"Expected a model that gives probabilities, got {type(self.estimator).__name__}."
            )
        shares: np.ndarray[Any, Any] = np.asarray(self.estimator.predict_proba(X))
        labels = self.estimator.classes_ if self.labels is None else self.labels
        return [str(label) for label in labels], shares

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain data."""
        estimator, entry = self.estimator, CATALOGUE[type(self.estimator).__name__]
        given = estimator.get_params(deep=False)
        code = [name for name in entry.code if given[name] is not None]
        parameters = {
            name: encode(value)
            for name, value in given.items()
            if name not in _NOT_STORED and name not in code
        }
        names = getattr(estimator, "feature_names_in_", None)
        return {
            "format": FORMAT,
            "version": VERSION,
            "written_by": f"quorate {__version__}",
            "estimator": type(estimator).__name__,
            "parameters": parameters,
            "code": code,
            "released": {name: encode(getattr(estimator, name)) for name in entry.releases},
            "n_features": int(estimator.n_features_in_),
            "feature_names": None if names is None else [str(name) for name in names],
            "labels": None if self.labels is None else [encode(label) for label in self.labels],
            "guarantee": estimator.guarantee_.to_dict(),
        }

    @classmethod
    def from_dict(cls, document: Any, **code: Any) -> StoredModel:
        """Check plain data and return the model, given the code with which it was fitted."""
        try:
            return _read(document, code)
        except ModelFileError:
            raise
        except _DAMAGE as why:
            reason = str(why) if isinstance(why, QuorateError) else f"{type(why).__name__}: {why}"
        raise ModelFileError(f"Expected a sound model file; it was not loaded. {reason}")

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the model file completely, or leave no file behind."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
        return write_atomically(path, text + "\n")

    @classmethod
    def read(cls, path: str | os.PathLike[str], **code: Any) -> StoredModel:
        """Read a model that :meth:`write` wrote, on any machine.

        A network of your own is code and is not in the file: ``read(path, module=network)``.
        """
        file = Path(path)
        if not file.is_file():
            raise ModelFileError(f"Expected a model file, found none at {str(path)!r}.")
        if file.stat().st_size > _LARGEST_FILE:
            raise ModelFileError(f"Expected a model file of at most {_LARGEST_FILE} bytes.")
        try:
            document = json.loads(file.read_bytes())
        except (ValueError, RecursionError):
            document = None
        return cls.from_dict(document, **code)


def _read(document: Any, code: dict[str, Any]) -> StoredModel:
    if not (isinstance(document, dict) and document.get("format") == FORMAT):
        raise ModelFileError(f"Expected a {FORMAT} file (JSON), got something else.")
    version = document.get("version")
    if not (isinstance(version, int) and 1 <= version <= VERSION):
        raise ModelFileError(
            f"Expected a model file of version {VERSION} or older, got version={version!r}. "
            "Install a newer quorate to read it."
        )
    name = document.get("estimator")
    if name not in STORED:
        raise ModelFileError(f"Expected one of {', '.join(STORED)}, got estimator={name!r}.")
    entry = CATALOGUE[name]
    kind = entry.kind
    wanted = document.get("code", [])
    if not (isinstance(wanted, list) and set(wanted) <= set(entry.code)):
        raise ModelFileError(f"Expected no code in the file of a {name} but {list(entry.code)}.")
    if {each for each, value in code.items() if value is not None} != set(wanted):
        raise ModelFileError(
            f"Expected {', '.join(f'{each}=' for each in wanted) or 'no code'} beside this file, "
            f"as the {name} was fitted, got {', '.join(code) or 'nothing'}. Files hold numbers and "
            "no code: in Python, StoredModel.read(path, module=network) takes both."
        )
    estimator = kind(**_parameters(kind, document["parameters"]), **code)
    released = _section(document["released"])
    expected = dict(entry.releases)
    if version == 1:
        released = {a: value for a, value in released.items() if a not in entry.follows}
        for attribute in _NEW_IN_2 - set(released):
            expected.pop(attribute, None)
    if set(released) != set(expected):
        raise ModelFileError(f"Expected the releases {sorted(expected)} of a {name}.")
    for attribute, kinds in expected.items():
        value = decode(released[attribute])
        known = {kind.rpartition(":")[2] for kind in kinds}
        if type(value).__name__ not in known or not _is_readable(value):
            raise ModelFileError(f"Expected another {attribute} in a {name}.")
        setattr(estimator, attribute, value)
    _set_schema(estimator, document["n_features"], document["feature_names"])
    estimator.guarantee_ = _guarantee(_section(document["guarantee"]))
    if entry.finish is not None:
        entry.finish(estimator)
    if entry.fits is None or not entry.fits(estimator):
        raise ModelFileError(
            f"Expected finite releases of a {name}, as many as its features and classes ask for."
        )
    labels = document["labels"]
    if labels is not None and not (isinstance(labels, list) and len(labels) >= 2):
        raise ModelFileError("Expected null or a list of at least two labels.")
    model = StoredModel(estimator, None if labels is None else tuple(map(decode_scalar, labels)))
    if model.predicts:
        # Whatever else is wrong with the file shall show now, not in the middle of a table.
        model.predict(_one_row(estimator))
    return model


def _is_readable(value: Any) -> bool:
    """Return whether all text in a release can be printed unchanged."""
    if isinstance(value, str):
        return value.isprintable()
    if is_dataclass(value):
        return all(_is_readable(getattr(value, each.name)) for each in fields(value))
    return True


def _one_row(estimator: Any) -> Any:
    """Return a row of zeros, with the names of the features if there are any."""
    import pyarrow as pa

    columns = estimator.columns_
    row = np.zeros((1, len(columns)))
    named = hasattr(estimator, "feature_names_in_")
    return pa.table(list(row.T), names=list(columns)) if named else row


def _parameters(kind: Any, given: Any) -> dict[str, Any]:
    known = set(kind._get_param_names()) - set(_NOT_STORED)
    unknown = set(_section(given)) - known
    if unknown:
        raise ModelFileError(f"Expected parameters among {sorted(known)}, got {sorted(unknown)}.")
    return {name: decode(value) for name, value in given.items()}


def _set_schema(estimator: Any, n_features: Any, names: Any) -> None:
    whole = isinstance(n_features, int) and not isinstance(n_features, bool)
    if not (whole and 0 < n_features <= _MOST_FEATURES):
        raise ModelFileError(f"Expected 0 < n_features <= {_MOST_FEATURES} in a model file.")
    estimator.n_features_in_ = n_features
    if names is not None:
        texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not texts or len(names) != n_features:
            raise ModelFileError("Expected a name for each feature.")
        estimator.feature_names_in_ = np.array(names, dtype=object)


def _guarantee(document: dict[str, Any]) -> Guarantee:
    name = document.get("data_name")
    if not (name is None or isinstance(name, str)):
        raise ModelFileError("Expected data_name to be text or null.")
    loss = document["epsilon"]
    numbers = [document["delta"], *([] if loss == "infinity" else [loss])]
    if not all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
        raise ModelFileError("Expected epsilon and delta to be finite numbers.")
    found = document["events"]
    if not (isinstance(found, list) and all(isinstance(event, dict) for event in found)):
        raise ModelFileError("Expected a list of events.")
    if not isinstance(document["unit"], str):
        raise ModelFileError("Expected the unit to be a word.")
    return read_guarantee(document)


def _section(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelFileError(f"Expected a JSON object, got {type(value).__name__}.")
    return value
