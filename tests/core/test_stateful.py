"""Each part of the machine beside a naive model that recomputes everything: turn, history, playout, retention, tool rounds.

The machine as a whole is in `test_stateful_machine`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall
from realtime.core.effects import Effects
from realtime.core.history import TRANSCRIPT_PATIENCE_SECONDS, History
from realtime.core.input_audio import AudioTape, InputAudio
from realtime.core.outbox import Outbox
from realtime.core.places import Place
from realtime.core.retention import AudioBudget, ImageBudget
from realtime.core.settings import Retention
from realtime.core.turn import (
    TRANSITIONS,
    TURN_TRANSITIONS,
    ResponseInput,
    ResponseSlot,
    ResponseState,
    TurnInput,
    TurnProgress,
    Wish,
)
from realtime.errors import IllegalTransition


def make_effects() -> Effects:
    ids = itertools.count()
    audio = InputAudio(rate_hz=24_000, lane_seconds=1, replay_seconds=1, records=False)

    def make_id() -> str:
        return f"id{next(ids)}"

    return Effects(make_id=make_id, wall_offset=0.0, now=0.0, outbox=Outbox(audio, make_id=make_id))


# -- the response -------------------------------------------------------------------------------------------------------


class SlotBesideModel(RuleBasedStateMachine):
    """`ResponseSlot`: the model knows who is asked for, who runs and what is wanted, and derives the state from that."""

    def __init__(self) -> None:
        super().__init__()
        self.slot = ResponseSlot()
        self.asked: Wish | None = None
        self.running: str | None = None
        self.cancelled = False
        self.wanted: Wish | None = None
        self.retries = 0
        self.count = 0

    @rule(
        tool_choice=st.sampled_from([None, "none", "required"]), instructions=st.sampled_from([None, "short", "long"])
    )
    def wish(self, tool_choice: Any, instructions: str | None) -> None:
        wish = Wish(tool_choice=tool_choice, instructions=instructions)
        self.slot.wish(wish)
        self.wanted = wish if self.wanted is None else self.wanted.fold(wish)

    @rule()
    def ask(self) -> None:
        self.take()

    def take(self) -> None:
        taken = self.slot.take()
        if self.wanted is None or self.asked is not None or self.running is not None:
            assert taken is None
            return
        assert taken == self.wanted
        self.asked, self.wanted = self.wanted, None
        self.count += 1
        self.slot.sent(f"command{self.count}")

    @rule()
    def start(self) -> None:
        self.count += 1
        self.running, self.asked, self.cancelled, self.retries = f"r{self.count}", None, False, 0
        self.slot.started(self.running)

    @rule(stale=st.booleans())
    def end(self, stale: bool) -> None:
        response = "old" if stale or self.running is None else self.running
        assert self.slot.ended(response) is (response == self.running)
        if response == self.running:
            self.running, self.cancelled = None, False

    @rule()
    def cancel(self) -> None:
        if self.running is None:
            before = vars(self.slot).copy()
            with pytest.raises(IllegalTransition):
                self.slot.cancelled()
            assert vars(self.slot) == before
            return
        self.slot.cancelled()
        self.cancelled = True

    @rule(may_retry=st.booleans())
    def be_refused(self, may_retry: bool) -> None:
        self.refuse(may_retry=may_retry)

    def refuse(self, *, may_retry: bool) -> None:
        if self.asked is None and self.running is None:
            before = vars(self.slot).copy()
            with pytest.raises(IllegalTransition):
                self.slot.refused(may_retry=may_retry)
            assert vars(self.slot) == before
            return
        again = may_retry and self.asked is not None and self.retries == 0
        assert self.slot.refused(may_retry=may_retry) is again
        if again:
            assert self.asked is not None
            self.wanted = self.asked if self.wanted is None else self.asked.fold(self.wanted)
        self.retries = 1 if again else 0
        self.asked = None

    @rule(times=st.integers(1, 3))
    def ask_and_be_refused(self, times: int) -> None:
        for _ in range(times):
            self.take()
            self.refuse(may_retry=True)

    @rule()
    def lose_link(self) -> None:
        self.slot.link_lost()
        if self.asked is not None:
            self.wanted = self.asked if self.wanted is None else self.asked.fold(self.wanted)
        self.asked = self.running = None
        self.cancelled = False

    @rule()
    def forget(self) -> None:
        self.slot.forget_wish()
        self.wanted = None

    @invariant()
    def agrees(self) -> None:
        if self.running is not None:
            state = ResponseState.CANCELLING if self.cancelled else ResponseState.RUNNING
        else:
            state = ResponseState.REQUESTED if self.asked is not None else ResponseState.IDLE
        assert (self.slot.state, self.slot.response_id) == (state, self.running)
        assert (self.slot.requested, self.slot.waiting) == (self.asked, self.wanted)
        assert self.slot.is_busy is (state is not ResponseState.IDLE)


class TurnBesideTable(RuleBasedStateMachine):
    """`TurnProgress` walks its table; what is not in it changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = TurnProgress()

    @rule(what=st.sampled_from(TurnInput))
    def happens(self, what: TurnInput) -> None:
        before = self.turn.state
        if what in TURN_TRANSITIONS[before]:
            self.turn.go(what)
            assert self.turn.state is TURN_TRANSITIONS[before][what]
        else:
            with pytest.raises(IllegalTransition):
                self.turn.go(what)
            assert self.turn.state is before


def test_every_input_of_the_response_has_a_meaning_somewhere():
    assert {what for row in TRANSITIONS.values() for what in row} == set(ResponseInput)


# -- history --------------------------------------------------------------------------------------------------------------


@dataclass
class Entry:
    """A place of the naive model."""

    name: str
    place: Place
    message: ChatMessage | None = None
    is_final: bool = False
    is_shown: bool = False
    round_id: str = ""
    answers: str = ""
    settled_at: float | None = None
    waits: bool = False
    in_context: bool = False
    calls: list[str] = field(default_factory=list)


class HistoryBesideList(RuleBasedStateMachine):
    """`History` beside a list that is searched from the front each time."""

    places = Bundle("places")
    calls = Bundle("calls")

    @initialize()
    def begin(self) -> None:
        self.effects = make_effects()
        self.context = ChatContext()
        self.history = History(self.context.lease("x"), self.effects)
        self.entries: list[Entry] = []
        self.held_since: float | None = None
        self.shown_before = 0
        self.count = 0

    def new_name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def entry_of(self, place: Place) -> Entry | None:
        return next((entry for entry in self.entries if entry.place is place), None)

    def first_hidden(self) -> int:
        return next((index for index, entry in enumerate(self.entries) if not entry.is_shown), len(self.entries))

    def insert(self, index: int, name: str, place: Place) -> Entry:
        entry = Entry(name, place)
        self.entries.insert(index, entry)
        return entry

    @rule(target=places)
    def reserve_at_the_end(self) -> Place:
        name = self.new_name("p")
        place = self.history.reserve(name)
        self.insert(len(self.entries), name, place)
        return place

    @rule(target=places, behind=places)
    def reserve_behind_another(self, behind: Place) -> Place:
        return self.reserve_behind(behind)

    def reserve_behind(self, behind: Place) -> Place:
        name = self.new_name("p")
        known = self.entry_of(behind)
        place = self.history.reserve(name, behind=behind.item_ids[0], at_end=False)
        index = len(self.entries) if known is None or known.answers else self.entries.index(known) + 1
        if known is not None:
            while index < len(self.entries) and self.entries[index].answers:
                index += 1  # results belong to their call
        self.insert(max(index, self.first_hidden()), name, place)
        return place

    @precondition(lambda self: any(entry.is_shown for entry in self.entries))
    @rule(target=places, data=st.data())
    def reserve_behind_what_is_shown(self, data: st.DataObject) -> Place:
        shown = [entry.place for entry in self.entries if entry.is_shown and entry.place.item_ids]
        return self.reserve_behind(data.draw(st.sampled_from(shown)))

    @precondition(lambda self: any(entry.message and not entry.is_shown for entry in self.entries))
    @rule(data=st.data())
    def remove_what_is_held_back(self, data: st.DataObject) -> None:
        hidden = [entry.place for entry in self.entries if entry.message and not entry.is_shown]
        self.remove(data.draw(st.sampled_from(hidden)))

    @rule(place=places)
    def reserve_again(self, place: Place) -> None:
        if self.entry_of(place) is not None:
            assert self.history.reserve(place.item_ids[0]) is place

    @rule(place=places, says=st.sampled_from([True, True, False]), seconds=st.integers(0, 20), shows=st.booleans())
    def settle(self, place: Place, says: bool, seconds: int, shows: bool) -> None:
        self.effects.now += seconds
        entry = self.entry_of(place)
        message = ChatMessage(ChatRole.USER, place.item_ids[0], place.item_ids[0]) if says else None
        self.history.settle(place, message)
        if entry is not None and not entry.is_final:
            entry.message, entry.is_final, entry.settled_at = message, True, self.effects.now
        if shows:
            self.advance()

    @rule(target=calls)
    def call(self) -> Place:
        name = self.new_name("c")
        place = self.history.reserve(name)
        entry = self.insert(len(self.entries), name, place)
        previous = self.entries[-2] if len(self.entries) > 1 else None
        same_round = previous is not None and bool(previous.round_id) and not previous.is_shown and not previous.answers
        entry.round_id = place.round_id = previous.round_id if same_round and previous is not None else f"round-{name}"
        message = ChatMessage(ChatRole.ASSISTANT, "", name, (FunctionCall("f", "{}", name),))
        self.history.settle(place, message)
        entry.message, entry.is_final, entry.settled_at = message, True, self.effects.now
        return place

    @rule(call=consumes(calls))
    def answer(self, call: Place) -> None:
        entry = self.entry_of(call)
        if entry is None:
            return
        message = ChatMessage(ChatRole.TOOL, "out", f"{entry.name}-out", (), entry.name)
        place = self.history.add_result(call, message, (message.message_id,))
        index = self.entries.index(entry)
        in_order = [one.name for one in self.entries if one.round_id == entry.round_id and not one.answers]
        at = index + 1
        while at < len(self.entries) and self.entries[at].round_id == entry.round_id:
            other = self.entries[at]
            if other.answers and in_order.index(other.answers) > in_order.index(entry.name):
                break
            at += 1
        result = self.insert(at, message.message_id, place)
        result.message, result.is_final, result.settled_at = message, True, self.effects.now
        result.round_id, result.answers = entry.round_id, entry.name
        before = self.entries[at - 1]
        if before.is_shown:
            result.is_shown, result.in_context = True, before.in_context

    @rule(place=places)
    def remove_one(self, place: Place) -> None:
        self.remove(place)

    def remove(self, place: Place) -> None:
        entry = self.entry_of(place)
        if entry is None or entry.round_id:
            return
        self.history.remove(place)
        self.entries.remove(entry)

    @rule(place=places)
    def change(self, place: Place) -> None:
        entry = self.entry_of(place)
        if entry is None or entry.message is None:
            return
        changed = ChatMessage(ChatRole.USER, "changed", entry.name)
        self.history.change(place, changed)
        entry.message = changed

    @rule(place=places)
    def leave_the_context(self, place: Place) -> None:
        entry = self.entry_of(place)
        self.history.leave_context([place])
        if entry is not None:
            entry.in_context = False

    @rule(place=places)
    def wait_for_words(self, place: Place) -> None:
        entry = next((one for one in self.entries if not one.is_final), None) or self.entry_of(place)
        if entry is not None and not entry.is_final:
            entry.place.waits_for_transcript = entry.waits = True
            entry.place.said_at = 0.0

    @rule()
    def show(self) -> None:
        self.advance()

    def advance(self) -> None:
        shown = self.history.advance()
        expected = []
        for entry in list(self.entries):
            if entry.is_shown:
                continue
            if not entry.is_final:
                break
            if entry.message is None:
                self.entries.remove(entry)
                continue
            entry.is_shown = entry.in_context = True
            expected.append(entry.place)
        assert shown == expected

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "history"):
            return
        shown = [entry for entry in self.entries if entry.is_shown]
        assert self.history.messages() == [entry.message for entry in shown]
        assert self.history.visible_count == len(shown)
        assert self.context.messages() == [entry.message for entry in shown if entry.in_context]
        hidden = [entry for entry in self.entries if not entry.is_shown]
        assert list(self.history.waiting()) == [entry.place for entry in hidden]
        times = [entry.settled_at for entry in hidden if entry.is_final and entry.message is not None]
        if not times or self.held_since is None or len(shown) != self.shown_before:
            self.held_since = min(times, default=None)  # an eviction does not begin it anew
        self.shown_before = len(shown)
        blocked = bool(hidden) and hidden[0].waits and not hidden[0].is_final
        expected = self.held_since + TRANSCRIPT_PATIENCE_SECONDS if blocked and self.held_since is not None else None
        assert self.history.patience_ends() == expected
        for entry in self.entries:
            assert self.history.find(entry.name) is entry.place


# -- playout ---------------------------------------------------------------------------------------------------------------


class TapeBesideBytes(RuleBasedStateMachine):
    """`AudioTape`, which positions of playout and recordings are cut from, beside plain bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.tape = AudioTape()
        self.whole = b""
        self.start = 0

    @rule(samples=st.integers(0, 40))
    def append(self, samples: int) -> None:
        pcm = bytes((len(self.whole) + index) % 251 for index in range(samples * 2))
        self.tape.append(pcm)
        self.whole += pcm

    @rule(position=st.integers(-5, 300))
    def take_until(self, position: int) -> None:
        end = min(max(position, self.start), len(self.whole) // 2)
        assert self.tape.take_until(position) == self.whole[self.start * 2 : end * 2]
        self.start = end

    @rule(samples=st.integers(0, 60))
    def keep_last(self, samples: int) -> None:
        start = max(self.start, len(self.whole) // 2 - samples)
        assert self.tape.keep_last(samples) == start - self.start
        self.start = start

    @invariant()
    def agrees(self) -> None:
        assert (self.tape.start, self.tape.end) == (self.start, len(self.whole) // 2)
        assert self.tape.copy_all() == self.whole[self.start * 2 :]
        assert len(self.tape) == len(self.whole) // 2 - self.start


# -- retention -------------------------------------------------------------------------------------------------------------


def picture_place(source: str) -> Place:
    place = Place(())
    place.message = ChatMessage(ChatRole.USER, "", "m", source=source)
    return place


class ImageBudgetBesideList(RuleBasedStateMachine):
    """`ImageBudget` beside a list of pictures."""

    @initialize(every_n=st.integers(1, 3), most=st.one_of(st.none(), st.integers(0, 4)))
    def begin(self, every_n: int, most: int | None) -> None:
        self.budget = ImageBudget(Retention(images_every_n=every_n, images_max=most))
        self.every_n, self.most = every_n, most
        self.sent = 0
        self.kept: list[Place] = []

    @rule(source=st.sampled_from(["", "camera", "screen"]), pictures=st.integers(1, 3))
    def send(self, source: str, pictures: int) -> None:
        place = picture_place(source)
        for _ in range(pictures):
            wanted = self.sent % self.every_n == 0 and self.most != 0
            assert self.budget.admit() is wanted
            self.sent += 1
            if not wanted:
                continue
            leaving = self.budget.room()
            expected = [] if self.most is None else self.kept[: max(0, len(self.kept) + 1 - self.most)]
            assert leaving == expected
            del self.kept[: len(expected)]
            self.budget.add(place)
            self.kept.append(place)

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        place = data.draw(st.sampled_from(self.kept))
        assert self.budget.forget(place) == self.kept.count(place)
        self.kept = [kept for kept in self.kept if kept is not place]

    @rule(incoming=st.sampled_from([None, "", "camera"]))
    def cap(self, incoming: str | None) -> None:
        newest = {place.message.source: index for index, place in enumerate(self.kept)}  # type: ignore[union-attr]
        newest.pop(incoming, None)  # type: ignore[arg-type]
        expected = next((index for index in range(len(self.kept)) if index not in newest.values()), None)
        found = self.budget.oldest_but_newest_of_source(incoming)
        if expected is None:
            assert found is None
        else:
            assert found is self.kept.pop(expected)

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "budget"):
            assert (self.budget.kept, self.budget.sent) == (len(self.kept), self.sent)
            assert self.most is None or self.budget.kept <= self.most


class AudioBudgetBesideSums(RuleBasedStateMachine):
    """`AudioBudget` beside sums over lists, in exact fractions of a second."""

    RATES = (16_000, 24_000)

    @initialize(seconds=st.one_of(st.none(), st.sampled_from([0.0, 0.01, 0.05])))
    def begin(self, seconds: float | None) -> None:
        self.budget = AudioBudget(
            Retention(audio="all", audio_max_seconds=seconds), input_rate_hz=16_000, output_rate_hz=24_000
        )
        self.bound = None if seconds is None else round(seconds * 48_000)
        self.finished: list[tuple[Place, int, int]] = []
        self.live: list[tuple[AudioTape, int]] = []

    @rule(is_input=st.booleans())
    def watch(self, is_input: bool) -> None:
        if len(self.live) < 4:
            tape = AudioTape()
            self.budget.watch(tape, is_input=is_input)
            self.live.append((tape, 3 if is_input else 2))

    @precondition(lambda self: self.live)
    @rule(data=st.data(), samples=st.integers(1, 900))
    def record(self, data: st.DataObject, samples: int) -> None:
        data.draw(st.sampled_from(self.live))[0].append(bytes(samples * 2))
        self.bound_it()

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        tape, unit = data.draw(st.sampled_from(self.live))
        self.live = [(other, each) for other, each in self.live if other is not tape]
        self.budget.leave(tape)
        samples, place = len(tape), Place(())
        self.budget.add(place, samples, is_input=unit == 3)
        self.finished.append((place, samples * unit, samples * 2))
        self.bound_it()

    @precondition(lambda self: self.finished)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(self.finished))
        self.budget.forget(gone[0])
        self.finished.remove(gone)

    def total(self) -> int:
        return sum(ticks for _, ticks, _ in self.finished) + sum(len(tape) * unit for tape, unit in self.live)

    def bound_it(self) -> None:
        before = {id(tape): len(tape) for tape, _ in self.live}
        over = 0 if self.bound is None else self.total() - self.bound
        leaving = self.budget.excess()
        expected = []
        while self.finished and over > 0:
            place, ticks, _ = self.finished.pop(0)
            expected.append(place)
            over -= ticks
        assert leaving == expected
        for tape, unit in self.live:
            lost = 0 if over <= 0 else min(before[id(tape)], -(-over // unit))
            assert len(tape) == before[id(tape)] - lost
            over -= lost * unit

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "budget"):
            assert self.budget.ticks == self.total()
            assert self.budget.bytes_kept == sum(size for _, _, size in self.finished)
            assert self.budget.live_bytes == 2 * sum(len(tape) for tape, _ in self.live)
            assert self.bound is None or self.total() <= self.bound


for machine, examples in (
    (SlotBesideModel, 200),
    (TurnBesideTable, 20),
    (HistoryBesideList, 200),
    (TapeBesideBytes, 60),
    (ImageBudgetBesideList, 80),
    (AudioBudgetBesideSums, 80),
):
    machine.TestCase.settings = settings(max_examples=examples, stateful_step_count=40, deadline=None)

TestSlot = SlotBesideModel.TestCase
TestTurn = TurnBesideTable.TestCase
TestHistory = HistoryBesideList.TestCase
TestTape = TapeBesideBytes.TestCase
TestImageBudget = ImageBudgetBesideList.TestCase
TestAudioBudget = AudioBudgetBesideSums.TestCase
