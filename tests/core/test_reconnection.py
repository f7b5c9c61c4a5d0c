"""A lost and a new connection: behaviour.md L1, L2, H4, field cases B35, B36."""

from __future__ import annotations

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.formats.text import INTERRUPTED_NOTE
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.chat.window import ContextWindow
from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.capabilities import ModelCapabilities
from realtime.core.input_audio import InputAudio
from realtime.core.outbox import Outbox
from realtime.core.seeding import check_seed
from realtime.core.settings import Agent, ReconnectPolicy, ToolSpec, TurnDetection
from realtime.errors import LinkLost, UserError
from realtime.pcm import wav_bytes


def items(commands) -> list[str]:
    shown = []
    for command in commands:
        if isinstance(command, do.CreateItem):
            message = command.message
            if message.tool_calls:
                shown.append("call:" + message.tool_calls[0].call_id)
            elif message.tool_call_id:
                shown.append("result:" + message.tool_call_id)
            else:
                shown.append(f"{message.role.value[0]}:{message.content or 'frame'}")
    return shown


def test_first_command_is_the_configuration(make_rig):
    rig = make_rig(
        agent=Agent(instructions="Be kind.", voice="ember"), tools=(ToolSpec(name="weather"),), connected=False
    )
    assert rig.pull() == []
    first = rig.connect()[0]
    assert isinstance(first, do.ConfigureSession)
    assert (first.instructions, first.voice, first.tools[0].name) == ("Be kind.", "ember", "weather")


def test_leading_instructions_of_the_context_join_the_agents(make_rig):
    """F7, seed: system prompts of the history become session instructions."""
    context = ChatContext.empty()
    context.add_message(ChatRole.SYSTEM, "Speak French.")
    context.add_message(ChatRole.USER, "hello")
    rig = make_rig(context=context, agent=Agent(instructions="Be kind."))
    assert rig.sent[0].instructions == "Be kind.\n\nSpeak French."
    assert items(rig.sent) == ["u:hello"]


def test_conversation_is_replayed_in_order_and_nobody_is_greeted(make_rig):
    """L1, B35: call before result, an interrupted reply as heard, no response asked for."""
    rig = make_rig(tools=(ToolSpec(name="weather"),))
    rig.frame(1)
    rig.pull()
    rig.say("u1", "weather?")
    rig.feed(said.ResponseStarted(response_id="r1"))
    rig.call_tool("r1", "f1", "c1", "weather")
    rig.feed(said.ResponseEnded(response_id="r1"))
    rig.answer_tool("c1", "fog")
    rig.pull()
    rig.start_reply("r2", "a2")
    rig.speak("r2", "a2", "one two three four", ms=1_000)
    rig.play("r2", 500)
    rig.begin_speech("u2")
    rig.hear(200)
    rig.end_speech("u2")
    rig.transcribe("u2", "stop")
    rig.feed(said.ResponseEnded(response_id="r2", status="cancelled"))
    rig.reply("r3", "a3", "Stopped.")
    rig.drop()
    rig.wait(2.0)
    replayed = rig.connect()
    assert items(replayed) == [
        "u:frame",
        "u:weather?",
        "call:c1",
        "result:c1",
        f"a:one two {INTERRUPTED_NOTE}",
        "u:stop",
        "a:Stopped.",
    ]
    assert not any(isinstance(command, do.CreateResponse | do.TruncateItem) for command in replayed)
    assert rig.of(seen.ConnectionDropped)[0].will_retry
    (event,) = rig.of(seen.Reconnected)
    assert (event.state_restored, event.gap_ms) == (True, 2_000)


def test_running_reply_is_settled_as_interrupted_by_a_drop(make_rig):
    """L1, B36."""
    rig = make_rig()
    rig.say("u1", "go")
    rig.start_reply("r1", "a1")
    rig.speak("r1", "a1", "one two three four", ms=1_000)
    rig.play("r1", 500)
    rig.drop()
    message = rig.machine.messages()[-1]
    assert message.content == "one two"
    assert message.interrupted
    assert rig.of(seen.ReplyInterrupted)[0].cause == "connection"
    rig.connect()
    rig.say("u2", "again")
    rig.reply("r2", "a2", "whole")
    assert rig.names()[-2:] == ["u:again", "a:whole"]


def test_reply_asked_for_and_not_begun_is_asked_for_again(make_rig):
    """L1."""
    rig = make_rig()
    rig.machine.send(["hello"], respond=True, now=rig.now)
    rig.pull()
    rig.drop()
    assert [type(c) for c in rig.connect()] == [do.ConfigureSession, do.CreateItem, do.CreateResponse]


def test_reply_of_which_nothing_was_heard_is_asked_for_again(make_rig):
    """L1: begun or not, the user still waits for it."""
    rig = make_rig()
    rig.say("u1", "hello?")
    rig.feed(said.ResponseStarted(response_id="r1"))
    rig.feed(said.OutputItemStarted(response_id="r1", item_id="a1", kind="message"))
    rig.feed(said.OutputTextUpdated(response_id="r1", item_id="a1", delta="One two", spoken=True))
    rig.drop()
    assert [type(c) for c in rig.connect()] == [do.ConfigureSession, do.CreateItem, do.CreateResponse]
    assert rig.names() == ["u:hello?"]


def test_reply_that_the_server_owed_is_asked_for(make_rig):
    """L1: the turn was committed and understood, its answer had not begun."""
    rig = make_rig()
    rig.say("u1", "hello?")
    rig.drop()
    assert [type(c) for c in rig.connect()] == [do.ConfigureSession, do.CreateItem, do.CreateResponse]


def test_audio_of_the_turn_in_progress_and_of_the_gap_is_sent_again(make_rig):
    """L2: a dropped socket loses no words."""
    rig = make_rig()
    rig.hear(5_000)
    rig.begin_speech("u1")
    rig.hear(1_000)
    rig.drop()
    rig.hear(2_000)
    assert rig.audio_ms == 0
    sent = rig.connect()
    audio = sum(len(c.pcm) // 48 for c in sent if isinstance(c, do.AppendAudio))
    assert 3_000 <= audio <= 3_000 + 1_100


def test_committed_turn_without_transcript_is_said_again(make_rig):
    """L2: it becomes a turn anew, and is answered once."""
    rig = make_rig()
    rig.say("u1", None, ms=600)
    rig.drop()
    sent = rig.connect()
    assert sum(len(c.pcm) // 48 for c in sent if isinstance(c, do.AppendAudio)) >= 600
    assert not any(isinstance(command, do.CreateResponse) for command in sent)
    rig.say("u1b", "hello", ms=20)
    assert rig.names() == ["u:hello"]


def test_manual_turn_is_committed_again(make_rig):
    """L2, push-to-talk."""
    rig = make_rig(turn_detection=TurnDetection(mode="manual"))
    rig.hear(400)
    assert rig.machine.commit_audio(now=rig.now) is True
    rig.pull()
    rig.feed(said.InputCommitted(item_id="u1"), said.ItemAdded(item_id="u1", kind="message", role="user"))
    rig.drop()
    assert [type(c) for c in rig.connect()][-1] is do.CommitAudio


def test_gap_audio_is_bounded_and_the_drops_are_counted(make_rig):
    """B41: the oldest goes, never a control command."""
    rig = make_rig()
    rig.drop()
    rig.machine.send(["typed"], respond=False, now=rig.now)
    rig.hear(40_000)
    assert rig.machine.statistics().audio_dropped_ms == 10_000
    sent = rig.connect()
    assert items(sent) == ["u:typed"]


def test_text_sent_during_the_gap_arrives_once(make_rig):
    rig = make_rig()
    rig.acknowledges = False
    rig.machine.send(["one"], respond=False, now=rig.now)
    rig.pull()
    rig.drop()
    rig.machine.send(["two"], respond=False, now=rig.now)
    rig.acknowledges = True
    assert items(rig.connect()) == ["u:one", "u:two"]
    assert rig.names() == ["u:one", "u:two"]


def test_result_that_comes_during_the_gap_arrives_once(make_rig):
    rig = make_rig(tools=(ToolSpec(name="weather"),))
    rig.say("u1", "weather?")
    rig.feed(said.ResponseStarted(response_id="r1"))
    rig.call_tool("r1", "f1", "c1", "weather")
    rig.feed(said.ResponseEnded(response_id="r1"))
    rig.drop()
    rig.answer_tool("c1", "fog")
    sent = rig.connect()
    assert items(sent) == ["u:weather?", "call:c1", "result:c1"]
    assert isinstance(sent[-1], do.CreateResponse)


def test_open_call_is_replayed_with_a_stand_in(make_rig):
    """F3, B35: open calls closed."""
    rig = make_rig(tools=(ToolSpec(name="weather"),))
    rig.say("u1", "weather?")
    rig.feed(said.ResponseStarted(response_id="r1"))
    rig.call_tool("r1", "f1", "c1", "weather")
    rig.feed(said.ResponseEnded(response_id="r1"))
    rig.drop()
    assert items(rig.connect()) == ["u:weather?", "call:c1", "result:c1"]
    rig.answer_tool("c1", "fog")
    assert rig.names() == ["u:weather?", "call:c1", "result:c1"]
    assert rig.texts()[-1] == "fog"


def test_restored_item_is_not_truncated_as_audio(make_rig):
    """B35: no audio operations on restored items."""
    rig = make_rig()
    rig.say("u1", "go")
    rig.reply("r1", "a1", "one two three four", ms=2_000, play=False)
    rig.drop()
    rig.connect()
    rig.play("r1", 1_000)
    rig.begin_speech("u2")
    rig.pull()
    assert rig.sent_of(do.TruncateItem) == []
    assert rig.machine.messages()[-1].content == "one two"


def test_without_retry_the_session_ends_with_the_error(make_rig):
    rig = make_rig()
    rig.say("u1", "go")
    rig.machine.receive_link_lost("gone", will_retry=False, error=LinkLost("gone", code=1006), now=rig.now)
    rig.drain()
    assert rig.machine.is_closed
    assert rig.events[-1] == seen.SessionEnded(reason="link_lost", error=rig.events[-1].error)
    assert rig.local_of(do.EndSession)[0].error.code == 1006


def test_provider_that_resumed_by_itself_is_not_told_again(make_rig):
    rig = make_rig()
    rig.say("u1", "go")
    rig.drop()
    rig.machine.receive_link_restored(state_restored=True, now=rig.now)
    rig.drain()
    assert items(rig.pull()) == []
    assert rig.of(seen.Reconnected)[0].state_restored


def test_what_came_after_the_provider_saved_its_conversation_is_told_again(make_rig):
    """L1: a handle stands for the conversation as it was when the provider gave it."""
    rig = make_rig()
    rig.say("u1", "one")
    rig.feed(said.ConversationSaved())
    rig.say("u2", "two")
    rig.machine.send(["three"], respond=False, now=rig.now)
    rig.pull()
    rig.drop()
    rig.machine.receive_link_restored(state_restored=True, now=rig.now)
    rig.drain()
    sent = rig.pull()
    assert items(sent) == ["u:two", "u:three"]
    assert sent[0].earlier_items == 2
    assert rig.of(seen.Reconnected)[0].state_restored
    assert rig.names() == ["u:one", "u:two", "u:three"]


def test_a_saved_conversation_serves_one_connection(make_rig):
    """What was saved by the connection before the last one is no longer the newest."""
    rig = make_rig()
    rig.feed(said.ConversationSaved())
    rig.say("u1", "one")
    rig.drop()
    rig.connect()
    rig.drop()
    rig.machine.receive_link_restored(state_restored=True, now=rig.now)
    rig.drain()
    assert items(rig.pull()) == []


def test_the_configuration_says_how_much_of_an_earlier_conversation_follows(make_rig):
    context = ChatContext.empty()
    context.add_message(ChatRole.USER, "hello")
    context.add_message(ChatRole.ASSISTANT, "hi")
    rig = make_rig(context=context)
    assert rig.sent[0].earlier_items == 2
    assert rig.machine.configuration().earlier_items == 0


def test_a_provider_that_kept_its_conversation_still_has_its_items(make_rig):
    """W5: they count, and can be deleted there."""
    rig = make_rig()
    rig.say("u1", "one")
    rig.drop()
    assert rig.machine.statistics().provider_items == 0
    rig.machine.receive_link_restored(state_restored=True, now=rig.now)
    assert rig.machine.statistics().provider_items == 1


def test_a_turn_whose_sound_is_not_kept_is_recorded_with_what_it_has(make_rig):
    """L2 with `replay_audio_seconds=0`: what cannot be sent again is not thrown away."""
    rig = make_rig(reconnect=ReconnectPolicy(replay_audio_seconds=0))
    rig.say("u1", None, ms=600)
    rig.feed(said.InputTranscriptUpdated(item_id="u1", delta="Half of"))
    rig.drop()
    assert rig.names() == ["u:Half of"]


def test_a_call_that_goes_on_without_us_is_not_asked_for_its_answer(make_rig):
    """A sideband: whoever was heard is answered there."""
    rig = make_rig(capabilities={"supports_audio_input": False})
    rig.say("u1", "hello?", ms=0)
    rig.drop()
    rig.machine.receive_link_restored(state_restored=True, now=rig.now)
    rig.drain()
    assert [type(command) for command in rig.pull()] == [do.ConfigureSession]


# -- seeds ----------------------------------------------------------------------------------------------------------------


def speech(role: ChatRole, rate_hz: int) -> ChatMessage:
    return ChatMessage(role, "", "m", audio=AudioContent.from_wav(wav_bytes(b"\x01\x00" * rate_hz, rate_hz)))


@pytest.mark.parametrize(
    ("message", "capabilities", "words"),
    [
        (ChatMessage(ChatRole.USER, "hi", "m"), {"supports_session_seeding": False}, "earlier conversation"),
        (speech(ChatRole.ASSISTANT, 24_000), {"supports_seeding_audio": True}, "without a transcript"),
        (speech(ChatRole.USER, 24_000), {"supports_seeding_audio": False}, "add its transcript"),
        (speech(ChatRole.USER, 16_000), {"supports_seeding_audio": True}, "16000 Hz"),
    ],
)
def test_what_cannot_be_seeded_is_refused_before_connecting(message, capabilities, words):
    """Seed: UserError instead of silently dropping."""
    with pytest.raises(UserError, match=words):
        check_seed([message], ModelCapabilities(**capabilities))


def test_messages_without_content_are_skipped_when_seeding(make_rig):
    """H4."""
    context = ChatContext([ChatMessage(ChatRole.USER, "", "m1"), ChatMessage(ChatRole.USER, "hi", "m2")])
    check_seed(context.messages(), ModelCapabilities())
    assert items(make_rig(context=context).sent) == ["u:hi"]


def test_seeds_carry_no_other_sessions_data(make_rig):
    """Seeds: signatures and a provider's own metadata belong to the session that produced them; thinking is told as text."""
    call = FunctionCall("weather", "{}", "c1", provider_data={"signature": "s"})
    context = ChatContext(
        [
            ChatMessage(ChatRole.USER, "well?", "m1", provider_data={"p": 1}),
            ChatMessage(
                ChatRole.ASSISTANT, "Hm.", "m2", thinking="fog, I think", provider_data={"phase": "final_answer"}
            ),
            ChatMessage(ChatRole.ASSISTANT, "", "m3", (call,)),
            ChatMessage(ChatRole.TOOL, "fog", "m4", (), "c1"),
        ]
    )
    seeds = [command.message for command in make_rig(context=context).sent_of(do.CreateItem)]
    assert [dict(message.provider_data) for message in seeds] == [{}] * 4
    assert [dict(each.provider_data) for message in seeds for each in message.tool_calls] == [{}]
    assert seeds[1].content == "<thinking>fog, I think</thinking>\nHm."
    assert context.messages()[1].provider_data == {"phase": "final_answer"}


@pytest.mark.parametrize(
    ("content", "transcript", "supported", "told"),
    [
        ("said", "", True, ("said", False)),
        ("", "heard", True, ("heard", False)),
        ("", "", True, ("", True)),
    ],
)
def test_a_transcript_is_preferred_over_retained_audio_and_audio_is_replayed_without_one(
    make_rig, content, transcript, supported, told
):
    """Seeds: as long as it was recorded at the model's rate and the model takes it."""
    audio = AudioContent.from_pcm(b"\x01\x00" * 2_400, 24_000, transcript=transcript)
    context = ChatContext([ChatMessage(ChatRole.USER, content, "m1", audio=audio)])
    rig = make_rig(context=context, capabilities={"supports_seeding_audio": supported})
    [message] = [command.message for command in rig.sent_of(do.CreateItem)]
    assert (message.content, message.audio is not None) == told


def test_parts_of_a_seeded_round_have_one_item_each(make_rig):
    calls = (FunctionCall("weather", "{}", "c1"), FunctionCall("weather", "{}", "c2"))
    context = ChatContext(
        [
            ChatMessage(ChatRole.USER, "both?", "m1"),
            ChatMessage(ChatRole.ASSISTANT, "Let me see.", "m2", calls),
            ChatMessage(ChatRole.TOOL, "fog", "m3", (), "c1"),
            ChatMessage(ChatRole.TOOL, "sun", "m4", (), "c2"),
        ]
    )
    rig = make_rig(context=context)
    assert [len(c.item_ids) for c in rig.sent_of(do.CreateItem)] == [1, 3, 1, 1]
    ids = [item_id for c in rig.sent_of(do.CreateItem) for item_id in c.item_ids]
    assert len(set(ids)) == len(ids)
    assert all(0 < len(item_id) <= 32 for item_id in ids)


def test_telling_a_long_conversation_again_is_no_sign_of_a_slow_socket():
    """The depth that closes a link counts what came since."""
    audio = InputAudio(rate_hz=24_000, lane_seconds=1, replay_seconds=1, records=False)
    outbox = Outbox(audio, make_id=str)
    told = [do.DeleteItem(command_id=str(index), item_id="x") for index in range(5_000)]
    outbox.open([*told], discard_waiting=False)
    assert outbox.control_depth == 0
    outbox.put(do.DeleteItem(command_id="late", item_id="y"))
    assert outbox.control_depth == 1
    for _ in range(4_000):
        outbox.take()
    assert outbox.control_depth == 1
    for _ in range(1_001):
        outbox.take()
    assert outbox.control_depth == 0


def test_what_waits_is_counted_at_the_price_of_the_model_that_took_over(make_rig):
    """W5: what is trimmed for it is gone before the reply is asked for."""
    shown = ImageContent.from_bytes(b"GIF89a\x00\x01\x00\x01\x00\x00\x00;", "image/gif")  # 255 tokens here, 1120 there
    rig = make_rig(window=ContextWindow(max_tokens=1_500, keep_recent_turns=1))
    rig.say("u1", "word " * 300)
    rig.reply("r1", "a1", "Yes.")
    rig.drop()
    rig.machine.send(["Look.", shown], respond=True, now=rig.now)
    rig.machine.receive_link_restored(capabilities=ModelCapabilities(image_price="gemini-3"), now=rig.now)
    rig.acknowledges = False
    sent = [command for command in rig.pull() if isinstance(command, (do.DeleteItem, do.CreateResponse))]
    assert [type(command) for command in sent] == [do.DeleteItem, do.CreateResponse]


def test_what_waits_goes_without_its_pictures_to_a_model_that_takes_none(make_rig, picture):
    """Another model took over: the words go, a picture alone is rejected, and both are told."""
    rig = make_rig()
    rig.machine.hand_off(Agent(id="other", model=object()), (), now=rig.now)
    rig.drop()
    rig.machine.send(["Look at this.", picture()], respond=False, now=rig.now)
    rig.machine.send([picture()], respond=False, now=rig.now)
    rig.drain()
    blind = ModelCapabilities(model="blind", supports_image_input=False, supports_seeding_images=False)
    rig.machine.receive_link_restored(capabilities=blind, now=rig.now)
    rig.drain()
    sent = [command.message for command in rig.pull() if isinstance(command, do.CreateItem)]
    assert [(message.content, message.images) for message in sent] == [("Look at this.", ())]
    assert len(rig.of(seen.InputRejected)) == 2
    assert rig.machine.statistics().memory.queued_pictures == 0
