"""Dates as days: dates given by the caller, and dates in a text column.

A day is a number, days since the beginning of 1970; times are fractions of days, and times with a
zone are converted to UTC. Text is read by one rule, ISO 8601, whatever else a column contains.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data import frames
from quorate.data.columns import kinds

__all__ = ["days_of", "days_written", "written"]

Floats = NDArray[np.float64]

_EPOCH = datetime.datetime(1970, 1, 1)  # zones are taken away, in UTC
_DAY = datetime.timedelta(days=1)
# Of a date as people and machines write it, ISO 8601: a day, perhaps a time, perhaps UTC.
_ISO = (
    r"^\s*(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"
    r"(?:[T ](?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.\d+)?)?Z?)?\s*$"
)


def days_of(moment: Any) -> float | None:
    """Return the days since 1970 of a date, a time or ISO text; None for anything else.

    >>> days_of("1970-01-02"), days_of(datetime.date(1970, 1, 3)), days_of(5), days_of("soon")
    (1.0, 2.0, None, None)
    """
    if isinstance(moment, np.datetime64):
        moment = moment.astype("M8[us]").item()
    if isinstance(moment, str):
        try:
            moment = datetime.datetime.fromisoformat(moment)
        except ValueError:
            return None
    if isinstance(moment, datetime.datetime):
        if moment.tzinfo is not None:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        return float((moment - _EPOCH) / _DAY)
    if isinstance(moment, datetime.date):
        return float(moment.toordinal() - _EPOCH.toordinal())
    return None


def written(days: float) -> str:
    """Return a day as text, with the time if it is not midnight.

    >>> written(1.0), written(1.25)
    ('1970-01-02', '1970-01-02 06:00:00')
    """
    moment = _EPOCH + days * _DAY
    return str(moment.date() if moment.time() == datetime.time() else moment)


def days_written(column: Any) -> Floats:
    """Return the days since 1970 of an Arrow array of texts; NaN for other texts.

    >>> import pyarrow as pa
    >>> days_written(pa.array(["1970-01-03", "1970-02-31", "yesterday", None]))
    array([ 2., nan, nan, nan])
    """
    import pyarrow.compute as pc

    texts = kinds.as_octets(column)
    found = pc.extract_regex(texts, pattern=_ISO)
    parts = {
        name: frames.floats(_whole(pc.struct_field(found, name)))
        for name in ("year", "month", "day", "hour", "minute", "second")
    }
    read = found.is_valid().to_numpy(zero_copy_only=False)
    month, day = parts["month"], parts["day"]
    clock = [np.nan_to_num(parts[name]) for name in ("hour", "minute", "second")]
    read &= (month >= 1) & (month <= 12) & (day >= 1)
    read &= (clock[0] <= 23) & (clock[1] <= 59) & (clock[2] <= 59)
    months = np.where(read, (parts["year"] - 1970) * 12 + month - 1, 0).astype("M8[M]")
    start = months.astype("M8[D]")
    length = ((months + 1).astype("M8[D]") - start).astype(np.float64)
    read &= day <= length
    time = clock[0] / 24 + clock[1] / 1440 + clock[2] / 86_400
    return np.where(read, start.astype(np.float64) + day - 1 + time, np.nan)


def _whole(digits: Any) -> Any:
    """Return digits as integers; null for empty text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    empty = pc.equal(digits.cast(pa.string()), "")
    return pc.if_else(empty, None, digits.cast(pa.string())).cast(pa.int64())
