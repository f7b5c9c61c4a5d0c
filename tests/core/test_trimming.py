"""The window in a session: behaviour.md W4–W6."""

from __future__ import annotations

from dataclasses import replace

from realtime.chat.window import ContextWindow
from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.settings import FrameSampling, Retention

LONG = " ".join(["word"] * 20)


class Digest:
    async def summarize(self, messages):  # the shell calls it; the core only asks for it
        return "never called by the core"


def talk(rig, turns: int, *, first: int = 0) -> None:
    for index in range(first, first + turns):
        rig.say(f"u{index}", LONG)
        rig.reply(f"r{index}", f"a{index}", LONG)
        rig.pull()


def test_window_is_applied_after_every_turn_and_felt_by_the_provider(make_rig):
    """W5: what it removes is deleted in the provider's conversation too."""
    rig = make_rig(window=ContextWindow(max_tokens=200, keep_recent_turns=2))
    talk(rig, 10)
    assert rig.machine.statistics().tokens.own <= 200
    removed = [message_id for event in rig.of(seen.MessagesRemoved) for message_id in event.message_ids]
    assert {event.reason for event in rig.of(seen.MessagesRemoved)} == {"window"}
    assert [command.item_id for command in rig.sent_of(do.DeleteItem)] == removed
    assert rig.machine.statistics().provider_items == len(rig.context)


def test_history_keeps_what_the_window_trims(make_rig):
    """H0."""
    rig = make_rig(window=ContextWindow(max_tokens=200, keep_recent_turns=2))
    talk(rig, 10)
    assert len(rig.machine.messages()) == 20
    assert len(rig.context) < 20
    assert rig.context.messages() == rig.machine.messages()[-len(rig.context) :]


def test_trims_use_the_providers_count_where_it_is_higher(make_rig):
    """W6."""
    rig = make_rig(window=ContextWindow(max_tokens=400, keep_recent_turns=1))
    talk(rig, 3)
    before = rig.machine.statistics().tokens.own
    rig.say("u9", LONG)
    rig.start_reply("r9", "a9")
    usage = said.TokenUsage(input_tokens=2_000, output_tokens=10, total_tokens=2_010)
    rig.feed(
        said.OutputTextDone(response_id="r9", item_id="a9", text="ok"),
        said.OutputItemDone(response_id="r9", item_id="a9"),
        said.ResponseEnded(response_id="r9", usage=usage),
    )
    figures = rig.machine.statistics().tokens
    assert figures.reported == 2_000
    assert 1.0 < figures.scale <= 20.0
    assert figures.own < before


def test_pictures_gone_here_are_the_first_to_be_deleted_there(make_rig):
    """W5: they count in the window."""
    rig = make_rig(
        window=ContextWindow(max_tokens=2_000),
        retention=Retention(images_max=1),
        sampling=FrameSampling(fps_idle=1.0, min_change=0),
    )
    frames = 0
    while not rig.sent_of(do.DeleteItem) and frames < 100:
        rig.frame(frames)
        rig.pull()
        rig.wait(1.0)
        frames += 1
        rig.say(f"u{frames}", "and now?")
        rig.reply(f"r{frames}", f"a{frames}", "Still the same.")
        rig.pull()
    deleted = {command.item_id for command in rig.sent_of(do.DeleteItem)}
    pictures = [c.item_ids[0] for c in rig.sent_of(do.CreateItem) if c.message.images]
    assert deleted
    assert deleted <= set(pictures[:-1])
    figures = rig.machine.statistics().tokens
    assert figures.own + figures.gone <= 2_000


def summarizing(make_rig):
    rig = make_rig(window=ContextWindow(max_tokens=200, keep_recent_turns=2, summary_llm=Digest()))
    turn = 0
    while not rig.local_of(do.RequestSummary):
        talk(rig, 1, first=turn)
        turn += 1
    return rig, rig.local_of(do.RequestSummary)[-1], turn


def test_summary_replaces_exactly_what_it_digests(make_rig):
    """W4."""
    rig, request, _ = summarizing(make_rig)
    digested = {message.message_id for message in request.messages}
    survivors = [m.message_id for m in rig.context.messages() if m.message_id not in digested]
    rig.machine.receive_summary(request.basis_revision, "They said word a lot.", now=rig.now)
    rig.drain()
    rig.pull()
    after = rig.context.messages()
    assert after[0].summary
    assert after[0].content == "They said word a lot."
    assert [message.message_id for message in after[1:]] == survivors
    assert {command.item_id for command in rig.sent_of(do.DeleteItem)} >= digested
    created = rig.sent_of(do.CreateItem)[-1]
    assert created.message.summary
    assert created.previous_item_id == "root"
    assert rig.of(seen.ContextSummarized)[0].digested == tuple(m.message_id for m in request.messages)


def test_messages_that_arrive_meanwhile_survive(make_rig):
    """W4, B15."""
    rig, request, turn = summarizing(make_rig)
    talk(rig, 1, first=turn)
    rig.machine.receive_summary(request.basis_revision, "digest", now=rig.now)
    rig.drain()
    assert [m.message_id for m in rig.context.messages()][-2:] == [f"u{turn}", f"a{turn}"]


def test_failed_empty_or_stale_summary_falls_back_to_trimming(make_rig):
    """W4, B15."""
    for text in (None, "", "  "):
        rig, request, _ = summarizing(make_rig)
        rig.machine.receive_summary(request.basis_revision - 1, "stale", now=rig.now)
        rig.drain()
        assert not any(message.summary for message in rig.context.messages())
        rig.machine.receive_summary(request.basis_revision, text, now=rig.now)
        rig.drain()
        assert not any(message.summary for message in rig.context.messages())
        assert rig.machine.statistics().tokens.own <= 200


def test_summary_never_delays_a_reply(make_rig):
    """W4."""
    rig, _, _ = summarizing(make_rig)
    rig.machine.send(["quick?"], respond=True, now=rig.now)
    assert do.CreateResponse in [type(command) for command in rig.pull()]


def test_tokens_of_usage_add_field_by_field():
    one = said.TokenUsage(input_tokens=1, output_tokens=2, total_tokens=3, cached_tokens=4, input_audio_tokens=5)
    assert one + replace(one, output_audio_tokens=6) == said.TokenUsage(
        input_tokens=2, output_tokens=4, total_tokens=6, cached_tokens=8, input_audio_tokens=10, output_audio_tokens=6
    )


def test_digest_is_known_to_the_provider_by_its_own_id_after_a_reconnect(make_rig):
    """W4, W5: what digests it later deletes it there."""
    rig, request, turn = summarizing(make_rig)
    rig.machine.receive_summary(request.basis_revision, "They said word a lot.", now=rig.now)
    rig.drain()
    rig.pull()
    digest = rig.context.messages()[0]
    rig.drop()
    told = [command for command in rig.connect() if isinstance(command, do.CreateItem)]
    assert told[0].item_ids == (digest.message_id,)
    requests = len(rig.local_of(do.RequestSummary))
    while len(rig.local_of(do.RequestSummary)) == requests:
        talk(rig, 1, first=turn)
        turn += 1
    rig.machine.receive_summary(rig.local_of(do.RequestSummary)[-1].basis_revision, "Still.", now=rig.now)
    rig.drain()
    rig.pull()
    assert digest.message_id in {command.item_id for command in rig.sent_of(do.DeleteItem)}
    assert sum(message.summary for message in rig.context.messages()) == 1


def test_digest_that_the_provider_confirms_after_its_deletion_was_asked_for_is_no_turn_of_the_user(make_rig):
    """W4, H1: nothing waits for the transcript of an item that was ours and is going."""
    rig, request, turn = summarizing(make_rig)
    rig.machine.receive_summary(request.basis_revision, "They said word a lot.", now=rig.now)
    rig.drain()
    rig.pull()
    digest = rig.context.messages()[0].message_id
    requests = len(rig.local_of(do.RequestSummary))
    while len(rig.local_of(do.RequestSummary)) == requests:
        talk(rig, 1, first=turn)
        turn += 1
    rig.machine.receive_summary(rig.local_of(do.RequestSummary)[-1].basis_revision, "Still.", now=rig.now)
    rig.drain()
    rig.pull()
    assert digest in {command.item_id for command in rig.sent_of(do.DeleteItem)}
    rig.feed(said.ItemAdded(item_id=digest, kind="message", role="user", previous_item_id="root"))
    talk(rig, 1, first=turn)
    assert rig.context.messages()[-1].message_id == f"a{turn}"
    assert rig.machine.pending == ()
    assert digest not in {message.message_id for message in rig.machine.messages()}


def test_summary_survives_the_eviction_of_a_picture_that_it_digests(make_rig):
    """W4: what is left of the run is replaced."""
    rig = make_rig(
        window=ContextWindow(max_tokens=900, keep_recent_turns=2, keep_recent_frames=1, summary_llm=Digest()),
        retention=Retention(images_max=3),
        sampling=FrameSampling(fps_idle=1.0, min_change=0),
    )
    index = 0
    while not any(message.images for request in rig.local_of(do.RequestSummary) for message in request.messages):
        rig.frame(index)
        rig.pull()
        rig.wait(1.0)
        talk(rig, 1, first=index)
        index += 1
        if rig.local_of(do.RequestSummary) and not any(m.images for m in rig.local_of(do.RequestSummary)[-1].messages):
            rig.machine.receive_summary(rig.local_of(do.RequestSummary)[-1].basis_revision, None, now=rig.now)
            rig.drain()
    request = rig.local_of(do.RequestSummary)[-1]
    for more in range(3):
        rig.frame(1_000 + more)
        rig.pull()
        rig.wait(1.0)
    rig.machine.receive_summary(request.basis_revision, "A street, and words.", now=rig.now)
    rig.drain()
    (event,) = rig.of(seen.ContextSummarized)
    assert set(event.digested) < {message.message_id for message in request.messages}
    assert rig.context.messages()[0] == event.message


def test_pictures_alone_are_trimmed_too(make_rig):
    """W5: nobody speaks for an hour and the camera goes on."""
    rig = make_rig(
        window=ContextWindow(max_tokens=1_000),
        retention=Retention(images_max=None),
        sampling=FrameSampling(fps_idle=1.0, min_change=0),
    )
    held = []
    for index in range(40):
        rig.frame(index)
        rig.pull()
        rig.wait(1.0)
        held.append(rig.machine.statistics().provider_items)
    assert max(held[-10:]) == max(held[10:20])
    assert rig.machine.statistics().tokens.own <= 1_000


def test_where_nothing_can_be_deleted_the_scale_counts_what_the_provider_still_has(make_rig):
    """W5, W6: else the context would shrink to nothing while the provider's grows."""
    rig = make_rig(
        window=ContextWindow(max_tokens=400, keep_recent_turns=1),
        capabilities={"supports_item_deletion": False},
    )
    for index in range(20):
        rig.say(f"u{index}", LONG)
        rig.start_reply(f"r{index}", f"a{index}")
        rig.speak(f"r{index}", f"a{index}", LONG, ms=100)
        rig.feed(said.OutputItemDone(response_id=f"r{index}", item_id=f"a{index}"))
        tokens = 80 * (index + 1)
        usage = said.TokenUsage(input_tokens=tokens, total_tokens=tokens)
        rig.feed(said.ResponseEnded(response_id=f"r{index}", usage=usage))
        rig.play(f"r{index}", 100, finished=True)
        rig.pull()
    figures = rig.machine.statistics().tokens
    assert rig.sent_of(do.DeleteItem) == []
    assert figures.scale < 1.5
    assert len(rig.context) > 4


def test_usage_that_counts_only_what_was_added_tells_nothing_of_the_window(make_rig):
    """W6, xAI."""
    rig = make_rig(capabilities={"reports_total_usage": False})
    rig.start_reply("r1", "a1")
    rig.feed(said.ResponseEnded(response_id="r1", usage=said.TokenUsage(input_tokens=5_000, total_tokens=5_000)))
    assert rig.machine.statistics().tokens.scale == 1.0


def test_what_is_asked_counts_before_it_has_its_place(make_rig):
    """W5: a reply is made from the question that was just sent, too; what must go for it goes before it is asked for."""
    rig = make_rig(window=ContextWindow(max_tokens=200, keep_recent_turns=1))
    talk(rig, 3)
    rig.machine.send([" ".join(["word"] * 120)], respond=True, now=rig.now)
    rig.drain()
    commands = rig.pull()
    asked = next(at for at, command in enumerate(commands) if isinstance(command, do.CreateResponse))
    gone = [command for command in commands[:asked] if isinstance(command, do.DeleteItem)]
    assert gone
    assert len(rig.context) == 1  # it is over the window by itself, and stays
