"""Whether a library's functions take what they took when this was written.

Owns: `difference`. Pure, and the one who asks whether the names that we import are there at all (`aiortc_names`).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from realtime.tracks import aiortc_names

__all__ = ["difference"]


def difference(expected: Sequence[tuple[type, str, list[str]]]) -> str:
    """What is not as expected, for a log line; empty if all is.

    Args:
        expected: Classes, names of their functions, and the parameters of each.
    """
    if aiortc_names.missing:
        return aiortc_names.missing
    for owner, name, wanted in expected:
        function = getattr(owner, name, None)
        if function is None:
            return f"{owner.__name__}.{name} is gone"
        found = list(inspect.signature(function).parameters)
        if found != wanted:
            return f"{owner.__name__}.{name} takes {found}, not {wanted}"
    return ""
