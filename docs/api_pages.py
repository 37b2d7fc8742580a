"""Write the pages of the API reference: one for the everyday names, one for every room."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import quorate

INDEX = """# API

The names that most people need are in the package itself: `import quorate as qr`. Subpackages hold
the rest: mechanisms, accounting, concept classes and what the papers describe.

## Main names

```{{eval-rst}}
.. currentmodule:: quorate

.. autosummary::
   :toctree: names

{names}
```

## Subpackages

```{{toctree}}
:maxdepth: 1

{rooms}
```
"""


def rooms() -> dict[str, list[str]]:
    """Return the modules of every room; a module at the top is a room of its own."""
    found: dict[str, list[str]] = {}
    for info in pkgutil.walk_packages(quorate.__path__, "quorate."):
        room = info.name.split(".")[1]
        if not room.startswith("_"):
            found.setdefault(room, []).append(info.name)
    return found


def room_page(room: str, modules: list[str]) -> str:
    """Return the page of one room, with every public name of every module."""
    lines = [f"# quorate.{room}", ""]
    front = importlib.import_module(f"quorate.{room}")
    lines += ["```{eval-rst}", f".. automodule:: {front.__name__}"]
    # A front door shows names that live in its modules, where they are described once.
    lines += ["   :no-members:"] if hasattr(front, "__path__") else ["   :members:"]
    lines += ["```", ""]
    for name in modules:
        module = importlib.import_module(name)
        if hasattr(module, "__path__") or name == front.__name__:
            continue
        lines += [f"## {name}", "", "```{eval-rst}", f".. automodule:: {name}", "   :members:"]
        lines += ["```", ""]
    return "\n".join(lines)


def write(folder: Path) -> None:
    """Write all pages into ``folder``; what is there already and equal stays as it is."""
    folder.mkdir(exist_ok=True)
    names = "\n".join(f"   {name}" for name in quorate.__all__)
    found = rooms()
    pages = {room: room_page(room, modules) for room, modules in found.items()}
    pages["index"] = INDEX.format(names=names, rooms="\n".join(found))
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
