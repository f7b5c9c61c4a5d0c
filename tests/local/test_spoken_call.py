"""Whole calls with the real models, over a real websocket: the server is a process of its own."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from PIL import Image, ImageDraw, ImageFont
from websockets.asyncio.client import ClientConnection, connect

from realtime.local.recognizer import WhisperRecognizer
from realtime.media.resample import Resampler
from realtime.pcm import read_wav

from .words import words_of, wrong_words

pytestmark = pytest.mark.local

Say = Callable[[str], np.ndarray]
TRANSCRIBED = {"input": {"transcription": {"model": "whisper-1"}}}
LEAD_MS = 300
SPOKEN = (
    "My name is Robin.",
    "The train to Manchester leaves from platform nine.",
    "I have been working on this problem for two hours.",
    "My favorite color is dark green.",
    "What is the weather like in London?",
    "We should wait until the rain stops.",
)


class Call:
    """A client that speaks in chunks of 20 ms, as fast as the server takes them."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.events: list[dict[str, Any]] = []

    async def send(self, kind: str, **fields: Any) -> None:
        await self._connection.send(json.dumps({"type": kind, **fields}))

    async def update(self, **session: Any) -> None:
        await self.send("session.update", session={"type": "realtime", **session})
        await self.receive("session.updated")

    async def receive(self, kind: str) -> dict[str, Any]:
        """The next event of a type."""
        async with asyncio.timeout(60):
            while True:
                event: dict[str, Any] = json.loads(await self._connection.recv())
                self.events.append(event)
                assert event["type"] != "error" or kind == "error", event
                if event["type"] == kind:
                    return event

    async def speak(self, samples: np.ndarray, *, silence_ms: int = 600) -> None:
        """Say something and fall silent."""
        resampler = Resampler(16_000, 24_000)
        speech = np.concatenate([np.zeros(16 * LEAD_MS, np.float32), samples, np.zeros(16 * silence_ms, np.float32)])
        pcm = (np.concatenate([resampler.push(speech), resampler.flush()]) * 32767).astype("<i2").tobytes()
        for start in range(0, len(pcm), 960):
            await self.send("input_audio_buffer.append", audio=base64.b64encode(pcm[start : start + 960]).decode())

    async def reply(self) -> str:
        """Wait for the running response's end; gives what it said."""
        done = await self.receive("response.done")
        assert done["response"]["status"] == "completed", done
        parts = [part for item in done["response"]["output"] for part in item.get("content", [])]
        return " ".join(part.get("transcript") or part.get("text") for part in parts)

    def audio(self) -> bytes:
        """All reply audio so far."""
        return b"".join(
            base64.b64decode(event["delta"]) for event in self.events if event["type"] == "response.output_audio.delta"
        )

    def last(self, kind: str) -> dict[str, Any]:
        return next(event for event in reversed(self.events) if event["type"] == kind)


@pytest_asyncio.fixture
async def call(llm_url: str) -> AsyncIterator[Call]:
    async with connect(llm_url, max_size=None) as connection:
        call = Call(connection)
        await call.receive("session.created")
        yield call


def sign(text: str) -> str:
    image = Image.new("RGB", (640, 360), "navy")
    ImageDraw.Draw(image).text((40, 120), text, font=ImageFont.load_default(72), fill="white")
    file = io.BytesIO()
    image.save(file, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()


async def test_a_spoken_turn_is_understood_and_answered_aloud(
    call: Call, human_speech: tuple[Path, str], recognizer: WhisperRecognizer
) -> None:
    """Issue of the whole way: at most 2 wrong words of 8; the reply's audio is its text within 15 % of words."""
    path, text = human_speech
    pcm, rate, _channels = await asyncio.get_running_loop().run_in_executor(None, _read, path)
    resampler = Resampler(rate, 16_000)
    samples = np.frombuffer(pcm, "<i2").astype(np.float32) / 32768
    await call.update(audio=TRANSCRIBED)
    await call.speak(np.concatenate([resampler.push(samples), resampler.flush()]))
    replied = await call.reply()
    heard = call.last("conversation.item.input_audio_transcription.completed")["transcript"]
    assert wrong_words(text, heard) <= 2
    assert replied.startswith("You said: ")
    spoken = np.frombuffer(call.audio(), "<i2").astype(np.float32) / 32768
    back = Resampler(24_000, 16_000)
    transcript = await recognizer.recognize(np.concatenate([back.push(spoken), back.flush()]), owner="test")
    assert wrong_words(replied, transcript.text) <= 0.15 * len(words_of(replied)) + 1
    timed = [word for event in call.events for word in event.get("words", [])]
    assert "".join(word for word, _end in timed) == replied
    assert timed[-1][1] <= len(spoken) * 1000 // 24_000 + 1


def _read(path: Path) -> tuple[bytes, int, int]:
    return read_wav(path.read_bytes())


async def test_a_sign_is_read_when_it_is_asked_about(call: Call, say: Say) -> None:
    content = [{"type": "input_image", "image_url": sign("PLATFORM 9")}]
    await call.send("conversation.item.create", item={"type": "message", "role": "user", "content": content})
    await call.speak(say("What does the sign say?"))
    assert await call.reply() == "It says: PLATFORM 9."


async def test_a_tool_is_called_by_voice_and_its_result_is_spoken(call: Call, say: Say) -> None:
    tool = {
        "type": "function",
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
    await call.update(tools=[tool], audio=TRANSCRIBED)
    await call.speak(say("What is the weather in London?"))
    done = await call.receive("response.function_call_arguments.done")
    assert (done["name"], json.loads(done["arguments"])) == ("get_weather", {"city": "London"})
    await call.receive("response.done")
    output = {"type": "function_call_output", "call_id": done["call_id"], "output": "It is foggy in London."}
    await call.send("conversation.item.create", item=output)
    await call.send("response.create")
    assert await call.reply() == "It is foggy in London."


async def test_speech_during_a_reply_is_heard_and_what_was_not_heard_is_forgotten(call: Call, say: Say) -> None:
    """The reply is made much faster than it is spoken; the client truncates it to what was heard."""
    await call.speak(say("My favorite color is dark green."))
    await call.reply()
    item = call.last("response.output_item.done")["item"]
    words = [word for event in call.events for word in event.get("words", [])]
    await call.send("conversation.item.truncate", item_id=item["id"], content_index=0, audio_end_ms=words[2][1])
    await call.receive("conversation.item.truncated")
    await call.speak(say("What did you say?"))
    heard = "".join(word for word, _end in words[:3]).strip()
    assert await call.reply() == f"I said: {heard}."


async def test_push_to_talk_over_g711(call: Call, say: Say) -> None:
    """Issue of the local LLM: PCM16 at 24 kHz and G.711."""
    formats = {"format": {"type": "audio/pcmu"}}
    await call.update(audio={"input": {**formats, "turn_detection": None, **TRANSCRIBED["input"]}, "output": formats})
    from realtime.local.codecs import AudioEncoder

    encoder = AudioEncoder("audio/pcmu", 16_000)
    pcm = (say("What time is it?") * 32767).astype("<i2").tobytes()
    data = encoder.encode(pcm) + encoder.flush()
    await call.send("input_audio_buffer.append", audio=base64.b64encode(data).decode())
    await call.send("input_audio_buffer.commit")
    await call.send("response.create")
    replied = await call.reply()
    assert replied.startswith("It is ")
    assert 4_000 < len(call.audio()) < 40_000


async def test_a_long_wait_in_mid_sentence_is_one_turn_when_meaning_decides(call: Call, say: Say) -> None:
    turn_detection = {"type": "semantic_vad", "eagerness": "low"}
    await call.update(audio={"input": {"turn_detection": turn_detection, "transcription": {"model": "x"}}})
    await call.speak(say("I would like to know what the"), silence_ms=700)
    await call.speak(say("weather is like in London."), silence_ms=700)
    await call.reply()
    committed = [event for event in call.events if event["type"] == "input_audio_buffer.committed"]
    assert len(committed) == 1


async def test_three_calls_at_once_are_each_answered_what_they_said(llm_url: str, say: Say) -> None:
    sentences = ["My name is Robin.", "What is twelve times seven?", "The train leaves at noon."]

    async def hold(text: str) -> str:
        async with connect(llm_url, max_size=None) as connection:
            call = Call(connection)
            await call.speak(say(text))
            return await call.reply()

    replies = await asyncio.gather(*map(hold, sentences))
    assert "Robin" in replies[0]
    assert "84" in replies[1]
    assert "train" in replies[2]


async def test_ten_sentences_go_in_as_speech_and_come_back_as_speech(
    call: Call, say: Say, utterances: dict[str, np.ndarray], recognizer: WhisperRecognizer
) -> None:
    """Issue of the local LLM: word error of the transcripts at most 12 %, of the replies as recognised at most 10 %;
    the end of every turn where the speech ends."""
    sentences = {**utterances, **{text: say(text) for text in SPOKEN}}
    assert len(sentences) == 10
    detection = {"type": "server_vad", "silence_duration_ms": 500}
    await call.update(audio={"input": {"turn_detection": detection, **TRANSCRIBED["input"]}})
    wrong, total = [0, 0], [0, 0]
    position = 0.0
    for text, samples in sentences.items():
        before = len(call.events)
        await call.speak(samples, silence_ms=900)
        replied = await call.reply()
        events = call.events[before:]
        (stopped,) = [event for event in events if event["type"] == "input_audio_buffer.speech_stopped"]
        loud = np.flatnonzero(np.abs(samples) > 0.02)[-1]
        assert abs(stopped["audio_end_ms"] - 500 - (position + LEAD_MS + loud / 16)) <= 250, text
        position += LEAD_MS + len(samples) / 16 + 900
        heard = call.last("conversation.item.input_audio_transcription.completed")["transcript"]
        audio = b"".join(
            base64.b64decode(event["delta"]) for event in events if event["type"] == "response.output_audio.delta"
        )
        back = Resampler(24_000, 16_000)
        spoken = np.frombuffer(audio, "<i2").astype(np.float32) / 32768
        again = await recognizer.recognize(np.concatenate([back.push(spoken), back.flush()]), owner="test")
        for place, (said, found) in enumerate([(text, heard), (replied, again.text)]):
            wrong[place] += wrong_words(said, found)
            total[place] += len(words_of(said))
    assert wrong[0] <= 0.12 * total[0]
    assert wrong[1] <= 0.10 * total[1]
