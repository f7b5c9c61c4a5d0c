"""What a page that comes back has to be told: the conversation so far, and what waits for its answer.

Owns: `History`: the approvals that are open, and the `history` message. Driven by a call's events and by whoever comes back. It only reads.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

from realtime.core.events import ApprovalRequested, SessionEvent, ToolFinished
from realtime.session import RealtimeSession
from realtime.web.events import event_to_dict, message_to_dict

__all__ = ["History"]

_MOST_MESSAGES = 200
_MOST_CHARS = 400_000
"""Of all of them together; a page is told the newest that fit."""
_MOST_APPROVALS = 100


class History:
    """The history of one call, for its page."""

    def __init__(self, session: RealtimeSession) -> None:
        """Take the session."""
        self._session = session
        self._approvals: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def take(self, event: SessionEvent) -> None:
        """Follow an event."""
        if isinstance(event, ApprovalRequested):
            told = event_to_dict(event, at=0.0) or {}
            self._approvals[event.call_id] = {name: told[name] for name in ("call_id", "name", "arguments")}
            while len(self._approvals) > _MOST_APPROVALS:
                self._approvals.popitem(last=False)
        elif isinstance(event, ToolFinished):
            self.answered(event.call_id)

    def answered(self, call_id: str) -> None:
        """An approval was given or refused."""
        self._approvals.pop(call_id, None)

    def to_dict(self) -> dict[str, Any]:
        """The message `history` (docs/web-protocol.md)."""
        said = [message_to_dict(each) for each in self._session.all_messages() if not each.is_frame]
        known = {each["id"] for each in said}
        said += [
            message_to_dict(each) | {"pending": True}
            for each in self._session.pending
            if not each.is_frame and each.message_id not in known
        ]
        chosen: list[dict[str, Any]] = []
        room = _MOST_CHARS
        for each in reversed(said[-_MOST_MESSAGES:]):
            room -= len(json.dumps(each, ensure_ascii=False))  # arguments of tools included
            if room < 0:
                break
            chosen.append(each)
        return {"type": "history", "messages": chosen[::-1], "approvals": list(self._approvals.values())}
