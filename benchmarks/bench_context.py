"""What a message costs in contexts of 100 to 100,000 messages: appended, counted, trimmed, converted.

Baseline, *recount*: the same rules on a plain list of the same messages, as a simple library does it: every question goes
through the whole list. Both take turns in one run; times are processor time, the best of several rounds. One operation is
one more message and what the row says.

The goal: an operation on 100,000 messages costs at most three times what it costs on 1,000, and after one more message only
that one is converted again. A converted list is the caller's own to change, so handing it out is a copy: its cost is given
per message, and it is a fraction of converting.

Run:  python benchmarks/bench_context.py [--sizes 100 1000 10000 100000] [--rounds 5] [--check]
With --check it ends with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from realtime.chat import ChatContext, ChatMessage, ContextWindow, ImageContent
from realtime.chat.formats.conversion import Conversion
from realtime.chat.formats.openai import to_openai_messages

GOAL = 3.0
"""Cost at the largest size against that at 1,000 messages."""
OPERATIONS = 200
PICTURE = ImageContent.from_bytes(b"\xff\xd8 a picture", "image/jpeg", "low")


def words(number: int) -> ChatMessage:
    return ChatMessage(
        "assistant" if number % 2 else "user", f"What do you see on the table, number {number}?", f"m{number}"
    )


def monologue(number: int) -> ChatMessage:
    return ChatMessage("user", f"And another thing, number {number}.", f"m{number}")


def camera(number: int) -> ChatMessage:
    if number % 10:
        return ChatMessage("user", "", f"m{number}", images=[PICTURE], source="camera")
    return ChatMessage("assistant" if number % 20 else "user", f"What do you see now, number {number}?", f"m{number}")


def tools(number: int) -> ChatMessage:
    match number % 4:
        case 1:
            return ChatContext().add_function_call("look", "{}", f"c{number}", f"m{number}")
        case 2:
            return ChatContext().add_function_output("look", "found", f"c{number - 1}", message_id=f"m{number}")
        case _:
            return words(number)


# -- the baseline -------------------------------------------------------------------------------------------------------


class Recount:
    """The same answers from a plain list."""

    def __init__(self, messages: list[ChatMessage], window: ContextWindow) -> None:
        self.messages = messages
        self.window = window

    def append(self, message: ChatMessage) -> None:
        """At the end."""
        self.messages.append(message)

    def count(self) -> int:
        """Tokens and turns."""
        turns = sum(message.role == "user" for message in self.messages)
        return turns + sum(map(self.window.count_message, self.messages))

    def apply(self) -> None:
        """Frames first, then the oldest words; tool rounds are not even looked at."""
        tokens = [self.window.count_message(message) for message in self.messages]
        left, limit = sum(tokens), self.window.max_tokens or 0
        if left <= limit:
            return
        starts = [
            at
            for at, message in enumerate(self.messages)
            if at == 0 or (message.role == "user") != (self.messages[at - 1].role == "user")
        ]
        recent = starts[-self.window.keep_recent_turns :][0]
        frames = [at for at, message in enumerate(self.messages) if message.is_frame]
        gone: set[int] = set()
        for at in [*frames[: -self.window.keep_recent_frames or None], *range(recent)]:
            if left <= limit:
                break
            if at not in gone:
                gone.add(at)
                left -= tokens[at]
        self.messages = [message for at, message in enumerate(self.messages) if at not in gone]

    def convert(self) -> None:
        """All of it."""
        to_openai_messages(self.messages)


# -- measuring ----------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """One operation: made for a context of a size, ours and the baseline's."""

    name: str
    message: Callable[[int], ChatMessage]
    ours: Callable[[ChatContext, ContextWindow, ChatMessage], object]
    theirs: Callable[[Recount, ChatMessage], object]
    window: Callable[[int], ContextWindow]


def whole(tokens: int) -> ContextWindow:
    return ContextWindow(max_tokens=tokens, keep_recent_turns=3)


def short(tokens: int) -> ContextWindow:
    return ContextWindow(max_tokens=tokens // 2, keep_recent_turns=3)


def append_and_count(context: ChatContext, window: ContextWindow, message: ChatMessage) -> int:
    context.append(message)
    return window.count(context) + context.turn_count()


def append_and_apply(context: ChatContext, window: ContextWindow, message: ChatMessage) -> object:
    context.append(message)
    return window.apply(context)


def recount_append_and_count(baseline: Recount, message: ChatMessage) -> int:
    baseline.append(message)
    return baseline.count()


def recount_append_and_apply(baseline: Recount, message: ChatMessage) -> object:
    baseline.append(message)
    return baseline.apply()


ROWS = [
    Row("append", words, lambda context, _window, one: context.append(one), Recount.append, whole),
    Row("append, count tokens and turns", words, append_and_count, recount_append_and_count, whole),
    Row("append, trim: words", words, append_and_apply, recount_append_and_apply, whole),
    Row("append, trim: tool rounds", tools, append_and_apply, recount_append_and_apply, whole),
    Row("append, trim: nine frames a sentence", camera, append_and_apply, recount_append_and_apply, whole),
    Row("append, trim: one long turn over budget", monologue, append_and_apply, recount_append_and_apply, short),
]


def timed(work: Callable[[ChatMessage], object], messages: list[ChatMessage]) -> float:
    """Microseconds for one message."""
    start = time.process_time()
    for message in messages:
        work(message)
    return (time.process_time() - start) / len(messages) * 1e6


def measure(row: Row, size: int, rounds: int) -> tuple[float, float]:
    """Ours and the baseline's microseconds for one operation, the best of the rounds."""
    messages = [row.message(number) for number in range(size)]
    context = ChatContext(messages)
    window = row.window(ContextWindow().count(context))
    window.apply(context)
    baseline = Recount(context.messages(), window)
    window.count(context)
    best = [float("inf"), float("inf")]
    number = size
    few = max(1, min(OPERATIONS, 20_000 // size))  # the baseline takes its time
    for _ in range(rounds):
        more = [row.message(at) for at in range(number, number + OPERATIONS)]
        number += OPERATIONS
        best[0] = min(best[0], timed(lambda one: row.ours(context, window, one), more))
        best[1] = min(best[1], timed(lambda one: row.theirs(baseline, one), more[:few]))
    return best[0], best[1]


def measure_conversion(size: int, rounds: int) -> tuple[float, float, float, int]:
    """Nanoseconds a message: converted afresh, by the baseline after one more, by ours after one more; units converted."""
    context = ChatContext(tools(number) for number in range(size))
    baseline = Recount(context.messages(), ContextWindow())
    counted: list[int] = []
    convert = Conversion._convert
    cold = theirs = ours = float("inf")
    for turn in range(rounds):
        afresh = context.copy()
        start = time.process_time()
        afresh.to_openai_messages()
        cold = min(cold, time.process_time() - start)
        context.to_openai_messages()
        one = words(size + turn)
        context.append(one)
        baseline.append(one)
        start = time.process_time()
        context.to_openai_messages()
        ours = min(ours, time.process_time() - start)
        start = time.process_time()
        baseline.convert()
        theirs = min(theirs, time.process_time() - start)
    context.append(words(size + rounds))
    Conversion._convert = lambda self, content: counted.append(1) or convert(self, content)  # type: ignore[method-assign]
    context.to_openai_messages()
    Conversion._convert = convert  # type: ignore[method-assign]
    return cold / size * 1e9, theirs / size * 1e9, ours / size * 1e9, len(counted)


def faster(ratio: float) -> str:
    return f"{ratio:,.0f}×" if ratio >= 10 else f"{ratio:.2g}×"


def report_operations(sizes: list[int], rounds: int) -> bool:
    met = True
    print("One operation, microseconds (and how many times faster than recounting)\n")
    print(f"{'':40}" + "".join(f"{size:>18,}" for size in sizes) + f"{'last / 1,000':>14}")
    for row in ROWS:
        cells, costs = [], {}
        for size in sizes:
            ours, theirs = measure(row, size, rounds)
            costs[size] = ours
            cells.append(f"{ours:8.1f} ({faster(theirs / ours):>7})")
        ratio = costs[sizes[-1]] / costs.get(1000, costs[sizes[0]])
        met = met and ratio <= GOAL
        print(f"{row.name:40}" + "".join(f"{cell:>18}" for cell in cells) + f"{ratio:13.2f}×")
    return met


def report_conversions(sizes: list[int], rounds: int) -> bool:
    met = True
    print("\nTo OpenAI's messages, nanoseconds a message of the context\n")
    print(
        f"{'messages':>10}{'afresh':>10}{'one more, afresh':>18}{'one more, kept':>16}{'faster':>9}{'units converted':>17}"
    )
    costs: dict[int, tuple[float, float]] = {}
    for size in sizes:
        cold, theirs, ours, units = measure_conversion(size, rounds)
        costs[size] = cold, ours
        met = met and units == 1
        print(f"{size:10,}{cold:10,.0f}{theirs:18,.0f}{ours:16,.0f}{theirs / ours:8.1f}×{units:17}")
    for at, name in enumerate(("afresh", "one more, kept")):
        ratio = costs[sizes[-1]][at] / costs.get(1000, costs[sizes[0]])[at]
        met = met and ratio <= GOAL
        print(f"{name}: a message at {sizes[-1]:,} costs {ratio:.2f}× that at 1,000")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    gc.collect()
    met = report_operations(options.sizes, options.rounds)
    met = report_conversions(options.sizes, options.rounds) and met
    print(
        f"\n{'met' if met else 'MISSED'}: at most {GOAL:g}× from 1,000 to the last size, one unit for one more message"
    )
    return int(options.check and not met)


if __name__ == "__main__":
    sys.exit(main())
