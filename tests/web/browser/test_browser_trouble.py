"""What the page does when something is not as it should be; most of it said in the server's name (`wire.py`)."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.local, pytest.mark.timeout(400)]


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


def test_a_server_that_asks_for_patience_does_not_cost_the_call(wired):
    visitor, wire = wired()
    visitor.begin()
    call = visitor.call_id()
    wire.refusals.append({"code": "rate", "message": "too many requests"})
    visitor.page.reload()
    visitor.connected()
    assert not wire.refusals
    assert visitor.call_id() == call


def test_a_call_that_ends_under_the_open_inspector_leaves_the_lobby_in_reach(wired):
    visitor, wire = wired(viewport={"width": 390, "height": 800})
    page = visitor.page
    visitor.begin()
    page.click("#inspector-toggle")
    expect(page.locator("#inspector-close")).to_be_focused()
    wire.tell(type="bye", reason="server_ended")
    expect(page.locator("#start")).to_be_focused()
    expect(page.locator("#notices")).to_contain_text("the server is shutting down")
    page.click("#use-camera")  # nothing lies over it


def test_what_happened_while_the_page_was_away_is_caught_up_with(wired):
    """Messages in their order and once each, what nothing became of gone, and the questions that wait."""
    visitor, wire = wired()
    page = visitor.page

    def said(name: str, role: str, text: str, **more: Any) -> dict[str, Any]:
        return {"id": name, "role": role, "text": text, "images": 0, "interrupted": False, **more}

    first, second = said("m1", "user", "First."), said("m2", "assistant", "Second.")
    away, growing = said("m3", "user", "While away."), said("m4", "assistant", "It still", pending=True)

    def catch_up(message: dict[str, Any]) -> dict[str, Any]:
        if message["type"] != "history":
            return message
        question = {"call_id": "c2", "name": "open_door", "arguments": "{}"}
        return message | {"messages": [first, away, second, growing], "approvals": [question]}

    visitor.begin()
    wire.event("MessageCommitted", message=first)
    wire.event("MessageCommitted", message=second)
    wire.event("SpeechStarted", message_id="m0", at_ms=0)
    wire.event("ApprovalRequested", call_id="c1", name="delete_all", arguments="{}")
    expect(page.locator(".notice", has_text="delete_all")).to_be_visible()
    wire.change = catch_up
    wire.cut()
    for _ in range(2):
        expect(page.locator(".notice", has_text="open_door")).to_have_count(1)
        expect(page.locator(".line .said")).to_have_text(["First.", "While away.", "Second.", "It still"])
        expect(page.locator(".notice", has_text="delete_all")).to_have_count(0)
        visitor.connected()
        page.reload()
    visitor.connected()
    wire.event("MessageCommitted", message=said("m4", "assistant", "It still goes on."))
    expect(page.locator(".line .said")).to_have_text(["First.", "While away.", "Second.", "It still goes on."])


def test_tools_that_ran_while_the_page_was_away_are_told_as_if_it_had_been_there(wired):
    """Each once, in its place, whether it was told live, by the history or by both; an id may come again."""
    visitor, wire = wired()
    page = visitor.page

    def said(name: str, role: str, text: str, **more: Any) -> dict[str, Any]:
        return {"id": name, "role": role, "text": text, "images": 0, "interrupted": False, **more}

    def calling(name: str, call_id: str, city: str) -> dict[str, Any]:
        return said(name, "assistant", "", tool_calls=[{"name": "weather", "call_id": call_id, "arguments": city}])

    def result(name: str, call_id: str, text: str, **more: Any) -> dict[str, Any]:
        return said(name, "tool", text, tool_call_id=call_id, tool_name="weather", **more)

    history = [
        said("m1", "user", "Rome and Oslo?"),
        calling("m2", "c1", "Rome"),
        result("m3", "c1", "Sunny"),
        calling("m4", "c2", "Oslo"),
        result("m5", "c2", "no such place", is_error=True),
        said("m6", "assistant", "Sunny in Rome."),
        calling("m7", "c1", "Bonn"),
        result("m8", "c1", "Rain"),
    ]
    told = [
        "Rome and Oslo?",
        "weather(Rome)",
        "weather gave: Sunny",
        "weather(Oslo)",
        "weather failed: no such place",
        "Sunny in Rome.",
        "weather(Bonn)",
        "weather gave: Rain",
    ]
    visitor.begin()
    wire.event("MessageCommitted", message=history[0])
    wire.event("ToolCalled", message_id="m2", call_id="c1", name="weather", arguments="Rome")
    wire.change = lambda message: message | {"messages": history} if message["type"] == "history" else message
    wire.cut()
    for _ in range(2):
        expect(page.locator(".line .said")).to_have_text(told)
        visitor.connected()
        page.reload()
    visitor.connected()
    wire.event("ToolCalled", message_id="m9", call_id="c1", name="weather", arguments="Nice")
    told.append("weather(Nice)")
    expect(page.locator(".line .said")).to_have_text(told)
    history[:] = [
        said("m6", "assistant", "Sunny in Rome."),
        *history[6:],
        calling("m9", "c1", "Nice"),
        result("m10", "c1", "Hail"),
    ]
    told.append("weather gave: Hail")
    wire.cut()  # a history that is cut: the first calls are no longer in it
    for _ in range(2):
        expect(page.locator(".line .said")).to_have_text(told)
        visitor.connected()
        page.reload()
    visitor.connected()


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
    visitor.page.reload()  # in the moment before a reply begins
    visitor.connected()
    wire.event("ReplyStarted", reply_id="r2")
    wire.event("TurnCompleted", reply_id="r2", messages=[])
    expect(stop).to_be_disabled()


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


_NOTE_PLAYED = """
const send = RTCDataChannel.prototype.send;
window.played = [];
RTCDataChannel.prototype.send = function (text) {
  const message = JSON.parse(text);
  if (message.type === "played") window.played.push(message.rtp_timestamp);
  return send.call(this, text);
};
"""


def test_what_the_page_may_not_play_does_not_count_as_heard(wired):
    """The browser's receiver goes on, whoever hears it; the page says so, and reports that it stands still."""
    visitor, _ = wired(script=_NOTE_PLAYED)
    page = visitor.page
    visitor.begin()
    visitor.until("() => new Set(played).size > 1")
    page.evaluate("() => { document.querySelector('#reply').pause(); window.played = []; }")
    expect(page.locator("#notices")).to_contain_text("you hear nothing")
    visitor.until("() => played.length > 2")
    assert page.evaluate("() => new Set(played).size") == 1
    page.click("text=Play the sound")
    expect(page.locator("#notices")).to_be_empty()
    visitor.until("() => new Set(played).size > 1")


# -- questions and devices ----------------------------------------------------------------------------------------------


def test_a_question_stays_until_it_is_answered(wired):
    """Neither later messages nor putting it away leave a tool waiting for an answer that nobody can give any more."""
    visitor, wire = wired()
    page = visitor.page
    visitor.begin()
    wire.event("ApprovalRequested", call_id="c1", name="delete_all", arguments="{}")
    question = page.locator(".notice", has_text="delete_all")
    expect(question).to_be_visible()
    for code in ("too_large", "bad_message", "refused", "session_failed"):
        wire.tell(type="error", code=code, message=f"about {code}")
    expect(page.locator("#notices")).to_contain_text("about session_failed")
    expect(page.locator("#notices")).not_to_contain_text("more than the server takes")  # the oldest is gone
    expect(question.get_by_role("button")).to_have_text(["Allow", "Refuse"])
    question.get_by_role("button", name="Refuse").click()
    expect(question).to_have_count(0)
    assert wire.heard("approve") == [{"type": "approve", "call_id": "c1", "ok": False}]


_UNPLUG = """
const devices = navigator.mediaDevices;
const open = devices.getUserMedia.bind(devices);
window.gone = null;
devices.getUserMedia = (wish) => {
  const id = (wish.video || wish.audio).deviceId?.exact;
  return id && id === window.gone ? Promise.reject(new DOMException("gone", "OverconstrainedError")) : open(wish);
};
"""


def test_a_chosen_camera_that_was_unplugged_gives_way_to_another(wired):
    visitor, _ = wired("", script=_UNPLUG)
    page = visitor.page
    page.click("#use-camera")
    picker = page.locator("#pick-camera")
    expect(picker.locator("option")).not_to_have_count(1)
    picker.select_option(index=1)
    visitor.begin(camera=True)
    page.click("#camera")
    expect(page.locator("#tile-camera")).to_be_hidden()
    page.evaluate("() => { window.gone = document.querySelector('#pick-camera').value; }")
    page.click("#camera")
    expect(page.locator("#tile-camera")).to_be_visible()
    expect(page.locator("#notices")).to_contain_text("The camera that was chosen is not there any more.")
    expect(picker).to_have_value("")


def test_a_camera_that_is_refused_at_the_beginning_is_told_in_the_call(wired):
    """The browser's question is still open as the call is begun."""
    visitor, _ = wired(
        script="""
          const wishes = [];
          navigator.mediaDevices.getUserMedia = () => new Promise((_, refuse) => wishes.push(refuse));
          window.refuseAll = () => wishes.splice(0).forEach((refuse) => refuse(new DOMException("no", "NotAllowedError")));
          window.asked = () => wishes.length;
        """
    )
    page = visitor.page
    page.click("#use-microphone")
    page.click("#use-camera")
    page.click("#start")
    visitor.until("() => asked() === 2")
    page.evaluate("() => refuseAll()")
    visitor.connected()
    expect(page.locator("#notices")).to_contain_text("does not allow this page to use the camera")


def test_a_camera_switched_on_later_sends_no_more_than_is_looked_at(visitor):
    """The server says so once, before the camera is on."""
    page = visitor.page
    visitor.begin()
    page.click("#camera")
    visitor.until(
        """() => peers.at(-1).getSenders().some((sender) =>
          sender.track?.kind === "video" && sender.getParameters().encodings[0]?.maxFramerate > 0)"""
    )
