"""`UsageLimits`: a breach ends the session with a typed error, after the running reply."""

from __future__ import annotations

import pytest

from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.settings import FrameSampling, Prices, UsageLimits
from realtime.errors import ArgumentError, UsageLimitExceeded


def spend(rig, response: str, tokens: int, *, play: bool = True) -> None:
    rig.start_reply(response, f"item-{response}")
    rig.speak(response, f"item-{response}", "yes", ms=100)
    rig.feed(said.OutputItemDone(response_id=response, item_id=f"item-{response}"))
    usage = said.TokenUsage(input_tokens=tokens - 1, output_tokens=1, total_tokens=tokens)
    rig.feed(said.ResponseEnded(response_id=response, usage=usage))
    if play:
        rig.play(response, 100, finished=True)


def test_breach_ends_the_session_after_the_running_reply(make_rig):
    rig = make_rig(usage_limits=UsageLimits(max_tokens=100))
    rig.say("u1", "go")
    spend(rig, "r1", 60)
    assert not rig.machine.is_closed
    rig.say("u2", "go")
    spend(rig, "r2", 60, play=False)
    assert not rig.machine.is_closed
    rig.play("r2", 100, finished=True)
    assert rig.machine.is_closed
    ended = rig.events[-1]
    assert isinstance(ended, seen.SessionEnded)
    assert ended.reason == "usage_limit"
    assert isinstance(ended.error, UsageLimitExceeded)
    assert (ended.error.limit, ended.error.used, ended.error.allowed) == ("max_tokens", 120, 100)
    assert rig.names()[-1] == "a:yes"


def test_responses_and_seconds_are_limited_too(make_rig):
    rig = make_rig(usage_limits=UsageLimits(max_responses=1))
    rig.say("u1", "go")
    spend(rig, "r1", 5)
    assert rig.events[-1].error.limit == "max_responses"
    rig = make_rig(usage_limits=UsageLimits(max_seconds=60))
    rig.wait(59)
    assert not rig.machine.is_closed
    rig.wait(2)
    assert rig.events[-1].error.limit == "max_seconds"


def test_one_picture_too_many_is_not_sent_and_ends_the_session_after_the_running_reply(make_rig):
    rig = make_rig(usage_limits=UsageLimits(max_images=2), sampling=FrameSampling(fps_idle=1.0, min_change=0))
    for index in range(2):
        rig.frame(index)
        rig.pull()
        rig.wait(1)
    assert not rig.machine.is_closed
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "yes", ms=100)
    rig.frame(2)
    rig.pull()
    assert not rig.machine.is_closed
    rig.end_reply("r1", "a1", "yes")
    rig.play("r1", 100, finished=True)
    assert rig.machine.is_closed
    assert rig.names() == ["frame", "frame", "a:yes"]
    ended = rig.events[-1].error
    assert (ended.limit, ended.used, ended.allowed) == ("max_images", 3, 2)


def test_a_picture_of_the_application_beyond_the_limit_is_refused_and_its_words_are_sent(make_rig, picture):
    rig = make_rig(usage_limits=UsageLimits(max_images=1))
    rig.machine.send(["two of them", picture(1), picture(2)], respond=False, now=rig.now)
    rig.pull()
    assert rig.texts() == ["two of them"]
    assert len(rig.machine.messages()[0].images) == 1
    assert "max_images" in rig.of(seen.InputRejected)[0].reason
    rig.machine.send([picture(3)], respond=False, now=rig.now)
    rig.drain()
    assert rig.events[-1].error.limit == "max_images"


PRICES = Prices(
    input_text=4.0,
    input_audio=32.0,
    input_image=5.0,
    cached_input=0.4,
    output_text=16.0,
    output_audio=64.0,
    image=0.01,
    minute=0.06,
)


def test_prices_are_those_of_a_list():
    """By the million of tokens, by the picture, by the minute; text is taken to be cached first."""
    usage = said.TokenUsage(
        input_tokens=1_000_000,
        cached_tokens=300_000,
        input_audio_tokens=500_000,
        input_image_tokens=300_000,
        output_tokens=1_000_000,
        output_audio_tokens=750_000,
    )
    # 200,000 of text and 100,000 of audio from the cache, 400,000 of audio, 300,000 of pictures; 250,000 and 750,000 out
    assert PRICES.cost(usage) == pytest.approx(0.3 * 0.4 + 0.4 * 32 + 0.3 * 5 + 0.25 * 16 + 0.75 * 64)
    assert PRICES.cost(said.TokenUsage(), images=3, seconds=90) == pytest.approx(0.03 + 0.09)
    only_text = Prices(input_text=1.0, output_text=2.0)
    assert only_text.cost(usage) == pytest.approx(1.0 + 2.0)


def test_money_is_limited_with_what_a_continued_conversation_has_cost(make_rig):
    limits = UsageLimits(max_cost=0.001, prices=Prices(input_text=5.0))
    before = said.TokenUsage(input_tokens=100, total_tokens=100)
    rig = make_rig(usage_limits=limits, usage_before=before)
    assert rig.machine.statistics().cost == pytest.approx(0.0005)
    spend(rig, "r1", 60)
    assert not rig.machine.is_closed
    spend(rig, "r2", 60)
    assert rig.events[-1].error.limit == "max_cost"
    assert rig.events[-1].error.used == pytest.approx(218 * 5 / 1e6)


def test_money_for_time_alone_ends_a_silent_session(make_rig):
    rig = make_rig(usage_limits=UsageLimits(max_cost=0.03, prices=Prices(minute=0.06)))
    rig.wait(29)
    assert not rig.machine.is_closed
    rig.wait(2)
    assert rig.events[-1].error.limit == "max_cost"


def test_tokens_of_a_continued_conversation_count(make_rig):
    """Seed: limits keep counting across the hand-off."""
    before = said.TokenUsage(total_tokens=90)
    rig = make_rig(usage_limits=UsageLimits(max_tokens=100), usage_before=before)
    spend(rig, "r1", 9)
    assert not rig.machine.is_closed
    assert rig.machine.usage.total_tokens == 99
    spend(rig, "r2", 9)
    assert rig.events[-1].error.used == 108


@pytest.mark.parametrize(
    ("argument", "values"),
    [
        ("max_tokens", {"max_tokens": -1}),
        ("max_images", {"max_images": True}),
        ("max_seconds", {"max_seconds": float("nan")}),
        ("max_cost", {"max_cost": float("inf"), "prices": PRICES}),
        ("prices", {"max_cost": 1.0}),
        ("prices", {"prices": {"input_text": 1.0}}),
    ],
)
def test_impossible_limits_are_refused_by_name(argument, values):
    with pytest.raises(ArgumentError, match=argument):
        UsageLimits(**values)


@pytest.mark.parametrize("name", ["input_text", "input_audio", "cached_input", "output_audio", "image", "minute"])
@pytest.mark.parametrize("price", [-0.01, float("nan"), True, "1"])
def test_impossible_prices_are_refused_by_name(name, price):
    with pytest.raises(ArgumentError, match=name):
        Prices(**{name: price})


def test_context_window_used_is_the_last_responses_share(make_rig):
    """H4: None until known; it may fall; None where usage does not count the whole conversation."""
    rig = make_rig(capabilities={"context_window": 1_000})
    assert rig.machine.context_window_used is None
    rig.say("u1", "go")
    spend(rig, "r1", 500)
    assert rig.machine.context_window_used == 0.5
    spend(rig, "r2", 250)
    assert rig.machine.context_window_used == 0.25
    rig = make_rig(capabilities={"context_window": 1_000, "reports_total_usage": False})
    rig.say("u1", "go")
    spend(rig, "r1", 500)
    assert rig.machine.context_window_used is None
