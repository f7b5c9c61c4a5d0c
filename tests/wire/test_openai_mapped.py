"""Servers that give items ids of their own: ours are put in their place, both ways (`supports_own_item_ids=False`)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall
from realtime.core.commands import CreateItem, DeleteItem, TruncateItem
from realtime.core.model_events import InputCommitted, ItemAdded, ItemDeleted, ItemTruncated, ModelFault
from realtime.models.websocket import WebSocketModel
from realtime.testing import check_wire_format, openai_script
from realtime.wire.base import WireFormat
from realtime.wire.openai_mapped import MappedWire


def create(wire: MappedWire, *ids: str, command_id: str = "k", previous: str | None = None, **message: Any) -> Any:
    said = ChatMessage(**{"role": ChatRole.USER, "content": "Hi", **message})
    command = CreateItem(command_id=command_id, message=said, item_ids=ids, previous_item_id=previous)
    return [json.loads(data) for data in wire.encode(command)]


def added(wire: MappedWire, item_id: str, *, previous: str | None = None, **item: Any) -> list[Any]:
    told = {"type": "message", "role": "user", **item, "id": item_id}
    return wire.decode(json.dumps({"type": "conversation.item.added", "previous_item_id": previous, "item": told}))


def test_items_that_are_added_are_those_that_were_created_in_order():
    wire = MappedWire()
    assert isinstance(wire, WireFormat)
    create(wire, "ours-1")
    create(wire, "ours-2", previous="ours-1")
    (first,) = added(wire, "srv-1")
    (second,) = added(wire, "srv-2", previous="srv-1")
    assert isinstance(first, ItemAdded)
    assert (first.item_id, first.previous_item_id) == ("ours-1", None)
    assert (second.item_id, second.previous_item_id) == ("ours-2", "ours-1")


def test_a_message_of_several_items_is_mapped_one_by_one():
    wire = MappedWire()
    result = {"role": ChatRole.TOOL, "content": "7", "tool_call_id": "c1"}
    create(wire, "ours-1", **result)
    call = ChatMessage(ChatRole.ASSISTANT, "", tool_calls=(FunctionCall("look", "{}", "c1"),))
    assert call.tool_calls
    (event,) = added(wire, "srv-9", type="function_call_output", role="", call_id="c1")
    assert (event.item_id, event.kind) == ("ours-1", "function_call_output")


def test_what_is_deleted_truncated_or_put_behind_is_named_as_the_server_names_it():
    wire = MappedWire()
    create(wire, "ours-1")
    added(wire, "srv-1")
    (delete,) = wire.encode(DeleteItem(command_id="k2", item_id="ours-1"))
    assert json.loads(delete)["item_id"] == "srv-1"
    (truncate,) = wire.encode(TruncateItem(command_id="k3", item_id="srv-reply", content_index=0, audio_end_ms=40))
    assert json.loads(truncate)["item_id"] == "srv-reply"
    (behind,) = create(wire, "ours-2", previous="ours-1")
    assert behind["previous_item_id"] == "srv-1"
    assert behind["item"]["id"] == "ours-2"
    (deleted,) = wire.decode(json.dumps({"type": "conversation.item.deleted", "item_id": "srv-1"}))
    assert deleted == ItemDeleted(item_id="ours-1")
    message = {"type": "conversation.item.truncated", "item_id": "srv-1", "audio_end_ms": 40, "content_index": 0}
    assert wire.decode(json.dumps(message)) == [ItemTruncated(item_id="ours-1", audio_end_ms=40)]


def test_what_the_user_speaks_is_none_of_ours():
    wire = MappedWire()
    create(wire, "ours-1")
    for message in openai_script.user_speech("spoken-1")[:2]:
        wire.decode(json.dumps(message))
    (spoken,) = added(wire, "spoken-1")
    assert spoken.item_id == "spoken-1"
    committed = {"type": "input_audio_buffer.committed", "item_id": "spoken-2", "previous_item_id": "srv-1"}
    wire.decode(json.dumps(committed))
    (spoken,) = added(wire, "spoken-2")
    assert spoken.item_id == "spoken-2"
    (ours,) = added(wire, "srv-1")
    assert ours.item_id == "ours-1"
    assert wire.decode(json.dumps(committed)) == [InputCommitted(item_id="spoken-2", previous_item_id="ours-1")]


def test_a_reply_is_none_of_ours():
    wire = MappedWire()
    create(wire, "ours-1")
    (reply,) = added(wire, "srv-reply", role="assistant")
    assert reply.item_id == "srv-reply"


def test_a_server_that_keeps_an_id_after_all_is_believed():
    wire = MappedWire()
    create(wire, "ours-1")
    create(wire, "ours-2")
    assert added(wire, "ours-2")[0].item_id == "ours-2"
    assert added(wire, "srv-1")[0].item_id == "ours-1"


def test_what_is_refused_is_waited_for_no_more():
    wire = MappedWire()
    create(wire, "ours-1", command_id="k1")
    create(wire, "ours-2", command_id="k2")
    (fault,) = wire.decode(json.dumps({"type": "error", "error": {"code": "bad", "message": "no", "event_id": "k1"}}))
    assert isinstance(fault, ModelFault)
    assert added(wire, "srv-1")[0].item_id == "ours-2"


@pytest.mark.parametrize("keeps", [True, False])
def test_the_capability_decides_which_format_a_model_speaks(keeps: bool):
    from dataclasses import replace

    model = WebSocketModel("ws://127.0.0.1:1")
    model.capabilities = replace(model.capabilities, supports_own_item_ids=keeps)
    assert isinstance(model.make_wire(), MappedWire) is not keeps


def test_it_passes_what_every_wire_format_must(recorded):
    check_wire_format(MappedWire, recorded("openai/tool_call_round").texts(), damaged=300)
