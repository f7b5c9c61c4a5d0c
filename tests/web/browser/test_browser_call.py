"""A call in a real browser, against the local LLM: spoken, seen, interrupted, muted, shared."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.local, pytest.mark.timeout(400)]

LONG = (
    "This is a rather long sentence about the weather in Norway, which is said to be cold in winter, mild in spring, and "
    "surprisingly warm for a few weeks of the summer, so that people swim in lakes and sit outside until midnight."
)
"""The model says again what it hears."""
WORDS = re.compile("what|sign|say", re.IGNORECASE)
"""Of the question that the microphone hears; not every one need be recognized."""


def test_a_spoken_question_about_a_sign_is_answered_aloud(visitor, transcribe, recording):
    """Speech in, a picture in, speech out: what the page played is recorded there and recognized again."""
    start, stop = recording
    visitor.begin(camera=True)
    start(visitor.page)
    visitor.speak()
    expect(visitor.line("user")).to_contain_text(WORDS)
    expect(visitor.line("assistant")).to_contain_text("FRESH BREAD")
    words = transcribe(stop(visitor.page)).lower()
    connections = visitor.page.evaluate("() => peers.length")
    assert "bread" in words, (words, connections)
    assert "six" in words or "6" in words, (words, connections)
    messages = visitor.session()["messages"]
    assert {one["source"] for one in messages if one["source"]} == {"camera"}
    [reply] = [one for one in messages if one["role"] == "assistant"]
    assert not reply["interrupted"], reply


def test_speech_into_a_reply_cuts_it_to_what_was_heard(visitor):
    """Barge-in; the page tells heard from unheard in words, and in how they are drawn (P1)."""
    visitor.begin()
    visitor.say(LONG)
    visitor.hear()
    visitor.speak()
    line = visitor.page.locator(".line[data-interrupted]")
    expect(line.locator(".fate")).to_have_text("Interrupted. What is struck through was not heard.")
    [cut] = [one for one in visitor.session()["messages"] if one["interrupted"]]
    assert line.locator(".heard").inner_text().strip() == cut["text"].strip() != ""
    assert line.locator(".unheard").inner_text().strip() == cut["unheard"].strip() != ""
    assert cut["heard_ms"] > 500
    expect(visitor.line("user")).to_contain_text(WORDS)


def test_captions_grow_as_the_reply_is_heard(visitor):
    """What has been heard, and what is still to come, are told apart while it sounds; at the end all of it was heard."""
    visitor.begin()
    visitor.say("The weather in Norway is said to be cold in winter and mild in spring.")
    visitor.until(
        """() => {
          const line = document.querySelector(".line[data-growing][data-role=assistant]");
          return line?.querySelector(".heard")?.textContent && line.querySelector(".ahead")?.textContent;
        }"""
    )
    line = visitor.line("assistant")
    expect(line).to_contain_text("mild in spring")
    expect(line.locator(".ahead")).to_have_count(0)
    expect(line).not_to_have_attribute("data-interrupted", "")


def test_stop_ends_a_reply_where_the_page_was_listening(visitor):
    """What was heard is measured by what left for the page's loudspeaker, not by what was sent."""
    visitor.begin()
    visitor.say(LONG)
    visitor.hear()
    visitor.measured()
    visitor.page.click("#stop")
    expect(visitor.page.locator(".line[data-interrupted] .unheard")).to_be_visible()
    expect(visitor.page.locator("#stop")).to_be_disabled()
    [cut] = [one for one in visitor.session()["messages"] if one["interrupted"]]
    assert cut["text"]
    assert cut["unheard"]


def test_a_muted_microphone_sends_silence_and_unmuted_it_is_heard(visitor):
    page = visitor.page
    page.check("#ptt-mode")  # closed before the question comes, whatever the machine is busy with
    visitor.begin(microphone=True)
    page.click("#mute")
    page.click("#settings")
    page.uncheck("#ptt-mode")
    page.keyboard.press("Escape")
    expect(page.locator("#mute")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#floor")).to_have_text("You are muted")
    visitor.until(
        """async () => {
          const [sound] = await stats("media-source", "audio");
          return sound?.totalSamplesDuration > 4;
        }"""
    )
    [sound] = page.evaluate("() => stats('media-source', 'audio')")
    assert sound["totalAudioEnergy"] == 0
    assert visitor.session()["messages"] == []
    page.click("#settings")
    page.click("#use-microphone")  # off
    page.keyboard.press("Escape")
    visitor.speak()  # opened anew and unmuted, so the question comes again
    expect(visitor.line("user")).to_contain_text(WORDS)


def test_push_to_talk_hears_only_while_the_key_is_held(visit):
    """A session without a voice activity detector: the page says when a turn begins and ends."""
    visitor = visit("manual/")
    page = visitor.page
    visitor.begin()
    expect(page.locator("#talk")).to_be_visible()
    page.focus("#conversation")
    page.keyboard.down("Space")
    expect(page.locator("#talk")).to_have_attribute("aria-pressed", "true")
    visitor.speak()
    page.focus("#conversation")
    visitor.until(
        """async () => {
          const [sound] = await stats("media-source", "audio");
          return sound?.totalAudioEnergy > 0.001 && sound.totalSamplesDuration > 3.5;
        }"""
    )
    page.keyboard.up("Space")
    expect(page.locator("#talk")).to_have_attribute("aria-pressed", "false")
    expect(visitor.line("user")).to_contain_text(WORDS)
    expect(visitor.line("assistant")).not_to_be_empty()


def test_a_shared_screen_is_a_source_of_its_own(visitor):
    visitor.begin(camera=True)
    page = visitor.page
    page.click("#screen")
    expect(page.locator("#tile-screen")).to_be_visible()
    expect(page.locator("#seen-screen")).to_contain_text("Seen")
    expect(page.locator("#seen-camera")).to_contain_text("Seen")
    sources = {one["source"] for one in visitor.session()["messages"] if one["source"]}
    assert sources == {"camera", "screen"}
    page.click("#screen")
    expect(page.locator("#tile-screen")).to_be_hidden()
    expect(page.locator("#screen")).to_have_attribute("aria-pressed", "false")


def test_the_camera_sends_no_more_than_is_looked_at(visitor):
    """The server's hints reach the sender's parameters."""
    visitor.begin(camera=True)
    visitor.until(
        """() => peers.at(-1).getSenders().some((sender) =>
          sender.track?.kind === "video" && sender.getParameters().encodings[0]?.maxFramerate > 0)"""
    )


def test_a_picture_that_left_before_it_was_asked_for_is_not_shown_broken(visitor):
    visitor.page.route("**/pictures/**", lambda route: route.fulfill(status=404))
    visitor.begin(camera=True)
    visitor.until("() => [...document.querySelectorAll('.message-pictures')].some((shown) => !shown.childElementCount)")


def test_the_inspector_shows_the_context_that_the_model_has(visitor):
    visitor.begin(camera=True)
    page = visitor.page
    expect(page.locator(".message img").first).to_be_visible()
    visitor.say("What does the sign say?")
    expect(visitor.line("assistant")).to_contain_text("FRESH BREAD")
    expect(page.locator('.message[data-role="assistant"] .message-text')).to_contain_text("FRESH BREAD")
    visitor.until("() => [...document.querySelectorAll('.message img')].every((img) => img.naturalWidth > 0)")
    shown, sent = visitor.page.evaluate(
        """() => {
          const img = document.querySelector(".message img"), film = document.querySelector("#preview-camera");
          return [img.clientWidth / img.clientHeight, film.videoWidth / film.videoHeight];
        }"""
    )
    assert abs(shown - sent) < 0.05  # the model's picture is square; it is shown in the camera's shape
    expect(page.locator("#budgets")).to_contain_text("Tokens")
    expect(page.locator("#turns-body tr")).to_have_count(1)
    expect(page.locator("#facts")).to_contain_text("connected")
    held = [one["id"] for one in visitor.session()["messages"]]
    shown = page.eval_on_selector_all(".message", "(all) => all.map((one) => one.dataset.message)")
    assert [one for one in shown if one in held] == [one for one in held if one in shown]
    with page.expect_download() as download:
        page.click("#download-context")
    assert "FRESH BREAD" in download.value.path().read_text()
