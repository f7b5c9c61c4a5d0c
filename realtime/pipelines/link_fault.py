"""What is told of a fault of the link that nobody foresaw, and whose code it came out of.

Owns: `link_fault`. Driven by `pipelines/runtime.py` and `pipelines/takeover.py`. A model, its wire format and its transport may be
the application's own classes; what these raise by mistake is no fault of the provider or of the network. It never decides
what becomes of the session.
"""

from __future__ import annotations

import traceback
from types import FrameType
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
        else f"the model's own code failed: {method} raised {what} (a connection that was lost is told by LinkLost or OSError)"
    )
    fault.__cause__ = cause
    return fault


def _innermost(error: BaseException) -> BaseException:
    """What a task group wraps, the first of it."""
    inner: Any = getattr(error, "exceptions", None)
    return _innermost(inner[0]) if inner else error


def _foreign_method(error: BaseException) -> str | None:
    """The method in which an error was raised, with its class, if the link had called one that is not of this package.

    A class of the application's may inherit ours: what is inherited is ours, what it overrides is its own, whoever calls that.
    """
    frames = [frame for frame, _line in traceback.walk_tb(error.__traceback__)]
    called = next((frame for frame in frames if not _is_in(frame, "realtime.pipelines")), None)
    if called is None or called.f_code.co_name not in _CALLED:
        return None
    receiver = _receiver(called)
    owner = type(receiver)
    if _is_ours(owner.__module__, "realtime"):
        return None
    for frame in frames:
        if not _is_in(frame, "realtime") and _receiver(frame) is receiver:
            code = frame.f_code
            is_method = owner.__module__ != "builtins"
            return f"{owner.__qualname__}.{code.co_name}" if is_method else code.co_qualname
    return None


def _receiver(frame: FrameType) -> object:
    """The object whose method a frame runs; None: it runs none."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


def _is_in(frame: FrameType, package: str) -> bool:
    return _is_ours(frame.f_globals.get("__name__"), package)


def _is_ours(module: object, package: str) -> bool:
    return isinstance(module, str) and (module == package or module.startswith(f"{package}."))
