"""How many calls an event loop bears: how late it is, and what each call holds in memory.

Every call is a whole vision call (`peers/session_call.py`): Opus and VP8 720p30 in, speech out without a pause, a picture a second into the
conversation, ten of them retained. Beside it, at the same time, runs a loop that does nothing in a process of its own: what *that* is late with is
the machine's doing, not ours. The caller is another process, and yields to both loops while their lag is measured.

Memory of a call is what each further call adds, from the fewest calls to the most; growth is between the time when the pictures that are retained
are all there and the end.

Run:  python benchmarks/bench_sessions.py [--sessions 1,10,30] [--seconds 60] [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent / "peers" / "session_call.py"
LAG_GOALS = {10: (2, 5.0), 30: (1, 10.0)}
"""For so many calls: which share of the ticks (as in `lag_ms`), and by how many milliseconds they are late at most."""
SHARES = ("half", "99 of a hundred", "999 of a thousand")
MEMORY_GOAL_MB = 6.0
GROWTH_GOAL_MB = 0.5
"""Of each call, once it has its pictures."""
FULL_SECONDS = 12
"""So long after the beginning all pictures that are retained are there."""
WHOLE = 0.9
"""Of the sound that was said and of the pictures that were due."""
BUSY = 0.9
"""A machine that works so much of its time is what limits."""


def measure(calls: int, seconds: float, video: str) -> dict[str, Any] | None:
    """So many calls at once; their figures. None: they could not even be connected."""
    print(f"{calls} calls, {seconds:g} s", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, SCRIPT, sys.executable, str(calls), str(seconds)],
        env={**os.environ, "BENCHMARK_VIDEO": video},
        stdout=subprocess.PIPE,
        check=False,
    )
    return None if done.returncode else json.loads(done.stdout.splitlines()[-1])


def row_of(calls: int, figures: dict[str, Any]) -> str:
    lag, bare = (" / ".join(f"{value:.1f}" for value in figures[name]) for name in ("lag_ms", "bare_lag_ms"))
    return (
        f"| {calls} | {figures['cpu_ms']:.1f} | {lag} | {bare} | {100 * figures['machine_busy']:.0f} % "
        f"| {figures['heard']:.2f} | {figures['pictures']:.2f} | {figures['own_mb'][-1]:.0f} |"
    )


def memory_of_a_call(found: dict[int, dict[str, Any]]) -> tuple[float, float]:
    """Megabytes that each further call adds, and by how many each grew."""
    fewest, most = min(found), max(found)
    own = found[most]["own_mb"]
    adds = (own[-1] - found[fewest]["own_mb"][-1]) / (most - fewest) if most > fewest else 0.0
    return adds, (own[-1] - own[min(FULL_SECONDS, len(own) - 1)]) / most


def missed(found: dict[int, dict[str, Any]]) -> list[str]:
    """Which goals were missed, and whether the machine was why."""
    lines: list[str] = []
    for calls, figures in found.items():
        share, most = LAG_GOALS.get(calls, (0, float("inf")))
        late, bare = figures["lag_ms"][share], figures["bare_lag_ms"][share]
        why = ""
        if bare > most / 2 or figures["machine_busy"] > BUSY:
            why = "; the machine was at its limit, so this says little about the session"
        if late > most:
            lines.append(f"{calls} calls: {SHARES[share]} ticks late by {late:.1f} ms at most, wanted {most:g}{why}")
        if min(figures["heard"], figures["pictures"]) < WHOLE:
            lines.append(f"{calls} calls: not all of the work was done{why}")
    adds, grew = memory_of_a_call(found)
    if adds > MEMORY_GOAL_MB:
        lines.append(f"a call holds {adds:.1f} MB, wanted {MEMORY_GOAL_MB:g}")
    if grew > GROWTH_GOAL_MB:
        lines.append(f"a call grew by {grew:.1f} MB, wanted {GROWTH_GOAL_MB:g}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", default="1,10,30", help="how many calls at once, in turn")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each is measured")
    parser.add_argument("--video", default="VP8 720p30", help="a case of bench_receive.py")
    parser.add_argument("--check", action="store_true", help="end with 1 if a goal is missed")
    given = parser.parse_args()
    print(
        "| calls | CPU ms per second of each | loop lag p50 / p99 / p99.9 ms | bare loop beside it | machine busy | heard s/s | pictures/s | MB |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    found: dict[int, dict[str, Any]] = {}
    lines: list[str] = []
    for calls in sorted(int(number) for number in given.sessions.split(",")):
        figures = measure(calls, given.seconds, given.video)
        if figures is None:
            lines.append(f"{calls} calls: they could not all be connected; is the machine busy?")
            continue
        found[calls] = figures
        print(row_of(calls, figures), flush=True)
    if not found:
        raise SystemExit("\n".join(lines))
    adds, grew = memory_of_a_call(found)
    if len(found) > 1:
        print(f"each further call adds {adds:.1f} MB")
    print(f"each of {max(found)} calls grew by {grew:.2f} MB in the last {max(0.0, given.seconds - FULL_SECONDS):g} s")
    lines += missed(found)
    for line in lines:
        print(f"missed: {line}")
    return 1 if lines and given.check else 0


if __name__ == "__main__":
    raise SystemExit(main())
