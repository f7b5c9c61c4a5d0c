"""A session's beginning and end: bounded, idempotent, from anywhere, nothing left (L4, L7; B36, B38, B47, B68, B71)."""

from __future__ import annotations

import asyncio
import gc
import ssl
import threading
import weakref
from typing import Any

import pytest

from realtime import ChatContext, FrameSampling, RealtimeSession, ReconnectPolicy, ToolContext, UsageLimits
from realtime.core.commands import CreateItem
from realtime.errors import LinkLost, ModelError, RealtimeError, SessionClosed, UsageLimitExceeded, UserError
from realtime.events import ConnectionDropped, FrameKept, Reconnected, SessionEnded, TrackEnded
from realtime.pipelines.worker import encode_pool, tool_pool
from realtime.testing import FakeTrack, MemoryPair


async def ended(events: Any) -> list[SessionEnded]:
    return [event async for event in events if isinstance(event, SessionEnded)]


# -- the beginning -----------------------------------------------------------------------------------------------------


async def test_it_begins_once(obliging):
    session = RealtimeSession(obliging())
    async with session:
        with pytest.raises(UserError, match="once"):
            await session.__aenter__()
    with pytest.raises(SessionClosed):
        async with session:
            pass


async def test_before_it_begins_nothing_can_be_asked_of_it(obliging):
    session = RealtimeSession(obliging())
    for ask in (lambda: aiter(session), session.stream_audio, lambda: session.reply_track):
        with pytest.raises(UserError, match="async with"):
            ask()
    with pytest.raises(UserError, match="async with"):
        await session.send("hi")
    await session.aclose()
    with pytest.raises(SessionClosed):
        await session.send("hi")


@pytest.mark.parametrize(
    "fault", [ModelError("no such key", code="invalid_api_key"), LinkLost("away"), UserError("no key")]
)
async def test_a_failed_connect_raises_what_it_was_and_leaves_nothing(obliging, fault):
    context, model = ChatContext.empty(), obliging()
    model.refuse.append(fault)
    with pytest.raises(type(fault)) as caught:
        async with RealtimeSession(model, context=context):
            pytest.fail("it did not connect")
    assert caught.value is fault
    assert model.closed == 1
    async with RealtimeSession(obliging(), context=context):  # and the context is free again
        pass


async def test_an_exception_in_the_body_comes_out_as_it_is(obliging):
    with pytest.raises(KeyError, match="mine"):
        async with RealtimeSession(obliging()):
            raise KeyError("mine")


async def test_closing_while_it_connects(obliging):
    model = obliging()
    model.reach = asyncio.Event()
    session = RealtimeSession(model)
    beginning = asyncio.create_task(session.__aenter__())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await session.aclose()
    with pytest.raises(SessionClosed, match="connecting"):
        await beginning
    assert model.connections == 0


async def test_cancelling_while_it_connects(obliging):
    """L7: the outer cancellation propagates, nothing is left behind."""
    model, context = obliging(), ChatContext.empty()
    model.reach = asyncio.Event()

    async def begin() -> None:
        async with RealtimeSession(model, context=context):
            pytest.fail("it did not connect")

    beginning = asyncio.create_task(begin())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    beginning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await beginning
    async with RealtimeSession(obliging(), context=context):
        pass


# -- the end -----------------------------------------------------------------------------------------------------------


async def test_closing_twice_at_once_and_once_more_ends_it_once(obliging):
    async with RealtimeSession(obliging()) as session:
        events = aiter(session)
        await asyncio.gather(session.aclose(), session.aclose())
        await session.aclose()
    assert [event.reason for event in await ended(events)] == ["closed"]


async def test_closing_from_an_event_handler(obliging):
    async with RealtimeSession(obliging("One.")) as session:

        async def handle() -> int:
            count = 0
            async for _event in session:
                count += 1
                await session.aclose()
            return count

        handling = asyncio.create_task(handle())
        await asyncio.sleep(0)
        await session.send("Hi")
        assert await handling >= 1


async def test_closing_from_an_async_tool(obliging, tool_call):
    """T5, B68: the tool goes on after it, and is no longer answered."""
    after: list[str] = []

    async def hang_up(context: ToolContext) -> str:
        await context.session.aclose()
        after.append("went on")
        return "bye"

    model = obliging(tool_call("hang_up"))
    async with RealtimeSession(model, tools=[hang_up]) as session:
        events = aiter(session)
        await session.send("Hang up.")
        assert len(await ended(events)) == 1
    assert after == ["went on"]
    assert [call.name for message in session.all_messages() for call in message.tool_calls] == ["hang_up"]
    assert [message.is_error for message in session.all_messages() if message.tool_call_id] == [True]  # H7


async def test_closing_from_a_synchronous_tool_on_its_thread(obliging, tool_call):
    """B68."""
    loop, after = asyncio.get_running_loop(), []

    def hang_up(context: ToolContext) -> str:
        asyncio.run_coroutine_threadsafe(context.session.aclose(), loop).result(timeout=30)
        after.append("went on")
        return "bye"

    async with RealtimeSession(obliging(tool_call("hang_up")), tools=[hang_up]) as session:
        events = aiter(session)
        await session.send("Hang up.")
        assert len(await ended(events)) == 1
    assert after == ["went on"]


async def test_closing_while_a_tool_will_not_end_is_bounded(obliging, tool_call):
    """L4."""
    gate, begun = asyncio.Event(), asyncio.Event()

    async def stubborn() -> str:
        begun.set()
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    session = RealtimeSession(obliging(tool_call("stubborn")), tools=[stubborn])
    async with asyncio.timeout(20), session:
        await session.send("Go.")
        await begun.wait()
    gate.set()
    assert [message.is_error for message in session.all_messages() if message.tool_call_id] == [True]


async def test_closing_while_a_thread_will_not_end_is_bounded(obliging, tool_call):
    gate, begun = threading.Event(), threading.Event()

    def stuck() -> None:
        begun.set()
        gate.wait()

    async with asyncio.timeout(20):
        async with RealtimeSession(obliging(tool_call("stuck")), tools=[stuck]) as session:
            await session.send("Go.")
            await asyncio.get_running_loop().run_in_executor(None, begun.wait)
        assert session.all_messages()[-1].is_error
    gate.set()


async def test_closing_when_the_provider_answers_nothing_is_bounded(obliging):
    """B38: here the line is half-open; the real socket is `tests/transports`' to show."""
    model = obliging()
    async with asyncio.timeout(20):
        async with RealtimeSession(model) as session:
            assert isinstance(model.pair, MemoryPair)
            model.pair.stall()
            await session.send("Hi")
    assert session.all_messages() == [] or session.all_messages()[0].content == "Hi"


async def test_cancelling_the_body_closes_and_propagates(obliging):
    """L7."""
    inside, events = asyncio.Event(), []

    async def run() -> None:
        async with RealtimeSession(obliging()) as session:
            events.append(aiter(session))
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await ended(events[0])) == 1


async def test_what_was_open_is_recorded_at_the_end(obliging):
    """H7: an open reply is interrupted and says what was heard."""
    async with RealtimeSession(obliging("one two three four")) as session:
        audio = session.stream_audio()
        await session.send("Hi")
        await anext(audio)
        await anext(audio)
        assert session.pending
    message = session.all_messages()[-1]
    assert message.interrupted
    assert (message.content, message.unheard) == ("one two", "three four")
    assert session.pending == ()


async def test_after_the_end_nothing_can_be_asked_but_everything_can_be_read(obliging):
    async with RealtimeSession(obliging("One.")) as session:
        await session.send("Hi")
        await session.wait_for_reply()
    for ask in (
        session.send("x"),
        session.send_audio(b"\0\0"),
        session.create_response(),
        session.interrupt(),
        session.commit_audio(),
        session.clear_audio(),
        session.wait_for_reply(),
    ):
        with pytest.raises(SessionClosed):
            await ask
    with pytest.raises(SessionClosed):
        session.add_track(FakeTrack("audio"))
    assert len(session.all_messages()) == 2
    assert session.context.turn_count() == 1
    assert session.statistics().machine.responses == 1
    assert session.conversation.messages


async def test_what_ends_a_session_is_raised_from_its_iterators(obliging):
    model = obliging()
    async with RealtimeSession(model, reconnect=ReconnectPolicy(enabled=False)) as session:
        events = aiter(session)
        waiting = asyncio.create_task(session.wait_for_reply())
        await asyncio.sleep(0)
        assert model.pair is not None
        model.pair.server.close(1011, "overloaded")
        seen: list[Any] = []

        async def read() -> None:
            async for event in events:
                seen.append(event)  # noqa: PERF401  (what came before the error counts)

        with pytest.raises(LinkLost, match="overloaded"):
            await read()
        with pytest.raises(LinkLost):
            await waiting
        with pytest.raises(SessionClosed):
            await session.send("x")
    assert [event.reason for event in seen if isinstance(event, SessionEnded)] == ["link_lost"]


async def test_a_fault_of_the_link_itself_ends_the_session_with_an_error(obliging, caplog):
    """What nobody foresaw is an error too, never a session that hears nothing."""
    model = obliging()

    class Broken(type(model.make_wire())):  # type: ignore[misc]
        def decode(self, data: Any) -> Any:
            if "surprise" in str(data):
                raise KeyError("nobody foresaw this")
            return super().decode(data)

    model.make_wire = Broken
    async with RealtimeSession(model) as session:
        events = aiter(session)
        await model.say(['{"type": "surprise"}'])
        with pytest.raises(RealtimeError, match="KeyError"):
            await drain(events)
    assert "the link to the model failed" in caplog.text


async def test_a_fault_in_the_applications_own_model_is_told_as_that_and_not_tried_again(obliging, caplog):
    """Whose code raised, with its class and method; the error itself is the cause."""
    model = obliging()

    class AcmeWire(type(model.make_wire())):  # type: ignore[misc]
        def encode(self, command: Any) -> Any:
            return super().encode(command) if not isinstance(command, CreateItem) else {}["no such key"]

    model.make_wire = AcmeWire
    async with RealtimeSession(model) as session:
        events = aiter(session)
        await session.send("Hello.")
        with pytest.raises(
            RealtimeError, match=r"model's own code failed: .*AcmeWire\.encode raised KeyError"
        ) as caught:
            await drain(events)
    assert isinstance(caught.value.__cause__, KeyError)
    assert not isinstance(caught.value, LinkLost)
    assert model.connections == 1


async def test_a_model_that_cannot_be_opened_by_a_fault_of_its_own_says_so(obliging, caplog):
    """From the call that begins the session."""

    class AcmeModel(type(obliging())):  # type: ignore[misc]
        async def open(self) -> Any:
            raise AttributeError("nobody set this")

    model = AcmeModel()
    with pytest.raises(RealtimeError, match=r"own code failed: .*AcmeModel\.open raised AttributeError: nobody set"):
        async with RealtimeSession(model):
            pass


async def test_a_fault_of_our_own_is_not_laid_on_the_applications_model(obliging, monkeypatch, caplog):
    """A wire format of ours, under whoever's model."""
    model = obliging()
    wire = type(model.make_wire())
    sound_decode = wire.decode

    def decode(self: Any, data: Any) -> Any:
        if "surprise" in str(data):
            raise KeyError("nobody foresaw this")
        return sound_decode(self, data)

    monkeypatch.setattr(wire, "decode", decode)
    async with RealtimeSession(model) as session:
        events = aiter(session)
        await model.say(['{"type": "surprise"}'])
        with pytest.raises(RealtimeError, match="the link to the model failed: KeyError"):
            await drain(events)


async def test_what_the_applications_wire_format_inherits_is_not_its_own_code(obliging, monkeypatch, caplog):
    """The class that is called is theirs; the method, and all that it calls, is ours."""
    model = obliging()

    class AcmeWire(type(model.make_wire())):  # type: ignore[misc]
        pass

    model.make_wire = AcmeWire
    async with RealtimeSession(model) as session:
        events = aiter(session)
        monkeypatch.setattr("realtime.wire.openai._write", None)
        await session.send("Hello.")
        with pytest.raises(RealtimeError, match="the link to the model failed: TypeError"):
            await drain(events)


async def test_what_the_applications_wire_format_overrides_is_its_own_code_whoever_calls_it(obliging, caplog):
    """One method of ours that another one of ours calls."""
    model = obliging()

    class AcmeWire(type(model.make_wire())):  # type: ignore[misc]
        def session_config(self, command: Any) -> Any:
            raise KeyError("no such voice")

    model.make_wire = AcmeWire
    with pytest.raises(RealtimeError, match=r"own code failed: .*AcmeWire\.session_config raised KeyError"):
        async with RealtimeSession(model):
            pass


async def test_a_function_put_in_place_of_a_models_method_is_told_by_its_own_name(obliging, caplog):
    """It has no class."""
    model = obliging()

    async def open() -> Any:
        raise KeyError("no such key")

    model.open = open
    with pytest.raises(RealtimeError, match=r"own code failed: test_a_function\w*\.<locals>\.open raised KeyError"):
        async with RealtimeSession(model):
            pass


def break_first_transport(model: Any, method: str, error: BaseException) -> None:
    """A method of its first transport does its work, and raises: when it closes, or once a reply is under way."""
    ours = model.open
    broken: list[Any] = []

    async def open() -> Any:
        transport = await ours()
        if not broken:
            broken.append(transport)
            sound = getattr(transport, method)

            async def fail(*given: Any) -> Any:
                done = await sound(*given)
                if method == "aclose" or "response." in str(given or done):
                    raise error
                return done

            setattr(transport, method, fail)
        return transport

    model.open = open


@pytest.mark.parametrize("error", [ConnectionResetError("reset"), ssl.SSLError("bad record"), TimeoutError()], ids=repr)
@pytest.mark.parametrize("method", ["send", "receive", "aclose"])
async def test_an_os_error_of_the_applications_transport_is_a_connection_that_was_lost(obliging, method, error):
    """As docs/howto-testing.md promises."""
    model = obliging("One.", "Two.")
    break_first_transport(model, method, error)
    async with RealtimeSession(model, reconnect=ReconnectPolicy(first_delay_seconds=0.001)) as session:
        events = aiter(session)
        if method == "aclose":
            model.drop()
        else:
            await session.send("a")
        while not isinstance(await anext(events), Reconnected):
            pass
        assert model.connections == 2


@pytest.mark.parametrize("method", ["send", "receive"])
async def test_what_the_applications_transport_cancels_within_itself_is_a_connection_that_was_lost(obliging, method):
    """A task of its own, perhaps; the session would hear nothing any more, and say nothing of it."""
    model = obliging("One.", "Two.")
    break_first_transport(model, method, asyncio.CancelledError())
    async with RealtimeSession(model, reconnect=ReconnectPolicy(first_delay_seconds=0.001)) as session:
        events = aiter(session)
        await session.send("a")
        async with asyncio.timeout(60):
            while not isinstance(await anext(events), Reconnected):
                pass
        assert model.connections == 2


async def test_what_the_applications_model_cancels_as_it_opens_is_told_as_lost(obliging):
    """It would be waited for for ever."""
    model = obliging()

    async def open() -> Any:
        raise asyncio.CancelledError

    model.open = open
    with pytest.raises(LinkLost, match="cancelled"):
        async with asyncio.timeout(60), RealtimeSession(model):
            pass


async def test_an_os_error_of_the_applications_model_is_told_as_lost(obliging):
    """By our name for it; the error itself is the cause."""
    model = obliging()

    async def open() -> Any:
        raise ConnectionRefusedError

    model.open = open
    with pytest.raises(LinkLost, match="ConnectionRefusedError") as caught:
        async with RealtimeSession(model):
            pass
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)


async def drain(events: Any) -> None:
    async for _event in events:
        pass


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_model_that_will_not_be_let_go_does_not_hold_the_end(obliging, caplog, hangs):
    """L4, B68: later steps run though an earlier one failed."""
    model = obliging()
    close = model.aclose

    async def refuse() -> None:
        if hangs:
            await asyncio.Event().wait()
        raise OSError("it will not")

    model.aclose = refuse
    async with asyncio.timeout(20), RealtimeSession(model) as session:
        events = aiter(session)
        track = session.reply_track
    assert len(await ended(events)) == 1
    assert track.readyState == "ended"
    assert threads() == set()
    assert hangs or "a step of closing the session failed" in caplog.text
    model.aclose = close


async def test_a_limit_ends_the_session_after_the_running_reply(obliging):
    model = obliging("One.", "Two.")
    async with RealtimeSession(model, usage_limits=UsageLimits(max_responses=1)) as session:
        events = aiter(session)
        await session.send("a")
        turn = await session.wait_for_reply()
        with pytest.raises(UsageLimitExceeded):
            async for _event in events:
                pass
    assert turn.messages[0].content == "One."


async def test_a_dropped_connection_comes_back_and_the_talk_goes_on(obliging):
    """L1, B36."""
    model = obliging("One.", "Two.")
    async with RealtimeSession(model) as session:
        events = aiter(session)
        await session.send("a")
        await session.wait_for_reply()
        assert model.pair is not None
        model.pair.drop()
        while not isinstance(event := await anext(events), Reconnected):
            assert not isinstance(event, ConnectionDropped) or event.will_retry
        await session.send("b")
        await session.wait_for_reply()
    assert [message.content for message in session.all_messages()] == ["a", "One.", "b", "Two."]
    assert model.connections == 2
    assert session.statistics().machine.reconnects == 1


# -- what is left ------------------------------------------------------------------------------------------------------


def threads() -> set[str]:
    """Threads of the sessions' pools; a test elsewhere may keep a local model's."""
    pools = ("realtime-encode", "realtime-tool")
    return {thread.name for thread in threading.enumerate() if thread.name.startswith(pools)}


async def one_call(obliging: Any) -> weakref.ref[RealtimeSession]:
    """Tracks of both kinds, a picture, a tool on a thread, a reply."""

    def add(a: int, b: int) -> int:
        return a + b

    def calls_add(response_id: str, item_id: str, previous: str | None) -> Any:
        from realtime.testing import openai_script

        return openai_script.tool_call(
            response_id, item_id, f"call_{item_id}", "add", '{"a": 1, "b": 2}', previous_item_id=previous
        )

    model = obliging(calls_add, "Three.")
    async with RealtimeSession(model, tools=[add], sampling=FrameSampling(fps_idle=10)) as session:
        session.add_track(FakeTrack.audio(seconds=0.2))
        camera = FakeTrack.video(seconds=1)
        session.add_track(camera)
        audio, events = session.stream_audio(), aiter(session)
        await session.send("One and two?")
        awaited = {FrameKept, TrackEnded}
        while awaited:
            awaited.discard(type(await anext(events)))
        while session.statistics().machine.responses < 2:
            await anext(audio)
    assert "3" in [message.content for message in session.all_messages()]
    assert session.statistics().machine.images_sent > 0
    return weakref.ref(session)


async def test_twenty_calls_leave_no_task_no_thread_and_no_object(obliging):
    """B71, L7. (Tasks are also looked for after every test.)"""
    tasks_before = len(asyncio.all_tasks())
    sessions = [await one_call(obliging) for _ in range(20)]
    gc.collect()
    assert [session for session in sessions if session() is not None] == []
    assert threads() == set()
    assert encode_pool.statistics().members == tool_pool.statistics().members == 0
    for _ in range(10):
        await asyncio.sleep(0)
    assert len([task for task in asyncio.all_tasks() if "session" in task.get_name()]) == 0
    assert len(asyncio.all_tasks()) - tasks_before <= 20  # the test's own providers, one reader each


@pytest.mark.parametrize("turns", [*range(0, 40, 2), *range(40, 200, 10)])
async def test_cancelled_at_any_moment_it_lets_go_of_everything(obliging, tool_call, turns):
    """L7: the cancellation comes out, the context is free, no task or thread is left (looked for after the test)."""
    context = ChatContext.empty()
    model = obliging(tool_call("think"), "One two three.", "Four.")

    async def think() -> str:
        for _ in range(5):
            await asyncio.sleep(0)
        return "thought"

    async def call() -> None:
        async with RealtimeSession(model, context=context, tools=[think]) as session:
            session.add_track(FakeTrack.audio(seconds=0.2, ends=False))
            session.add_track(FakeTrack.video(seconds=0.2, ends=False))
            audio = session.stream_audio()
            await session.send("a")
            await anext(audio)
            await session.interrupt()
            await session.send("b")
            await session.wait_for_reply()
            await asyncio.Event().wait()

    calling = asyncio.create_task(call())
    for _ in range(turns):
        await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    context.add_message("user", "It is mine again.")
    assert model.closed <= 1
    assert threads() == set()


async def test_a_session_that_never_began_is_free(obliging):
    session = weakref.ref(RealtimeSession(obliging()))
    gc.collect()
    assert session() is None
