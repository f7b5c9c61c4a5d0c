"""Public names that are loaded when they are asked for (PEP 562), so that importing a package loads none of its rooms.

Owns: `lazy_names`. Driven by the packages' `__init__`. Standard library only, a leaf beside `errors` and `pcm`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`.

    Args:
        package: Its name.
        homes: The module that each of its names lives in: a whole name, or one within the package with a dot before it.

    Returns:
        A function that loads the module of a name and remembers the name, and one that lists all names, loaded or not.
    """

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home, package), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names
