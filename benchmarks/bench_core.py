"""Events per second through the session's machine, and what a turn costs early and late in a long call.

No loop, socket or codec: the machine alone, fed as the driver feeds it (feed, drain commands and events, look at the
timer). A turn is a spoken sentence of 0.6 s, a picture, a spoken reply of 1 s with its words, and every fourth turn a tool
call. The named baseline of the same run is *making the events*: the same reports built and told apart by type, and not fed.

Run:  python benchmarks/bench_core.py [--turns 10000]
"""

from __future__ import annotations

import argparse
import gc
import itertools
import time
from collections.abc import Iterator

from realtime.chat.context import ChatContext
from realtime.chat.messages import ImageContent
from realtime.chat.window import ContextWindow
from realtime.core import model_events as said
from realtime.core.capabilities import ModelCapabilities
from realtime.core.commands import CreateItem
from realtime.core.machine import SessionMachine
from realtime.core.sampling import FrameFacts
from realtime.core.settings import FrameSampling, Retention, SessionSettings, ToolSpec

CHUNK = bytes(20 * 24 * 2)
REPLY = bytes(100 * 24 * 2)
PICTURE = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffc0000b080010001001011100ffc4001400010000000000000000000000000000000000ffda"
    "0008010100003f00d2cf20ffd9"
)
WINDOW = 50
"""Turns that are measured together."""


def speech(turn: int, at_ms: int) -> Iterator[said.ModelEvent]:
    """What a provider says of a spoken sentence."""
    item = f"u{turn}"
    yield said.SpeechBegan(item_id=item, at_ms=at_ms)
    yield said.SpeechEnded(item_id=item, at_ms=at_ms + 600)
    yield said.InputCommitted(item_id=item)
    yield said.ItemAdded(item_id=item, kind="message", role="user", has_place=False)
    yield said.InputTranscriptUpdated(item_id=item, delta="what do you see ")
    yield said.InputTranscriptDone(item_id=item, text="what do you see now")


def call(turn: int) -> Iterator[said.ModelEvent]:
    """What a provider says of a response that calls a tool."""
    response, item = f"c{turn}", f"f{turn}"
    yield said.ResponseStarted(response_id=response)
    yield said.OutputItemStarted(response_id=response, item_id=item, kind="function_call")
    yield said.ItemAdded(item_id=item, kind="function_call", has_place=False, call_id=item)
    yield said.ToolCallDone(response_id=response, item_id=item, call_id=item, name="look_up", arguments="{}")
    yield said.ResponseEnded(response_id=response)


def reply(turn: int) -> Iterator[said.ModelEvent]:
    """What a provider says of a spoken reply."""
    response, item = f"r{turn}", f"a{turn}"
    yield said.ResponseStarted(response_id=response)
    yield said.OutputItemStarted(response_id=response, item_id=item, kind="message")
    yield said.ItemAdded(item_id=item, kind="message", role="assistant", has_place=False)
    for _ in range(10):
        yield said.OutputTextUpdated(response_id=response, item_id=item, delta="a word ", spoken=True)
        yield said.OutputAudio(response_id=response, item_id=item, pcm=REPLY)
    yield said.OutputTextDone(response_id=response, item_id=item, text="a word " * 10, spoken=True)
    yield said.OutputItemDone(response_id=response, item_id=item)
    usage = said.TokenUsage(input_tokens=900, output_tokens=30, total_tokens=930)
    yield said.ResponseEnded(response_id=response, usage=usage)


class Caller:
    """A machine and its simulated time."""

    def __init__(self, *, max_tokens: int | None) -> None:
        ids = itertools.count()
        self.now = 0.0
        self.fed = 0
        self.machine = SessionMachine(
            SessionSettings(
                tools=(ToolSpec(name="look_up"),),
                window=ContextWindow(max_tokens=max_tokens),
                retention=Retention(audio="all", audio_max_seconds=60, max_history_messages=1_000_000),
                sampling=FrameSampling(min_change=0, fps_idle=1.0),
            ),
            ModelCapabilities(),
            ChatContext.empty(),
            make_id=lambda: f"id{next(ids)}",
        )
        self.feed(said.SessionReady())
        self.machine.receive_link_restored(now=self.now)
        self.drain()

    def feed(self, event: said.ModelEvent) -> None:
        """As the driver: one step."""
        self.machine.receive_model_event(event, now=self.now)
        self.drain()

    def drain(self) -> None:
        """Whatever the machine decided."""
        machine = self.machine
        self.fed += 1
        while machine.next_command() is not None or machine.next_event() is not None:
            pass
        while (command := machine.next_link_command(now=self.now)) is not None:
            machine.receive_command_done(command.command_id, now=self.now)
            self.fed += 2
            if isinstance(command, CreateItem):
                role = "user" if not command.message.tool_call_id else None
                kind = "message" if role else "function_call_output"
                added = said.ItemAdded(item_id=command.item_ids[0], kind=kind, role=role, has_place=False)
                machine.receive_model_event(added, now=self.now)
                self.fed += 1
        machine.get_deadline()

    def turn(self, number: int) -> None:
        """One turn of each side."""
        machine = self.machine
        facts = FrameFacts(
            frame_id=number,
            source="camera",
            captured_at=self.now,
            pts_ms=round(self.now * 1000),
            width=640,
            height=480,
            thumbprint=bytes([number % 256]) * 1024,
        )
        if machine.receive_frame(facts, now=self.now).action == "keep":
            image = ImageContent.from_bytes(PICTURE, "image/jpeg")
            machine.receive_image(source="camera", frame_id=number, image=image, now=self.now)
        self.drain()
        for _ in range(30):
            machine.receive_audio(CHUNK, now=self.now)
            self.now += 0.02
            self.drain()
        for event in speech(number, machine.statistics().audio_sent_ms - 600):
            self.feed(event)
        if number % 4 == 0:
            for event in call(number):
                self.feed(event)
            machine.receive_tool_output(f"f{number}", "found", now=self.now)
            self.drain()
        for event in reply(number):
            self.feed(event)
        for played in range(20, 1001, 20):
            machine.receive_played(f"r{number}", played, finished=played == 1000, now=self.now)
            self.now += 0.02
            self.drain()


def time_events_alone(turns: int) -> float:
    """The baseline: seconds a turn for making its reports and telling them apart."""
    count = 0
    begun = time.perf_counter()
    for number in range(turns):
        for event in itertools.chain(speech(number, 0), call(number) if number % 4 == 0 else (), reply(number)):
            match event:
                case said.OutputAudio() | said.OutputTextUpdated():
                    count += 1
                case _:
                    count += 2
    assert count
    return (time.perf_counter() - begun) / turns


def measure(turns: int, *, max_tokens: int | None) -> tuple[float, float, float]:
    """One call. Returns: seconds a turn about turn 100, seconds a turn at the end, feeds a second over all."""
    caller = Caller(max_tokens=max_tokens)
    marks: dict[int, float] = {}
    gc.collect()
    gc.freeze()
    begun = time.perf_counter()
    for number in range(turns):
        marks[number] = time.perf_counter()
        caller.turn(number)
    ended = time.perf_counter()
    early = sorted(marks[number + 1] - marks[number] for number in range(100 - WINDOW // 2, 100 + WINDOW // 2))
    late = sorted(marks[number + 1] - marks[number] for number in range(turns - WINDOW - 1, turns - 1))
    return early[WINDOW // 2], late[WINDOW // 2], caller.fed / (ended - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=10_000, help="how long the calls are, at least 200")
    turns = max(200, parser.parse_args().turns)
    alone = time_events_alone(1_000)
    print(f"{'':<34} {'feeds/s':>10} {'turn 100':>10} {'turn ' + str(turns):>12} {'ratio':>7}")
    print(f"{'making the events (baseline)':<34} {'':>10} {alone * 1e3:>7.2f} ms {alone * 1e3:>9.2f} ms {1:>7.2f}")
    for name, max_tokens in (("machine, window of 4000 tokens", 4_000), ("machine, no window", None)):
        early, late, rate = measure(turns, max_tokens=max_tokens)
        print(f"{name:<34} {rate:>10,.0f} {early * 1e3:>7.2f} ms {late * 1e3:>9.2f} ms {late / early:>7.2f}")


if __name__ == "__main__":
    main()
