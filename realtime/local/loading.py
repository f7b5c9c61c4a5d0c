"""The parts of a server, loaded at once.

Owns: `load_parts`. Driven once, before the server listens. The models load side by side, each on a thread of its own,
since most of it is reading files and building networks.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from realtime.errors import UserError
from realtime.local.brain.chat import ChatResponder
from realtime.local.brain.rules import RulesResponder
from realtime.local.brain.smollm import SmallModel
from realtime.local.eyes import PictureEyes
from realtime.local.parts import Eyes, Parts, Recognizer, Responder, Synthesizer, TurnJudge
from realtime.local.reader_process import ReaderProcess
from realtime.local.recognizer import WhisperRecognizer
from realtime.local.remote import Endpoint, RemoteRecognizer, RemoteSynthesizer
from realtime.local.settings import LlmSettings
from realtime.local.smart_turn import SmartTurn
from realtime.local.synthesizer import HibariSynthesizer
from realtime.local.vad import SileroDetector
from realtime.local.weights import WhisperWeights, whisper_base, whisper_of_ones_own, whisper_tiny
from realtime.local.workers import FairPool
from realtime.models.chat import ChatModel

__all__ = ["load_parts"]

_log = logging.getLogger(__name__)


def load_parts(settings: LlmSettings, pool: FairPool) -> Parts:
    """Load what a server hears, speaks, sees and thinks with.

    Args:
        settings: Which models and which brain.
        pool: Where they work.

    Raises:
        MissingExtraError: A package of the extra `local` is missing.
        UserError: A model is not where it should be, or not what it should be.
    """
    with ThreadPoolExecutor(4, "realtime-load") as loaders:
        eyes = PictureEyes(pool, ReaderProcess())
        recognizer = loaders.submit(_make_recognizer, settings, pool)
        synthesizer = loaders.submit(_make_synthesizer, settings, pool)
        detector = loaders.submit(SileroDetector)
        responder = loaders.submit(_make_responder, settings, eyes)
        judge = loaders.submit(_make_judge, settings, pool)
        return Parts(
            detector=detector.result(),
            recognizer=recognizer.result(),
            synthesizer=synthesizer.result(),
            eyes=eyes,
            responder=responder.result(),
            judge=judge.result(),
        )


def _make_recognizer(settings: LlmSettings, pool: FairPool) -> Recognizer:
    if settings.recognizer.startswith("http") and settings.model_dir is None:
        endpoint = Endpoint(url=settings.recognizer, model=settings.recognizer_model, api_key=settings.recognizer_key)
        return RemoteRecognizer(endpoint)
    return WhisperRecognizer(pool, _weights(settings), parallel=settings.threads)


def _weights(settings: LlmSettings) -> WhisperWeights:
    if settings.model_dir is not None:
        return whisper_of_ones_own(settings.model_dir)
    return whisper_base() if settings.recognizer == "base" else whisper_tiny()


def _make_judge(settings: LlmSettings, pool: FairPool) -> TurnJudge | None:
    if settings.turn_judge == "none":
        return None
    try:
        return SmartTurn(pool)
    except UserError as error:
        if settings.turn_judge != "auto":
            raise
        _log.info("semantic turn detection goes by words alone: %s", error)
        return None


def _make_synthesizer(settings: LlmSettings, pool: FairPool) -> Synthesizer:
    if settings.synthesizer == "hibari":
        return HibariSynthesizer(pool)
    endpoint = Endpoint(url=settings.synthesizer, model=settings.synthesizer_model, api_key=settings.synthesizer_key)
    return RemoteSynthesizer(endpoint, voice=settings.synthesizer_voice)


def _make_responder(settings: LlmSettings, eyes: Eyes) -> Responder:
    if settings.brain == "rules":
        return RulesResponder(eyes, time_of_day=_local_time)
    if settings.brain == "smollm":
        small = SmallModel()
        chat = ChatResponder(small.chat_model(), max_tokens=1_500, eyes=eyes, served_by=small)
        return RulesResponder(eyes, time_of_day=_local_time, otherwise=chat)
    model = ChatModel(settings.brain_model, url=settings.brain, api_key=settings.brain_key)
    return ChatResponder(model, max_tokens=settings.brain_max_tokens, eyes=None if settings.brain_sees else eyes)


def _local_time() -> datetime:
    return datetime.now().astimezone()
