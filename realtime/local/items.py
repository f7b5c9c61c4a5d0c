"""One entry of the server's conversation, and how a client's item becomes one.

Owns: `StoredItem` and its parts, and `read_item`, which checks what a client sends in `conversation.item.create` and in
`response.create`'s `input`. Driven by the session; `conversation.py` keeps them in order. Never acts.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Literal, cast

import numpy as np

from realtime.chat.messages import ChatMessage, ImageContent
from realtime.errors import ArgumentError, ModelError
from realtime.local.alignment import TimedWord
from realtime.local.codecs import AudioDecoder, AudioEncoder, Pcm16, to_pcm16
from realtime.local.fields import Fields, invalid, missing, read_choice, read_list, read_text, wrong_type
from realtime.local.large_messages import PIECE_CHARS, decode_base64_in_pieces
from realtime.wire.json_fields import encode_base64
from realtime.wire.openai_messages import (
    INVALID_VALUE,
    ContentPart,
    Item,
    ItemStatus,
    Role,
)

__all__ = ["MAX_ITEM_ID", "StoredItem", "StoredPart", "TokenCounts", "item_to_wire", "read_item"]

MAX_ITEM_ID = 32
"""Longest item id that a client may give, as OpenAI has it."""
SPEECH_RATE_HZ = 16_000
"""The rate at which the user's audio is kept."""

PartType = Literal["input_text", "input_image", "input_audio", "output_text", "output_audio"]
Kind = Literal["message", "function_call", "function_call_output"]

_PARTS_BY_ROLE: dict[str, tuple[PartType, ...]] = {
    "user": ("input_text", "input_image", "input_audio"),
    "system": ("input_text",),
    "assistant": ("output_text",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """Tokens of an item, by kind."""

    text: int
    """Of text."""
    audio: int
    """Of audio."""
    image: int
    """Of pictures."""


@dataclass(slots=True, kw_only=True)
class StoredPart:
    """One part of a message."""

    type: PartType
    """What it is."""
    text: str = ""
    """Its text; of audio its transcript."""
    transcribed: bool = True
    """False: audio whose transcript is not known yet."""
    image: ImageContent | None = None
    """Its picture."""
    pcm: Pcm16 | None = None
    """The user's audio at 16 kHz, while it is kept."""
    audio_ms: int = 0
    """How long its audio is, or was before it was let go or cut."""
    words: list[TimedWord] = field(default_factory=list[TimedWord])
    """When the words of the model's audio sound."""

    @property
    def byte_length(self) -> int:
        """About how much memory it takes."""
        image = self.image.byte_length if self.image is not None else 0
        return image + (self.pcm.nbytes if self.pcm is not None else 0) + 2 * len(self.text)


@dataclass(slots=True, kw_only=True)
class StoredItem:
    """One entry of the conversation."""

    id: str
    """Its id."""
    kind: Kind
    """What it is."""
    role: Role | None = None
    """Whose message it is."""
    status: ItemStatus = "completed"
    """Whether it is whole."""
    parts: list[StoredPart] = field(default_factory=list[StoredPart])
    """The parts of a message."""
    call_id: str = ""
    """The call, of calls and their outputs."""
    name: str = ""
    """The function, of a call."""
    arguments: str = ""
    """The arguments, of a call."""
    output: str = ""
    """The result, of an output."""
    truncated: bool = False
    """The model's audio was cut to what was heard."""
    message: ChatMessage | None = None
    """What a responder sees of it, made when it is first asked for; None: not made since it changed."""
    tokens: TokenCounts | None = None
    """What it costs, counted when it is first asked for; None: not counted since it changed."""

    def changed(self) -> None:
        """It is not what it was: forget what was made of it."""
        self.message = None
        self.tokens = None

    @property
    def byte_length(self) -> int:
        """About how much memory it takes."""
        return 200 + len(self.arguments) + len(self.output) + sum(part.byte_length for part in self.parts)

    @property
    def untranscribed(self) -> list[StoredPart]:
        """The parts whose words are not known yet."""
        return [part for part in self.parts if not part.transcribed]


# -- to a client ---------------------------------------------------------------------------------------------------------


def item_to_wire(item: StoredItem, *, media_format: str | None = None) -> Item:
    """Put an item as a client sees it.

    Args:
        item: The item.
        media_format: Also give its pictures, and the audio that is kept, coded so; None: without them, as in every
            event but `conversation.item.retrieved`: who sent them has them.
    """
    if item.kind == "function_call":
        return Item(
            id=item.id,
            type="function_call",
            status=item.status,
            name=item.name,
            call_id=item.call_id,
            arguments=item.arguments,
        )
    if item.kind == "function_call_output":
        return Item(id=item.id, type="function_call_output", call_id=item.call_id, output=item.output)
    content = [_part_to_wire(part, media_format) for part in item.parts]
    return Item(id=item.id, type="message", status=item.status, role=item.role or "user", content=content)


def _part_to_wire(part: StoredPart, media_format: str | None) -> ContentPart:
    if part.type in ("input_text", "output_text"):
        return ContentPart(type=part.type, text=part.text)
    if part.type == "input_image":
        assert part.image is not None
        picture = ContentPart(type="input_image", detail=cast('Literal["auto", "low", "high"]', part.image.detail))
        if media_format is not None:
            picture["image_url"] = part.image.url
        return picture
    transcript = part.text if part.transcribed else None
    wire = ContentPart(type=part.type, transcript=transcript)
    if media_format is not None and part.pcm is not None:
        encoder = AudioEncoder(media_format, SPEECH_RATE_HZ)
        wire["audio"] = encode_base64(encoder.encode(part.pcm.astype("<i2").tobytes()) + encoder.flush())
    return wire


# -- from a client -------------------------------------------------------------------------------------------------------


def read_item(value: Fields, *, new_id: str, audio_format: str, param: str = "item") -> StoredItem:
    """Check a client's item.

    Args:
        value: What the client sent.
        new_id: Its id if the client gave none.
        audio_format: How its audio is coded.
        param: Where it stands in the event, for errors.

    Raises:
        ModelError: It cannot be; `param` names the field.
    """
    kind = read_choice(value, "type", param, ("message", "function_call", "function_call_output"))
    item_id = read_text(value, "id", param, default=new_id, longest=MAX_ITEM_ID)
    if kind == "message":
        return _read_message(value, item_id, audio_format, param)
    if kind == "function_call":
        name = read_text(value, "name", param)
        arguments = read_text(value, "arguments", param, empty=True)
        call_id = read_text(value, "call_id", param, default=f"call_{item_id[-24:]}")
        return StoredItem(id=item_id, kind="function_call", name=name, arguments=arguments, call_id=call_id)
    call_id = read_text(value, "call_id", param)
    output = read_text(value, "output", param, empty=True)
    return StoredItem(id=item_id, kind="function_call_output", call_id=call_id, output=output)


def _read_message(value: Fields, item_id: str, audio_format: str, param: str) -> StoredItem:
    role = read_choice(value, "role", param, tuple(_PARTS_BY_ROLE))
    if value.get("content") is None:
        raise missing(f"{param}.content")
    content = read_list(value, "content", param)
    if not content:
        raise ModelError(f"Invalid '{param}.content': empty array.", code=INVALID_VALUE, param=f"{param}.content")
    parts: list[StoredPart] = []
    for number, part in enumerate(content):
        where = f"{param}.content[{number}]"
        if not isinstance(part, dict):
            raise wrong_type(where, part, "an object")
        parts.append(_read_part(cast("Fields", part), _PARTS_BY_ROLE[role], audio_format, where))
    return StoredItem(id=item_id, kind="message", role=cast("Role", role), parts=parts)


def _read_part(value: Fields, allowed: tuple[PartType, ...], audio_format: str, where: str) -> StoredPart:
    kind = read_text(value, "type", where)
    if kind == "text":  # what older clients call it
        kind = allowed[0]
    if kind not in allowed:
        raise invalid(f"{where}.type", kind, ", ".join(f"'{name}'" for name in allowed))
    if kind == "input_image":
        return _read_image(value, where)
    if kind == "input_audio":
        return _read_audio(value, audio_format, where)
    return StoredPart(type=cast("PartType", kind), text=read_text(value, "text", where, empty=True))


def _read_image(value: Fields, where: str) -> StoredPart:
    url = read_text(value, "image_url", where, longest=sys.maxsize)
    if url[:5].lower() != "data:":
        raise invalid(f"{where}.image_url", url, "data URLs: this server fetches nothing")
    detail = read_choice(value, "detail", where, ("auto", "low", "high"), default="auto")
    try:
        image = _picture(url, detail)
    except ArgumentError as error:
        text = f"Invalid '{where}.image_url': {error}."
        raise ModelError(text, code=INVALID_VALUE, param=f"{where}.image_url") from None
    return StoredPart(type="input_image", image=image)


def _picture(url: str, detail: str) -> ImageContent:
    """As `ImageContent` reads it; a long one piece by piece."""
    header, comma, payload = url.partition(",")
    if comma and len(payload) > PIECE_CHARS and header.lower().endswith(";base64"):
        data = decode_base64_in_pieces(payload)
        if data is not None:
            return ImageContent.from_bytes(data, header[5:].partition(";")[0], detail)
    return ImageContent(url=url, detail=detail)


def _read_audio(value: Fields, audio_format: str, where: str) -> StoredPart:
    data = decode_base64_in_pieces(read_text(value, "audio", where, longest=sys.maxsize))
    if data is None:
        raise ModelError(f"Invalid '{where}.audio': no base64.", code=INVALID_VALUE, param=f"{where}.audio")
    decoder = AudioDecoder(audio_format, SPEECH_RATE_HZ)
    pcm = to_pcm16(np.concatenate((decoder.decode(data), decoder.flush())) * np.float32(32768.0))
    transcript = read_text(value, "transcript", where, default="", empty=True)
    return StoredPart(
        type="input_audio",
        text=transcript,
        transcribed=bool(transcript),
        pcm=pcm,
        audio_ms=len(pcm) * 1000 // SPEECH_RATE_HZ,
    )
