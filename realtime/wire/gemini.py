"""Gemini Live: commands to wire messages, wire messages to model events.

Owns: `GeminiWire`. Driven by `pipelines/link.py`, one instance per connection. Setting up is in `wire/gemini_setup.py`, reading
in `wire/gemini_decode.py`. It never waits and never opens a socket.

Gemini keeps no items that could be named, so nothing can be deleted, cut to what was heard or put between others, and what
a connection was set up with stays as long as it does. The two generations differ in how they are told things. Up to 2.5
everything is content, at any time, and a turn is answered when it is complete; such a turn does not see what the camera
showed, so the newest picture of the last ten seconds goes into it. From 3.1 on only an earlier conversation is content,
before anything else; what is typed later goes as it is typed and is answered at once, so that text which asks for no
reply waits for the next that does.
"""

from __future__ import annotations

from typing import Final, assert_never

from realtime.chat.formats.google import sees
from realtime.chat.formats.text import UNSEEN_PICTURE, result_text, tagged_instruction
from realtime.chat.messages import ChatMessage, ChatRole, ImageContent
from realtime.core.commands import (
    AppendAudio,
    CancelResponse,
    ClearAudio,
    CommitAudio,
    ConfigureSession,
    CreateItem,
    CreateResponse,
    DeleteItem,
    LinkCommand,
    TruncateItem,
)
from realtime.core.model_events import ModelEvent
from realtime.errors import UserError
from realtime.wire.base import ReconfigurationError, Resumption, WireStatistics
from realtime.wire.gemini_decode import GeminiDecoder
from realtime.wire.gemini_setup import GeminiOptions, setup_message
from realtime.wire.gemini_turns import picture_blob, picture_part, turns_of
from realtime.wire.json_fields import JsonObject, dump_around, dump_message, encode_base64

__all__ = ["GeminiOptions", "GeminiWire"]

_MAX_AUDIO_BYTES: Final = 128_000  # four seconds at 16 kHz
_PICTURE_SECONDS: Final = 10.0
_GO_ON: Final = "[The user waits for you to speak.]"
_ACTIVITY_START: Final = '{"realtimeInput":{"activityStart":{}}}'
_AUDIO_HEAD: Final = '{"realtimeInput":{"audio":{"data":"'


class GeminiWire:
    """The wire format of one connection to Gemini Live."""

    def __init__(self, options: GeminiOptions, *, prefix: str, resumption: Resumption | None = None) -> None:
        """Begin a connection.

        Args:
            options: What this model is told besides what every session says.
            prefix: What the ids that Gemini does not give begin with; another one for each connection.
            resumption: What an earlier connection gave; the conversation goes on where it stood then.
        """
        self._options = options
        self._resumption = resumption
        self._decoder = GeminiDecoder(prefix, resumes=resumption is not None)
        self._encoded = 0
        self._setup: JsonObject | None = None
        self._is_manual = False
        self._is_active = False
        self._earlier_items = 0
        self._history_is_open = False
        self._has_content = False
        self._typed: list[str] = []
        self._sent_bytes = 0
        self._audio_tail = f'","mimeType":"audio/pcm;rate={options.input_rate_hz}"}}}}}}'
        self._newest: tuple[ImageContent, float] | None = None

    def encode(self, command: LinkCommand) -> list[str | bytes]:
        """Put a command as wire messages.

        Raises:
            ReconfigurationError: Another setup was asked for; it needs another connection.
            UserError: Gemini cannot do it. Nothing was changed.
        """
        messages: list[JsonObject] = []
        if self._history_is_open and not self._belongs_to_history(command):
            messages += self._close_history()
        written: list[str | bytes]
        if isinstance(command, AppendAudio):
            written = self._append(command.pcm)
            if messages:
                written[:0] = map(dump_message, messages)
        else:
            written = [*map(_write, messages + self._messages(command))]
        self._encoded += len(written)
        return written

    def _belongs_to_history(self, command: LinkCommand) -> bool:
        """Whether the earlier conversation goes on with a command: an item of it, or its announcement once more."""
        return isinstance(command, ConfigureSession) or (isinstance(command, CreateItem) and self._earlier_items > 0)

    def decode(self, data: str | bytes) -> list[ModelEvent]:
        """Read one wire message; never raises."""
        return self._decoder.decode(data)

    def statistics(self) -> WireStatistics:
        """What was encoded and decoded so far."""
        decoder = self._decoder
        return WireStatistics(
            encoded=self._encoded,
            decoded=decoder.decoded,
            malformed=decoder.malformed,
            unknown=decoder.unknown.counts(),
        )

    def resumption(self) -> Resumption | None:
        """The newest handle. Where what came after it could not be told without being answered, only one that is current."""
        handle = self._decoder.handle
        if not handle or (self._options.history_first and not self._decoder.handle_is_current):
            return None
        return Resumption(handle=handle)

    def _messages(self, command: LinkCommand) -> list[JsonObject]:
        match command:
            case ConfigureSession():
                return self._configure(command)
            case AppendAudio():  # in `_append`
                return []
            case CommitAudio():
                return self._commit()
            case ClearAudio():
                raise UserError("Gemini cannot throw away audio that it has heard (supports_audio_clearing)")
            case CreateItem():
                return self._create(command)
            case CreateResponse():
                return self._respond(command)
            case CancelResponse():
                return []  # it stops when the user speaks; until then its output is dropped here
            case DeleteItem():
                raise UserError("Gemini cannot delete a part of its conversation (supports_item_deletion)")
            case TruncateItem():
                raise UserError("Gemini cannot cut a spoken item to what was heard (supports_truncation)")
            case _:
                assert_never(command)

    # -- setting up -------------------------------------------------------------------------------------------------

    def _configure(self, command: ConfigureSession) -> list[JsonObject]:
        setup = setup_message(self._options, command)
        if self._setup is not None:
            if setup != self._setup:
                raise ReconfigurationError("Gemini cannot be configured anew while it is connected")
            if self._history_is_open and not command.earlier_items:
                return self._close_history()
            if self._takes_history and command.earlier_items and not self._history_is_open:
                raise ReconfigurationError("Gemini is told an earlier conversation only if it was announced at once")
            self._open_history(command.earlier_items)
            return []
        self._setup = setup
        self._is_manual = command.turn_detection.mode == "manual"
        resumption: JsonObject = {} if self._resumption is None else {"handle": self._resumption.handle}
        sent: JsonObject = {**setup, "sessionResumption": resumption}
        if self._takes_history and command.earlier_items:
            sent["historyConfig"] = {"initialHistoryInClientContent": True}
        self._open_history(command.earlier_items)
        return [{"setup": sent}]

    @property
    def _takes_history(self) -> bool:
        """Whether an earlier conversation comes first, before anything else."""
        return self._options.history_first and self._resumption is None

    def _open_history(self, earlier_items: int) -> None:
        if self._takes_history:
            self._earlier_items = earlier_items
            self._history_is_open = earlier_items > 0

    def _close_history(self) -> list[JsonObject]:
        self._history_is_open, self._earlier_items = False, 0
        return [{"clientContent": {"turnComplete": True}}]

    # -- sound ------------------------------------------------------------------------------------------------------

    def _append(self, data: bytes) -> list[str | bytes]:
        # hot path: fifty times a second; base64 needs no escaping, and the rest of the message is always the same
        messages: list[str | bytes] = []
        if self._is_manual and not self._is_active:
            self._is_active = True
            messages.append(_ACTIVITY_START)
        if len(data) <= _MAX_AUDIO_BYTES:
            messages.append(f"{_AUDIO_HEAD}{encode_base64(data)}{self._audio_tail}")
        else:
            chunks = (data[at : at + _MAX_AUDIO_BYTES] for at in range(0, len(data), _MAX_AUDIO_BYTES))
            messages += [f"{_AUDIO_HEAD}{encode_base64(chunk)}{self._audio_tail}" for chunk in chunks]
        self._sent_bytes += len(data)
        self._decoder.sent_ms = self._sent_bytes * 500 // self._options.input_rate_hz
        self._decoder.expects_speech = True
        return messages

    def _commit(self) -> list[JsonObject]:
        if not self._is_manual:
            return [{"realtimeInput": {"audioStreamEnd": True}}]
        if not self._is_active:
            return []
        self._is_active = False
        self._decoder.awaits_answer = True
        return [{"realtimeInput": {"activityEnd": {}}}]

    # -- words and pictures -----------------------------------------------------------------------------------------

    def _create(self, command: CreateItem) -> list[JsonObject]:
        message = command.message
        if self._history_is_open:
            return self._create_history(message)
        if message.is_frame:
            self._newest = (message.images[0], message.created_at or 0.0)
            return [{"realtimeInput": {"video": picture_blob(message.images[0])}}]
        if message.is_result and message.tool_call_id in self._decoder.calls:
            answer: JsonObject = {"toolResponse": {"functionResponses": [self._result(message)]}}
            self._decoder.awaits_answer = self._decoder.is_asked = True
            self._decoder.handle_is_current = False
            return [answer]
        turns = turns_of(message)
        if not turns:
            return []
        self._decoder.handle_is_current = False
        if self._options.history_first:
            return self._type(message, turns)
        if message.role == ChatRole.USER:
            picture = self._recent_picture(message)
            if picture is not None:
                turns[0]["parts"].insert(0, picture_part(picture))  # it was shown before
        self._has_content = True
        return [{"clientContent": {"turns": turns, "turnComplete": False}}]

    def _create_history(self, message: ChatMessage) -> list[JsonObject]:
        """One more of an earlier conversation, and its end after the last."""
        self._earlier_items -= 1
        turns = turns_of(message)
        told: list[JsonObject] = [{"clientContent": {"turns": turns, "turnComplete": False}}] if turns else []
        return told if self._earlier_items else told + self._close_history()

    def _type(self, message: ChatMessage, turns: list[JsonObject]) -> list[JsonObject]:
        """Text that is answered at once waits until a reply is asked for; its pictures are shown now."""
        self._typed += [part["text"] for turn in turns for part in turn["parts"] if "text" in part]
        return [{"realtimeInput": {"video": picture_blob(image)}} for image in message.images]

    def _recent_picture(self, message: ChatMessage) -> ImageContent | None:
        newest, self._newest = self._newest, None
        if newest is None or message.images or not message.content:
            return None
        is_recent = message.created_at is None or message.created_at - newest[1] <= _PICTURE_SECONDS
        return newest[0] if is_recent else None

    def _result(self, message: ChatMessage) -> JsonObject:
        key = "error" if message.is_error else "output"
        response: JsonObject = {
            "id": message.tool_call_id,
            "name": message.tool_name or self._decoder.calls[message.tool_call_id],
            "response": {key: result_text(message)},
        }
        if message.images:
            seen = [{"inlineData": picture_blob(image)} for image in message.images if sees(image)]
            if len(seen) < len(message.images):
                response["response"][key] = f"{response['response'][key]} {UNSEEN_PICTURE}"
            if seen:
                response["parts"] = seen
        return response

    def _respond(self, command: CreateResponse) -> list[JsonObject]:
        """What was typed is answered when it is complete; what was said, and what a tool gave, without being asked."""
        note = tagged_instruction(command.instructions) if command.instructions else ""
        decoder = self._decoder
        if decoder.awaits_answer and not (self._has_content or self._typed or note):
            return []
        decoder.metadata = dict(command.metadata)
        decoder.expects_speech = self._has_content = False
        decoder.awaits_answer = decoder.is_asked = True
        if self._options.history_first:
            words, self._typed = [*self._typed, note] if note else self._typed, []
            return [{"realtimeInput": {"text": "\n".join(words) or _GO_ON}}]
        turns: JsonObject = {"turns": [{"role": "user", "parts": [{"text": note}]}]} if note else {}
        return [{"clientContent": {**turns, "turnComplete": True}}]


def _write(message: JsonObject) -> str:
    """Write a message; the data of a picture that is shown is nearly all of it, and is put in as it is."""
    blob: JsonObject | None = message.get("realtimeInput", {}).get("video")
    if blob is None:
        return dump_message(message)
    return dump_around({"realtimeInput": {"video": {**blob, "data": ""}}}, "data", [("", blob["data"])])
