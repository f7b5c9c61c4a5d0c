"""`realtime.web.history`: what a page that comes back is told of the time without it."""

from __future__ import annotations

import json
from types import SimpleNamespace

from realtime import ChatMessage
from realtime.chat.messages import ChatRole, FunctionCall, ImageContent
from realtime.core.events import ApprovalRequested, ToolFinished
from realtime.web.events import message_to_dict
from realtime.web.history import History


def said(number: int, text: str = "Hello.") -> ChatMessage:
    return ChatMessage(ChatRole.USER, text, f"m{number}")


def history_of(*messages: ChatMessage, pending: tuple[ChatMessage, ...] = ()) -> History:
    return History(SimpleNamespace(all_messages=lambda: list(messages), pending=pending))


def finished(call_id: str) -> ToolFinished:
    return ToolFinished(
        message_id=f"result of {call_id}", call_id=call_id, name="book", output="", is_error=False, seconds=0.0
    )


async def test_a_page_that_comes_back_is_told_what_happened_without_it(serve, call):
    served = await serve()
    first = await call(served)
    assert first.welcome["replying"] is False
    await first.websocket.close()
    (running,) = served.bot.calls.values()
    await running.session.send("Said meanwhile.")
    await running.session.wait_for_reply()
    second = await call(served, greet=False)
    await second.greet(call=first.welcome["call"], secret=first.welcome["secret"])
    told = await second.receive("history")
    assert [each["text"] for each in told["messages"]] == ["Said meanwhile.", "Yes."]
    assert told["approvals"] == []
    assert [each["type"] for each in second.messages[:2]] == ["welcome", "history"]
    assert not [each for each in first.messages if each["type"] == "history"]


def test_what_is_still_being_said_is_marked_and_frames_are_left_out():
    frame = ChatMessage(
        ChatRole.USER, "", "f", images=(ImageContent(url="https://example.com/frame.jpg"),), source="camera"
    )
    assert frame.is_frame
    told = history_of(said(1), frame, pending=(said(1), said(2))).to_dict()["messages"]
    assert [(each["id"], each.get("pending")) for each in told] == [("m1", None), ("m2", True)]


def test_calls_and_results_are_told_in_their_place():
    call = ChatMessage(ChatRole.ASSISTANT, "", "m2", (FunctionCall("book", "{}", "c"),))
    result = ChatMessage(ChatRole.TOOL, "Full.", "m3", tool_call_id="c", tool_name="book", is_error=True)
    told = history_of(said(1), call, result).to_dict()["messages"]
    assert [each["id"] for each in told] == ["m1", "m2", "m3"]
    assert told[1]["tool_calls"] == [{"name": "book", "call_id": "c", "arguments": "{}"}]
    assert (told[2]["tool_call_id"], told[2]["tool_name"], told[2]["is_error"]) == ("c", "book", True)


def test_only_the_newest_are_told():
    told = history_of(*(said(number) for number in range(300))).to_dict()["messages"]
    assert [told[0]["id"], told[-1]["id"], len(told)] == ["m100", "m299", 200]
    told = history_of(*(said(number, "x" * 20_000) for number in range(100))).to_dict()["messages"]
    assert len(told) == 19
    assert told[-1]["id"] == "m99"


def test_what_tools_were_called_with_counts_too():
    """Else the message would push the welcome out of the page's queue."""
    calls = tuple(FunctionCall("book", "x" * 3_000, f"c{number}") for number in range(50))
    history = history_of(*(ChatMessage(ChatRole.ASSISTANT, "", f"m{number}", calls) for number in range(300)))
    told = history.to_dict()
    assert [each["id"] for each in told["messages"]] == ["m297", "m298", "m299"]
    assert len(json.dumps(told)) < 410_000


def test_approvals_wait_until_they_are_answered_or_the_tool_has_ended():
    history = history_of()
    for call_id in ("a", "b", "c"):
        history.take(ApprovalRequested(call_id=call_id, name="book", arguments='{"seats": 2}'))
    history.answered("a")
    history.take(finished("b"))
    assert history.to_dict()["approvals"] == [{"call_id": "c", "name": "book", "arguments": '{"seats": 2}'}]


def test_tool_calls_are_told_with_their_arguments():
    message = ChatMessage(ChatRole.ASSISTANT, "", "m", (FunctionCall("book", "x" * 3_000, "c"),))
    assert message_to_dict(message)["tool_calls"] == [{"name": "book", "call_id": "c", "arguments": "x" * 2_000 + "…"}]
