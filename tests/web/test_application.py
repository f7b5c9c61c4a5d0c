"""`realtime.web.app`: what is served, with which headers, and mounted into another application."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from realtime.errors import ArgumentError
from realtime.web import app


def mounted(bot):
    return Starlette(routes=[Mount("/bot", bot)])


async def test_the_page_and_its_files_come_with_headers_that_let_nothing_else_in(serve, http):
    served = await serve()
    page = await http.get(f"{served.url}/")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "microphone=(self)" in page.headers["permissions-policy"]
    assert "server" not in page.headers
    style = await http.get(f"{served.url}/assets/style.css")
    assert style.headers["content-type"].startswith("text/css")


@pytest.mark.parametrize(
    "path",
    ["/assets/nothing.js", "/assets/..%2f__init__.py", "/assets/%2e%2e/application.py", "/assets/", "/assets/%00",
     "/assets/" + "a" * 300, "/assets/c:style.css", "/assets/style.css::$DATA", "/assets/a%0a",
     "/calls/x/y/context.json", "/calls/x/y/pictures/m/0", "/whip/x"],
)  # fmt: skip
async def test_nothing_else_is_served(serve, http, path):
    served = await serve()
    assert (await http.get(served.url + path)).status_code in (404, 405)


async def test_the_configuration_asks_for_no_servers_and_tells_none(serve, http, monkeypatch):
    monkeypatch.setattr("realtime.web.ice.is_loopback", lambda _: False)

    def fail():
        raise AssertionError

    free = await serve(ice_servers=fail, model_name="local")
    told = (await http.get(f"{free.url}/config")).json()
    assert told == {
        "ice_servers": [],
        "token_required": False,
        "max_message_bytes": 131_072,
        "model": "local",
    }
    closed = await serve(token="t")
    assert (await http.get(f"{closed.url}/config")).json()["token_required"] is True


async def test_pages_of_listed_origins_may_read_what_is_answered(serve, http):
    served = await serve(origins=["https://shop.example"])
    shop = {"Origin": "https://shop.example"}
    for path in ("/offer", "/whip"):
        asked = await http.request(
            "OPTIONS", served.url + path, headers=shop | {"Access-Control-Request-Method": "POST"}
        )
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == "https://shop.example"
        assert "POST" in asked.headers["access-control-allow-methods"]
        assert "Content-Type" in asked.headers["access-control-allow-headers"]
        answered = await http.post(served.url + path, content=b"", headers=shop)
        assert answered.status_code in (400, 415)
        assert answered.headers["access-control-allow-origin"] == "https://shop.example"
        assert "Location" in answered.headers["access-control-expose-headers"]
    told = await http.get(f"{served.url}/config", headers=shop)
    assert told.headers["access-control-allow-origin"] == "https://shop.example"
    assert "origin" in told.headers["vary"].lower()
    picture = await http.get(f"{served.url}/calls/x/y/pictures/m/0")
    assert picture.headers["cross-origin-resource-policy"] == "cross-origin"


@pytest.mark.parametrize("origins", [[], ["https://shop.example"]])
async def test_other_pages_may_read_nothing(serve, http, origins):
    served = await serve(origins=origins)
    evil = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for method, path in (("OPTIONS", "/offer"), ("OPTIONS", "/whip"), ("GET", "/config"), ("POST", "/offer")):
        answered = await http.request(method, served.url + path, headers=evil)
        assert "access-control-allow-origin" not in answered.headers
        assert answered.headers["cross-origin-resource-policy"] == "same-origin"


async def test_health_tells_load_balancers_when_no_new_calls_are_taken(serve, http):
    served = await serve()
    assert (await http.get(f"{served.url}/healthz")).json() == {"status": "ok", "calls": 0}
    await served.bot.drain(0.0)
    assert (await http.get(f"{served.url}/healthz")).status_code == 503


async def test_mounted_under_a_prefix_calls_pictures_and_whip_work(serve, call, http):
    served = await serve(wrap=mounted)
    served.ws_url = f"ws://127.0.0.1:{served.port}/bot/call"
    caller = await call(served)
    await caller.offer(camera=True)
    await caller.receive("event", event="FrameKept")
    await caller.send(type="inspect", on=True)
    shown = await caller.until(
        lambda: [each for each in caller.messages if each["type"] == "inspect" and each["messages"]]
    )
    url = shown[0]["messages"][0]["images"][0]["url"]
    assert url.startswith("/bot/calls/")
    assert (await http.get(served.url + url)).status_code == 200
    assert (await http.get(f"{served.url}/bot/")).status_code == 200
    created = await http.post(
        f"{served.url}/bot/whip", content=caller.pc.localDescription.sdp, headers={"Content-Type": "application/sdp"}
    )
    assert created.headers["location"].startswith("/bot/whip/")
    assert (await http.delete(served.url + created.headers["location"])).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
async def test_pages_from_elsewhere_cannot_call(serve, call, origin):
    served = await serve()
    caller = await call(served, greet=False, origin=origin)
    refused = await caller.receive("error")
    assert (refused["code"], refused["fatal"]) == ("bad_origin", True)
    await caller.until(lambda: caller.closed)
    assert len(served.bot.calls) == 0


async def test_the_own_page_and_listed_origins_can_call(serve, call):
    served = await serve(origins=["https://shop.example"])
    for origin in (f"http://127.0.0.1:{served.port}", "https://shop.example"):
        await call(served, origin=origin)
    assert len(served.bot.calls) == 2


@pytest.mark.parametrize("hello", [{}, {"token": "wrong"}, {"token": ""}, {"token": 5}, {"token": ["right"]}])
async def test_a_wrong_token_cannot_call(serve, call, hello):
    served = await serve(token="right")
    caller = await call(served, greet=False)
    await caller.send(type="hello", **hello)
    assert (await caller.receive("error"))["code"] == "bad_token"
    await caller.until(lambda: caller.closed)


async def test_the_right_token_can_call_by_message_or_header(serve, call):
    served = await serve(token="right")
    await (await call(served, greet=False)).greet(token="right")
    await call(served, additional_headers={"Authorization": "Bearer right"})
    assert len(served.bot.calls) == 2


@pytest.mark.parametrize(
    "wrong", [{"session_factory": None}, {"session_factory": 5}, {"token": ""}, {"origins": ["nonsense"]}]
)
def test_what_cannot_be_is_refused_by_name(wrong):
    options = {"session_factory": lambda _: None} | wrong
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        app(options.pop("session_factory"), **options)
