"""The closed zone: code that reads rows reveals nothing about them if it fails.

Readers accept every value and mechanisms are planned, so nothing unexpected should happen once rows
are read. If it does, the exception of a library may quote a cell in its text, in its cause, or in
its stack frames. So all code that reads rows runs in a closed zone. Errors of Quorate refer to
parameters and types only, and are raised without their cause. All other errors are replaced by one
fixed sentence.

Interruptions such as Ctrl-C are raised unchanged, because they say nothing about a cell.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from quorate.exceptions import QuorateError, WithheldError

__all__ = ["WITHHELD", "closed", "quietly"]

P = ParamSpec("P")
T = TypeVar("T")

WITHHELD = (
    "A computation on records raised an exception; its text is withheld because it may quote "
    "records. Try it on made-up users to see it."
)


def closed(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function that reads rows, so that it runs in the closed zone.

    >>> @closed
    ... def age(row):
    ...     return int(row["age"])
    >>> age({"age": "31337 years"})
    Traceback (most recent call last):
        ...
    quorate.exceptions.WithheldError: A computation on records raised an exception; its text is
    withheld because it may quote records. Try it on made-up users to see it.
    """

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> T:
        raised: Exception
        try:
            # What NumPy does about an underflow is set by the caller, and whether there is one
            # follows from records: what stops or warns there would tell of them.
            with np.errstate(all="ignore"):
                return function(*args, **kwargs)
        except QuorateError as error:
            raised = error
        except TypeError as error:
            # Wrong arguments are refused before a line of the function runs.
            begun = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            raised = WithheldError(WITHHELD) if begun else error
        except Exception:
            raised = WithheldError(WITHHELD)
        # Here no handler is active any more, and no context leads from the error to the records.
        raised.__cause__ = raised.__context__ = None
        # Nor do the frames in which rows were read, whose variables some loggers write down.
        raise raised.with_traceback(None)

    return inside


def quietly(work: Callable[[], T]) -> T | None:
    """Return the result of ``work``, or None if a library raises; its message may quote a cell.

    Errors of Quorate itself are raised as usual.

    >>> quietly(lambda: int("31337 years")) is None
    True
    """
    try:
        return work()
    except QuorateError:
        raise
    except Exception:
        return None
