"""Gemini Live: what it says, and the turns that it does not name."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.core.model_events import (
    ConversationSaved,
    ExpiryAnnounced,
    InputCommitted,
    InputTranscriptDone,
    InputTranscriptUpdated,
    ItemAdded,
    ModelFault,
    OutputAudio,
    OutputItemDone,
    OutputItemStarted,
    OutputTextDone,
    OutputTextUpdated,
    ResponseEnded,
    ResponseStarted,
    SessionReady,
    SessionUpdated,
    SpeechBegan,
    SpeechEnded,
    ThinkingUpdated,
    ToolCallDone,
)
from realtime.wire.gemini_decode import GREETING, GeminiDecoder


def decode(*messages, decoder=None):
    decoder = decoder or GeminiDecoder("g")
    return [event for message in messages for event in decoder.decode(json.dumps(message).encode())]


def content(**fields):
    return {"serverContent": fields}


def audio(pcm):
    blob = {"mimeType": "audio/pcm;rate=24000", "data": base64.b64encode(pcm).decode()}
    return content(modelTurn={"parts": [{"inlineData": blob}]})


def of_type(events, *kinds):
    return [event for event in events if isinstance(event, kinds)]


DONE = content(turnComplete=True)


def test_the_opening_is_ours_and_the_setup_is_gemini_s():
    decoder = GeminiDecoder("g")
    assert decoder.decode(GREETING) == [SessionReady()]
    assert decode({"setupComplete": {}}, decoder=decoder) == [SessionUpdated()]


def test_a_typed_turn_is_answered_in_speech(recorded):
    events = decode(*recorded("gemini/text_in_audio_out_turn").received)
    (said,) = of_type(events, OutputTextDone)
    assert (said.text, said.spoken) == ("Hello there.", True)
    assert "Greeting" in of_type(events, ThinkingUpdated)[0].delta  # a thought is in no transcript
    (ended,) = of_type(events, ResponseEnded)
    assert (ended.status, ended.usage.input_tokens, ended.usage.total_tokens) == ("completed", 1131, 1157)
    assert ended.usage.output_audio_tokens == 26
    (item,) = of_type(events, ItemAdded)  # nobody spoke
    assert (item.role, item.has_place) == ("assistant", False)


def test_a_tool_round_is_two_responses(recorded):
    events = decode(*recorded("gemini/tool_call_round").received)
    (call,) = of_type(events, ToolCallDone)
    assert (call.call_id, call.name) == ("function-call-3225422447732038294", "record_reading")
    assert json.loads(call.arguments) == {"zqx_measurement": 5, "qbf_note": "steady"}
    first, second = of_type(events, ResponseEnded)
    assert call.response_id == first.response_id
    (said,) = of_type(events, OutputTextDone)
    assert said.text == 'I have recorded a reading of 5 with the note "steady."'
    assert said.response_id == second.response_id
    assert (second.usage.input_tokens, second.usage.output_tokens) == (1267, 103)


def test_half_samples_are_carried_within_an_item_and_dropped_at_its_end():
    # A2, B55
    events = decode(audio(b"abc"), audio(b"d"), audio(b"e"), DONE, audio(b"12"))
    chunks = of_type(events, OutputAudio)
    assert [chunk.pcm for chunk in chunks] == [b"ab", b"cd", b"12"]
    assert chunks[0].item_id != chunks[2].item_id


def test_a_spoken_turn_is_complete_when_its_answer_is():
    # H4: from response end to response end
    decoder = GeminiDecoder("g")
    decoder.expects_speech = True
    events = decode(
        content(inputTranscription={"text": " What"}),
        content(inputTranscription={"text": " time?"}),
        content(outputTranscription={"text": "Noon."}),
        content(inputTranscription={"text": " Please."}),
        content(generationComplete=True),
        DONE,
        decoder=decoder,
    )
    user, reply = of_type(events, ItemAdded)
    assert (user.role, reply.role) == ("user", "assistant")
    assert [event.delta for event in of_type(events, InputTranscriptUpdated)] == [" What", " time?", " Please."]
    (committed,) = of_type(events, InputCommitted)
    (heard,) = of_type(events, InputTranscriptDone)
    assert committed.item_id == heard.item_id == user.item_id
    assert heard.text == "What time? Please."
    kinds = [type(event) for event in events]
    assert (
        kinds.index(ItemAdded) < kinds.index(ResponseStarted) < kinds.index(InputCommitted) < kinds.index(ResponseEnded)
    )


def test_speech_without_transcription_is_a_turn_of_its_own():
    decoder = GeminiDecoder("g")
    decoder.expects_speech = True
    events = decode(content(outputTranscription={"text": "Yes."}), DONE, decoder=decoder)
    assert [event.role for event in of_type(events, ItemAdded)] == ["user", "assistant"]
    assert of_type(events, InputTranscriptDone)[0].text == ""
    assert [event.role for event in of_type(decode(audio(b"ab"), decoder=decoder), ItemAdded)] == ["assistant"]


def test_a_typed_turn_carries_its_metadata_and_is_no_speech():
    decoder = GeminiDecoder("g")
    decoder.expects_speech, decoder.is_asked, decoder.metadata = True, True, {"wish": "w1"}
    events = decode(audio(b"ab"), decoder=decoder)
    assert events[0] == ResponseStarted(response_id="g_response1", metadata={"wish": "w1"})
    assert isinstance(events[1], OutputItemStarted)


def test_the_answer_to_a_tools_output_is_no_speech_however_much_silence_was_sent_meanwhile():
    decoder = GeminiDecoder("g")
    decoder.is_asked = True
    decoder.expects_speech = True
    assert not [event for event in decode(audio(b"ab"), decoder=decoder) if getattr(event, "role", "") == "user"]
    decoder.expects_speech = True
    assert [event for event in decode(DONE, audio(b"ab"), decoder=decoder) if getattr(event, "role", "") == "user"]


class TestLife:
    """L1, L3, B34."""

    @pytest.mark.parametrize(("left", "seconds"), [("50s", 50.0), ("0.5s", 0.5), ("soon", 0.0), (None, 0.0)])
    def test_going_away_is_an_announced_end(self, left, seconds):
        message = {"goAway": {} if left is None else {"timeLeft": left}}
        assert decode(message) == [ExpiryAnnounced(seconds_left=seconds)]

    def test_a_handle_says_that_the_conversation_is_saved(self):
        decoder = GeminiDecoder("g")
        update = {"sessionResumptionUpdate": {"newHandle": "h1", "resumable": True}}
        assert decode(update, decoder=decoder) == [ConversationSaved()]
        assert (decoder.handle, decoder.handle_is_current) == ("h1", True)

    def test_while_nothing_can_be_saved_the_handle_before_serves(self):
        decoder = GeminiDecoder("g")
        decode({"sessionResumptionUpdate": {"newHandle": "h1", "resumable": True}}, decoder=decoder)
        assert decode({"sessionResumptionUpdate": {"resumable": False}}, decoder=decoder) == []
        assert decoder.handle == "h1"

    @pytest.mark.parametrize("message", [audio(b"ab"), content(inputTranscription={"text": "Hi"})])
    def test_what_happens_after_it_makes_a_handle_old(self, message):
        decoder = GeminiDecoder("g")
        decode({"sessionResumptionUpdate": {"newHandle": "h1", "resumable": True}}, message, decoder=decoder)
        assert not decoder.handle_is_current

    def test_a_setup_that_resumes_says_so(self):
        assert GeminiDecoder("g", resumes=True).decode('{"setupComplete":{}}') == [SessionUpdated(resumed=True)]

    def test_calls_that_were_cancelled_are_no_longer_waited_for(self):
        decoder = GeminiDecoder("g")
        calls = [{"id": "c1", "name": "a"}, {"id": "c2", "name": "b"}]
        decode({"toolCall": {"functionCalls": calls}}, decoder=decoder)
        decode({"toolCallCancellation": {"ids": ["c1", 7]}}, decoder=decoder)
        assert decoder.calls == {"c2": "b"}


class TestInterruption:
    def test_an_interruption_is_where_the_sound_is_and_cancels_the_reply(self):
        decoder = GeminiDecoder("g")
        decoder.sent_ms = 2500
        events = decode(
            content(outputTranscription={"text": "Once upon"}),
            content(interrupted=True),
            content(inputTranscription={"text": "Stop."}),
            {**DONE, "usageMetadata": {"promptTokenCount": 5, "responseTokenCount": 2}},
            decoder=decoder,
        )
        (began,) = of_type(events, SpeechBegan)
        assert began.at_ms == 2500
        (ended,) = of_type(events, ResponseEnded)
        assert (ended.status, ended.reason, ended.usage.total_tokens) == ("cancelled", "turn_detected", 7)
        assert of_type(events, OutputTextDone)[0].text == "Once upon"
        assert not of_type(events, InputCommitted)  # what interrupts a reply is not what it answers
        later = decode(content(outputTranscription={"text": "Fine."}), DONE, decoder=decoder)
        (heard,) = of_type(later, InputTranscriptDone)
        assert (heard.item_id, heard.text) == (began.item_id, "Stop.")

    def test_without_a_reply_there_is_nothing_to_interrupt(self):
        assert decode(content(interrupted=True)) == []

    def test_reported_speech_is_not_announced_twice(self):
        events = decode(
            audio(b"ab"),
            {"voiceActivity": {"voiceActivityType": "ACTIVITY_START", "audioOffset": "1.25s"}},
            content(interrupted=True),
            {"voiceActivity": {"type": "ACTIVITY_END", "audioOffset": "2s"}},
        )
        (began,) = of_type(events, SpeechBegan)
        (ended,) = of_type(events, SpeechEnded)
        assert (began.at_ms, ended.at_ms) == (1250, 2000)
        assert began.item_id == ended.item_id


def test_written_output_is_no_speech():
    events = decode(
        content(modelTurn={"parts": [{"text": "Hel"}, {"text": "lo"}]}), content(generationComplete=True), DONE
    )
    assert [event.spoken for event in of_type(events, OutputTextUpdated)] == [False, False]
    assert of_type(events, OutputTextDone)[0].text == "Hello"


def test_parallel_calls_are_all_reported_and_one_without_an_id_gets_one():
    calls = [{"name": "a", "id": "c1", "args": {"x": 1}}, {"name": "b"}]
    decoder = GeminiDecoder("g")
    events = decode({"toolCall": {"functionCalls": calls}}, decoder=decoder)
    first, second = of_type(events, ToolCallDone)
    assert (first.arguments, second.arguments) == ('{"x": 1}', "{}")
    assert decoder.calls == {"c1": "a", second.call_id: "b"}
    assert len(of_type(events, OutputItemDone)) == 2
    assert isinstance(events[-1], ResponseEnded)


def test_a_turn_that_ends_for_a_reason_is_incomplete():
    events = decode(audio(b"ab"), content(turnComplete=True, turnCompleteReason="RESPONSE_REJECTED"))
    assert (events[-1].status, events[-1].reason) == ("incomplete", "RESPONSE_REJECTED")


@pytest.mark.parametrize(
    "message",
    [
        content(),
        {"sessionResumptionUpdate": {"resumable": False}},
        {"sessionResumptionUpdate": {"newHandle": "h"}},
        {"toolCallCancellation": {"ids": ["c1"]}},
        {"usageMetadata": {"promptTokenCount": 5}},
        {"toolCall": {}},
        content(waitingForInput=True, interimInputTranscription={"text": "hm"}),
        content(modelTurn={"parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, {}]}),
    ],
)
def test_what_tells_the_core_nothing_is_known(message):
    decoder = GeminiDecoder("g")
    assert decode(message, decoder=decoder) == []
    assert decoder.unknown.counts() == {}


def test_an_error_is_a_fault():
    (fault,) = decode({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "No."}})
    assert (fault.code, fault.message) == ("INVALID_ARGUMENT", "No.")


def test_sound_that_is_no_base64_is_a_fault_and_the_rest_is_read():
    message = {
        **content(modelTurn={"parts": [{"inlineData": {"mimeType": "audio/pcm", "data": "!"}}]}),
        "setupComplete": {},
    }
    fault, ready = decode(message)
    assert isinstance(fault, ModelFault)
    assert ready == SessionUpdated()


def test_ids_of_two_connections_differ():
    assert decode(audio(b"ab"), decoder=GeminiDecoder("g1"))[0] != decode(audio(b"ab"), decoder=GeminiDecoder("g2"))[0]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(
    [
        "serverContent",
        "modelTurn",
        "parts",
        "inlineData",
        "data",
        "mimeType",
        "toolCall",
        "functionCalls",
        "name",
        "args",
        "id",
        "usageMetadata",
        "promptTokensDetails",
        "voiceActivity",
        "turnComplete",
        "interrupted",
        "inputTranscription",
        "text",
    ]
)
nested = st.recursive(
    values, lambda inner: st.dictionaries(names, inner | st.lists(inner, max_size=2), max_size=4), max_leaves=12
)


@given(st.lists(st.dictionaries(names, nested, max_size=3), max_size=6))
def test_any_fields_decode_without_an_exception(messages):
    decoder = GeminiDecoder("g")
    for message in messages:
        decoder.decode(json.dumps(message))
