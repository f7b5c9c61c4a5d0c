"""The checks find what they are for."""

import contextlib
import json

import pytest

from realtime.core.model_events import OutputAudio
from realtime.errors import LinkLost, ModelError
from realtime.testing import MemoryPair, check_transport, check_wire_format, mutations, openai_script
from realtime.testing.memory import MemoryEnd
from realtime.wire.base import WireStatistics
from realtime.wire.openai import OpenAIWire

MESSAGES = [
    json.dumps(event)
    for event in [*openai_script.session_created(), *openai_script.spoken_reply("r", "a", "Hi there.", bytes(99))]
]


def test_damage_is_the_same_for_a_seed_and_of_every_kind():
    first = list(mutations(MESSAGES, 200, seed=3))
    assert first == list(mutations(MESSAGES, 200, seed=3))
    assert first != list(mutations(MESSAGES, 200, seed=4))
    readable = 0
    for message in first:
        with contextlib.suppress(ValueError):
            json.loads(message)
            readable += 1
    assert 50 < readable < 190


class Broken(OpenAIWire):
    """A wire format with one fault."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    def encode(self, command):
        return [{"type": "x"}] if self.fault == "objects" else super().encode(command)

    def decode(self, data):
        events = super().decode(data)
        if self.fault == "raises":
            json.loads(data)["type"].upper()
        if self.fault == "half samples" and events and isinstance(events[0], OutputAudio):
            return [OutputAudio(response_id="r", item_id="a", pcm=b"abc")]
        if self.fault == "strings":
            return [str(event) for event in events]
        return events

    def statistics(self):
        counted = super().statistics()
        if self.fault == "uncounted":
            return WireStatistics(decoded=counted.decoded)
        return WireStatistics() if self.fault == "no count" else counted


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("objects", "encoded as dict"),
        ("half samples", "half a sample"),
        ("strings", "no model event"),
        ("uncounted", "not counted"),
        ("no count", "counted"),
    ],
)
def test_a_wire_format_that_does_not_conform_is_told_why(fault, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_wire_format(lambda: Broken(fault), MESSAGES, damaged=50)


def test_a_wire_format_that_raises_fails_with_what_it_raised():
    with pytest.raises((ValueError, KeyError, AttributeError, TypeError)):
        check_wire_format(lambda: Broken("raises"), MESSAGES, damaged=200)


class Faulty(MemoryEnd):
    """A transport with one fault."""

    fault = ""

    async def send(self, data):
        if self.fault == "cuts" and isinstance(data, str):
            data = data[:500] if len(data) == 1000 else data
        if self.fault == "kind" and isinstance(data, bytes):
            data = data.decode("latin-1")
        if self.fault == "sends all":
            self.other.put(data)
            return
        if self.fault == "other error":
            try:
                await super().send(data)
            except ModelError:
                raise ModelError("no", code="no") from None
            return
        await super().send(data)

    async def receive(self):
        try:
            return await super().receive()
        except LinkLost:
            if self.fault == "polite end":
                return ""
            raise


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("cuts", "largest message does not arrive"),
        ("sends all", "over the limit is sent|gives None"),
        ("other error", "gives 'no'"),
        ("polite end", "does not raise LinkLost"),
        ("", None),
    ],
)
async def test_a_transport_that_does_not_conform_is_told_why(fault, complaint):
    @contextlib.asynccontextmanager
    async def pair():
        made = MemoryPair(max_message_bytes=1000)
        made.client.__class__ = Faulty
        made.client.fault = fault
        yield made.client, made.server

    with contextlib.nullcontext() if complaint is None else pytest.raises(AssertionError, match=complaint):
        await check_transport(pair, max_message_bytes=1000)
