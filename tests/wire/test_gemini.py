"""Gemini Live: what is said to it."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.core.commands import (
    AppendAudio,
    CancelResponse,
    ClearAudio,
    CommitAudio,
    ConfigureSession,
    CreateItem,
    CreateResponse,
    DeleteItem,
    TruncateItem,
)
from realtime.core.model_events import ModelFault, OutputAudio, SessionUpdated, UnknownReport
from realtime.core.settings import ToolSpec, TurnDetection
from realtime.errors import ArgumentError, UserError
from realtime.pcm import wav_bytes
from realtime.testing import check_wire_format
from realtime.wire import json_fields
from realtime.wire.base import ReconfigurationError, ResumableWire, Resumption, WireFormat
from realtime.wire.gemini import GeminiOptions, GeminiWire

NAMES = ["gemini/text_in_audio_out_turn", "gemini/tool_call_round"]
MODEL = "gemini-2.5-flash-native-audio-preview-09-2025"
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="
PICTURE = ImageContent(url=PIXEL)


def make(**options):
    return GeminiWire(GeminiOptions(model=MODEL, **options), prefix="g1")


def encode(command, wire=None):
    return [json.loads(message) for message in (wire or make()).encode(command)]


def setup(wire=None, **settings):
    (message,) = encode(ConfigureSession(command_id="k1", **settings), wire)
    return message["setup"]


def create(wire, *args, **kwargs):
    message = ChatMessage(*args, **kwargs)
    return encode(CreateItem(command_id="k", message=message, item_ids=("i1", "i2")), wire)


@pytest.mark.parametrize("name", NAMES)
def test_a_real_conversation_is_understood_whole(recorded, name):
    assert isinstance(make(), WireFormat)
    events = check_wire_format(make, recorded(name).texts(), damaged=1500)
    assert not [event for event in events if isinstance(event, (ModelFault, UnknownReport))]
    assert [event for event in events if isinstance(event, OutputAudio)]


@pytest.mark.parametrize("name", NAMES)
def test_a_connection_is_set_up_as_recorded(recorded, name):
    wanted = recorded(name).sent[0]["setup"]
    declared = wanted.pop("tools", [{"functionDeclarations": []}])[0]["functionDeclarations"]
    tools = tuple(ToolSpec(name=tool["name"], description=tool["description"]) for tool in declared)
    sent = setup(instructions=wanted["systemInstruction"]["parts"][0]["text"], tools=tools)
    given = sent.pop("tools", [{"functionDeclarations": []}])[0]["functionDeclarations"]
    assert sent == {**wanted, "sessionResumption": {}, "contextWindowCompression": {"slidingWindow": {}}}
    assert [(tool["name"], tool["description"]) for tool in given] == [(tool.name, tool.description) for tool in tools]


class TestSetup:
    def test_every_option_has_its_field(self):
        options = {
            "voice": "Kore",
            "language": "de-DE",
            "temperature": 0.3,
            "max_output_tokens": 200,
            "turn_coverage": "all",
            "media_resolution": "low",
            "reasoning_effort": "low",
            "thinking_budget": 0,
            "transcription_language": "de",
            "truncation": 0.5,
            "context_window": 1000,
        }
        parameters = {"type": "object", "properties": {"id": {"type": "integer"}}}
        sent = setup(make(**options), tools=(ToolSpec(name="look", parameters=parameters),))
        assert sent["generationConfig"] == {
            "responseModalities": ["AUDIO"],
            "speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}, "languageCode": "de-DE"},
            "temperature": 0.3,
            "maxOutputTokens": 200,
            "mediaResolution": "MEDIA_RESOLUTION_LOW",
            "thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 0},
        }
        assert sent["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == parameters
        assert sent["realtimeInputConfig"] == {"turnCoverage": "TURN_INCLUDES_ALL_INPUT"}
        assert sent["contextWindowCompression"] == {"slidingWindow": {"targetTokens": 500}}
        assert sent["inputAudioTranscription"] == {"languageCodes": ["de"]}
        assert "systemInstruction" not in sent
        assert "inputAudioTranscription" not in setup(transcription=None)
        assert "contextWindowCompression" not in setup(make(truncation="disabled"))

    @pytest.mark.parametrize(
        "wrong",
        [
            {"max_output_tokens": 0},
            {"temperature": 3},
            {"thinking_budget": -1},
            {"turn_coverage": "some"},
            {"media_resolution": "huge"},
            {"reasoning_effort": "xhigh"},
            {"truncation": "some"},
            {"truncation": 2.0, "context_window": 100},
            {"truncation": 0.5},
        ],
    )
    def test_what_cannot_be_is_refused_by_name(self, wrong):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            make(**wrong)

    def test_the_agents_voice_comes_first_and_text_needs_no_transcript(self):
        sent = setup(make(voice="Kore"), voice="Puck", output="text")
        assert sent["generationConfig"]["speechConfig"]["voiceConfig"]["prebuiltVoiceConfig"]["voiceName"] == "Puck"
        assert sent["generationConfig"]["responseModalities"] == ["TEXT"]
        assert "outputAudioTranscription" not in sent

    @pytest.mark.parametrize(
        ("settings", "config"),
        [
            (TurnDetection(mode="manual"), {"automaticActivityDetection": {"disabled": True}}),
            (
                TurnDetection(silence_ms=400, prefix_padding_ms=100, threshold=0.8, interrupt_response=False),
                {
                    "automaticActivityDetection": {
                        "silenceDurationMs": 400,
                        "prefixPaddingMs": 100,
                        "startOfSpeechSensitivity": "START_SENSITIVITY_LOW",
                    },
                    "activityHandling": "NO_INTERRUPTION",
                },
            ),
        ],
    )
    def test_turn_detection(self, settings, config):
        assert setup(turn_detection=settings)["realtimeInputConfig"] == config

    @pytest.mark.parametrize("settings", [TurnDetection(mode="semantic"), TurnDetection(create_response=False)])
    def test_turns_that_it_cannot_take_so_are_refused(self, settings):
        with pytest.raises(UserError, match="Gemini"):
            setup(turn_detection=settings)

    def test_what_a_connection_was_set_up_with_stays(self):
        wire = make()
        setup(wire, instructions="One.")
        assert encode(ConfigureSession(command_id="k2", instructions="One."), wire) == []
        with pytest.raises(ReconfigurationError, match="anew"):
            wire.encode(ConfigureSession(command_id="k3", instructions="Two."))


class TestResumption:
    """L1, B34: the newest handle, if there is one."""

    def saved(self, wire, handle="h1"):
        wire.decode(json.dumps({"sessionResumptionUpdate": {"newHandle": handle, "resumable": True}}))

    def test_without_a_handle_there_is_none(self):
        wire = make()
        assert isinstance(wire, ResumableWire)
        assert setup(wire)["sessionResumption"] == {}
        assert wire.resumption() is None

    def test_the_newest_handle_takes_it_up_again(self):
        wire = make()
        self.saved(wire)
        self.saved(wire, "h2")
        create(wire, "user", "Hi")
        resumption = wire.resumption()
        assert resumption.handle == "h2"
        assert "h2" not in repr(resumption)
        again = GeminiWire(GeminiOptions(model=MODEL), prefix="g2", resumption=resumption)
        assert setup(again, earlier_items=2)["sessionResumption"] == {"handle": "h2"}
        assert again.decode('{"setupComplete":{}}') == [SessionUpdated(resumed=True)]
        (told,) = create(again, "user", "Hi")
        assert told["clientContent"]["turnComplete"] is False

    def test_a_configuration_that_is_the_same_is_not_told_again_and_its_handle_is_not_part_of_it(self):
        wire = GeminiWire(GeminiOptions(model=MODEL), prefix="g2", resumption=Resumption(handle="h"))
        setup(wire, instructions="One.")
        assert encode(ConfigureSession(command_id="k2", instructions="One.", earlier_items=3), wire) == []

    def test_where_nothing_can_be_told_quietly_only_a_current_handle_will_do(self):
        wire = make(history_first=True)
        self.saved(wire)
        assert wire.resumption().handle == "h1"
        create(wire, "user", "", images=(PICTURE,), source="camera")
        assert wire.resumption().handle == "h1"
        create(wire, "user", "Hi")
        assert wire.resumption() is None
        self.saved(wire, "h2")
        assert wire.resumption().handle == "h2"


class TestHistoryFirst:
    """Gemini 3.1 and later: content is an earlier conversation, what is typed later is typed."""

    def wire(self, earlier=0):
        wire = make(history_first=True)
        sent = setup(wire, earlier_items=earlier)
        assert sent.get("historyConfig") == ({"initialHistoryInClientContent": True} if earlier else None)
        return wire

    def test_an_earlier_conversation_is_told_first_and_then_closed(self):
        wire = self.wire(earlier=2)
        (first,) = create(wire, "user", "Hi")
        assert first["clientContent"]["turnComplete"] is False
        second, end = create(wire, "assistant", "Hello.")
        assert second["clientContent"]["turns"][0]["role"] == "model"
        assert end == {"clientContent": {"turnComplete": True}}
        assert create(wire, "user", "Now?") == []
        assert encode(CreateResponse(command_id="k"), wire) == [{"realtimeInput": {"text": "Now?"}}]

    def test_a_history_may_be_announced_twice_and_counts_from_the_last_time(self):
        """A connection that is prepared for a hand-off is told whom to be before it is told what was said."""
        wire = self.wire(earlier=3)
        assert encode(ConfigureSession(command_id="k2", earlier_items=1), wire) == []
        first, end = create(wire, "user", "Hi")
        assert first["clientContent"]["turns"]
        assert end == {"clientContent": {"turnComplete": True}}

    def test_a_history_that_was_announced_and_is_none_is_closed(self):
        wire = self.wire(earlier=2)
        assert encode(ConfigureSession(command_id="k2"), wire) == [{"clientContent": {"turnComplete": True}}]

    def test_a_history_that_was_not_announced_needs_another_connection(self):
        with pytest.raises(ReconfigurationError):
            encode(ConfigureSession(command_id="k2", earlier_items=1), self.wire())

    def test_a_history_whose_last_message_cannot_be_said_is_closed_by_what_comes_next(self):
        wire = self.wire(earlier=1)
        with pytest.raises(UserError, match="transcript"):
            create(wire, "user", "", audio=AudioContent(wav_bytes(bytes(320), 16_000)))
        end, sound = encode(AppendAudio(command_id="k", pcm=bytes(4)), wire)
        assert end == {"clientContent": {"turnComplete": True}}
        assert "audio" in sound["realtimeInput"]

    def test_frames_of_an_earlier_conversation_are_part_of_it(self):
        wire = self.wire(earlier=1)
        told, _ = create(wire, "user", "", images=(PICTURE,), source="camera")
        assert told["clientContent"]["turns"][0]["parts"][0]["inlineData"]["mimeType"] == "image/png"

    def test_text_waits_until_a_reply_is_asked_for(self):
        wire = self.wire()
        (shown,) = create(wire, "user", "Look.", images=(PICTURE,))
        assert "video" in shown["realtimeInput"]
        assert create(wire, "system", "It is noon.") == []
        (asked,) = encode(CreateResponse(command_id="k", instructions="Be brief."), wire)
        assert asked["realtimeInput"]["text"] == "Look.\n<system>It is noon.</system>\n<system>Be brief.</system>"
        assert encode(CreateResponse(command_id="k"), wire) == []

    def test_asked_to_speak_with_nothing_said_it_is_told_that_the_user_waits(self):
        (asked,) = encode(CreateResponse(command_id="k"), self.wire())
        assert "waits" in asked["realtimeInput"]["text"]


class TestAsking:
    def test_a_tools_output_is_answered_without_being_asked(self):
        wire = make()
        wire.decode(json.dumps({"toolCall": {"functionCalls": [{"id": "c1", "name": "look"}]}}))
        create(wire, "tool", "two cats", tool_call_id="c1")
        encode(AppendAudio(command_id="k", pcm=bytes(4)), wire)
        assert encode(CreateResponse(command_id="k"), wire) == []

    def test_after_its_answer_it_can_be_asked_again(self):
        wire = make()
        wire.decode(json.dumps({"toolCall": {"functionCalls": [{"id": "c1", "name": "look"}]}}))
        create(wire, "tool", "two cats", tool_call_id="c1")
        wire.decode('{"serverContent":{"outputTranscription":{"text":"Two."},"turnComplete":true}}')
        assert encode(CreateResponse(command_id="k"), wire) == [{"clientContent": {"turnComplete": True}}]

    def test_instructions_for_one_reply_are_told_with_it(self):
        turn = {"role": "user", "parts": [{"text": "<system>Say yes.</system>"}]}
        assert encode(CreateResponse(command_id="k", instructions="Say yes.")) == [
            {"clientContent": {"turns": [turn], "turnComplete": True}}
        ]


class TestSound:
    def test_sound_goes_at_its_rate_in_pieces(self):
        data = bytes(range(250)) * 600
        messages = encode(AppendAudio(command_id="k", pcm=data))
        blobs = [message["realtimeInput"]["audio"] for message in messages]
        assert {blob["mimeType"] for blob in blobs} == {"audio/pcm;rate=16000"}
        assert b"".join(base64.b64decode(blob["data"]) for blob in blobs) == data
        assert len(blobs) > 1

    @pytest.mark.parametrize("is_fast", [True, False])
    @given(pcm=st.binary(max_size=2_000))
    def test_sound_is_written_as_json_would_write_it(self, is_fast, pcm):
        wire = make()
        with pytest.MonkeyPatch.context() as patch:
            if not is_fast:
                patch.setattr("realtime.wire.gemini.encode_base64", json_fields._plain_encode)
            [message] = wire.encode(AppendAudio(command_id="k", pcm=pcm))
        audio = {"data": base64.b64encode(pcm).decode(), "mimeType": "audio/pcm;rate=16000"}
        assert message == json.dumps({"realtimeInput": {"audio": audio}}, separators=(",", ":"))
        assert wire.statistics().encoded == 1

    @pytest.mark.parametrize("is_fast", [True, False])
    def test_a_picture_is_written_as_json_would_write_it(self, is_fast, monkeypatch):
        if not is_fast:
            monkeypatch.setattr("realtime.wire.gemini_turns.encode_base64", json_fields._plain_encode)
        shown = ChatMessage(ChatRole.USER, "", "m", images=(PICTURE,), source="camera", created_at=1.0)
        [message] = make().encode(CreateItem(command_id="k", message=shown, item_ids=("m",)))
        video = {"data": base64.b64encode(PICTURE.data).decode(), "mimeType": "image/png"}
        assert message == json.dumps({"realtimeInput": {"video": video}}, separators=(",", ":"))

    def test_push_to_talk_marks_where_activity_begins_and_ends(self):
        wire = make()
        setup(wire, turn_detection=TurnDetection(mode="manual"))
        assert encode(CommitAudio(command_id="k"), wire) == []
        sent = [
            *encode(AppendAudio(command_id="k", pcm=bytes(4)), wire),
            *encode(AppendAudio(command_id="k", pcm=bytes(4)), wire),
        ]
        assert [next(iter(message["realtimeInput"])) for message in sent] == ["activityStart", "audio", "audio"]
        assert encode(CommitAudio(command_id="k"), wire) == [{"realtimeInput": {"activityEnd": {}}}]
        assert encode(CreateResponse(command_id="k"), wire) == []

    def test_with_turn_detection_a_commit_ends_the_stream(self):
        assert encode(CommitAudio(command_id="k")) == [{"realtimeInput": {"audioStreamEnd": True}}]


class TestTurns:
    def test_a_typed_turn_is_said_and_then_completed(self):
        wire = make()
        turn = {"role": "user", "parts": [{"text": "Hi"}]}
        assert create(wire, "user", "Hi") == [{"clientContent": {"turns": [turn], "turnComplete": False}}]
        assert encode(CreateResponse(command_id="k"), wire) == [{"clientContent": {"turnComplete": True}}]
        assert encode(CreateResponse(command_id="k"), wire) == []

    def test_a_frame_goes_as_video(self):
        (message,) = create(make(), "user", "", images=(PICTURE,), source="camera")
        assert message["realtimeInput"]["video"]["mimeType"] == "image/png"
        assert base64.b64decode(message["realtimeInput"]["video"]["data"]) == PICTURE.data

    @pytest.mark.parametrize(("age", "seen"), [(9.0, True), (11.0, False), (None, True)])
    def test_a_typed_turn_is_given_the_newest_picture_of_the_last_ten_seconds(self, age, seen):
        wire = make()
        create(wire, "user", "", images=(PICTURE,), source="camera", created_at=100.0)
        created = None if age is None else 100.0 + age
        (message,) = create(wire, "user", "What is this?", created_at=created)
        parts = message["clientContent"]["turns"][0]["parts"]
        assert ["inlineData" in part for part in parts] == ([True, False] if seen else [False])
        (again,) = create(wire, "user", "And now?", created_at=created)
        assert len(again["clientContent"]["turns"][0]["parts"]) == 1

    def test_each_role_has_its_turn(self):
        wire = make()
        calls = (FunctionCall("look", '{"id":7}', "c1"),)
        sent = [
            create(wire, "system", "The shop is closed.")[0],
            create(wire, "assistant", "I look.", tool_calls=calls)[0],
            create(wire, "tool", "on its way", tool_call_id="c1", tool_name="look")[0],
            create(wire, "assistant", "Once", interrupted=True)[0],
        ]
        turns = [
            (turn["role"], [part["text"] for part in turn["parts"]])
            for message in sent
            for turn in message["clientContent"]["turns"]
        ]
        assert turns == [
            ("user", ["<system>The shop is closed.</system>"]),
            ("model", ["I look.", '[called look({"id":7})]']),
            ("user", ["[look gave: on its way]"]),
            ("model", ["Once [interrupted by the user]"]),
        ]
        assert not any(message["clientContent"]["turnComplete"] for message in sent)

    def test_a_message_with_nothing_in_it_is_not_said(self):
        assert create(make(), "user", "") == []

    def test_a_result_answers_its_call_with_its_pictures(self):
        wire = make()
        call = {"id": "c1", "name": "look", "args": {}}
        wire.decode(json.dumps({"toolCall": {"functionCalls": [call]}}))
        (message,) = create(wire, "tool", "two cats", tool_call_id="c1", images=(PICTURE,))
        (response,) = message["toolResponse"]["functionResponses"]
        assert (response["id"], response["name"], response["response"]) == ("c1", "look", {"output": "two cats"})
        assert response["parts"][0]["inlineData"]["mimeType"] == "image/png"
        (message,) = create(wire, "tool", "no such cat", tool_call_id="c1", is_error=True)
        assert message["toolResponse"]["functionResponses"][0]["response"] == {"error": "no such cat"}

    def test_what_it_cannot_do_is_refused(self):
        wire = make()
        refused = [
            ClearAudio(command_id="k"),
            DeleteItem(command_id="k", item_id="i"),
            TruncateItem(command_id="k", item_id="i", content_index=0, audio_end_ms=1),
        ]
        for command in refused:
            with pytest.raises(UserError, match="Gemini"):
                wire.encode(command)
        with pytest.raises(UserError, match="by address"):
            create(wire, "user", "Look", images=(ImageContent(url="https://example.org/cat.png"),))
        with pytest.raises(UserError, match="transcript"):
            create(wire, "user", "", audio=AudioContent(wav_bytes(bytes(320), 16_000)))
        assert encode(CancelResponse(command_id="k", response_id="r"), wire) == []


def test_statistics_count_both_directions():
    wire = make()
    wire.encode(CommitAudio(command_id="k"))
    wire.decode('{"tomorrow":{}}')
    wire.decode("{")
    counted = wire.statistics()
    assert (counted.encoded, counted.decoded, counted.malformed, counted.unknown) == (1, 2, 1, {"tomorrow": 1})


def test_the_role_of_a_message_is_any():
    for role in ChatRole:
        create(make(), role, "x")
