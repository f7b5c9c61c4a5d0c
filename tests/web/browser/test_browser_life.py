"""A call outlives its connections: reload, lost networks, several pages, many calls one after another."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.local, pytest.mark.timeout(400)]


def _relay() -> Any:
    spec = importlib.util.spec_from_file_location("browser_relay", Path(__file__).with_name("relay.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def network() -> Iterator[Callable[[Any], Any]]:
    """Put a network that can be cut between a page and the server."""
    made: list[Any] = []

    def between(page: Any) -> Any:
        made.append(_relay().Network(page))
        return made[-1]

    yield between
    for each in made:
        each.close()


def ask_name(visitor: Any) -> None:
    """The model was told a name before; the same conversation knows it."""
    visitor.say("What is my name?")
    expect(visitor.line("assistant", "Robin")).to_be_visible()


def test_a_reload_goes_on_with_the_same_conversation(visitor):
    visitor.page.check("#ptt-mode")  # so that what the microphone hears does not come between
    visitor.begin(microphone=True, camera=True)
    visitor.say("My name is Robin.")
    expect(visitor.line("assistant")).not_to_be_empty()
    before = visitor.session()
    call = visitor.call_id()
    visitor.page.reload()
    visitor.connected()
    assert visitor.call_id() == call
    expect(visitor.line("user", "My name is Robin.")).to_be_visible()  # the captions are there again
    expect(visitor.page.locator("#mute")).to_have_attribute("aria-pressed", "false")  # and the microphone
    expect(visitor.page.locator("#tile-camera")).to_be_visible()  # and the camera
    expect(visitor.page.locator("#talk")).to_be_visible()  # and the way to talk
    ask_name(visitor)
    after = visitor.session()
    assert after["conversation"] == before["conversation"]
    assert [one["id"] for one in after["messages"]][: len(before["messages"])] == [
        one["id"] for one in before["messages"]
    ]


@pytest.mark.parametrize("signalling", [True, False], ids=["all", "media only"])
def test_a_lost_network_is_left_for_another_one(visit, network, *, signalling):
    """The page makes a new peer connection on the same session (issue: aiortc has no ICE restart)."""
    visitor = visit(arrive=False)
    cable = network(visitor.page)
    visitor.arrive()
    visitor.begin()
    visitor.say("My name is Robin.")
    expect(visitor.line("assistant")).not_to_be_empty()
    call = visitor.call_id()
    conversation = visitor.session()["conversation"]
    assert cable.relays[0].passed > 0
    cable.cut(signalling=signalling)
    visitor.until("() => peers.length > 1 && peers.at(-1).connectionState === 'connected'")
    visitor.connected()
    assert visitor.call_id() == call
    ask_name(visitor)
    visitor.hear(0.2)  # and the reply sounds over the new connection
    assert visitor.session()["conversation"] == conversation
    assert cable.relays[-1].passed > 0


def test_two_pages_have_a_conversation_each(visit):
    one, other = visit(), visit()
    one.begin()
    other.begin()
    one.say("My name is Robin.")
    other.say("My name is Ada.")
    for visitor in (one, other):
        expect(visitor.line("assistant")).not_to_be_empty()
        visitor.say("What is my name?")
    expect(one.line("assistant", "Robin")).to_be_visible()
    expect(other.line("assistant", "Ada")).to_be_visible()
    assert one.session()["conversation"] != other.session()["conversation"]
    assert "Ada" not in one.page.inner_text("#captions")


def test_a_second_window_takes_the_call_over_and_the_first_says_so(visitor):
    """A duplicated tab has the first one's memory; a conversation is in one place at a time."""
    visitor.begin()
    call = visitor.call_id()
    memory = visitor.page.evaluate("() => sessionStorage.getItem('realtime.call')")
    twin = visitor.page.context.new_page()
    twin.add_init_script(f"sessionStorage.setItem('realtime.call', {json.dumps(memory)})")
    twin.goto(visitor.page.url)
    expect(twin.locator("#link")).to_have_attribute("data-link", "live")
    expect(visitor.page.locator("#notices")).to_contain_text("This conversation goes on in another window.")
    expect(visitor.page.locator("#start")).to_be_visible()
    assert call in visitor.server.facts()["calls"]
    twin.click("#end")


def test_the_call_ends_on_the_server_when_the_page_hangs_up(visitor):
    visitor.begin()
    call = visitor.call_id()
    visitor.page.click("#end")
    expect(visitor.page.locator("#notices")).to_contain_text("The call has ended.")
    expect(visitor.page.locator("#start")).to_be_focused()
    visitor.until("async (call) => !(call in (await (await fetch('/facts')).json()).calls)", call)
    assert visitor.page.evaluate("() => sessionStorage.getItem('realtime.call')") is None


def test_a_hundred_calls_leave_nothing_behind(visit, server):
    """The page's own `Call`, a hundred times; neither the server's process nor the page grows."""
    visitor = visit("quiet/")
    run = """async (times) => {
      const { Call } = await import(new URL("assets/call.js", location.href));
      const calls = [0, 1, 2, 3].map(() => new Call(new URL(".", location.href)));
      const once = (call) => new Promise((resolve, reject) => {
        const listen = ({ detail: { state, reason } }) => {
          if (state === "live") call.end();
          if (state !== "ended") return;
          call.removeEventListener("state", listen);
          reason ? reject(new Error(`${reason}: ${told}`)) : resolve();
        };
        let told = "";
        call.addEventListener("message", ({ detail }) => { if (detail.type === "error") told = detail.message; });
        call.addEventListener("state", listen);
        call.start({});
      });
      await Promise.all(calls.map(async (call) => { for (let i = 0; i < times / 4; i += 1) await once(call); }));
      window.peers.length = 0;
    }"""
    page = visitor.page
    devtools = page.context.new_cdp_session(page)

    def held() -> dict[str, float]:
        visitor.until("async () => Object.keys((await (await fetch('/facts')).json()).calls).length === 0")
        devtools.send("HeapProfiler.collectGarbage")
        figures = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
        facts = server.facts()
        return {name: facts[name] for name in ("tasks", "threads", "files")} | {"heap": figures["JSHeapUsedSize"]}

    devtools.send("Performance.enable")
    page.evaluate(run, 8)
    before = held()
    page.evaluate(run, 100)
    after = held()
    assert after["tasks"] <= before["tasks"] + 2, (before, after)
    assert after["threads"] <= before["threads"] + 2, (before, after)
    assert after["files"] <= before["files"] + 4, (before, after)
    assert after["heap"] < before["heap"] + 2_000_000, (before, after)
