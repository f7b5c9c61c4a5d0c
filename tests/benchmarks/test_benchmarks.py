"""Every benchmark runs, in its smallest form, and prints its figures. What it measures here means nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALL_VIDEO = "VP8 480p15"
AT_ONCE = 2
"""Most of their time they wait for calls to be made."""
HANG_SECONDS = 120

SMALLEST = {
    "bench_latency.py": ["--rounds", "1", "--only", "session", "--video", SMALL_VIDEO],
    "bench_llm.py": ["--sessions", "1", "--turns", "1", "--only-ours"],
    "bench_call.py": ["--seconds", "1", "--only", "session"],
    "bench_drain.py": ["--seconds", "1", "--only", "unwanted"],
    "bench_receive.py": ["--seconds", "1", "--sessions", "1", "--case", SMALL_VIDEO],
    "bench_sessions.py": ["--seconds", "1", "--sessions", "1", "--video", SMALL_VIDEO],
    "bench_sampled.py": ["--seconds", "1", "--cases", "VP8 500k"],
    "peers/run.py": ["--seconds", "1", "--calls", "1", "--rounds", "1", "--only", "plain", "--whole", "0"],
    "bench_reply.py": ["--rounds", "1"],
    "bench_encode.py": ["--rounds", "1", "--seconds", "0"],
    "bench_core.py": ["--turns", "200"],
    "bench_audio.py": ["--rounds", "1"],
    "bench_context.py": ["--sizes", "100", "1000", "--rounds", "1"],
    "bench_wire.py": ["--messages", "20"],
}
"""The longest first. bench_turns.py needs weights of its own; its test is in tests/weights."""


def failure(name: str) -> str:
    """Run one; how it failed, or nothing."""
    try:
        done = subprocess.run(
            [sys.executable, BENCHMARKS / name, *SMALLEST[name]],
            env={**os.environ, "BENCHMARK_VIDEO": SMALL_VIDEO},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        return f"{name} hangs: {error.stderr!r}"
    if done.returncode:
        return f"{name} ended with {done.returncode}: {done.stderr[-2000:]}"
    return "" if any(letter.isdigit() for letter in done.stdout) else f"{name} printed no figure: {done.stderr[-2000:]}"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_benchmark_runs_and_prints_its_figures():
    """They are made for a machine that does nothing else: what fails beside others may try again alone."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        failed = [name for name, told in zip(SMALLEST, pool.map(failure, SMALLEST), strict=True) if told]
    failures = [told for told in map(failure, failed) if told]
    assert not failures, "\n\n".join(failures)


def test_no_benchmark_is_forgotten():
    assert {path.name for path in BENCHMARKS.glob("bench_*.py")} == {
        name for name in [*SMALLEST, "bench_turns.py"] if name.startswith("bench_")
    }
