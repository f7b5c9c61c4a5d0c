"""What the user of a call may take home: the context and the recording.

Owns: `Downloads` and `Download`. Driven by a call, by `files`, and, when the call is over, by `calls`, which keeps them for the grace
time: a recording is whole only then. Reads only; a recording is the session's own.
"""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from realtime.chat.context import ChatContext
from realtime.chat.messages import AgentHandoff, ChatMessage
from realtime.session import RealtimeSession
from realtime.web.errors import CallRefused
from realtime.web.reading import read_pieces, run_off_loop, size_of

__all__ = ["Download", "Downloads"]

_CONTEXT = "context.json"
_RECORDING = "recording.rec"


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """One file, about to be sent."""

    pieces: AsyncIterator[bytes]
    """Its content."""
    size: int
    """In bytes, all pieces together."""
    media_type: str
    """For `Content-Type`."""


class Downloads:
    """The files of one call."""

    def __init__(self, session: RealtimeSession, recording: Path | None) -> None:
        """Take the session, and where its recording goes; None: it is not recorded."""
        self._session: RealtimeSession | None = session
        self._recording = recording
        self._last: tuple[Sequence[ChatMessage], Sequence[AgentHandoff]] = ((), ())

    def begin(self) -> None:
        """Begin the recording, before the session begins."""
        if self._recording is not None and self._session is not None:
            self._session.record(self._recording)

    def end(self) -> None:
        """The session has ended: what it said last is kept, the session is not."""
        self._last = self._said()
        self._session = None

    @property
    def names(self) -> list[str]:
        """What can be downloaded now."""
        return [_CONTEXT] if self._recording is None else [_CONTEXT, _RECORDING]

    def listed(self, path: str) -> list[dict[str, str]]:
        """Names and addresses, below a path."""
        return [{"name": name, "url": f"{path}/{name}"} for name in self.names]

    def _said(self) -> tuple[Sequence[ChatMessage], Sequence[AgentHandoff]]:
        if self._session is None:
            return self._last
        context = self._session.context
        return context.messages(), list(context.handoffs())

    async def read(self, name: str) -> Download:
        """A file; nothing of it is made or read on the loop, and a recording never is in memory as a whole.

        Raises:
            CallRefused: There is none of this name.
        """
        if name == _CONTEXT:
            content = await run_off_loop(_context_json, *self._said())
            return Download(pieces=_whole(content), size=len(content), media_type="application/json")
        size = await size_of(self._recording) if name == _RECORDING and self._recording is not None else None
        if size is None or self._recording is None:
            raise CallRefused("gone", "there is no such file")
        return Download(pieces=read_pieces(self._recording, size), size=size, media_type="application/octet-stream")


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _context_json(messages: Sequence[ChatMessage], handoffs: Sequence[AgentHandoff]) -> bytes:
    """The context, encoded piece by piece: one call for all of it would keep the loop waiting for the interpreter."""
    written = io.BytesIO()
    with io.TextIOWrapper(written, encoding="utf-8", errors="replace", write_through=True) as text:
        json.dump(ChatContext(list(messages), list(handoffs)).to_dict(), text, ensure_ascii=False, indent=1)
        text.flush()
        return written.getvalue()
