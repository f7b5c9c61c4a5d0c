"""An environment without anyone's keys, servers that do what a test says, and providers by script."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import textwrap
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

KEYS = [
    "OPENAI_API_KEY",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_ENDPOINT",
    "AZURE_OPENAI_AD_TOKEN",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "XAI_API_KEY",
    "AZURE_VOICELIVE_ENDPOINT",
    "AZURE_VOICELIVE_API_KEY",
    "AZURE_VOICELIVE_TOKEN",
]

SERVER = '''
"""Has the command line of realtime.local, and does what its options say."""
import argparse, asyncio, os, sys
from websockets.asyncio.server import serve

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
parser.add_argument("--exit-with-stdin", action="store_true")
parser.add_argument("--behaviour", default="serve")
parser.add_argument("--note")
options = parser.parse_args()

if options.behaviour == "die":
    print("noise", flush=True)
    print("no model in this directory", file=sys.stderr)
    sys.exit(2)
if options.behaviour == "extra":
    print("Error: the local LLM needs ctranslate2: pip install 'realtime-session[local]'", file=sys.stderr)
    sys.exit(2)


async def handle(connection):
    async for message in connection:
        if message == "die":
            os._exit(9)
        elif message == "who":
            await connection.send(f"{os.getpid()} {options.note}")
        elif message == "talk":
            print("x" * 200_000, "y", sep="\\n", file=sys.stderr, flush=True)
            print("z" * 200_000, flush=True)
            await connection.send("talked")
        elif message == "deaf":
            options.exit_with_stdin = False
            await connection.send("deaf")


async def main():
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def watch():
        await reader.read()
        if options.exit_with_stdin:
            ended.set()

    watching = asyncio.create_task(watch())
    async with serve(handle, "127.0.0.1", options.port) as server:
        if options.behaviour == "silent":
            await ended.wait()
            return
        print("starting", flush=True)
        port = server.sockets[0].getsockname()[1]
        print(f"listening on ws://127.0.0.1:{port}/v1/realtime", flush=True)
        await ended.wait()
        server.close(close_connections=True)


if options.behaviour == "ignore":
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
asyncio.run(main())
'''


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def local_module(tmp_path, monkeypatch):
    """The name of a module that stands in for `realtime.local`."""
    (tmp_path / "stand_in_server.py").write_text(textwrap.dedent(SERVER), "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    return "stand_in_server"


class Provider:
    """A provider by script, on a real socket, in any protocol.

    Steps: a mapping is what the client says next (at least; a function as a value is called with what it said), a list is
    what the provider says (so is a function of what it heard), a number closes with that code, a string breaks the line off, an event is waited for, and None
    leaves the rest to the next connection while this one stays. Sound is counted and never in the way. Each connection goes
    on with the script where the one before stopped.
    """

    def __init__(self, steps: Iterable[Any], *, binary: bool) -> None:
        self.steps = list(steps)
        self.binary = binary
        self.at = 0
        self.url = ""
        self.heard: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.audio_bytes = 0
        self.failure = ""
        self.open = 0
        self.log: list[dict[str, Any]] = []
        """What went over the wire, in the shape of the recordings."""
        self._moved = asyncio.Event()

    async def handle(self, connection: Any) -> None:
        self.paths.append(connection.request.path)
        self.open += 1
        try:
            with contextlib.suppress(ConnectionClosed):
                await self._play(connection)
                async for message in connection:
                    self._count(json.loads(message))
        finally:
            self.open -= 1

    async def _play(self, connection: Any) -> None:
        while self.at < len(self.steps):
            step = self.steps[self.at]
            if isinstance(step, Mapping):
                await self._expect(connection, step)
            self.at += 1
            self._moved.set()
            if step is None:
                return
            if isinstance(step, asyncio.Event):
                await step.wait()
            elif isinstance(step, int):
                self.log.append({"kind": "close", "code": step, "reason": "", "ok": step == 1000})
                await connection.close(step)
                return
            elif isinstance(step, str):
                self.log.append({"kind": "close", "code": 1006, "reason": "", "ok": False})
                connection.transport.abort()
                return
            elif not isinstance(step, Mapping):
                for message in step(self.heard) if callable(step) else step:
                    text = message if isinstance(message, str) else json.dumps(message)
                    self._note("received", json.loads(text))
                    await connection.send(text.encode() if self.binary else text)

    async def _expect(self, connection: Any, step: Mapping[str, Any]) -> None:
        while True:
            message = json.loads(await connection.recv())
            if not self._count(message):
                break
        self.heard.append(message)
        if lack := _lacks(step, message, ""):
            self.failure = self.failure or f"step {self.at}: {lack}: {json.dumps(message)[:400]}"

    def _count(self, message: dict[str, Any]) -> bool:
        """Whether it is only sound."""
        self._note("sent", message)
        blob = message.get("realtimeInput", {}).get("audio") if isinstance(message.get("realtimeInput"), dict) else None
        sound = blob["data"] if blob else message.get("audio") if "append" in message.get("type", "") else None
        if sound is None:
            return False
        self.audio_bytes += len(base64.b64decode(sound))
        self._moved.set()
        return True

    def _note(self, direction: str, message: dict[str, Any]) -> None:
        entry = {"kind": "message", "direction": direction, "data": shortened(message)}
        if entry not in self.log[-1:]:  # of sound in a row, one
            self.log.append(entry)

    async def hears(self, size: int) -> None:
        """Wait until so much sound has come."""
        await self._until(lambda: self.audio_bytes >= size)

    async def done(self) -> None:
        """Wait until the script is through, and check that everything came as it says."""
        await self._until(lambda: bool(self.failure) or self.at >= len(self.steps))
        assert not self.failure, self.failure

    async def _until(self, condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(10):
                while not condition():
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            said = [json.dumps(message)[:200] for message in self.heard[-4:]]
            raise AssertionError(
                f"stuck at step {self.at}, {self.steps[self.at : self.at + 1]}; heard {said}"
            ) from None


def shortened(value: Any) -> Any:
    """A wire message as the recordings have it: what is long, and no words, is cut to 44 characters."""
    if isinstance(value, dict):
        return {key: shortened(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shortened(each) for each in value]
    if isinstance(value, str) and len(value) > 200 and " " not in value:
        begin = value.find(",") + 1 if value.startswith("data:") else 0
        return value[: begin + 44]
    return value


def _lacks(wanted: Any, given: Any, path: str) -> str:
    if callable(wanted):
        return "" if wanted(given) else f"{path} is {given!r}"
    if isinstance(wanted, Mapping):
        if not isinstance(given, Mapping):
            return f"{path} is {given!r}"
        found = (_lacks(value, given.get(key), f"{path}.{key}".lstrip(".")) for key, value in wanted.items())
        return next(filter(None, found), "")
    return "" if wanted == given else f"{path} is {given!r}, not {wanted!r}"


@pytest.fixture
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[Callable[..., Any]]:
    """Makes providers by script; at the end each must have been heard out.

    With REALTIME_RECORDINGS=FOLDER what went over the wire is kept there (tests/wire/recordings was made so).
    """
    async with contextlib.AsyncExitStack() as stack:
        made: list[Provider] = []

        async def make(*steps: Any, binary: bool = False) -> Provider:
            one = Provider(steps, binary=binary)
            server = await stack.enter_async_context(serve(one.handle, "127.0.0.1", 0, ping_interval=None))
            one.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/realtime"
            made.append(one)
            return one

        yield make
        for number, one in enumerate(made):
            await one.done()
            if folder := os.environ.get("REALTIME_RECORDINGS"):
                _write(Path(folder), request, number, one)


def _write(folder: Path, request: pytest.FixtureRequest, number: int, one: Provider) -> None:
    """Keep what went over the wire, to be played again: one file a conversation."""
    name = request.node.name.removeprefix("test_").replace("[", "-").replace("]", "").replace(" ", "_")
    provider = request.module.__name__.rpartition("test_")[2].removesuffix("_conversations")
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in one.log)
    path = folder / provider / f"{name}{f'-{number}' if number else ''}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"version": 1, "interactions": [\n' + lines + "\n]}\n", "utf-8")
