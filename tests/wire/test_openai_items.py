"""Messages as items: the right part under each role, and as many items as were counted (F2, F5, F6, F9, F10, F11, L1)."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.chat.formats.text import INTERRUPTED_NOTE
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.errors import ArgumentError, UserError
from realtime.pcm import wav_bytes
from realtime.wire.base import item_count
from realtime.wire.openai_items import items_of

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="
PICTURE = ImageContent(url=PIXEL, detail="high")


def items(*args, **kwargs):
    return items_of(ChatMessage(*args, **kwargs), input_rate_hz=24_000)


@pytest.mark.parametrize(
    ("role", "as_role", "part"),
    [
        ("system", "system", "input_text"),
        ("developer", "system", "input_text"),
        ("user", "user", "input_text"),
        ("assistant", "assistant", "output_text"),
    ],
)
def test_text_stands_under_the_part_of_its_role(role, as_role, part):
    # B35
    assert items(role, "Hello") == [{"type": "message", "role": as_role, "content": [{"type": part, "text": "Hello"}]}]


def test_a_users_pictures_follow_its_text_with_their_detail():
    (item,) = items("user", "Look", images=(PICTURE, PICTURE))
    assert [part["type"] for part in item["content"]] == ["input_text", "input_image", "input_image"]
    picture = item["content"][1]
    assert picture["image_url"].startswith("data:image/png;base64,")
    assert picture["detail"] == "high"


def test_a_picture_by_address_is_refused():
    # "UserError instead of silently dropping"
    with pytest.raises(UserError, match="data URL"):
        items("user", "Look", images=(ImageContent(url="https://example.org/cat.png"),))


def test_a_calls_arguments_go_as_they_are_and_none_as_an_empty_object():
    # F5
    calls = (FunctionCall("a", "not json", "c1"), FunctionCall("b", "  ", "c2"))
    assert [item["arguments"] for item in items("assistant", "", tool_calls=calls)] == ["not json", "{}"]


def test_a_result_goes_to_its_call_and_its_pictures_to_the_user():
    # F11
    output, pictures = items("tool", "two cats", tool_call_id="c1", images=(PICTURE,))
    assert output == {"type": "function_call_output", "call_id": "c1", "output": "two cats"}
    assert (pictures["role"], [part["type"] for part in pictures["content"]]) == ("user", ["input_image"])


def test_an_empty_result_is_still_one():
    # F6
    assert items("tool", "", tool_call_id="c1") == [{"type": "function_call_output", "call_id": "c1", "output": ""}]


@pytest.mark.parametrize("role", ["assistant", "system"])
def test_pictures_of_others_are_shown_by_the_user(role):
    said, pictures = items(role, "This one.", images=(PICTURE,))
    assert said["role"] == role
    assert (pictures["role"], pictures["content"][0]["type"]) == ("user", "input_image")


def test_an_interrupted_reply_says_what_was_heard_and_that_it_was_cut():
    # F10
    (item,) = items("assistant", "Once upon", interrupted=True, unheard=" a time")
    assert item["content"] == [{"type": "output_text", "text": f"Once upon {INTERRUPTED_NOTE}"}]
    (again,) = items("assistant", f"Once upon {INTERRUPTED_NOTE}", interrupted=True)
    assert again["content"] == item["content"]


def test_thinking_is_tagged_text_before_the_words():
    # L1
    (item,) = items("assistant", "Four.", thinking="2+2")
    assert [part["text"] for part in item["content"]] == ["<thinking>2+2</thinking>", "Four."]


def test_a_messages_phase_goes_back_unchanged():
    # V3
    (item,) = items("assistant", "Hm.", provider_data={"phase": "commentary"})
    assert item["phase"] == "commentary"


class TestAudio:
    PCM = bytes(range(200)) * 2

    def recording(self, rate_hz=24_000, channels=1, transcript=""):
        return AudioContent(wav_bytes(self.PCM, rate_hz, channels), transcript)

    def test_the_users_words_come_before_the_sound(self):
        (item,) = items("user", "", audio=self.recording(transcript="Good day."))
        assert item["content"] == [{"type": "input_text", "text": "Good day."}]
        (item,) = items("user", "Spoken.", audio=self.recording())
        assert item["content"] == [{"type": "input_text", "text": "Spoken."}]

    def test_without_words_the_sound_goes_as_samples(self):
        (item,) = items("user", "", audio=self.recording())
        (part,) = item["content"]
        assert part["type"] == "input_audio"
        assert base64.b64decode(part["audio"]) == self.PCM

    @pytest.mark.parametrize(("rate_hz", "channels"), [(16_000, 1), (24_000, 2)])
    def test_sound_at_another_rate_or_in_stereo_is_refused(self, rate_hz, channels):
        with pytest.raises(ArgumentError, match="mono at 24000 Hz"):
            items("user", "", audio=self.recording(rate_hz, channels))

    def test_the_models_own_sound_needs_its_words(self):
        # F11: assistant audio never
        (item,) = items("assistant", "", audio=self.recording(transcript="I said so."))
        assert item["content"] == [{"type": "output_text", "text": "I said so."}]
        with pytest.raises(UserError, match="transcript"):
            items("assistant", "", audio=self.recording())

    def test_nobody_else_speaks(self):
        with pytest.raises(UserError, match="transcript"):
            items("system", "", audio=self.recording())


def test_call_ids_of_other_providers_are_made_short_enough_the_same_way_each_time():
    long = "toolu_" + "x" * 60
    (short,) = items("tool", "x", tool_call_id="call_1")
    assert short["call_id"] == "call_1"
    (call,) = items("assistant", "", tool_calls=(FunctionCall("a", "{}", long),))
    (output,) = items("tool", "x", tool_call_id=long)
    assert call["call_id"] == output["call_id"]
    assert len(call["call_id"]) == 32
    (other,) = items("tool", "x", tool_call_id=long + "y")
    assert other["call_id"] != call["call_id"]


def test_the_call_id_of_the_provider_itself_goes_back_as_it_came():
    long = "call-af8ed632-2074-4b5f-b719-7aa47250d3c6-0"
    message = ChatMessage("tool", "x", tool_call_id=long)
    assert items_of(message, input_rate_hz=24_000, known_calls={long})[0]["call_id"] == long


calls = [(), (FunctionCall("a", "{}", "c1"),), (FunctionCall("a", "", "c1"), FunctionCall("b", "", "c2"))]
sound = wav_bytes(bytes(480), 24_000)
messages = st.builds(
    ChatMessage,
    role=st.sampled_from(list(ChatRole)),
    content=st.sampled_from(["", "words"]),
    message_id=st.just("m"),
    tool_calls=st.sampled_from(calls),
    tool_call_id=st.sampled_from(["", "c9"]),
    images=st.sampled_from([(), (PICTURE,)]),
    audio=st.sampled_from([None, AudioContent(sound, "said"), AudioContent(sound)]),
    thinking=st.sampled_from(["", "hm"]),
    interrupted=st.booleans(),
)


@given(messages)
def test_as_many_items_as_counted_and_none_empty(message):
    try:
        made = items_of(message, input_rate_hz=24_000)
    except UserError:
        return
    assert len(made) == item_count(message)
    for item in made:
        if item["type"] == "message":
            assert item["content"]
            assert all(part.get("text", "x") for part in item["content"])
