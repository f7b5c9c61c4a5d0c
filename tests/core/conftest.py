"""A rig that feeds the machine by hand: no loop, no clock, no socket."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage, ImageContent
from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.capabilities import ModelCapabilities
from realtime.core.machine import SessionMachine
from realtime.core.sampling import FrameFacts, FrameVerdict
from realtime.core.settings import SessionSettings

RATE = 24_000
JPEG = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffc0000b080010001001011100ffc4001400010000000000000000000000000000000000ffda"
    "0008010100003f00d2cf20ffd9"
)


def pcm(ms: int) -> bytes:
    return b"\x01\x00" * (ms * RATE // 1000)


def make_picture(tag: int = 0) -> ImageContent:
    return ImageContent.from_bytes(JPEG + tag.to_bytes(4, "big"), "image/jpeg")


class Rig:
    """A machine, its simulated time, and everything that it said."""

    def __init__(
        self,
        settings: SessionSettings,
        capabilities: ModelCapabilities,
        context: ChatContext,
        *,
        connected: bool,
    ) -> None:
        self._ids = itertools.count(1)
        self.now = 100.0
        self.context = context
        self.machine = SessionMachine(
            settings,
            capabilities,
            context,
            make_id=self.make_id,
            wall_offset=1_000_000.0,
            now=self.now,
        )
        self.events: list[seen.SessionEvent] = []
        self.local: list[do.LocalCommand] = []
        self.sent: list[do.LinkCommand] = []
        self.audio_ms = 0
        self.last_item: str | None = None
        self.acknowledges = True
        self.sends_at_once = False
        """The socket takes sound as it comes."""
        self.passed = 0
        """Pieces of sound that went to the socket at once."""
        self.at_every_step: list[Callable[[], None]] = []
        self.overhears: list[Callable[[do.LinkCommand | said.ModelEvent | None], None]] = []
        """Told of everything on the line, both ways; None for a drop."""
        if connected:
            self.connect()

    def make_id(self) -> str:
        return f"id{next(self._ids)}"

    # -- draining -----------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        while (event := self.machine.next_event()) is not None:
            self.events.append(event)
        while (command := self.machine.next_command()) is not None:
            self.local.append(command)
        for check in self.at_every_step:
            check()

    def pull(self) -> list[do.LinkCommand]:
        """What the link would send now; each is written, and items are acknowledged as a provider does."""
        pulled: list[do.LinkCommand] = []
        while (command := self.machine.next_link_command(now=self.now)) is not None:
            pulled.append(command)
            self._write(command)
            if not isinstance(command, do.AppendAudio):
                self.machine.receive_command_done(command.command_id, now=self.now)
            if self.acknowledges and isinstance(command, do.CreateItem):
                self.acknowledge(command)
            self.drain()
        self.drain()
        return pulled

    def _write(self, command: do.LinkCommand) -> None:
        self.sent.append(command)
        self._overhear(command)
        if isinstance(command, do.AppendAudio):
            self.audio_ms += len(command.pcm) * 1000 // 2 // RATE

    def acknowledge(self, command: do.CreateItem) -> None:
        role = str(command.message.role.value)
        kind = "function_call_output" if role == "tool" else "message"
        for item_id in command.item_ids[:1]:
            self.feed(
                said.ItemAdded(
                    item_id=item_id,
                    kind=kind,
                    role=role if kind == "message" else None,
                    previous_item_id=self.last_item,
                    call_id=command.message.tool_call_id or None,
                )
            )
            self.last_item = item_id

    def connect(self) -> list[do.LinkCommand]:
        self.machine.receive_model_event(said.SessionReady(session_id="s"), now=self.now)
        self.machine.receive_link_restored(now=self.now)
        self.drain()
        return self.pull()

    def _overhear(self, said_or_sent: do.LinkCommand | said.ModelEvent | None) -> None:
        for listener in self.overhears:
            listener(said_or_sent)

    def drop(self, *, will_retry: bool = True) -> None:
        self._overhear(None)
        self.machine.receive_link_lost("gone", will_retry=will_retry, now=self.now)
        self.audio_ms = 0
        self.last_item = None
        self.drain()

    def feed(self, *events: said.ModelEvent) -> None:
        for event in events:
            self._overhear(event)
            self.machine.receive_model_event(event, now=self.now)
            self.drain()

    def wait(self, seconds: float) -> None:
        """Let simulated time pass, keeping the machine's deadlines."""
        end = self.now + seconds
        while (deadline := self.machine.get_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.machine.handle_deadline(now=self.now)
            self.drain()
        self.now = end

    # -- what happens in a call ---------------------------------------------------------------------------------------

    def hear(self, ms: int) -> None:
        """The microphone gives `ms` of audio, which is sent."""
        for _ in range(ms // 20):
            command = self.machine.receive_audio(pcm(20), at_once=self.sends_at_once, now=self.now)
            if command is not None:
                self.passed += 1
                self._write(command)
            self.now = round(self.now + 0.02, 6)
            self.pull()

    def begin_speech(self, item: str) -> None:
        self.feed(said.SpeechBegan(item_id=item, at_ms=self.audio_ms))

    def end_speech(self, item: str, *, role_item: bool = True) -> None:
        self.feed(said.SpeechEnded(item_id=item, at_ms=self.audio_ms))
        self.feed(said.InputCommitted(item_id=item, previous_item_id=self.last_item))
        if role_item:
            self.feed(said.ItemAdded(item_id=item, kind="message", role="user", previous_item_id=self.last_item))
            self.last_item = item

    def transcribe(self, item: str, text: str) -> None:
        self.feed(said.InputTranscriptDone(item_id=item, text=text))

    def say(self, item: str, text: str | None, *, ms: int = 400) -> None:
        """A whole spoken turn; its transcript comes at once, or not (None)."""
        self.begin_speech(item)
        self.hear(ms)
        self.end_speech(item)
        if text is not None:
            self.transcribe(item, text)

    def start_reply(self, response: str, item: str) -> None:
        self.feed(
            said.ResponseStarted(response_id=response),
            said.OutputItemStarted(response_id=response, item_id=item, kind="message"),
            said.ItemAdded(item_id=item, kind="message", role="assistant", previous_item_id=self.last_item),
        )
        self.last_item = item

    def speak(self, response: str, item: str, text: str, *, ms: int) -> None:
        self.feed(
            said.OutputTextUpdated(response_id=response, item_id=item, delta=text, spoken=True),
            said.OutputAudio(response_id=response, item_id=item, pcm=pcm(ms)),
        )

    def end_reply(self, response: str, item: str | None, text: str = "", *, status: str = "completed") -> None:
        if item is not None:
            self.feed(
                said.OutputTextDone(response_id=response, item_id=item, text=text, spoken=True),
                said.OutputItemDone(response_id=response, item_id=item),
            )
        self.feed(said.ResponseEnded(response_id=response, status=status))  # type: ignore[arg-type]

    def play(self, response: str, ms: int, *, finished: bool = False) -> None:
        self.machine.receive_played(response, ms, finished=finished, now=self.now)
        self.drain()

    def reply(self, response: str, item: str, text: str, *, ms: int = 1000, play: bool = True) -> None:
        """A whole spoken reply, played out or not."""
        self.start_reply(response, item)
        self.speak(response, item, text, ms=ms)
        self.end_reply(response, item, text)
        if play:
            self.play(response, ms, finished=True)

    def call_tool(self, response: str, item: str, call: str, name: str, arguments: str = "{}") -> None:
        self.feed(
            said.OutputItemStarted(response_id=response, item_id=item, kind="function_call"),
            said.ItemAdded(item_id=item, kind="function_call", previous_item_id=self.last_item, call_id=call),
            said.ToolCallDone(response_id=response, item_id=item, call_id=call, name=name, arguments=arguments),
        )
        self.last_item = item

    def answer_tool(self, call: str, output: str, **more: Any) -> None:
        self.machine.receive_tool_output(call, output, now=self.now, **more)
        self.drain()

    def frame(self, frame_id: int, *, source: str = "camera", thumb: int | None = None) -> FrameVerdict:
        """A frame arrives now; a kept one is encoded at once."""
        shade = frame_id * 40 % 256 if thumb is None else thumb
        facts = FrameFacts(
            frame_id=frame_id,
            source=source,
            captured_at=self.now,
            pts_ms=round(self.now * 1000),
            width=1280,
            height=720,
            thumbprint=bytes([shade]) * 1024,
        )
        verdict = self.machine.receive_frame(facts, now=self.now)
        if verdict.action == "keep":
            self.encoded(frame_id, source=source)
        self.drain()
        return verdict

    def encoded(self, frame_id: int, *, source: str = "camera") -> None:
        self.machine.receive_image(source=source, frame_id=frame_id, image=make_picture(frame_id), now=self.now)
        self.drain()

    # -- reading --------------------------------------------------------------------------------------------------------

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def sent_of(self, kind: type[Any]) -> list[Any]:
        return [command for command in self.sent if isinstance(command, kind)]

    def local_of(self, kind: type[Any]) -> list[Any]:
        return [command for command in self.local if isinstance(command, kind)]

    def texts(self, messages: list[ChatMessage] | None = None) -> list[str]:
        found = self.machine.messages() if messages is None else messages
        return [message.content for message in found]

    def names(self) -> list[str]:
        """Each message of the history in a word: its role's first letter and its text, `frame`, `call` or `result`."""
        return [name_of(message) for message in self.machine.messages()]


def name_of(message: ChatMessage) -> str:
    if message.is_frame:
        return "frame"
    if message.tool_calls:
        return "call:" + ",".join(call.call_id for call in message.tool_calls)
    if message.tool_call_id:
        return "result:" + message.tool_call_id
    return f"{message.role.value[0]}:{message.content}"


RigMaker = Callable[..., Rig]


@pytest.fixture
def make_rig() -> RigMaker:
    """Make a rig: `make_rig(retention=Retention(…), capabilities={"reports_item_order": False}, …)`."""

    def make(
        *,
        capabilities: dict[str, Any] | None = None,
        context: ChatContext | None = None,
        connected: bool = True,
        **settings: Any,
    ) -> Rig:
        return Rig(
            SessionSettings(**settings),
            replace(ModelCapabilities(model="test"), **(capabilities or {})),
            ChatContext.empty() if context is None else context,
            connected=connected,
        )

    return make


@pytest.fixture
def picture() -> Callable[..., ImageContent]:
    """Make a small JPEG: `picture(7)` differs from `picture(8)`."""
    return make_picture
