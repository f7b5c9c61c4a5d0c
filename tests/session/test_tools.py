"""Tools through a session (T1–T6; B03, B04, B13, B31)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from PIL import Image

from realtime import Agent, ContextWindow, FrameSampling, RealtimeSession, Tool, ToolContext, look_tool
from realtime.errors import ArgumentError
from realtime.events import ApprovalRequested, ErrorReported, ToolCalled, ToolFinished
from realtime.testing import FakeTrack, openai_script


def outputs(model: Any) -> list[tuple[str, str]]:
    items = [message["item"] for message in model.all("conversation.item.create")]
    return [(item["call_id"], item["output"]) for item in items if item["type"] == "function_call_output"]


async def test_a_tool_round_is_run_answered_and_recorded(obliging, tool_call):
    def weather(city: str, days: int = 1) -> dict[str, Any]:
        """How the weather will be."""
        return {"city": city, "days": days, "sky": "blue"}

    model = obliging(tool_call("weather", '{"city": "Rome"}'), "It is blue.")
    async with RealtimeSession(model, tools=[weather]) as session:
        events = aiter(session)
        await session.send("How is Rome?")
        turn = await session.wait_for_reply()
    tools = model.all("session.update")[0]["session"]["tools"]
    assert [(tool["name"], tool["description"]) for tool in tools] == [("weather", "How the weather will be.")]
    assert outputs(model) == [("call_1", '{"city": "Rome", "days": 1, "sky": "blue"}')]
    roles = [str(message.role) for message in session.all_messages()]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert [str(message.role) for message in turn.messages] == ["assistant", "tool", "assistant"]
    kinds = [type(event) async for event in events if isinstance(event, (ToolCalled, ToolFinished))]
    assert kinds == [ToolCalled, ToolFinished]


@pytest.mark.parametrize("value", [None, {}, "", 0, [], False])
async def test_falsy_results_are_results_and_a_reply_is_asked_for(obliging, tool_call, value):
    """B09."""
    model = obliging(tool_call("nothing"), "Well.")
    async with RealtimeSession(model, tools=[Tool(lambda: value, name="nothing")]) as session:
        await session.send("Go.")
        turn = await session.wait_for_reply()
    assert turn.messages[-1].content == "Well."
    [(_, output)] = outputs(model)
    assert output == (json.dumps(value) if value != "" else "") or output


async def test_a_tool_that_raises_is_answered_and_the_application_hears_of_it(obliging, tool_call):
    """T3."""

    def fails() -> None:
        raise LookupError("no such order")

    model = obliging(tool_call("fails"), "Sorry.")
    async with RealtimeSession(model, tools=[fails]) as session:
        events = aiter(session)
        await session.send("Go.")
        await session.wait_for_reply()
    assert outputs(model) == [("call_1", "LookupError: no such order")]
    [reported] = [event async for event in events if isinstance(event, ErrorReported)]
    assert isinstance(reported.error, LookupError)
    assert reported.where == "tool fails"


async def test_a_finished_call_outlives_the_interruption(obliging, tool_call):
    """B03: call and result are in the history and at the provider, the tool ran once."""
    ran: list[int] = []

    async def book() -> str:
        ran.append(1)
        return "booked"

    model = obliging(tool_call("book"), "It is booked for you tonight.", "Anything else?")
    async with RealtimeSession(model, tools=[book]) as session:
        audio = session.stream_audio()
        await session.send("Book it.")
        await anext(audio)
        await session.interrupt()
        await session.send("And?")
        while session.statistics().machine.responses < 3:
            await anext(audio)
    assert ran == [1]
    assert outputs(model) == [("call_1", "booked")]
    assert [message.content for message in session.all_messages() if message.tool_call_id] == ["booked"]


async def test_the_context_of_a_call(obliging, tool_call):
    seen: list[ToolContext] = []

    def look_around(context: ToolContext, depth: int = 1) -> str:
        seen.append(context)
        return "seen"

    model = obliging(tool_call("look_around"), "Done.")
    async with RealtimeSession(model, tools=[look_around]) as session:
        await session.send("Look.")
        await session.wait_for_reply()
        [context] = seen
        assert context.session is session
    assert (context.call_id, context.agent_id) == ("call_1", "agent")
    assert context.messages[0].content == "Look."
    assert context.usage.total_tokens == 0
    assert context.context_window_used is None
    parameters = model.all("session.update")[0]["session"]["tools"][0]["parameters"]
    assert set(parameters["properties"]) == {"depth"}


async def test_a_tool_may_hand_off(obliging, tool_call):
    """T5."""

    async def transfer(context: ToolContext) -> str:
        await context.session.hand_off("expert", reason="asked")
        return "transferred"

    model = obliging(tool_call("transfer"), "Expert here.")
    agents = [Agent(id="expert", instructions="You know all.")]
    async with RealtimeSession(model, tools=[transfer], agents=agents) as session:
        await session.send("An expert, please.")
        turn = await session.wait_for_reply()
    assert turn.messages[-1].agent_id == "expert"
    assert [handoff.to_agent for handoff in session.context.handoffs()] == ["expert"]


async def test_a_call_waits_for_approval_while_the_session_goes_on(obliging, tool_call):
    ran: list[int] = []

    def pay() -> str:
        ran.append(1)
        return "paid"

    for ok, output in ((True, "paid"), (False, "Not run: it was not approved.")):
        model = obliging(tool_call("pay"), "Done.")
        async with RealtimeSession(model, tools=[Tool(pay, needs_approval=True)]) as session:
            events = aiter(session)
            await session.send("Pay.")
            while not isinstance(event := await anext(events), ApprovalRequested):
                pass
            with pytest.raises(ArgumentError, match="call_id"):
                await session.approve("another", ok)
            assert outputs(model) == []
            await session.approve(event.call_id, ok)
            await session.wait_for_reply()
        assert outputs(model) == [("call_1", output)]
    assert ran == [1]


async def test_calls_beyond_the_turn_s_limit_are_answered_and_the_next_reply_goes_without_tools(obliging, tool_call):
    """T4."""
    again = [tool_call("again", call_id=f"call_{number}") for number in range(3)]
    model = obliging(*again, "Enough.")
    window = ContextWindow(max_tool_calls_per_turn=2)
    async with RealtimeSession(model, tools=[Tool(lambda: "ok", name="again")], window=window) as session:
        await session.send("Go.")
        await session.wait_for_reply()
    assert [output for _, output in outputs(model)][:2] == ["ok", "ok"]
    asked = model.all("response.create")
    assert asked[-1]["response"]["tool_choice"] == "none"


async def test_a_tool_may_return_a_picture(obliging, tool_call):
    """T5."""
    model = obliging(tool_call("draw"), "There.")
    async with RealtimeSession(model, tools=[Tool(lambda: Image.new("RGB", (8, 8), "red"), name="draw")]) as session:
        await session.send("Draw.")
        await session.wait_for_reply()
    [result] = [message for message in session.all_messages() if message.tool_call_id]
    assert len(result.images) == 1
    kinds = [
        [part["type"] for part in message["item"].get("content", [])]
        for message in model.all("conversation.item.create")
    ]
    assert ["input_image"] in kinds


async def test_two_calls_in_one_response_are_one_round_with_one_reply_after_it(obliging):
    """B31: several wishes fold into one after all results are in."""
    gate = asyncio.Event()

    async def slow() -> str:
        await gate.wait()
        return "slow"

    async def quick() -> str:
        return "quick"

    def both(response_id: str, item_id: str, previous: str | None) -> Any:
        one = openai_script.tool_call(response_id, item_id, "c1", "slow", previous_item_id=previous)
        two = openai_script.tool_call(response_id, f"{item_id}b", "c2", "quick", previous_item_id=item_id)
        return [*one[:-1], *two[1:]]

    model = obliging(both, "Both are done.")
    async with RealtimeSession(model, tools=[slow, quick]) as session:
        await session.send("Both.")
        await model.hears("conversation.item.create", 2)
        assert len(model.all("response.create")) == 1
        gate.set()
        await session.wait_for_reply()
    assert len(model.all("response.create")) == 2
    results = [message.content for message in session.all_messages() if message.tool_call_id]
    assert results == ["slow", "quick"]  # in call order, whatever arrived first


async def test_the_model_may_ask_to_look(obliging, tool_call):
    """I4: the picture is in the conversation before the model goes on."""
    model = obliging(tool_call("look"), "I see grey.")
    sampling = FrameSampling(fps_idle=0, fps_speaking=0)
    async with RealtimeSession(model, tools=[look_tool], sampling=sampling) as session:
        camera = FakeTrack("video")
        session.add_track(camera)
        frames = [await frame for frame in _frames(3)]
        camera.push(frames[0])
        events = aiter(session)
        await session.send("What do you see?")
        while not isinstance(await anext(events), ToolCalled):
            pass
        await asyncio.sleep(0)
        camera.push(frames[1])
        await session.wait_for_reply()
        camera.end()
    order = [message["item"]["type"] for message in model.all("conversation.item.create")]
    assert order == ["message", "message", "function_call_output"]
    assert outputs(model)[0][1].startswith("The newest picture (1024x1024)")
    assert len([message for message in session.all_messages() if message.is_frame]) == 1


def _frames(count: int) -> list[Any]:
    track = FakeTrack.video(seconds=1)
    return [track.recv() for _ in range(count)]


async def test_looking_without_a_camera_is_told_to_the_model(obliging, tool_call):
    model = obliging(tool_call("look"), "I have no eyes.")
    async with RealtimeSession(model, tools=[look_tool]) as session:
        await session.send("What do you see?")
        await session.wait_for_reply()
    assert "no video track" in outputs(model)[0][1]
