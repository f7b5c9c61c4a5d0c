"""Real conversations with real providers through a whole session, over a real socket (H1, H5, T2, T3).

The recordings lie beside a checkout; where they do not, scripts of the same conversations take their place.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from realtime import (
    AzureRealtime,
    GeminiLive,
    OpenAIRealtime,
    RealtimeModel,
    RealtimeSession,
    Tool,
    TurnDetection,
    XaiRealtime,
)
from realtime.testing import Expect, Reply, ScriptedModel, openai_script

WEATHER = "It is foggy and 12 degrees in London."
ROBIN = ("Hello, my name is Robin.", "Hello, Robin! Great to meet you. How can I help you today?")


def weather(city: str) -> str:
    """Look up the weather for a city."""
    assert city == "London"
    return WEATHER


def said(session: RealtimeSession) -> list[tuple[str, str]]:
    return [(str(message.role), message.content.strip()) for message in session.all_messages()]


def replay_of(shared: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location("replay", shared / "tools" / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["replay"] = module  # its dataclasses look for their own module
    spec.loader.exec_module(module)
    return module.ReplayServer(shared / "wire" / f"{name}.json")


def scripted(name: str) -> ScriptedModel:
    """The same conversation by script."""
    begin = [Reply(openai_script.session_created()), Expect("session.update"), Reply(openai_script.session_updated())]
    asked = [
        Expect("conversation.item.create"),
        Reply(lambda heard: openai_script.item_created(heard[-1]["item"], None)),
        Expect("response.create"),
    ]
    if name == "tool_call_round":
        return ScriptedModel(
            [
                *begin,
                *asked,
                Reply(openai_script.tool_call("r1", "i1", "c1", "get_weather", '{"city": "London"}')),
                Expect("conversation.item.create", {"item": {"type": "function_call_output", "output": WEATHER}}),
                Reply(lambda heard: openai_script.item_created(heard[-1]["item"], "i1")),
                Expect("response.create"),
                Reply(openai_script.written_reply("r2", "i2", WEATHER, usage=_usage())),
            ]
        )
    if name == "audio_in_server_vad_turn":
        reply = openai_script.spoken_reply("r1", "i1", ROBIN[1], bytes(9600), previous_item_id="u1", usage=_usage())
        heard = openai_script.user_transcript("u1", ROBIN[0])
        spoken = openai_script.user_speech("u1", start_ms=1460, end_ms=4256)
        return ScriptedModel(
            [
                *begin,
                Expect("input_audio_buffer.append"),
                Reply([*spoken, *reply[:6], *heard, *reply[6:]]),
            ]
        )
    return ScriptedModel(
        [
            *begin,
            *asked,
            Reply(openai_script.spoken_reply("r1", "i1", "Hi there!", bytes(4800), usage=_usage())),
        ]
    )


def _usage() -> Any:
    return {"input_tokens": 10, "output_tokens": 20, "total_tokens": 30}


@contextlib.asynccontextmanager
async def provider(shared: Path | None, name: str, make: Any) -> AsyncIterator[RealtimeModel]:
    """A model that has that conversation, and the check that it was had to its end."""
    if shared is None:
        model = scripted(name.rpartition("/")[2])
        yield model
        model.assert_complete()
        await model.aclose()
        return
    async with replay_of(shared, name) as server:
        yield make(server.url)
    assert server.report.completed, server.report
    assert not server.report.unexpected, server.report


def openai(url: str) -> RealtimeModel:
    return OpenAIRealtime("gpt-realtime", url=url)


def azure(url: str) -> RealtimeModel:
    return AzureRealtime("gpt-realtime", url=url, api_key="k", transcription="whisper")


def gemini(url: str) -> RealtimeModel:
    return GeminiLive(url=url, api_key="k")


def xai(url: str) -> RealtimeModel:
    return XaiRealtime(url=url, api_key="k")


@pytest.mark.parametrize(
    ("make", "name", "text", "answer"),
    [
        (openai, "openai/text_in_audio_out_turn", "Say a short greeting.", "Hi there!"),
        (azure, "azure/text_in_audio_out_turn", "Say a short greeting.", "Hello there! Great to meet you!"),
        (gemini, "gemini/text_in_audio_out_turn", "Say a short greeting.", None),
        (xai, "xai/text_in_audio_out_turn", "Say a short greeting.", None),
    ],
)
async def test_a_typed_turn_is_answered_aloud(shared, make, name, text, answer):
    async with provider(shared, name, make) as model, RealtimeSession(model) as session:
        await session.send(text)
        turn = await session.wait_for_reply()
        assert turn.usage is not None
        assert turn.usage.total_tokens > 0
    [user, reply] = said(session)
    assert user == ("user", text)
    assert reply[0] == "assistant"
    assert reply[1] == (answer if answer is not None and shared is not None else reply[1])
    assert reply[1]
    assert not session.all_messages()[1].interrupted


@pytest.mark.parametrize(
    ("make", "name", "output"),
    [
        (openai, "openai/tool_call_round", "text"),
        (xai, "xai/tool_call_round", "audio"),
    ],
)
async def test_a_tool_round(shared, make, name, output):
    tools = [Tool(weather, name="get_weather")]
    async with provider(shared, name, make) as model, RealtimeSession(model, tools=tools, output=output) as session:
        await session.send("What is the weather in London?")
        turn = await session.wait_for_reply()
    messages = session.all_messages()
    roles = [str(message.role) for message in messages]
    assert roles[0] == "user"
    call = next(index for index, message in enumerate(messages) if message.tool_calls)
    assert messages[call].tool_calls[0].name == "get_weather"
    assert (roles[call + 1], messages[call + 1].content) == ("tool", WEATHER)
    assert messages[call + 1].tool_call_id == messages[call].tool_calls[0].call_id
    assert roles[-1] == "assistant"
    assert "12" in messages[-1].content or "twelve" in messages[-1].content
    assert [message for message in turn.messages if message.tool_call_id]


async def test_a_tool_round_without_ids_of_turns_or_responses(shared):
    """Gemini reports no items: what was sent stands where it was sent."""

    def record_reading(zqx_measurement: int, qbf_note: str | None = None) -> str:
        """Store the supplied sensor value."""
        return f"Recorded {zqx_measurement} ({qbf_note})."

    name = "gemini/tool_call_round" if shared else "tool_call_round"
    tools: list[Any] = [record_reading, Tool(weather, name="get_weather")]
    async with provider(shared, name, gemini) as model, RealtimeSession(model, tools=tools) as session:
        await session.send('Please record a reading of 5 with the note "steady".')
        await session.wait_for_reply()
    messages = session.all_messages()
    assert [str(message.role) for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[2].content == ("Recorded 5 (steady)." if shared else WEATHER)
    assert messages[3].content == ('I have recorded a reading of 5 with the note "steady."' if shared else WEATHER)


async def test_a_spoken_turn_whose_words_arrive_amid_the_reply(shared):
    """B25: the user's turn stands before the reply that it caused."""
    name = "openai/audio_in_server_vad_turn"
    async with provider(shared, name, openai) as model, RealtimeSession(model) as session:
        for _ in range(56):
            await session.send_audio(bytes(4800))
        await session.wait_for_reply()
    assert said(session) == [("user", ROBIN[0]), ("assistant", ROBIN[1])]


def test_turn_detection_of_the_recordings_is_the_default():
    assert TurnDetection().mode == "server"
