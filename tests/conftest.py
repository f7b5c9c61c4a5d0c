"""What every test runs under.

- Async tests run on a loop in debug mode (`asyncio_debug`), with blockbuster on: a call that blocks the loop, made by
  our package or by a library that it drives, fails the test. One exemption: aiortc's receiver joins its decoder thread
  when it is stopped, and nothing outside of it can change that.
- An async test that leaves a task or a thread behind fails.
- Hypothesis draws the same examples on every run in CI.
"""

from __future__ import annotations

import asyncio
import asyncio.constants
import gc
import inspect
import linecache
import os
import subprocess
import sys
import threading
import traceback
import wave
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest
import pytest_asyncio
from blockbuster import BlockBuster

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("desk", deadline=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "desk")

# A loop in debug mode notes where each future, task and handle was made, by default the whole way from pytest down, which
# took more than a third of an async test's time. The innermost places are what its messages show.
_NOTED_PLACES = 3
asyncio.constants.DEBUG_STACK_DEPTH = _NOTED_PLACES
traceback.extract_stack.__defaults__ = (None, _NOTED_PLACES)  # asyncio's C half calls it with no argument
linecache.checkcache = lambda _=None: None  # nor is each place's file looked at again: sources stay as they are

_WATCHED_PACKAGES = ["realtime", "aiortc", "aioice", "websockets"]
_LASTING_THREADS = ("realtime-", "asyncio_")  # one pool per process; the loop's own executor ends with the loop
_SETTLE_SECONDS = 5.0  # a hang guard: what is going to end has ended long before
_HANG_SECONDS = 240.0
HUMAN_TEXT = "he was not an ill disposed young man"


class Speech(NamedTuple):
    """A recording and what is said in it."""

    path: Path
    text: str


def pytest_collection_finish() -> None:
    """What the tests were collected of stays for good: the collector need not look through it, a quarter of a second each time."""
    gc.collect()
    gc.freeze()


# -- the loop ----------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def loop_watch(request: pytest.FixtureRequest) -> Iterator[None]:
    """Watch the loop of async tests for blocking calls, and look for what they leave behind."""
    if not inspect.iscoroutinefunction(request.function):
        yield
        return
    request.getfixturevalue("_nothing_left_behind")
    watch = BlockBuster(scanned_modules=_WATCHED_PACKAGES)
    for acquire in ("threading.Lock.acquire", "threading.Lock.acquire_lock"):
        watch.functions[acquire].can_block_in("aiortc/rtcrtpreceiver.py", {"stop", "__stop_decoder"})
    watch.activate()
    try:
        yield
    finally:
        watch.deactivate()


@pytest_asyncio.fixture
async def _nothing_left_behind(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Fail a test that leaves a task or a thread. Set up before the test's own fixtures and looked at after them."""
    tasks_before = asyncio.all_tasks()
    threads_before = set(threading.enumerate())
    guard = asyncio.get_running_loop().call_later(_HANG_SECONDS, _cancel_test, request.function.__qualname__)
    yield
    guard.cancel()
    mine = asyncio.current_task()

    def left() -> tuple[list[asyncio.Task[object]], list[threading.Thread]]:
        tasks = [task for task in asyncio.all_tasks() if task not in tasks_before and task is not mine]
        threads = [thread for thread in threading.enumerate() if thread not in threads_before]
        return tasks, [thread for thread in threads if not thread.name.startswith(_LASTING_THREADS)]

    tasks, threads = left()
    deadline = asyncio.get_running_loop().time() + _SETTLE_SECONDS
    while (tasks or threads) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.005)
        tasks, threads = left()
    assert not tasks, f"tasks left behind: {tasks}"
    assert not threads, f"threads left behind: {threads}"


def _cancel_test(name: str) -> None:
    """End a test that hangs. A signal that strikes within a callback is swallowed by the loop; a cancellation is not."""
    for task in asyncio.all_tasks():
        if getattr(task.get_coro(), "__qualname__", "") == name:
            task.cancel(f"the test hung for {_HANG_SECONDS:g} s")


# -- speech and media --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def shared() -> Path | None:
    """The folder with recorded media beside the checkout, where there is one; tests make their own input otherwise."""
    folder = Path(__file__).parents[1].parent / "shared" / "media"
    return folder.parent if folder.is_dir() else None


@pytest.fixture(scope="session")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Make a WAV file (mono, 16 bit, 24 kHz) of a sentence, spoken by the embedded voice, always the same."""
    from hibari import Hibari
    from hibari.tts import write_wav

    folder = tmp_path_factory.mktemp("speech")
    made: dict[str, Path] = {}
    voice: list[Hibari] = []

    def say(text: str) -> Path:
        if text not in made:
            if not voice:
                voice.append(Hibari())
            made[text] = folder / f"sentence-{len(made)}.wav"
            write_wav(str(made[text]), voice[0](text, seed=0))
        return made[text]

    return say


@pytest.fixture(scope="session")
def human_speech(shared: Path | None, speech: Callable[[str], Path]) -> Speech:
    """Eight spoken words: a human's where the recordings are there, synthesised ones otherwise."""
    recorded = shared / "media" / "speech" / "librivox-0880.wav" if shared else None
    return Speech(recorded if recorded is not None and recorded.is_file() else speech(HUMAN_TEXT), HUMAN_TEXT)


def wav_seconds(path: Path) -> float:
    """How long a WAV file lasts."""
    with wave.open(str(path)) as file:
        return file.getnframes() / file.getframerate()


# -- commands ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def run_realtime() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the `realtime` command in a process of its own, as a user would, and give back what it printed."""

    def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        settings = {"capture_output": True, "text": True, "timeout": 120, **options}
        return subprocess.run([sys.executable, "-m", "realtime", *arguments], check=False, **settings)

    return run


class LocalServer:
    """The local websocket LLM in a process of its own, which ends with its standard input."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "realtime.local", "--exit-with-stdin", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = ""
        for line in self.process.stdout or ():
            if "listening on " in line:
                self.url = line.split("listening on ", 1)[1].split()[0]
                break
        assert self.url, f"the local LLM did not start: exit code {self.process.wait(10)}"

    def kill(self) -> None:
        """As a crash would."""
        self.process.kill()
        self.close()

    def close(self) -> None:
        """Let it go and wait for its end."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        self.process.wait(20)


@pytest.fixture(scope="session")
def llm_url() -> Iterator[str]:
    """The address of a local LLM that all tests share."""
    server = LocalServer("--port", "0")
    yield server.url
    server.close()


@pytest.fixture
def start_llm() -> Iterator[Callable[..., LocalServer]]:
    """Start local LLMs that end with the test; takes command line options."""
    started: list[LocalServer] = []

    def start(*options: str) -> LocalServer:
        started.append(LocalServer(*options))
        return started[-1]

    yield start
    for server in started:
        server.close()
