"""Linking places (V6), beside a plain list."""

from hypothesis import given
from hypothesis import strategies as st

from realtime.chat.chain import Chain
from realtime.chat.entry import ContextEntry
from realtime.chat.messages import ChatMessage


def forward(chain, slot):
    entry = chain.first
    while entry is not None:
        yield entry
        entry = getattr(entry, slot)


def backward(chain, slot):
    entry = chain.last
    while entry is not None:
        yield entry
        entry = getattr(entry, slot)


@given(st.data())
def test_a_chain_is_a_list_that_is_read_both_ways_and_leaves_other_slots_alone(data):
    chain, model = Chain("previous_said", "next_said"), []
    for _ in range(data.draw(st.integers(0, 20))):
        if model and data.draw(st.booleans()):
            gone = model.pop(data.draw(st.integers(0, len(model) - 1)))
            chain.unlink(gone)
            assert gone.previous_said is gone.next_said is None
        else:
            place = data.draw(st.integers(0, len(model)))
            entry = ContextEntry(ChatMessage())
            behind = chain.link(entry, model[place - 1] if place else None)
            assert behind is (model[place] if place < len(model) else None)
            model.insert(place, entry)
        assert list(forward(chain, "next_said")) == model
        assert list(backward(chain, "previous_said")) == model[::-1]
    assert all(entry.preceding is entry.following is entry.next_turn is None for entry in model)
