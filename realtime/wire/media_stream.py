"""A telephone call over a websocket: the JSON of media streams, as Twilio and those who follow it speak it.

Owns: what such a stream says (`StreamEvent`), `read_stream_message`, and the three messages that it is told. Pure translation;
driven by `pipelines/telephony.py`. It remembers nothing, never decodes sound and never touches a socket.

Source: Twilio's "Media Streams: WebSocket Messages" (twilio.com/docs/voice/media-streams/websocket-messages). Numbers come as
strings there; both are taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from realtime.errors import ModelError
from realtime.wire.json_fields import (
    MALFORMED,
    JsonObject,
    MissingFieldError,
    decode_base64,
    dump_message,
    encode_base64,
    object_of,
    parse_message,
    quote,
    required_text,
    strings_of,
    text_of,
)

__all__ = [
    "MAX_STREAM_MESSAGE_BYTES",
    "DigitPressed",
    "MarkPassed",
    "MediaArrived",
    "StreamEvent",
    "StreamOpened",
    "StreamStarted",
    "StreamStopped",
    "UnknownStreamMessage",
    "clear_message",
    "mark_message",
    "media_message",
    "read_stream_message",
]

MAX_STREAM_MESSAGE_BYTES: Final = 131_072
"""Largest message that is read: 12 s of sound. Real ones hold 20 ms."""

_DIGITS: Final = frozenset("0123456789*#ABCD")
_MAX_MARK: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOpened:
    """The websocket is the stream's; the call's own facts follow."""

    protocol: str
    """Which, such as `Call`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStarted:
    """The stream of a call begins."""

    stream_id: str
    """Every later message carries it."""
    call_id: str = ""
    """The call's, for the provider's own API."""
    account_id: str = ""
    """Whose account."""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the application gave the stream on its way (`<Parameter>`)."""
    encoding: str = "audio/x-mulaw"
    """How the sound is coded."""
    rate_hz: int = 8_000
    """Samples a second."""
    channels: int = 1
    """One."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaArrived:
    """Some of the caller's sound."""

    stream_id: str
    """Of which stream."""
    payload: bytes
    """As it is coded, a byte a sample."""
    track: str = "inbound"
    """`inbound` is the caller; `outbound` is what the caller hears."""
    chunk: int | None = None
    """Its number, from 1 on; None if it has none."""
    at_ms: int | None = None
    """When it was said, since the stream began; None if that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkPassed:
    """Everything that was sent before a mark has been played, or thrown away by `clear`."""

    stream_id: str
    """Of which stream."""
    name: str
    """The mark's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigitPressed:
    """The caller pressed a key."""

    stream_id: str
    """Of which stream."""
    digit: str
    """One of `0`–`9`, `*`, `#`, `A`–`D`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStopped:
    """The call is over, or the stream was taken from it."""

    stream_id: str
    """Of which stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownStreamMessage:
    """A message of a kind that this version does not know."""

    event: str
    """Which."""


StreamEvent = (
    StreamOpened | StreamStarted | MediaArrived | MarkPassed | DigitPressed | StreamStopped | UnknownStreamMessage
)


def read_stream_message(data: str | bytes) -> StreamEvent:
    """Read one message of a media stream.

    Raises:
        ModelError: It is too large, no JSON object, or lacks what it must have; code ``malformed_message``.
    """
    # hot path: 50 times a second per call
    if len(data) > MAX_STREAM_MESSAGE_BYTES:
        raise ModelError(f"a message of {len(data)} bytes is over {MAX_STREAM_MESSAGE_BYTES}", code=MALFORMED)
    message = parse_message(data)
    event = text_of(message, "event")
    try:
        return _read(event, message)
    except MissingFieldError as error:
        raise ModelError(f"a {event!r} message without a usable {error}", code=MALFORMED) from None


def _read(event: str, message: JsonObject) -> StreamEvent:
    match event:
        case "media":
            return _read_media(message)
        case "mark":
            name = required_text(object_of(message, "mark"), "name")
            return MarkPassed(stream_id=_stream_of(message), name=name[:_MAX_MARK])
        case "dtmf":
            digit = text_of(object_of(message, "dtmf"), "digit").upper()
            if digit not in _DIGITS:
                raise MissingFieldError("digit")
            return DigitPressed(stream_id=_stream_of(message), digit=digit)
        case "start":
            return _read_start(message)
        case "stop":
            return StreamStopped(stream_id=_stream_of(message))
        case "connected":
            return StreamOpened(protocol=text_of(message, "protocol"))
        case _:
            return UnknownStreamMessage(event=event[:80])


def _stream_of(message: JsonObject) -> str:
    return text_of(message, "streamSid")


def _read_media(message: JsonObject) -> MediaArrived:
    media = object_of(message, "media")
    payload = decode_base64(required_text(media, "payload"))
    if not payload:
        raise MissingFieldError("payload")
    return MediaArrived(
        stream_id=_stream_of(message),
        payload=payload,
        track=text_of(media, "track", "inbound"),
        chunk=_number(media.get("chunk")),
        at_ms=_number(media.get("timestamp")),
    )


def _read_start(message: JsonObject) -> StreamStarted:
    start = object_of(message, "start")
    form = object_of(start, "mediaFormat")
    return StreamStarted(
        stream_id=text_of(start, "streamSid") or required_text(message, "streamSid"),
        call_id=text_of(start, "callSid"),
        account_id=text_of(start, "accountSid"),
        parameters=strings_of(start, "customParameters"),
        encoding=text_of(form, "encoding", "audio/x-mulaw"),
        rate_hz=_number(form.get("sampleRate", 8_000)) or 0,
        channels=_number(form.get("channels", 1)) or 0,
    )


def _number(value: object) -> int | None:
    """A whole number of at least 0, also one written in a string."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 53:
        return None
    return value


def media_message(stream_id: str, payload: bytes) -> str:
    """Sound for the caller."""
    # hot path: 25 times a second per call; base64 needs no escaping
    if not stream_id.isascii():
        return _write("media", stream_id, media={"payload": encode_base64(payload)})
    return f'{{"event":"media","streamSid":{quote(stream_id)},"media":{{"payload":"{encode_base64(payload)}"}}}}'


def mark_message(stream_id: str, name: str) -> str:
    """A mark behind what was sent: it comes back when that has been played."""
    return _write("mark", stream_id, mark={"name": name})


def clear_message(stream_id: str) -> str:
    """Throw away what was sent and has not been played; its marks come back at once."""
    return _write("clear", stream_id)


def _write(event: str, stream_id: str, **more: Mapping[str, Any]) -> str:
    return dump_message({"event": event, "streamSid": stream_id, **more})
