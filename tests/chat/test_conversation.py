"""The bundle that a next session continues."""

from __future__ import annotations

import json

import pytest

from realtime.chat.conversation import Conversation, TokenUsage
from realtime.chat.messages import AgentHandoff, ChatMessage, ChatRole
from realtime.errors import ArgumentError


def test_round_trip_through_json_loses_nothing():
    conversation = Conversation(
        messages=[
            ChatMessage(ChatRole.USER, "hi", "m1"),
            ChatMessage(ChatRole.ASSISTANT, "hello", "m2", agent_id="desk"),
        ],
        handoffs=[AgentHandoff("desk", "front", "a table", "h1")],
        usage=TokenUsage(input_tokens=5, total_tokens=9),
        revision=7,
    )
    assert Conversation.from_dict(json.loads(json.dumps(conversation.to_dict()))) == conversation


def test_conversations_have_ids_of_their_own_and_keep_them():
    one = Conversation()
    assert one.id != Conversation().id
    assert Conversation.from_dict(one.to_dict()).id == one.id


def test_what_a_context_wrote_will_do():
    context = Conversation(messages=[ChatMessage(ChatRole.USER, "hi", "m1")]).to_context()
    assert Conversation.from_dict(context.to_dict()).messages == tuple(context.messages())


@pytest.mark.parametrize(
    ("data", "argument"),
    [
        ([], "data"),
        ({"items": [], "usage": 3}, "usage"),
        ({"items": [], "usage": {"total_tokens": -1}}, "total_tokens"),
        ({"items": [], "revision": True}, "revision"),
    ],
)
def test_what_is_none_is_refused_by_name(data, argument):
    with pytest.raises(ArgumentError, match=argument):
        Conversation.from_dict(data)


def test_usage_adds_field_by_field():
    usage = TokenUsage(input_tokens=1, output_tokens=2, total_tokens=3, cached_tokens=4)
    assert usage + usage == TokenUsage(input_tokens=2, output_tokens=4, total_tokens=6, cached_tokens=8)
