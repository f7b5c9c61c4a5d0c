"""A provider of OpenAI's protocol that really listens, so that a lost or doubled word shows.

A word is 100 ms of sound of a value of its own. The provider hears it by that value, ends a turn at silence, tells the
transcript amid its reply, answers each turn once, and calls a tool where it is asked to. Each connection is a new
conversation, which knows what it was told.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from array import array
from collections.abc import Callable
from itertools import count, pairwise
from typing import Any, Protocol

import numpy as np

from realtime.errors import LinkLost
from realtime.testing import openai_script as script

RATE = 24_000
WORD_SAMPLES = 2_400
CLICK_SAMPLES = 240
"""Less than 10 ms is no speech: positions are told in whole milliseconds, so what is sent again may begin with a rest."""
SILENCE_SAMPLES = 4_800
"""200 ms of silence end a turn."""


def sound_of(number: int) -> bytes:
    """A word's sound."""
    return array("h", [1000 + number]).tobytes() * WORD_SAMPLES


class Line(Protocol):
    """One connection, seen by the provider."""

    async def send(self, text: str) -> None: ...

    async def receive(self) -> str: ...


class Ear:
    """Hears words in samples."""

    def __init__(self) -> None:
        self.position = 0
        self.started_at: int | None = None
        self._runs: list[list[int]] = []
        self._silent = 0

    def hear(self, pcm: bytes) -> list[tuple[str, int, list[str]]]:
        """What happened: (began | ended, sample position, words)."""
        happened: list[tuple[str, int, list[str]]] = []
        samples = np.frombuffer(pcm, np.int16)
        if samples.size:
            begins = [0, *(np.flatnonzero(np.diff(samples)) + 1).tolist()]
            for begin, end in pairwise([*begins, samples.size]):
                happened += self._run(int(samples[begin]), end - begin)
        return happened

    def _run(self, value: int, length: int) -> list[tuple[str, int, list[str]]]:
        happened: list[tuple[str, int, list[str]]] = []
        if value and self.started_at is None and length < CLICK_SAMPLES:
            pass
        elif value:
            if self.started_at is None:
                self.started_at = self.position
                happened.append(("began", self.position, []))
            self._silent = 0
            if self._runs and self._runs[-1][0] == value:
                self._runs[-1][1] += length
            else:
                self._runs.append([value, length])
        elif self.started_at is not None:
            self._silent += length
            if self._silent >= SILENCE_SAMPLES:
                words = [f"w{run[0] - 1000}" + ("" if run[1] == WORD_SAMPLES else f"!{run[1]}") for run in self._runs]
                happened.append(("ended", self.position + length - self._silent, words))
                self.started_at, self._runs, self._silent = None, [], 0
        self.position += length
        return happened


class Conversation:
    """One connection's."""

    def __init__(self, line: Line, provider: ListeningProvider) -> None:
        self.line, self.provider = line, provider
        self.items: list[dict[str, Any]] = []
        self.ear = Ear()
        self.turn_id = ""
        self.active = ""
        self.waiting: list[str] = []

    @property
    def last(self) -> str | None:
        return self.items[-1]["id"] if self.items else None

    async def say(self, *parts: Any) -> None:
        for part in parts:
            for message in part:
                await self.provider.boundary(self.line)
                await self.line.send(message if isinstance(message, str) else json.dumps(message))

    async def run(self) -> None:
        await self.say(script.session_created())
        while True:
            message = json.loads(await self.line.receive())
            await self.provider.boundary(self.line)
            await self.take(message)

    async def take(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "session.update":
                await self.say(script.session_updated())
            case "input_audio_buffer.append":
                for what, at, words in self.ear.hear(base64.b64decode(message["audio"])):
                    await self.heard(what, at, words)
            case "conversation.item.create":
                await self.create(message["item"])
            case "response.create":
                if self.active:
                    await self.say(script.error("conversation_already_has_active_response", cause=message["event_id"]))
                else:
                    await self.respond(None)
            case "response.cancel" | "conversation.item.truncate" | "conversation.item.delete":
                pass
            case other:
                self.provider.violations.append(f"unexpected {other}")

    async def create(self, item: dict[str, Any]) -> None:
        if item["type"] == "function_call_output" and not any(
            each["type"] == "function_call" and each["call_id"] == item["call_id"] for each in self.items
        ):
            self.provider.violations.append("an output without its call")
        if any(each["id"] == item["id"] for each in self.items):
            self.provider.violations.append(f"item {item['id']} twice on one connection")
        previous = self.last
        self.items.append(item)
        await self.say(script.item_created(item, previous))

    async def heard(self, what: str, at: int, words: list[str]) -> None:
        at_ms = at * 1000 // RATE
        if what == "began":
            self.turn_id = f"spoken{next(self.provider.numbers)}"
            await self.say([script.user_speech(self.turn_id, start_ms=at_ms)[0]])
            return
        previous, turn_id = self.last, self.turn_id
        self.items.append({"id": turn_id, "type": "message", "role": "user", "words": words})
        await self.say(script.user_speech(turn_id, end_ms=at_ms, previous_item_id=previous)[1:])
        await self.respond((turn_id, " ".join(words)))

    async def respond(self, spoken: tuple[str, str] | None) -> None:
        """Answer what was said last; the transcript of a spoken turn comes amid the reply."""
        number = next(self.provider.numbers)
        response_id, item_id = f"resp{number}", f"reply{number}"
        self.active = response_id
        asked = "" if spoken else self.text_of(self.items[-1]) if self.items else ""
        previous = self.last
        if asked.startswith("tool"):
            call = {"id": item_id, "type": "function_call", "call_id": f"call{number}", "name": "note"}
            self.items.append(call)
            arguments = json.dumps({"word": asked})
            reply = script.tool_call(
                response_id, item_id, call["call_id"], "note", arguments, previous_item_id=previous
            )
        else:
            text = f"Answer {number}."
            self.items.append({"id": item_id, "type": "message", "role": "assistant", "text": text})
            reply = script.spoken_reply(
                response_id, item_id, text, bytes(4800), chunk_bytes=2400, previous_item_id=previous
            )
        heard = script.user_transcript(*spoken) if spoken else []
        self.active = ""  # the reply is said in one go
        await self.say(reply[:4], heard, reply[4:])

    @staticmethod
    def text_of(item: dict[str, Any]) -> str:
        if item["type"] == "function_call_output":
            return "output"
        return "".join(part.get("text", "") for part in item.get("content", []))

    def user_words(self) -> list[str]:
        """What this conversation has of the user's, in order."""
        words: list[str] = []
        for item in self.items:
            if item.get("role") == "user":
                words += item["words"] if "words" in item else self.text_of(item).split()
        return words


class ListeningProvider:
    """All connections of one call."""

    def __init__(self, at_boundary: Callable[[Line], Any]) -> None:
        self.numbers = count(1)
        self.violations: list[str] = []
        self.conversations: list[Conversation] = []
        self.boundaries = 0
        self._at_boundary = at_boundary

    async def boundary(self, line: Line) -> None:
        self.boundaries += 1
        await self._at_boundary(line)

    async def serve(self, line: Line) -> None:
        conversation = Conversation(line, self)
        self.conversations.append(conversation)
        with contextlib.suppress(LinkLost, asyncio.CancelledError):
            await conversation.run()
