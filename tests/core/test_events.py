"""What events tell besides their fields."""

from realtime.chat.messages import ChatMessage, FunctionCall
from realtime.core.events import TurnCompleted, TurnLatency


def completed(*messages):
    return TurnCompleted(reply_id="r1", messages=messages, interrupted=False, usage=None, latency=TurnLatency())


def test_the_text_of_a_reply_is_what_the_model_said_and_not_what_its_tools_gave():
    """A reply's messages hold its tool rounds, too."""
    round_ = (
        ChatMessage("assistant", "One moment.", tool_calls=[FunctionCall("f", "{}", "c")]),
        ChatMessage("tool", "Order 12 is on its way.", tool_call_id="c"),
        ChatMessage("assistant", "It is on its way."),
    )
    assert completed(*round_).text == "One moment. It is on its way."
    assert completed().text == ""
