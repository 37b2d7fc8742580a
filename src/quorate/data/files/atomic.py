"""Files that are written completely or not at all, whatever interrupts the program."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from quorate.exceptions import ParameterError

__all__ = ["check_writable", "write_atomically"]


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Return ``path`` if a file can be written there; checked before a budget is spent.

    >>> check_writable("no such folder/model.json")
    Traceback (most recent call last):
    quorate.exceptions.ParameterError: Expected a folder that can be written, got 'no such folder'.
    """
    target = Path(path)
    with suppress(OSError):
        if target.is_dir():
            raise ParameterError(f"Expected the name of a file, got the folder {str(target)!r}.")
        if target.exists() and not target.is_file():
            # Renaming a file over it would remove the device or the pipe.
            raise ParameterError(
                f"Expected the name of a file, got the device or pipe {str(target)!r}."
            )
        # Permissions do not tell all: a file system may be read-only or full, a name too long.
        part = _part(target)
        part.touch()
        part.unlink()
        return target
    raise ParameterError(f"Expected a folder that can be written, got {str(target.parent)!r}.")


def write_atomically(path: str | os.PathLike[str], text: str | bytes) -> Path:
    """Write ``text`` to a temporary file and rename it: readers see the old or the new file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "a.txt", "whole").read_text()
    'whole'
    """
    target = check_writable(path)
    part = _part(target)
    try:
        with part.open("wb") as file:
            file.write(text.encode() if isinstance(text, str) else text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target.resolve())
    finally:
        part.unlink(missing_ok=True)
    return target


def _part(target: Path) -> Path:
    # Of a link, beside the file that it leads to: the link stays.
    whole = target.resolve()
    return whole.with_name(f".{whole.name}.{os.getpid()}.part")
