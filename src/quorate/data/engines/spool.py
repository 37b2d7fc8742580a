"""A private folder for records on disk, readable by its owner only and removed with its process.

A spool belongs to the process that holds a lock on a file in it. The operating system releases the
lock when that process ends, for whatever reason, so the next process can recognise and remove
folders without an owner. The contents of such a folder are never read.

A spool that is to be reused has a name. It is trusted only if it belongs to this user alone, and if
it was completed for exactly the same source and columns, according to a manifest that is written
last.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from quorate.exceptions import SpoolError

__all__ = ["Spool", "disk_errors"]

_LOCK, _MANIFEST, _PREFIX = "owner.lock", "manifest.json", "spool-"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def disk_errors(spool: Spool) -> Iterator[None]:
    """Turn disk errors into a clear exception, and remove partial files."""
    try:
        yield
    except OSError as error:
        spool.remove()
        full = error.errno in _FULL
    else:
        return
    what = "There is no space left" if full else "The records could not be written"
    raise SpoolError(
        f"{what} in {str(spool.folder.parent)!r}; nothing was kept there. Choose another place "
        "with spool=, or set TMPDIR."
    )


class Spool:
    """A folder that only its owner can read, and that is deleted with this object.

    Parameters
    ----------
    folder : path, optional
        A folder that is kept and reused. By default a new folder is created in the temporary folder
        of the machine.

    Examples
    --------
    >>> spool = Spool()
    >>> oct(spool.folder.stat().st_mode & 0o777)
    '0o700'
    >>> spool.remove()
    >>> spool.folder.exists()
    False
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.keeps = folder is not None
        base = _private(_base() if folder is None else Path(folder))
        if folder is None:
            with _locked(base / "spools.lock"):
                _sweep(base)
                self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
                self._lock = _hold(self.folder / _LOCK)
        else:
            self.folder = base
            self._lock = _hold(self.folder / _LOCK)
        if self._lock is None:
            raise SpoolError(f"Another process uses the spool {str(self.folder)!r}.")
        self._gone = weakref.finalize(self, _end, self.folder, self._lock, self.keeps, os.getpid())

    def path(self, name: str) -> Path:
        """Return the path of a file in the spool."""
        return self.folder / name

    def is_complete(self, source: dict[str, Any]) -> bool:
        """Whether an earlier run finished this spool for the same source."""
        manifest = None
        with suppress(OSError, ValueError):
            manifest = json.loads(self.path(_MANIFEST).read_text())
        if not isinstance(manifest, dict) or manifest.get("source") != _plain(source):
            return False
        files = manifest.get("files")
        return isinstance(files, dict) and files == self._files()

    def complete(self, source: dict[str, Any]) -> None:
        """Record, as the last step, that the spool is complete."""
        text = json.dumps({"source": source, "files": self._files()})
        unfinished = self.path(_MANIFEST + ".new")
        with unfinished.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.path(_MANIFEST))

    def clear(self) -> None:
        """Remove every file of an earlier run; the manifest first."""
        self.path(_MANIFEST).unlink(missing_ok=True)
        for file in self._own_files():
            file.unlink()

    def remove(self) -> None:
        """Remove the folder; its contents cannot be used afterwards."""
        if self.keeps:
            self.clear()
        self._gone()

    def _own_files(self) -> list[Path]:
        return [f for f in self.folder.iterdir() if f.suffix in (".raw", ".npy", ".new")]

    def _files(self) -> dict[str, int]:
        return {f.name: f.stat().st_size for f in self._own_files() if f.suffix != ".new"}


def _plain(source: dict[str, Any]) -> Any:
    return json.loads(json.dumps(source))


def _base() -> Path:
    return Path(tempfile.gettempdir()) / f"quorate-{os.getuid()}"


def _private(folder: Path) -> Path:
    """Return a folder that belongs to this user alone; refuse one that does not."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=False)
    about = folder.lstat()
    if folder.is_symlink() or not folder.is_dir() or about.st_uid != os.getuid():
        raise SpoolError(f"Expected {str(folder)!r} to be a folder that belongs to this user.")
    if about.st_mode & 0o077:
        raise SpoolError(
            f"Others may look into {str(folder)!r}: records are only put where nobody else can "
            "read them. Use a new folder, or chmod 700."
        )
    return folder


def _hold(path: Path) -> int | None:
    """Return an open file with an exclusive lock, or None if another process has the lock."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _sweep(base: Path) -> None:
    """Remove the folders of processes that have ended; their contents are not read."""
    for folder in base.glob(f"{_PREFIX}*"):
        lock = None
        with suppress(OSError):
            lock = _hold(folder / _LOCK)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _end(folder: Path, lock: int, keeps: bool, process: int) -> None:  # noqa: FBT001 - for finalize
    if process != os.getpid():
        return  # a fork is not the owner
    if not keeps:
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        os.close(lock)
