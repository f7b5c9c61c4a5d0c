"""What of a context may stay (W1–W3, W6; B01, B14, B16). `test_context_model` checks the same beside a recount."""

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage, FunctionCall, ImageContent
from realtime.chat.tokens import ScriptCounter, WordCounter
from realtime.chat.window import ContextWindow
from realtime.errors import ArgumentError, UserError

SMALL = ImageContent.from_bytes(b"\xff\xd8 a picture", "image/jpeg", "low")


def frame(name, source="camera"):
    return ChatMessage("user", "", name, images=[SMALL], source=source)


def user(text):
    return ChatMessage("user", text, text)


def assistant(text):
    return ChatMessage("assistant", text, text)


def call(*ids):
    return ChatMessage("assistant", "", "+".join(ids), tool_calls=[FunctionCall("f", "{}", one) for one in ids])


def result(one):
    return ChatMessage("tool", "ok", f"r:{one}", tool_call_id=one)


def ids(context):
    return [message.message_id for message in context.messages()]


def kept(window, *messages):
    return ids(window.apply(ChatContext(messages)))


# -- limits -------------------------------------------------------------------------------------------------------------


def test_fields_and_defaults_are_the_seeds_and_ours():
    """W1."""
    window = ContextWindow()
    assert (window.max_tokens, window.max_context_items, window.keep_recent_turns) == (None, None, 3)
    assert (window.max_tool_calls_per_turn, window.summary_llm, window.keep_recent_frames) == (10, None, 2)
    assert window == ContextWindow(None, None, 3, 10, None)
    assert ContextWindow(counter="estimate").counter == ScriptCounter()


@pytest.mark.parametrize(
    "wrong",
    [{"max_tokens": -1}, {"max_context_items": -1}, {"max_tokens": True}, {"max_tokens": 1.5}, {"keep_recent_turns": -1},
     {"keep_recent_turns": None}, {"max_tool_calls_per_turn": -1}, {"keep_recent_frames": -1}, {"summary_llm": object()},
     {"counter": "letters"}, {"counter": 3}, {"max_tokens": float("nan")}],
)  # fmt: skip
def test_limits_that_cannot_be_are_refused_by_name(wrong):
    with pytest.raises(ArgumentError, match=next(iter(wrong))) as caught:
        ContextWindow(**wrong)
    assert isinstance(caught.value, ValueError)


def test_apply_trims_in_place_and_returns_its_argument():
    """W2."""
    context = ChatContext([user("a b"), assistant("c d"), user("e f")])
    window = ContextWindow(max_context_items=2, keep_recent_turns=1)
    original = context.copy()
    assert window.apply(context) is context
    assert ids(context) == ["c d", "e f"]
    window.apply(original.copy())
    assert len(original) == 3
    assert original.estimated_tokens() == 12


def test_under_budget_nothing_changes_and_without_limits_nothing_ever_does():
    """W2."""
    messages = [user("a b"), assistant("c d"), user("e f")]
    assert kept(ContextWindow(max_tokens=12, max_context_items=3, keep_recent_turns=0), *messages) == [
        "a b",
        "c d",
        "e f",
    ]
    assert kept(ContextWindow(keep_recent_turns=0), *messages) == ["a b", "c d", "e f"]


def test_a_context_that_a_session_runs_on_is_only_looked_at():
    context = ChatContext([user("a"), assistant("b")])
    context.lease("session.send")
    window = ContextWindow(max_context_items=0, keep_recent_turns=0)
    assert [entry.message.content for entry in window.select(context)] == ["a", "b"]
    with pytest.raises(UserError, match=r"session\.send"):
        window.apply(context)
    assert len(context) == 2


# -- what stays ---------------------------------------------------------------------------------------------------------


def test_leading_instructions_stay_whatever_the_budget():
    """W2, B14."""
    instructions = [ChatMessage("system", "S", "S"), ChatMessage("developer", "D", "D")]
    window = ContextWindow(max_tokens=0, keep_recent_turns=0)
    assert kept(window, *instructions, user("a"), assistant("b")) == ["S", "D"]
    assert kept(ContextWindow(max_context_items=3, keep_recent_turns=0), *instructions, user("a"), user("b")) == [
        "S", "D", "b",
    ]  # fmt: skip


def test_an_instruction_in_mid_conversation_goes_with_its_time():
    """B15: only a leading one is the prompt; laid bare by a trim, it does not begin to lead."""
    context = ChatContext(
        [ChatMessage("system", "S", "S"), user("a"), assistant("b"), ChatMessage("system", "idle", "I")]
    )
    window = ContextWindow(max_context_items=3, keep_recent_turns=1)
    context.append(user("c"))
    assert ids(window.apply(context)) == ["S", "I", "c"]
    context.append(assistant("d"))
    assert ids(window.apply(context)) == ["S", "c", "d"]


def test_units_go_whole():
    """W2, B01."""
    messages = [user("u1"), call("c1", "c2"), result("c1"), result("c2"), assistant("a1"), user("u2")]
    assert kept(ContextWindow(max_context_items=5, keep_recent_turns=1), *messages) == ids(ChatContext(messages))[1:]
    assert kept(ContextWindow(max_context_items=4, keep_recent_turns=1), *messages) == ["a1", "u2"]


def test_words_between_a_call_and_its_result_are_a_unit_of_their_own():
    messages = [call("c1"), user("hm"), result("c1"), assistant("a1"), user("u2")]
    assert kept(ContextWindow(max_context_items=3, keep_recent_turns=1), *messages) == ["hm", "a1", "u2"]


def test_recent_turns_stay_verbatim_even_over_budget():
    """W2, W3: a turn is one party's contribution."""
    window = ContextWindow(max_tokens=0, keep_recent_turns=2)
    messages = [user("u1"), assistant("a1"), user("u2"), user("u2b"), call("c"), result("c"), assistant("a2")]
    assert kept(window, *messages) == ["u2", "u2b", "c", "r:c", "a2"]
    assert kept(ContextWindow(max_tokens=0, keep_recent_turns=9), *messages) == ids(ChatContext(messages))


def test_a_round_with_a_recent_result_stays():
    window = ContextWindow(max_tokens=0, keep_recent_turns=2)
    assert kept(window, user("u1"), call("c"), user("hm"), result("c")) == ["c", "hm", "r:c"]


def test_an_open_call_is_never_removed():
    """W2."""
    window = ContextWindow(max_tokens=0, keep_recent_turns=1)
    messages = [user("u1"), call("c1", "c2"), result("c1"), user("u2"), assistant("a2"), user("u3")]
    context = ChatContext(messages)
    assert ids(window.apply(context)) == ["c1+c2", "r:c1", "u3"]
    context.append(result("c2"))
    assert ids(window.apply(context)) == ["c1+c2", "r:c1", "r:c2"]


def test_frames_go_before_words_but_the_newest_of_each_source():
    """W2: oldest first, in the recent turns too."""
    messages = [
        frame("f1"), user("u1"), assistant("a1"), frame("f2"), frame("f3"), frame("s1", "screen"), frame("f4"), user("u2"),
    ]  # fmt: skip
    window = ContextWindow(max_context_items=6, keep_recent_turns=1, keep_recent_frames=2)
    assert kept(window, *messages) == ["u1", "a1", "f3", "s1", "f4", "u2"]
    tight = ContextWindow(max_context_items=0, keep_recent_turns=1, keep_recent_frames=1)
    assert kept(tight, *messages) == ["s1", "f4", "u2"]
    none = ContextWindow(max_context_items=0, keep_recent_turns=1, keep_recent_frames=0)
    assert kept(none, *messages) == ["u2"]


def test_frames_belong_to_the_user_turn_that_they_stand_beside_and_are_none_themselves():
    """W3, H8: an idle camera does not push words out of the recent turns."""
    window = ContextWindow(max_tokens=0, keep_recent_turns=2, keep_recent_frames=1)
    messages = [user("u0"), assistant("a0"), frame("f0"), user("u1"), assistant("a1"), frame("f1"), frame("f2")]
    assert kept(window, *messages) == ["u1", "a1", "f2"]


def test_frames_of_one_long_turn_go_although_the_turn_is_recent():
    frames = [frame(f"f{number}") for number in range(50)]
    window = ContextWindow(max_context_items=10, keep_recent_turns=3)
    assert kept(window, user("look"), *frames) == ["look", *(f"f{number}" for number in range(41, 50))]
    assert kept(ContextWindow(max_context_items=1), user("look"), *frames) == ["look", "f48", "f49"]


def test_a_summary_is_nobodys_turn_and_goes_like_old_words():
    window = ContextWindow(max_tokens=0, keep_recent_turns=1)
    digest = ChatMessage("user", "digest", "digest", summary=True)
    assert kept(window, digest, user("u1")) == ["digest", "u1"]  # nothing is older than the recent turns
    assert kept(window, user("u0"), assistant("a0"), digest, user("u1")) == ["u1"]


def test_both_limits_hold():
    messages = [user("one two three"), assistant("b"), user("c"), assistant("d")]
    assert kept(ContextWindow(max_tokens=6, max_context_items=9, keep_recent_turns=1), *messages) == ["b", "c", "d"]
    assert kept(ContextWindow(max_tokens=99, max_context_items=2, keep_recent_turns=1), *messages) == ["c", "d"]


# -- counting -----------------------------------------------------------------------------------------------------------


def test_tokens_are_the_words_rule_and_a_price_for_each_picture():
    """W1."""
    window = ContextWindow()
    assert window.count_message(user("one two")) == 4
    assert window.count_message(call("c1")) == 4
    assert window.count_message(frame("f")) == 85
    context = ChatContext([user("one two"), call("c1"), result("c1"), frame("f")])
    assert window.count(context) == 4 + 4 + 2 + 85
    context.append(user("x"))
    assert window.count(context) == 97
    context.remove("f")
    assert window.count(context) == 12


@pytest.mark.parametrize("place", ["user", "tool", "assistant", "address"])
def test_a_picture_costs_the_same_wherever_it_sits_however_long_its_base64(place):
    """B16: 400 kB of picture and a limit of 2,000 tokens."""
    big = ImageContent.from_bytes(b"\xff\xd8" + bytes(400_000), "image/jpeg")
    picture = ImageContent.from_url("https://host/a.jpg") if place == "address" else big
    role = "user" if place == "address" else place
    message = ChatMessage(role, "look at this", "m", tool_call_id="c" if place == "tool" else "", images=[picture])
    window = ContextWindow(max_tokens=2000)
    assert window.count_message(message) == 6 + 765
    assert kept(window, call("c"), message, user("well?")) == ["c", "m", "well?"]


def test_a_function_of_text_can_count():
    window = ContextWindow(max_tokens=4, keep_recent_turns=0, counter=len)
    assert window.count_message(user("abc")) == 3
    assert kept(window, user("abc"), user("defg")) == ["defg"]
    assert window.count_message(frame("f")) == WordCounter().count_image(SMALL)


def test_a_counter_that_fails_once_leaves_no_hole_in_the_total():
    texts = []

    def count(text):
        texts.append(text)
        if len(texts) == 2:
            raise RuntimeError("once")
        return len(text)

    context = ChatContext([ChatMessage("user", "aaaa"), ChatMessage("user", "bbb"), ChatMessage("user", "cc")])
    window = ContextWindow(counter=count)
    with pytest.raises(RuntimeError, match="once"):
        window.count(context)
    assert window.count(context) == 9


def test_the_providers_count_scales_ours():
    """W6."""
    context = ChatContext([user("a"), assistant("b"), user("c"), assistant("d")])
    window = ContextWindow(max_tokens=8, keep_recent_turns=1)
    assert window.select(context) == ()
    assert [entry.message.content for entry in window.select(context, scale=2.0)] == ["a", "b"]
    assert window.allows(context)
    assert not window.allows(context, scale=1.01)
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ArgumentError, match="scale"):
            window.select(context, scale=wrong)
        with pytest.raises(ArgumentError, match="scale"):
            window.digest(context, scale=wrong)


def test_totals_of_many_counters_are_each_right():
    """V6: at most a few totals are kept for one context."""
    context = ChatContext([user("one two three")])
    counters = [lambda text, factor=factor: factor * len(text) for factor in range(1, 8)]
    windows = [ContextWindow(counter=counter) for counter in counters]
    for _ in range(2):
        assert [window.count(context) for window in windows] == [13 * factor for factor in range(1, 8)]
        assert context.estimated_tokens() == 6
    context.append(user("x"))
    assert [window.count(context) for window in windows] == [14 * factor for factor in range(1, 8)]
    assert context.estimated_tokens() == 8
