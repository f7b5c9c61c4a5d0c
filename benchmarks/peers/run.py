"""The same vision call through `realtime`, plain aiortc, Pipecat's SmallWebRTC transport and FastRTC, in one go.

Each is called by the same user in another process (Opus, VP8 720p30 at 1.5 Mbit/s, packets encoded before), hears the user at 24 kHz,
turns one picture a second into a 1024×1024 JPEG, and speaks without a pause. Counted is processor time of the called process, threads
included, per second of call. Ours is measured twice: the media path alone, which is as much as the others' transports do, and the whole
session, with the conversation and the model's wire messages. The others run in environments of their own, made on the first run; they turn pictures into JPEGs with Pillow.
The sides take turns, on the same kind of event loop, and the median of the rounds counts.

Run:  python benchmarks/peers/run.py [--calls 3] [--seconds 8] [--rounds 3] [--only session,plain,…] [--loop uvloop] [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENTS = Path(os.environ.get("BENCHMARK_ENVIRONMENTS", HERE / ".environments"))
ATTEMPTS = 4
WHOLE = 0.9
"""Of the sound that was said and of the pictures that were due; else the round does not count."""
GOALS = {"plain": 5.0, "pipecat": 8.0, "fastrtc": 8.0}
"""How many times as much each of them takes, at least."""
BASES = ("media", "session")
"""Ours, which they are compared with."""


@dataclass(frozen=True)
class Side:
    """One that is called."""

    key: str
    name: str
    script: str
    environment: str = ""
    way: str = ""


SIDES = [
    Side("media", "realtime.tracks + realtime.media", "media_call.py", way="ours"),
    Side("session", "realtime.RealtimeSession", "session_call.py"),
    Side("plain", "plain aiortc + Pillow", "media_call.py", way="plain"),
    Side("pipecat", "Pipecat SmallWebRTC", "pipecat_call.py", environment="pipecat"),
    Side("fastrtc", "FastRTC", "fastrtc_call.py", environment="fastrtc"),
]


def interpreter_of(side: Side) -> str:
    """The interpreter of a side's environment, which is made if it is not there."""
    if not side.environment:
        return sys.executable
    home = ENVIRONMENTS / side.environment
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = home / "ready"
    requirements = HERE / f"requirements-{side.environment}.txt"
    if not ready.exists() or ready.read_text() != requirements.read_text():
        print(f"making the environment of {side.name}", file=sys.stderr)
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", requirements], check=True)
        ready.write_text(requirements.read_text())
    return str(python)


def measure(side: Side, loop: str, calls: int, seconds: float, whole: float) -> dict[str, Any]:
    """Call one side; its figures. A run in which the machine was too busy for the work does not count."""
    command = [interpreter_of(side), str(HERE / side.script), sys.executable, str(calls), str(seconds)]
    environment = {**os.environ, "BENCHMARK_LOOP": loop, "BENCHMARK_WAY": side.way}
    for _ in range(ATTEMPTS):
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        figures = json.loads(done.stdout.splitlines()[-1])
        if figures["heard"] >= whole and figures["pictures"] >= whole:
            return figures
        print(f"{side.name}: heard {figures['heard']:.2f}, {figures['pictures']:.2f} pictures; again", file=sys.stderr)
    raise SystemExit(f"{side.name} could not do the work: is the machine busy?")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3, help="at once")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="keys, separated by commas")
    parser.add_argument("--whole", type=float, default=WHOLE, help="the share of the work that a round must have done")
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio", help="what all of them run on")
    parser.add_argument("--check", action="store_true", help="end with 1 if a goal is missed")
    given = parser.parse_args()
    wanted = given.only.split(",") if given.only else [side.key for side in SIDES]
    sides = [side for side in SIDES if side.key in wanted]
    rounds: dict[str, list[dict[str, Any]]] = {side.key: [] for side in sides}
    for _ in range(given.rounds):
        for side in sides:
            rounds[side.key].append(measure(side, given.loop, given.calls, given.seconds, given.whole))
    cost = {key: statistics.median(each["cpu_ms"] for each in found) for key, found in rounds.items()}
    print(
        "| | CPU ms per second | times media | times session | heard s/s | pictures/s | loop lag p50 / p99 / p99.9 ms | memory MB |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for side in sides:
        found = rounds[side.key]
        times = " | ".join(f"{cost[side.key] / cost[base]:.1f}" if base in cost else "" for base in BASES)
        heard, pictures, memory = (
            statistics.median(each[name] for each in found) for name in ("heard", "pictures", "rss_mb")
        )
        lag = " / ".join(f"{statistics.median(each['lag_ms'][at] for each in found):.1f}" for at in range(3))
        print(f"| {side.name} | {cost[side.key]:.1f} | {times} | {heard:.2f} | {pictures:.2f} | {lag} | {memory:.0f} |")
    missed = [
        f"missed: {key}: {cost[key] / cost[base]:.1f} times {base}, wanted {goal:g}"
        for base in BASES
        for key, goal in GOALS.items()
        if key in cost and base in cost and cost[key] / cost[base] < goal
    ]
    for line in missed:
        print(line)
    return 1 if missed and given.check else 0


if __name__ == "__main__":
    raise SystemExit(main())
