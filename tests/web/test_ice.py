"""`realtime.web.ice`: STUN and TURN servers in every provider's shape."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from realtime.errors import ArgumentError
from realtime.web import (
    IceServer,
    cloudflare_ice_servers,
    coturn_ice_servers,
    environment_ice_servers,
    metered_ice_servers,
    parse_ice_servers,
    twilio_ice_servers,
    xirsys_ice_servers,
)
from realtime.web.ice import is_loopback, resolve_ice_servers

STUN = IceServer(urls=("stun:stun.example:3478",))
TURN = IceServer(urls=("turn:turn.example:3478?transport=udp", "turns:turn.example:5349"), username="u", credential="c")
SHAPE = [
    {"urls": "stun:stun.example:3478"},
    {"urls": ["turn:turn.example:3478?transport=udp", "turns:turn.example:5349"], "username": "u", "credential": "c"},
]


def test_the_shape_of_browsers_is_read_and_written():
    assert parse_ice_servers(SHAPE) == [STUN, TURN]
    assert TURN.to_dict() == SHAPE[1]
    assert STUN.to_dict() == {"urls": ["stun:stun.example:3478"]}


def test_twilio():
    answer = {
        "username": "u",
        "ttl": "86400",
        "ice_servers": [
            {"url": "stun:stun.example:3478", "urls": "stun:stun.example:3478"},
            {"url": "turn:t.example:3478?transport=udp", "username": "u", "urls": "turn:t.example:3478?transport=udp", "credential": "c"},
        ],
    }  # fmt: skip
    assert twilio_ice_servers(answer) == [
        STUN,
        IceServer(urls=("turn:t.example:3478?transport=udp",), username="u", credential="c"),
    ]


@pytest.mark.parametrize("as_list", [False, True])
def test_cloudflare_without_the_port_that_browsers_refuse(as_list):
    server = {"urls": ["stun:s.example:3478", "turn:t.example:53?transport=udp", "turn:t.example:3478"], "username": "u", "credential": "c"}  # fmt: skip
    (found,) = cloudflare_ice_servers({"iceServers": [server] if as_list else server})
    assert found.urls == ("stun:s.example:3478", "turn:t.example:3478")
    assert cloudflare_ice_servers({"iceServers": {"urls": ["stun:s.example:53"]}}) == []


def test_metered():
    assert metered_ice_servers(SHAPE) == [STUN, TURN]


def test_xirsys():
    assert xirsys_ice_servers({"v": {"iceServers": {"username": "u", "credential": "c", "urls": list(TURN.urls)}}, "s": "ok"}) == [TURN]  # fmt: skip


def test_coturn_credentials_are_what_its_server_computes():
    (found,) = coturn_ice_servers("secret", TURN.urls, seconds=600, user="anna", wall=1_000.0)
    assert found.username == "1600:anna"
    digest = hmac.new(b"secret", b"1600:anna", hashlib.sha1).digest()
    assert base64.b64decode(found.credential) == digest
    assert coturn_ice_servers("secret", TURN.urls, wall=0.0)[0].username == "3600"


@pytest.mark.parametrize("make", [twilio_ice_servers, cloudflare_ice_servers, xirsys_ice_servers])
def test_another_answer_of_a_provider_is_refused(make):
    with pytest.raises(ArgumentError, match="answer"):
        make({"error": "no"})


@pytest.mark.parametrize("given", [[5], [{}], [{"urls": "http://x"}], [{"urls": []}], [{"urls": [5]}], "stun:x"])
def test_what_is_no_server_is_refused(given):
    with pytest.raises(ArgumentError):
        parse_ice_servers(given)


def test_the_environment_names_servers():
    assert environment_ice_servers({}) == []
    assert environment_ice_servers({"REALTIME_STUN_URLS": "stun:stun.example:3478"}) == [STUN]
    found = environment_ice_servers(
        {"REALTIME_TURN_URLS": ", ".join(TURN.urls), "REALTIME_TURN_USERNAME": "u", "REALTIME_TURN_CREDENTIAL": "c"}
    )
    assert found == [TURN]
    (made,) = environment_ice_servers({"REALTIME_TURN_URLS": "turn:t.example", "REALTIME_TURN_SECRET": "s"})
    assert made.username.isdecimal()
    whole = '[{"urls": "stun:stun.example:3478"}]'
    assert environment_ice_servers({"REALTIME_ICE_SERVERS": whole, "REALTIME_STUN_URLS": "stun:other"}) == [STUN]
    with pytest.raises(ArgumentError, match="REALTIME_ICE_SERVERS"):
        environment_ice_servers({"REALTIME_ICE_SERVERS": "nonsense"})


@pytest.mark.parametrize(
    ("address", "right"),
    [("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("::ffff:127.0.0.1", True), ("localhost", True),
     ("192.0.2.1", False), ("::2", False), ("", False), ("example.com", False)],
)  # fmt: skip
def test_this_machine_is_known(address, right):
    assert is_loopback(address) is right


async def test_a_caller_of_this_machine_is_given_no_servers():
    assert await resolve_ice_servers([STUN], "127.0.0.1") == ()
    assert await resolve_ice_servers([STUN], "192.0.2.1") == (STUN,)


async def test_a_function_gives_servers_anew_for_each_call():
    async def fetch():
        return [TURN]

    assert await resolve_ice_servers(fetch, "192.0.2.1") == (TURN,)
    assert await resolve_ice_servers(lambda: [STUN], "192.0.2.1") == (STUN,)


@pytest.mark.parametrize("variable", ["REALTIME_STUN_URLS", "REALTIME_TURN_URLS"])
def test_a_url_in_the_environment_that_is_none_is_told_with_its_variable(variable):
    with pytest.raises(ArgumentError, match=f"{variable} must be a URL of scheme stun, .* not 'turn.example'"):
        environment_ice_servers({variable: "stun:stun.example, turn.example"})


async def test_without_any_the_environment_is_asked(monkeypatch):
    monkeypatch.setenv("REALTIME_STUN_URLS", "stun:stun.example:3478")
    assert await resolve_ice_servers(None, "192.0.2.1") == (STUN,)
