"""Another agent takes the conversation: with the same model, or with one of other rates and abilities (issue: hand_off)."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from realtime import Agent, FrameSampling, ModelCapabilities, RealtimeSession, ReconnectPolicy, TurnDetection
from realtime.core.machine import SessionMachine
from realtime.errors import ArgumentError, LinkLost, ModelError, RealtimeError, SessionClosed, UserError
from realtime.events import (
    AudioReceived,
    ConnectionDropped,
    ErrorReported,
    FrameKept,
    HandedOff,
    Reconnected,
    ReplyInterrupted,
    TurnCompleted,
)
from realtime.pipelines.link import Link
from realtime.testing import FakeTrack, SyntheticPeer, make_peer, openai_script


def texts(messages: Any) -> list[tuple[str, str]]:
    return [(message.role.value, message.content) for message in messages]


def tone(ms: int, rate_hz: int, hz: int = 440) -> bytes:
    t = np.arange(ms * rate_hz // 1000) / rate_hz
    return (8_000 * np.sin(2 * np.pi * hz * t)).astype("<i2").tobytes()


def spoken(text: str, sound: bytes) -> Any:
    """A reply with a sound of its own."""

    def reply(response_id: str, item_id: str, previous: str | None) -> Any:
        return openai_script.spoken_reply(response_id, item_id, text, sound, previous_item_id=previous)

    return reply


# -- hand-off -----------------------------------------------------------------------------------------------------------------


async def test_another_agent_takes_the_same_conversation(obliging):
    def lookup(order: str) -> str:
        return order

    model = obliging("I am the expert.")
    agents = [Agent(id="expert", instructions="You know all.", tools=(lookup,), voice="sage")]
    async with RealtimeSession(model, agents=agents, instructions="You greet.") as session:
        events = aiter(session)
        handoff = await session.hand_off("expert", reason="asked for")
        update = (await model.hears("session.update", 2))["session"]
        await session.send("Hi")
        await session.wait_for_reply()
        assert session.context.handoffs() == [handoff]
    assert (handoff.from_agent, handoff.to_agent, handoff.reason) == ("agent", "expert", "asked for")
    assert update["instructions"] == "You know all."
    assert [tool["name"] for tool in update["tools"]] == ["lookup"]
    assert session.all_messages()[-1].agent_id == "expert"
    assert any([isinstance(event, HandedOff) async for event in events])


@pytest.mark.parametrize("agent", ["nobody", 7, None])
async def test_an_agent_that_is_none_is_refused(obliging, agent):
    async with RealtimeSession(obliging()) as session:
        with pytest.raises(ArgumentError, match="agent"):
            await session.hand_off(agent)


async def test_another_agent_may_have_another_model(obliging):
    """The connection is made anew, the conversation goes on, and both models are let go at the end."""
    first, second = obliging("One."), obliging("Two.")
    async with RealtimeSession(first) as session:
        await session.send("a")
        await session.wait_for_reply()
        await session.hand_off(Agent(id="expert", model=second))
        await second.hears("conversation.item.create", 2)
        await session.send("b")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "Two.")]
    assert (first.closed, second.closed) == (1, 1)


async def test_handing_back_takes_the_sessions_model_again(obliging):
    """An agent without a model of its own is the session's, also after one that had its own."""
    first, second = obliging("One.", "Three."), obliging("Two.")
    async with RealtimeSession(first, agents=[Agent(id="front")]) as session:
        await session.hand_off(Agent(id="expert", model=second))
        await second.hears("session.update", 1)
        await session.send("a")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "Two.")]
        await session.hand_off("front")
        await first.hears("session.update", 2)
        await session.send("b")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "One.")]
    assert (first.closed, second.closed) == (1, 1)


# -- rates and abilities ----------------------------------------------------------------------------------------------------


TELEPHONE = ModelCapabilities(model="telephone", input_rate_hz=16_000, output_rate_hz=8_000)


async def test_a_model_with_other_rates_hears_and_is_heard_right(obliging):
    """The session keeps its rates: what is sent by hand, recorded and played stays what it is."""
    first, second = obliging(), obliging(spoken("Two.", tone(300, 8_000)), capabilities=TELEPHONE)
    manual = TurnDetection(mode="manual")
    async with RealtimeSession(first, turn_detection=manual, audio_retention="all") as session:
        events = aiter(session)
        await session.hand_off(Agent(id="phone", model=second))
        while not isinstance(await anext(events), Reconnected):
            pass
        assert session.capabilities.model == "telephone"
        assert (session.capabilities.input_rate_hz, session.capabilities.output_rate_hz) == (24_000, 24_000)
        for at in range(0, 48_000, 960):
            await session.send_audio(tone(1_000, 24_000)[at : at + 960])
        await session.commit_audio()
        await second.hears("input_audio_buffer.commit")
        await session.create_response()
        turn = await session.wait_for_reply()
    heard = np.frombuffer(bytes(second.audio), "<i2")
    assert len(heard) == pytest.approx(16_000, abs=2)  # one second, with the converter's tail before the commit
    assert np.count_nonzero(np.diff(np.signbit(heard.astype(float)))) == pytest.approx(880, abs=4)
    assert session.statistics().machine.reconnects == 1
    pcm = b"".join([event.pcm async for event in events if isinstance(event, AudioReceived)])
    assert len(pcm) == pytest.approx(2 * 7_200, abs=4)
    [reply] = turn.messages
    assert (reply.content, reply.interrupted) == ("Two.", False)
    assert [(message.audio.rate_hz, message.audio.duration_ms) for message in session.all_messages()] == [
        (24_000, pytest.approx(1_000, abs=1)),
        (24_000, pytest.approx(300, abs=1)),
    ]


async def test_a_model_with_other_rates_is_told_where_its_reply_was_cut(obliging):
    """P2: positions are milliseconds, on both sides."""
    first, second = (
        obliging(),
        obliging(spoken("one two three four five six", tone(600, 8_000)), capabilities=TELEPHONE),
    )
    async with RealtimeSession(first) as session:
        await session.hand_off(Agent(id="phone", model=second))
        audio = session.stream_audio()
        await session.send("Count.")
        heard = 0
        while heard < 300 * 48:
            heard += len(await anext(audio))
        await session.interrupt(played_ms=300)
        cut = await second.hears("conversation.item.truncate")
    assert cut["audio_end_ms"] == 300
    assert session.all_messages()[-1].content == "one two three"


async def test_a_camera_that_was_no_use_is_looked_at_by_a_model_that_sees_and_the_other_way_round(obliging):
    """Other abilities: tracks stay, whoever takes over."""
    blind = ModelCapabilities(model="blind", supports_image_input=False)
    first, second = obliging(capabilities=blind), obliging()
    frames, taken = FakeTrack.video(fps=10, seconds=60), asyncio.Event()

    class Camera(FakeTrack):
        async def recv(self) -> Any:
            frame = await super().recv()
            taken.set()
            return frame

    camera = Camera("video")

    async def show(count: int) -> None:
        for _ in range(count):
            taken.clear()
            camera.push(await frames.recv())
            await taken.wait()

    async with RealtimeSession(first, sampling=FrameSampling(fps_idle=10, min_change=0)) as session:
        events = aiter(session)
        session.add_track(camera)
        await show(5)
        await session.hand_off(Agent(id="seeing", model=second))
        while not isinstance(await anext(events), Reconnected):
            pass
        showing = asyncio.create_task(show(20))
        while not isinstance(await anext(events), FrameKept):
            pass
        await second.hears("conversation.item.create")
        await showing
        assert not first.all("conversation.item.create")
        await session.hand_off(Agent(id="blind"))
        while not isinstance(await anext(events), Reconnected):
            pass
        assert session.capabilities.model == "blind"
        kept = session.statistics().machine.images_sent
        await show(5)
        assert session.statistics().machine.images_sent == kept


@pytest.mark.parametrize(
    ("lacks", "named"),
    [
        ({"supports_session_seeding": False}, "supports_session_seeding"),
        ({"supports_tools": False}, "supports_tools"),
        ({"supports_unanswered_turns": False}, "supports_unanswered_turns"),
    ],
)
async def test_a_model_that_cannot_go_on_with_it_is_refused_before_it_is_connected_to(obliging, lacks, named):
    def lookup(order: str) -> str:
        return order

    first, second = obliging("One."), obliging(capabilities=ModelCapabilities(**lacks))
    detection = TurnDetection(create_response=False)
    async with RealtimeSession(first, turn_detection=detection) as session:
        await session.send("a")
        await session.wait_for_reply()
        with pytest.raises(UserError, match=named):
            await session.hand_off(Agent(id="other", model=second, tools=(lookup,)))
        assert session.context.handoffs() == []
    assert second.connections == 0


async def test_a_model_that_cannot_be_told_a_conversation_goes_on_with_its_own_for_another_agent(obliging):
    """Nobody needs to tell it anything: it is the one that spoke. Back to it from another model is refused."""
    deaf = ModelCapabilities(model="deaf", supports_session_seeding=False)
    first, second = obliging("One.", "Two.", capabilities=deaf), obliging()
    async with RealtimeSession(first, agents=[Agent(id="b"), Agent(id="c", model=first)]) as session:
        await session.send("a")
        await session.wait_for_reply()
        await session.hand_off("b")
        await session.hand_off("c")
        await session.send("b")
        assert (await session.wait_for_reply()).messages[0].agent_id == "c"
        await session.hand_off(Agent(id="other", model=second))
        with pytest.raises(UserError, match="supports_session_seeding"):
            await session.hand_off("b")
        assert [handoff.to_agent for handoff in session.context.handoffs()] == ["b", "c", "other"]
    assert first.connections == 1


# -- make before break -------------------------------------------------------------------------------------------------------


async def test_the_old_model_answers_until_the_new_one_is_ready(obliging):
    first, second = obliging("One.", "Two."), obliging("Three.")
    second.reach = asyncio.Event()
    async with RealtimeSession(first) as session:
        handing = asyncio.create_task(session.hand_off(Agent(id="other", model=second)))
        await session.send("a")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "One.")]
        assert not handing.done()
        assert first.is_connected
        second.reach.set()
        handoff = await handing
        assert handoff.to_agent == "other"
        assert second.all("session.update")  # configured before anybody was let go
        await session.send("b")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "Three.")]
        assert not first.is_connected
    assert (first.connections, second.connections) == (1, 1)
    assert [message.agent_id for message in session.all_messages() if message.role == "assistant"] == ["agent", "other"]


async def test_the_running_reply_is_spoken_to_its_end_and_nobody_is_cut(obliging):
    """Without a gap in the audio: the reply of the old model goes on while the new one is connected, and is heard whole."""
    first, second = obliging([]), obliging("Two.")
    async with RealtimeSession(first) as session:
        events, audio = aiter(session), session.stream_audio()
        await session.send("a")
        await first.hears("response.create")
        whole = openai_script.spoken_reply(
            "r",
            "i",
            "one two three four",
            tone(400, 24_000),
            previous_item_id=first.all("conversation.item.create")[0]["item"]["id"],
        )
        deltas = [number for number, message in enumerate(whole) if message["type"].endswith("audio.delta")]
        await first.say(whole[: deltas[0] + 1])
        heard = await anext(audio)
        await session.hand_off(Agent(id="other", model=second))
        assert session.statistics().connected
        assert first.is_connected  # the reply is not whole
        assert len(second.all("conversation.item.create")) == 0
        await first.say(whole[deltas[0] + 1 :])
        while len(heard) < 2 * 9_600:
            heard += await anext(audio)
        listening = asyncio.create_task(anext(audio))
        turn = await session.wait_for_reply()
        await second.hears("conversation.item.create", 2)
        listening.cancel()
    [reply] = turn.messages
    assert (reply.content, reply.interrupted, reply.agent_id) == ("one two three four", False, "agent")
    told = [each["item"]["content"][0]["text"] for each in second.all("conversation.item.create")]
    assert told == ["a", "one two three four"]
    assert not any([isinstance(event, ReplyInterrupted) async for event in events])


async def test_no_word_that_is_said_meanwhile_is_lost(obliging):
    """L2: what the user says goes to the one or the other, in order; the beginning of a turn goes to both."""
    first, second = obliging(), obliging()
    second.reach = asyncio.Event()
    steps = np.arange(1, 101, dtype="<i2") * 100
    async with RealtimeSession(first) as session:
        handing = asyncio.create_task(session.hand_off(Agent(id="other", model=second)))
        for number, step in enumerate(steps):
            await session.send_audio(np.full(480, step, "<i2").tobytes())  # 20 ms
            if number == 30:
                await first.hears_audio(20 * 960)
                await first.say(openai_script.user_speech("u1", start_ms=200)[:1])
                second.reach.set()
            if number == 60:
                await handing
        await second.hears_audio(960 * 40)
        while not bytes(second.audio).endswith(np.full(480, steps[-1], "<i2").tobytes()):
            await second.hears_audio(len(second.audio) + 1)
    to_first = np.frombuffer(bytes(first.audio), "<i2")[::480].tolist()
    to_second = np.frombuffer(bytes(second.audio), "<i2")[::480].tolist()
    assert to_first == steps[: len(to_first)].tolist()
    assert to_second == steps[-len(to_second) :].tolist()
    assert to_second[0] <= 1_100  # from before the word that was under way
    assert len(to_second) > 60


async def test_what_was_just_said_is_written_down_before_the_other_model_is_told(obliging):
    """H2: the new model is told the words, not the sound again: it would answer them twice."""
    first, second = obliging([]), obliging("Two.")
    async with RealtimeSession(first) as session:
        await session.send_audio(bytes(48_000))
        await first.hears_audio(48_000)
        await first.say(openai_script.user_speech("u1", end_ms=900))
        await first.say(openai_script.spoken_reply("r", "i", "one", tone(100, 24_000), previous_item_id="u1"))
        await session.hand_off(Agent(id="other", model=second))
        assert second.all("conversation.item.create") == []
        await first.say(openai_script.user_transcript("u1", "The expert, please."))
        await second.hears("conversation.item.create", 2)
    assert texts(session.all_messages()) == [("user", "The expert, please."), ("assistant", "one")]


# -- when it cannot be --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [LinkLost("nobody there"), ModelError("no such model", code="model_not_found")])
async def test_a_model_that_cannot_be_had_leaves_everything_as_it_was(obliging, error):
    first, second = obliging("One.", "Two."), obliging()
    second.refuse = [error]
    async with RealtimeSession(first) as session:
        events = aiter(session)
        await session.send("a")
        await session.wait_for_reply()
        with pytest.raises(type(error), match=str(error)):
            await session.hand_off(Agent(id="other", model=second))
        assert session.context.handoffs() == []
        await session.send("b")
        turn = await session.wait_for_reply()
        assert texts(turn.messages) == [("assistant", "Two.")]
        assert turn.messages[0].agent_id == "agent"
    assert (first.connections, first.closed, second.closed) == (1, 1, 1)
    assert not any([isinstance(event, (HandedOff, Reconnected)) async for event in events])


async def test_a_model_whose_own_code_fails_leaves_everything_as_it_was(obliging):
    """Whoever hands off is told whose code it was."""
    first, second = obliging("One."), obliging()

    def make_wire(**_: Any) -> Any:
        raise KeyError("no such key")

    second.make_wire = make_wire
    async with RealtimeSession(first) as session:
        with pytest.raises(RealtimeError, match="KeyError: 'no such key'") as caught:
            await session.hand_off(Agent(id="other", model=second))
        assert isinstance(caught.value.__cause__, KeyError)
        assert session.context.handoffs() == []
        await session.send("a")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "One.")]


async def test_a_model_that_refuses_the_agent_leaves_everything_as_it_was(obliging):
    """The configuration is accepted before the old connection is let go."""
    first, second = obliging("One."), obliging()
    second.refuses_configuration = True
    async with RealtimeSession(first) as session:
        with pytest.raises(ModelError, match="no such voice"):
            await session.hand_off(Agent(id="other", model=second, voice="nobody"))
        await session.send("a")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "One.")]
    assert first.connections == 1


async def test_a_model_that_does_not_answer_is_given_up_after_the_policys_patience(obliging):
    first, second = obliging("One."), obliging()
    second.reach = asyncio.Event()
    patience = ReconnectPolicy(connect_timeout_seconds=0.05)
    async with RealtimeSession(first, reconnect=patience) as session:
        with pytest.raises(LinkLost, match="did not open"):
            await session.hand_off(Agent(id="other", model=second))
        await session.send("a")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "One.")]


async def test_a_tool_that_cannot_hand_off_says_so_and_the_call_goes_on(obliging, tool_call):
    """T3, T5."""
    second = obliging()
    second.refuse = [LinkLost("nobody there")]

    async def transfer() -> str:
        """Hand over."""
        await session.hand_off(Agent(id="other", model=second))
        return "done"

    first = obliging(tool_call("transfer"), "I could not.")
    async with RealtimeSession(first, tools=[transfer]) as session:
        events = aiter(session)
        await session.send("The expert, please.")
        turn = await session.wait_for_reply()
        assert turn.messages[-1].content == "I could not."
    assert "nobody there" in next(message for message in session.all_messages() if message.tool_call_id).content
    [fault] = [event async for event in events if isinstance(event, ErrorReported)]
    assert isinstance(fault.error, LinkLost)


async def test_a_session_that_ends_meanwhile_ends_the_hand_off(obliging):
    """L4: every waiter ends at once; nothing is left (the fixtures look)."""
    first, second = obliging(), obliging()
    second.reach = asyncio.Event()
    async with RealtimeSession(first) as session:
        handing = asyncio.create_task(session.hand_off(Agent(id="other", model=second)))
        await second.is_reached.wait()
        await session.aclose()
        with pytest.raises(SessionClosed):
            await handing
    assert second.closed == 1


async def test_a_hand_off_that_is_cancelled_leaves_everything_as_it_was(obliging):
    first, second = obliging("One."), obliging()
    second.reach = asyncio.Event()
    async with RealtimeSession(first) as session:
        handing = asyncio.create_task(session.hand_off(Agent(id="other", model=second)))
        await second.is_reached.wait()
        handing.cancel()
        await asyncio.wait({handing})
        await session.send("a")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "One.")]
        assert session.context.handoffs() == []


async def until_gone(model: Any) -> None:
    """Wait until a model's connection has been let go."""
    await asyncio.gather(*model._tasks)
    assert not model.is_connected


async def test_a_hand_off_that_is_cancelled_when_the_line_is_up_lets_it_go(obliging, monkeypatch):
    """A line that nobody talks over costs what one costs that is used."""
    first, second = obliging("One."), obliging()
    real = Link.prepare

    async def prepare(link: Any, *given: Any) -> Any:
        prepared = await real(link, *given)
        handing.cancel()  # before it hears that the line is up
        return prepared

    monkeypatch.setattr(Link, "prepare", prepare)
    async with asyncio.timeout(60), RealtimeSession(first) as session:
        handing = asyncio.create_task(session.hand_off(Agent(id="other", model=second)))
        await asyncio.wait({handing})
        assert handing.cancelled()
        assert second.connections == 1
        await until_gone(second)
        await session.send("a")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "One.")]
        assert session.context.handoffs() == []


async def test_a_hand_off_that_the_machine_refuses_lets_the_line_go(obliging, monkeypatch):
    first, second = obliging("One."), obliging()

    def refuse(*_: Any, **__: Any) -> Any:
        raise UserError("not now")

    monkeypatch.setattr(SessionMachine, "hand_off", refuse)
    async with asyncio.timeout(60), RealtimeSession(first) as session:
        with pytest.raises(UserError, match="not now"):
            await session.hand_off(Agent(id="other", model=second))
        assert second.connections == 1
        await until_gone(second)
        await session.send("a")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "One.")]


async def test_a_line_that_was_taken_is_not_let_go_and_one_that_was_not_is(obliging):
    """The third model's failure leaves the second's turn to come as it was."""
    first, second, third = obliging([]), obliging("Two."), obliging()
    third.refuse = [LinkLost("nobody there")]
    async with RealtimeSession(first) as session:
        await session.send("a")
        await first.hears("response.create")
        await first.say(openai_script.response_created("r"))
        await session.hand_off(Agent(id="b", model=second))
        with pytest.raises(LinkLost):
            await session.hand_off(Agent(id="c", model=third))
        assert second.is_connected
        await first.say(openai_script.spoken_reply("r", "i", "one", tone(100, 24_000))[1:])
        await second.hears("conversation.item.create", 2)
        await session.send("b")
        while (await session.wait_for_reply()).messages[-1].content != "Two.":
            pass
    assert second.connections == 1


async def test_handing_off_again_before_the_first_took_over_takes_the_last(obliging):
    first, second, third = obliging([]), obliging(), obliging("Three.")
    async with RealtimeSession(first) as session:
        await session.send("a")
        await first.hears("response.create")
        await first.say(openai_script.response_created("r"))
        await session.hand_off(Agent(id="b", model=second))
        await session.hand_off(Agent(id="c", model=third))
        await first.say(openai_script.spoken_reply("r", "i", "one", tone(100, 24_000))[1:])
        await third.hears("conversation.item.create", 2)
        await session.send("b")
        while (await session.wait_for_reply()).messages[-1].content != "Three.":
            pass
        assert not second.is_connected
        assert not second.all("conversation.item.create")
    assert [(each.from_agent, each.to_agent) for each in session.context.handoffs()] == [("agent", "b"), ("b", "c")]


async def test_a_model_by_name_is_the_same_whoever_speaks_with_it(obliging, monkeypatch):
    """Two agents with one model share its connection."""
    first, second = obliging(), obliging("One.", "Two.")
    monkeypatch.setattr("realtime.session.resolve", {"other:model": second, first: first, second: second}.__getitem__)
    async with RealtimeSession(first) as session:
        await session.hand_off(Agent(id="b", model="other:model"))
        await session.hand_off(Agent(id="c", model="other:model"))
        await session.send("a")
        turn = await session.wait_for_reply()
    assert second.connections == 1
    assert turn.messages[0].agent_id == "c"


async def test_handing_off_while_the_line_is_down_takes_the_new_models_line(obliging):
    first, second = obliging(), obliging("Two.")
    async with RealtimeSession(first, reconnect=ReconnectPolicy(first_delay_seconds=0.05, jitter=0)) as session:
        events = aiter(session)
        first.refuse = [LinkLost("away")] * 1_000
        first.drop()
        while not isinstance(await anext(events), ConnectionDropped):
            pass
        await session.hand_off(Agent(id="other", model=second))
        await session.send("a")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "Two.")]
    assert second.connections == 1


# -- on real tracks --------------------------------------------------------------------------------------------------------------


async def test_through_a_peer_connection_the_reply_is_heard_whole_and_the_next_model_hears_the_user(obliging):
    """Real tracks both ways, other rates: no gap in the reply, none in what is said."""
    first = obliging(spoken("one " * 12, tone(1_200, 24_000)))
    second = obliging(spoken("two", tone(400, 8_000, hz=880)), capabilities=TELEPHONE)
    bot, voice = make_peer(), tone(1_000, 48_000, hz=300) * 60
    async with SyntheticPeer(camera=False) as user, RealtimeSession(first) as session:
        events = aiter(session)
        session.attach(bot)
        await user.call(bot)
        speaking = asyncio.create_task(user.say(voice))
        await first.hears_audio(9_600)
        await session.send("Count.")
        await user.hears(0.2)
        await session.hand_off(Agent(id="phone", model=second))
        await user.hears_reply()
        first_seconds = user.listener.sound_seconds
        assert 0.8 < first_seconds < 1.4
        while not isinstance(turn := await anext(events), TurnCompleted):
            pass
        assert not turn.interrupted
        await second.hears_audio(32_000)  # a second
        await session.send("Go on.")
        await user.hears_reply()
        assert user.listener.sound_seconds > first_seconds + 0.1
        speaking.cancel()
        await asyncio.wait({speaking})
        await user.aclose()
        await bot.close()
    heard = np.frombuffer(bytes(second.audio), "<i2").astype(float)
    assert np.abs(np.fft.rfft(heard)).argmax() * 16_000 / len(heard) == pytest.approx(300, abs=5)
