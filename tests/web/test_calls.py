"""`realtime.web.calls` and `realtime.web.call`: how many calls, and until when."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref

import numpy as np
import pytest

from realtime import RealtimeSession
from realtime.errors import LinkLost, SessionClosed
from realtime.testing import ManualClock
from realtime.web import CallRequest, IceServer, WebLimits
from realtime.web import calls as calls_module
from realtime.web.calls import Calls
from realtime.web.errors import CallRefused
from realtime.web.peer import Peer


class Page:
    """Listens to a call."""

    def __init__(self) -> None:
        self.told: list[dict] = []
        self.left = False

    def tell(self, message) -> None:
        self.told.append(dict(message))

    def leave(self) -> None:
        self.left = True


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def make_calls(make_session, clock):
    made = []

    def make(factory=None, **limits) -> Calls:
        calls = Calls(factory or make_session, ice_servers=None, limits=WebLimits(**limits), clock=clock)
        made.append(calls)
        return calls

    yield make
    for calls in made:
        await calls.aclose()


async def open_call(calls: Calls):
    return await calls.open(CallRequest(address="127.0.0.1"), base_path="")


async def over(call) -> str:
    async with asyncio.timeout(60):
        await asyncio.wait([call._task])
    return call.reason


async def test_a_call_that_nobody_comes_back_to_ends_after_the_grace_time(make_calls, clock):
    call = await open_call(make_calls(grace_seconds=10))
    await clock.run(9)
    assert not call.over
    await clock.run(2)
    assert await over(call) == "gone"


async def test_a_call_with_a_listener_waits_as_long_as_something_is_said(make_calls, clock):
    call = await open_call(make_calls(grace_seconds=10, connect_seconds=20))
    page = Page()
    call.listen(page)
    for _ in range(3):
        await clock.run(25)
        call.touch()
    assert not call.over
    call.unlisten(page)
    await clock.run(12)
    assert await over(call) == "gone"


async def test_a_listener_that_neither_offers_nor_says_anything_holds_no_line(make_calls, clock):
    call = await open_call(make_calls(grace_seconds=10, connect_seconds=20))
    call.listen(Page())
    await clock.run(28)
    assert not call.over
    await clock.run(4)
    assert await over(call) == "gone"


async def test_the_time_alone_begins_once_the_session_has_begun(make_calls, clock, model, monkeypatch):
    """A local model may have been loaded first."""
    go, opened = asyncio.Event(), model.open

    async def slow():
        await go.wait()
        return await opened()

    monkeypatch.setattr(model, "open", slow)
    monkeypatch.setattr(model, "open_timeout_seconds", 1_000.0)
    opening = asyncio.get_running_loop().create_task(open_call(make_calls(grace_seconds=10)))
    await clock.run(60)
    go.set()
    call = await opening
    await clock.run(5)
    assert not call.over


async def test_one_address_takes_no_more_lines_than_it_may(make_calls):
    calls = make_calls(max_sessions_per_address=1)
    first = await open_call(calls)
    with pytest.raises(CallRefused) as caught:
        await open_call(calls)
    assert caught.value.code == "full"
    await calls.open(CallRequest(address="192.0.2.1"), base_path="")
    await first.aclose()
    await open_call(calls)


async def test_a_call_whose_beginning_the_end_of_the_server_cuts_off_says_so(make_calls, model, monkeypatch):
    reached = asyncio.Event()

    async def never():
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(model, "open", never)
    calls = make_calls()
    opening = asyncio.get_running_loop().create_task(open_call(calls))
    await reached.wait()
    await calls.aclose()
    with pytest.raises(CallRefused) as caught:
        await opening
    assert caught.value.code == "draining"


async def test_a_part_that_cannot_be_closed_does_not_keep_the_call(make_calls, monkeypatch, caplog):
    calls = make_calls()
    call = await open_call(calls)
    page = Page()
    call.listen(page)
    close = call.session.aclose

    async def fail():
        await close()
        raise OSError("no")

    monkeypatch.setattr(call.session, "aclose", fail)
    await call.aclose("bye")
    assert len(calls) == 0
    assert (page.told[-1]["type"], page.told[-1]["reason"]) == ("bye", "bye")
    assert "could not be closed" in caplog.text


async def test_a_caller_is_not_told_where_the_model_is(make_calls, model):
    model.refuse = LinkLost("10.0.0.7:8000 could not be reached")
    with pytest.raises(CallRefused) as caught:
        await open_call(make_calls())
    assert (caught.value.code, caught.value.message) == ("session_failed", "the model could not be reached, or refused")


async def test_a_call_in_which_nobody_says_anything_ends(make_calls, clock):
    call = await open_call(make_calls(idle_seconds=20))
    page = Page()
    call.listen(page)
    await clock.run(15)
    call.touch()
    await clock.run(15)
    assert not call.over
    await clock.run(10)
    assert await over(call) == "idle"
    files = [{"name": "context.json", "url": f"{call.path}/context.json"}]
    assert page.told[-1] == {"type": "bye", "reason": "idle", "files": files, "seconds": 30.0}
    assert page.left


async def test_a_camera_that_looks_on_says_nothing(make_calls, clock):
    call = await open_call(make_calls(idle_seconds=20))
    call.listen(Page())
    for _ in range(3):
        await clock.run(5)
        await call.session.send_image(np.zeros((8, 8, 3), np.uint8))
    await clock.run(10)
    assert await over(call) == "idle"
    assert len(call.session.all_messages()) == 3


async def test_a_call_ends_when_its_time_is_up(make_calls, clock):
    call = await open_call(make_calls(total_seconds=30, idle_seconds=None))
    call.listen(Page())
    for _ in range(3):
        await clock.run(10)
        call.touch()
    await clock.run(1)
    assert await over(call) == "time_limit"


async def test_a_session_that_ends_by_itself_ends_its_call(make_calls):
    calls = make_calls()
    call = await open_call(calls)
    page = Page()
    call.listen(page)
    await call.session.aclose()
    assert await over(call) == "session_closed"
    assert any(each.get("event") == "SessionEnded" for each in page.told)
    assert len(calls) == 0


async def test_while_draining_calls_go_on_and_no_new_one_is_taken(make_calls, clock):
    calls = make_calls()
    call = await open_call(calls)
    page = Page()
    call.listen(page)
    draining = asyncio.get_running_loop().create_task(calls.drain(30))
    await clock.run(10)
    assert {"type": "draining", "seconds": 30} in page.told
    assert not call.over
    with pytest.raises(CallRefused) as caught:
        await open_call(calls)
    assert (caught.value.code, caught.value.status) == ("draining", 503)
    call.end("bye")
    async with asyncio.timeout(60):
        await draining
    assert call.reason == "bye"


async def test_calls_that_outlast_the_drain_are_ended(make_calls, clock):
    calls = make_calls()
    call = await open_call(calls)
    draining = asyncio.get_running_loop().create_task(calls.drain(5))
    await clock.run(6)
    async with asyncio.timeout(60):
        await draining
    assert call.reason == "server_ended"
    assert len(calls) == 0


async def test_a_call_that_ends_while_an_offer_is_answered_leaves_no_peer(make_calls, monkeypatch):
    reached, go = asyncio.Event(), asyncio.Event()
    made = []

    async def slow(peer, sdp, sources):
        made.append(peer)
        reached.set()
        await go.wait()
        return "v=0"

    monkeypatch.setattr(Peer, "answer", slow)
    call = await open_call(make_calls())
    answering = asyncio.get_running_loop().create_task(call.answer("v=0", {}))
    await reached.wait()
    await call.aclose("time_limit")
    go.set()
    with pytest.raises(CallRefused) as caught:
        await answering
    assert caught.value.code == "gone"
    assert call.peer is None
    assert made[0].pc.signalingState == "closed"


@pytest.mark.parametrize("ending", ["drain", "aclose"])
async def test_no_call_begins_after_the_end(make_calls, make_session, ending):
    """The factory is slow; the end waits for its answer."""
    reached, go = asyncio.Event(), asyncio.Event()
    made = []

    async def factory(request):
        reached.set()
        await go.wait()
        made.append(make_session())
        return made[0]

    calls = make_calls(factory)
    opening = asyncio.get_running_loop().create_task(open_call(calls))
    await reached.wait()
    leaving = asyncio.get_running_loop().create_task(calls.drain(0) if ending == "drain" else calls.aclose())
    await asyncio.sleep(0)
    assert not leaving.done()
    go.set()
    with pytest.raises(CallRefused) as caught:
        await opening
    assert caught.value.code == "draining"
    await leaving
    assert not made[0].begun
    assert len(calls) == 0


async def test_a_factory_that_never_answers_does_not_keep_the_server(make_calls, monkeypatch):
    monkeypatch.setattr(calls_module, "_BEGINNING_SECONDS", 0.01)
    reached = asyncio.Event()

    async def factory(request):
        reached.set()
        await asyncio.Event().wait()

    calls = make_calls(factory)
    opening = asyncio.get_running_loop().create_task(open_call(calls))
    await reached.wait()
    await calls.aclose()
    opening.cancel()


async def test_a_session_that_does_not_begin_in_time_is_given_up(make_calls, clock, model, monkeypatch):
    async def never():
        await asyncio.Event().wait()

    monkeypatch.setattr(model, "open", never)
    monkeypatch.setattr(model, "open_timeout_seconds", 1_000.0)
    calls = make_calls()
    opening = asyncio.get_running_loop().create_task(open_call(calls))
    await clock.run(91)
    with pytest.raises(CallRefused, match="did not answer in time"):
        await opening
    async with asyncio.timeout(60):
        while len(calls):  # noqa: ASYNC110  (nothing tells of it)
            await asyncio.sleep(0)


async def test_a_caller_that_gives_up_while_its_session_begins_leaves_nothing(make_calls, model, monkeypatch):
    reached = asyncio.Event()

    async def never():
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(model, "open", never)
    calls = make_calls()
    opening = asyncio.get_running_loop().create_task(open_call(calls))
    await reached.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with asyncio.timeout(60):
        while len(calls):  # noqa: ASYNC110  (nothing tells of it)
            await asyncio.sleep(0)


async def test_a_session_that_has_begun_is_taken_as_it_is_and_ended_with_its_call(make_calls, make_session):
    async def factory(request):
        return await make_session().__aenter__()

    calls = make_calls(factory)
    call = await open_call(calls)
    await call.session.send("Hello.")
    await call.aclose()
    assert call.session.begun
    with pytest.raises(SessionClosed):
        await call.session.send("Hello?")


@pytest.mark.parametrize("wrong", [lambda _: None, lambda _: 1 / 0])
async def test_a_factory_that_gives_no_session_refuses_the_call(make_calls, wrong):
    calls = make_calls(wrong)
    with pytest.raises(CallRefused):
        await open_call(calls)
    assert len(calls) == 0


async def test_servers_that_cannot_be_found_out_refuse_the_call(make_session, clock):
    async def fail():
        raise ConnectionError("no provider")

    calls = Calls(make_session, ice_servers=fail, limits=WebLimits(), clock=clock)
    with pytest.raises(CallRefused, match="STUN and TURN"):
        await calls.open(CallRequest(address="192.0.2.1"), base_path="")
    assert len(calls) == 0


async def test_servers_are_found_out_anew_for_who_comes_later_and_the_last_do_if_they_cannot_be(make_session, clock):
    found = []

    def find():
        found.append(IceServer(urls=("turn:t.example",), username=str(len(found)), credential="c"))
        if len(found) == 3:
            raise ConnectionError
        return [found[-1]]

    calls = Calls(make_session, ice_servers=find, limits=WebLimits(), clock=clock)
    call = await calls.open(CallRequest(address="192.0.2.1"), base_path="")
    call.listen(Page())
    await call.refresh_servers()
    assert len(found) == 1
    clock.advance(61)
    await call.refresh_servers()
    assert call.ice_servers == (found[1],)
    clock.advance(61)
    await call.refresh_servers()
    assert (len(found), call.ice_servers) == (3, (found[1],))
    await calls.aclose()


async def test_an_offer_is_answered_with_the_servers_of_now(make_session, clock, monkeypatch):
    async def answer(peer, sdp, sources):
        return "v=0"

    monkeypatch.setattr(Peer, "answer", answer)
    found = []
    calls = Calls(make_session, ice_servers=lambda: found.append(1) or [], limits=WebLimits(), clock=clock)
    call = await calls.open(CallRequest(address="192.0.2.1"), base_path="")
    clock.advance(61)
    await call.answer("v=0", {})
    assert len(found) == 2
    await calls.aclose()


async def test_files_of_a_call_can_be_had_for_the_grace_time_after_it(make_calls, clock):
    calls = make_calls(grace_seconds=10)
    call = await open_call(calls)
    await call.session.send("Remember me.")
    await call.aclose()
    assert calls.find_downloads(call.id, "wrong") is None
    found = await calls.find_downloads(call.id, call.key).read("context.json")
    content = b"".join([piece async for piece in found.pieces])
    assert len(content) == found.size
    assert json.loads(content)["items"][0]["content"] == "Remember me."
    await clock.run(11)
    assert calls.find_downloads(call.id, call.key) is None


async def test_files_of_so_many_ended_calls_are_kept_as_there_are_lines(make_calls):
    calls = make_calls(max_sessions=1)
    ended = []
    for _ in range(2):
        ended.append(await open_call(calls))
        await ended[-1].aclose()
    assert calls.find_downloads(ended[0].id, ended[0].key) is None
    assert calls.find_downloads(ended[1].id, ended[1].key) is not None


async def test_several_calls_at_once_know_nothing_of_each_other(make_calls):
    calls = make_calls()
    first, second = await asyncio.gather(open_call(calls), open_call(calls))
    assert first.secret != second.secret
    await first.session.send("for the first")
    await first.session.wait_for_reply()
    assert second.session.all_messages() == []
    await first.aclose()
    assert not second.over


async def test_calls_with_peer_connections_leave_nothing_behind(serve, call):
    served = await serve()
    left: weakref.WeakSet[object] = weakref.WeakSet()
    for _ in range(4):
        caller = await call(served)
        await caller.offer()
        (running,) = served.bot.calls.values()
        left.update((running, running.peer, running.session))
        del running
        await caller.send(type="bye")
        await served.until_calls(0)
        await caller.hang_up()
    gc.collect()
    assert len(left) <= 3  # of the last one, whose tasks may still be ending


async def test_a_hundred_calls_opened_and_closed_leave_what_was_there(make_calls):
    calls = make_calls()

    sessions: weakref.WeakSet[RealtimeSession] = weakref.WeakSet()

    async def cycle() -> None:
        call = await open_call(calls)
        sessions.add(call.session)
        await call.aclose()

    for _ in range(3):
        await cycle()
    gc.collect()
    tasks, threads = len(asyncio.all_tasks()), threading.active_count()
    for _ in range(100):
        await cycle()
    gc.collect()
    assert len(calls) == 0
    assert len(asyncio.all_tasks()) <= tasks + 1  # the model's end of the last one
    assert threading.active_count() <= threads
    assert len(sessions) <= 1
