"""The whole machine beside a naive model: after every step the history is what the model recomputes from the beginning.

The model is a list of slots in the order of the provider's conversation. What is shown is everything before the first slot
that is not final, with each tool's result beside its call (H0–H3, P0, P1, T2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from realtime.chat.window import ContextWindow
from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.history import TRANSCRIPT_PATIENCE_SECONDS
from realtime.core.settings import FrameSampling, Retention, ToolSpec

WORD_MS = 100
MOST_IMAGES = 2


@dataclass
class Slot:
    """One place of the naive model."""

    name: str
    text: str | None = None
    """What it shows; None: nothing."""
    is_final: bool = False
    settled_at: float = 0.0
    waits_since: float | None = None
    """When the user had said it, if its words are missing."""
    kind: str = ""
    """`call`, `result`, or anything else."""
    response: str = ""
    """Whose call or result."""
    answers: str = ""
    """Which call a result answers."""
    is_answered: bool = False
    """Whether a call has its result."""


@dataclass
class Speaking:
    """The reply that is being made or played."""

    response: str
    slot: Slot
    words: list[str]
    heard: int = 0
    is_over: bool = False


class MachineBesideModel(RuleBasedStateMachine):
    """A call, one step after the other."""

    make_rig: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.rig = type(self).make_rig(
            tools=(ToolSpec(name="weather"),),
            sampling=FrameSampling(fps_idle=1.0),
            retention=Retention(images_max=MOST_IMAGES),
            window=ContextWindow(max_tool_calls_per_turn=1_000),
        )
        self.slots: list[Slot] = []
        self.replies: list[Speaking] = []
        self.blocker: Slot | None = None
        self.held_since: float | None = None
        self.count = 0
        self.snapshot: list[str] = []
        self.asked = 0
        self.is_unwanted = False

    # -- the model --------------------------------------------------------------------------------------------------

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def add(self, slot: Slot) -> Slot:
        self.slots.append(slot)
        return slot

    def settle(self, slot: Slot, text: str | None) -> None:
        if not slot.is_final:
            slot.is_final, slot.text, slot.settled_at, slot.waits_since = True, text, self.rig.now, None

    def track(self) -> None:
        """Since when the first slot that is not final holds something back."""
        blocker = next((slot for slot in self.slots if not slot.is_final), None)
        present = self.present()
        behind = [] if blocker is None else present[present.index(blocker) :]
        times = [slot.settled_at for slot in behind if slot.is_final and slot.text is not None]
        if blocker is not self.blocker or not times or self.held_since is None:
            self.held_since = min(times, default=None)
        self.blocker = blocker

    def expire(self, now: float) -> None:
        """H2: whoever holds back what is final behind it does so for thirty seconds."""
        while True:
            self.track()
            if self.blocker is None or self.blocker.waits_since is None or self.held_since is None:
                return
            at = max(self.held_since, self.blocker.waits_since) + TRANSCRIPT_PATIENCE_SECONDS
            if at > now:
                return
            blocker = self.blocker
            blocker.is_final, blocker.text, blocker.settled_at, blocker.waits_since = True, "u:", at, None

    def running(self) -> Speaking | None:
        return next((reply for reply in self.replies if not reply.is_over), None)

    def cut(self, reply: Speaking) -> None:
        """P1: what was heard is what was said."""
        heard = reply.words[: reply.heard]
        self.settle(reply.slot, "a:" + " ".join(heard) if heard else None)
        self.replies.remove(reply)

    def present(self) -> list[Slot]:
        """The slots that are or will be something: neither evicted nor known to be nothing."""
        frames = [slot for slot in self.slots if slot.is_final and slot.text == "frame"]
        evicted = frames[: max(0, len(frames) - MOST_IMAGES)]
        hidden = next((index for index, slot in enumerate(self.slots) if not slot.is_final), len(self.slots))
        return [
            slot
            for index, slot in enumerate(self.slots)
            if slot not in evicted and not (index < hidden and slot.text is None)
        ]

    def expected(self) -> list[str]:
        names: list[str] = []
        for slot in self.present():
            if not slot.is_final:
                break
            if slot.text is not None:
                names.append(slot.text)
        return names

    def put_result(self, call: Slot) -> None:
        """Beside its call: behind the calls in a row with it, and the results of those before it."""
        present = self.present()
        at = present.index(call)
        passed: set[str] = set()
        while at + 1 < len(present) and present[at + 1].response == call.response:
            follower = present[at + 1]
            if follower.kind == "result" and follower.answers in passed:
                break
            if follower.kind == "call":
                passed.add(follower.name)
            at += 1
        text = f"result:{call.name}"
        result = Slot(
            text, text, is_final=True, settled_at=self.rig.now, kind="result", answers=call.name, response=call.response
        )
        self.slots.insert(self.slots.index(present[at]) + 1, result)
        call.is_answered = True

    # -- the user ---------------------------------------------------------------------------------------------------

    @rule(fate=st.sampled_from(["now", "late", "failed"]), ms=st.sampled_from([20, 200]))
    def says(self, fate: str, ms: int) -> None:
        item = self.name("u")
        self.rig.begin_speech(item)
        running = self.running()
        for reply in list(self.replies):
            self.cut(reply)
        if running is not None:
            self.rig.end_reply(running.response, None, status="cancelled")
        self.rig.hear(ms)
        self.rig.end_speech(item)
        slot = self.add(Slot(item, waits_since=self.rig.now))
        if fate == "now":
            self.hears_words(slot)
        elif fate == "failed":
            self.rig.feed(said.InputTranscriptFailed(item_id=item))
            self.settle(slot, "u:")

    def hears_words(self, slot: Slot) -> None:
        self.rig.transcribe(slot.name, f"said {slot.name}")
        self.settle(slot, f"u:said {slot.name}")

    @precondition(lambda self: any(slot.name.startswith("u") for slot in self.slots))
    @rule(data=st.data())
    def transcript_comes(self, data: st.DataObject) -> None:
        """In time, late, or too late."""
        self.hears_words(data.draw(st.sampled_from([slot for slot in self.slots if slot.name.startswith("u")])))

    @rule()
    def types(self) -> None:
        text = self.name("t")
        self.rig.machine.send([text], respond=False, now=self.rig.now)
        self.rig.pull()
        self.settle(self.add(Slot(text)), f"u:{text}")

    @rule()
    def shows(self) -> None:
        self.rig.wait(1.5)
        self.expire(self.rig.now)
        self.count += 1
        assert self.rig.frame(self.count).action == "keep"
        self.rig.pull()
        self.settle(self.add(Slot(f"f{self.count}")), "frame")

    @rule(seconds=st.sampled_from([1, 10, 31]))
    def waits(self, seconds: int) -> None:
        running = self.running()
        if running is not None and seconds > 20:
            return  # the watch over responses that never end has its own tests
        self.rig.wait(seconds)
        self.expire(self.rig.now)

    # -- the model of the provider's ----------------------------------------------------------------------------------

    @precondition(lambda self: self.running() is None)
    @rule(words=st.integers(1, 6))
    def reply_begins(self, words: int) -> None:
        response, item = self.name("r"), self.name("a")
        reply = Speaking(response, self.add(Slot(item)), [f"{item}w{index}" for index in range(words)])
        self.replies.append(reply)
        self.rig.start_reply(response, item)
        times = tuple((f" {word}", WORD_MS * (index + 1)) for index, word in enumerate(reply.words))
        self.rig.feed(said.OutputWords(response_id=response, item_id=item, words=times))
        self.rig.speak(response, item, " ".join(reply.words), ms=WORD_MS * words)
        self.rig.feed(said.OutputItemDone(response_id=response, item_id=item))
        self.asked = len(self.rig.sent_of(do.CreateResponse))
        if self.is_unwanted:  # it was asked for before the interruption
            self.is_unwanted = False
            self.cut(reply)
            assert isinstance(self.rig.pull()[-1], do.CancelResponse)
            self.rig.end_reply(response, None, status="cancelled")

    @precondition(lambda self: self.running() is not None)
    @rule(is_repeated=st.booleans())
    def calls(self, is_repeated: bool) -> None:
        reply, call = self.running(), self.name("c")
        assert reply is not None
        for _ in range(1 + is_repeated):
            self.rig.call_tool(reply.response, f"x{call}", call, "weather")
        self.settle(self.add(Slot(call, kind="call", response=reply.response)), f"call:{call}")

    @precondition(lambda self: any(slot.kind == "call" for slot in self.slots))
    @rule(data=st.data())
    def tool_answers(self, data: st.DataObject) -> None:
        """Once; a second answer changes nothing (T2)."""
        call = data.draw(st.sampled_from([slot for slot in self.slots if slot.kind == "call"]))
        if not call.is_answered:
            self.put_result(call)
        self.rig.answer_tool(call.name, "out")
        self.rig.pull()

    @precondition(lambda self: self.replies)
    @rule(words=st.integers(1, 3))
    def plays(self, words: int) -> None:
        reply = self.replies[0]
        reply.heard = min(len(reply.words), reply.heard + words)
        self.rig.play(reply.response, reply.heard * WORD_MS)

    @precondition(lambda self: self.running() is not None)
    @rule()
    def response_ends(self) -> None:
        reply = self.running()
        assert reply is not None
        self.rig.end_reply(reply.response, None)
        reply.is_over = True
        self.rig.pull()

    @precondition(lambda self: any(reply.is_over for reply in self.replies))
    @rule()
    def plays_out(self) -> None:
        reply = next(reply for reply in self.replies if reply.is_over)
        self.rig.play(reply.response, len(reply.words) * WORD_MS, finished=True)
        self.settle(reply.slot, "a:" + " ".join(reply.words))
        self.replies.remove(reply)

    @precondition(lambda self: self.replies)
    @rule()
    def is_interrupted(self) -> None:
        running = self.running()
        self.rig.machine.interrupt(now=self.rig.now)
        self.rig.drain()
        for reply in list(self.replies):
            self.cut(reply)
        if running is not None:
            self.rig.end_reply(running.response, None, status="cancelled")
        elif len(self.rig.sent_of(do.CreateResponse)) > self.asked:
            self.is_unwanted = True
        self.rig.pull()  # what is asked for from now on is asked for before the next reply begins

    # -- the line -------------------------------------------------------------------------------------------------------

    @precondition(lambda self: all(slot.is_final or slot.name.startswith("a") for slot in self.slots))
    @rule(seconds=st.integers(0, 3))
    def line_breaks(self, seconds: int) -> None:
        """While nothing is waited for: what the provider had not understood would have to be said again."""
        running = self.running()
        self.rig.pull()
        self.rig.drop()
        if running is not None:
            self.cut(running)
        self.rig.wait(seconds)
        self.rig.connect()
        self.is_unwanted = False

    # -- agreement --------------------------------------------------------------------------------------------------------

    @invariant()
    def agrees(self) -> None:
        self.track()
        names = self.rig.names()
        assert names == self.expected()
        assert self.rig.context.messages() == self.rig.machine.messages()
        without = [name for name in names if not name.startswith("result:") or name in self.snapshot]
        kept = [name for name in self.snapshot if name != "frame"]
        assert [name for name in without if name != "frame"][: len(kept)] == kept
        self.snapshot = names
        outputs = [command.message.tool_call_id for command in self.rig.sent_of(do.CreateItem)]
        answered = [event.call_id for event in self.rig.of(seen.ToolFinished)]
        assert len(answered) == len(set(answered))
        runs = [command.call_id for command in self.rig.local_of(do.RunTool)]
        assert sorted(runs) == sorted(slot.name for slot in self.slots if slot.kind == "call")
        assert {slot.name for slot in self.slots if slot.is_answered} == set(answered) <= set(outputs)

    def teardown(self) -> None:
        """H7: at the close every open turn is recorded with what it has, in place; no call is left dangling."""
        for reply in list(self.replies):
            self.cut(reply)
        for call in [slot for slot in self.slots if slot.kind == "call" and not slot.is_answered]:
            self.put_result(call)
        for slot in self.slots:
            self.settle(slot, "u:" if slot.name.startswith("u") else None)
        self.rig.machine.close(now=self.rig.now)
        self.rig.drain()
        assert self.rig.names() == self.expected()
        assert isinstance(self.rig.events[-1], seen.SessionEnded)
        assert len(self.rig.of(seen.SessionEnded)) == 1


def test_every_step_of_a_call_agrees_with_the_model(make_rig):
    MachineBesideModel.make_rig = staticmethod(make_rig)
    run_state_machine_as_test(
        MachineBesideModel, settings=settings(max_examples=100, stateful_step_count=40, deadline=None)
    )
