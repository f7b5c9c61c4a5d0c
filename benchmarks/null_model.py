"""A model that takes everything, confirms it, and speaks when it is told to: what a session costs without an LLM.

The session behaves as with a provider of OpenAI's protocol: the same wire messages are written and read, sound as base64, pictures as data
URLs. Only the socket is missing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

from realtime.errors import LinkLost
from realtime.models.base import RealtimeModel
from realtime.testing import openai_script
from realtime.wire.base import WireFormat
from realtime.wire.openai import OpenAIWire

APPEND = '{"type":"input_audio_buffer.append"'


class NullModel(RealtimeModel):
    """Takes sound and pictures.

    Attributes:
        heard: Called with the time and the wire message of each piece of sound; set it before the session starts.
        pictures: When each picture arrived.
        audio_messages: How many pieces of sound arrived.
    """

    def __init__(self, heard: Callable[[float, str], None] | None = None) -> None:
        self.name = "null"
        self.heard = heard
        self.pictures: list[float] = []
        self.audio_messages = 0
        self._line: asyncio.Queue[str | None] = asyncio.Queue()  # noqa: TID251  (bounded by what the benchmark says)
        self._replies = 0
        self._last: str | None = None

    def make_wire(self, *, wall: float | None = None) -> WireFormat:
        return OpenAIWire(wall=wall)

    async def open(self) -> NullModel:
        self._say(openai_script.session_created())
        return self

    async def aclose(self) -> None:
        self._line.put_nowait(None)

    # -- as a transport ---------------------------------------------------------------------------------------------

    is_clear = True

    async def send(self, data: str | bytes) -> None:
        self.send_at_once(data)

    def send_at_once(self, data: str | bytes) -> None:
        text = data if isinstance(data, str) else data.decode()
        if text.startswith(APPEND):
            self.audio_messages += 1
            if self.heard is not None:
                self.heard(time.monotonic(), text)
            return
        has_picture = '"input_image"' in text[:400]
        message = json.loads(without_data(text) if has_picture else text)
        if message["type"] == "session.update":
            self._say(openai_script.session_updated())
        elif message["type"] == "conversation.item.create":
            if has_picture:
                self.pictures.append(time.monotonic())
            item = dict(message["item"], content=[])
            self._say(openai_script.item_created(item, self._last))
            self._last = item["id"]

    async def receive(self) -> str:
        said = await self._line.get()
        if said is None:
            raise LinkLost("it is over")
        return said

    # -- what the benchmark does ------------------------------------------------------------------------------------

    def begin_reply(self) -> Callable[[bytes], None]:
        """Begin a reply; what is given adds sound to it (PCM16 mono, 24 kHz)."""
        self._replies += 1
        name = f"reply_{self._replies}"
        events: list[Any] = openai_script.spoken_reply(f"resp_{name}", name, "Yes.", bytes(2), done=False)
        sound = events.pop()
        self._say(events)

        def speak(pcm: bytes) -> None:
            for at in range(0, len(pcm), 9_600):
                self._line.put_nowait(delta_of(sound, pcm[at : at + 9_600]))

        return speak

    def reply(self, pcm: bytes) -> None:
        """Say something, whole."""
        self._replies += 1
        name = f"reply_{self._replies}"
        self._say(openai_script.spoken_reply(f"resp_{name}", name, "Yes.", pcm))

    def _say(self, events: list[Any]) -> None:
        for event in events:
            self._line.put_nowait(json.dumps(event))


def without_data(text: str) -> str:
    """A message without the data of its picture: reading that is the provider's work."""
    begin = text.index(";base64,")
    return text[:begin] + text[text.index('"', begin) :]


def delta_of(template: dict[str, Any], pcm: bytes) -> str:
    """A piece of sound as a wire message; the same sound is written once."""
    known = _written.get(pcm)
    if known is None:
        events: list[Any] = openai_script.spoken_reply("r", "i", "", pcm, chunk_bytes=len(pcm), done=False)
        known = _written[pcm] = events[-1]["delta"]
    return json.dumps(dict(template, delta=known))


_written: dict[bytes, str] = {}
