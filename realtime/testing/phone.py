"""The far end of a telephone call's media stream, by the hand of a test.

Owns: `ScriptedPhone`, which speaks as Twilio's Media Streams do: it buffers what it is sent and plays it when the test says so.
Driven by a test, over any websocket. It keeps no time: a call of an hour takes as long as its messages.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

from realtime.media import g711
from realtime.media.audio import PcmConverter
from realtime.pipelines.telephony import CallWebSocket
from realtime.wire.json_fields import decode_base64, encode_base64

__all__ = ["ScriptedPhone"]

_RATE_HZ = 8_000
_FRAME_BYTES = 160


class ScriptedPhone:
    """A caller with a telephone, as the application's websocket sees it.

    ::

        async with websockets.connect(url) as websocket:
            phone = ScriptedPhone(websocket)
            await phone.start()
            await phone.say(pcm, rate_hz=24_000)
            await phone.play(500)          # hears 500 ms of the reply; the marks behind it go back
            await phone.press("5")
            await phone.hang_up()

    Attributes:
        stream_id: The stream's id.
        heard: What was played so far, mu-law.
        cleared: How often the application had it throw its buffer away.
        received: Messages that came, but for sound.
    """

    def __init__(
        self,
        websocket: CallWebSocket,
        *,
        stream_id: str = "MZ0",
        call_id: str = "CA0",
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        """Of a websocket that is open; nothing is said before `start`."""
        self.stream_id = stream_id
        self.heard = bytearray()
        self.cleared = 0
        self.received: list[dict[str, Any]] = []
        self._call_id = call_id
        self._parameters = dict(parameters or {})
        self._websocket = websocket
        self._buffer: deque[bytes | str] = deque()
        self._buffered = 0
        self._sequence = 0
        self._chunk = 0
        self._said_bytes = 0

    @property
    def buffered_ms(self) -> int:
        """Sound that was received and not played."""
        return self._buffered * 1000 // _RATE_HZ

    # -- what the caller does -----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin the stream."""
        await self._websocket.send(json.dumps({"event": "connected", "protocol": "Call", "version": "1.0.0"}))
        await self._send(
            "start",
            start={
                "streamSid": self.stream_id,
                "callSid": self._call_id,
                "accountSid": "AC0",
                "tracks": ["inbound"],
                "customParameters": self._parameters,
                "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": _RATE_HZ, "channels": 1},
            },
        )

    async def say(self, pcm: bytes, *, rate_hz: int = _RATE_HZ) -> None:
        """Say something, in messages of 20 ms, all at once.

        Args:
            pcm: PCM16 mono.
            rate_hz: Its rate.
        """
        converter = PcmConverter(rate_hz, _RATE_HZ)
        sound = g711.encode(converter.convert(pcm) + converter.flush())
        for begin in range(0, len(sound), _FRAME_BYTES):
            await self.say_coded(sound[begin : begin + _FRAME_BYTES])

    async def say_coded(self, payload: bytes) -> None:
        """One message of mu-law."""
        self._chunk += 1
        media = {
            "track": "inbound",
            "chunk": str(self._chunk),
            "timestamp": str(self._said_bytes * 1000 // _RATE_HZ),
            "payload": encode_base64(payload),
        }
        self._said_bytes += len(payload)
        await self._send("media", media=media)

    async def press(self, digit: str) -> None:
        """Press a key."""
        await self._send("dtmf", dtmf={"track": "inbound_track", "digit": digit})

    async def hang_up(self) -> None:
        """End the stream; the websocket stays open."""
        await self._send("stop", stop={"accountSid": "AC0", "callSid": self._call_id})

    async def send_raw(self, message: str | Mapping[str, Any]) -> None:
        """Send something else."""
        await self._websocket.send(message if isinstance(message, str) else json.dumps(message))

    # -- what the caller hears ----------------------------------------------------------------------------------------

    async def play(self, ms: int) -> None:
        """Hear so much of what is sent, waiting for it and for the mark behind it; the marks go back."""
        wanted = ms * _RATE_HZ // 1000
        while wanted > 0:
            while not self._buffer:
                await self.receive()
            first = self._buffer.popleft()
            if isinstance(first, str):
                await self._pass(first)
                continue
            taken, rest = first[:wanted], first[wanted:]
            if rest:
                self._buffer.appendleft(rest)
            self._buffered -= len(taken)
            self.heard += taken
            wanted -= len(taken)
        if not self._buffer:
            await self.receive()
        while self._buffer and isinstance(self._buffer[0], str):
            await self._pass(str(self._buffer.popleft()))

    async def receive(self) -> dict[str, Any]:
        """Take the next message of the application's, waiting for it."""
        message: dict[str, Any] = json.loads(await self._websocket.recv())
        match message.get("event"):
            case "media":
                payload = decode_base64(message["media"]["payload"]) or b""
                self._buffer.append(payload)
                self._buffered += len(payload)
                return message
            case "mark":
                self._buffer.append(message["mark"]["name"])
                if self._buffered == 0:
                    await self._pass_all()
            case "clear":
                self.cleared += 1
                self._buffered = 0
                await self._pass_all()
            case _:
                pass
        self.received.append(message)
        return message

    async def _pass_all(self) -> None:
        """Send back every mark of the buffer, and let the rest of it go."""
        marks = [name for name in self._buffer if isinstance(name, str)]
        self._buffer.clear()
        for name in marks:
            await self._pass(name)

    async def _pass(self, name: str) -> None:
        await self._send("mark", mark={"name": name})

    async def _send(self, event: str, **more: Any) -> None:
        self._sequence += 1
        message = {"event": event, "sequenceNumber": str(self._sequence), "streamSid": self.stream_id, **more}
        await self._websocket.send(json.dumps(message))
