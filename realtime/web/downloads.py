"""What the user of a call may take home: the context and the recording.

Owns: `Downloads`. Driven by a call and by `files`. Reads only; a recording is the session's own.
"""

from __future__ import annotations

import json
from pathlib import Path

from realtime.session import RealtimeSession
from realtime.web.errors import CallRefused
from realtime.web.reading import read_off_loop

__all__ = ["Downloads"]

_CONTEXT = "context.json"
_RECORDING = "recording.rec"


class Downloads:
    """The files of one call."""

    def __init__(self, session: RealtimeSession, recording: Path | None) -> None:
        """Take the session, and where its recording goes; None: it is not recorded."""
        self._session = session
        self._recording = recording

    def begin(self) -> None:
        """Begin the recording, before the session begins."""
        if self._recording is not None:
            self._session.record(self._recording)

    @property
    def names(self) -> list[str]:
        """What can be downloaded now."""
        return [_CONTEXT] if self._recording is None else [_CONTEXT, _RECORDING]

    async def read(self, name: str) -> tuple[bytes, str]:
        """A file's bytes and media type.

        Raises:
            CallRefused: There is none of this name.
        """
        if name == _CONTEXT:
            text = json.dumps(self._session.context.to_dict(), ensure_ascii=False, indent=1)
            return text.encode("utf-8", "replace"), "application/json"
        content = await read_off_loop(self._recording) if name == _RECORDING and self._recording is not None else None
        if content is None:
            raise CallRefused("gone", "there is no such file")
        return content, "application/octet-stream"
