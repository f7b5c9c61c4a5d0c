"""An environment without anyone's keys, and a local server that does what a test says."""

import textwrap

import pytest

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
