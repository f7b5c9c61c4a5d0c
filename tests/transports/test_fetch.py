"""Fetching a picture by address: what is taken, and what is refused (server-side request forgery), over TLS on loopback."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import pytest

from realtime.errors import LinkLost, UserError
from realtime.transports import fetch as module
from realtime.transports.fetch import Fetch, is_public

from .picture_server import GIF, gives, head, make_certificate, picture_server

Tls = tuple[ssl.SSLContext, ssl.SSLContext]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def serve(tls: Tls) -> Callable[..., Any]:
    return lambda answers: picture_server(tls[0], answers)


@pytest.fixture
def get(tls: Tls) -> Callable[..., bytes]:
    """Fetches from this machine, which a session never does."""

    def run(url: str, **options: Any) -> bytes:
        return Fetch(url, **{"allows": lambda _: True, "tls": tls[1], "timeout_seconds": 30, **options}).run()

    return run


def test_a_picture_is_fetched_with_nothing_but_what_is_needed(serve, get):
    with serve({"/a.gif": gives(GIF)}) as (url, requests):
        assert get(f"{url}/a.gif?size=2") == GIF
    first, *headers = requests[0].strip().split("\r\n")
    assert first == "GET /a.gif?size=2 HTTP/1.1"
    assert {line.partition(":")[0] for line in headers} == {
        "Host",
        "Accept",
        "Accept-Encoding",
        "User-Agent",
        "Connection",
    }


def test_a_redirection_is_followed_and_too_many_are_not(serve, get):
    def to(path: str) -> Any:
        return gives(b"", status="302 Found", Location=path)

    with serve({"/1": to("/2"), "/2": to("a.gif"), "/a.gif": gives(GIF), "/round": to("/round")}) as (url, _):
        assert get(f"{url}/1") == GIF
        with pytest.raises(UserError, match="redirected more than 3 times"):
            get(f"{url}/round")


def test_a_redirection_is_looked_at_like_the_address_itself(serve, get):
    targets = [
        "http://127.0.0.1/x",
        "https://user:pass@localhost/x",
        "file:///etc/passwd",
        "https:///x",
        "https://[oops",
        "//[::1/x",
        "https://localhost:port/x",
    ]
    answers = {f"/{n}": gives(b"", status="302 Found", Location=target) for n, target in enumerate(targets)}
    with serve(answers) as (url, _):
        for number in range(len(targets)):
            with pytest.raises(UserError):
                get(f"{url}/{number}")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/a.png",
        "ftp://example.com/a.png",
        "https:///a.png",
        "https://user:secret@example.com/a.png",
        "https://example.com:0/a.png",
        "https://example.com:99999/a.png",
        "https://example.com/a b\r\nX-Evil: 1",
        "https://exämple.com/a.png",
        "https://[::1/a.png",
    ],
)
def test_an_address_that_is_no_plain_https_address_is_refused_without_connecting(url: str, monkeypatch):
    monkeypatch.setattr(module.socket, "getaddrinfo", None)
    with pytest.raises(UserError) as caught:
        Fetch(url).run()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",  # where clouds keep their keys
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:0:0:0:0:80ff:fefe",
        "fec0::1",
        "64:ff9b:1::7f00:1",
        "::7f00:1",
        "::ffff:0:127.0.0.1",
        "5f00::1",
        "2001:db8::1",
        "3fff::1",
        "0.1.2.3",
        "192.0.0.10",
        "192.88.99.1",
        "198.18.0.1",
        "198.19.255.255",
        "192.0.2.1",
        "203.0.113.1",
        "240.0.0.1",
        "239.255.255.255",
        "::ffff:192.0.0.10",
    ],
)
def test_what_is_not_of_the_public_internet_is_refused(address: str, monkeypatch):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    monkeypatch.setattr(
        module.socket, "getaddrinfo", lambda *_, **__: [(family, socket.SOCK_STREAM, 6, "", (address, 443))]
    )
    assert not is_public(ipaddress.ip_address(address))
    with pytest.raises(UserError, match="not on the public internet"):
        Fetch("https://pictures.example/a.png").run()


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "192.0.1.1",
        "100.128.0.1",
        "2606:4700::1",
        "2001:4860:4860::8888",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
    ],
)
def test_what_is_of_the_public_internet_is_taken(address: str):
    assert is_public(ipaddress.ip_address(address))


def test_a_name_of_which_one_address_is_private_is_refused_and_none_is_tried(monkeypatch):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 443)) for ip in ("8.8.8.8", "127.0.0.1")]
    monkeypatch.setattr(module.socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(module.socket, "socket", None)
    with pytest.raises(UserError, match=r"127\.0\.0\.1"):
        Fetch("https://pictures.example/a.png").run()


def test_the_connection_goes_to_the_address_that_was_looked_at(serve, get, monkeypatch):
    """A name that stands for something else a moment later (rebinding) changes nothing: it is looked up once."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def lookup(host: str, port: int, **options: Any) -> Any:
        asked.append(host)
        return real("127.0.0.1" if len(asked) == 1 else "192.0.2.1", port, **options)

    monkeypatch.setattr(module.socket, "getaddrinfo", lookup)
    with serve({"/a.gif": gives(GIF)}) as (url, _):
        assert get(f"{url.replace('127.0.0.1', 'localhost')}/a.gif") == GIF
    assert asked == ["localhost"]


def test_a_certificate_that_nobody_vouches_for_is_refused(serve):
    with serve({"/a.gif": gives(GIF)}) as (url, _), pytest.raises(LinkLost, match="CERTIFICATE"):
        Fetch(f"{url}/a.gif", allows=lambda _: True).run()


@pytest.mark.parametrize("says_so", [True, False])
def test_a_picture_that_is_too_large_is_refused(serve, get, says_so):
    def endless(connection: ssl.SSLSocket, path: str) -> None:
        connection.sendall(head(Content_Type="image/gif") + GIF)
        while True:
            connection.sendall(bytes(4_096))

    answers = {"/a.gif": gives(bytes(20_000)) if says_so else endless}
    with serve(answers) as (url, _), pytest.raises(UserError, match="bytes"):
        get(f"{url}/a.gif", max_bytes=10_000)


@pytest.mark.parametrize(
    ("answer", "error", "match"),
    [
        ({"body": b"<html>", "kind": "text/html; charset=utf-8"}, UserError, "no picture: text/html"),
        ({"body": b"", "status": "404 Not Found"}, UserError, "HTTP 404"),
        ({"body": b"", "status": "500 Oh"}, UserError, "HTTP 500"),
        ({"body": b"", "status": "304 Not Modified"}, UserError, "HTTP 304"),
    ],
)
def test_what_is_no_picture_is_refused(serve, get, answer, error, match):
    with serve({"/a": gives(**answer)}) as (url, _), pytest.raises(error, match=match):
        get(f"{url}/a")


def test_a_body_that_breaks_off_is_no_picture(serve, get):
    def cut(connection: ssl.SSLSocket, path: str) -> None:
        connection.sendall(head(Content_Type="image/gif", Content_Length="100") + GIF)

    with serve({"/a": cut}) as (url, _), pytest.raises(LinkLost):
        get(f"{url}/a")


def test_no_answer_of_http_is_a_link_that_is_lost(serve, get):
    answers = {"/a": lambda connection, _: connection.sendall(b"\x00\xff garbage\r\n\r\n")}
    with serve(answers) as (url, _), pytest.raises(LinkLost, match="could not be fetched"):
        get(f"{url}/a")


@pytest.mark.parametrize("phase", ["head", "body"])
def test_a_server_that_drips_is_given_up_in_time_by_whoever_waits(serve, tls, phase):
    """Each byte comes in time and the whole never does: the waiting side ends it."""
    begun, over = threading.Event(), threading.Event()

    def drip(connection: ssl.SSLSocket, path: str) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: " if phase == "head" else head(Content_Type="image/gif"))
        begun.set()
        while not over.wait(0.01):
            connection.sendall(b"x")

    with serve({"/a": drip}) as (url, _):
        fetch = Fetch(f"{url}/a", allows=lambda _: True, tls=tls[1], timeout_seconds=60)
        failed: list[BaseException] = []

        def run() -> None:
            try:
                fetch.run()
            except LinkLost as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert begun.wait(30)
        fetch.abort()
        thread.join(30)
        over.set()
    assert not thread.is_alive()
    assert len(failed) == 1
