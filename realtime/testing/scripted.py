"""A provider by script.

Owns: `ScriptedModel` and the steps of its script. Driven by tests; the code under test drives it as a `RealtimeModel`.
It is strict: a wire message of the client's that the script does not expect ends the connection, and `assert_complete`
says what was expected and what came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from realtime.core.capabilities import ModelCapabilities
from realtime.errors import LinkLost, ModelError
from realtime.models.base import RealtimeModel
from realtime.pipelines.clock import Clock
from realtime.testing.memory import MemoryPair
from realtime.transports.websocket import Transport
from realtime.wire.base import WireFormat
from realtime.wire.json_fields import JsonObject, decode_base64, dump_message, parse_message, text_of
from realtime.wire.openai import OpenAIWire

__all__ = ["Close", "Drop", "Expect", "Reply", "ScriptedModel", "Step"]

Messages = Iterable[Mapping[str, Any] | str | bytes]
"""Wire messages: mappings are sent as JSON, strings and bytes as they are (garbage too)."""


@dataclass(frozen=True, slots=True)
class Expect:
    """The client says this next."""

    type: str
    """The `type` of its wire message."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it must hold at least: mappings are compared by what they name, all else as it is."""
    check: Callable[[JsonObject], object] | None = None
    """Called with the message; whatever it raises, or False, is a mismatch."""
    optional: bool = False
    """True: it may be missing; whatever comes instead is held against the next step that expects something."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The server says this."""

    messages: Messages | Callable[[Sequence[JsonObject]], Messages]
    """Wire messages, or a function of all that the client has said so far (audio left out) that gives them."""


@dataclass(frozen=True, slots=True)
class Close:
    """The server closes; the script goes on with the next connection."""

    code: int = 1000
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Drop:
    """The line breaks off, after what was said; the script goes on with the next connection."""


Step = Expect | Reply | Close | Drop


class ScriptedModel(RealtimeModel):
    """A model that follows a script, over an in-memory connection.

    ::

        model = ScriptedModel([
            Reply(session_created()),
            Expect("session.update", {"session": {"instructions": "Be brief."}}),
            Reply(session_updated()),
            Expect("conversation.item.create"),
            Expect("response.create"),
            Reply(lambda said: spoken_reply("resp_1", "item_1", "Hello.", pcm)),
        ])
        async with RealtimeSession(model) as session:
            ...
        model.assert_complete()

    Input audio (`input_audio_buffer.append`) may come at any time, and is counted and kept, unless the script expects it.

    Attributes:
        received: Each wire message of the client's, parsed, but for audio.
        audio: The input audio of all connections together, as bytes.
        connections: How often it was opened.
        pair: The connection now, for faults of the test's own (`pair.stall()`, `pair.delay(0.3)`).
        refuse: Raised by the next `open`, once; for attempts that fail.
    """

    def __init__(
        self,
        script: Iterable[Step],
        *,
        capabilities: ModelCapabilities | None = None,
        make_wire: Callable[[], WireFormat] | None = None,
        name: str = "scripted",
        capacity: int = 64,
        clock: Clock | None = None,
    ) -> None:
        """Write the script.

        Args:
            script: Its steps.
            capabilities: What the model can do.
            make_wire: The wire format; default: OpenAI's.
            name: What messages call it.
            capacity: How many messages may wait on the line each way.
            clock: For delays on the line.
        """
        self.name = name
        self.capabilities = capabilities or ModelCapabilities(model=name)
        self.received: list[JsonObject] = []
        self.audio = bytearray()
        self.connections = 0
        self.pair: MemoryPair | None = None
        self.refuse: list[BaseException] = []
        self._make_wire = make_wire
        self._steps = list(script)
        self._at = 0
        self._capacity = capacity
        self._clock = clock
        self._failure = ""
        self._players: set[asyncio.Task[None]] = set()
        self._moved = asyncio.Event()

    def make_wire(self, *, wall: float | None = None) -> WireFormat:
        """Make the wire format of one connection."""
        return self._make_wire() if self._make_wire is not None else OpenAIWire(wall=wall)

    async def open(self) -> Transport:
        """Connect to the script."""
        if self.refuse:
            raise self.refuse.pop(0)
        self.connections += 1
        self.pair = MemoryPair(
            capacity=self._capacity, max_message_bytes=self.capabilities.max_message_bytes, clock=self._clock
        )
        player = asyncio.get_running_loop().create_task(self._play(self.pair), name="scripted model")
        self._players.add(player)
        player.add_done_callback(self._players.discard)
        return self.pair.client

    async def aclose(self) -> None:
        """End the script's connections."""
        for player in list(self._players):
            player.cancel()
        await asyncio.gather(*self._players, return_exceptions=True)

    @property
    def is_complete(self) -> bool:
        """Whether every step was taken, and nothing else came."""
        return not self._failure and all(_may_miss(step) for step in self._steps[self._at :])

    async def finished(self) -> None:
        """Wait until every step was taken.

        Raises:
            AssertionError: Something else came than the script expects.
        """
        while not self.is_complete:
            if self._failure:
                raise AssertionError(self._failure)
            await self._moved.wait()

    def assert_complete(self) -> None:
        """Check that every step was taken and nothing else came.

        Raises:
            AssertionError: With what was expected, and what came.
        """
        if self._failure:
            raise AssertionError(self._failure)
        left = [step for step in self._steps[self._at :] if not _may_miss(step)]
        if left:
            said = ", ".join(str(message.get("type")) for message in self.received[-8:]) or "nothing"
            raise AssertionError(f"{len(left)} steps left, the next is {left[0]}; the client last said: {said}")

    # -- playing ----------------------------------------------------------------------------------------------------

    async def _play(self, pair: MemoryPair) -> None:
        server = pair.server
        waiting: JsonObject | None = None  # heard, and not yet expected
        try:
            while self._at < len(self._steps):
                step = self._steps[self._at]
                if isinstance(step, Expect):
                    waiting = self._hear(step, waiting or _parse(await server.receive()))
                    continue
                self._take()
                if isinstance(step, Reply):
                    for message in _messages_of(step, self.received):
                        await server.send(message)
                elif isinstance(step, Close):
                    server.close(step.code, step.reason)
                    return
                else:
                    pair.drop(keep=True)
                    return
            while True:  # nothing is expected any more but audio
                extra = waiting or _parse(await server.receive())
                waiting = None
                assert self._is_free_audio(extra, None), f"after the script's end: unexpected {_brief(extra)}"
        except LinkLost:
            return
        except AssertionError as error:
            self._failure = self._failure or str(error)
            self._moved.set()
            server.close(1008, f"script: {error}"[:120])

    def _hear(self, step: Expect, message: JsonObject) -> JsonObject | None:
        """Compare a message of the client's with the step; give it back if the step may be missing and it is another."""
        if self._is_free_audio(message, step):
            return None
        difference = _difference(step, message)
        assert not difference or step.optional, (
            f"step {self._at}: expected {step.type}, got {_brief(message)}: {difference}"
        )
        self._take()
        if difference:
            return message
        self._keep(message)
        return None

    def _is_free_audio(self, message: JsonObject, step: Step | None) -> bool:
        if message.get("type") != "input_audio_buffer.append":
            return False
        if isinstance(step, Expect) and step.type == "input_audio_buffer.append":
            return False
        self._keep(message)
        return True

    def _keep(self, message: JsonObject) -> None:
        if message.get("type") == "input_audio_buffer.append":
            self.audio += _audio_of(message)
        else:
            self.received.append(message)

    def _take(self) -> None:
        self._at += 1
        self._moved.set()
        self._moved = asyncio.Event()


def _may_miss(step: Step) -> bool:
    return isinstance(step, Expect) and step.optional


def _messages_of(step: Reply, received: Sequence[JsonObject]) -> list[str | bytes]:
    messages = step.messages(received) if callable(step.messages) else step.messages
    return [dump_message(message) if isinstance(message, Mapping) else message for message in messages]


def _parse(data: str | bytes) -> JsonObject:
    try:
        return parse_message(data)
    except ModelError as error:
        raise AssertionError(f"the client sent no JSON object: {error.message}") from None


def _audio_of(message: JsonObject) -> bytes:
    pcm = decode_base64(text_of(message, "audio"))
    assert pcm is not None, "an input_audio_buffer.append holds no base64"
    return pcm


def _brief(message: JsonObject) -> str:
    text = dump_message(message)
    return text if len(text) <= 300 else text[:297] + "..."


def _difference(step: Expect, message: JsonObject) -> str:
    """How a message differs from what a step expects; empty if it does not."""
    if message.get("type") != step.type:
        return "another type"
    found = _lacks(step.fields, message, "")
    if found:
        return found
    if step.check is not None:
        try:
            if step.check(message) is False:
                return "the step's check said no"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""


def _lacks(wanted: object, given: object, path: str) -> str:
    if isinstance(wanted, Mapping):
        if not isinstance(given, Mapping):
            return f"{path or 'the message'} is {given!r}"
        for key, value in wanted.items():  # pyright: ignore[reportUnknownVariableType]
            found = _lacks(value, given.get(key), f"{path}.{key}".lstrip("."))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
            if found:
                return found
        return ""
    return "" if wanted == given else f"{path} is {given!r}, not {wanted!r}"
