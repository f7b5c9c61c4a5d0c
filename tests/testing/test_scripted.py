"""A provider by script: strict, and clear about what it missed."""

import asyncio
import json

import pytest

from realtime.chat.messages import ChatMessage, ChatRole
from realtime.core.commands import AppendAudio, ConfigureSession, CreateItem, CreateResponse
from realtime.core.model_events import ModelEvent, OutputTextDone, ResponseEnded, SessionReady
from realtime.errors import LinkLost
from realtime.models.base import RealtimeModel
from realtime.testing import Close, Drop, Expect, ManualClock, Reply, ScriptedModel, openai_script
from realtime.testing.openai_script import response_done, session_created, session_updated, spoken_reply

UPDATE = {"type": "session.update", "session": {"instructions": "Be brief.", "tools": []}}


async def opened(script, **settings):
    model = ScriptedModel(script, **settings)
    return model, await model.open()


def say(**message):
    return json.dumps(message)


async def turns(count=20):
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_whole_turn_is_played_and_complete():
    pcm = bytes(range(256)) * 75
    model = ScriptedModel(
        [
            Reply(session_created("sess_9")),
            Expect("session.update", {"session": {"instructions": "Be brief."}}),
            Reply(session_updated()),
            Expect("conversation.item.create", check=lambda message: message["item"]["content"][0]["text"] == "Hello?"),
            Expect("response.create"),
            Reply(lambda said: spoken_reply("r1", "a1", "Hello there.", pcm, previous_item_id=said[-2]["item"]["id"])),
        ]
    )
    assert isinstance(model, RealtimeModel)
    transport, wire = await model.open(), model.make_wire()
    events: list[ModelEvent] = []

    async def until(kind):
        while not events or not isinstance(events[-1], kind):
            events.extend(wire.decode(await transport.receive()))

    async def tell(command):
        for message in wire.encode(command):
            await transport.send(message)

    await until(SessionReady)
    await tell(ConfigureSession(command_id="k1", instructions="Be brief."))
    await tell(AppendAudio(command_id="k2", pcm=bytes(4800)))
    message = ChatMessage(ChatRole.USER, "Hello?", "m1")
    await tell(CreateItem(command_id="k3", message=message, item_ids=("m1",)))
    await tell(CreateResponse(command_id="k4"))
    await until(ResponseEnded)
    assert events[0].session_id == "sess_9"
    assert next(event.text for event in events if isinstance(event, OutputTextDone)) == "Hello there."
    assert b"".join(event.pcm for event in events if hasattr(event, "pcm")) == pcm
    await model.finished()
    model.assert_complete()
    assert model.is_complete
    assert [message["type"] for message in model.received] == [
        "session.update",
        "conversation.item.create",
        "response.create",
    ]
    assert model.audio == bytes(4800)
    await transport.aclose()
    await model.aclose()


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"type": "response.create"}, "expected session.update.*response.create.*another type"),
        ({"type": "session.update"}, "session is None"),
        ({"type": "session.update", "session": {"instructions": "Talk."}}, "instructions is 'Talk.', not 'Be brief.'"),
        ({"type": "session.update", "session": {**UPDATE["session"], "speed": 2}}, "check said no"),
        ({"type": "session.update", "session": {**UPDATE["session"], "speed": None}}, "TypeError"),
    ],
)
async def test_another_message_than_expected_ends_the_connection_and_is_told(said, complaint):
    step = Expect(
        "session.update", {"session": {"instructions": "Be brief."}}, lambda m: m["session"].get("speed", 1) < 2
    )
    model, transport = await opened([step])
    await transport.send(say(**said))
    with pytest.raises(LinkLost) as caught:
        await transport.receive()
    assert caught.value.code == 1008
    with pytest.raises(AssertionError, match=complaint):
        model.assert_complete()
    with pytest.raises(AssertionError, match=complaint):
        await model.finished()
    assert not model.is_complete


@pytest.mark.parametrize("garbage", ["{", "[]", b"\xff"])
async def test_what_is_no_json_of_the_client_is_told(garbage):
    model, transport = await opened([Expect("session.update")])
    await transport.send(garbage)
    with pytest.raises(LinkLost):
        await transport.receive()
    with pytest.raises(AssertionError, match="no JSON object"):
        model.assert_complete()


async def test_what_comes_after_the_end_of_the_script_is_told():
    model, transport = await opened([Expect("response.create")])
    await transport.send(say(type="response.create"))
    await transport.send(say(type="input_audio_buffer.append", audio="AAAA"))
    await transport.send(say(type="response.create"))
    with pytest.raises(LinkLost):
        await transport.receive()
    with pytest.raises(AssertionError, match="after the script's end"):
        model.assert_complete()
    assert bytes(model.audio) == bytes(3)


async def test_steps_that_nobody_took_are_told():
    model, transport = await opened([Expect("session.update"), Expect("response.create")])
    await transport.send(say(**UPDATE))
    await turns()
    with pytest.raises(AssertionError, match=r"1 steps left.*response.create.*last said: session.update"):
        model.assert_complete()
    await model.aclose()


async def test_an_optional_step_may_be_missing_also_before_a_reply_and_at_the_end():
    script = [
        Expect("response.cancel", optional=True),
        Expect("conversation.item.truncate", optional=True),
        Reply(['{"type":"note"}']),
        Expect("response.create"),
        Expect("response.cancel", optional=True),
    ]
    model, transport = await opened(script)
    await transport.send(say(type="conversation.item.truncate"))
    assert await transport.receive() == '{"type":"note"}'
    await transport.send(say(type="response.create"))
    await turns()
    model.assert_complete()
    await transport.aclose()

    model, transport = await opened(script)
    await transport.send(say(type="response.create"))
    assert await transport.receive() == '{"type":"note"}'
    await turns()
    model.assert_complete()
    await transport.aclose()


async def test_audio_that_is_expected_is_compared():
    model, transport = await opened([Expect("input_audio_buffer.append", {"audio": "AAAA"}), Expect("response.create")])
    await transport.send(say(type="input_audio_buffer.append", audio="AAAA"))
    await transport.send(say(type="input_audio_buffer.append", audio="BBBB"))
    await transport.send(say(type="response.create"))
    await model.finished()
    assert len(model.audio) == 6
    await model.aclose()


async def test_after_a_close_or_a_drop_the_script_goes_on_with_the_next_connection():
    model = ScriptedModel(
        [
            Reply(["one"]),
            Close(1001, "going away"),
            Reply(["two"]),
            Drop(),
            Reply(["three"]),
        ]
    )
    transport = await model.open()
    assert await transport.receive() == "one"
    with pytest.raises(LinkLost) as caught:
        await transport.receive()
    assert (caught.value.code, caught.value.reason) == (1001, "going away")
    transport = await model.open()
    assert await transport.receive() == "two"
    with pytest.raises(LinkLost) as caught:
        await transport.receive()
    assert caught.value.code is None
    transport = await model.open()
    assert await transport.receive() == "three"
    assert model.connections == 3
    model.assert_complete()
    await transport.aclose()


async def test_an_attempt_may_be_refused():
    model = ScriptedModel([])
    model.refuse.append(LinkLost("no route"))
    with pytest.raises(LinkLost, match="no route"):
        await model.open()
    transport = await model.open()
    assert model.connections == 1
    await transport.aclose()


async def test_its_line_has_faults_of_the_tests_own():
    clock = ManualClock()
    model, transport = await opened([Expect("go"), Reply(["late"])], clock=clock)
    model.pair.delay(1.0)
    waiting = asyncio.create_task(transport.receive())
    await transport.send(say(type="go"))
    await clock.run(1.9)
    assert not waiting.done()
    await clock.run(0.2)
    assert await waiting == "late"
    await model.aclose()
    await model.aclose()


def test_every_builder_makes_what_openai_publishes():
    from openai.types.realtime import RealtimeServerEvent
    from pydantic import TypeAdapter

    published = TypeAdapter(RealtimeServerEvent)
    user = {"id": "u1", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    events = [
        *session_updated(),
        *openai_script.item_created(user, None),
        *openai_script.user_speech("u1"),
        *openai_script.response_created("r1", metadata={"wish": "w"}),
        *response_done("r1", status="cancelled", reason="turn_detected"),
        *spoken_reply("r1", "a1", "Hello there.", bytes(30_000)),
        *openai_script.written_reply("r1", "a1", "Hello."),
        *openai_script.tool_call("r1", "f1", "c1", "look", '{"a":1}'),
        *openai_script.error("invalid_value", cause="k1", param="item.id"),
    ]
    for event in events:
        read = published.validate_python(event, strict=False)
        assert read.type == event["type"]
    assert json.loads(json.dumps(session_created(expires_at=5)))[0]["session"]["expires_at"] == 5
    assert openai_script.user_transcript("u1", "Hi")[0]["transcript"] == "Hi"
