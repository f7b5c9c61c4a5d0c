"""The called side of a benchmark of calls: starts the caller, answers it, and measures this process.

Standard library and aiortc only: it runs in the environments of the others too.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import aioice.ice

LOOP = os.environ.get("BENCHMARK_LOOP", "asyncio")
MODEL_RATE_HZ = 24_000
WARM_UP_SECONDS = 3.0
CPU_SECONDS = 10.0
"""At most so long for the processor time; the rest is for the loop's lag."""


class Counts:
    """What the called side has done, all calls together."""

    def __init__(self) -> None:
        self.heard_samples = 0
        self.heard_rate = MODEL_RATE_HZ
        self.pictures = 0


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run the called side, on uvloop if that was asked for."""
    if LOOP == "uvloop":
        import uvloop  # noqa: PLC0415

        uvloop.run(main())
    else:
        asyncio.run(main())


def only_loopback() -> None:
    """Use 127.0.0.1 and nothing else."""
    aioice.ice.get_host_addresses = lambda **_: ["127.0.0.1"]


async def serve(answer: Callable[[str, int], Awaitable[str]], counts: Counts) -> None:
    """Answer the calls and print what they cost a second, as JSON.

    Args:
        answer: Given an offer and the number of the call, gives the answer (SDP).
        counts: What is done meanwhile.

    Arguments of the process: the caller's interpreter, how many calls, seconds to measure. First what it costs, without being
    woken for it; then how late the loop is, with a loop that does nothing beside it, in a process of its own, so that what the machine is late with
    can be told from what this process is. The caller yields to both.
    """
    only_loopback()
    gc.collect()
    gc.freeze()  # as a server does: a collection of everything that was ever loaded holds the loop for 50 ms
    python, calls, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    caller = await asyncio.create_subprocess_exec(
        *(python, str(Path(__file__).with_name("caller.py")), str(calls)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        limit=1 << 22,
    )
    for number in range(calls):
        offer = json.loads(await line_of(caller))
        sdp = await answer(offer["sdp"], number)
        caller.stdin.write(json.dumps({"sdp": sdp}).encode() + b"\n")
        await caller.stdin.drain()
    await line_of(caller)  # all are connected
    await asyncio.sleep(WARM_UP_SECONDS)
    before, began, cpu = (counts.heard_samples, counts.pictures), time.monotonic(), time.process_time()
    await asyncio.sleep(min(seconds, CPU_SECONDS))
    cpu, lasted = time.process_time() - cpu, time.monotonic() - began
    heard, pictures = counts.heard_samples - before[0], counts.pictures - before[1]
    lags: list[float] = []
    memory: list[float] = []
    os.setpriority(os.PRIO_PROCESS, caller.pid, 19)  # in life it has a machine of its own: both loops come before it
    bare = await asyncio.create_subprocess_exec(sys.executable, __file__, str(seconds), stdout=subprocess.PIPE)
    machine = machine_seconds()
    watching = asyncio.create_task(sample_memory(memory))
    await sample_lag(lags, seconds)
    worked, passed = (now - then for now, then in zip(machine_seconds(), machine, strict=True))
    watching.cancel()
    out, _ = await bare.communicate()
    figures = {
        "cpu_ms": cpu * 1000 / lasted / calls,
        "heard": heard / counts.heard_rate / lasted / calls,
        "pictures": pictures / lasted / calls,
        "lag_ms": shares_of(lags),
        "bare_lag_ms": json.loads(out),
        "machine_busy": worked / passed,
        "rss_mb": memory_mb(),
        "own_mb": memory,
    }
    print(json.dumps(figures), flush=True)
    caller.kill()
    os._exit(0)


async def line_of(caller: asyncio.subprocess.Process) -> bytes:
    """What the caller says next; without it there is nothing to measure."""
    line = await caller.stdout.readline()
    if not line:
        raise SystemExit("the caller could not connect all calls")
    return line


def shares_of(lags: list[float]) -> list[float]:
    """So late at most were half, 99 of a hundred, and 999 of a thousand."""
    lags = sorted(lags)
    return [lags[int(len(lags) * share)] for share in (0.5, 0.99, 0.999)]


def machine_seconds() -> tuple[float, float]:
    """Processor time of the whole machine, all processors together: what was worked, and what there was."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def memory_mb() -> float:
    """What of this process is in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def own_memory_mb() -> float:
    """As `memory_mb`, without files that are mapped."""
    resident, shared = (int(pages) for pages in Path("/proc/self/statm").read_text().split()[1:3])
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def sample_memory(into: list[float]) -> None:
    """Note memory once a second."""
    while True:
        into.append(own_memory_mb())
        await asyncio.sleep(1)


async def sample_lag(into: list[float], seconds: float) -> None:
    """Ask to be woken every 10 ms and note how many milliseconds late that was."""
    loop = asyncio.get_running_loop()
    due, end = loop.time() + 0.01, loop.time() + seconds
    while due < end:
        await asyncio.sleep(max(0.0, due - loop.time()))
        into.append((loop.time() - due) * 1000)
        due = max(due + 0.01, loop.time())


def keep(tasks: set[Any], work: Any) -> None:
    """Run something as long as the process lives."""
    tasks.add(asyncio.get_running_loop().create_task(work))


if __name__ == "__main__":  # a loop that does nothing, beside the one that is measured
    bare: list[float] = []
    asyncio.run(sample_lag(bare, float(sys.argv[1])))
    print(json.dumps(shares_of(bare)))
