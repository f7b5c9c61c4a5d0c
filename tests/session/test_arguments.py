"""Every argument of `RealtimeSession` is checked before anything starts, by an error that names it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime import (
    Agent,
    ChatContext,
    ChatMessage,
    ChatRole,
    Conversation,
    FrameSampling,
    LocalRealtime,
    ModelCapabilities,
    RealtimeSession,
    TurnDetection,
)
from realtime.errors import ArgumentError, SessionClosed, UserError


def greet() -> None: ...


def test_a_saved_context_that_was_not_read_is_refused_with_what_reads_it(obliging):
    with pytest.raises(ArgumentError, match=r"context must be a ChatContext \(ChatContext\.from_dict reads"):
        RealtimeSession(obliging(), context=ChatContext().to_dict())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("instructions", None),
        ("instructions", 5),
        ("context", []),
        ("message_history", "text"),
        ("message_history", [{"role": "user"}]),
        ("message_history", 5),
        ("conversation", ChatContext()),
        ("tools", "greet"),
        ("tools", 5),
        ("tools", [5]),
        ("tools", [greet, greet]),
        ("agents", "expert"),
        ("agents", ["expert"]),
        ("agents", 5),
        ("agents", [Agent(id="agent")]),
        ("agents", [Agent(id="a"), Agent(id="a")]),
        ("agents", [Agent(id="a", tools=(5,))]),
        ("window", 8000),
        ("audio_retention", "some"),
        ("retain_audio_max_seconds", -1),
        ("retain_audio_max_seconds", float("nan")),
        ("retain_audio_max_seconds", True),
        ("retain_images_every_n", 0),
        ("retain_images_every_n", 1.5),
        ("retain_images_max", -1),
        ("retain_images_max", True),
        ("retain_images_max", float("nan")),
        ("max_history_messages", 0),
        ("mirror_evictions", "yes"),
        ("sampling", 1.0),
        ("encode_options", "jpeg"),
        ("encode_options", None),
        ("image_detail", "medium"),
        ("turn_detection", "server"),
        ("transcription", None),
        ("output", "video"),
        ("reconnect", True),
        ("usage_limits", 5),
        ("memory_limit_bytes", 0),
        ("resume_after_ms", -1),
        ("tool_timeout_seconds", 0),
        ("voice", 5),
    ],
)
def test_what_cannot_be_is_refused_by_name_before_anything_starts(obliging, argument, value):
    """R1, Shapes: negatives, bool and NaN are a ValueError too."""
    model = obliging()
    with pytest.raises(ArgumentError) as caught:
        RealtimeSession(model, **{argument: value})
    assert isinstance(caught.value, ValueError)
    names = {"agents": ("agents", "tools"), "audio_retention": ("audio_retention",)}
    assert caught.value.argument in names.get(argument, (argument,))
    assert model.connections == 0


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("retain_audio_max_seconds", None),
        ("retain_audio_max_seconds", 0),
        ("retain_images_max", None),
        ("retain_images_max", 0),
        ("memory_limit_bytes", None),
        ("turn_detection", None),
        ("message_history", ()),
        ("message_history", ChatContext()),
        ("tools", (tool for tool in [greet])),
        ("sampling", FrameSampling(fps_idle=0)),
        ("encode_options", None),
    ],
)
def test_what_means_something_is_taken(obliging, argument, value):
    given: dict[str, Any] = {} if argument == "encode_options" else {argument: value}
    assert RealtimeSession(obliging(), **given).all_messages() == []


@pytest.mark.parametrize("model", ["", "nobody:knows", "http://x", 5, None])
def test_an_unknown_model_is_refused_and_the_known_ones_are_named(model):
    with pytest.raises(UserError, match="local"):
        RealtimeSession(model)


def test_at_most_one_beginning(obliging):
    context, history, conversation = ChatContext(), [ChatMessage(ChatRole.USER, "x")], Conversation()
    for given in (
        {"context": context, "message_history": history},
        {"context": context, "conversation": conversation},
        {"message_history": history, "conversation": conversation},
    ):
        with pytest.raises(ArgumentError, match="left out"):
            RealtimeSession(obliging(), **given)  # type: ignore[arg-type]


def test_what_the_model_cannot_do_is_named(obliging):
    with pytest.raises(UserError, match="supports_text_output"):
        RealtimeSession(obliging(capabilities=ModelCapabilities(supports_text_output=False)), output="text")
    with pytest.raises(UserError, match="supports_tools"):
        RealtimeSession(obliging(capabilities=ModelCapabilities(supports_tools=False)), tools=[greet])


async def test_the_model_s_own_defaults_hold_where_the_session_does_not_say(obliging):
    model = obliging()
    model.voice, model.transcription, model.turn_detection = "sage", "ears-1", TurnDetection(mode="manual")
    async with RealtimeSession(model):
        audio = (await model.hears("session.update"))["session"]["audio"]
    assert audio["output"]["voice"] == "sage"
    assert audio["input"]["transcription"]["model"] == "ears-1"
    assert audio["input"]["turn_detection"] is None


async def test_the_session_s_wishes_come_before_the_model_s(obliging):
    model = obliging()
    model.voice, model.transcription = "sage", "ears-1"
    async with RealtimeSession(model, voice="ash", transcription="off", output="text"):
        session = (await model.hears("session.update"))["session"]
    assert session["audio"]["output"].get("voice", "ash") == "ash"
    assert session["audio"]["input"].get("transcription") is None
    assert session["output_modalities"] == ["text"]


def test_names_of_models_are_resolved_at_once():
    assert RealtimeSession("local").capabilities == LocalRealtime().capabilities
    assert RealtimeSession("ws://127.0.0.1:1/v1/realtime").capabilities.supports_image_input


@pytest.mark.parametrize("respond", ["no", 0, "yes"])
async def test_whether_to_reply_is_a_bool(obliging, respond):
    async with RealtimeSession(obliging()) as session:
        with pytest.raises(ArgumentError, match="respond must be True, False, or None"):
            await session.send("Hello.", respond=respond)
        assert not session.all_messages()


async def test_there_is_nothing_to_look_at_without_a_camera_or_after_the_end(obliging):
    async with RealtimeSession(obliging()) as session:
        with pytest.raises(UserError, match="there is no video track to look at; there is: none"):
            await session.look()
        with pytest.raises(UserError, match="there is no video track 'screen' to look at; there is: none"):
            await session.look("screen")
    with pytest.raises(SessionClosed):
        await session.look()


async def test_a_session_is_used_on_its_own_loop_and_another_one_is_told_so(obliging):
    """Two threads in the machine at once would tear the conversation; a synchronous tool's thread is the usual place."""

    def elsewhere() -> None:
        async def go() -> None:
            await session.send("Hello.")

        asyncio.run(go())

    async with RealtimeSession(obliging()) as session:
        loop = asyncio.get_running_loop()
        with pytest.raises(UserError, match="on another event loop"):
            await loop.run_in_executor(None, elsewhere)
        assert not session.all_messages()
        sent = await loop.run_in_executor(
            None, lambda: asyncio.run_coroutine_threadsafe(session.send("Hello."), loop).result()
        )
        assert len(sent) == 1
