"""Calls over the signalling websocket, with aiortc as the client (docs/web-protocol.md)."""

from __future__ import annotations

import asyncio
import json

import pytest
from websockets.exceptions import ConnectionClosed

from realtime.errors import UserError
from realtime.testing import ManualClock
from realtime.web import WebLimits


async def test_a_call_has_sound_both_ways_and_its_events_are_told(serve, call, model):
    served = await serve()
    caller = await call(served)
    assert caller.welcome["model"] == "obliging"
    assert caller.welcome["ice_servers"] == []
    assert caller.welcome["input"] == {"audio": True, "video": True}
    await caller.offer()
    await caller.receive("connected")
    await model.hears_audio(24_000)
    await caller.send(type="text", text="Count.")
    await caller.until(lambda: caller.frames >= 5)
    committed = await caller.receive("event", event="MessageCommitted")
    assert committed["message"]["text"] == "Count."
    await caller.receive("event", event="TurnCompleted")
    await caller.send(type="bye")
    assert (await caller.receive("bye"))["reason"] == "bye"
    await served.until_calls(0)


async def test_each_source_has_the_name_that_the_page_gave_it(serve, call):
    served = await serve()
    caller = await call(served)
    await caller.offer(camera=True, names={"audio": "microphone", "video": "screen"})
    kept = await caller.receive("event", event="FrameKept")
    assert kept["source"] == "screen"
    (running,) = served.bot.calls.values()
    assert set(running.session.statistics().tracks) == {"microphone", "screen"}


async def test_candidates_are_trickled_in(serve, call):
    """The offer has none; they come one by one, then their end."""
    served = await serve()
    caller = await call(served)
    send = caller.send

    async def send_trickled(**message):
        if message["type"] != "offer":
            await send(**message)
            return
        lines = message["sdp"].splitlines(keepends=True)
        candidates = [line.strip() for line in lines if line.startswith("a=candidate")]
        message["sdp"] = "".join(line for line in lines if "candidate" not in line)
        assert candidates
        await send(**message)
        for candidate in candidates:
            await send(type="candidate", candidate={"candidate": candidate[2:], "sdpMid": "0", "sdpMLineIndex": 0})
        await send(type="candidate", candidate={"candidate": "nonsense", "sdpMid": "0"})
        await send(type="candidate", candidate=None)

    caller.send = send_trickled
    await caller.offer()
    await caller.receive("connected")


async def test_another_connection_goes_on_with_the_same_conversation(serve, call, model):
    """Reload, or a change of network: a new websocket and a new RTCPeerConnection on the same session."""
    served = await serve()
    first = await call(served)
    await first.offer()
    await first.send(type="text", text="Remember me.")
    await first.receive("event", event="TurnCompleted")
    (running,) = served.bot.calls.values()
    await first.aclose()
    second = await call(served, greet=False)
    await second.greet(call=first.welcome["call"], secret=first.welcome["secret"])
    await second.offer()
    await second.receive("connected")
    await second.send(type="text", text="Who am I?")
    await second.until(lambda: second.frames >= 3)
    await second.receive("event", event="TurnCompleted")
    texts = [message.content for message in running.session.all_messages()]
    assert texts == ["Remember me.", "Yes.", "Who am I?", "Yes."]
    assert set(running.session.statistics().tracks) == {"microphone"}
    assert len(served.bot.calls) == 1


async def test_a_reply_goes_on_where_it_was_when_its_listener_comes_back(serve, call, model):
    model.replies.append(" ".join(["word"] * 40))
    served = await serve()
    first = await call(served)
    await first.offer()
    await first.send(type="text", text="Talk for four seconds.")
    await first.until(lambda: first.frames >= 20)
    await first.aclose()
    (running,) = served.bot.calls.values()
    assert not [message for message in running.session.all_messages() if message.role.value == "assistant"]
    second = await call(served, greet=False)
    await second.greet(call=first.welcome["call"], secret=first.welcome["secret"])
    await second.offer()
    turn = await second.receive("event", event="TurnCompleted")
    assert turn["interrupted"] is False
    assert second.frames > 0
    assert first.frames + second.frames <= 210


async def test_a_second_page_takes_the_call_from_the_first(serve, call):
    served = await serve()
    first = await call(served)
    second = await call(served, greet=False)
    await second.greet(call=first.welcome["call"], secret=first.welcome["secret"])
    told = await first.receive("error")
    assert (told["code"], told["fatal"]) == ("replaced", True)
    await first.until(lambda: first.closed)
    assert len(served.bot.calls) == 1


@pytest.mark.parametrize(
    "wrong", [{"secret": "x"}, {"secret": "\ud800"}, {"call": "x"}, {"secret": None}, {"secret": 5}, {"call": 7}]
)
async def test_nobody_comes_back_to_a_call_without_its_secret(serve, call, wrong):
    served = await serve()
    first = await call(served)
    other = await call(served, greet=False)
    await other.send(type="hello", **({"call": first.welcome["call"], "secret": first.welcome["secret"]} | wrong))
    refused = await other.receive("error")
    assert (refused["code"], refused["fatal"]) == ("gone", True)
    await other.until(lambda: other.closed)


async def test_what_is_asked_on_the_data_channel_is_done_too(serve, call):
    served = await serve()
    caller = await call(served)
    await caller.offer()
    caller.channel.send('{"type": "text", "text": "By channel."}')
    committed = await caller.receive("event", event="MessageCommitted")
    assert committed["message"]["text"] == "By channel."


async def test_the_reply_can_be_stopped(serve, call, model):
    model.replies.append(" ".join(["word"] * 100))
    served = await serve()
    caller = await call(served)
    await caller.offer()
    await caller.send(type="text", text="Talk.")
    await caller.until(lambda: caller.frames >= 5)
    await caller.send(type="interrupt")
    cut = await caller.receive("event", event="ReplyInterrupted")
    assert 0 < cut["heard_ms"] < 10_000
    assert cut["unheard"]


async def test_captions_are_told_how_much_has_been_heard(serve, call, model):
    model.replies.append(" ".join(["word"] * 40))
    served = await serve()
    caller = await call(served)
    await caller.offer()
    await caller.send(type="text", text="Talk for four seconds.")
    await caller.receive("event", event="TurnCompleted")
    heard = [each["heard"] for each in caller.messages if each["type"] == "heard"]
    assert heard == sorted(heard)
    assert len(set(heard)) > 2
    assert heard[-1] <= len(" ".join(["word"] * 40))


async def test_what_was_heard_is_what_the_page_reports(serve, call, model):
    """P0: the page has played nothing yet, whatever was sent; then it says that it has played all."""
    model.replies.append("one two three four five")
    served = await serve()
    caller = await call(served)
    await caller.offer()
    (running,) = served.bot.calls.values()
    keep_alive = json.dumps({"type": "played"})
    while not running.session.listener.measures:
        caller.channel.send(keep_alive)
        await asyncio.sleep(0.02)
    newest: list[int] = []
    sent = running.peer._played.sent
    running.peer._played.sent = lambda timestamp, mark: (newest.append(timestamp), sent(timestamp, mark))
    await caller.send(type="text", text="Count.")
    while caller.frames < 10:
        caller.channel.send(keep_alive)
        await asyncio.sleep(0.02)
    assert running.session.heard_so_far() == {running.session.pending[-1].message_id: ""}
    while not [each for each in caller.messages if each.get("event") == "TurnCompleted"]:
        report = {"type": "played", "rtp_timestamp": newest[-1], "age_ms": 500, "delay_ms": 0}
        caller.channel.send(json.dumps(report))
        await asyncio.sleep(0.02)
    assert [each.content for each in running.session.all_messages()] == ["Count.", "one two three four five"]


async def test_the_context_is_shown_and_its_pictures_are_fetched_by_their_key(serve, call, http):
    served = await serve()
    caller = await call(served)
    await caller.offer(camera=True)
    await caller.receive("event", event="FrameKept")
    await caller.send(type="inspect", on=True)
    shown = await caller.until(
        lambda: [each for each in caller.messages if each["type"] == "inspect" and each["messages"]]
    )
    message = shown[0]["messages"][0]
    assert message["tokens"] > 0
    assert message["state"] == "live"
    image = message["images"][0]
    assert (image["width"], image["height"]) == (1024, 1024)
    assert image["aspect"] == pytest.approx(4 / 3, abs=0.01)  # shown as it was before it was stretched
    picture = await http.get(served.url + message["images"][0]["url"])
    assert picture.status_code == 200
    assert picture.headers["content-type"] == "image/jpeg"
    assert picture.content.startswith(b"\xff\xd8")
    parts = message["images"][0]["url"].split("/")
    for number, other in ((3, "wrong"), (2, "wrong"), (5, "wrong"), (6, "9")):
        changed = [*parts]
        changed[number] = other
        assert (await http.get(served.url + "/".join(changed))).status_code == 404


async def test_context_and_recording_can_be_downloaded(serve, call, http, tmp_path):
    served = await serve(record_folder=tmp_path)
    caller = await call(served)
    await caller.send(type="text", text="Hello.")
    await caller.receive("event", event="TurnCompleted")
    await caller.send(type="download")
    files = {each["name"]: each["url"] for each in (await caller.receive("file"))["files"]}
    context = (await http.get(served.url + files["context.json"])).json()
    assert [each["content"] for each in context["items"]] == ["Hello.", "Yes."]
    assert (await http.get(served.url + files["recording.rec"])).content
    assert (await http.get(served.url + files["context.json"] + "x")).status_code == 404
    await caller.send(type="bye")
    files = {each["name"]: each["url"] for each in (await caller.receive("bye"))["files"]}
    recording = await http.get(served.url + files["recording.rec"])
    (written,) = tmp_path.iterdir()
    assert recording.content == written.read_bytes()
    assert recording.headers["content-length"] == str(written.stat().st_size)
    assert (await http.get(served.url + files["context.json"])).json()["items"]


async def test_downloads_count_as_requests_of_their_address(serve, call, http):
    served = await serve(limits=WebLimits(requests_per_minute=2), clock=ManualClock())
    await call(served)
    (running,) = served.bot.calls.values()
    url = f"{served.url}{running.path}/context.json"
    assert [(await http.get(url)).status_code for _ in range(2)] == [200, 429]


async def test_cameras_are_asked_for_no_more_than_is_looked_at(serve, call):
    served = await serve()
    caller = await call(served)
    await caller.offer(camera=True)
    await caller.until(lambda: caller.on_channel)
    idle = caller.on_channel[0]
    assert (idle["type"], idle["source"]) == ("sender", "camera")
    await caller.send(type="push_to_talk", on=True)
    await caller.until(lambda: len(caller.on_channel) > 1)
    speaking = caller.on_channel[1]
    assert speaking["max_width"] > idle["max_width"]


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nonsense", "bad_message"),
        ("[]", "bad_message"),
        ('{"type": "offer"}', "bad_message"),
        ("[" * 20_000, "bad_message"),
        ("{}", "bad_message"),
        (b"{}", "bad_message"),
        ('{"type": "hello", "x": "' + "y" * 130_000 + '"}', "too_large"),
    ],
)
async def test_what_is_no_hello_is_refused(serve, call, text, code):
    served = await serve(limits=WebLimits(max_message_bytes=120_000) if code == "too_large" else None)
    served.server.config.ws_max_size = 1_000_000
    caller = await call(served, greet=False)
    await caller.websocket.send(text)
    refused = await caller.receive("error")
    assert refused["code"] == code
    await caller.until(lambda: caller.closed)
    assert len(served.bot.calls) == 0


async def test_the_server_reads_nothing_larger_than_the_limit(serve, call):
    served = await serve(limits=WebLimits(max_message_bytes=1_000))
    caller = await call(served, greet=False)
    await caller.websocket.send('{"type": "hello", "x": "' + "y" * 2_000 + '"}')
    await caller.until(lambda: caller.closed)
    assert caller.websocket.close_code == 1009


@pytest.mark.parametrize(
    ("offer", "code"),
    [
        ({}, "bad_message"),
        ({"sdp": 5}, "bad_message"),
        ({"sdp": "v=0\r\n"}, "bad_message"),
        ({"sdp": "v=0\r\nm=audio x y z\r\n"}, "bad_message"),
        ({"sdp": "v=0\r\n" + "a=x\r\n" * 14_000}, "too_large"),
        ({"sdp": "v=0\r\n", "sources": []}, "bad_message"),
        ({"sdp": "v=0\r\n", "sources": {"0": ""}}, "bad_message"),
        ({"sdp": "v=0\r\n", "sources": {"0": "x" * 50}}, "bad_message"),
        ({"sdp": "v=0\r\n", "sources": {"0": "a\nb"}}, "bad_message"),
    ],
)
async def test_an_offer_that_is_none_is_refused_and_the_call_goes_on(serve, call, offer, code):
    served = await serve()
    caller = await call(served)
    await caller.send(type="offer", **offer)
    assert (await caller.receive("error"))["code"] == code
    await caller.send(type="text", text="Still there?")
    await caller.receive("event", event="TurnCompleted")


@pytest.mark.parametrize(
    "message",
    [{"type": "dance"}, {"type": None}, {}, {"type": "text"}, {"type": "text", "text": " "}, {"type": "text", "text": 5},
     {"type": "look"}, {"type": "approve", "call_id": "x", "ok": True}],
)  # fmt: skip
async def test_what_cannot_be_done_is_told_and_changes_nothing(serve, call, message):
    served = await serve()
    caller = await call(served)
    await caller.send(**message)
    assert (await caller.receive("error")).get("fatal") is None
    await caller.send(type="text", text="Still there?")
    await caller.receive("event", event="TurnCompleted")


async def test_text_that_is_too_long_is_refused(serve, call):
    served = await serve(limits=WebLimits(max_text_chars=10))
    caller = await call(served)
    await caller.send(type="text", text="x" * 11)
    assert (await caller.receive("error"))["code"] == "too_large"


async def test_no_more_calls_than_there_are_lines(serve, call):
    served = await serve(limits=WebLimits(max_sessions=1))
    first = await call(served)
    second = await call(served, greet=False)
    await second.send(type="hello")
    assert (await second.receive("error"))["code"] == "full"
    await first.send(type="bye")
    await served.until_calls(0)
    await call(served)


async def test_too_many_calls_from_one_address_are_refused(serve, call):
    served = await serve(limits=WebLimits(requests_per_minute=3), clock=ManualClock())
    for _ in range(3):
        await call(served)
    fourth = await call(served, greet=False)
    assert (await fourth.receive("error"))["code"] == "rate"
    await fourth.until(lambda: fourth.closed)


async def test_too_many_messages_are_left_out_and_that_is_told_once(serve, call):
    served = await serve(limits=WebLimits(messages_per_second=1), clock=ManualClock())
    caller = await call(served)
    for _ in range(40):
        await caller.send(type="muted", on=True)
    await caller.receive("error", code="rate")
    await caller.send(type="bye")
    await asyncio.sleep(0)
    assert len([each for each in caller.messages if each["type"] == "error"]) == 1


async def test_long_messages_count_as_several(serve, call):
    served = await serve(limits=WebLimits(messages_per_second=1), clock=ManualClock())
    caller = await call(served)
    for _ in range(3):
        await caller.send(type="muted", on=True, more="x" * 20_000)
    await caller.receive("error", code="rate")


async def test_a_flood_ends_the_connection_and_what_is_left_out_is_not_even_read(serve, call):
    served = await serve(limits=WebLimits(messages_per_second=1), clock=ManualClock())
    caller = await call(served)
    for _ in range(10):
        await caller.send(type="muted", on=True)
    for _ in range(61):
        await caller.websocket.send("no JSON")
    told = await caller.receive("error", fatal=True)
    assert told["code"] == "rate"
    await caller.until(lambda: caller.closed)


@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        (UserError("not on Sundays"), "refused", "not on Sundays"),
        (ValueError("a bug"), "session_failed", "could not be made"),
    ],
)
async def test_a_factory_that_refuses_says_why_and_a_fault_says_nothing_of_its_inside(
    serve, call, failure, code, words
):
    def factory(request):
        raise failure

    served = await serve(factory)
    caller = await call(served, greet=False)
    await caller.send(type="hello")
    refused = await caller.receive("error")
    assert refused["code"] == code
    assert words in refused["message"]
    assert "bug" not in refused["message"]


async def test_a_model_that_refuses_is_told(serve, call, model):
    model.refuse = UserError("no key")
    served = await serve()
    caller = await call(served, greet=False)
    await caller.send(type="hello")
    refused = await caller.receive("error")
    assert (refused["code"], refused["message"]) == ("session_failed", "no key")
    await served.until_calls(0)


async def test_an_async_factory_is_told_who_calls(serve, call, make_session):
    seen = []

    async def factory(request):
        seen.append(request)
        return make_session()

    served = await serve(factory, token={"right": "anna"}.get)
    served.ws_url += "?room=5&token=no"
    caller = await call(served, greet=False, additional_headers={"X-Shop": "7"})
    await caller.greet(token="right")
    (request,) = seen
    assert (request.subject, request.address, request.query) == ("anna", "127.0.0.1", {"room": "5"})
    assert request.headers["x-shop"] == "7"
    assert "authorization" not in request.headers


async def test_a_closed_websocket_ends_its_handler(serve, call):
    served = await serve()
    caller = await call(served, greet=False)
    await caller.websocket.close()
    with pytest.raises(ConnectionClosed):
        await caller.websocket.recv()
    assert len(served.bot.calls) == 0
