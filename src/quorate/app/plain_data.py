"""Values as JSON and back: numbers, text, arrays and a closed list of types.

Reading never imports what a file names and never calls anything but the constructors listed here,
which are frozen dataclasses and enums of this library. So a file can contain a wrong number, but it
cannot run code.
"""

from __future__ import annotations

import datetime
import importlib
import math
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from quorate.app.catalogue import value_types
from quorate.exceptions import ParameterError, QuorateError, SchemaError

__all__ = ["decode", "decode_scalar", "encode"]

_HOMES = {
    "Ball": "quorate.core.bounds.grid",
    "Box": "quorate.core.bounds.grid",
    "Conjunctions": "quorate.learners.concepts",
    "DecisionLists": "quorate.learners.concepts",
    "Direction": "quorate.learners.concepts.numeric.thresholds",
    "Disjunctions": "quorate.learners.concepts",
    "Interval": "quorate.core.bounds.grid",
    "Intervals": "quorate.learners.concepts",
    "Parities": "quorate.learners.concepts",
    "PointFunctions": "quorate.learners.concepts",
    "Rectangles": "quorate.learners.concepts",
    "Relation": "quorate.core.guarantees",
    "Stumps": "quorate.learners.concepts",
    "Thresholds": "quorate.learners.concepts",
} | value_types()
_DTYPES = ("float64", "int64", "bool")
_TEXT = "text"
_DEEPEST = 32
# What a dictionary may have as keys: names of columns, labels, and None for all others.
_KEYS = (str, int, float, type(None))


def encode(value: Any) -> Any:
    """Return ``value`` as plain data for JSON; refuse what cannot be read back safely.

    >>> encode((1, float("inf")))
    {'kind': 'tuple', 'items': [1, {'kind': 'float', 'value': 'inf'}]}
    >>> encode(print)
    Traceback (most recent call last):
    quorate.exceptions.ParameterError: Expected numbers, text, arrays or a type that model files
    know, got builtin_function_or_method.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else {"kind": "float", "value": repr(value)}
    if isinstance(value, list | range):
        return [encode(item) for item in value]
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [encode(item) for item in value]}
    if isinstance(value, datetime.date):
        return {"kind": "date", "value": value.isoformat()}
    if isinstance(value, dict) and all(map(_is_key, value)):
        return {"kind": "dict", "items": [[key, encode(item)] for key, item in value.items()]}
    if isinstance(value, np.ndarray):
        return _encode_array(value)
    if _is_table(value):
        columns = [[name, encode(value[name].to_pylist())] for name in value.column_names]
        return {"kind": "table", "columns": columns}
    name = type(value).__name__
    if _HOMES.get(name) is not None and type(value) is _known(name):
        if isinstance(value, Enum):
            return {"kind": name, "member": value.name}
        if is_dataclass(value):
            given = {field.name: getattr(value, field.name) for field in fields(value)}
            if name == "Interval":
                given["centre"] = float(given["centre"][0])  # taken as a number, kept as an array
            return {"kind": name, "fields": {key: encode(part) for key, part in given.items()}}
    raise ParameterError(
        f"Expected numbers, text, arrays or a type that model files know, got {name}."
    )


def decode(document: Any) -> Any:
    """Return the value that :func:`encode` stored; refuse everything else.

    >>> decode(encode(np.array([1.5, np.inf])))
    array([1.5, inf])
    >>> decode({"kind": "os.system", "fields": {"command": "true"}})
    Traceback (most recent call last):
    quorate.exceptions.SchemaError: Expected a kind of value that model files know, got 'os.system'.
    """
    return _decode(document, _DEEPEST)


def _decode(document: Any, depth: int) -> Any:
    if depth == 0:
        raise SchemaError(f"Expected values nested at most {_DEEPEST} deep, got more.")
    if document is None or isinstance(document, bool | int | float | str):
        return document
    if isinstance(document, list):
        return [_decode(item, depth - 1) for item in document]
    kind = document.get("kind")
    if kind == "float":
        return _special_float(document.get("value"))
    if kind == "tuple":
        return tuple(_decode(item, depth - 1) for item in _list(document.get("items")))
    if kind == "dict":
        return dict(_pair(item, depth - 1) for item in _list(document.get("items")))
    if kind == "date":
        return _date(document.get("value"))
    if kind == "array":
        return _decode_array(document)
    if kind == "table":
        return _decode_table(document, depth)
    if not (isinstance(kind, str) and kind in _HOMES):
        raise SchemaError(f"Expected a kind of value that model files know, got {kind!r}.")
    return _decode_known(_known(kind), document, depth)


def _is_key(key: Any) -> bool:
    return isinstance(key, _KEYS) and not (isinstance(key, float) and not math.isfinite(key))


def _date(text: Any) -> datetime.date:
    """Return a date, or a datetime if there is a time."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        moment = None
    if moment is None:
        raise SchemaError("Expected a date as ISO 8601 writes it.")
    return moment if "T" in text or " " in text else moment.date()


def _pair(item: Any, depth: int) -> tuple[Any, Any]:
    if not (isinstance(item, list) and len(item) == 2 and _is_key(item[0])):
        raise SchemaError("Expected pairs of a name and a value in a dictionary.")
    return item[0], _decode(item[1], depth)


def _known(name: str) -> Any:
    # The module comes from the table above, never from a file.
    return getattr(importlib.import_module(_HOMES[name]), name)


def _decode_known(kind: Any, document: dict[str, Any], depth: int) -> Any:
    if issubclass(kind, Enum):
        member = document.get("member")
        if not (isinstance(member, str) and member in kind.__members__):
            raise SchemaError(f"Expected a member of {kind.__name__}, got {member!r}.")
        return kind[member]
    given = document.get("fields")
    names = [field.name for field in fields(kind)]
    if not (isinstance(given, dict) and set(given) <= set(names)):
        raise SchemaError(f"Expected fields of {kind.__name__} among {names}.")
    values = {name: _decode(value, depth - 1) for name, value in given.items()}
    try:
        return kind(**values)
    except (TypeError, ValueError, ArithmeticError, AttributeError, QuorateError):
        pass
    raise SchemaError(f"Expected fields that make a {kind.__name__}, got others.")


def _encode_array(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    shape = list(array.shape)
    if array.dtype.kind in "OU" and all(isinstance(item, str) for item in array.ravel()):
        values = [str(item) for item in array.ravel()]
        return {"kind": "array", "dtype": _TEXT, "shape": shape, "values": values}
    if array.dtype.name not in _DTYPES:
        raise ParameterError(f"Expected an array of {_DTYPES} or text, got dtype={array.dtype}.")
    values = [encode(item) for item in array.ravel().tolist()]
    return {"kind": "array", "dtype": array.dtype.name, "shape": shape, "values": values}


def _decode_array(document: dict[str, Any]) -> np.ndarray[Any, Any]:
    shape, dtype = _list(document.get("shape")), document.get("dtype")
    values = [decode_scalar(item) for item in _list(document.get("values"))]
    sizes = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape)
    if not sizes or dtype not in (*_DTYPES, _TEXT) or math.prod(shape) != len(values):
        raise SchemaError("Expected an array with its dtype, shape and as many values.")
    kinds: dict[str, Any] = {"float64": int | float, "int64": int, "bool": bool, _TEXT: str}
    fit = all(
        isinstance(value, kinds[dtype]) and (dtype == "bool" or not isinstance(value, bool))
        for value in values
    )
    if fit and len(shape) <= 32:
        try:
            return np.array(values, dtype=object if dtype == _TEXT else dtype).reshape(shape)
        except (OverflowError, ValueError):
            pass
    raise SchemaError(f"Expected values of dtype {dtype} in an array, got others.")


def _is_table(value: Any) -> bool:
    return type(value).__name__ == "Table" and type(value).__module__.startswith("pyarrow.")


def _decode_table(document: dict[str, Any], depth: int) -> Any:
    import pyarrow as pa

    pairs = [_pair(item, depth - 1) for item in _list(document.get("columns"))]
    names = [name for name, _ in pairs]
    texts = all(isinstance(name, str) for name in names)
    if texts and len(set(names)) == len(names):
        try:
            return pa.table([pa.array(_list(values)) for _, values in pairs], names=names)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass
    raise SchemaError("Expected a table of columns with different names and as many values each.")


def decode_scalar(item: Any) -> Any:
    """Return one number or text of an array.

    >>> decode_scalar({"kind": "float", "value": "-inf"})
    -inf
    """
    if isinstance(item, dict) and item.get("kind") == "float":
        return _special_float(item.get("value"))
    if isinstance(item, bool | int | float | str):
        return item
    raise SchemaError(f"Expected numbers or text in an array, got {type(item).__name__}.")


def _special_float(value: Any) -> float:
    if value not in ("inf", "-inf", "nan"):
        raise SchemaError(f"Expected 'inf', '-inf' or 'nan', got {value!r}.")
    return float(value)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise SchemaError(f"Expected a list, got {type(value).__name__}.")
    return value
