"""From the end of speech to the first reply audio of the local LLM, at 1, 2, 4 and 8 sessions, and what that costs.

The server runs in a process of its own; its clients, in this one, speak at the pace of speech, 20 ms at a time, each a
sentence, a pause, the next sentence. Speech ends with the last sample that is louder than -36 dB of the recording's
peak. The named baseline of the same run is *the full window*: the same server whose recognizer waits for the end of the
turn and then decodes Whisper's full window of 30 seconds, as ready-made recognizers do. How late the server's loop is stands
beside how late a process is that does nothing else, measured at the same time. Processor time is that of the server: how
many sessions two cores hold is worked out from it, so that it can be told on a machine that is busy with other things.

Run:  python benchmarks/bench_llm.py [--sessions 1 2 4 8] [--turns 4]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from websockets.asyncio.client import connect

from realtime.local.cli import SWITCH_SECONDS
from realtime.local.loading import load_parts
from realtime.local.parts import Parts, Transcript
from realtime.local.recognizer import WhisperRecognizer
from realtime.local.server import LlmServer
from realtime.local.settings import LlmSettings
from realtime.local.synthesizer import HibariSynthesizer
from realtime.local.workers import FairPool
from realtime.media.resample import Resampler
from realtime.pcm import read_wav

CHUNK_MS = 20
PAUSE_SECONDS = 3.0
SPEECH = Path(__file__).parents[1].parent / "shared" / "media" / "speech"
SENTENCES = (
    "he was not an ill disposed young man",
    "What time is it?",
    "My name is Robin.",
    "What is twelve times seven?",
)


# -- the server's process ------------------------------------------------------------------------------------------------


class FullWindow:
    """A recognizer that knows no shorter window and is not asked before the turn is over."""

    rate_hz = 16_000

    def __init__(self, inner: WhisperRecognizer, pool: FairPool) -> None:
        self._inner, self._pool = inner, pool

    async def recognize(
        self, samples: np.ndarray, *, owner: str, language: str | None = None, speculative: bool = False
    ) -> Transcript:
        """Transcribe, with the full window."""
        if speculative:
            raise RuntimeError("not before the end")
        return await self._pool.run(owner, "now", lambda: self._inner.transcribe(samples, language, full=True))

    async def aclose(self) -> None:
        """Nothing is held."""


class Lag:
    """How late a timer of 5 ms fires on the server's loop."""

    def __init__(self) -> None:
        self.late: list[float] = []

    async def watch(self) -> None:
        """Measure until cancelled."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            self.late.append(1000 * (time.monotonic() - before - 0.005))

    def figures(self) -> dict[str, float]:
        """Milliseconds: the median, one in a hundred, the worst."""
        late = sorted(self.late) or [0.0]
        shares = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
        return {name: late[min(len(late) - 1, int(len(late) * share))] for name, share in shares}


async def serve(kind: str) -> None:
    """Serve until standard input ends, then print what was measured."""
    settings = LlmSettings(port=0, max_sessions=64)
    lag = Lag()
    loop = asyncio.get_running_loop()
    if kind == "bare":
        print("bare", flush=True)
        watching = loop.create_task(lag.watch())
        await loop.run_in_executor(None, sys.stdin.readline)
        watching.cancel()
        print(json.dumps(lag.figures()), flush=True)
        return
    sys.setswitchinterval(SWITCH_SECONDS)
    async with FairPool(settings.threads) as pool:
        parts = await pool.run("", "now", load_parts, settings, pool)
        if kind == "full":
            assert isinstance(parts.recognizer, WhisperRecognizer)
            slow = FullWindow(parts.recognizer, pool)
            parts = Parts(
                detector=parts.detector, recognizer=slow, synthesizer=parts.synthesizer, eyes=parts.eyes,
                responder=parts.responder,
            )  # fmt: skip
        async with LlmServer(settings, parts, pool) as server:
            watching = None if kind == "unwatched" else loop.create_task(lag.watch())
            print(server.url, flush=True)
            await loop.run_in_executor(None, sys.stdin.readline)
            if watching is not None:
                watching.cancel()
    print(json.dumps(lag.figures()), flush=True)


class Server:
    """A server in a process of its own."""

    def __init__(self, kind: str) -> None:
        command = [sys.executable, __file__, "--serve", kind]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()

    def cpu_seconds(self) -> float:
        """What it has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        """What it holds."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self) -> dict[str, float]:
        """End it; gives what it measured."""
        output, _ = self._process.communicate("\n", timeout=30)
        return json.loads(output)


# -- its clients ---------------------------------------------------------------------------------------------------------


def sentences() -> list[np.ndarray]:
    """PCM16 at 24 kHz: one human's where the recording is there, the embedded voice's otherwise."""
    voice = HibariSynthesizer(FairPool(1))
    spoken = [np.frombuffer(voice.speak(text).pcm, "<i2") for text in SENTENCES]
    human = SPEECH / "librivox-0880.wav"
    if human.is_file():
        pcm, rate, _ = read_wav(human.read_bytes())
        resampler = Resampler(rate, 24_000)
        samples = np.frombuffer(pcm, "<i2").astype(np.float32)
        spoken[0] = np.concatenate([resampler.push(samples), resampler.flush()]).clip(-32768, 32767).astype("<i2")
    return spoken


def speech_end(pcm: np.ndarray) -> int:
    """The last sample that is speech."""
    return int(np.flatnonzero(np.abs(pcm.astype(float)) > np.abs(pcm.astype(float)).max() / 64)[-1])


async def talk(url: str, spoken: list[np.ndarray], turns: int, offset: float) -> tuple[list[float], int]:
    """Hold a call; gives the milliseconds from each end of speech to the first audio, and how many turns had none."""
    ended: list[float] = []
    audible: list[float] = []
    async with connect(url, max_size=None, compression=None) as connection:

        async def listen() -> None:
            quiet = True
            async for message in connection:
                kind = json.loads(message)["type"]
                if kind == "response.created":
                    quiet = True
                elif kind == "response.output_audio.delta" and quiet:
                    audible.append(time.monotonic())
                    quiet = False

        listening = asyncio.get_running_loop().create_task(listen())
        await asyncio.sleep(offset)
        step = 24 * CHUNK_MS
        for turn in range(turns):
            pcm = spoken[turn % len(spoken)]
            line = np.concatenate([pcm, np.zeros(int(24_000 * PAUSE_SECONDS), "<i2")])
            end, began = speech_end(pcm), time.monotonic()
            for start in range(0, len(line), step):
                await asyncio.sleep(max(0.0, began + (start + step) / 24_000 - time.monotonic()))
                audio = base64.b64encode(line[start : start + step].tobytes()).decode()
                await connection.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
            ended.append(began + end / 24_000)
        listening.cancel()
    waits = [
        next((1000 * (heard - end) for heard in audible if 0 < heard - end < PAUSE_SECONDS), None) for end in ended
    ]
    return [wait for wait in waits if wait is not None], waits.count(None)


async def measure(kind: str, count: int, turns: int, spoken: list[np.ndarray]) -> dict[str, float]:
    """One row."""
    server, bare = Server(kind), Server("bare")
    await talk(server.url, spoken, 1, 0.0)  # warm up
    idle, cpu, began = server.memory_mb(), server.cpu_seconds(), time.monotonic()
    results = await asyncio.gather(*(talk(server.url, spoken, turns, 0.37 * number) for number in range(count)))
    seconds = time.monotonic() - began
    waits = sorted(wait for found, _ in results for wait in found)
    row = {
        "p50": statistics.median(waits) if waits else math.nan,
        "p90": waits[round(0.9 * (len(waits) - 1))] if waits else math.nan,
        "lost": sum(lost for _, lost in results),
        "cpu": 1000 * (server.cpu_seconds() - cpu) / seconds / count,
        "memory": server.memory_mb(),
        "each": (server.memory_mb() - idle) / count,
    }
    row |= {f"lag {name}": value for name, value in server.end().items()}
    return row | {f"bare {name}": value for name, value in bare.end().items()}


async def listening_cost(spoken: list[np.ndarray], seconds: float = 10.0) -> float:
    """CPU milliseconds a second of one session that hears silence."""
    server = Server("unwatched")
    silence = np.zeros(int(24_000 * seconds), "<i2")
    await talk(server.url, spoken, 1, 0.0)
    cpu = server.cpu_seconds()
    await talk(server.url, [np.concatenate([silence[:2400], np.ones(1, "<i2"), silence])], 1, 0.0)
    used = 1000 * (server.cpu_seconds() - cpu) / (seconds + PAUSE_SECONDS)
    server.end()
    return used


async def main(options: argparse.Namespace) -> None:
    spoken = sentences()
    print(
        f"{'server':12} {'sessions':>8} {'p50 ms':>7} {'p90 ms':>7} {'no reply':>8} {'CPU ms/s':>9} {'MB':>5} {'MB each':>8} {'lag p50/p99/max ms':>20} {'bare loop':>16}"
    )
    rows: dict[tuple[str, int], dict[str, float]] = {}
    kinds = [] if options.only_ours else [("full", 1)]
    for kind, count in [*kinds, *(("ours", count) for count in options.sessions)]:
        row = rows[kind, count] = await measure(kind, count, options.turns, spoken)
        name = "full window" if kind == "full" else "ours"
        lag, bare = ("/".join(f"{row[f'{of} {name}']:.1f}" for name in ("p50", "p99", "max")) for of in ("lag", "bare"))
        print(
            f"{name:12} {count:8} {row['p50']:7.0f} {row['p90']:7.0f} {row['lost']:8.0f} {row['cpu']:9.0f}"
            f" {row['memory']:5.0f} {row['each']:8.1f} {lag:>20} {bare:>16}",
            flush=True,
        )
    if options.only_ours:
        return
    base = rows["full", 1]["p50"]
    for count in options.sessions:
        print(f"first audio at {count} session(s): {rows['ours', count]['p50'] / base:.2f} of the full window's at one")
    answered = [row["cpu"] for (kind, _count), row in rows.items() if kind == "ours" and not row["lost"]]
    if answered:
        print(f"by processor time two cores hold {2000 / answered[-1]:.0f} sessions that talk all the time")
    print(f"one session that hears silence: {await listening_cost(spoken):.0f} ms CPU a second")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--only-ours", action="store_true", help="without what it is compared with")
    parser.add_argument("--serve", choices=("ours", "full", "bare", "unwatched"), help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    asyncio.run(serve(given.serve) if given.serve else main(given))
