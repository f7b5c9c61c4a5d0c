"""The values of a recording: the core's vocabulary as JSON beside raw bytes, both ways.

Owns: `encode_value` and `decode_value`, and `describe`, the one line by which two events are compared byte for byte. Driven by
`pipelines/record.py`, which writes, and by `realtime.testing.replay`, which reads. It never touches a file, and decoding makes
values of the classes listed here and of no other: a recording runs no code of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any, cast

from realtime import errors
from realtime.chat import conversation, image_prices, messages, tokens, window
from realtime.chat.messages import AudioContent, ChatRole, ImageContent
from realtime.chat.window import ContextWindow
from realtime.core import capabilities, events, model_events, sampling, settings
from realtime.core.settings import Agent
from realtime.errors import RealtimeError, UserError

__all__ = ["RecordedError", "RecordedModel", "ValueReader", "ValueWriter", "describe"]

_MODULES: tuple[ModuleType, ...] = (
    *(capabilities, events, model_events, sampling, settings),
    *(conversation, image_prices, messages, tokens, window),
)
_CLASSES: dict[str, type[Any]] = {
    name: found
    for module in _MODULES
    for name, found in vars(module).items()
    if not name.startswith("_")
    and isinstance(found, type)
    and is_dataclass(found)
    and found.__module__.startswith("realtime.")
}
_ERRORS: dict[str, type[Exception]] = {name: getattr(errors, name) for name in errors.__all__}
_PLAIN = (str, int, float, bool, type(None))


class RecordedError(Exception):
    """An error of a class that a recording does not know, by its name and words."""

    def __init__(self, name: str, text: str) -> None:
        """Keep what it was."""
        super().__init__(text)
        self.recorded_name = name


class RecordedModel:
    """A model of a hand-off, by its name."""

    def __init__(self, name: str) -> None:
        """Keep its name."""
        self.name = name


class ValueWriter:
    """Encodes the values of one recording."""

    def __init__(self) -> None:
        """Nothing was written."""
        self._models: list[object] = []

    def encode(self, value: object, blobs: list[bytes]) -> Any:
        """A value as JSON; bytes go to `blobs`, and only their number stays.

        Raises:
            UserError: It holds something that a recording cannot hold.
        """
        match value:
            case ChatRole():
                return {"$role": value.value}
            case str() | int() | float() | bool() | None:
                return value
            case bytes():
                blobs.append(value)
                return {"$bytes": len(blobs) - 1}
            case ImageContent():
                address = "" if value.is_embedded else value.url
                return {"$image": [self.encode(value.data, blobs), address, value.detail]}
            case AudioContent():
                return {"$audio": [self.encode(value.data, blobs), value.transcript]}
            case BaseException():
                return {"$error": self._error(value, blobs)}
            case Agent():
                kept = {"id": value.id, "instructions": value.instructions, "voice": value.voice}
                return {"$agent": {**kept, "model": self._model(value.model)}}
            case ContextWindow():
                return {"$window": self._window(value, blobs)}
            case tuple():
                return {"$tuple": [self.encode(one, blobs) for one in cast("tuple[object, ...]", value)]}
            case list():
                return [self.encode(one, blobs) for one in cast("list[object]", value)]
            case Mapping():
                given = cast("Mapping[object, object]", value)
                return {"$map": [[self.encode(key, blobs), self.encode(one, blobs)] for key, one in given.items()]}
            case _:
                return self._value(value, blobs)

    def _value(self, value: object, blobs: list[bytes]) -> Any:
        name = type(value).__name__
        if _CLASSES.get(name) is not type(value):
            raise UserError(f"a recording cannot hold a {type(value).__module__}.{name}")
        given = {
            one.name: self.encode(getattr(value, one.name), blobs) for one in fields(cast("Any", value)) if one.init
        }
        return {"$": name, **given}

    def _window(self, value: ContextWindow, blobs: list[bytes]) -> dict[str, Any]:
        given = {
            one.name: getattr(value, one.name) for one in fields(value) if one.name not in ("summary_llm", "counter")
        }
        counter: Any = None
        with contextlib.suppress(UserError):  # one of the application's own: a replay has to be given it
            counter = self.encode(value.counter, blobs)
        return {**given, "summarizes": value.summary_llm is not None, "counter": counter}

    def _model(self, model: object) -> list[Any] | None:
        """Models are told apart by identity, so that a replay knows which hand-offs are to the same."""
        if model is None:
            return None
        number = next((index for index, known in enumerate(self._models) if known is model), len(self._models))
        if number == len(self._models):
            self._models.append(model)
        return [number, str(getattr(model, "name", type(model).__name__))]

    def _error(self, error: BaseException, blobs: list[bytes]) -> list[Any]:
        name = getattr(error, "recorded_name", type(error).__name__)
        kept = {key: one for key, one in vars(error).items() if isinstance(one, _PLAIN) and key != "recorded_name"}
        return [name, str(error), self.encode(kept if isinstance(error, RealtimeError) else {}, blobs)]


class ValueReader:
    """Decodes the values of one recording."""

    def __init__(self, *, counter: object = None, summarizer: object = None) -> None:
        """Nothing was read.

        Args:
            counter: In the place of a token counter of the application's own.
            summarizer: In the place of the application's summarizer.
        """
        self._counter = counter
        self._summarizer = summarizer
        self._models: dict[int, RecordedModel] = {}
        self._readers: dict[str, Callable[[Any, list[bytes]], Any]] = {
            "$role": lambda value, _: ChatRole(value),
            "$bytes": self._bytes,
            "$image": self._image,
            "$audio": lambda value, blobs: AudioContent(self.decode(value[0], blobs), value[1]),
            "$error": self._error,
            "$agent": self._agent,
            "$window": self._window,
            "$tuple": lambda value, blobs: tuple(self.decode(one, blobs) for one in value),
            "$map": lambda value, blobs: {self.decode(key, blobs): self.decode(one, blobs) for key, one in value},
        }

    def decode(self, data: Any, blobs: list[bytes]) -> Any:
        """The value that was encoded.

        Raises:
            UserError: It is of a class that this version does not know.
        """
        if isinstance(data, list):
            return [self.decode(one, blobs) for one in data]  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(data, dict):
            return data
        given = cast("dict[str, Any]", data)
        if "$" in given:
            found = _CLASSES.get(str(given["$"]))
            if found is None:
                raise UserError(f"this version knows no {given['$']!r}, which the recording holds")
            return found(**{name: self.decode(one, blobs) for name, one in given.items() if name != "$"})
        (kind, value), *_ = given.items()
        reader = self._readers.get(kind)
        if reader is None:
            raise UserError(f"this version knows no {kind!r}, which the recording holds")
        return reader(value, blobs)

    def _bytes(self, value: int, blobs: list[bytes]) -> bytes:
        return blobs[value]

    def _image(self, value: list[Any], blobs: list[bytes]) -> ImageContent:
        data, address, detail = self.decode(value[0], blobs), value[1], value[2]
        return ImageContent.from_bytes(data, "", detail) if data else ImageContent(url=address, detail=detail)

    def _agent(self, value: dict[str, Any], blobs: list[bytes]) -> Agent:
        given = dict(value)
        model = given.pop("model")
        if model is not None:
            model = self._models.setdefault(int(model[0]), RecordedModel(str(model[1])))
        return Agent(**given, model=model)

    def _window(self, value: dict[str, Any], blobs: list[bytes]) -> ContextWindow:
        given = dict(value)
        counter = given.pop("counter")
        summarizes = given.pop("summarizes")
        if counter is None and self._counter is None:
            raise UserError("the recorded session counted tokens by a counter of its own: give it to replay(counter=…)")
        return ContextWindow(
            **given,
            counter=cast("Any", self._counter if counter is None else self.decode(counter, blobs)),
            summary_llm=cast("Any", self._summarizer if summarizes else None),
        )

    def _error(self, value: list[Any], blobs: list[bytes]) -> BaseException:
        name, text, kept = str(value[0]), str(value[1]), self.decode(value[2], blobs)
        found = _ERRORS.get(name)
        if found is None:
            return RecordedError(name, text)
        error = found.__new__(found)
        Exception.__init__(error, text)  # its own takes other arguments; what it would keep is in `kept`
        for key, one in kept.items():
            setattr(error, key, one)
        return error


def describe(value: object) -> bytes:
    """A value in one line that is the same for the same, with the hash of each picture and recording in its place."""
    blobs: list[bytes] = []
    encoded = ValueWriter().encode(value, blobs)
    hashes = [hashlib.sha256(blob).hexdigest() for blob in blobs]
    return json.dumps([encoded, hashes], ensure_ascii=False, sort_keys=True).encode("utf-8", "surrogatepass")
