"""One websocket: sizes, signs of life, and every way in which it ends (L4, L5, L7; B38, B39, B40)."""

import asyncio
import contextlib
import datetime as dt
import http
import ipaddress
import logging
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from realtime.errors import ArgumentError, LinkLost, ModelError
from realtime.testing import check_transport
from realtime.transports import websocket
from realtime.transports.websocket import KeepAlive, PromptTransport, Transport, check_size, connect, is_loopback

LIMIT = 100_000


async def turns_until(condition):
    """Give the loop turns until something holds."""
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError


class FarEnd:
    """A server's connection as a transport."""

    def __init__(self, connection):
        self.connection = connection

    async def send(self, data):
        try:
            await self.connection.send(data)
        except ConnectionClosed as error:
            raise LinkLost(str(error)) from None

    async def receive(self):
        try:
            return await self.connection.recv()
        except ConnectionClosed as error:
            raise LinkLost(str(error)) from None

    async def aclose(self):
        await self.connection.close()


@pytest.mark.parametrize("attempt", range(2))
async def test_it_conforms(server, attempt):
    @contextlib.asynccontextmanager
    async def pair():
        near = await connect(server.url, max_message_bytes=LIMIT)
        assert isinstance(near, Transport)
        far = FarEnd(await server.taken())
        try:
            yield near, far
        finally:
            await near.aclose()
            await far.aclose()

    await check_transport(pair, max_message_bytes=LIMIT)


async def test_headers_are_sent_compression_is_not_asked_for_and_neither_is_logged(server, caplog):
    caplog.set_level(logging.DEBUG)
    near = await connect(server.url, headers={"Authorization": "Bearer top-secret"})
    request = (await server.taken()).request
    assert request.headers["Authorization"] == "Bearer top-secret"
    assert "Sec-WebSocket-Extensions" not in request.headers
    await near.send("words of a user")
    await near.aclose()
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("realtime")]
    assert not [text for text in ours if "secret" in text or "words" in text]


@pytest.mark.parametrize("size", [2**20, 2**20 + 1, 8 * 2**20])
async def test_a_large_message_from_the_provider_arrives_and_the_connection_stays(server, size):
    # B39: the library's own default closes at 2**20 + 1
    near = await connect(server.url)
    far = await server.taken()
    sending = asyncio.create_task(far.send("a" * size))
    assert len(await near.receive()) == size
    await sending
    await far.send("next")
    assert await near.receive() == "next"
    await near.aclose()


async def test_a_message_over_all_bounds_from_the_provider_ends_the_connection_with_1009(server, monkeypatch):
    monkeypatch.setattr(websocket, "MAX_INCOMING_BYTES", 1000)
    near = await connect(server.url)
    far = await server.taken()
    await far.send("a" * 1001)
    with pytest.raises(LinkLost) as caught:
        await near.receive()
    assert caught.value.code == 1009
    await near.aclose()


async def test_a_message_that_is_too_large_is_refused_and_the_connection_stays(server):
    # L5
    near = await connect(server.url, max_message_bytes=10)
    far = await server.taken()
    with pytest.raises(ModelError) as caught:
        await near.send("a" * 11)
    assert caught.value.code == "message_too_large"
    await near.send("a" * 10)
    assert await far.recv() == "a" * 10
    await near.aclose()


@pytest.mark.parametrize(
    ("data", "fits"), [("a" * 10, True), ("é" * 5, True), ("é" * 6, False), (b"a" * 11, False), ("", True)]
)
def test_size_is_counted_in_bytes(data, fits):
    with contextlib.nullcontext() if fits else pytest.raises(ModelError):
        check_size(data, 10)


class TestEnds:
    @pytest.mark.parametrize(
        ("code", "reason"), [(1000, ""), (1001, "going away"), (1008, "no"), (1011, "oops"), (4000, "mine")]
    )
    async def test_a_close_is_told_with_code_and_reason(self, server, code, reason):
        # L4: also a polite one
        near = await connect(server.url)
        far = await server.taken()
        waiting = asyncio.create_task(near.receive())
        await far.close(code, reason)
        with pytest.raises(LinkLost) as caught:
            await waiting
        assert caught.value.code == code
        assert reason in caught.value.reason
        with pytest.raises(LinkLost):
            await near.send("too late")
        await near.aclose()

    async def test_a_line_that_breaks_off_is_told_without_a_code(self, server):
        near = await connect(server.url)
        (await server.taken()).transport.abort()
        with pytest.raises(LinkLost) as caught:
            await near.receive()
        assert caught.value.code is None
        await near.aclose()

    async def test_closing_ends_whoever_waits(self, server):
        near = await connect(server.url)
        await server.taken()
        waiting = asyncio.create_task(near.receive())
        await asyncio.sleep(0)
        await near.aclose()
        with pytest.raises(LinkLost, match="closed by us"):
            await waiting

    async def test_a_mute_peer_cannot_draw_out_the_close(self, raw_server):
        # B38: the library waits ten seconds
        url, take = raw_server
        near = await connect(url)
        await take()
        async with asyncio.timeout(5):
            await near.aclose()
            await near.aclose()

    async def test_a_peer_that_reads_nothing_cannot_hold_a_sender_or_the_close(self, raw_server):
        # B41, L4
        url, take = raw_server
        near = await connect(url)
        (await take()).reader._transport.pause_reading()

        async def push():
            while True:
                await near.send("a" * 1_000_000)

        pushing = asyncio.create_task(push())
        for _ in range(200):
            await asyncio.sleep(0)
        assert not pushing.done()  # the socket is full: the sender waits
        async with asyncio.timeout(5):
            await near.aclose()
            with pytest.raises(LinkLost):
                await pushing

    async def test_a_cancelled_close_still_cuts_the_line(self, raw_server):
        # L7
        url, take = raw_server
        near = await connect(url)
        peer = await take()
        closing = asyncio.create_task(near.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        async with asyncio.timeout(5):
            await peer.reader.read()
            with pytest.raises(LinkLost):
                await near.receive()


class TestSignsOfLife:
    """B40: whatever arrives is one; a loop that was blocked is none of the peer's fault."""

    async def looked(self, url, take):
        near = await connect(url, keep_alive=KeepAlive(silence_seconds=3600))
        return near, near._connection, await take()

    async def test_a_peer_that_streams_but_never_answers_pings_is_alive(self, raw_server):
        near, connection, peer = await self.looked(*raw_server)
        for number in range(20):
            connection._look()
            connection._look()
            await peer.say(str(number))
            assert await near.receive() == str(number)
        assert not connection.gone
        await near.aclose()

    async def test_a_peer_from_which_nothing_comes_is_gone(self, raw_server):
        near, connection, _ = await self.looked(*raw_server)
        connection._look()  # the handshake's bytes
        for _ in range(4):
            connection._look()
        assert not connection.gone
        connection._look()
        with pytest.raises(LinkLost, match="nothing arrived for 3600 s") as lost:
            await near.receive()
        assert lost.value.silent_seconds >= 0
        await near.aclose()

    async def test_while_we_do_not_read_nothing_is_held_against_the_peer(self, raw_server):
        near, connection, peer = await self.looked(*raw_server)
        for number in range(40):
            await peer.say(str(number))
        await turns_until(lambda: not connection.transport.is_reading())
        for _ in range(20):
            connection._look()
        assert not connection.gone
        assert [await near.receive() for _ in range(40)] == [str(number) for number in range(40)]
        await near.aclose()

    async def test_the_looks_come_by_themselves(self, raw_server):
        url, take = raw_server
        near = await connect(url, keep_alive=KeepAlive(ping_seconds=0.04, silence_seconds=0.05))
        await take()
        async with asyncio.timeout(5):
            with pytest.raises(LinkLost, match="nothing arrived"):
                await near.receive()
        await near.aclose()

    @pytest.mark.parametrize(
        "wrong", [{"ping_seconds": 0}, {"silence_seconds": True}, {"ping_seconds": 5, "silence_seconds": 5}]
    )
    def test_what_cannot_be_is_refused_by_name(self, wrong):
        with pytest.raises(ArgumentError, match="_seconds must be"):
            KeepAlive(**wrong)

    async def test_how_long_nothing_had_come_is_known_when_the_line_breaks(self, raw_server):
        # L2: what was sent in that time is sent again
        near, connection, peer = await self.looked(*raw_server)
        connection.heard_at -= 7.0
        peer.writer.transport.abort()
        with pytest.raises(LinkLost) as lost:
            await near.receive()
        assert 7.0 <= lost.value.silent_seconds < 17.0
        await near.aclose()


class TestOpening:
    @pytest.mark.parametrize("url", ["http://localhost", "nonsense", "", "ws://", "ws://[::1", "ws://localhost:99999"])
    async def test_what_is_no_websocket_url_is_refused_by_name(self, url):
        with pytest.raises(ArgumentError, match="url"):
            await connect(url)

    async def test_nobody_there_is_a_lost_link(self, unused_port):
        with pytest.raises(LinkLost, match="could not be reached"):
            await connect(f"ws://127.0.0.1:{unused_port}")

    @pytest.fixture
    def unused_port(self):
        import socket

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    @pytest.mark.parametrize(
        ("status", "kind", "code"),
        [
            (401, ModelError, "invalid_api_key"),
            (403, ModelError, "forbidden"),
            (404, ModelError, "not_found"),
            (400, ModelError, "http_400"),
            (429, LinkLost, None),
            (500, LinkLost, None),
            (503, LinkLost, None),
        ],
    )
    async def test_an_http_answer_says_whether_to_ask_again(self, status, kind, code):
        def refuse(connection, request):
            return connection.respond(http.HTTPStatus(status), "because I say so")

        async with serve(lambda _: None, "127.0.0.1", 0, process_request=refuse) as listening:
            url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            with pytest.raises(kind, match="because I say so") as caught:
                await connect(url, headers={"Authorization": "Bearer top-secret"})
        assert "secret" not in str(caught.value)
        if kind is ModelError:
            assert caught.value.fatal
            assert caught.value.code == code

    async def test_a_server_that_says_nothing_is_given_up(self):
        async def mute(reader, writer):
            await reader.read()
            writer.close()

        listening = await asyncio.start_server(mute, "127.0.0.1", 0)
        async with listening:
            port = listening.sockets[0].getsockname()[1]
            async with asyncio.timeout(5):
                with pytest.raises(LinkLost, match=r"within 0\.05 s"):
                    await connect(f"ws://127.0.0.1:{port}", timeout_seconds=0.05)

    async def test_a_server_that_speaks_something_else_is_a_lost_link(self):
        async def rude(reader, writer):
            writer.write(b"220 mail.example.org ESMTP\r\n")
            writer.close()

        listening = await asyncio.start_server(rude, "127.0.0.1", 0)
        async with listening:
            with pytest.raises(LinkLost):
                await connect(f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}")

    async def test_a_cancelled_opening_leaves_nothing(self):
        gone = asyncio.Event()

        async def mute(reader, writer):
            await reader.read()
            writer.close()
            gone.set()

        listening = await asyncio.start_server(mute, "127.0.0.1", 0)
        async with listening:
            port = listening.sockets[0].getsockname()[1]
            opening = asyncio.create_task(connect(f"ws://127.0.0.1:{port}", timeout_seconds=None))
            await turns_until(lambda: listening._active_count)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            async with asyncio.timeout(5):
                await gone.wait()

    async def test_plain_text_to_another_machine_with_headers_is_warned_of(self, caplog):
        with pytest.raises(LinkLost):
            await connect("ws://192.0.2.1:9", headers={"api-key": "top-secret"}, timeout_seconds=0.01)
        assert "without TLS" in caplog.text
        assert "secret" not in caplog.text

    @pytest.mark.parametrize(
        ("url", "near"),
        [("ws://127.0.0.1:1/x", True), ("ws://localhost", True), ("ws://[::1]:2", True), ("wss://example.org", False)],
    )
    def test_loopback(self, url, near):
        assert is_loopback(url) is near


class TestTls:
    @pytest.fixture
    def authority(self, tmp_path):
        """A certificate of our own for 127.0.0.1: the server's context, and the one that trusts it."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
        now = dt.datetime.now(tz=dt.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        path = tmp_path / "both.pem"
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        theirs.load_cert_chain(path)
        return theirs, ssl.create_default_context(cafile=str(path))

    async def test_a_certificate_nobody_vouches_for_is_refused_for_good_and_a_trusted_one_is_taken(self, authority):
        theirs, ours = authority

        async def echo(connection):
            async for message in connection:
                await connection.send(message)

        async with serve(echo, "127.0.0.1", 0, ssl=theirs) as listening:
            url = f"wss://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
            with pytest.raises(ModelError, match="certificate") as caught:
                await connect(url)
            assert caught.value.fatal
            near = await connect(url, ssl_context=ours)
            await near.send("over TLS")
            assert await near.receive() == "over TLS"
            await near.aclose()


async def test_what_is_sent_at_once_arrives_in_order_with_what_is_sent(server):
    near = await connect(server.url, max_message_bytes=LIMIT)
    assert isinstance(near, PromptTransport)
    far = await server.taken()
    assert near.is_clear
    near.send_at_once("wörd")
    await near.send("two")
    near.send_at_once(b"\x00\xff")
    near.send_at_once("x" * 70_000)
    near.send_at_once("five")
    assert [await far.recv() for _ in range(5)] == ["wörd", "two", b"\x00\xff", "x" * 70_000, "five"]
    with pytest.raises(ModelError) as caught:
        near.send_at_once("x" * (LIMIT + 1))
    assert caught.value.code == websocket.MESSAGE_TOO_LARGE
    assert near.is_clear
    await near.aclose()
    assert not near.is_clear
    with pytest.raises(LinkLost):
        near.send_at_once("late")


async def test_a_socket_that_is_backed_up_is_not_clear_until_it_was_read(server):
    """L4, B41: what cannot leave waits where it is bounded."""
    near = await connect(server.url)
    assert isinstance(near, PromptTransport)
    far = await server.taken()
    far.transport.pause_reading()
    sent = 0
    while near.is_clear:
        near.send_at_once("x" * 50_000)
        sent += 1
        assert sent < 10_000
    far.transport.resume_reading()
    for _ in range(sent):
        await far.recv()
    await turns_until(lambda: near.is_clear)
    await near.aclose()


async def test_a_connection_that_the_server_has_closed_is_not_clear(server):
    near = await connect(server.url)
    assert isinstance(near, PromptTransport)
    far = await server.taken()
    await far.close()
    with pytest.raises(LinkLost):
        await near.receive()
    assert not near.is_clear


@pytest.mark.parametrize("ending", ["closes", "breaks off", "ends", "says what is no text"])
async def test_that_a_connection_has_ended_is_known_before_anybody_reads(server, ending):
    near = await connect(server.url)
    assert isinstance(near, PromptTransport)
    far = await server.taken()
    assert near.is_clear
    match ending:
        case "closes":
            leaving = asyncio.get_running_loop().create_task(far.close())
        case "breaks off":
            far.transport.abort()
        case "ends":
            far.transport.write_eof()
        case _:
            far.transport.write(b"\x81\x01\xff" + b"\x8f\x00")  # an opcode that there is not
    await turns_until(lambda: not near.is_clear)
    with pytest.raises(LinkLost):
        near.send_at_once("late")
    await near.aclose()
    if ending == "closes":
        await leaving


async def test_nothing_more_is_taken_at_once_from_the_moment_in_which_it_is_closed(server):
    near = await connect(server.url)
    assert isinstance(near, PromptTransport)
    await server.taken()
    leaving = asyncio.get_running_loop().create_task(near.aclose())
    await asyncio.sleep(0)
    assert not near.is_clear
    await leaving


async def test_a_connection_that_its_reader_gives_up_is_known_to_have_ended_before_the_peer_answers(server):
    """What is sent behind our close frame reaches nobody; the peer may draw that out for the whole of `CLOSE_SECONDS`."""
    near = await connect(server.url)
    assert isinstance(near, PromptTransport)
    far = await server.taken()
    far.transport.pause_reading()
    far.transport.write(b"\x81\x01\xff")  # text that is none: found by whoever reads it
    reading = asyncio.get_running_loop().create_task(near.receive())
    await turns_until(lambda: near._connection.protocol.state is not State.OPEN)
    assert not reading.done()
    assert not near.is_clear
    with pytest.raises(LinkLost):
        near.send_at_once("late")
    far.transport.abort()
    with pytest.raises(LinkLost):
        await reading
    await near.aclose()
