"""Ids of sessions, items, responses, calls and events.

Owns: `make_id`. Driven by the session. Random, so that no two servers make the same.
"""

from __future__ import annotations

import secrets
import string
from typing import Final

__all__ = ["make_id"]

_ALPHABET: Final = string.ascii_letters + string.digits
_LENGTH: Final = 20


def make_id(prefix: str) -> str:
    """A new id, such as ``item_X3…``: the prefix and 20 letters and digits."""
    # hot path: once per event
    number = secrets.randbits(128)
    chars: list[str] = []
    for _ in range(_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        chars.append(_ALPHABET[digit])
    return prefix + "".join(chars)
