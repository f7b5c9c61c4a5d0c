"""A context's places, and the lease by which a session changes them (V3, V6)."""

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.messages import AgentHandoff, ChatMessage
from realtime.errors import ArgumentError, UserError


def contents(context):
    return [message.content for message in context.messages()]


CHANGES = {
    "add_message": lambda context: context.add_message("user", "x"),
    "add_attributed_message": lambda context: context.add_attributed_message("user", "x", "a"),
    "add_function_call": lambda context: context.add_function_call("f", "{}"),
    "add_function_output": lambda context: context.add_function_output("f", "x", "c"),
    "add_handoff": lambda context: context.add_handoff("b"),
    "append": lambda context: context.append(ChatMessage("user", "x")),
    "merge": lambda context: context.merge([ChatMessage("user", "x")]),
    "update": lambda context: context.update("m1", content="x"),
    "remove": lambda context: context.remove("m1"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_while_leased_only_the_holder_changes_it(change):
    context = ChatContext([ChatMessage("user", "hi", "m1")])
    lease = context.lease("session.send")
    with pytest.raises(UserError, match=r"session\.send"):
        CHANGES[change](context)
    with pytest.raises(UserError, match="session"):
        context.lease("session.send")
    assert contents(context) == ["hi"]
    assert context.estimated_tokens() == 2
    assert contents(context.copy()) == ["hi"]
    CHANGES[change](context.copy())
    lease.release()
    CHANGES[change](context)


def test_every_public_method_that_changes_is_guarded():
    readers = {
        "copy", "empty", "estimated_tokens", "explain", "from_context_messages", "from_dict", "from_pydantic_ai_messages",
        "get", "handoffs", "last_handoff", "lease", "messages", "new_id", "spoken_turn_count", "store", "to_anthropic_messages",
        "to_context_messages", "to_dict", "to_google_contents", "to_openai_messages", "to_openai_responses",
        "to_pydantic_ai_messages", "truncate", "turn_count", "words",
    }  # fmt: skip
    public = {name for name in dir(ChatContext) if not name.startswith("_")}
    assert public - readers == set(CHANGES)


def test_the_holder_appends_inserts_replaces_and_removes():
    context = ChatContext([ChatMessage("user", "one", "m1")])
    lease = context.lease("session.send")
    (one,) = lease.entries()
    three = lease.append(ChatMessage("user", "three", "m3"))
    lease.insert_after(one, ChatMessage("user", "two", "m2"))
    assert contents(context) == ["one", "two", "three"]
    lease.replace(three, ChatMessage("user", "THREE", "m3"))
    assert three.message.content == "THREE"
    lease.add_handoff(AgentHandoff("b"))
    assert context.last_handoff() == AgentHandoff("b")
    lease.remove([one, one])
    lease.remove([one])  # gone already: passed over
    assert contents(context) == ["two", "THREE"]
    digest = lease.replace_run(list(lease.entries()), ChatMessage("user", "all", "m9", summary=True))
    assert contents(context) == ["all"]
    for wrong in (
        lambda: lease.insert_after(one, ChatMessage()),
        lambda: lease.replace(one, ChatMessage()),
        lambda: lease.replace_run([], ChatMessage()),
        lambda: lease.replace_run([three], ChatMessage()),
    ):
        with pytest.raises(ArgumentError):
            wrong()
    lease.release()
    lease.release()
    with pytest.raises(UserError, match="released"):
        lease.append(ChatMessage())
    assert context.messages() == [digest.message]


def test_a_run_is_replaced_at_its_place_in_whatever_order_it_is_given():
    context = ChatContext(ChatMessage("user", text, text) for text in "abcde")
    lease = context.lease("session.send")
    _, b, c, d, _ = lease.entries()
    lease.remove([c])
    lease.replace_run([d, c, b], ChatMessage("user", "digest", "bd", summary=True))
    assert contents(context) == ["a", "digest", "e"]
    assert [entry.message.content for entry in lease.entries()] == ["a", "digest", "e"]
    assert context.get("b") is context.get("d") is None


def test_entries_are_told_apart_by_identity():
    context = ChatContext([ChatMessage("user", "same"), ChatMessage("user", "same")])
    lease = context.lease("session.send")
    first, second = lease.entries()
    assert first != second
    assert len({first, second}) == 2
    assert "same" not in repr(first)


def test_results_put_behind_one_call_keep_their_order_however_many_they_are():
    context = ChatContext([ChatMessage("user", "go")])
    lease = context.lease("session.send")
    call = lease.append(ChatMessage("assistant", "call"))
    lease.append(ChatMessage("user", "end"))
    for number in range(200):
        lease.insert_after(call, ChatMessage("tool", str(number), tool_call_id=str(number)))
    assert contents(context) == ["go", "call", *map(str, range(199, -1, -1)), "end"]
    orders = [entry.order for entry in lease.entries()]
    assert orders == sorted(set(orders))


def test_ids_that_stand_twice_leave_and_change_in_any_order():
    context = ChatContext([ChatMessage("user", text, "m") for text in ("one", "two", "three")])
    lease = context.lease("session.send")
    one, two, three = lease.entries()
    lease.remove([two])
    lease.replace(one, ChatMessage("user", "ONE", "other"))
    assert (context.get("m"), context.get("other")) == (three.message, one.message)
    lease.remove([three])
    assert context.get("m") is None
