"""Conversations with real servers where the recordings are beside the checkout, the same ones by script otherwise."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from realtime.testing import openai_script as script


class Recording(NamedTuple):
    """What each side said on one connection, in order."""

    sent: list[dict[str, Any]]
    received: list[dict[str, Any]]

    def texts(self) -> list[str]:
        return [json.dumps(message, ensure_ascii=False) for message in self.received]


def _config(instructions: str, *modalities: str, tools: list[Any] | None = None) -> dict[str, Any]:
    pcm = {"type": "audio/pcm", "rate": 24000}
    session = {
        "type": "realtime",
        "instructions": instructions,
        "output_modalities": list(modalities),
        "audio": {
            "input": {
                "format": pcm,
                "turn_detection": {"type": "server_vad", "create_response": True, "interrupt_response": True},
                "transcription": {"model": "gpt-realtime-whisper"},
            },
            "output": {"format": pcm},
        },
    }
    return {"type": "session.update", "session": session | ({"tools": tools} if tools else {})}


_ODD = bytes(range(33))
_WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def _usage(inputs: int, outputs: int, cached: int = 0, spoken: int = 0) -> dict[str, Any]:
    return {
        "total_tokens": inputs + outputs,
        "input_tokens": inputs,
        "output_tokens": outputs,
        "input_token_details": {"text_tokens": inputs, "cached_tokens": cached},
        "output_token_details": {"audio_tokens": spoken},
    }


def _user(item_id: str, text: str) -> dict[str, Any]:
    return {"id": item_id, "type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def _spoken_turn(greeting: str, text: str) -> Recording:
    received = [
        *script.session_created(expires_at=1_785_217_650),
        *script.session_updated(),
        *script.item_created(_user("item_u", greeting), None),
        *script.spoken_reply(
            "resp_1",
            "item_a",
            text,
            _ODD * 3,
            previous_item_id="item_u",
            chunk_bytes=33,
            usage=_usage(16, 98, spoken=82),
        ),
    ]
    return Recording([_config("Answer in two or three words.", "audio")], received)


def _gemini_turn(*, with_tool: bool) -> Recording:
    """What Gemini says of a typed turn: nothing is named, and thoughts come first."""
    audio = {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": base64.b64encode(_ODD).decode()}}
    thought = {"text": "**Crafting a Greeting**", "thought": True}
    call = {
        "name": "record_reading",
        "args": {"zqx_measurement": 5, "qbf_note": "steady"},
        "id": "function-call-3225422447732038294",
    }
    words = ["I have", " recorded", ' a reading of 5 with the note "steady."'] if with_tool else ["Hello there."]
    counts = (1267, 103, 81) if with_tool else (1131, 26, 26)
    usage = {
        "promptTokenCount": counts[0],
        "responseTokenCount": counts[1],
        "totalTokenCount": counts[0] + counts[1],
        "responseTokensDetails": [{"modality": "AUDIO", "tokenCount": counts[2]}],
    }
    received: list[Any] = [
        {"setupComplete": {}},
        {"toolCall": {"functionCalls": [call]}}
        if with_tool
        else {"serverContent": {"modelTurn": {"parts": [thought]}}},
        *({"serverContent": {"outputTranscription": {"text": text}}} for text in words),
        *({"serverContent": {"modelTurn": {"parts": [audio]}}} for _ in range(3)),
        {"serverContent": {"generationComplete": True}},
        {"serverContent": {"turnComplete": True}, "usageMetadata": usage},
    ]
    instructions = "Answer in two or three words."
    setup = {
        "model": "models/gemini-2.5-flash-native-audio-preview-09-2025",
        "generationConfig": {"responseModalities": ["AUDIO"]},
        "systemInstruction": {"parts": [{"text": instructions}], "role": "user"},
        "inputAudioTranscription": {},
        "outputAudioTranscription": {},
    }
    return Recording([{"setup": setup}], received)


def _xai_turn(*, with_tool: bool) -> Recording:
    """What xAI says otherwise: places unknown, usage beside the response, items under its own ids."""
    call_id = "call-af8ed632-2074-4b5f-b719-7aa47250d3c6-0"
    texts = ["I'll check the weather for London right away.", "It is foggy and 12 degrees in London."]
    received: list[Any] = [
        *script.session_created(),
        {"type": "conversation.created"},
        {"type": "ping"},
        *script.session_updated(),
        *script.item_created(_user("item_u", "What is the weather in London?"), None)[:1],
    ]
    if with_tool:
        said = script.spoken_reply("resp_1", "item_a", texts[0], _ODD * 2, previous_item_id="item_u", chunk_bytes=33)
        call = script.tool_call("resp_1", "item_c", call_id, "get_weather", '{"city":"London"}')
        output = {"id": "item_o", "type": "function_call_output", "call_id": call_id, "role": "tool", "output": "…"}
        received += [*said[:-1], *call[1:], *script.item_created(output, None)[:1]]
    previous = "item_o" if with_tool else "item_u"
    text = texts[1] if with_tool else "Hello there!"
    received += script.spoken_reply("resp_2", "item_b", text, _ODD * 3, previous_item_id=previous, chunk_bytes=33)
    for message in received:
        message.setdefault("previous_item_id", None)
        if message["type"] == "response.done":
            message["usage"] = {
                "input_tokens": 5,
                "output_tokens": 42,
                "total_tokens": 47,
                "output_token_details": {"audio_tokens": 39},
            }
            message["response"] |= {"usage": {}, "status_details": "unimplemented"}
    pcm = {"type": "audio/pcm", "rate": 24000}
    session: dict[str, Any] = {
        "instructions": "Use the get_weather tool for any weather question, then answer in one short sentence.",
        "turn_detection": {"type": "server_vad", "create_response": True, "interrupt_response": True},
        "audio": {"input": {"format": pcm, "transcription": {"model": "grok-transcribe"}}, "output": {"format": pcm}},
    }
    return Recording([{"type": "session.update", "session": session}], received)


def _by_script(name: str) -> Recording:
    """The recorded conversation of that name, as a script: the same words in the same order."""
    start = [*script.session_created(expires_at=1_785_217_650), *script.session_updated()]
    if name == "openai/audio_in_server_vad_turn":
        reply = script.spoken_reply(
            "resp_1",
            "item_a",
            "Hello, Robin! Great to meet you. How can I help you today?",
            _ODD * 4,
            previous_item_id="item_u",
            chunk_bytes=33,
            usage=_usage(30, 40, spoken=30),
        )
        heard = script.user_transcript("item_u", "Hello, my name is Robin.")
        received = [*start, *script.user_speech("item_u", start_ms=1460, end_ms=4256), *reply[:6], *heard, *reply[6:]]
        return Recording([_config("Reply in a few words.", "audio")], received)
    if name == "openai/tool_call_round":
        call = script.tool_call(
            "resp_1", "item_c", "call_uMNE0Myi2tDTPu0w", "get_weather", '{"city": "London"}', previous_item_id="item_u"
        )
        answer = script.written_reply(
            "resp_2",
            "item_a",
            "It is foggy and 12 degrees in London.",
            previous_item_id="item_o",
            usage=_usage(103, 13, cached=64),
        )
        output = {"id": "item_o", "type": "function_call_output", "call_id": "call_uMNE0Myi2tDTPu0w", "output": "…"}
        asked = script.item_created(_user("item_u", "What is the weather in London?"), None)
        received = [*start, *asked, *call, *script.item_created(output, "item_c"), *answer]
        instructions = "Use the get_weather tool for any weather question, then answer in one short sentence."
        return Recording([_config(instructions, "text", tools=[_WEATHER])], received)
    if name.startswith("gemini/"):
        return _gemini_turn(with_tool="tool" in name)
    if name.startswith("xai/"):
        return _xai_turn(with_tool="tool" in name)
    if name == "openai/text_in_audio_out_turn":
        return _spoken_turn("Say a short greeting.", "Hi there!")
    assert name == "azure/text_in_audio_out_turn"
    return _spoken_turn("Say a short greeting.", "Hello there! Great to meet you!")


@pytest.fixture(scope="session")
def recorded(shared: Path | None) -> Callable[[str], Recording]:
    """Give a conversation by its name, such as `openai/tool_call_round`."""

    def load(name: str) -> Recording:
        if shared is None:
            return _by_script(name)
        interactions = json.loads((shared / "wire" / f"{name}.json").read_text("utf-8"))["interactions"]
        said: dict[str, list[dict[str, Any]]] = {"sent": [], "received": []}
        for interaction in interactions:
            if interaction["kind"] == "message":
                said[interaction["direction"]].append(interaction["data"])
        return Recording(said["sent"], said["received"])

    return load
