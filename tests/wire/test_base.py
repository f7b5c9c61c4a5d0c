"""What every wire format shares."""

from realtime.wire.base import UnknownCounter, WireFormat
from realtime.wire.openai import OpenAIWire


def test_openais_format_is_one():
    assert isinstance(OpenAIWire(), WireFormat)


def test_unknown_types_are_counted_by_name_up_to_a_bound_and_together_beyond():
    counter = UnknownCounter(max_types=2)
    for name in ["a", "b", "a", "c", "d", "b"]:
        counter.add(name)
    assert counter.counts() == {"a": 2, "b": 2, "": 2}


def test_counts_are_a_copy():
    counter = UnknownCounter()
    counter.add("a")
    counter.counts()["a"] = 99
    assert counter.counts() == {"a": 1}
