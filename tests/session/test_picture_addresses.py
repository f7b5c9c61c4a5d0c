"""Pictures that are given by address (section Shapes): fetched off the loop and sent as data, or refused before anything is sent."""

from __future__ import annotations

import ipaddress
import ssl
import threading
from collections.abc import Callable
from typing import Any

import pytest

from realtime import ChatContext, ImageContent, RealtimeSession
from realtime.errors import ArgumentError, LinkLost, SessionClosed, UserError
from realtime.events import ToolFinished
from realtime.pipelines.pictures import PictureFetcher
from tests.transports.picture_server import GIF, gives, make_certificate, picture_server

Tls = tuple[ssl.SSLContext, ssl.SSLContext]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def on_this_machine(monkeypatch: pytest.MonkeyPatch, tls: Tls) -> None:
    """Sessions may fetch from this machine, which they never do."""
    monkeypatch.setattr("realtime.session.PictureFetcher", lambda **given: _local(tls, **given))


def _local(tls: Tls, **given: Any) -> PictureFetcher:
    return PictureFetcher(allows=lambda _: True, tls=tls[1], timeout_seconds=30, **given)


def pictures_sent(model: Any) -> list[str]:
    items = [message["item"] for message in model.all("conversation.item.create")]
    parts = [part for item in items for part in item.get("content", [])]
    return [part["image_url"] for part in parts if part["type"] == "input_image"]


@pytest.mark.usefixtures("on_this_machine")
async def test_what_is_sent_by_address_reaches_the_model_as_data(obliging, tls):
    model = obliging()
    with picture_server(tls[0], {"/a.gif": gives(GIF)}) as (url, requests):
        async with RealtimeSession(model) as session:
            await session.send(["What is this?", ImageContent(url=f"{url}/a.gif", detail="low")])
            await session.wait_for_reply()
            await session.send_image(ImageContent(url=f"{url}/a.gif"), source="screen")
            await model.hears("conversation.item.create", 2)
            shown = [image for message in session.all_messages() for image in message.images]
    assert len(requests) == 2
    assert [url.partition(",")[0] for url in pictures_sent(model)] == ["data:image/gif;base64"] * 2
    assert [(image.data, image.is_embedded) for image in shown] == [(GIF, True)] * len(shown)
    assert shown[0].detail == "low"


@pytest.mark.usefixtures("on_this_machine")
async def test_a_conversation_with_addresses_is_told_as_data_and_each_is_fetched_once(obliging, tls):
    model = obliging()
    with picture_server(tls[0], {"/a.gif": gives(GIF)}) as (url, requests):
        context = ChatContext.empty()
        for _ in range(3):
            context.add_message("user", "Look.", images=[ImageContent(url=f"{url}/a.gif")])
        async with RealtimeSession(model, message_history=context) as session:
            await model.hears("conversation.item.create", 3)
            assert all(image.is_embedded for message in session.context.messages() for image in message.images)
    assert len(requests) == 1
    assert len(pictures_sent(model)) == 3
    assert not context.messages()[0].images[0].is_embedded  # a history is copied


@pytest.mark.usefixtures("on_this_machine")
async def test_a_tool_may_give_an_address(obliging, tool_call, tls):
    with picture_server(tls[0], {"/a.gif": gives(GIF)}) as (url, _):

        def draw(good: bool) -> Any:
            """Draw."""
            return ["Drawn.", ImageContent(url=f"{url}/{'a' if good else 'none'}.gif")]

        model = obliging(
            tool_call("draw", '{"good": true}', "c1"), "Nice.", tool_call("draw", '{"good": false}', "c2"), "Oh."
        )
        async with RealtimeSession(model, tools=[draw]) as session:
            events = aiter(session)
            for text in ("Draw.", "Again."):
                await session.send(text)
                await session.wait_for_reply()
            finished = [event async for event in _some(events, ToolFinished, 2)]
    assert [event.output.partition(" [")[0] for event in finished] == ["Drawn.", "Drawn."]
    assert "HTTP 404" in finished[1].output
    assert len(pictures_sent(model)) == 1


async def _some(events: Any, kind: type[Any], number: int) -> Any:
    while number:
        event = await anext(events)
        if isinstance(event, kind):
            number -= 1
            yield event


async def test_what_is_not_to_be_had_fails_the_call_and_the_session_goes_on(obliging):
    """No test reaches the internet: these are refused before anything is connected."""
    model = obliging("Yes.")
    async with RealtimeSession(model) as session:
        for address in ("https://127.0.0.1/a.png", "https://localhost/a.png", "http://example.com/a.png"):
            with pytest.raises(UserError, match="picture"):
                await session.send(["Look.", ImageContent(url=address)])
            with pytest.raises(UserError, match="picture"):
                await session.send_image(ImageContent(url=address))
        await session.send("Are you there?")
        await session.wait_for_reply()
        assert [message.content for message in session.all_messages()] == ["Are you there?", "Yes."]
    assert pictures_sent(model) == []


async def test_a_conversation_whose_picture_is_not_to_be_had_is_refused_before_connecting(obliging):
    model = obliging()
    context = ChatContext.empty()
    context.add_message("user", "Look.", images=[ImageContent(url="https://127.0.0.1/a.png")])
    session = RealtimeSession(model, context=context)
    with pytest.raises(UserError, match="public internet"):
        await session.__aenter__()
    assert model.connections == 0
    context.add_message("user", "The context is free again.")


async def test_without_download_an_address_is_refused_with_what_would_do(obliging):
    far = ImageContent(url="https://example.com/a.png")
    context = ChatContext.empty()
    context.add_message("user", "Look.", images=[far])
    with pytest.raises(UserError, match="from_bytes"):
        RealtimeSession(obliging(), message_history=context, download=False)
    with pytest.raises(ArgumentError, match="download"):
        RealtimeSession(obliging(), download="no")  # type: ignore[arg-type]
    async with RealtimeSession(obliging(), download=False) as session:
        with pytest.raises(UserError, match="download=False"):
            await session.send(far)


async def test_a_session_that_is_closed_while_it_fetches_does_not_begin(obliging, tls, monkeypatch):
    model = obliging()
    context = ChatContext.empty()
    held: list[RealtimeSession] = []
    monkeypatch.setattr("realtime.session.PictureFetcher", lambda **given: _local(tls, **given))

    async def close(*_: Any) -> None:
        await held[0].aclose()

    session = RealtimeSession(model, context=context)
    held.append(session)
    monkeypatch.setattr(session._pictures, "embed_context", close)
    with pytest.raises(SessionClosed):
        await session.__aenter__()
    assert model.connections == 0


async def test_one_failure_among_several_is_told_as_itself(tls):
    with picture_server(tls[0], {"/a.gif": gives(GIF)}) as (url, _):
        fetcher = _local(tls)
        good, bad = ImageContent(url=f"{url}/a.gif"), ImageContent(url=f"{url}/b.gif")
        with pytest.raises(UserError, match="404"):
            await fetcher.embed([good, "text", bad, good])
        (one, text, two) = await fetcher.embed([good, "text", good])
        assert (one.data, text, two.data) == (GIF, "text", GIF)


async def test_what_is_no_picture_by_its_bytes_is_refused_whatever_it_says_it_is(tls):
    answers = {"/a.png": gives(b"<svg/>", kind="image/png")}
    with picture_server(tls[0], answers) as (url, _), pytest.raises(UserError, match="no picture"):
        await _local(tls).embed([ImageContent(url=f"{url}/a.png")])


async def test_a_server_that_never_answers_is_given_up(tls, monkeypatch):
    over = threading.Event()
    with picture_server(tls[0], {"/a.gif": lambda *_: over.wait(60)}) as (url, _):
        fetcher = PictureFetcher(allows=lambda _: True, tls=tls[1], timeout_seconds=0.2)
        with pytest.raises(LinkLost, match="within"):
            await fetcher.embed([ImageContent(url=f"{url}/a.gif")])
        over.set()


def test_a_session_only_reaches_the_public_internet():
    allows: Callable[[Any], bool] = PictureFetcher()._allows
    assert not allows(ipaddress.ip_address("169.254.169.254"))
    assert allows(ipaddress.ip_address("8.8.8.8"))
