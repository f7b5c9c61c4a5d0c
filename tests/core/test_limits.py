"""`UsageLimits`: a breach ends the session with a typed error, after the running reply."""

from __future__ import annotations

from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.settings import FrameSampling, UsageLimits
from realtime.errors import UsageLimitExceeded


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


def test_spent_pictures_are_no_longer_sent_and_the_call_goes_on(make_rig):
    rig = make_rig(usage_limits=UsageLimits(max_images=2), sampling=FrameSampling(fps_idle=1.0, min_change=0))
    for index in range(5):
        rig.frame(index)
        rig.pull()
        rig.wait(1)
    assert rig.names() == ["frame", "frame"]
    assert not rig.machine.is_closed


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
