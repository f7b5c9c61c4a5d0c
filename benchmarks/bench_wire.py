"""What a wire message of audio costs, in and out: µs a message, beside json and base64 of the standard library.

Out: 20 ms of a microphone (960 bytes at 24 kHz, 640 at 16 kHz) from `AppendAudio` to the text that is sent. In: 200 ms of reply
(9,600 bytes) from the text that arrives to `OutputAudio`. The named baseline of the same run is the least that any client of the
protocol must do: *json + base64*, `json.dumps` and `json.loads` with `base64.b64encode` and `b64decode`, without a look at
any other field. Each of ours is measured with the extra ``fast`` (if it is installed) and without it.

Run:  python benchmarks/bench_wire.py [--messages 1000]
"""

from __future__ import annotations

import argparse
import base64
import json
import time
from collections.abc import Callable
from typing import Any

from realtime.core.commands import AppendAudio, ConfigureSession
from realtime.wire import gemini as gemini_wire
from realtime.wire import json_fields
from realtime.wire import openai as openai_wire
from realtime.wire.gemini import GeminiOptions, GeminiWire
from realtime.wire.openai import OpenAIWire
from realtime.wire.xai import XaiWire

REPEATS = 15
REPLY = bytes(range(256)) * 37 + bytes(128)
PLAIN = [
    (json_fields, "_fast_loads", None),
    (json_fields, "_fast_decode", None),
    (gemini_wire, "encode_base64", json_fields._plain_encode),
    (openai_wire, "encode_base64", json_fields._plain_encode),
]
"""What stands in the place of what the extra `fast` brings."""
KEPT = [(where, name, getattr(where, name)) for where, name, _ in PLAIN]


def openai_reply() -> str:
    delta = base64.b64encode(REPLY).decode()
    ids = {"event_id": "event_" + "x" * 21, "response_id": "resp_1", "item_id": "item_" + "y" * 21}
    return json.dumps(
        {"type": "response.output_audio.delta", **ids, "output_index": 0, "content_index": 0, "delta": delta}
    )


def gemini_reply() -> bytes:
    blob = {"mimeType": "audio/pcm;rate=24000", "data": base64.b64encode(REPLY).decode()}
    return json.dumps({"serverContent": {"modelTurn": {"parts": [{"inlineData": blob}]}}}).encode()


def begun(wire: Any) -> Any:
    """A connection in mid reply."""
    wire.encode(ConfigureSession(command_id="k"))
    wire.decode(json.dumps({"type": "response.created", "response": {"id": "resp_1"}}))
    return wire


def microseconds(messages: int, *works: Callable[[], object]) -> list[float]:
    """Processor time of the best round of each, a message. They take turns: what the machine does besides is everybody's."""
    best = [float("inf")] * len(works)
    for _ in range(REPEATS):
        for number, work in enumerate(works):
            began = time.process_time()
            for _ in range(messages):
                work()
            best[number] = min(best[number], time.process_time() - began)
    return [seconds / messages * 1e6 for seconds in best]


def slowly(work: Callable[[], object]) -> Callable[[], object]:
    """The same without the extra `fast`."""

    def without() -> object:
        for where, name, function in PLAIN:
            setattr(where, name, function)
        try:
            return work()
        finally:
            for where, name, function in KEPT:
                setattr(where, name, function)

    return without


def baseline_out(pcm: bytes) -> Callable[[], object]:
    def work() -> str:
        audio = base64.b64encode(pcm).decode()
        return json.dumps({"type": "input_audio_buffer.append", "event_id": "a" * 32, "audio": audio})

    return work


def baseline_in(message: str | bytes, path: tuple[Any, ...]) -> Callable[[], object]:
    def work() -> bytes:
        value = json.loads(message)
        for key in path:
            value = value[key]
        return base64.b64decode(value)

    return work


def ours(wire: Any, pcm: bytes, message: str | bytes) -> tuple[Callable[[], object], Callable[[], object]]:
    command = AppendAudio(command_id="a" * 32, pcm=pcm)
    return (lambda: wire.encode(command)), (lambda: wire.decode(message))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1000, help="in each round")
    messages = parser.parse_args().messages
    openai, gemini = openai_reply(), gemini_reply()
    gemini_path = ("serverContent", "modelTurn", "parts", 0, "inlineData", "data")
    rows: list[tuple[str, Any, bytes, Any, Any]] = [
        ("OpenAI", begun(OpenAIWire()), bytes(960), openai, ("delta",)),
        ("xAI", begun(XaiWire()), bytes(960), openai, ("delta",)),
        ("Gemini", begun(GeminiWire(GeminiOptions(model="m"), prefix="g")), bytes(640), gemini, gemini_path),
    ]
    has_fast = json_fields._fast_loads is not None and json_fields._fast_decode is not None
    print(f"{'':34}{'out, µs':>10}{'ratio':>8}{'in, µs':>10}{'ratio':>8}")
    for name, wire, pcm, message, path in rows:
        work_out, work_in = ours(wire, pcm, message)
        outs = microseconds(messages, baseline_out(pcm), slowly(work_out), work_out)
        ins = microseconds(messages, baseline_in(message, path), slowly(work_in), work_in)
        for label, out, into in zip(("json + base64", "ours", "ours with fast"), outs, ins, strict=True):
            if has_fast or label != "ours with fast":
                print(f"{f'{name}, {label}':34}{out:10.1f}{out / outs[0]:8.2f}{into:10.1f}{into / ins[0]:8.2f}")
    if not has_fast:
        print("the extra `fast` is not installed: pip install 'realtime-session[fast]'")


if __name__ == "__main__":
    main()
