"""The whole way on real input, through the command: files through Opus and VP8 into a session, a spoken reply back."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from realtime.chat.context import ChatContext
from realtime.chat.messages import ChatMessage, ChatRole
from realtime.pcm import read_wav
from tests.local.words import words_of, wrong_words

from .conftest import write_movie
from .words import transcribe

pytestmark = pytest.mark.local


class Done(NamedTuple):
    """A finished run of the command."""

    printed: str
    errors: str
    code: int
    seconds: float
    out: Path
    context: ChatContext

    def told(self, kind: str) -> list[str]:
        """The lines about one thing."""
        return re.findall(rf"^ *[\d.]+ s  {kind} +(.*)$", self.printed, re.MULTILINE)


@pytest.fixture(scope="module")
def demo_call(
    run_realtime: Callable[..., subprocess.CompletedProcess[str]],
    human_speech: Any,
    shared: Path | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Done:
    """The call of the issue: a human sentence and a street, with the model that the command starts by itself."""
    folder = tmp_path_factory.mktemp("demo")
    street = shared / "media" / "bikes.mp4" if shared else write_movie(folder / "film.webm", frames=100, fps=10)
    out = folder / "record"
    begun = time.monotonic()
    done = run_realtime("demo", "--media", str(human_speech.path), "--media", str(street), "--out", str(out))
    seconds = time.monotonic() - begun
    assert done.returncode == 0, done.stderr
    context = ChatContext.from_dict(json.loads((out / "context.json").read_text(encoding="utf-8")))
    return Done(done.stdout, done.stderr, done.returncode, seconds, out, context)


def _spoken(context: ChatContext, role: ChatRole) -> list[ChatMessage]:
    return [message for message in context.messages() if message.role == role and message.content]


def test_the_call_ends_by_itself(demo_call: Done, record_property: Callable[[str, object], None]) -> None:
    """10 s of media take at most 20 s; what is asserted is a hang guard, what was taken is in the report."""
    record_property("seconds", round(demo_call.seconds, 1))
    assert demo_call.seconds < 100
    assert demo_call.errors == ""


def test_the_users_words_are_understood(demo_call: Done, human_speech: Any) -> None:
    said = " ".join(message.content for message in _spoken(demo_call.context, ChatRole.USER))
    assert wrong_words(human_speech.text, said) <= 2, said


def test_frames_are_1024_jpeg_in_time_order_with_the_speech(demo_call: Done) -> None:
    messages = demo_call.context.messages()
    frames = [message for message in messages if message.is_frame]
    assert len(frames) >= 3
    for frame in frames:
        (image,) = frame.images
        assert (image.mime_type, image.size) == ("image/jpeg", (1024, 1024))
        with Image.open(io.BytesIO(image.data)) as picture:
            picture.load()
    times = [message.created_at for message in frames]
    assert None not in times
    assert times == sorted(times)
    spoken = next(i for i, message in enumerate(messages) if message.role == ChatRole.USER and message.content)
    assert any(message.is_frame for message in messages[:spoken])  # what was seen while the user spoke
    assert any(message.is_frame for message in messages[spoken:])


def test_the_reply_was_really_spoken(demo_call: Done) -> None:
    """Heard on the other peer, after Opus, by the recognizer that hears the user: within 15 % of the words."""
    text = " ".join(message.content for message in _spoken(demo_call.context, ChatRole.ASSISTANT))
    heard = transcribe(demo_call.out / "reply.wav")
    assert len(words_of(text)) >= 3
    assert wrong_words(text, heard) <= 0.15 * len(words_of(text)), f"{text!r} was heard as {heard!r}"


def test_the_record_is_whole(demo_call: Done) -> None:
    pcm, rate_hz, channels = read_wav((demo_call.out / "call.wav").read_bytes())
    assert channels == 2
    assert len(pcm) / 4 / rate_hz > 9
    with Image.open(demo_call.out / "frames.png") as sheet:
        assert sheet.width > 3 * 224
    for name in ("context.json", "reply.wav", "call.wav", "frames.png"):
        assert name in demo_call.printed


def test_the_screen_told_who_spoke_what_was_seen_and_how_long_it_took(demo_call: Done) -> None:
    assert demo_call.told("user")[0] == "begins to speak"
    kept = demo_call.told("frame")
    assert len(kept) >= 3
    assert all(re.match(r"\w+: (first|schedule|max_gap|end_of_turn|look) \(1024×1024", line) for line in kept)
    assert any(line.endswith("…") for line in demo_call.told("model")), "the reply's transcript did not grow"
    assert re.search(r"transcript \d+ ms, response \d+ ms, first audio \d+ ms, first heard \d+ ms", demo_call.printed)
    assert "the context at the end:" in demo_call.printed


def _hang_up_after(count: int, pattern: str, *options: str) -> str:
    """Run the demo and hang up when it has told something that often, however long that takes; gives what it printed."""
    command = [sys.executable, "-m", "realtime", "demo", *options]
    printed = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as call:
        assert call.stdout is not None
        assert call.stderr is not None
        for line in call.stdout:
            printed += line
            if re.search(pattern, line):
                count -= 1
                if count == 0:
                    call.send_signal(signal.SIGINT)
        said = call.stderr.read()
        call.wait(60)
    assert (call.returncode, said) == (0, "")
    return printed


def test_pictures_beyond_the_budget_are_told_and_gone(llm_url: str, tmp_path: Path) -> None:
    film, out = write_movie(tmp_path / "film.webm", frames=600, fps=10), tmp_path / "record"
    command = [
        "--media",
        str(film),
        "--model",
        llm_url,
        "--out",
        str(out),
        "--retain-images-max",
        "2",
        "--fps-idle",
        "3",
    ]
    done = _hang_up_after(5, r"^ *[\d.]+ s  frame ", *command)
    evicted = re.findall(r"budget evicted 1 message \(image_budget\)", done)
    kept = re.findall(r"^ *[\d.]+ s  frame ", done, re.MULTILINE)
    items: list[Mapping[str, Any]] = json.loads((out / "context.json").read_text(encoding="utf-8"))["items"]
    assert len(kept) >= 5
    assert len(evicted) == len(kept) - 2
    assert sum(bool(item.get("images")) for item in items) == 2


def test_with_no_file_it_speaks_and_shows_a_scene_and_ctrl_c_hangs_up_in_good_order(
    llm_url: str, tmp_path: Path
) -> None:
    """The first question of the scene; once its answer was heard, the user hangs up, and the record is written."""
    out = tmp_path / "record"
    printed = _hang_up_after(1, "was heard to the end", "--model", llm_url, "--out", str(out))
    assert {path.name for path in out.iterdir()} == {"context.json", "reply.wav", "call.wav", "frames.png"}
    context = ChatContext.from_dict(json.loads((out / "context.json").read_text(encoding="utf-8")))
    assert "sign" in _spoken(context, ChatRole.USER)[0].content.lower()
    (answer,) = _spoken(context, ChatRole.ASSISTANT)
    assert {"fresh", "bread"} <= set(words_of(answer.content)), printed


def test_it_hangs_up_when_its_seconds_are_over(
    run_realtime: Callable[..., subprocess.CompletedProcess[str]], llm_url: str, tmp_path: Path
) -> None:
    done = run_realtime("demo", "--model", llm_url, "--out", str(tmp_path / "record"), "--seconds", "0.5")
    assert done.returncode == 0, done.stderr
    assert "0.5 s are over" in done.stdout
    assert (tmp_path / "record" / "frames.png").is_file()


def _serve_until_the_quota_is_used_up(connection: ServerConnection) -> None:
    """A provider that begins the call and ends it by itself, in a way that trying again does not change."""
    with suppress(ConnectionClosed):
        connection.send(json.dumps({"type": "session.created", "session": {"id": "sess_1"}}))
        for message in connection:
            if json.loads(message)["type"] == "session.update":
                connection.send(json.dumps({"type": "session.updated", "session": {"id": "sess_1"}}))
            else:
                error = {"type": "insufficient_quota", "code": "insufficient_quota", "message": "the quota is used up"}
                connection.send(json.dumps({"type": "error", "error": error}))
                connection.close()


def test_a_session_that_ends_early_is_told_with_exit_code_1_and_the_record_is_written(
    run_realtime: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Exit codes: 1 is a call that failed while it went on; 2 would be one that could not begin."""
    out = tmp_path / "record"
    with serve(_serve_until_the_quota_is_used_up, "127.0.0.1", 0) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/v1/realtime"
        done = run_realtime("demo", "--model", url, "--text", "Hello", "--seconds", "60", "--out", str(out))
        server.shutdown()
        serving.join()
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("realtime demo: the session ended early: ")
    assert "the quota is used up" in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path.name for path in out.iterdir()} == {"context.json", "reply.wav", "call.wav", "frames.png"}
