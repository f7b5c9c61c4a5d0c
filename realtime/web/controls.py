"""What a page asks of its call, by websocket or data channel alike.

Owns: `Controls`: the table of control messages and their checks. Driven by `realtime.web.call`. A message that is none, or
cannot be done, is told as an error and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from realtime.pipelines.clock import Clock
from realtime.web.downloads import Downloads
from realtime.web.errors import CallRefused, RefusalCode
from realtime.web.guard import Bucket
from realtime.web.history import History
from realtime.web.inspector import InspectedCall, Inspector
from realtime.web.options import WebLimits
from realtime.web.sender_hints import SenderHints

__all__ = ["ControlledCall", "Controls"]

_RATE_SECONDS = 10
_SIZE_OF_ONE = 4_096
"""A longer message counts as several: reading it takes as long."""
_EXCESS_SECONDS = 60
"""Of messages beyond the rate, at the rate once more, before they are a flood."""


class ControlledCall(InspectedCall, Protocol):
    """What the controls need of their call (`realtime.web.call.Call`)."""

    downloads: Downloads
    """Its files."""
    history: History
    """What a page that comes back is told."""
    hints: SenderHints
    """What its senders are told."""
    inspector: Inspector
    """Its inspector."""

    def spawn(self, work: Coroutine[Any, Any, None], /) -> None:
        """Run something that ends with the call."""
        ...

    def touch(self) -> None:
        """Somebody has said or done something."""
        ...

    def played(self, message: Mapping[str, Any], /) -> None:
        """The page says how far it has played the reply."""
        ...

    def tell_error(self, code: RefusalCode, message: str) -> None:
        """Tell of something that did not work."""
        ...


class Controls:
    """The controls of one call."""

    def __init__(self, call: ControlledCall, limits: WebLimits, clock: Clock) -> None:
        """Take the call."""
        self._call = call
        self._limits = limits
        self._clock = clock
        self._bucket = Bucket(limits.messages_per_second, _RATE_SECONDS, clock.now())
        self._excess = Bucket(limits.messages_per_second, _EXCESS_SECONDS, clock.now())
        self.is_flooded = False
        """Whether messages keep coming at more than twice the rate, whatever was told."""
        self._told_rate = False
        self._table: dict[str, Callable[[dict[str, Any]], Coroutine[Any, Any, None]]] = {
            "text": self._text,
            "interrupt": self._interrupt,
            "push_to_talk": self._push_to_talk,
            "muted": self._muted,
            "look": self._look,
            "approve": self._approve,
            "inspect": self._inspect,
            "download": self._download,
        }

    def admit(self, size: int) -> bool:
        """Count a message of so many characters, before anything of it is read; False if there are too many, which is told once."""
        now = self._clock.now()
        if self._bucket.take(now, 1 + size // _SIZE_OF_ONE):
            self.is_flooded = self._told_rate = False
            return True
        self.is_flooded = not self._excess.take(now)
        if not self._told_rate:
            self._told_rate = True
            self._call.tell_error("rate", "too many messages; some are left out")
        return False

    def perform(self, message: dict[str, Any]) -> None:
        """Do what a message asks for, soon. Messages of one kind keep their order."""
        kind = message.get("type")
        if kind == "played":
            self._call.played(message)
            return
        action = self._table.get(kind) if isinstance(kind, str) else None
        if action is None:
            self._call.tell_error("bad_message", f"unknown message type {kind[:40] if isinstance(kind, str) else ''!r}")
            return
        if not self._call.over:
            self._call.spawn(action(message))

    async def _text(self, message: dict[str, Any]) -> None:
        text = message.get("text")
        if not isinstance(text, str) or not text.strip():
            raise CallRefused("bad_message", "text must be words")
        if len(text) > self._limits.max_text_chars:
            raise CallRefused("too_large", f"text may have at most {self._limits.max_text_chars} characters")
        self._call.touch()
        await self._call.session.send(text.encode("utf-8", "replace").decode())

    async def _interrupt(self, message: dict[str, Any]) -> None:
        self._call.touch()
        await self._call.session.interrupt()

    async def _push_to_talk(self, message: dict[str, Any]) -> None:
        """Pressed: what is heard from now on is the turn. Let go: it is over. Only where no VAD decides."""
        session = self._call.session
        self._call.touch()
        self._call.hints.speaking(on=bool(message.get("on")))
        if session.settings.turn_detection.mode != "manual":
            return
        if message.get("on"):
            await session.interrupt()
            if session.capabilities.supports_audio_clearing:
                await session.clear_audio()
        else:
            await session.commit_audio()
            await session.create_response()

    async def _muted(self, message: dict[str, Any]) -> None:
        """The page sends silence; nothing is to be done."""

    async def _look(self, message: dict[str, Any]) -> None:
        source = message.get("source")
        await self._call.session.look(source if isinstance(source, str) else None)

    async def _approve(self, message: dict[str, Any]) -> None:
        call_id = str(message.get("call_id"))
        await self._call.session.approve(call_id, message.get("ok") is True)
        self._call.history.answered(call_id)

    async def _inspect(self, message: dict[str, Any]) -> None:
        self._call.inspector.on = message.get("on") is True
        await self._call.inspector.run()

    async def _download(self, message: dict[str, Any]) -> None:
        self._call.tell(
            {
                "type": "file",
                "files": self._call.downloads.listed(self._call.path),
            }
        )
