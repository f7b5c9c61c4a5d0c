"""A message as turns of Gemini's conversation: the order of its words and pictures, and what Gemini cannot see (F9, F11)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.formats.text import UNSEEN_PICTURE
from realtime.chat.messages import ChatMessage, ChatRole, ImageContent
from realtime.core.commands import CreateItem
from realtime.errors import UserError
from realtime.wire.gemini import GeminiOptions, GeminiWire
from realtime.wire.gemini_turns import picture_blob, turns_of

GIF = ImageContent.from_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "image/gif")
PNG = ImageContent.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes(16), "image/png")
FAR = ImageContent(url="https://example.com/a.png")


def kinds(turns: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    return [(turn["role"], [part.get("text", "picture") for part in turn["parts"]]) for turn in turns]


def test_words_come_before_the_pictures_that_they_are_about_as_in_the_other_formats():
    message = ChatMessage(ChatRole.USER, "Look at these.", images=(PNG, PNG))
    assert kinds(turns_of(message)) == [("user", ["Look at these.", "picture", "picture"])]
    context = ChatContext([message])
    parts = context.to_google_contents().contents[0]["parts"]
    assert [part.get("text", "picture") for part in parts] == ["Look at these.", "picture", "picture"]


def test_a_picture_that_gemini_does_not_take_is_a_note_in_a_conversation():
    message = ChatMessage(ChatRole.USER, "Look.", images=(GIF, PNG))
    assert kinds(turns_of(message)) == [("user", ["Look.", UNSEEN_PICTURE, "picture"])]
    result = ChatMessage(ChatRole.TOOL, "done", "", (), "c1", images=(GIF,), tool_name="draw")
    assert kinds(turns_of(result)) == [("user", ["[draw gave: done]", UNSEEN_PICTURE])]


def test_a_result_says_of_its_picture_that_it_cannot_be_seen():
    wire = GeminiWire(GeminiOptions(model="gemini-3.8-live"), prefix="g1")
    wire.decode(json.dumps({"toolCall": {"functionCalls": [{"id": "c1", "name": "draw", "args": {}}]}}))
    result = ChatMessage(ChatRole.TOOL, "done", "", (), "c1", images=(GIF, PNG), tool_name="draw")
    (data,) = wire.encode(CreateItem(command_id="k", message=result, item_ids=("i1", "i2")))
    response = json.loads(data)["toolResponse"]["functionResponses"][0]
    assert response["response"] == {"output": f"done {UNSEEN_PICTURE}"}
    assert [part["inlineData"]["mimeType"] for part in response["parts"]] == ["image/png"]


def test_a_frame_that_gemini_does_not_take_is_refused_with_what_would_do():
    with pytest.raises(UserError, match=r"no image/gif.*realtime\.encode"):
        picture_blob(GIF)


def test_an_address_is_refused_with_what_would_do():
    with pytest.raises(UserError, match="not by address"):
        turns_of(ChatMessage(ChatRole.USER, "Look.", images=(FAR,)))
