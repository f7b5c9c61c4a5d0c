"""The server's conversation: order, bounds, truncation, and what a responder sees."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from realtime.chat.messages import ChatRole
from realtime.errors import ModelError
from realtime.local.conversation import LocalConversation
from realtime.local.items import StoredItem, StoredPart

from .kit import picture


def typed(item_id: str, text: str = "hello", role: str = "user") -> StoredItem:
    kind = "output_text" if role == "assistant" else "input_text"
    return StoredItem(id=item_id, kind="message", role=role, parts=[StoredPart(type=kind, text=text)])  # type: ignore[arg-type]


def spoken(item_id: str = "reply", ms: int = 400) -> StoredItem:
    words = [("One", 100), (" two", 200), (" three", 300), (" four", 400)]
    part = StoredPart(type="output_audio", text="One two three four", audio_ms=ms, words=words)
    return StoredItem(id=item_id, kind="message", role="assistant", parts=[part])


def order(conversation: LocalConversation) -> list[str]:
    return [item.id for item in conversation]


def test_items_stand_where_they_are_put() -> None:
    conversation = LocalConversation()
    assert conversation.add(typed("b")) is None
    assert conversation.add(typed("d")) == "b"
    assert conversation.add(typed("c"), "b") == "b"
    assert conversation.add(typed("a"), "root") is None
    assert conversation.add(typed("e"), "") == "d"
    assert conversation.add(typed("f"), "e") == "e"
    assert order(conversation) == ["a", "b", "c", "d", "e", "f"]
    assert conversation.previous_of("c") == "b"
    assert conversation.previous_of("a") is None
    assert conversation.last_id == "f"


@pytest.mark.parametrize(
    ("item", "previous", "code", "param"),
    [
        (typed("a"), None, "item_create_duplicate_item_id", "item.id"),
        (typed("b"), "nobody", "item_create_invalid_previous_item_id", "previous_item_id"),
        (StoredItem(id="r", kind="function_call_output", call_id="c1"), None, "invalid_tool_call_id", "item.call_id"),
    ],
)
def test_what_cannot_stand_there_is_refused(item: StoredItem, previous: str | None, code: str, param: str) -> None:
    conversation = LocalConversation()
    conversation.add(typed("a"))
    with pytest.raises(ModelError) as refusal:
        conversation.add(item, previous)
    assert (refusal.value.code, refusal.value.param) == (code, param)
    assert order(conversation) == ["a"]


def test_an_item_that_is_not_there_is_named_with_the_code_of_what_was_tried() -> None:
    conversation = LocalConversation()
    for act, code in (
        (lambda: conversation.delete("x"), "item_delete_invalid_item_id"),
        (lambda: conversation.retrieve("x"), "item_retrieve_invalid_item_id"),
        (lambda: conversation.truncate("x", 0, 0), "item_truncate_invalid_item_id"),
    ):
        with pytest.raises(ModelError, match="'x' does not exist") as refusal:
            act()
        assert refusal.value.code == code


def test_truncation_keeps_the_words_that_were_heard() -> None:
    conversation = LocalConversation()
    conversation.add(spoken())
    item = conversation.truncate("reply", 0, 250)
    assert item.parts[0].text == "One two"
    assert item.parts[0].audio_ms == 250
    (message,) = conversation.messages()
    assert (message.content, message.interrupted) == ("One two", True)


def test_truncation_at_the_end_changes_nothing() -> None:
    conversation = LocalConversation()
    conversation.add(spoken())
    assert conversation.truncate("reply", 0, 400).parts[0].text == "One two three four"
    assert not conversation.messages()[0].interrupted


@pytest.mark.parametrize(
    ("item", "index", "end", "code", "text"),
    [
        (spoken(), 0, 401, "invalid_value", "Audio content of 400ms is already shorter than 401ms"),
        (spoken(), 1, 100, "invalid_value", "content_index"),
        (spoken(), 0, -1, "invalid_value", "audio_end_ms"),
        (typed("reply", role="assistant"), 0, 0, "unsupported_content_type", "Only model output audio"),
        (typed("reply"), 0, 0, "unsupported_content_type", "Only model output audio"),
    ],
)
def test_truncation_that_cannot_be_is_refused(item: StoredItem, index: int, end: int, code: str, text: str) -> None:
    conversation = LocalConversation()
    conversation.add(item)
    with pytest.raises(ModelError, match=text) as refusal:
        conversation.truncate("reply", index, end)
    assert refusal.value.code == code


def test_the_oldest_items_leave_when_there_are_too_many() -> None:
    conversation = LocalConversation(max_items=3)
    for number in range(6):
        conversation.add(typed(f"i{number}"))
    assert order(conversation) == ["i3", "i4", "i5"]
    assert conversation.dropped == 3
    conversation.add(typed("front"), "root")
    assert "front" in order(conversation)


def test_pictures_leave_with_their_items_when_they_take_too_much() -> None:
    image = picture(size=(300, 300))
    conversation = LocalConversation(max_bytes=3 * image.byte_length)
    alive = weakref.ref(image)
    del image
    conversation.add(
        StoredItem(id="p0", kind="message", role="user", parts=[StoredPart(type="input_image", image=alive())])
    )
    for number in range(1, 4):
        shown = picture(size=(300, 300))
        conversation.add(
            StoredItem(
                id=f"p{number}", kind="message", role="user", parts=[StoredPart(type="input_image", image=shown)]
            )
        )
    gc.collect()
    assert "p0" not in order(conversation)
    assert alive() is None


def test_only_the_newest_audio_is_kept_and_never_before_it_is_transcribed() -> None:
    conversation = LocalConversation(max_audio_ms=1500)
    parts = []
    for number in range(3):
        part = StoredPart(type="input_audio", pcm=np.zeros(16_000, np.int16), audio_ms=1000, transcribed=number > 0)
        parts.append(part)
        conversation.add(StoredItem(id=f"s{number}", kind="message", role="user", parts=[part]))
    assert [part.pcm is not None for part in parts] == [True, False, True]


def test_a_responder_sees_words_pictures_calls_and_results() -> None:
    conversation = LocalConversation()
    image = picture()
    parts = [StoredPart(type="input_text", text="Look."), StoredPart(type="input_image", image=image)]
    conversation.add(StoredItem(id="u", kind="message", role="user", parts=parts))
    conversation.add(StoredItem(id="c", kind="function_call", name="f", arguments="{}", call_id="call_1"))
    conversation.add(StoredItem(id="r", kind="function_call_output", call_id="call_1", output="7"))
    conversation.add(StoredItem(id="e", kind="message", role="assistant", status="incomplete"))
    user, call, result = conversation.messages()
    assert (user.role, user.content, user.images) == (ChatRole.USER, "Look.", (image,))
    assert [(one.name, one.call_id) for one in call.tool_calls] == [("f", "call_1")]
    assert (result.role, result.content, result.tool_call_id, result.tool_name) == (ChatRole.TOOL, "7", "call_1", "f")


def test_what_a_responder_sees_is_made_once_and_anew_when_an_item_changes() -> None:
    conversation = LocalConversation()
    conversation.add(spoken())
    (first,) = conversation.messages()
    assert conversation.messages()[0] is first
    conversation.truncate("reply", 0, 250)
    (second,) = conversation.messages()
    assert (first.content, second.content) == ("One two three four", "One two")
