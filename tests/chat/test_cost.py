"""What operations cost does not grow with the context (V6), measured in Python calls, which no machine's speed changes."""

import sys

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage, ImageContent
from realtime.chat.window import ContextWindow

PICTURE = ImageContent.from_bytes(b"\xff\xd8 a picture", "image/jpeg", "low")
SIZES = (100, 5000)


def calls_of(act):
    """How many functions, Python's and built in, an act calls."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        if event in {"call", "c_call"}:
            count += 1

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


def alternating(size):
    return ChatContext(ChatMessage("assistant" if n % 2 else "user", "one two", f"m{n}") for n in range(size))


def one_long_turn(size):
    return ChatContext(ChatMessage("user", "one two", f"m{n}") for n in range(size))


def one_long_turn_with_frames(size):
    return ChatContext(
        ChatMessage("user", "", f"m{n}", images=[PICTURE], source="camera")
        if n % 2
        else ChatMessage("user", "one", f"m{n}")
        for n in range(size)
    )


def rounds_of_one_id(size):
    context = ChatContext()
    for n in range(size // 4):
        context.add_message("user", "one", f"u{n}")
        context.add_function_call("f", "{}", "same", f"c{n}")
        context.add_function_output("f", "ok", "same", message_id=f"r{n}")
        context.add_message("assistant", "two", f"a{n}")
    return context


def open_round_at_the_front(size):
    context = ChatContext()
    context.add_function_call("f", "{}", "open", "c")
    return context.merge(alternating(size))


KINDS = [alternating, one_long_turn, one_long_turn_with_frames, rounds_of_one_id, open_round_at_the_front]


def append(context, window):
    context.append(ChatMessage("user", "one more", "new"))


def append_and_count(context, window):
    append(context, window)
    assert window.count(context) > 0
    assert context.estimated_tokens() > 0
    assert context.turn_count() + context.spoken_turn_count() + len(context) > 0


def append_and_select(context, window):
    append(context, window)
    window.select(context)


def append_and_apply(context, window):
    append(context, window)
    window.apply(context)


def update_and_remove(context, window):
    context.append(ChatMessage("user", "one more", "new"))
    context.update("new", content="other")
    context.remove("new")


@pytest.mark.parametrize("act", [append, append_and_count, append_and_select, append_and_apply, update_and_remove])
@pytest.mark.parametrize("kind", KINDS)
def test_one_more_message_costs_the_same_at_any_length(kind, act):
    costs = []
    for size in SIZES:
        context = kind(size)
        window = ContextWindow(max_context_items=len(context) // 2, keep_recent_turns=3)
        window.apply(context)  # at its limit, as after a long call
        window = ContextWindow(window.count(context), len(context), keep_recent_turns=3)
        context.estimated_tokens()
        costs.append(calls_of(lambda context=context, window=window: act(context, window)))
    assert costs[1] <= costs[0] * 1.5 + 10, costs


@pytest.mark.parametrize("kind", [alternating, rounds_of_one_id])
def test_a_trim_costs_what_it_removes(kind):
    costs = []
    for size in SIZES:
        context = kind(size)
        window = ContextWindow(max_context_items=size - 40, keep_recent_turns=3)
        costs.append(calls_of(lambda context=context, window=window: window.apply(context)))
        assert len(context) == size - 40
    assert costs[1] <= costs[0] * 1.5 + 10, costs


def test_frames_put_before_the_last_words_cost_the_same_however_many_there_are():
    costs = []
    for size in SIZES:
        context = ChatContext([ChatMessage("user", "look")])
        lease = context.lease("session.send")
        (place,) = lease.entries()
        lease.append(ChatMessage("assistant", "I see"))
        frame = ChatMessage("user", "", images=[PICTURE], source="camera")
        for _ in range(size):
            place = lease.insert_after(place, frame)
        costs.append(calls_of(lambda lease=lease, place=place, frame=frame: lease.insert_after(place, frame)))
    assert costs[1] <= costs[0] * 1.5 + 10, costs


def test_nothing_to_digest_costs_nothing():
    costs = []
    for size in SIZES:
        context = ChatContext(ChatMessage("user", "", f"m{n}", images=[PICTURE], source="camera") for n in range(size))
        context.append(ChatMessage("user", "look"))
        window = ContextWindow(max_context_items=size - 1, keep_recent_turns=1)
        costs.append(calls_of(lambda context=context, window=window: window.digest(context)))
        assert window.digest(context) == ()
    assert costs[1] <= costs[0] * 1.5 + 10, costs


def test_a_digest_costs_what_it_digests():
    costs = []
    for size in SIZES:
        context = open_round_at_the_front(size)
        context.add_function_call("f", "{}", "also open", "d")
        context.merge([ChatMessage("user", "new", f"n{n}") for n in range(size)])
        digested = ChatMessage("user", "digest", "digest", summary=True)
        lease = context.lease("session.send")
        lease.replace_run(list(lease.entries())[1 : size + 1 - 40], digested)
        window = ContextWindow(max_context_items=len(context) - 1, keep_recent_turns=1)
        costs.append(calls_of(lambda context=context, window=window: window.digest(context)))
        assert len(window.digest(context)) == 41
    assert costs[1] <= costs[0] * 1.5 + 10, costs
