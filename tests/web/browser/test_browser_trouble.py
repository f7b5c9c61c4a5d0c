"""What the page does when something is not as it should be; most of it said in the server's name (`wire.py`)."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.local]


def _wire() -> Any:
    spec = importlib.util.spec_from_file_location("browser_wire", Path(__file__).with_name("wire.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def wired(visit: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """Let somebody come whose signalling is in our hand. The model of the room says nothing by itself."""

    def come(room: str = "quiet/", *, script: str = "", **options: Any) -> tuple[Any, Any]:
        visitor = visit(arrive=False, **options)
        if script:
            visitor.page.add_init_script(script)
        wire = _wire().Wire(visitor.page)
        visitor.arrive(room)
        return visitor, wire

    return come


# -- the connection -----------------------------------------------------------------------------------------------------


def test_why_no_connection_came_about_is_told_until_one_does(wired):
    visitor, wire = wired()
    page = visitor.page

    def lead_nowhere(message: dict[str, Any]) -> dict[str, Any]:
        if message["type"] != "answer":
            return message
        wire.change = lambda other: other  # only the first one
        return {**message, "sdp": re.sub(r"a=ice-pwd:\S+", "a=ice-pwd:" + "x" * 22, message["sdp"])}

    wire.change = lead_nowhere
    page.click("#start")
    visitor.until("() => peers.at(-1)?.remoteDescription")
    expect(page.locator("#floor")).to_have_text("Connecting")
    wire.tell(type="error", code="connect_timeout", message="ICE found no way between the two sides")
    told = page.locator("#notices")
    expect(told).to_contain_text("no way to the server")
    expect(told).to_contain_text("ICE found no way between the two sides")
    visitor.connected()
    expect(page.locator("#floor")).to_have_text("Listening")
    expect(told).to_be_empty()
    assert len(wire.heard("offer")) > 1


def test_what_the_page_was_called_with_reaches_the_session_factory(visit):
    visitor = visit("quiet/?name=Anna")
    visitor.begin()
    assert visitor.session()["query"] == {"name": "Anna"}


def test_a_reload_right_after_the_beginning_keeps_the_call_and_the_last_words(wired):
    visitor, wire = wired()
    visitor.begin()
    call = visitor.call_id()
    wire.event("MessageCommitted", message={"id": "m1", "role": "user", "text": "My last words.", "images": 0})
    expect(visitor.line("user", "My last words.")).to_be_visible()
    visitor.page.reload()
    visitor.connected()
    assert visitor.call_id() == call
    expect(visitor.line("user", "My last words.")).to_be_visible()


# -- a reply that sounds, a key that is held ----------------------------------------------------------------------------


def test_a_reply_can_be_stopped_as_long_as_it_sounds(wired):
    """Whoever speaks meanwhile, and whatever became of the connection: only the reply's own end takes Stop away."""
    visitor, wire = wired()
    stop, floor = visitor.page.locator("#stop"), visitor.page.locator("#floor")
    visitor.begin()
    expect(stop).to_be_disabled()
    wire.event("ReplyStarted", reply_id="r1")
    expect(stop).to_be_enabled()
    wire.event("SpeechStarted", message_id="u1", at_ms=0)
    expect(floor).to_have_text("You are speaking")
    expect(stop).to_be_enabled()
    wire.event("SpeechStopped", message_id="u1", at_ms=10)  # a cough: the reply goes on
    expect(floor).to_contain_text("Replying")
    expect(stop).to_be_enabled()
    wire.event("TurnCompleted", reply_id="r0", messages=[])
    wire.change = lambda message: message | {"replying": True} if message["type"] == "welcome" else message
    visitor.page.reload()
    visitor.connected()
    expect(floor).to_contain_text("Replying")
    expect(stop).to_be_enabled()
    wire.event("TurnCompleted", reply_id="r1", messages=[])
    expect(stop).to_be_disabled()
    expect(floor).not_to_contain_text("Replying")


@pytest.mark.parametrize("room", ["quiet/", "manual/"])
def test_the_space_bar_talks_right_after_the_beginning(visit, room):
    """Push-to-talk that is chosen, and push-to-talk that the session needs."""
    visitor = visit(room)
    page = visitor.page
    if room == "quiet/":
        page.check("#ptt-mode")
    visitor.begin(microphone=True)
    expect(page.locator("#talk")).to_be_focused()
    page.keyboard.down("Space")
    expect(page.locator("#talk")).to_have_attribute("aria-pressed", "true")
    page.keyboard.up("Space")
    expect(page.locator("#talk")).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#mute")).to_have_attribute("aria-pressed", "false")
