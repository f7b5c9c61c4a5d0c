"""The parts of a server, loaded at once.

Owns: `load_parts`. Driven once, before the server listens. The models load side by side, each on a thread of its own,
since most of it is reading files and building networks.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from realtime.local.brain.rules import RulesResponder
from realtime.local.eyes import PictureEyes
from realtime.local.parts import Eyes, Parts, Responder
from realtime.local.recognizer import WhisperRecognizer
from realtime.local.settings import LlmSettings
from realtime.local.synthesizer import HibariSynthesizer
from realtime.local.vad import SileroDetector
from realtime.local.workers import FairPool

__all__ = ["load_parts"]


def load_parts(settings: LlmSettings, pool: FairPool) -> Parts:
    """Load what a server hears, speaks, sees and thinks with.

    Args:
        settings: Which models and which brain.
        pool: Where they work.

    Raises:
        MissingExtraError: A package of the extra `local` is missing.
        UserError: A model is not where it should be, or not what it should be.
    """
    with ThreadPoolExecutor(3, "realtime-load") as loaders:
        recognizer = loaders.submit(WhisperRecognizer, pool, model_dir=settings.model_dir, parallel=settings.threads)
        synthesizer = loaders.submit(HibariSynthesizer, pool)
        detector = loaders.submit(SileroDetector)
        eyes = PictureEyes(pool)
        return Parts(
            detector=detector.result(),
            recognizer=recognizer.result(),
            synthesizer=synthesizer.result(),
            eyes=eyes,
            responder=_make_responder(settings, eyes),
        )


def _make_responder(settings: LlmSettings, eyes: Eyes) -> Responder:
    return RulesResponder(eyes, time_of_day=_local_time)


def _local_time() -> datetime:
    return datetime.now().astimezone()
