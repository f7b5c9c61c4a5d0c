"""session.update: what it may say, and OpenAI's codes for what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from realtime.errors import ModelError
from realtime.local.config import SessionConfiguration, TurnTaking
from realtime.local.endpointing import EndpointingSettings

DEFAULT = TurnTaking(endpointing=EndpointingSettings(silence_ms=250))


def update(
    session: dict[str, Any], *, base: SessionConfiguration | None = None, spoken: bool = False
) -> SessionConfiguration:
    given = {"type": "realtime", **session}
    return (base or SessionConfiguration()).updated(given, default_turn_taking=DEFAULT, spoken=spoken)


def tool(name: str = "get_weather", **fields: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}, **fields}


def test_every_field_is_taken_and_reported() -> None:
    changed = update(
        {
            "instructions": "Be brief.",
            "output_modalities": ["text"],
            "tools": [tool(description="Looks it up.")],
            "tool_choice": {"type": "function", "name": "get_weather"},
            "max_output_tokens": 100,
            "truncation": {"type": "retention_ratio", "retention_ratio": 0.8},
            "audio": {
                "input": {
                    "format": {"type": "audio/pcmu"},
                    "transcription": {"model": "whisper-1", "language": "en"},
                    "noise_reduction": {"type": "near_field"},
                    "turn_detection": {
                        "type": "server_vad",
                        "threshold": 0.7,
                        "prefix_padding_ms": 200,
                        "silence_duration_ms": 400,
                        "idle_timeout_ms": 6000,
                        "create_response": False,
                        "interrupt_response": False,
                    },
                },
                "output": {"format": {"type": "audio/pcma"}, "voice": "marin", "speed": 1.2},
            },
        }
    )
    wire = changed.to_wire(session_id="sess_1", model="rules", expires_at=5)
    assert wire == {
        "type": "realtime",
        "object": "realtime.session",
        "id": "sess_1",
        "model": "rules",
        "expires_at": 5,
        "instructions": "Be brief.",
        "output_modalities": ["text"],
        "tools": [tool(description="Looks it up.")],
        "tool_choice": {"type": "function", "name": "get_weather"},
        "max_output_tokens": 100,
        "truncation": {"type": "retention_ratio", "retention_ratio": 0.8},
        "audio": {
            "input": {
                "format": {"type": "audio/pcmu"},
                "transcription": {"model": "whisper-1", "language": "en", "prompt": None},
                "noise_reduction": {"type": "near_field"},
                "turn_detection": {
                    "type": "server_vad",
                    "threshold": 0.7,
                    "prefix_padding_ms": 200,
                    "silence_duration_ms": 400,
                    "idle_timeout_ms": 6000,
                    "create_response": False,
                    "interrupt_response": False,
                },
            },
            "output": {"format": {"type": "audio/pcma"}, "voice": "marin", "speed": 1.2},
        },
    }
    assert changed.language == "en"


def test_what_is_left_out_stays() -> None:
    base = update({"instructions": "Be brief.", "audio": {"output": {"speed": 1.3}}})
    changed = update({"audio": {"input": {"turn_detection": None}}}, base=base)
    assert changed.instructions == "Be brief."
    assert changed.speed == 1.3
    assert changed.turn_taking is None


def test_turn_detection_is_replaced_whole_with_the_servers_defaults() -> None:
    base = update({"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 0.9}}}})
    changed = update({"audio": {"input": {"turn_detection": {"type": "server_vad"}}}}, base=base)
    assert changed.turn_taking == DEFAULT


def test_semantic_turn_detection() -> None:
    changed = update({"audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "high"}}}})
    assert changed.turn_taking is not None
    assert changed.turn_taking.endpointing.semantic == "high"
    assert changed.turn_taking.to_wire() == {
        "type": "semantic_vad",
        "eagerness": "high",
        "create_response": True,
        "interrupt_response": True,
    }


def test_a_forced_tool_that_is_no_longer_offered_is_let_go() -> None:
    base = update({"tools": [tool("a"), tool("b")], "tool_choice": {"type": "function", "name": "a"}})
    assert update({"tools": [tool("b")]}, base=base).tool_choice == "auto"


def test_the_voice_cannot_change_once_it_has_spoken() -> None:
    base = update({"audio": {"output": {"voice": "alloy"}}})
    assert update({"audio": {"output": {"voice": "alloy"}}}, base=base, spoken=True).voice == "alloy"
    with pytest.raises(ModelError) as refusal:
        update({"audio": {"output": {"voice": "echo"}}}, base=base, spoken=True)
    assert refusal.value.code == "cannot_update_voice"


def audio_input(**fields: Any) -> dict[str, Any]:
    return {"audio": {"input": fields}}


def audio_output(**fields: Any) -> dict[str, Any]:
    return {"audio": {"output": fields}}


@pytest.mark.parametrize(
    ("session", "code", "param"),
    [
        ({"type": None}, "missing_required_parameter", "session.type"),
        ({"type": "transcription"}, "invalid_value", "session.type"),
        ({"modalities": ["text"]}, "unknown_parameter", "session.modalities"),
        ({"voice": "alloy"}, "unknown_parameter", "session.voice"),
        ({"instructions": 5}, "invalid_type", "session.instructions"),
        ({"output_modalities": ["text", "audio"]}, "invalid_value", "session.output_modalities"),
        ({"output_modalities": "text"}, "invalid_type", "session.output_modalities"),
        ({"max_output_tokens": 0}, "invalid_value", "session.max_output_tokens"),
        ({"max_output_tokens": "many"}, "invalid_type", "session.max_output_tokens"),
        ({"truncation": "never"}, "invalid_value", "session.truncation"),
        (
            {"truncation": {"type": "retention_ratio"}},
            "missing_required_parameter",
            "session.truncation.retention_ratio",
        ),
        ({"tools": [{"type": "mcp"}]}, "invalid_value", "session.tools[0].type"),
        ({"tools": [tool(), tool()]}, "invalid_value", "session.tools[1].name"),
        ({"tools": [tool("no spaces")]}, "invalid_value", "session.tools[0].name"),
        ({"tools": [{"type": "function"}]}, "missing_required_parameter", "session.tools[0].name"),
        ({"tools": [7]}, "invalid_type", "session.tools[0]"),
        ({"tools": [tool(f"t{n}") for n in range(129)]}, "invalid_value", "session.tools"),
        ({"tool_choice": "maybe"}, "invalid_value", "session.tool_choice"),
        ({"tool_choice": {"type": "function", "name": "absent"}}, "invalid_value", "session.tool_choice"),
        ({"audio": []}, "invalid_type", "session.audio"),
        (audio_input(format={"type": "audio/opus"}), "invalid_value", "session.audio.input.format.type"),
        (audio_input(format={"type": "audio/pcm", "rate": 16000}), "invalid_value", "session.audio.input.format.rate"),
        (audio_input(format="pcm16"), "invalid_type", "session.audio.input.format"),
        (audio_input(noise_reduction={"type": "strong"}), "invalid_value", "session.audio.input.noise_reduction.type"),
        (audio_input(turn_detection={}), "missing_required_parameter", "session.audio.input.turn_detection.type"),
        (audio_input(turn_detection="server_vad"), "invalid_type", "session.audio.input.turn_detection"),
        (audio_input(turn_detection={"type": "vad"}), "invalid_value", "session.audio.input.turn_detection.type"),
        (
            audio_input(turn_detection={"type": "server_vad", "threshold": 2}),
            "invalid_value",
            "session.audio.input.turn_detection.threshold",
        ),
        (
            audio_input(turn_detection={"type": "server_vad", "silence_duration_ms": 0.5}),
            "invalid_type",
            "session.audio.input.turn_detection.silence_duration_ms",
        ),
        (
            audio_input(turn_detection={"type": "server_vad", "idle_timeout_ms": 100}),
            "invalid_value",
            "session.audio.input.turn_detection.idle_timeout_ms",
        ),
        (
            audio_input(turn_detection={"type": "server_vad", "create_response": None}),
            "invalid_type",
            "session.audio.input.turn_detection.create_response",
        ),
        (
            audio_input(turn_detection={"type": "semantic_vad", "eagerness": "very"}),
            "invalid_value",
            "session.audio.input.turn_detection.eagerness",
        ),
        (audio_output(voice="nobody"), "invalid_value", "session.audio.output.voice"),
        (audio_output(voice={"id": "voice_1"}), "invalid_value", "session.audio.output.voice"),
        (audio_output(speed=3), "invalid_value", "session.audio.output.speed"),
        (audio_output(volume=3), "unknown_parameter", "session.audio.output.volume"),
    ],
)
def test_what_cannot_be_is_refused_by_its_full_name(session: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(ModelError) as refusal:
        update(session)
    assert (refusal.value.code, refusal.value.param) == (code, param)
    assert param in refusal.value.message or code == "invalid_value"
