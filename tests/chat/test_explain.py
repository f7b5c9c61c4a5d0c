"""What a window makes of each message, and why (the inspector's view)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.chat import explain
from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage, FunctionCall, ImageContent
from realtime.chat.tokens import WordCounter
from realtime.chat.window import ContextWindow

SMALL = ImageContent.from_bytes(b"\xff\xd8 a picture", "image/jpeg", "low")


def frame(name, source="camera"):
    return ChatMessage("user", "", name, images=[SMALL], source=source)


def said(role, text):
    return ChatMessage(role, text, text)


def call(*ids):
    return ChatMessage("assistant", "", "+".join(ids), tool_calls=[FunctionCall("f", "{}", one) for one in ids])


def result(one):
    return ChatMessage("tool", "ok", f"r:{one}", tool_call_id=one)


def test_every_reason_is_told():
    context = ChatContext(
        [said("system", "S"), frame("f1"), said("user", "u1"), call("open"), said("user", "u2"), call("c1"), result("c1"),
         said("assistant", "a2"), said("user", "u3"), call("c2"), frame("f2"), said("user", "u4"), result("c2"), frame("f3"),
         frame("f4")]
    )  # fmt: skip
    before = context.messages()
    window = ContextWindow(max_context_items=12, keep_recent_turns=2)
    explained = context.explain(window)
    assert context.messages() == before
    assert {one.message.message_id: (one.reason, one.kept) for one in explained} == {
        "S": ("instruction", True),
        "f1": ("old_frame", False),
        "u1": ("old_turn", False),
        "open": ("open_call", True),
        "u2": ("newest_that_fit", True),
        "c1": ("newest_that_fit", True),
        "r:c1": ("newest_that_fit", True),
        "a2": ("newest_that_fit", True),
        "u3": ("newest_that_fit", True),
        "c2": ("part_of_kept_unit", True),
        "f2": ("old_frame", False),
        "u4": ("recent_turn", True),
        "r:c2": ("recent_turn", True),
        "f3": ("recent_frame", True),
        "f4": ("recent_frame", True),
    }
    assert [one.round_size for one in explained] == [1, 1, 1, 1, 1, 2, 2, 1, 1, 2, 1, 1, 2, 1, 1]
    assert [one.turn for one in explained] == [0, 0, 1, 2, 3, 4, 4, 4, 5, 6, 6, 7, 8, 8, 8]
    assert explained[1].tokens == 85


def test_under_budget_all_is_within_budget():
    context = ChatContext([said("system", "S"), said("user", "u1")])
    assert [(one.kept, one.reason) for one in context.explain(ContextWindow())] == [(True, "within_budget")] * 2


def test_over_budget_with_nothing_to_remove_says_what_protects():
    context = ChatContext([said("system", "S"), said("user", "u1")])
    assert [one.reason for one in context.explain(ContextWindow(max_tokens=0))] == ["instruction", "recent_turn"]


def test_another_counter_can_be_asked():
    context = ChatContext([said("user", "abc"), said("user", "de")])
    window = ContextWindow(max_tokens=4, keep_recent_turns=0)
    assert [one.tokens for one in context.explain(window)] == [2, 2]
    assert [(one.tokens, one.kept) for one in context.explain(window, len)] == [(3, False), (2, True)]
    assert window.counter == WordCounter()


def test_a_long_round_is_looked_at_once(monkeypatch):
    """O(n): a round of a thousand calls is one unit, whoever of it is asked."""
    context = ChatContext([*(call(str(n)) for n in range(500)), *(result(str(n)) for n in range(500))])
    asked = []
    real = explain.unit_of
    monkeypatch.setattr(explain, "unit_of", lambda entry: asked.append(entry) or real(entry))
    explained = context.explain(ContextWindow())
    assert len(asked) == 1
    assert {one.round_size for one in explained} == {1000}


@given(
    st.lists(st.sampled_from([said("system", "S"), said("user", "u"), said("assistant", "a"), call("c"), result("c"), frame("f")])),
    st.integers(0, 8),
    st.integers(0, 3),
)  # fmt: skip
@settings(deadline=None)
def test_explanations_agree_with_what_is_applied(messages, items, turns):
    context = ChatContext([ChatMessage(one.role, one.content, "", one.tool_calls, one.tool_call_id, one.images, source=one.source)
                           for one in messages])  # fmt: skip
    window = ContextWindow(max_context_items=items, keep_recent_turns=turns)
    explained = context.explain(window)
    stays = [one.message for one in explained if one.kept]
    assert [one.message for one in explained] == context.messages()
    assert stays == window.apply(context).messages()
    assert all(one.reason in {"old_frame", "old_turn"} for one in explained if not one.kept)
