"""`realtime.web.guard`: who may call."""

from __future__ import annotations

import pytest

from realtime.errors import ArgumentError
from realtime.testing import ManualClock
from realtime.web.errors import CallRefused
from realtime.web.guard import Bucket, Guard, bearer
from realtime.web.options import WebLimits


def make(**options) -> Guard:
    settings = {"token": None, "origins": (), "limits": WebLimits(), "clock": ManualClock()} | options
    return Guard(**settings)


def admitted(guard: Guard, origin: str | None, host: str) -> bool:
    headers = {"host": host} | ({} if origin is None else {"origin": origin})
    try:
        guard.check_origin(headers)
    except CallRefused as error:
        return error.code != "bad_origin"
    return True


@pytest.mark.parametrize(
    ("origin", "host", "right"),
    [
        (None, "127.0.0.1:8800", True),  # no page
        ("http://127.0.0.1:8800", "127.0.0.1:8800", True),
        ("http://localhost:8800", "localhost:8800", True),
        ("http://[::1]:8800", "[::1]:8800", True),
        ("https://192.0.2.7", "192.0.2.7", True),
        ("http://127.0.0.1:8801", "127.0.0.1:8800", False),
        ("http://localhost:8800", "127.0.0.1:8800", False),
        ("http://evil.example", "127.0.0.1:8800", False),
        ("http://evil.example:8800", "evil.example:8800", False),  # a name that was made to lead here
        ("null", "127.0.0.1:8800", False),
        ("file://", "127.0.0.1:8800", False),
        ("", "127.0.0.1:8800", False),
        ("http://127.0.0.1:99999999", "127.0.0.1", False),
    ],
)
def test_only_the_own_pages_may_call(origin, host, right):
    assert admitted(make(), origin, host) is right


def test_origins_that_were_given_may_call_from_anywhere():
    guard = make(origins=["https://shop.example", "https://a.example:8443"])
    assert admitted(guard, "https://shop.example", "bot.example")
    assert admitted(guard, "https://shop.example:443", "bot.example")
    assert admitted(guard, "https://a.example:8443", "bot.example")
    assert not admitted(guard, "http://shop.example", "bot.example")
    assert not admitted(guard, "https://a.example", "bot.example")
    assert admitted(make(origins="*"), "https://any.example", "bot.example")


def test_with_a_token_the_own_name_is_an_origin_too():
    assert admitted(make(token="t"), "https://bot.example", "bot.example")
    assert not admitted(make(token="t"), "https://other.example", "bot.example")


@pytest.mark.parametrize("origin", ["shop.example", "ftp://x", "https://", "https://x/path"])
def test_what_is_no_origin_is_refused(origin):
    with pytest.raises(ArgumentError, match="origins"):
        make(origins=[origin])


def test_an_empty_token_is_refused():
    with pytest.raises(ArgumentError, match="token"):
        make(token="")


@pytest.mark.parametrize("given", [None, "", "wrong", "rightx", "righ", "ríght", "\ud800"])
async def test_a_wrong_token_opens_nothing(given):
    with pytest.raises(CallRefused) as caught:
        await make(token="right").check_token(given)
    assert (caught.value.code, caught.value.status) == ("bad_token", 401)


async def test_the_right_token_opens_and_without_one_everybody_may():
    assert await make(token="right").check_token("right") == ""
    assert await make().check_token(None) == ""


async def test_a_function_says_whom_a_token_belongs_to():
    async def look_up(token: str) -> str | None:
        return "anna" if token == "a" else None

    guard = make(token=look_up)
    assert await guard.check_token("a") == "anna"
    with pytest.raises(CallRefused):
        await guard.check_token("b")
    with pytest.raises(CallRefused):
        await guard.check_token(None)


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic abc", None),
        ("Bearer ", None),
        ("Bearer", None),
        ("", None),
    ],
)
def test_a_bearer_header_is_read(header, token):
    assert bearer({"authorization": header}) == token


def test_an_address_may_call_so_often_a_minute():
    clock = ManualClock()
    guard = make(limits=WebLimits(requests_per_minute=2), clock=clock)
    guard.check_rate("a")
    guard.check_rate("a")
    with pytest.raises(CallRefused) as caught:
        guard.check_rate("a")
    assert (caught.value.code, caught.value.status, caught.value.retry_seconds) == ("rate", 429, 5)
    guard.check_rate("b")
    clock.advance(31)
    guard.check_rate("a")


def test_the_table_of_addresses_is_bounded():
    guard = make(limits=WebLimits(requests_per_minute=1, max_addresses=2))
    for address in ("a", "b", "c"):
        guard.check_rate(address)
    assert len(guard._rates) == 2
    guard.check_rate("a")  # was forgotten
    with pytest.raises(CallRefused):
        guard.check_rate("c")


def test_what_costs_more_takes_more_and_never_more_than_there_can_be():
    bucket = Bucket(2.0, 2.0, 0.0)
    assert [bucket.take(0.0, 3) for _ in range(2)] == [True, False]
    assert bucket.take(100.0, 1_000)
    assert not bucket.take(100.0)


def test_a_bucket_fills_again_up_to_its_size():
    bucket = Bucket(2.0, 2.0, 0.0)
    assert [bucket.take(0.0) for _ in range(5)] == [True, True, True, True, False]
    assert bucket.take(0.5)
    assert not bucket.take(0.5)
    assert [bucket.take(100.0) for _ in range(5)] == [True, True, True, True, False]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_sessions": 0},
        {"max_sessions_per_address": 0},
        {"grace_seconds": 0},
        {"idle_seconds": -1},
        {"max_sdp_bytes": 1.5},
        {"vanish_seconds": "5"},
    ],
)
def test_limits_that_cannot_be_are_refused_by_name(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        WebLimits(**wrong)
