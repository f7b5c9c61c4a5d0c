"""Whole calls from a seeded generator that knows what must be in the history in the end: heard words, order, pairs, frames.

`Caller` drives a machine through a call and keeps the truth; `Provider` keeps the conversation as a naive provider would.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import Any

import pytest

from realtime.chat.window import ContextWindow
from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.machine import SessionMachine
from realtime.core.settings import FrameSampling, Retention, ToolSpec

WEATHER = ToolSpec(name="weather")
WORD_MS = 100


class Provider:
    """The items of a provider's conversation, by what is on the line."""

    def __init__(self, rig: Any) -> None:
        self.items: list[str] = []
        rig.overhears.append(self.overhear)

    def overhear(self, what: Any) -> None:
        match what:
            case None:
                self.items.clear()
            case do.CreateItem():
                self.items += [item_id for item_id in what.item_ids if item_id not in self.items]
            case do.DeleteItem():
                assert what.item_id in self.items, "deleted what the provider does not have"
                self.items.remove(what.item_id)
            case do.TruncateItem():
                assert what.item_id in self.items, "truncated what the provider does not have"
            case said.ItemAdded() if what.item_id not in self.items:
                self.items.append(what.item_id)


@dataclass(frozen=True)
class Budgets:
    """What is kept of a call."""

    images_max: int | None = None
    images_every_n: int = 1
    mirrors: bool = False
    window: int | None = None


class Caller:
    """Drives a rig through a random call and knows what the history must say in the end."""

    def __init__(self, rig: Any, seed: int, budgets: Budgets, *, drops: bool = True) -> None:
        self.rig = rig
        self.provider = Provider(rig)
        self.chance = random.Random(seed)
        self.budgets = budgets
        self.drops = drops
        self.truth: list[str] = []
        self.late: list[tuple[str, str]] = []
        self.owed: list[str] = []
        self.count = 0
        self.frames_sent = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def run(self, turns: int) -> None:
        for _ in range(turns):
            self.chance.choice([self.user_turn, self.user_turn, self.typed, self.frame])()
            self.model_turn()
            if self.chance.random() < 0.5:
                self.deliver()
            if self.drops and self.chance.random() < 0.1:
                self.drop()
        self.deliver()
        self.answer_owed()

    def deliver(self) -> None:
        """Transcripts that are late arrive, in any order."""
        self.chance.shuffle(self.late)
        for item, text in self.late:
            self.rig.transcribe(item, text)
        self.late.clear()

    def answer_owed(self) -> None:
        """Tools that took long answer, in any order."""
        self.chance.shuffle(self.owed)
        for call in self.owed:
            self.rig.answer_tool(call, f"output {call}")
        self.owed.clear()
        self.rig.pull()

    # -- the user ---------------------------------------------------------------------------------------------------

    def user_turn(self) -> None:
        item = self.name("u")
        self.rig.begin_speech(item)
        self.rig.hear(100)
        if self.drops and self.chance.random() < 0.1:
            self.drop()  # the words are sent again, and heard as another item
            item = self.name("u")
            self.rig.begin_speech(item)
            self.rig.hear(40)
        self.rig.end_speech(item)
        self.words_of(item)

    def words_of(self, item: str) -> None:
        """The transcript comes now, later, or never."""
        text, fate = f"spoken {item}", self.chance.random()
        if fate < 0.5:
            self.rig.transcribe(item, text)
        elif fate < 0.8:
            self.late.append((item, text))
        else:
            self.rig.feed(said.InputTranscriptFailed(item_id=item))
            text = ""
        self.truth.append(f"u:{text}")

    def typed(self) -> None:
        text = self.name("typed")
        self.rig.machine.send([text], respond=False, now=self.rig.now)
        self.rig.pull()
        self.truth.append(f"u:{text}")

    def frame(self) -> None:
        self.count += 1
        self.rig.wait(2.0)
        if self.rig.frame(self.count).action == "keep":
            if self.frames_sent % self.budgets.images_every_n == 0:
                self.truth.append("frame")
            self.frames_sent += 1
            most = self.budgets.images_max
            while most is not None and self.truth.count("frame") > most:
                self.truth.remove("frame")
        self.rig.pull()

    # -- the model --------------------------------------------------------------------------------------------------

    def model_turn(self) -> None:
        response, item = self.name("r"), self.name("a")
        words = [f"{item}w{index}" for index in range(self.chance.randint(1, 9))]
        rig, total = self.rig, WORD_MS * len(words)
        rig.start_reply(response, item)
        times = tuple((f" {word}", WORD_MS * (index + 1)) for index, word in enumerate(words))
        rig.feed(said.OutputWords(response_id=response, item_id=item, words=times))
        rig.speak(response, item, " ".join(words), ms=total)
        rig.feed(said.OutputItemDone(response_id=response, item_id=item))
        fate = self.chance.random()
        heard = self.chance.randint(0, len(words))
        if fate < 0.4:
            if heard:
                self.truth.append("a:" + " ".join(words[:heard]))
            if fate < 0.15:
                rig.machine.interrupt(played_ms=heard * WORD_MS, now=rig.now)
                rig.drain()
                rig.end_reply(response, None, status="cancelled")
            elif fate < 0.35 or not self.drops:
                self.barge_in(response, heard)
            else:
                rig.play(response, heard * WORD_MS)
                self.drop()
            return
        self.truth.append("a:" + " ".join(words))
        if self.chance.random() < 0.3:
            self.tool_round(response)
        rig.end_reply(response, None)
        rig.play(response, total, finished=True)

    def barge_in(self, response: str, heard: int) -> None:
        """The user speaks into the reply; its response ends before or after the user has finished."""
        rig, item = self.rig, self.name("u")
        rig.play(response, heard * WORD_MS)
        rig.begin_speech(item)
        ends_early = self.chance.random() < 0.5
        if ends_early:
            rig.end_reply(response, None, status="cancelled")
        rig.hear(60)
        rig.end_speech(item)
        if not ends_early:
            rig.end_reply(response, None, status="cancelled")
        self.words_of(item)

    def tool_round(self, response: str) -> None:
        calls = [self.name("c") for _ in range(self.chance.randint(1, 3))]
        for call in calls:
            self.rig.call_tool(response, f"f{call}", call, "weather")
        answered = list(calls)
        self.chance.shuffle(answered)
        if self.chance.random() < 0.3:
            self.owed.append(answered.pop())
        for call in answered:
            self.rig.answer_tool(call, f"output {call}")
        self.truth += [f"call:{call}" for call in calls] + [f"result:{call}" for call in calls]

    # -- the line ---------------------------------------------------------------------------------------------------

    def drop(self) -> None:
        self.deliver()  # what the provider had not understood would have to be said again
        self.rig.pull()
        self.rig.drop()
        self.rig.wait(self.chance.random() * 3)
        self.rig.connect()


def make_call(
    make_rig: Any, seed: int, *, turns: int, drops: bool = True, at_once: bool = False, retention: Any = (), **more: Any
) -> Caller:
    chance = random.Random(seed)
    budgets = Budgets(
        images_max=chance.choice([None, None, 0, 1, 3]),
        images_every_n=chance.choice([1, 1, 2, 3]),
        mirrors=chance.random() < 0.3,
        window=chance.choice([None, None, 60, 200]),
    )
    rig = make_rig(
        tools=(WEATHER,),
        sampling=FrameSampling(fps_idle=1.0),
        window=ContextWindow(max_tokens=budgets.window, keep_recent_turns=1, max_tool_calls_per_turn=100),
        retention=Retention(
            images_max=budgets.images_max,
            images_every_n=budgets.images_every_n,
            mirror_evictions=budgets.mirrors,
            **dict(retention),
        ),
        **more,
    )
    rig.sends_at_once = at_once
    caller = Caller(rig, seed, budgets, drops=drops)
    caller.run(turns)
    return caller


def check(caller: Caller) -> None:
    """The history is the truth; the context is what the window leaves of it; the provider holds the context."""
    rig, budgets = caller.rig, caller.budgets
    assert rig.names() == caller.truth
    history, context = rig.machine.messages(), rig.context.messages()
    left = iter(history)
    assert all(message in left for message in context), "the context is out of order"
    calls = {call.call_id for message in context for call in message.tool_calls}
    assert calls == {message.tool_call_id for message in context if message.tool_call_id}
    figures = rig.machine.statistics()
    if budgets.window is None:
        assert context == history
    places = [place for place in rig.machine._parts.history.places() if place.entry is not None]
    held = {item_id for place in places if not place.message.is_empty for item_id in place.item_ids}
    wordless = {item_id for place in places if place.message.is_empty for item_id in place.item_ids}  # never told again
    assert held <= set(caller.provider.items), "the provider lacks what the context holds"
    extra = set(caller.provider.items) - held - wordless
    assert len(extra) == rig.machine._parts.ledger.gone_count
    assert figures.provider_items == len(caller.provider.items)
    if budgets.mirrors and budgets.images_every_n == 1 and budgets.images_max != 0:
        assert not extra, "what left here is still there"


@pytest.mark.parametrize("block", range(20))
def test_a_thousand_random_calls_end_with_the_truth(make_rig, block):
    """Heard words, order, pairs, frames, within budgets and windows, over drops: against the script that made the call."""
    for seed in range(block * 50, block * 50 + 50):
        caller = make_call(make_rig, seed, turns=8)
        try:
            check(caller)
            caller.rig.machine.close(now=caller.rig.now)
            caller.rig.drain()
            assert caller.rig.names() == caller.truth
        except AssertionError as error:
            error.add_note(f"seed {seed}, {caller.budgets}")
            raise


@pytest.mark.parametrize("seed", range(3))
def test_the_same_calls_give_the_same_events_and_commands(make_rig, seed):
    one, other = (make_call(make_rig, seed, turns=20) for _ in range(2))
    assert one.rig.events == other.rig.events
    assert one.rig.sent == other.rig.sent
    assert one.rig.local == other.rig.local
    assert one.rig.machine.statistics() == other.rig.machine.statistics()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "more", [{}, {"retention": {"audio": "all", "audio_max_seconds": 1}}, {"memory_limit_bytes": 40_000}]
)
def test_sound_that_is_sent_as_it_comes_changes_nothing_else(make_rig, seed, more):
    """`receive_audio(at_once=True)` is `receive_audio` and `next_link_command` in one, also over drops."""
    one, other = (make_call(make_rig, seed, turns=12, at_once=at_once, **more) for at_once in (False, True))
    assert other.rig.passed > 5
    assert one.rig.passed == 0
    assert one.rig.sent == other.rig.sent
    assert one.rig.events == other.rig.events
    assert one.rig.local == other.rig.local
    assert one.rig.machine.statistics() == other.rig.machine.statistics()
    assert one.rig.machine.get_deadline() == other.rig.machine.get_deadline()


def test_sound_on_its_way_out_and_frames_bring_no_deadline_nearer(make_rig, monkeypatch):
    """What `Driver` relies on when it does not look at its timer after them."""
    seen_names: set[str] = set()

    def watched(name: str) -> Any:
        real = getattr(SessionMachine, name)

        def call(machine: SessionMachine, *args: Any, **kwargs: Any) -> Any:
            effects = machine._parts.effects
            before, waiting = machine.get_deadline(), (len(effects.events), len(effects.local))
            result = real(machine, *args, **kwargs)
            is_timeless = {
                "receive_frame": True,
                "receive_audio": result is not None,
                "next_link_command": result is None or isinstance(result, do.AppendAudio),
            }[name]
            if is_timeless and (len(effects.events), len(effects.local)) == waiting:
                seen_names.add(name)
                after = machine.get_deadline()
                assert after is None or (before is not None and after >= before), name
            return result

        return call

    for name in ("receive_frame", "receive_audio", "next_link_command"):
        monkeypatch.setattr(SessionMachine, name, watched(name))
    for seed in range(10):
        make_call(make_rig, seed, turns=10, at_once=True)
    assert len(seen_names) == 3


@pytest.mark.parametrize("seed", range(10))
def test_a_drop_anywhere_leaves_the_history_as_it_was_heard(make_rig, seed):
    rig = make_rig(tools=(WEATHER,), sampling=FrameSampling(fps_idle=1.0))
    caller = Caller(rig, seed, Budgets(), drops=False)
    caller.run(5)
    before = rig.names()
    rig.drop()
    rig.wait(caller.chance.random() * 5)
    replayed = [c for c in rig.connect() if isinstance(c, do.CreateItem)]
    assert len({item_id for c in replayed for item_id in c.item_ids}) == sum(len(c.item_ids) for c in replayed)
    caller.run(5)
    assert rig.names()[: len(before)] == before
    assert rig.names() == caller.truth


@pytest.mark.parametrize("seed", range(5))
def test_events_arrive_with_the_history_at_least_that_far_along(make_rig, seed):
    rig = make_rig(tools=(WEATHER,), sampling=FrameSampling(fps_idle=1.0))
    machine = rig.machine
    original = machine.next_event

    def watched() -> Any:
        event = original()
        if isinstance(event, seen.MessageCommitted):
            assert event.message in machine.messages()
            assert event.message in rig.context.messages()
        return event

    machine.next_event = watched
    Caller(rig, seed, Budgets()).run(10)
    assert rig.of(seen.MessageCommitted)


@pytest.mark.parametrize("seed", range(10))
def test_every_snapshot_begins_with_the_one_before_but_for_results(make_rig, seed):
    """H1: nothing is inserted ahead of what was returned; a tool's result stands beside its call (seed)."""
    rig = make_rig(tools=(WEATHER,), sampling=FrameSampling(fps_idle=1.0))
    snapshots: list[list[str]] = []
    rig.at_every_step.append(lambda: snapshots.append(rig.names()))
    Caller(rig, seed, Budgets()).run(12)
    for earlier, later in itertools.pairwise(snapshots):
        without = [name for name in later if not name.startswith("result:") or name in earlier]
        assert without[: len(earlier)] == earlier
