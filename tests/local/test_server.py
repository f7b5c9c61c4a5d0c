"""The server: who may come in, how many, how it says how it is, and how it ends. Real sockets on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from realtime.errors import UserError
from realtime.local.parts import Parts
from realtime.local.server import LlmServer
from realtime.local.settings import LlmSettings
from realtime.local.workers import FairPool

from .kit import ScriptedResponder, make_parts, until


@asynccontextmanager
async def serving(parts: Parts | None = None, **settings: Any) -> AsyncIterator[LlmServer]:
    async with FairPool(1) as pool, LlmServer(LlmSettings(port=0, **settings), parts or make_parts(), pool) as server:
        yield server


async def receive(client: ClientConnection, kind: str) -> dict[str, Any]:
    """The next event of a type."""
    async with asyncio.timeout(10):
        while True:
            event = json.loads(await client.recv())
            if event["type"] == kind:
                return event


async def send(client: ClientConnection, kind: str, **fields: Any) -> None:
    await client.send(json.dumps({"type": kind, **fields}))


async def fetch(url: str) -> tuple[int, str]:
    """GET over a plain connection, without blocking the loop."""
    host, _, path = url.removeprefix("http://").partition("/")
    name, _, port = host.partition(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    writer.write(f"GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


async def test_a_client_connects_talks_and_leaves() -> None:
    async with serving(make_parts(ScriptedResponder("Hello."))) as server:
        assert server.url == f"ws://127.0.0.1:{server.port}/v1/realtime"
        async with connect(server.url + "?model=gpt-realtime") as client:
            created = await receive(client, "session.created")
            assert created["session"]["model"] == "gpt-realtime"
            await send(client, "response.create")
            assert (await receive(client, "response.done"))["response"]["status"] == "completed"
            assert server.sessions == 1
        await until(lambda: server.sessions == 0, rounds=100_000)


async def test_binary_frames_are_read_like_text() -> None:
    async with serving() as server, connect(server.url) as client:
        await client.send(json.dumps({"type": "response.create"}).encode())
        await receive(client, "response.done")


@pytest.mark.parametrize("path", ["/v1/realtime", "/openai/v1/realtime?model=x", "/realtime", "/v1/realtime/"])
async def test_the_paths_of_known_clients(path: str) -> None:
    async with serving() as server, connect(f"ws://127.0.0.1:{server.port}{path}") as client:
        await receive(client, "session.created")


async def refused(url: str, status: int, **options: Any) -> dict[str, Any]:
    with pytest.raises(InvalidStatus) as refusal:
        async with connect(url, **options):
            pass
    assert refusal.value.response.status_code == status
    body: dict[str, Any] = json.loads(refusal.value.response.body or b"{}")
    return body["error"]


async def test_other_paths_are_not_found() -> None:
    async with serving() as server:
        error = await refused(f"ws://127.0.0.1:{server.port}/v2/other", 404)
        assert error["code"] == "not_found"


@pytest.mark.parametrize(
    "shown",
    [
        {"additional_headers": {"Authorization": "Bearer s3cret"}},
        {"additional_headers": {"Authorization": "bearer s3cret"}},
        {"additional_headers": {"api-key": "s3cret"}},
        {"subprotocols": ["realtime", "openai-insecure-api-key.s3cret"]},
    ],
)
async def test_the_key_is_taken_in_every_way_that_clients_show_it(shown: dict[str, Any]) -> None:
    async with serving(api_key="s3cret") as server, connect(server.url, **shown) as client:
        await receive(client, "session.created")
        assert client.subprotocol in (None, "realtime")


@pytest.mark.parametrize(
    "shown",
    [
        {},
        {"additional_headers": {"Authorization": "Bearer wrong"}},
        {"additional_headers": {"Authorization": "Bearer "}},
        {"additional_headers": {"Authorization": "Basic s3cret"}},
        {"subprotocols": ["realtime", "s3cret"]},
    ],
)
async def test_without_the_key_nobody_comes_in(shown: dict[str, Any]) -> None:
    async with serving(api_key="s3cret") as server:
        error = await refused(server.url, 401, **shown)
        assert error["code"] == "invalid_api_key"
        assert "s3cret" not in error["message"]


@pytest.mark.parametrize(
    ("origin", "comes_in"),
    [
        ("http://localhost:3000", True),
        ("http://127.0.0.1", True),
        ("https://app.example", True),
        ("https://APP.example/", True),
        ("https://evil.example", False),
        ("https://localhost.evil.example", False),
        ("null", False),
    ],
)
async def test_web_pages_from_elsewhere_are_refused(origin: str, comes_in: bool) -> None:
    async with serving(origins=("https://app.example",)) as server:
        headers = {"Origin": origin}
        if comes_in:
            async with connect(server.url, additional_headers=headers) as client:
                await receive(client, "session.created")
        else:
            assert (await refused(server.url, 403, additional_headers=headers))["code"] == "origin_not_allowed"


@pytest.mark.parametrize("origin", ["null", "file://"])
async def test_a_page_that_is_a_file_may_connect_where_its_origin_is_listed(origin: str) -> None:
    async with (
        serving(origins=(origin,)) as server,
        connect(server.url, additional_headers={"Origin": origin}) as client,
    ):
        await receive(client, "session.created")


async def test_a_full_server_says_so_and_takes_the_next_when_one_has_left() -> None:
    async with serving(max_sessions=1) as server:
        async with connect(server.url) as client:
            await receive(client, "session.created")
            async with connect(server.url) as late:
                error = (await receive(late, "error"))["error"]
                assert error["code"] == "server_busy"
                with pytest.raises(ConnectionClosed) as closed:
                    await late.recv()
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 1013
        await until(lambda: server.sessions == 0, rounds=100_000)
        async with connect(server.url) as client:
            await receive(client, "session.created")
        assert server.metrics.get("turned_away") == 1


async def test_health_and_figures_are_told_over_plain_http() -> None:
    async with serving(api_key="s3cret") as server:
        base = f"http://127.0.0.1:{server.port}"
        async with connect(server.url, additional_headers={"api-key": "s3cret"}) as client:
            await send(client, "response.create")
            await receive(client, "response.done")
            status, body = await fetch(f"{base}/healthz")
            assert status == 200
            assert json.loads(body) == {"status": "ok", "sessions": 1, "max_sessions": 8, "model": "scripted"}
            status, body = await fetch(f"{base}/metrics")
        assert status == 200
        assert "realtime_llm_sessions_open 1" in body
        assert 'realtime_llm_responses_total{status="completed"} 1' in body


async def test_a_message_that_is_too_large_ends_its_connection_alone() -> None:
    async with serving(max_message_bytes=10_000) as server, connect(server.url) as other:
        async with connect(server.url) as client:
            await receive(client, "session.created")
            await client.send("x" * 20_000)
            with pytest.raises(ConnectionClosed) as closed:
                await receive(client, "never")
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1009
        await send(other, "response.create")
        await receive(other, "response.done")


async def test_an_expired_session_is_told_and_closed() -> None:
    async with serving(session_seconds=0.05) as server, connect(server.url) as client:
        error = (await receive(client, "error"))["error"]
        assert error["code"] == "session_expired"
        with pytest.raises(ConnectionClosed) as closed:
            await client.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001


async def test_a_client_that_is_gone_takes_its_reply_with_it() -> None:
    responder = ScriptedResponder([asyncio.Event()])
    async with serving(make_parts(responder)) as server:
        client = await connect(server.url)
        await send(client, "response.create")
        await receive(client, "response.created")
        client.transport.abort()
        await until(lambda: responder.closed == 1, rounds=100_000)
        assert server.sessions == 0


async def test_at_its_end_the_server_lets_replies_end_and_takes_no_more() -> None:
    gate, responder = asyncio.Event(), ScriptedResponder()
    responder.replies = [[gate, "The end."]]
    async with serving(make_parts(responder)) as server:
        url = server.url
        async with connect(url) as client:
            await send(client, "response.create")
            await receive(client, "response.created")
            closing = asyncio.create_task(server.aclose())
            await until(lambda: server._draining)
            async with connect(url) as late:
                error = (await receive(late, "error"))["error"]
                assert (error["code"], error["message"]) == ("server_busy", "The server is ending. Try again later.")
            status, body = await fetch(f"http://127.0.0.1:{server.port}/healthz")
            assert (status, json.loads(body)["status"]) == (503, "draining")
            await server.aclose()  # a second time does nothing
            gate.set()
            assert (await receive(client, "response.done"))["response"]["status"] == "completed"
            with pytest.raises(ConnectionClosed) as closed:
                await client.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1001
            await closing
        with pytest.raises(OSError):
            await connect(url)
    assert responder.ended


async def test_a_reply_that_does_not_end_is_cut_at_the_servers_end() -> None:
    parts = make_parts(ScriptedResponder([asyncio.Event()]))
    async with serving(parts, drain_seconds=0.05) as server, connect(server.url) as client:
        await send(client, "response.create")
        await receive(client, "response.created")
        await server.aclose()
        with pytest.raises(ConnectionClosed):
            await receive(client, "never")


async def test_a_port_that_is_taken_is_said_in_words() -> None:
    async with serving() as server:
        port = server.port
        with pytest.raises(UserError, match=f"cannot listen on 127.0.0.1 port {port}"):
            async with FairPool(1) as pool, LlmServer(LlmSettings(port=port), make_parts(), pool):
                pass


@pytest.mark.parametrize(
    "bad",
    [
        {"port": -1},
        {"port": 70_000},
        {"max_sessions": 0},
        {"silence_ms": -5},
        {"silence_ms": 100_000},
        {"threads": 0},
        {"session_seconds": 0},
        {"requests_per_minute": 0},
        {"api_key": ""},
        {"brain": "magic"},
        {"origins": ("*",)},
        {"origins": ("https://",)},
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        LlmSettings(**bad)
