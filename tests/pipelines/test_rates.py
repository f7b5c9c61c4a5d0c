"""Between a session's sample rates and a model's: nothing is lost, nothing changes its place."""

import numpy as np
import pytest

from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import AppendAudio, ClearAudio, CommitAudio, CreateResponse
from realtime.core.model_events import (
    OutputAudio,
    OutputItemDone,
    OutputItemStarted,
    OutputTextUpdated,
    ResponseEnded,
)
from realtime.pipelines.rates import RateBridge

SESSION = ModelCapabilities(input_rate_hz=24_000, output_rate_hz=24_000)


def tone(samples, rate_hz):
    return (8_000 * np.sin(2 * np.pi * 440 * np.arange(samples) / rate_hz)).astype("<i2").tobytes()


def say(bridge, sound, chunk=960):
    sent = []
    for at in range(0, len(sound), chunk):
        sent += bridge.outgoing(AppendAudio(command_id=f"a{at}", pcm=sound[at : at + chunk]))
    return sent


def heard(item, pcm, response="r"):
    return OutputAudio(response_id=response, item_id=item, pcm=pcm)


def test_equal_rates_are_not_touched():
    bridge = RateBridge(SESSION, SESSION)
    command, events = AppendAudio(command_id="a", pcm=b"ab"), [heard("i", b"abcd")]
    assert bridge.outgoing(command) == [command]
    assert bridge.incoming(events) is events


@pytest.mark.parametrize("rate", [8_000, 16_000, 48_000])
def test_a_turn_has_all_of_its_sound_before_its_commit(rate):
    bridge = RateBridge(SESSION, ModelCapabilities(input_rate_hz=rate))
    sent = say(bridge, tone(12_000, 24_000))
    sent += bridge.outgoing(CommitAudio(command_id="c"))
    assert isinstance(sent[-1], CommitAudio)
    sound = b"".join(command.pcm for command in sent[:-1])
    assert len(sound) // 2 == pytest.approx(rate // 2, abs=2)
    assert all(command.pcm for command in sent[:-1])
    samples = np.frombuffer(sound, "<i2").astype(float)
    assert np.sqrt((samples**2).mean()) == pytest.approx(8_000 / np.sqrt(2), rel=0.02)


def test_what_is_thrown_away_does_not_begin_the_next_turn():
    bridge = RateBridge(SESSION, ModelCapabilities(input_rate_hz=8_000))
    say(bridge, tone(4_800, 24_000))
    assert bridge.outgoing(ClearAudio(command_id="x")) == [ClearAudio(command_id="x")]
    after = say(bridge, bytes(9_600))
    assert not any(np.frombuffer(command.pcm, "<i2").any() for command in after)


def test_other_commands_pass():
    command = CreateResponse(command_id="k")
    assert RateBridge(SESSION, ModelCapabilities(input_rate_hz=8_000)).outgoing(command) == [command]


@pytest.mark.parametrize("rate", [8_000, 16_000, 48_000])
def test_an_items_sound_is_whole_before_its_end_and_items_are_apart(rate):
    bridge = RateBridge(SESSION, ModelCapabilities(output_rate_hz=rate))
    events = [OutputItemStarted(response_id="r", item_id="i", kind="message")]
    sound = tone(rate // 2, rate)
    for at in range(0, len(sound), 640):
        events += bridge.incoming([heard("i", sound[at : at + 640]), heard("j", sound[at : at + 640])])
    events += bridge.incoming([OutputItemDone(response_id="r", item_id="i")])
    events += bridge.incoming([ResponseEnded(response_id="r", status="completed")])
    assert [type(event) for event in events[-4:]] == [OutputAudio, OutputItemDone, OutputAudio, ResponseEnded]
    for item in "ij":
        whole = b"".join(event.pcm for event in events if isinstance(event, OutputAudio) and event.item_id == item)
        assert len(whole) // 2 == pytest.approx(12_000, abs=2)


def test_words_stay_where_they_are():
    bridge = RateBridge(SESSION, ModelCapabilities(output_rate_hz=8_000))
    words = OutputTextUpdated(response_id="r", item_id="i", delta="one", spoken=True)
    assert bridge.incoming([words]) == [words]
