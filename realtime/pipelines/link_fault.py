"""What is told of a fault of the link that nobody foresaw, and whose code it came out of.

Owns: `link_fault`. Driven by `pipelines/runtime.py` and `pipelines/takeover.py`. A model, its wire format and its transport may be
the application's own classes; what these raise by mistake is no fault of the provider or of the network. It never decides
what becomes of the session.
"""

from __future__ import annotations

import traceback
from types import CodeType, FrameType
from typing import Any

from realtime.errors import RealtimeError

__all__ = ["link_fault"]

_CALLED = frozenset({
    "aclose", "decode", "encode", "is_clear", "make_wire", "open", "receive", "resume", "resumption", "send", "send_at_once",
})  # fmt: skip
"""What the link calls of a model, a wire format and a transport."""


def link_fault(error: BaseException) -> RealtimeError:
    """The error that a session ends with; the fault itself is its cause.

    Args:
        error: What came out of the link, in a group or not, with its traceback.
    """
    cause = _innermost(error)
    what = f"{type(cause).__name__}: {cause}"
    method = _foreign_method(cause)
    fault = RealtimeError(
        f"the link to the model failed: {what}"
        if method is None
        else f"the model's own code failed: {method} raised {what}; the provider and the connection have no part in it"
    )
    fault.__cause__ = cause
    return fault


def _innermost(error: BaseException) -> BaseException:
    """What a task group wraps, the first of it."""
    inner: Any = getattr(error, "exceptions", None)
    return _innermost(inner[0]) if inner else error


def _foreign_method(error: BaseException) -> str | None:
    """What the link had called as an error was raised, with its class, if that is not one of this package."""
    for frame, _line in traceback.walk_tb(error.__traceback__):
        if _is_ours(frame.f_globals.get("__name__"), "realtime.pipelines"):
            continue
        code = frame.f_code
        owner = type(_receiver(frame, code))
        is_foreign = code.co_name in _CALLED and not _is_ours(owner.__module__, "realtime")
        return f"{owner.__qualname__}.{code.co_name}" if is_foreign else None
    return None


def _receiver(frame: FrameType, code: CodeType) -> object:
    """The object whose method a frame runs."""
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


def _is_ours(module: object, package: str) -> bool:
    return isinstance(module, str) and (module == package or module.startswith(f"{package}."))
